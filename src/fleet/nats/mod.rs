//! The courier: a NATS server with JetStream. Only this folder knows of it. It carries sealed letters and signed
//! rosters, and decides nothing. What it says of itself (which member wrote, in which order, how often) proves nothing.
//!
//! `connect`: how a host logs in. `addresses`: which address is tried next. `letters`: letters that arrive. `streams`:
//! what the fleet needs there. `admin`: what only the fleet's owner does. `looks`: what the doctor reads. `version`:
//! which servers are safe.

mod addresses;
pub mod admin;
mod connect;
mod letters;
pub mod looks;
mod server;
pub mod streams;
pub mod version;

pub use letters::{ArrivedLetter, Settle, Settling};
pub use server::{CourierError, FleetPlace, Heard, ServerAccess};

use super::asking::Published;
use super::keys::HostKeys;
use super::letter::What;
use super::signed::Topic;
use crate::core::host::HostName;
use addresses::AddressChoice;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, Event, HeaderMap};
use connect::{LoginTurn, connect, options, tell, unreachable};
use futures_util::StreamExt;
use serde::Deserialize;
use server::ANSWER_WITHIN;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The error code of a stream that refuses a message because its subject is full.
const STORE_FAILED: u64 = 10_077;
/// The error codes of a put if another sequence was expected.
const WRONG_SEQUENCE: [u64; 2] = [10_071, 10_164];

/// What stands at a name among the rosters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRoster {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The server's number for it.
    pub sequence: u64,
    /// When the server has stored it, by the server's clock, in milliseconds since 1970.
    pub stored_ms: i64,
}

/// What came of putting a roster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    /// It stands there now, under this number.
    Stored(u64),
    /// The present roster is another one than was expected.
    Other,
    /// The server does not store it, such as on a full disk: why, in its words.
    Refused(String),
    /// It was not sent, or not confirmed.
    Unreachable,
}

/// A server's answer to a publishing.
#[derive(Deserialize)]
struct PubAck {
    #[serde(default)]
    seq: u64,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl ApiError {
    /// Whether the limit of one host's letters in a box is reached. The server gives the same number to every failure
    /// to store something, such as a full disk.
    fn is_full_box(&self) -> bool {
        self.err_code == STORE_FAILED && self.description.starts_with("maximum ")
    }
}

/// The connection of one host to its fleet's server.
#[derive(Debug, Clone)]
pub struct NatsCourier {
    client: Client,
    streams: Context,
    place: Arc<FleetPlace>,
    api: String,
    addresses: Arc<AddressChoice>,
}

impl NatsCourier {
    /// Begins to connect, and keeps trying. Events of the connection come through the channel. `claims` is asked for
    /// this host's claims at each login: it may be admitted again while its bridge runs.
    ///
    /// # Errors
    /// An address can't be read, or the certificate can't.
    pub async fn connect(
        place: FleetPlace,
        access: ServerAccess,
        (keys, claims): (Arc<HostKeys>, impl Fn() -> String + Send + Sync + 'static),
        heard: mpsc::Sender<Heard>,
    ) -> Result<NatsCourier, CourierError> {
        let addresses = Arc::new(AddressChoice::default());
        let (choice, events) = (Arc::clone(&addresses), Arc::clone(&addresses));
        let count = access.urls.len();
        let options = options(&access, keys, claims, LoginTurn::default())
            .custom_inbox_prefix(format!("_INBOX.{}", place.host))
            .name(format!("tasuki-fleet {}", place.host))
            .retry_on_initial_connect()
            .reconnect_to_server_callback(move |servers, _| {
                let next = choice.next(&servers);
                async move { next }
            })
            .event_callback(move |event| {
                if matches!(event, Event::Connected) {
                    events.connected();
                }
                tell(&heard, event, events.is_round_over(count));
                async {}
            });
        let client = connect(options, &access).await?;
        Ok(NatsCourier { addresses, ..NatsCourier::of(client, place, &access.domain) })
    }

    pub(super) fn of(client: Client, place: FleetPlace, domain: &str) -> NatsCourier {
        let api = if domain.is_empty() { "$JS.API".to_owned() } else { format!("$JS.{domain}.API") };
        let streams = jetstream::context::ContextBuilder::new().api_prefix(&api).timeout(ANSWER_WITHIN);
        NatsCourier {
            streams: streams.build(client.clone()),
            client,
            place: Arc::new(place),
            api,
            addresses: Arc::default(),
        }
    }

    /// Leaves the server, which is connected and answers nothing, and connects to another address if there is one. What
    /// was not confirmed yet is not sent again.
    pub async fn leave_server(&self) {
        self.addresses.leave();
        // This fails only when the client has ended.
        let _ = tokio::time::timeout(ANSWER_WITHIN, self.client.force_reconnect()).await;
    }

    /// The largest letter that the server takes, in bytes.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        const ROOM: usize = 16 << 10;
        self.client.max_payload().min(2 << 20).saturating_sub(ROOM)
    }

    fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// The server's version and the address by which it was reached, if it is connected.
    #[must_use]
    pub fn server(&self) -> Option<String> {
        let info = self.client.try_server_info().filter(|_| self.is_connected())?;
        Some(format!("nats-server {} at {}", info.version, self.addresses.tried_last().unwrap_or(info.server_name)))
    }

