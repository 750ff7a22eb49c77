//! What the bridge does about each event. It never waits for the server: each question to the server is a task of its
//! own, whose outcome arrives as a [`Done`].

use super::settings::FleetSettings;
use super::silence::ServerMatter;
use super::state::{Bridge, Done, PUBLISHED_AT_ONCE};
use super::sweep;
use super::told::ToldCounts;
use crate::contract;
use crate::contract::bridge::{BridgeConcern, BridgeProblem, BridgeView, LeaseWord};
use crate::files::Grade;
use crate::fleet::Topic;
use crate::fleet::nats::version::{SOUND_VERSIONS, is_sound};
use crate::fleet::nats::{ArrivedLetter, CourierError, Heard};
use std::time::SystemTime;

/// How often `bridge.json` is written when nothing changes, in milliseconds.
pub(super) const HEARTBEAT_MS: u64 = 15_000;
/// How often the bridge looks at its folders, even if no change was reported, in milliseconds.
pub(super) const TICK_MS: u64 = 5_000;
/// If the list of members is wanted soon, such as for a letter from an unknown host, it is read at most this often, in
/// milliseconds.
const MEMBERS_SOONEST_MS: u64 = 2_000;
/// After how long the server is asked for the stream of letters again, if there is none or the server has not answered,
/// in milliseconds. A server that has just started may not answer yet.
const BOX_AGAIN_MS: u64 = 2_000;
/// How often the list of members is read again, in milliseconds: the server's report of a change may be lost.
const MEMBERS_EVERY_MS: u64 = 60_000;

/// What the bridge reacts to.
#[derive(Debug)]
pub(super) enum BridgeEvent {
    /// The connection has changed, or the server refuses something.
    Heard(Heard),
    /// A letter has arrived.
    Arrived(ArrivedLetter),
    /// A roster or the list of members has changed: its name at the server, and its bytes.
    Changed(String, Vec<u8>),
    /// The server has answered.
    Done(Done),
    /// A request was dropped, the sidecar has answered, the settings have changed, or `looked` was touched.
    Files,
    /// The sidecar's views have changed.
    Views,
    /// It is time to look at everything.
    Look,
}

impl Bridge {
    /// Takes these events, then does everything that is due.
    pub(super) fn take(&mut self, events: impl IntoIterator<Item = BridgeEvent>) {
        self.now = self.clock.now();
        events.into_iter().for_each(|event| self.hear(event));
        self.do_what_is_due();
    }

    fn hear(&mut self, event: BridgeEvent) {
        match event {
            BridgeEvent::Heard(heard) => self.heard(&heard),
            BridgeEvent::Arrived(letter) => self.arrived(letter),
            BridgeEvent::Changed(name, bytes) => self.changed(&name, &bytes),
            BridgeEvent::Done(done) => self.settled(done),
            BridgeEvent::Files => self.look_at_files(),
            BridgeEvent::Views => self.look_at_views(),
            BridgeEvent::Look => {
                self.look_due_ms = self.now.boot_ms.saturating_add(TICK_MS);
                self.look_at_files();
                self.look_at_views();
            }
        }
    }

    fn heard(&mut self, heard: &Heard) {
        match heard {
            Heard::Connected => {
                tracing::info!(server = self.courier.server(), "connected");
                if let Some(version) = self.courier.version().filter(|version| is_sound(version) == Some(false)) {
                    tracing::warn!(version, "nats-server has known holes; replace it by {SOUND_VERSIONS}, or later");
                }
                self.view.connected_since = Some(self.now.rfc3339());
                self.problem(BridgeConcern::Login, None);
                self.problem(BridgeConcern::Server, None);
                self.clock_looked_ms = None;
                self.ask_for_members();
                self.ask_for_box();
            }
            Heard::Disconnected => {
                tracing::warn!("the connection to the server is gone; tasuki-fleet tries again");
                self.view.connected_since = None;
                self.silence.cut_off();
            }
            Heard::LoginRefused => {
                let what =
                    "The server refuses this host's login: the host was expelled, or its ticket is for another server.";
                self.problem(BridgeConcern::Login, Some(what.to_owned()));
            }
            Heard::Unreached(why) => {
                self.problem(
                    BridgeConcern::Server,
                    Some(format!(
                        "The server is not reached ({why}); tasuki-fleet tries again. `tasuki doctor` may say more."
                    )),
                );
            }
            Heard::NotAllowed(what) => {
                tracing::warn!(what, "the server does not allow it");
            }
        }
        self.view_due_ms = self.now.boot_ms;
    }

