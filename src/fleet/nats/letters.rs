//! Letters as the server delivers them: fetched, and settled.

use super::server::{ANSWER_WITHIN, FleetPlace};
use crate::fleet::letter::What;
use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::message::{AckKind, Acker};
use async_nats::jetstream::{self, Context};
use futures_util::StreamExt;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// How many letters are asked for at once, of requests and of results.
const AT_ONCE: usize = 64;
/// How many bytes of them the client may hold before they are taken, of requests and of results.
const BYTES_AT_ONCE: usize = 8 << 20;
/// How long one question for letters stays at the server.
const PULL_FOR: Duration = Duration::from_secs(60);
/// How often a server says that it still has a question for letters. After twice this time of silence the bridge asks
/// again.
const HEARTBEAT: Duration = Duration::from_secs(25);
/// The same for several servers. One of them has the question, and the question is lost when that server dies, although
/// the connection to another one stands.
const HEARTBEAT_OF_SEVERAL: Duration = Duration::from_secs(4);
/// The pause before letters are asked for again, if asking for them has failed.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The same, if letters could be asked for and their delivery has ended.
const SOON: Duration = Duration::from_secs(1);

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
    /// Settles it.
    pub settling: Settling,
}

/// Settles one letter.
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
    /// It is never to come again, because it is not authentic.
    Never,
    /// It is being worked at: it does not come again yet.
    Working,
}

/// Brings letters while `serves` is true. It waits while the channel is full.
pub(super) async fn bring(
    streams: &Context,
    place: &FleetPlace,
    what: What,
    mut serves: watch::Receiver<bool>,
    to: mpsc::Sender<ArrivedLetter>,
) {
    while serves.wait_for(|serves| *serves).await.is_ok() && !to.is_closed() {
        let (brought, pause) = match ask(streams, place, what).await {
            Ok(letters) => (pass_on(letters, what, &to).await, SOON),
            Err(error) => (Err(error), AGAIN_AFTER),
        };
        if let Err(error) = brought {
            tracing::debug!(error = error.to_string(), what = what.as_str(), "letters can't be fetched");
        }
        tokio::time::sleep(pause).await;
    }
}

/// Asks for letters.
async fn ask(streams: &Context, place: &FleetPlace, what: What) -> Result<pull::Stream, async_nats::Error> {
    let (stream, name) = (format!("tk_{}_box", place.fleet), format!("{}-{}", place.host, what.as_str()));
    let consumer: PullConsumer = streams.get_consumer_from_stream(name, stream).await?;
    let cluster = consumer.cached_info().cluster.as_ref();
    let are_several = cluster.is_some_and(|cluster| !cluster.replicas.is_empty());
    let letters = consumer.stream().max_messages_per_batch(AT_ONCE).max_bytes_per_batch(BYTES_AT_ONCE);
    let letters = letters.expires(PULL_FOR).heartbeat(if are_several { HEARTBEAT_OF_SEVERAL } else { HEARTBEAT });
    Ok(letters.messages().await?)
}

/// Passes letters to the channel until nobody takes them, or their delivery ends.
async fn pass_on(
    mut letters: pull::Stream,
    what: What,
    to: &mpsc::Sender<ArrivedLetter>,
) -> Result<(), async_nats::Error> {
    while let Some(letter) = letters.next().await {
        let Some(letter) = arrived(letter?, what) else { continue };
        if to.send(letter).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
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
