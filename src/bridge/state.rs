//! What the bridge of one host knows. What it does about each event is in `machine`, which calls `asks`, `serves`,
//! `name` and `looks`.

use super::answers;
use super::audit::{Audit, AuditLine};
use super::directory::Directory;
use super::dropped::IncompleteFiles;
use super::folder::FleetFolder;
use super::identity::{HostFile, Membership};
use super::kept::KeptRequests;
use super::out::{self, OutFile};
use super::roster::RosterSource;
use super::seen::{SEEN, SeenFile};
use super::serving::{Serving, WaitingLetter};
use super::settings::FleetSettings;
use super::silence::{ServerMatter, ServerSilence};
use super::told::ToldCounts;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::bridge::{BridgeConcern, BridgeView};
use crate::core::host::{FleetId, HostName};
use crate::core::id::RequestId;
use crate::core::time::Now;
use crate::files::Grade;
use crate::fleet::answering::Here;
use crate::fleet::asking::{Asking, Published};
use crate::fleet::lease::{Digest, Lease, LeaseProblem, Own};
use crate::fleet::nats::{CourierError, NatsCourier, PutOutcome, StoredRoster};
use crate::fleet::roster::{RosterNumbers, Teller};
use crate::fleet::{AccountKey, CourierTime, HostKeys, Members};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// The most requests that are being published at once: each holds its letter in memory.
pub(super) const PUBLISHED_AT_ONCE: usize = 16;

/// The outcome of something that the bridge has asked of the server.
#[derive(Debug)]
pub(super) enum Done {
    /// A letter with a request was published.
    Published { id: FleetId, message: u64, out: Box<OutFile>, outcome: Published },
    /// An answer was published.
    Replied { rid: RequestId, outcome: Published },
    /// The roster that stands at this host's own name. `is_clock`: it was read only for the server's time in it.
    Looked { standing: Result<Option<StoredRoster>, CourierError>, is_clock: bool },
    /// This host's roster was put. `n`: its number. `asked_ms`: when the put was sent.
    Put { n: u64, outcome: PutOutcome, asked_ms: u64 },
    /// The list of members.
    MemberList(Result<Option<StoredRoster>, CourierError>),
    /// When the stream of letters was made, as the server says.
    BoxCreated(Result<String, CourierError>),
    /// The roster that stands at the name of a host.
    Roster { host: HostName, standing: Result<Option<StoredRoster>, CourierError> },
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
    /// How many requests are being published.
    pub(super) in_flight: usize,
    pub(super) serving: BTreeMap<RequestId, Serving>,
    /// How many answers of this bridge are kept, by the host that asked.
    pub(super) told: ToldCounts,
    /// How much of the requests of each host is kept.
    pub(super) kept: KeptRequests,
    /// Letters that can't be judged yet.
    pub(super) waiting: Vec<WaitingLetter>,
    pub(super) server_time: CourierTime,
    /// The last roster that the server has confirmed: the server's number for it, when the put was sent, and when it
    /// was confirmed. As everywhere here, times in `…_ms` are milliseconds since the machine's boot.
    pub(super) put: Option<(u64, u64, u64)>,
    /// When the server's clock was last learned; none after a new connection.
    pub(super) clock_looked_ms: Option<u64>,
    pub(super) roster: RosterSource,
    pub(super) directory: Directory,
    pub(super) audit: Audit,
    /// Where outcomes of [`Bridge::beside`] are sent.
    pub(super) done: mpsc::Sender<Done>,
    /// Whether the bridge holds the lease: letters are fetched only while it does.
    pub(super) serves: watch::Sender<bool>,
    /// When the stream of letters was made, as the server last said.
    pub(super) box_created: Option<String>,
    /// When the server is asked for that again; none unless the last attempt failed.
    pub(super) box_due_ms: Option<u64>,
    /// Since when the server, though connected, answers nothing.
    pub(super) silence: ServerSilence,
    /// When the list of members is read next.
    pub(super) members_due_ms: u64,
    /// When everything is looked at again, at the latest: milliseconds of the boot clock.
    pub(super) look_due_ms: u64,
    /// When the folder is swept next.
    pub(super) sweep_due_ms: u64,
    /// Until when no request is published or given up, because an answer could not be written a moment ago.
    pub(super) paused_until_ms: u64,
    /// When the list of members was last asked for.
    pub(super) members_asked_ms: Option<u64>,
    /// The list of members was read from the server since this bridge started.
    pub(super) is_list_read: bool,
    /// Files are left in `requests/`, because only so many are taken at once.
    pub(super) has_more_requests: bool,
    /// Files in `requests/` that are being written.
    pub(super) incomplete: IncompleteFiles,
    /// When these files are looked at again.
    pub(super) requests_due_ms: Option<u64>,
    /// This host is in the list of members, as far as is known.
    pub(super) is_member: bool,
    /// What `bridge.json` says.
    pub(super) view: BridgeView,
    /// When `bridge.json` is written again even if nothing has changed.
    pub(super) view_due_ms: u64,
    /// What is wrong: at most one problem about each concern.
    pub(super) problems: BTreeMap<BridgeConcern, String>,
    /// Why the bridge must end, if it must.
    pub(super) ended: Option<LeaseProblem>,
}

