//! The bridge of one host: what it knows, and what it does about each thing that it hears. It waits for nothing itself:
//! what asks the server runs beside it, and comes back as [`Done`].

use super::asks;
use super::audit::{Audit, AuditLine};
use super::directory::Directory;
use super::folder::FleetFolder;
use super::identity::{HostFile, Membership};
use super::out;
use super::roster::RosterSource;
use super::serves::{Serving, WaitingLetter};
use super::settings::FleetSettings;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::config::Home;
use crate::contract;
use crate::contract::fleet::{BridgeView, LeaseWord};
use crate::core::host::{FleetId, HostName};
use crate::core::id::RequestId;
use crate::core::time::Now;
use crate::files::Grade;
use crate::fleet::answering::Here;
use crate::fleet::asking::{Asking, Published};
use crate::fleet::lease::{Digest, Lease, LeaseProblem, Own};
use crate::fleet::nats::{ArrivedLetter, CourierError, Heard, NatsCourier, PutOutcome, Standing};
use crate::fleet::roster::{RosterNumbers, Teller};
use crate::fleet::{AccountKey, HostKeys, Members};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// How often `bridge.json` is written when nothing changes, in milliseconds.
pub(super) const HEARTBEAT_MS: u64 = 15_000;
/// How often the bridge looks at its folders, whatever it was told, in milliseconds.
pub(super) const TICK_MS: u64 = 5_000;
/// After how long the list of members is read again, in milliseconds, for news of it may be lost.
const MEMBERS_EVERY_MS: u64 = 60_000;

/// What came of something that was asked of the server.
#[derive(Debug)]
pub(super) enum Done {
    /// A letter with a request was published.
    Published { id: FleetId, message: u64, outcome: Published },
    /// An answer was published.
    Replied { rid: RequestId, outcome: Published },
    /// What stands at this host's own name; `is_clock`: only the server's time in it was asked for.
    Looked { standing: Result<Option<Standing>, CourierError>, is_clock: bool },
    /// A roster was put.
    Put { n: u64, outcome: PutOutcome, asked_ms: u64 },
    /// The list of members.
    MemberList(Result<Option<Standing>, CourierError>),
    /// When the stream of letters was made.
    BoxCreated(Result<String, CourierError>),
    /// What stands at the name of another host.
    Roster { host: HostName, standing: Result<Option<Standing>, CourierError> },
}

/// What the bridge hears.
#[derive(Debug)]
pub(super) enum BridgeEvent {
    Heard(Heard),
    Arrived(ArrivedLetter),
    /// A roster or the list of members has changed.
    Changed(String, Vec<u8>),
    Done(Done),
    /// Something has changed in the folders, or it is time to look.
    Look,
}

/// The server's clock, as this host's last roster shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerTime {
    /// When the roster was stored, by the server's clock, in milliseconds since 1970.
    pub(super) stored_ms: i64,
    /// The same moment by this machine's clock since its boot, as far as it is known.
    pub(super) boot_ms: u64,
}

impl ServerTime {
    /// The server's clock at this moment, if it runs on evenly.
    pub(super) fn now_ms(&self, boot_ms: u64) -> i64 {
        self.stored_ms.saturating_add(i64::try_from(boot_ms.saturating_sub(self.boot_ms)).unwrap_or(i64::MAX))
    }
}

