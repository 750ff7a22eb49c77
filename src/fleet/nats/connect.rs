//! How a host logs in at the server, and what it hears of the connection.

use super::server::{ANSWER_WITHIN, CourierError, Heard, ServerAccess};
use crate::fleet::keys::HostKeys;
use crate::fleet::members::MOST_MEMBERS;
use async_nats::{Client, ConnectOptions, Event, ServerAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Connects, by these options.
pub(super) async fn connect(options: ConnectOptions, access: &ServerAccess) -> Result<Client, CourierError> {
    options.connect(addresses(access)?).await.map_err(|error| unreachable(&with_causes(&error)))
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

/// A full channel loses news of the connection, which the next look shows again.
pub(super) fn tell(heard: &mpsc::Sender<Heard>, event: Event) {
    let news = match event {
        Event::Connected => Heard::Connected,
        Event::Disconnected | Event::Closed => Heard::Disconnected,
        Event::ServerError(async_nats::ServerError::AuthorizationViolation) => Heard::LoginRefused,
        Event::ServerError(error) => Heard::NotAllowed(error.to_string()),
        Event::ClientError(error) if error.to_string().contains("authorization violation") => Heard::LoginRefused,
        Event::ClientError(error) => Heard::Unreached(error.to_string()),
        Event::LameDuckMode | Event::Draining | Event::SlowConsumer(_) => return,
    };
    let _ = heard.try_send(news);
}