/// What [`Bridge::new`] needs.
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
        let (teller, view) = (teller(&host, &own, &now), first_view(&host));
        let mut bridge = Bridge {
            roster: RosterSource::default(),
            directory: Directory::new(&folder),
            audit: Audit::open(&folder),
            lease: Lease::new(own, now.boot_ms),
            asking: Asking::new(random),
            keys,
            fleet_key: fleet.key,
            in_flight: 0,
            serving: BTreeMap::new(),
            // The first sweep counts these two, before the bridge has its lease and takes letters.
            told: ToldCounts::default(),
            kept: KeptRequests::default(),
            waiting: Vec::new(),
            server_time: CourierTime::default(),
            put: None,
            clock_looked_ms: None,
            members_due_ms: now.boot_ms,
            look_due_ms: now.boot_ms,
            sweep_due_ms: now.boot_ms,
            paused_until_ms: now.boot_ms,
            members_asked_ms: None,
            is_list_read: false,
            has_more_requests: false,
            incomplete: IncompleteFiles::default(),
            requests_due_ms: None,
            is_member: true,
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
            box_due_ms: None,
            silence: ServerSilence::default(),
            view,
        };
        bridge.take_up_open_requests()?;
        // The letters of these requests are not settled, so the server delivers them again. A request whose time is
        // over by then is not carried out.
        answers::take_back_all(&bridge.home, &bridge.folder);
        Ok(bridge)
    }

    /// Takes the requests that were on their way before this bridge started.
    fn take_up_open_requests(&mut self) -> Result<(), CliError> {
        let mut unreadable = 0_usize;
        for name in self.folder.names("out")? {
            let Some(id) = name.strip_suffix(".json").and_then(|stem| stem.parse::<FleetId>().ok()) else { continue };
            // One file that can't be read must not stop the requests to all hosts.
            if let Err(error) = self.take_up(id, &name) {
                tracing::warn!(name, "a request that was on its way can't be read: {error}");
                unreadable += 1;
            }
        }
        let what = format!("{unreadable} files in fleet/out or their answers can't be read: those requests stay open.");
        self.problem(BridgeConcern::Requests, (unreadable > 0).then_some(what));
        Ok(())
    }

    fn take_up(&mut self, id: FleetId, name: &str) -> Result<(), CliError> {
        let Some(out) = out::load(&self.folder, &id)? else { return Ok(()) };
        // The answer may have been written just before the last bridge ended.
        if self.folder.read("results", name)?.is_some() {
            return out::forget(&self.folder, &id);
        }
        self.asking.take(id, out.taken(&self.now), self.now.boot_ms);
        Ok(())
    }

    /// Whether this bridge may serve as its host now, and for at least `more_ms` longer.
    pub(super) fn has_lease(&self, more_ms: u64) -> bool {
        self.is_member && self.lease.is_valid_for(more_ms, self.now.boot_ms)
    }

    /// Notes a problem for `bridge.json`, which `tasuki doctor` reads too. None: there is no such problem any more.
    pub(super) fn problem(&mut self, about: BridgeConcern, what: Option<String>) {
        if self.problems.get(&about) == what.as_ref() {
            return;
        }
        match what {
            Some(what) => {
                tracing::warn!("{what}");
                self.problems.insert(about, what);
            }
            None => drop(self.problems.remove(&about)),
        }
        self.view_due_ms = self.now.boot_ms;
    }

    /// The server has left a question about this unanswered. Leaves the server if it is silent for too long. Returns
    /// whether the operator is to be told.
    pub(super) fn is_silent_about(&mut self, matter: ServerMatter) -> bool {
        if self.view.connected_since.is_none() {
            return false;
        }
        let unanswered = self.silence.continues(matter, self.now.boot_ms);
        if unanswered.is_left {
            tracing::warn!(?matter, "tasuki-fleet leaves the server, which is connected and does not answer");
            let courier = self.courier.clone();
            tokio::spawn(async move { courier.leave_server().await });
        }
        unanswered.is_told
    }

    /// Writes `seen.json`: the highest numbers of rosters, and when the stream of letters was made.
    pub(super) fn save_seen(&self) {
        let seen = SeenFile {
            last_n: self.lease.last_n(),
            stored_n: self.lease.stored_n(),
            numbers: self.numbers.clone(),
            box_created: self.box_created.clone(),
        };
        let bytes = serde_json::to_vec(&seen).expect("a plain value");
        if let Err(error) = self.folder.write("", SEEN, &bytes, Grade::Fast) {
            tracing::warn!("{error}");
        }
    }

    /// Asks the server for something without waiting for it. The outcome arrives as a [`Done`].
    pub(super) fn beside<W: Future<Output = Done> + Send + 'static>(&self, work: impl FnOnce(NatsCourier) -> W) {
        let (work, done) = (work(self.courier.clone()), self.done.clone());
        // Sending fails only when the bridge ends and nobody listens any more.
        tokio::spawn(async move {
            let _ = done.send(work.await).await;
        });
    }

    pub(super) fn note(&mut self, line: AuditLine<'_>, bytes: &[u8]) {
        self.audit.note(line, bytes, &self.now.rfc3339());
    }

    /// The digest of a roster's published bytes.
    pub(super) fn digest(bytes: &[u8]) -> Digest {
        use sha2::Digest as _;
        sha2::Sha256::digest(bytes).into()
    }
}

fn teller(host: &HostFile, own: &Own, now: &Now) -> Teller {
    Teller {
        host: host.name.clone(),
        home_id: host.home_id,
        instance: own.instance,
        machine: own.machine.clone(),
        boot: own.boot.clone(),
        started_at: now.rfc3339(),
    }
}

fn first_view(host: &HostFile) -> BridgeView {
    BridgeView {
        v: 1,
        host: host.name.to_string(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..BridgeView::default()
    }
}