    fn settled(&mut self, done: Done) {
        match done {
            Done::Published { id, message, out, outcome } => self.published(&id, message, &out, &outcome),
            Done::Replied { rid, outcome } => self.replied(&rid, &outcome),
            Done::Looked { standing, is_clock: true } => self.clock_looked(standing),
            Done::Looked { standing, is_clock: false } => self.own_name_looked(standing),
            Done::Put { n, outcome, asked_ms } => self.roster_put(n, outcome, asked_ms),
            Done::MemberList(standing) => self.members_read(standing),
            Done::BoxCreated(created) => self.box_looked(created),
            Done::Roster { host, standing } => self.roster_read(&host, standing),
        }
    }

    /// Reads the settings and takes dropped requests. The sidecar's answers and `looked` are read after each event
    /// anyway.
    fn look_at_files(&mut self) {
        self.read_settings();
        self.take_requests();
    }

    /// Reads the sidecar's views. If they have changed, the roster is put soon.
    fn look_at_views(&mut self) {
        if self.roster.refresh(&self.home, &self.settings.show, &self.now) {
            self.lease.changed(self.now.boot_ms);
        }
    }

    fn read_settings(&mut self) {
        match FleetSettings::load(&self.folder) {
            Ok(settings) => {
                self.settings = settings;
                self.problem(BridgeConcern::Settings, None);
            }
            // The last valid settings still count.
            Err(error) => self.problem(BridgeConcern::Settings, Some(error.message)),
        }
    }

    fn do_what_is_due(&mut self) {
        self.now = self.clock.now();
        self.keep_lease();
        let has_lease = self.has_lease(0);
        self.serves.send_if_modified(|serves| std::mem::replace(serves, has_lease) != has_lease);
        self.publish_due();
        self.judge_waiting();
        self.serve_due();
        self.tend_directory();
        if self.now.boot_ms >= self.sweep_due_ms {
            self.sweep_due_ms = self.now.boot_ms.saturating_add(sweep::EVERY_MS);
            sweep::sweep(&self.folder, &self.home, SystemTime::now());
            self.told = ToldCounts::count(&self.folder).unwrap_or_else(|| std::mem::take(&mut self.told));
            self.kept.count(&self.folder);
            self.problem(BridgeConcern::Inbox, self.kept.problem());
        }
        if self.now.boot_ms >= self.members_due_ms && self.view.connected_since.is_some() {
            self.ask_for_members();
        }
        if self.box_due_ms.is_some_and(|at| self.now.boot_ms >= at) && self.view.connected_since.is_some() {
            self.ask_for_box();
        }
        self.write_view();
    }

    /// How long the bridge may wait for the next event, in milliseconds.
    pub(super) fn wait_ms(&self) -> u64 {
        let asking = self
            .asking
            .wake_at_ms()
            .map(|at| at.max(self.paused_until_ms))
            .filter(|_| self.has_lease(0) && self.in_flight < PUBLISHED_AT_ONCE);
        let serving = self.serve_wake_ms().filter(|_| self.has_lease(0));
        // A home that is not a member does not keep its lease.
        let lease = self.lease.wake_at_ms().filter(|_| self.is_member);
        let more = self.has_more_requests.then_some(self.now.boot_ms);
        let due = [lease, asking, serving, more, self.requests_due_ms].into_iter().flatten().min();
        let due = due.unwrap_or(u64::MAX).saturating_sub(self.now.boot_ms);
        due.clamp(1, TICK_MS)
    }

