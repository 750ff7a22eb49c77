//! How a host logs in at the server, and what it hears of the connection.

use super::server::{ANSWER_WITHIN, CourierError, Heard, ServerAccess};
use crate::fleet::keys::HostKeys;
use crate::fleet::members::MOST_MEMBERS;
use async_nats::{Auth, Client, ConnectOptions, Event, ServerAddr};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell, mpsc};

/// How long all pauses of the first round of attempts to connect are together, and how long they are at most. A round
/// tries each address once.
const FIRST_PAUSES: Duration = Duration::from_millis(200);
const LONGEST_PAUSES: Duration = Duration::from_secs(15);

/// Lets one attempt after the other log in. If two logged in at the same moment, a server that does not know the
/// account yet might fail to make the account's streams.
pub(super) type LoginTurn = Arc<Mutex<()>>;

/// Connects, by these options, and keeps trying one address after the other.
pub(super) async fn connect(options: ConnectOptions, access: &ServerAccess) -> Result<Client, CourierError> {
    options.connect(addresses(access)?).await.map_err(|error| unreachable(&with_causes(&error)))
}

/// Connects now or not at all. All addresses are tried at once, so that an address that leads nowhere does not use up
/// the time of the others; but only one attempt at a time logs in.
pub(super) async fn connect_now(
    access: &ServerAccess,
    options: impl Fn(LoginTurn) -> ConnectOptions,
) -> Result<Client, CourierError> {
    let (addresses, turn) = (addresses(access)?, LoginTurn::default());
    let tries = addresses.iter().map(|address| options(Arc::clone(&turn)).connect(address.clone()));
    let mut tries: FuturesUnordered<_> = tries.collect();
    let mut failed = None;
    while let Some(tried) = tries.next().await {
        match tried {
            Ok(client) => {
                // If the connection breaks, the client may take another address.
                let _ = client.set_server_pool(addresses.as_slice()).await;
                return Ok(client);
            }
            Err(error) => {
                let error = unreachable(&with_causes(&error));
                // A server that refuses the login says more than an address that leads nowhere.
                if failed.is_none() || matches!(error, CourierError::NotAllowed(_)) {
                    failed = Some(error);
                }
            }
        }
    }
    Err(failed.unwrap_or_else(|| CourierError::Unreachable("it has no address".to_owned())))
}

/// An error with its causes: that of a websocket says nothing by itself.
fn with_causes(error: &dyn std::error::Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// How this host logs in. `claims` is asked at each login.
pub(super) fn options(
    access: &ServerAccess,
    keys: Arc<HostKeys>,
    claims: impl Fn() -> String + Send + Sync + 'static,
    turn: LoginTurn,
) -> ConnectOptions {
    // The turn ends with the connection, or with the attempt that has failed.
    let held = Arc::new(OnceCell::new());
    let options = ConnectOptions::with_auth_callback(move |nonce| {
        let mut auth = Auth::new();
        auth.jwt = Some(claims());
        auth.signature = Some(keys.sign(&nonce));
        let (turn, held) = (Arc::clone(&turn), Arc::clone(&held));
        async move {
            held.get_or_init(|| turn.lock_owned()).await;
            Ok(auth)
        }
    });
    let addresses = access.urls.len();
    let options = options
        .connection_timeout(ANSWER_WITHIN)
        .request_timeout(Some(ANSWER_WITHIN))
        .ping_interval(Duration::from_secs(20))
        .subscription_capacity(MOST_MEMBERS * 2)
        .reconnect_delay_callback(move |attempts| pause_before(attempts, addresses))
        .ignore_discovered_servers();
    match &access.ca {
        Some(ca) => options.add_root_certificates(ca.clone()).require_tls(true),
        None => options,
    }
}

/// How long the client waits before an attempt to connect to one address. `attempts` counts these attempts since the
/// last connection, from 1. The pauses of a round become longer until the server is back, however many addresses there
/// are.
fn pause_before(attempts: usize, addresses: usize) -> Duration {
    let addresses = addresses.max(1);
    let round = attempts.saturating_sub(1) / addresses;
    let pauses = FIRST_PAUSES * 2_u32.pow(round.min(8).try_into().unwrap_or(8));
    pauses.min(LONGEST_PAUSES) / addresses.try_into().unwrap_or(u32::MAX)
}

fn addresses(access: &ServerAccess) -> Result<Vec<ServerAddr>, CourierError> {
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

/// A full channel loses news of the connection, which the next look shows again. That one address leads nowhere is told
/// only if all others were tried too.
pub(super) fn tell(heard: &mpsc::Sender<Heard>, event: Event, is_round_over: bool) {
    let news = match event {
        Event::Connected => Heard::Connected,
        Event::Disconnected | Event::Closed => Heard::Disconnected,
        Event::ServerError(async_nats::ServerError::AuthorizationViolation) => Heard::LoginRefused,
        Event::ServerError(error) => Heard::NotAllowed(error.to_string()),
        Event::ClientError(error) if error.to_string().contains("authorization violation") => Heard::LoginRefused,
        Event::ClientError(error) if is_round_over => Heard::Unreached(error.to_string()),
        Event::ClientError(_) | Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) => return,
    };
    let _ = heard.try_send(news);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_from_round_to_round_and_not_from_address_to_address() {
        let round = |round: usize, addresses: usize| -> Duration {
            (1..=addresses).map(|address| pause_before(round * addresses + address, addresses)).sum()
        };
        for addresses in [1, 4, 8] {
            assert_eq!(round(0, addresses), FIRST_PAUSES);
            assert_eq!(round(3, addresses), FIRST_PAUSES * 8);
            assert_eq!((round(7, addresses), round(70, addresses)), (LONGEST_PAUSES, LONGEST_PAUSES));
        }
        assert!(pause_before(usize::MAX, 0) == LONGEST_PAUSES && pause_before(0, 3) < FIRST_PAUSES);
    }
}
