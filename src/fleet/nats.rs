//! The courier: a NATS server with JetStream. This is the only file that knows of it. It carries sealed letters and
//! signed rosters, and decides nothing; what it says of itself (which member wrote, in which order, how often) proves
//! nothing.

use super::asking::Published;
use super::keys::HostKeys;
use super::letter::What;
use super::members::MOST_MEMBERS;
use super::signed::Topic;
use crate::core::host::{FleetName, HostName};
use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::message::{AckKind, Acker};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, Event, HeaderMap, ServerAddr};
use futures_util::StreamExt;
use serde::Deserialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How long the server may take for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// How many letters are asked for at once, of requests and of results.
const AT_ONCE: usize = 64;
/// How long one question for letters stays with the server.
const PULL_FOR: Duration = Duration::from_secs(60);
/// After how much silence of the server a question for letters is asked again.
const HEARTBEAT: Duration = Duration::from_secs(25);
/// How long it takes until letters are asked for again where that has failed.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// The error of a stream that refuses a message, for its subject is full.
const STORE_FAILED: u64 = 10_077;
/// The error of a put where something else stands than was expected.
const WRONG_SEQUENCE: [u64; 2] = [10_071, 10_164];

/// Where the server is, and as whom this host logs in.
#[derive(Debug, Clone)]
pub struct ServerAccess {
    /// Its addresses: `tls://host:port`, `nats://host:port` or `wss://…`.
    pub urls: Vec<String>,
    /// The certificate of its authority, where that is the fleet's own.
    pub ca: Option<PathBuf>,
    /// The domain of its streams.
    pub domain: String,
    /// The claims of this host.
    pub jwt: String,
}

/// Who is in which fleet: the names that subjects are made of.
#[derive(Debug, Clone)]
pub struct FleetPlace {
    /// The fleet.
    pub fleet: FleetName,
    /// This host.
    pub host: HostName,
}

/// Why the server can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CourierError {
    /// An address can't be read.
    #[error("the address {0:?} of the server can't be used")]
    BadAddress(String),
    /// It was not reached, or has not answered in time.
    #[error("the server was not reached: {0}")]
    Unreachable(String),
    /// It does not let this host do that.
    #[error("the server does not allow it: {0}")]
    NotAllowed(String),
    /// It has answered with an error.
    #[error("the server answers: {0}")]
    Refused(String),
}

/// What is heard of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// It stands.
    Connected,
    /// It is gone; the client tries again by itself.
    Disconnected,
    /// The server refuses this host's login.
    LoginRefused,
    /// The server has refused something that this host has tried.
    NotAllowed(String),
}

/// A letter that has arrived and is not settled.
#[derive(Debug)]
pub struct ArrivedLetter {
    /// Who has sent it, as its subject says. Only its seal proves it.
    pub from: String,
    /// Request or result.
    pub what: What,
    /// The sealed bytes.
    pub sealed: Vec<u8>,
    /// When the server has stored it, by the server's clock, in milliseconds since 1970.
    pub stored_ms: i64,
    /// By which it is settled.
    pub settling: Settling,
}

/// By which a letter is settled.
#[derive(Clone)]
pub struct Settling(Arc<Acker>);

impl fmt::Debug for Settling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Settling")
    }
}

/// How a letter is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settle {
    /// It is done with: the server forgets it.
    Done,
    /// It comes again after so long.
    Later(Duration),
    /// It is never to come again, for it is not authentic.
    Never,
    /// It is being worked at: it does not come again yet.
    Working,
}

/// What stands at a name among the rosters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The server's number for it.
    pub sequence: u64,
    /// When the server has stored it, by the server's clock, in milliseconds since 1970.
    pub stored_ms: i64,
}

/// What came of putting a roster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// It stands there now, under this number.
    Stored(u64),
    /// Something else stands there than was expected.
    Other,
    /// Nobody knows.
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

#[derive(Deserialize)]
struct StreamInfo {
    #[serde(default)]
    created: String,
    error: Option<ApiError>,
}

/// The connection of one host to its fleet's server.
#[derive(Debug, Clone)]
pub struct NatsCourier {
    client: Client,
    streams: Context,
    place: Arc<FleetPlace>,
    api: String,
}

impl NatsCourier {
    /// Begins to connect, and goes on trying: what is heard of it comes through the channel.
    ///
    /// # Errors
    /// An address can't be read, or the certificate can't.
    pub async fn connect(
        place: FleetPlace,
        access: ServerAccess,
        keys: Arc<HostKeys>,
        heard: mpsc::Sender<Heard>,
    ) -> Result<NatsCourier, CourierError> {
        let options = options(&access, keys)
            .custom_inbox_prefix(format!("_INBOX.{}", place.host))
            .name(format!("tasuki-fleet {}", place.host))
            .retry_on_initial_connect()
            .event_callback(move |event| {
                let heard = heard.clone();
                async move { tell(&heard, event) }
            });
        let client = options.connect(addresses(&access)?).await.map_err(|error| unreachable(&error))?;
        Ok(NatsCourier::of(client, place, &access.domain))
    }