    /// Whether the last look at everything was so long ago that the next one comes before any other event.
    pub(super) fn is_look_due(&self) -> bool {
        self.clock.now().boot_ms >= self.look_due_ms
    }

    fn ask_for_members(&mut self) {
        self.members_due_ms = self.now.boot_ms.saturating_add(MEMBERS_EVERY_MS);
        self.members_asked_ms = Some(self.now.boot_ms);
        self.beside(|courier| async move { Done::MemberList(courier.standing(&Topic::Fleet).await) });
    }

    /// Has the list of members read soon, because a letter is from a host that is not in it, or because reading it
    /// failed.
    pub(super) fn want_members(&mut self) {
        let soonest = self.members_asked_ms.map_or(self.now.boot_ms, |at| at.saturating_add(MEMBERS_SOONEST_MS));
        self.members_due_ms = self.members_due_ms.min(soonest.max(self.now.boot_ms));
    }

    fn ask_for_box(&mut self) {
        self.box_due_ms = None;
        self.beside(|courier| async move { Done::BoxCreated(courier.box_created().await) });
    }

    /// The server has said when the stream of letters was made, or why not. If the time is another one than before, the
    /// stream is a new one, and the letters in the former one are lost.
    fn box_looked(&mut self, created: Result<String, CourierError>) {
        self.box_due_ms = created.is_err().then(|| self.now.boot_ms.saturating_add(BOX_AGAIN_MS));
        match created {
            Ok(created) => {
                self.silence.answered(ServerMatter::Streams);
                self.problem(BridgeConcern::Letters, None);
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
                self.silence.answered(ServerMatter::Streams);
                let what =
                    format!("The server has no stream of letters for this fleet ({why}); run: tasuki fleet setup");
                self.problem(BridgeConcern::Letters, Some(what));
            }
            Err(error) => self.box_is_silent(&error),
        }
    }

    /// The server has not answered about the stream of letters. If JetStream has not started there, the server lets
    /// every host log in and then answers nothing.
    fn box_is_silent(&mut self, error: &CourierError) {
        tracing::debug!(error = error.to_string(), "the stream of letters can't be looked at");
        if self.is_silent_about(ServerMatter::Streams) {
            let what = format!(
                "The server lets this host log in, but says nothing of the fleet's streams ({error}). Its log may say why; if \
                 it has no JetStream, start the server again."
            );
            self.problem(BridgeConcern::Letters, Some(what));
        }
    }

    /// Writes `bridge.json` if something in it has changed, or if it is due.
    fn write_view(&mut self) {
        let lease = if self.has_lease(0) {
            LeaseWord::Held
        } else if self.view.connected_since.is_some() {
            LeaseWord::Waiting
        } else {
            LeaseWord::None
        };
        let server = self.courier.server();
        let hosts_seen_at = self.directory.read_at();
        let waiting = self.asking.open() as u64;
        let is_same = self.view.lease == lease && self.view.server == server && self.view.waiting == waiting;
        if is_same && self.view.hosts_seen_at == hosts_seen_at && self.now.boot_ms < self.view_due_ms {
            return;
        }
        self.view_due_ms = self.now.boot_ms.saturating_add(HEARTBEAT_MS);
        let heartbeat = self.now.rfc3339();
        let lease = lease.into();
        self.view = BridgeView { heartbeat, lease, server, waiting, hosts_seen_at, ..self.view.clone() };
        self.view.have(self.problems.iter().map(|(about, message)| BridgeProblem::new(*about, message)).collect());
        if let Err(error) = self.folder.write("", "bridge.json", contract::text(&self.view).as_bytes(), Grade::Fast) {
            tracing::warn!("{error}");
        }
    }
}