/// The bridge.
pub(super) struct Bridge {
    pub(super) home: Home,
    pub(super) folder: FleetFolder,
    pub(super) settings: FleetSettings,
    pub(super) host: HostFile,
    pub(super) here: Here,
    pub(super) keys: Arc<HostKeys>,
    pub(super) fleet_key: AccountKey,
    pub(super) teller: Teller,
    pub(super) courier: NatsCourier,
    pub(super) clock: Clock,
    pub(super) now: Now,
    pub(super) members: Members,
    pub(super) numbers: RosterNumbers,
    pub(super) lease: Lease,
    pub(super) asking: Asking,
    /// How many publishings of requests are under way.
    pub(super) in_flight: usize,
    pub(super) serving: BTreeMap<RequestId, Serving>,
    /// Letters that can't be judged yet.
    pub(super) waiting: Vec<WaitingLetter>,
    pub(super) server_time: Option<ServerTime>,
    /// When the last roster was put that the server has confirmed, by this machine's clock since its boot.
    pub(super) put_at_ms: Option<u64>,
    pub(super) roster: RosterSource,
    pub(super) directory: Directory,
    pub(super) audit: Audit,
    pub(super) done: mpsc::Sender<Done>,
    pub(super) serves: watch::Sender<bool>,
    /// When the stream of letters was made.
    pub(super) box_created: Option<String>,
    members_due_ms: u64,
    view: BridgeView,
    view_due_ms: u64,
    /// What is wrong, by what it is about.
    problems: BTreeMap<&'static str, String>,
    /// Why the bridge must end.
    pub(super) ended: Option<LeaseProblem>,
}

/// What a bridge is made of.
pub(super) struct BridgeParts {
    pub(super) home: Home,
    pub(super) folder: FleetFolder,
    pub(super) settings: FleetSettings,
    pub(super) member: Membership,
    pub(super) members: Members,
    pub(super) courier: NatsCourier,
    pub(super) own: Own,
    pub(super) numbers: RosterNumbers,
    pub(super) box_created: Option<String>,
    pub(super) done: mpsc::Sender<Done>,
    pub(super) serves: watch::Sender<bool>,
}

