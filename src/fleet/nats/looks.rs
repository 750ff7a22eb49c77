//! What the doctor reads at the server, with this host's own login. It changes nothing there.

use super::connect::{connect_now, options};
use super::{CourierError, FleetPlace, NatsCourier, ServerAccess};
use crate::core::time::millis;
use crate::fleet::keys::HostKeys;
use crate::fleet::letter::What;
use serde_json::Value;
use std::sync::Arc;

/// The error codes of a missing stream and of a missing consumer.
const NOT_FOUND: [u64; 2] = [10_059, 10_014];

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFacts {
    /// Its version.
    pub version: String,
    /// The largest message that it takes, in bytes.
    pub max_payload: usize,
    /// It refuses connections without encryption.
    pub needs_tls: bool,
}

/// A stream or a consumer, as the server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerObject {
    /// Its configuration.
    pub config: Value,
    /// When it was made, in the server's words.
    pub created: String,
    /// The server's clock when it answered, in milliseconds since 1970; servers before 2.10 do not say.
    pub server_ms: Option<i64>,
}

impl NatsCourier {
    /// Connects now or not at all, and hears nothing of the connection afterwards.
    ///
    /// # Errors
    /// The server was not reached, or refuses this host.
    pub async fn connect_once(
        place: FleetPlace,
        access: &ServerAccess,
        keys: Arc<HostKeys>,
    ) -> Result<NatsCourier, CourierError> {
        let options = |turn| {
            let jwt = access.jwt.clone();
            options(access, Arc::clone(&keys), move || jwt.clone(), turn)
                .custom_inbox_prefix(format!("_INBOX.{}", place.host))
                .name(format!("tasuki-fleet checks {}", place.host))
        };
        let client = connect_now(access, options).await?;
        Ok(NatsCourier::of(client, place, &access.domain))
    }

    /// What the server last said of itself; none before the first connection.
    #[must_use]
    pub fn facts(&self) -> Option<ServerFacts> {
        let info = self.client.try_server_info()?;
        Some(ServerFacts { version: info.version, max_payload: info.max_payload, needs_tls: info.tls_required })
    }

    /// The stream of letters (`box`) or that of rosters (`hosts`); none if it is not there.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn stream(&self, which: &str) -> Result<Option<ServerObject>, CourierError> {
        self.object(format!("STREAM.INFO.tk_{}_{which}", self.place.fleet)).await
    }

    /// The consumer that keeps this host's letters of one kind for it; none if it is not there.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn consumer(&self, what: What) -> Result<Option<ServerObject>, CourierError> {
        let FleetPlace { fleet, host } = &*self.place;
        self.object(format!("CONSUMER.INFO.tk_{fleet}_box.{host}-{}", what.as_str())).await
    }

    async fn object(&self, what: String) -> Result<Option<ServerObject>, CourierError> {
        let answer = self.ask(format!("{}.{what}", self.api), String::new()).await?;
        let answer: Value =
            serde_json::from_slice(&answer.payload).map_err(|error| CourierError::Refused(error.to_string()))?;
        match answer.get("error").filter(|error| !error.is_null()) {
            None => {
                let server_ms = answer["ts"].as_str().and_then(millis);
                let created = answer["created"].as_str().unwrap_or_default().to_owned();
                Ok(Some(ServerObject { config: answer["config"].clone(), created, server_ms }))
            }
            Some(error) if error["err_code"].as_u64().is_some_and(|code| NOT_FOUND.contains(&code)) => Ok(None),
            Some(error) => Err(CourierError::Refused(error["description"].as_str().unwrap_or_default().to_owned())),
        }
    }
}
