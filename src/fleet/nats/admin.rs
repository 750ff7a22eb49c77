//! What only the person who holds the fleet's key does at the server: making its streams, letting a host's letters be
//! kept for it, and cutting a host off.

use super::connect::{addresses, options, unreachable};
use super::{CourierError, FleetPlace, NatsCourier, PutOutcome, ServerAccess};
use crate::core::host::{FleetName, HostName};
use crate::fleet::jwt;
use crate::fleet::keys::{FleetKeys, HostKeys, ServerKeys};
use crate::fleet::signed::Topic;
use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Republish, RetentionPolicy, StorageType};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// A day, in seconds.
const DAY_S: u64 = 24 * 3_600;

/// The connection of the person who holds the fleet's key.
#[derive(Debug)]
pub struct FleetAdmin {
    courier: NatsCourier,
    fleet: FleetName,
}

/// How a stream differs from what the fleet needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFault {
    /// Which stream.
    pub stream: String,
    /// What is different.
    pub what: String,
}

impl FleetAdmin {
    /// Logs in with the fleet's key, by claims that end after ten minutes.
    ///
    /// # Errors
    /// The server was not reached, or does not know the fleet.
    pub async fn connect(
        fleet: &FleetName,
        access: &ServerAccess,
        keys: &FleetKeys,
        now_s: i64,
    ) -> Result<FleetAdmin, CourierError> {
        let own = Arc::new(HostKeys::generate());
        let access = ServerAccess { jwt: jwt::owner(keys, &own.user_key(), now_s), ..access.clone() };
        let client = options(&access, own).connect(addresses(&access)?).await.map_err(|error| unreachable(&error))?;
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
                    CreateStreamErrorKind::JetStreamUnavailable => {
                        ", perhaps because its disk has less than 2 GiB free"
                    }
                    _ => "",
                };
                CourierError::Refused(format!("{}: {error}{why}", config.name))
            })?;
        }
        Ok(())
    }

    /// Makes what keeps a host's letters for it. What is there already stays.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn admit(&self, name: &HostName) -> Result<(), CourierError> {
        for (what, at_once) in [("req", 64), ("res", 256)] {
            let config = pull::Config {
                durable_name: Some(format!("{name}-{what}")),
                filter_subject: format!("tk.{}.box.{name}.*.{what}", self.fleet),
                ack_policy: AckPolicy::Explicit,
                ack_wait: Duration::from_secs(60),
                max_deliver: -1,
                max_ack_pending: at_once,
                ..pull::Config::default()
            };
            let made = self.courier.streams().create_consumer_on_stream(config, self.box_name()).await;
            made.map_err(|error| CourierError::Refused(error.to_string()))?;
        }
        Ok(())
    }

    /// Removes what keeps a host's letters, the letters from and to it, and its roster.
    ///
    /// # Errors
    /// The server was not reached, or refuses.
    pub async fn expel(&self, name: &HostName) -> Result<(), CourierError> {
        let refused = |error: &dyn std::fmt::Display| CourierError::Refused(error.to_string());
        for what in ["req", "res"] {
            let consumer = format!("{name}-{what}");
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

    /// Puts the member list, if what stands there has this sequence.
    pub async fn put_members(&self, bytes: Vec<u8>, expected: u64) -> PutOutcome {
        self.courier.put(&Topic::Fleet, bytes, expected).await
    }

    fn box_name(&self) -> String {
        format!("tk_{}_box", self.fleet)
    }
}

/// Gives the server new claims of the fleet's account, such as claims that name a key that may not log in any more.
///
/// # Errors
/// The server was not reached, or refuses.
pub async fn push_account(
    access: &ServerAccess,
    keys: &ServerKeys,
    account: String,
    now_s: i64,
) -> Result<(), CourierError> {
    #[derive(Deserialize)]
    struct Pushed {
        error: Option<PushError>,
    }
    #[derive(Deserialize)]
    struct PushError {
        #[serde(default)]
        description: String,
    }
    let own = Arc::new(HostKeys::generate());
    let access = ServerAccess { jwt: jwt::system_user(keys, &own.user_key(), now_s), ..access.clone() };
    let client = options(&access, own).connect(addresses(&access)?).await.map_err(|error| unreachable(&error))?;
    let asked = client.request("$SYS.REQ.CLAIMS.UPDATE", account.into());
    let answer = asked.await.map_err(|error| unreachable(&error))?;
    match serde_json::from_slice(&answer.payload) {
        Ok(Pushed { error: None }) => Ok(()),
        Ok(Pushed { error: Some(error) }) => Err(CourierError::Refused(error.description)),
        Err(error) => Err(CourierError::Refused(error.to_string())),
    }
}

/// The stream of letters: each stays until it is settled, for 8 days at most.
fn letters(fleet: &FleetName, replicas: usize) -> Config {
    Config {
        name: format!("tk_{fleet}_box"),
        subjects: vec![format!("tk.{fleet}.box.*.*.*")],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        max_age: Duration::from_secs(8 * DAY_S),
        max_bytes: 1 << 30,
        max_message_size: 2 << 20,
        discard: DiscardPolicy::New,
        max_messages_per_subject: 1_000,
        discard_new_per_subject: true,
        duplicate_window: Duration::from_secs(120),
        num_replicas: replicas,
        ..Config::default()
    }
}

/// The stream of rosters: the last of each host, and the last member list.
fn rosters(fleet: &FleetName, replicas: usize) -> Config {
    Config {
        name: format!("tk_{fleet}_hosts"),
        subjects: vec![format!("tk.{fleet}.host.*")],
        retention: RetentionPolicy::Limits,
        storage: StorageType::File,
        max_messages_per_subject: 1,
        max_bytes: 256 << 20,
        max_message_size: 256 << 10,
        discard: DiscardPolicy::Old,
        deny_delete: true,
        allow_direct: true,
        republish: Some(Republish {
            source: format!("tk.{fleet}.host.*"),
            destination: format!("tk.{fleet}.roster.{{{{wildcard(1)}}}}"),
            headers_only: false,
        }),
        num_replicas: replicas,
        ..Config::default()
    }
}
