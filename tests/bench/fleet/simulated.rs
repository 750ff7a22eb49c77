//! Hosts whose bridges are simulated: each has keys, a connection, consumers that it asks for letters, and a roster
//! that it puts as often as a bridge at rest does.

use data_encoding::BASE64URL_NOPAD;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tasuki::contract::fleet::{HostAgent, HostSidecar, SidecarWord};
use tasuki::core::host::{FleetName, HomeId, HostName};
use tasuki::core::time::rfc3339;
use tasuki::fleet::lease::PUT_EVERY_MS;
use tasuki::fleet::nats::{FleetPlace, NatsCourier, PutOutcome, ServerAccess};
use tasuki::fleet::{HostKeys, Roster, Teller, Topic, What};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

/// The machine's clock is of no importance here.
const AT_MS: i64 = 1_790_000_000_000;

/// One host.
pub(super) struct SimulatedHost {
    name: HostName,
    home_id: HomeId,
    keys: Arc<HostKeys>,
    url: String,
    ca: PathBuf,
    jwt: String,
}

fn uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn agent(number: usize) -> HostAgent {
    HostAgent {
        agent_id: uuid(),
        persona: Some(format!("persona-{number}")),
        profile: "claude".to_owned(),
        state: ["idle", "busy"][number % 2].to_owned(),
        context: Some(u8::try_from(number % 100).expect("small")),
        handoff_id: None,
        since: rfc3339(AT_MS + i64::try_from(number).expect("small") * 1_000),
    }
}

impl SimulatedHost {
    /// A host that is no member yet.
    pub(super) fn new(number: usize, url: &str, ca: &Path) -> SimulatedHost {
        SimulatedHost {
            name: format!("host-{number}").parse().expect("a name"),
            home_id: uuid().parse().expect("an id"),
            keys: Arc::new(HostKeys::generate()),
            url: url.to_owned(),
            ca: ca.to_owned(),
            jwt: String::new(),
        }
    }

    /// The line by which it is admitted.
    pub(super) fn key_line(&self) -> String {
        format!("tkk1.{}.{}.{}.{}", self.name, self.home_id, self.keys.user_key(), self.keys.box_key())
    }

    /// Takes its ticket.
    pub(super) fn admitted(self, ticket: &str) -> SimulatedHost {
        let text = ticket.trim().strip_prefix("tkf1.").expect("a ticket");
        let ticket: Value =
            serde_json::from_slice(&BASE64URL_NOPAD.decode(text.as_bytes()).expect("base64")).expect("JSON");
        SimulatedHost { jwt: ticket["jwt"].as_str().expect("its claims").to_owned(), ..self }
    }

    fn roster(&self, instance: uuid::Uuid, n: u64, agents: &[HostAgent]) -> Roster {
        let teller = Teller {
            host: self.name.clone(),
            home_id: self.home_id,
            instance,
            machine: "0".repeat(64),
            boot: "1".repeat(64),
            started_at: rfc3339(AT_MS),
        };
        let sidecar = HostSidecar { state: SidecarWord::Runs.into(), since: rfc3339(AT_MS) };
        let mut roster = Roster::new(teller, n, n, sidecar);
        roster.agents = agents.to_vec();
        roster
    }

    /// Lives until the process ends.
    async fn live(self, agents: usize, put: Arc<AtomicU64>) {
        let (fleet, instance): (FleetName, _) = ("bench".parse().expect("a name"), uuid::Uuid::new_v4());
        let place = FleetPlace { fleet: fleet.clone(), host: self.name.clone() };
        let access = ServerAccess {
            urls: vec![self.url.clone()],
            ca: Some(self.ca.clone()),
            domain: "hub".to_owned(),
            jwt: self.jwt.clone(),
        };
        let (heard_to, mut heard) = mpsc::channel(32);
        tokio::spawn(async move { while heard.recv().await.is_some() {} });
        let jwt = access.jwt.clone();
        let login = (Arc::clone(&self.keys), move || jwt.clone());
        let courier = NatsCourier::connect(place, access, login, heard_to).await.expect("it connects");
        let (_serves, serves) = watch::channel(true);
        for what in [What::Req, What::Res] {
            let (courier, serves, (to, mut letters)) = (courier.clone(), serves.clone(), mpsc::channel(4));
            tokio::spawn(async move { courier.bring_letters(what, serves, to).await });
            tokio::spawn(async move { while letters.recv().await.is_some() {} });
        }
        let (list, (to, mut lists)) = (courier.clone(), mpsc::channel(4));
        tokio::spawn(async move { list.bring_changes("_fleet", to).await });
        tokio::spawn(async move { while lists.recv().await.is_some() {} });
        let (agents, mut sequence) = ((0..agents).map(agent).collect::<Vec<_>>(), 0);
        for n in 1.. {
            let bytes = self.roster(instance, n, &agents).sign(&self.keys, &fleet);
            let pause = match courier.put(&Topic::Host(&self.name), bytes, sequence).await {
                PutOutcome::Stored(stored) => {
                    sequence = stored;
                    put.fetch_add(1, Ordering::Relaxed);
                    PUT_EVERY_MS
                }
                PutOutcome::Other | PutOutcome::Refused(_) | PutOutcome::Unreachable => 500,
            };
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
    }
}

/// Lets the hosts live, and gives what counts the rosters that they have put. They begin one after the other within the
/// time between two rosters, as bridges do that were started at any time.
pub(super) fn run(runtime: &Runtime, hosts: Vec<SimulatedHost>, agents: usize) -> impl Fn() -> u64 {
    let put = Arc::new(AtomicU64::new(0));
    let count = hosts.len().max(1) as u64;
    for (number, host) in (0..).zip(hosts) {
        let put = Arc::clone(&put);
        runtime.spawn(async move {
            tokio::time::sleep(Duration::from_millis(PUT_EVERY_MS * number / count)).await;
            host.live(agents, put).await;
        });
    }
    move || put.load(Ordering::Relaxed)
}