impl Bridge {
    pub(super) fn new(parts: BridgeParts) -> Result<Bridge, CliError> {
        let BridgeParts { home, folder, settings, member, members, courier, own, numbers, box_created, done, serves } =
            parts;
        let (clock, random) = (Clock::new(), uuid::Uuid::new_v4().as_u64_pair().0);
        let now = clock.now();
        let Membership { host, fleet, keys, .. } = member;
        let here = Here { fleet: fleet.name, host: host.name.clone(), home_id: host.home_id };
        let teller = Teller {
            host: host.name.clone(),
            home_id: host.home_id,
            instance: own.instance,
            machine: own.machine.clone(),
            boot: own.boot.clone(),
            started_at: now.rfc3339(),
        };
        let view = BridgeView {
            v: 1,
            host: host.name.to_string(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..BridgeView::default()
        };
        let mut bridge = Bridge {
            roster: RosterSource::new(&home),
            directory: Directory::new(&folder),
            audit: Audit::open(&folder),
            lease: Lease::new(own, now.boot_ms),
            asking: Asking::new(random),
            keys: Arc::new(keys),
            fleet_key: fleet.key,
            in_flight: 0,
            serving: BTreeMap::new(),
            waiting: Vec::new(),
            server_time: None,
            put_at_ms: None,
            members_due_ms: now.boot_ms,
            view_due_ms: now.boot_ms,
            problems: BTreeMap::new(),
            ended: None,
            home,
            folder,
            settings,
            host,
            here,
            teller,
            courier,
            clock,
            now,
            members,
            numbers,
            done,
            serves,
            box_created,
            view,
        };
        bridge.take_up_open_requests()?;
        Ok(bridge)
    }

    /// What was on its way before this bridge started.
    fn take_up_open_requests(&mut self) -> Result<(), CliError> {
        for name in self.folder.names("out")? {
            let Some(id) = name.strip_suffix(".json").and_then(|stem| stem.parse::<FleetId>().ok()) else { continue };
            let Some(out) = out::load(&self.folder, &id)? else { continue };
            // The answer may have been written just before the last bridge ended.
            if self.folder.read("results", &name)?.is_some() {
                out::forget(&self.folder, &id)?;
                continue;
            }
            self.asking.take(id, out.taken(&self.now), self.now.boot_ms);
        }
        Ok(())
    }

    /// Whether this bridge serves as its host, and for so much longer.
    pub(super) fn has_lease(&self, more_ms: u64) -> bool {
        self.lease.is_valid_for(more_ms, self.now.boot_ms)
    }

    /// Takes one event, and then does all that is due.
    pub(super) fn take(&mut self, event: BridgeEvent) {
        self.now = self.clock.now();
        match event {
            BridgeEvent::Heard(heard) => self.heard(&heard),
            BridgeEvent::Arrived(letter) => self.arrived(letter),
            BridgeEvent::Changed(name, bytes) => self.changed(&name, &bytes),
            BridgeEvent::Done(done) => self.settled(done),
            BridgeEvent::Look => self.look(),
        }
        self.do_what_is_due();
    }

    fn heard(&mut self, heard: &Heard) {
        match heard {
            Heard::Connected => {
                tracing::info!(server = self.courier.server(), "connected");
                self.view.connected_since = Some(self.now.rfc3339());
                self.problem("login", None);
                self.server_time = None;
                self.ask_for_members();
                self.ask_for_box();
            }
            Heard::Disconnected => {
                tracing::warn!("the connection to the server is gone; tasuki-fleet tries again");
                self.view.connected_since = None;
            }
            Heard::LoginRefused => {
                let what =
                    "The server refuses this host's login: the host was expelled, or its ticket is for another server.";
                self.problem("login", Some(what.to_owned()));
            }
            Heard::NotAllowed(what) => {
                tracing::warn!(what, "the server does not allow it");
            }
        }
        self.view_due_ms = self.now.boot_ms;
    }

    /// Notes what is wrong with something, for `bridge.json` and doctor; none if nothing is any more.
    pub(super) fn problem(&mut self, about: &'static str, what: Option<String>) {
        if self.problems.get(about) == what.as_ref() {
            return;
        }
        match what {
            Some(what) => {
                tracing::warn!("{what}");
                self.problems.insert(about, what);
            }
            None => drop(self.problems.remove(about)),
        }
        self.view_due_ms = self.now.boot_ms;
    }

    fn settled(&mut self, done: Done) {
        match done {
            Done::Published { id, message, outcome } => self.published(&id, message, outcome),
            Done::Replied { rid, outcome } => self.replied(&rid, outcome),
            Done::Looked { standing, is_clock: true } => self.clock_looked(standing),
            Done::Looked { standing, is_clock: false } => self.own_name_looked(standing),
            Done::Put { n, outcome, asked_ms } => self.roster_put(n, outcome, asked_ms),
            Done::MemberList(standing) => self.members_read(standing),
            Done::BoxCreated(created) => self.box_looked(created),
            Done::Roster { host, standing } => self.roster_read(&host, standing),
        }
    }

    /// Looks at all folders: requests that were dropped, answers of the sidecar, settings, whether somebody looks.
    fn look(&mut self) {
        self.read_settings();
        self.take_requests();
        if self.roster.refresh(&self.home, &self.settings.show.hide, &self.now) {
            self.lease.changed(self.now.boot_ms);
        }
    }

    fn read_settings(&mut self) {
        match FleetSettings::load(&self.folder) {
            Ok(settings) => {
                self.settings = settings;
                self.problem("settings", None);
            }
            // The last settings that could be read still count.
            Err(error) => self.problem("settings", Some(error.message)),
        }
    }

    fn do_what_is_due(&mut self) {
        self.keep_lease();
        let has_lease = self.has_lease(0);
        self.serves.send_if_modified(|serves| std::mem::replace(serves, has_lease) != has_lease);
        self.publish_due();
        if !self.waiting.is_empty() {
            self.judge_waiting();
        }
        self.serve_due();
        self.tend_directory();
        if self.now.boot_ms >= self.members_due_ms && self.view.connected_since.is_some() {
            self.ask_for_members();
        }
        self.write_view();
    }

    /// How long the bridge may wait for the next event, in milliseconds.
    pub(super) fn wait_ms(&self) -> u64 {
        let asking = self.asking.wake_at_ms().filter(|_| self.has_lease(0) && self.in_flight < asks::AT_ONCE);
        let due = [self.lease.wake_at_ms(), asking, self.serve_wake_ms()];
        let due = due.into_iter().flatten().min().unwrap_or(u64::MAX).saturating_sub(self.now.boot_ms);
        due.clamp(1, TICK_MS)
    }

    fn ask_for_members(&mut self) {
        self.members_due_ms = self.now.boot_ms.saturating_add(MEMBERS_EVERY_MS);
        let (courier, done) = (self.courier.clone(), self.done.clone());
        tokio::spawn(async move {
            let standing = courier.standing(&crate::fleet::Topic::Fleet).await;
            let _ = done.send(Done::MemberList(standing)).await;
        });
    }

    /// Reads the list of members anew, soon: a letter is from a host that is not in it.
    pub(super) fn want_members(&mut self) {
        self.members_due_ms = self.now.boot_ms;
    }

    fn ask_for_box(&self) {
        let (courier, done) = (self.courier.clone(), self.done.clone());
        tokio::spawn(async move {
            let created = courier.box_created().await;
            let _ = done.send(Done::BoxCreated(created)).await;
        });
    }

    /// A stream of letters that was made at another time has lost what the former held.
    fn box_looked(&mut self, created: Result<String, CourierError>) {
        match created {
            Ok(created) => {
                self.problem("box", None);
                if self.box_created.as_ref().is_some_and(|known| *known != created) {
                    tracing::warn!(
                        "the stream of letters is another one than before; open requests are published again"
                    );
                    self.asking.stream_replaced(self.now.boot_ms);
                }
                if self.box_created.as_ref() != Some(&created) {
                    self.box_created = Some(created);
                    self.save_seen();
                }
            }
            Err(CourierError::Refused(why)) => {
                let what =
                    format!("The server has no stream of letters for this fleet ({why}); run: tasuki fleet setup");
                self.problem("box", Some(what));
            }
            Err(_) => {}
        }
    }

    /// Keeps what must be known after a restart: the highest numbers of rosters, and which stream of letters it was.
    pub(super) fn save_seen(&self) {
        let seen = super::run::SeenFile {
            last_n: self.lease.last_n(),
            numbers: self.numbers.clone(),
            box_created: self.box_created.clone(),
        };
        let bytes = serde_json::to_vec(&seen).expect("a plain value");
        if let Err(error) = self.folder.write("", super::run::SEEN, &bytes, Grade::Fast) {
            tracing::warn!("{error}");
        }
    }

    pub(super) fn note(&mut self, line: AuditLine<'_>, bytes: &[u8]) {
        self.audit.note(line, bytes, &self.now.rfc3339());
    }

    /// `bridge.json`, when it has changed or is due.
    fn write_view(&mut self) {
        let lease = if self.has_lease(0) {
            LeaseWord::Held
        } else if self.view.connected_since.is_some() {
            LeaseWord::Waiting
        } else {
            LeaseWord::None
        };
        let server = self.courier.server();
        let (hosts_seen_at, problem) = (self.directory.read_at(), self.problems.values().next().cloned());
        let waiting = self.asking.open() as u64;
        let is_same = self.view.lease == lease && self.view.server == server && self.view.waiting == waiting;
        if is_same && self.view.hosts_seen_at == hosts_seen_at && self.now.boot_ms < self.view_due_ms {
            return;
        }
        self.view_due_ms = self.now.boot_ms.saturating_add(HEARTBEAT_MS);
        let heartbeat = self.now.rfc3339();
        let lease = lease.into();
        self.view = BridgeView { heartbeat, lease, server, waiting, hosts_seen_at, problem, ..self.view.clone() };
        if let Err(error) = self.folder.write("", "bridge.json", contract::text(&self.view).as_bytes(), Grade::Fast) {
            tracing::warn!("{error}");
        }
    }

    /// A digest of a roster as it is put.
    pub(super) fn digest(bytes: &[u8]) -> Digest {
        use sha2::Digest as _;
        sha2::Sha256::digest(bytes).into()
    }
}
