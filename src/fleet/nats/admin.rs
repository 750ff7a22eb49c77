//! What only the person who holds the fleet's key does at the server: making its streams, letting a host's letters be
//! kept for it, and cutting a host off.

use super::connect::{connect_now, options, unreachable};
use super::streams::{consumers, letters, rosters};
use super::{CourierError, FleetPlace, NatsCourier, PutOutcome, ServerAccess};
use crate::core::host::{FleetName, HostName};
use crate::fleet::jwt::{self, SERVER_MAY_KEEP};
use crate::fleet::keys::{AccountKey, HostKeys, LoginKey, ServerKeys};
use crate::fleet::signed::Topic;
use async_nats::Client;
use async_nats::jetstream::context::CreateStreamErrorKind;
use serde::Deserialize;
use std::sync::Arc;

/// The connection of the person who holds the fleet's key.
#[derive(Debug)]
pub struct FleetAdmin {
    courier: NatsCourier,
    fleet: FleetName,
}

impl FleetAdmin {
    /// Logs in with the key that signs logins, by claims that end after ten minutes.
    ///
    /// # Errors
    /// The server was not reached, or does not know the fleet.
    pub async fn connect(
        fleet: &FleetName,
        access: &ServerAccess,
        login: &LoginKey,
        now_s: i64,
    ) -> Result<FleetAdmin, CourierError> {
        let own = Arc::new(HostKeys::generate());
        let client = log_in(access, &own, &jwt::owner(login, &own.user_key(), now_s)).await?;
        let host = "owner".parse().expect("a name");
        let courier = NatsCourier::of(client, FleetPlace { fleet: fleet.clone(), host }, &access.domain);
        Ok(FleetAdmin { courier, fleet: fleet.clone() })
    }

    /// The courier, with all rights.
    #[must_use]
    pub fn courier(&self) -> &NatsCourier {
        &self.courier
    }

    /// Makes both streams where they are not there yet. `replicas`: 1 for one server, 3 for three.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn set_up(&self, replicas: usize) -> Result<(), CourierError> {
        for config in [letters(&self.fleet, replicas), rosters(&self.fleet, replicas)] {
            let made = self.courier.streams().create_stream(&config).await;
            made.map_err(|error| {
                // The server reserves room for the whole account, and without it serves no JetStream to the account.
                let why = match error.kind() {
                    CreateStreamErrorKind::JetStreamUnavailable => format!(
                        ", perhaps because it may keep less than {} GiB: write max_file_store: {SERVER_MAY_KEEP} into the \
                         jetstream {{}} of its configuration, and start it again",
                        SERVER_MAY_KEEP >> 30
                    ),
                    _ => String::new(),
                };
                CourierError::Refused(format!("{}: {error}{why}", config.name))
            })?;
        }
        Ok(())
    }

    /// Makes the consumers that keep a host's letters for it. A consumer that is there already stays.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn admit(&self, name: &HostName) -> Result<(), CourierError> {
        for config in consumers(&self.fleet, name) {
            let made = self.courier.streams().create_consumer_on_stream(config, self.box_name()).await;
            made.map_err(|error| CourierError::Refused(error.to_string()))?;
        }
        Ok(())
    }

    /// Removes a host's consumers, the letters from and to it, and its roster.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn expel(&self, name: &HostName) -> Result<(), CourierError> {
        let refused = |error: &dyn std::fmt::Display| CourierError::Refused(error.to_string());
        for consumer in consumers(&self.fleet, name).into_iter().filter_map(|config| config.durable_name) {
            // A consumer that is gone already is not an error.
            let _ = self.courier.streams().delete_consumer_from_stream(consumer, self.box_name()).await;
        }
        let fleet = &self.fleet;
        let letters = [format!("tk.{fleet}.box.*.{name}.*"), format!("tk.{fleet}.box.{name}.*.*")];
        let stream = self.courier.streams().get_stream(self.box_name()).await.map_err(|error| refused(&error))?;
        for filter in letters {
            stream.purge().filter(filter).await.map_err(|error| refused(&error))?;
        }
        let stream = self.courier.streams().get_stream(format!("tk_{fleet}_hosts")).await;
        let roster = format!("tk.{fleet}.host.{name}");
        stream.map_err(|error| refused(&error))?.purge().filter(roster).await.map_err(|error| refused(&error))?;
        Ok(())
    }

    /// Puts the member list, if the present one has this sequence.
    pub async fn put_members(&self, bytes: Vec<u8>, expected: u64) -> PutOutcome {
        self.courier.put(&Topic::Fleet, bytes, expected).await
    }

    fn box_name(&self) -> String {
        format!("tk_{}_box", self.fleet)
    }
}

/// Connects now or not at all, with these keys and claims.
async fn log_in(access: &ServerAccess, own: &Arc<HostKeys>, claims: &str) -> Result<Client, CourierError> {
    let options = |turn| {
        let claims = claims.to_owned();
        options(access, Arc::clone(own), move || claims.clone(), turn)
    };
    connect_now(access, options).await
}

/// A connection to the server's system account, which shows the claims of the fleet's account and takes new ones.
#[derive(Debug)]
pub struct SystemAdmin {
    client: Client,
}

impl SystemAdmin {
    /// Logs in with a key of the system account.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn connect(access: &ServerAccess, keys: &ServerKeys, now_s: i64) -> Result<SystemAdmin, CourierError> {
        let own = Arc::new(HostKeys::generate());
        Ok(SystemAdmin { client: log_in(access, &own, &jwt::system_user(keys, &own.user_key(), now_s)).await? })
    }

    /// The claims of the fleet's account as the server knows them; empty if it knows none.
    ///
    /// # Errors
    /// The server was not reached.
    pub async fn account(&self, key: &AccountKey) -> Result<String, CourierError> {
        let asked = self.client.request(format!("$SYS.REQ.ACCOUNT.{key}.CLAIMS.LOOKUP"), "".into());
        let answer = asked.await.map_err(|error| unreachable(&error))?;
        Ok(String::from_utf8_lossy(&answer.payload).into_owned())
    }

    /// Gives the server new claims of the fleet's account, such as claims that name a key that may not log in any more.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn push_account(&self, account: String) -> Result<(), CourierError> {
        #[derive(Deserialize)]
        struct Pushed {
            error: Option<PushError>,
        }
        #[derive(Deserialize)]
        struct PushError {
            #[serde(default)]
            description: String,
        }
        let asked = self.client.request("$SYS.REQ.CLAIMS.UPDATE", account.into());
        let answer = asked.await.map_err(|error| unreachable(&error))?;
        match serde_json::from_slice(&answer.payload) {
            Ok(Pushed { error: None }) => Ok(()),
            Ok(Pushed { error: Some(error) }) => Err(CourierError::Refused(error.description)),
            Err(error) => Err(CourierError::Refused(error.to_string())),
        }
    }
}