    pub(super) fn of(client: Client, place: FleetPlace, domain: &str) -> NatsCourier {
        let streams =
            jetstream::context::ContextBuilder::new().domain(domain).timeout(ANSWER_WITHIN).build(client.clone());
        NatsCourier { client, streams, place: Arc::new(place), api: format!("$JS.{domain}.API") }
    }

    /// The largest letter that the server takes, in bytes.
    #[must_use]
    pub fn most_bytes(&self) -> usize {
        const ROOM: usize = 16 << 10;
        self.client.max_payload().min(2 << 20).saturating_sub(ROOM)
    }

    /// The server's version and name, if it is connected.
    #[must_use]
    pub fn server(&self) -> Option<String> {
        let is_connected = self.client.connection_state() == async_nats::connection::State::Connected;
        let info = self.client.try_server_info().filter(|_| is_connected)?;
        Some(format!("nats-server {} at {}", info.version, info.connect_urls.first().unwrap_or(&info.server_name)))
    }

    /// The server's version, if it is connected.
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
            Some(PubAck { error: Some(error), .. }) if error.err_code == STORE_FAILED => Published::Full,
            Some(PubAck { error: Some(error), .. }) => {
                tracing::warn!(error.err_code, error.description, "the server did not take a letter");
                Published::Unreachable
            }
            None => Published::Unreachable,
        }
    }

    /// Puts a roster at this host's name, or the member list at the fleet's, if what stands there has this sequence.
    pub async fn put(&self, topic: &Topic<'_>, bytes: Vec<u8>, expected: u64) -> PutOutcome {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", expected.to_string().as_str());
        let subject = format!("tk.{}.host.{}", self.place.fleet, topic.as_str());
        match self.put_bytes(subject, headers, bytes).await {
            Some(PubAck { error: None, seq }) => PutOutcome::Stored(seq),
            Some(PubAck { error: Some(error), .. }) if WRONG_SEQUENCE.contains(&error.err_code) => PutOutcome::Other,
            Some(PubAck { error: Some(error), .. }) => {
                tracing::warn!(error.err_code, error.description, "the server did not take a roster");
                PutOutcome::Unreachable
            }
            None => PutOutcome::Unreachable,
        }
    }

    async fn put_bytes(&self, subject: String, headers: HeaderMap, bytes: Vec<u8>) -> Option<PubAck> {
        let asked = self.client.request_with_headers(subject, headers, bytes.into());
        let answer = tokio::time::timeout(ANSWER_WITHIN, asked).await.ok()?.ok()?;
        serde_json::from_slice(&answer.payload).ok()
    }

    /// What stands at a name among the rosters; none if nothing does.
    ///
    /// # Errors
    /// The server was not reached, or does not allow it.
    pub async fn standing(&self, topic: &Topic<'_>) -> Result<Option<Standing>, CourierError> {
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
                Ok(Some(Standing { bytes: answer.payload.into(), sequence, stored_ms }))
            }
            _ => Err(CourierError::Refused("a roster without its number".to_owned())),
        }
    }

    /// When the stream of letters was made. Another time than before means that it is another one, and that the letters in
    /// the former are lost.
    ///
    /// # Errors
    /// The server was not reached, or has no such stream.
    pub async fn box_created(&self) -> Result<String, CourierError> {
        let subject = format!("{}.STREAM.INFO.tk_{}_box", self.api, self.place.fleet);
        let answer = self.ask(subject, String::new()).await?;
        let info: StreamInfo =
            serde_json::from_slice(&answer.payload).map_err(|error| CourierError::Refused(error.to_string()))?;
        match info.error {
            None => Ok(info.created),
            Some(error) => Err(CourierError::Refused(error.description)),
        }
    }

    pub(super) async fn ask(&self, subject: String, body: String) -> Result<async_nats::Message, CourierError> {
        let asked = self.client.request(subject, body.into());
        let silent = || CourierError::Unreachable("it did not answer in time".to_owned());
        tokio::time::timeout(ANSWER_WITHIN, asked).await.map_err(|_| silent())?.map_err(|error| unreachable(&error))
    }

    /// Brings letters as long as `serves` says so. It waits while the channel is full.
    pub async fn bring_letters(&self, what: What, mut serves: watch::Receiver<bool>, to: mpsc::Sender<ArrivedLetter>) {
        loop {
            if serves.wait_for(|serves| *serves).await.is_err() {
                return;
            }
            if let Err(error) = self.bring(what, &to).await {
                tracing::debug!(error = error.to_string(), what = what.as_str(), "letters can't be fetched");
            }
            if to.is_closed() {
                return;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    async fn bring(&self, what: What, to: &mpsc::Sender<ArrivedLetter>) -> Result<(), async_nats::Error> {
        let (stream, name) = (format!("tk_{}_box", self.place.fleet), format!("{}-{}", self.place.host, what.as_str()));
        let consumer: PullConsumer = self.streams.get_consumer_from_stream(name, stream).await?;
        let mut letters = messages(&consumer).await?;
        while let Some(letter) = letters.next().await {
            let Some(letter) = arrived(letter?, what) else { continue };
            if to.send(letter).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells of each roster (`*`) or of the member list (`_fleet`) as it changes, until nobody listens: its name, and its
    /// bytes.
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

    /// Sends what is on its way, and closes the connection.
    pub async fn close(&self) {
        let _ = tokio::time::timeout(ANSWER_WITHIN, self.client.flush()).await;
    }

    pub(super) fn streams(&self) -> &Context {
        &self.streams
    }
}

async fn messages(consumer: &PullConsumer) -> Result<pull::Stream, async_nats::Error> {
    let letters = consumer.stream().max_messages_per_batch(AT_ONCE).expires(PULL_FOR).heartbeat(HEARTBEAT);
    Ok(letters.messages().await?)
}

/// A letter as it was delivered; none if its subject or its delivery can't be read.
fn arrived(delivered: jetstream::Message, what: What) -> Option<ArrivedLetter> {
    let stored_ms = i64::try_from(delivered.info().ok()?.published.unix_timestamp_nanos() / 1_000_000).ok()?;
    let (message, acker) = delivered.split();
    let from = message.subject.split('.').nth(4)?.to_owned();
    Some(ArrivedLetter { from, what, sealed: message.payload.to_vec(), stored_ms, settling: Settling(Arc::new(acker)) })
}

impl Settling {
    /// Settles the letter; false if the server has not confirmed that. Then the letter comes again.
    pub async fn settle(&self, how: Settle) -> bool {
        let done = async {
            match how {
                Settle::Done => self.0.double_ack().await,
                Settle::Later(pause) => self.0.ack_with(AckKind::Nak(Some(pause))).await,
                Settle::Never => self.0.ack_with(AckKind::Term).await,
                Settle::Working => self.0.ack_with(AckKind::Progress).await,
            }
        };
        tokio::time::timeout(ANSWER_WITHIN, done).await.is_ok_and(|settled| settled.is_ok())
    }
}

/// How this host logs in.
pub(super) fn options(access: &ServerAccess, keys: Arc<HostKeys>) -> ConnectOptions {
    let options = ConnectOptions::with_jwt(access.jwt.clone(), move |nonce| {
        let keys = Arc::clone(&keys);
        async move { Ok(keys.sign(&nonce)) }
    });
    let pause = |attempts: usize| {
        let pause = Duration::from_millis(100) * 2_u32.pow(attempts.min(8).try_into().unwrap_or(8));
        pause.min(LONGEST_PAUSE)
    };
    let options = options
        .connection_timeout(ANSWER_WITHIN)
        .request_timeout(Some(ANSWER_WITHIN))
        .ping_interval(Duration::from_secs(20))
        .subscription_capacity(MOST_MEMBERS * 2)
        .reconnect_delay_callback(pause)
        .ignore_discovered_servers();
    match &access.ca {
        Some(ca) => options.add_root_certificates(ca.clone()).require_tls(true),
        None => options,
    }
}

pub(super) fn addresses(access: &ServerAccess) -> Result<Vec<ServerAddr>, CourierError> {
    let one = |url: &String| url.parse().map_err(|_| CourierError::BadAddress(url.clone()));
    access.urls.iter().map(one).collect()
}

pub(super) fn unreachable(error: &impl ToString) -> CourierError {
    let text = error.to_string();
    if text.contains("authorization violation") || text.contains("ermissions") {
        return CourierError::NotAllowed(text);
    }
    CourierError::Unreachable(text)
}

/// A full channel loses news of the connection, which the next look shows again.
fn tell(heard: &mpsc::Sender<Heard>, event: Event) {
    let news = match event {
        Event::Connected => Heard::Connected,
        Event::Disconnected | Event::Closed => Heard::Disconnected,
        Event::ServerError(async_nats::ServerError::AuthorizationViolation) => Heard::LoginRefused,
        Event::ServerError(error) => Heard::NotAllowed(error.to_string()),
        Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) | Event::ClientError(_) => return,
    };
    let _ = heard.try_send(news);
}