    /// The version of the server that it was connected to last; none before the first connection.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        Some(self.client.try_server_info()?.version)
    }

    /// Publishes a sealed letter. The server drops a second one with the same `message` within two minutes.
    pub async fn publish(&self, to: &HostName, what: What, message: &str, sealed: Vec<u8>) -> Published {
        let FleetPlace { fleet, host } = &*self.place;
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", message);
        let subject = format!("tk.{fleet}.box.{to}.{host}.{}", what.as_str());
        match self.put_bytes(subject, headers, sealed).await {
            Some(PubAck { error: None, .. }) => Published::Stored,
            Some(PubAck { error: Some(error), .. }) if error.is_full_box() => Published::Full,
            Some(PubAck { error: Some(error), .. }) => Published::Refused(error.description),
            None => Published::Unreachable,
        }
    }

    /// Puts a roster at this host's name, or the member list at the fleet's, if the present one has this sequence.
    pub async fn put(&self, topic: &Topic<'_>, bytes: Vec<u8>, expected: u64) -> PutOutcome {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string().as_str());
        let subject = format!("tk.{}.host.{}", self.place.fleet, topic.as_str());
        match self.put_bytes(subject, headers, bytes).await {
            Some(PubAck { error: None, seq }) => PutOutcome::Stored(seq),
            Some(PubAck { error: Some(error), .. }) if WRONG_SEQUENCE.contains(&error.err_code) => PutOutcome::Other,
            Some(PubAck { error: Some(error), .. }) => PutOutcome::Refused(error.description),
            None => PutOutcome::Unreachable,
        }
    }

    async fn put_bytes(&self, subject: String, headers: HeaderMap, bytes: Vec<u8>) -> Option<PubAck> {
        // While the client is cut off, it would keep the bytes and send them when it is back: too late for a letter.
        if !self.is_connected() {
            return None;
        }
        let asked = self.client.request_with_headers(subject, headers, bytes.into());
        let answer = tokio::time::timeout(ANSWER_WITHIN, asked).await.ok()?.ok()?;
        serde_json::from_slice(&answer.payload).ok()
    }

    /// What stands at a name among the rosters; none if nothing does.
    ///
    /// # Errors
    /// The server was not reached, or does not allow it.
    pub async fn standing(&self, topic: &Topic<'_>) -> Result<Option<StoredRoster>, CourierError> {
        let fleet = &self.place.fleet;
        let subject = format!("{}.DIRECT.GET.tk_{fleet}_hosts.tk.{fleet}.host.{}", self.api, topic.as_str());
        let answer = self.ask(subject, String::new()).await?;
        if answer.status.is_some_and(|status| status.as_u16() == 404) {
            return Ok(None);
        }
        let header = |name: &str| answer.headers.as_ref()?.get(name).map(ToString::to_string);
        let sequence = header("Nats-Sequence").and_then(|text| text.parse().ok());
        let stored = header("Nats-Time-Stamp").and_then(|text| crate::core::time::millis(&text));
        match (sequence, stored) {
            (Some(sequence), Some(stored_ms)) => {
                Ok(Some(StoredRoster { bytes: answer.payload.into(), sequence, stored_ms }))
            }
            _ => Err(CourierError::Refused("a roster without its number".to_owned())),
        }
    }

    /// When the stream of letters was made. If this has changed, the stream is another one, and the letters in the
    /// former one are lost.
    ///
    /// # Errors
    /// The server was not reached, or has no such stream.
    pub async fn box_created(&self) -> Result<String, CourierError> {
        match self.stream("box").await? {
            Some(found) => Ok(found.created),
            None => Err(CourierError::Refused("stream not found".to_owned())),
        }
    }

    pub(super) async fn ask(&self, subject: String, body: String) -> Result<async_nats::Message, CourierError> {
        let asked = self.client.request(subject, body.into());
        let silent = || CourierError::Unreachable("it did not answer in time".to_owned());
        tokio::time::timeout(ANSWER_WITHIN, asked).await.map_err(|_| silent())?.map_err(|error| unreachable(&error))
    }

    /// Brings letters while `serves` is true. It waits while the channel is full.
    pub async fn bring_letters(&self, what: What, serves: watch::Receiver<bool>, to: mpsc::Sender<ArrivedLetter>) {
        letters::bring(&self.streams, &self.place, what, serves, to).await;
    }

    /// Sends the name and the bytes of each roster (`*`), or of the member list (`_fleet`), whenever it changes, until
    /// nobody listens.
    pub async fn bring_changes(&self, name: &str, to: mpsc::Sender<(String, Vec<u8>)>) {
        let subject = format!("tk.{}.roster.{name}", self.place.fleet);
        let Ok(mut changes) = self.client.subscribe(subject).await else { return };
        loop {
            let change = tokio::select! {
                change = changes.next() => change,
                () = to.closed() => None,
            };
            let Some(message) = change else { return };
            let name = message.subject.rsplit('.').next().unwrap_or_default().to_owned();
            if to.send((name, message.payload.into())).await.is_err() {
                return;
            }
        }
    }

    /// Waits until everything that was given to the connection is sent.
    pub async fn flush(&self) {
        if !self.is_connected() {
            return;
        }
        let _ = tokio::time::timeout(ANSWER_WITHIN, self.client.flush()).await;
    }

    pub(super) fn streams(&self) -> &Context {
        &self.streams
    }
}
