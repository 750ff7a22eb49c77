//! Keeps this host's name: puts the roster at the name, which is also the lease, and learns the list of members, which
//! says whether the name is still this home's.

use super::audit::AuditLine;
use super::members_file;
use super::roster::journal_seq_before;
use super::silence::ServerMatter;
use super::state::{Bridge, Done};
use crate::contract::bridge::BridgeConcern;
use crate::fleet::lease::{LeaseAct, OursSeen, RosterStanding};
use crate::fleet::nats::{CourierError, PutOutcome, StoredRoster};
use crate::fleet::{Learnt, Member, MemberList, Roster, Topic};

/// How often the server's clock is learned again, in milliseconds.
const CLOCK_FOR_MS: u64 = 60_000;

impl Bridge {
    /// Does what the lease asks for.
    pub(super) fn keep_lease(&mut self) {
        // A home that is not a member any more must not overwrite the roster of the home that has its name now.
        while let Some(act) = self.is_member.then(|| self.lease.poll(self.now.boot_ms)).flatten() {
            match act {
                LeaseAct::Look => self.ask_for_own_name(false),
                LeaseAct::Put { n, expected, serves } => self.put_roster(n, expected, serves),
                LeaseAct::NoteScribble => {
                    let host = self.here.host.to_string();
                    let line = AuditLine {
                        dir: "in",
                        host: &host,
                        id: "",
                        kind: "roster",
                        status: "not authentic: written over",
                    };
                    self.note(line, b"");
                    tracing::warn!("somebody else has written to this host's name at the server; it is written over");
                }
                LeaseAct::End(problem) => {
                    self.ended = Some(problem);
                    return;
                }
            }
        }
    }

    fn ask_for_own_name(&self, is_clock: bool) {
        let host = self.here.host.clone();
        self.beside(|courier| async move {
            let standing = courier.standing(&Topic::Host(&host)).await;
            Done::Looked { standing, is_clock }
        });
    }

    fn put_roster(&mut self, n: u64, expected: u64, serves: bool) {
        self.save_seen();
        let mut roster = self.roster.roster(self.teller.clone(), n, &self.home);
        roster.serves = serves;
        let bytes = roster.sign(&self.keys, &self.here.fleet);
        self.lease.sent(n, Bridge::digest(&bytes));
        let (host, asked_ms) = (self.here.host.clone(), self.now.boot_ms);
        self.beside(move |courier| async move {
            let outcome = courier.put(&Topic::Host(&host), bytes, expected).await;
            Done::Put { n, outcome, asked_ms }
        });
    }

    pub(super) fn roster_put(&mut self, n: u64, outcome: PutOutcome, asked_ms: u64) {
        let now_ms = self.now.boot_ms;
        if outcome != PutOutcome::Unreachable {
            self.silence.answered(ServerMatter::Rosters);
        }
        match outcome {
            PutOutcome::Stored(sequence) => {
                self.problem(BridgeConcern::Storage, None);
                self.lease.stored(n, sequence, now_ms);
                self.put = Some((sequence, asked_ms, now_ms));
                if self.clock_looked_ms.is_none_or(|at| now_ms.saturating_sub(at) >= CLOCK_FOR_MS) {
                    self.ask_for_own_name(true);
                }
                if self.host.was_moved && self.has_lease(0) {
                    self.host.was_moved = false;
                    self.host.save(&self.folder).unwrap_or_else(|error| tracing::warn!("{error}"));
                }
            }
            PutOutcome::Other => self.ask_for_own_name(false),
            PutOutcome::Refused(why) => {
                let what = format!(
                    "The server does not store what this host says of itself ({why}), so this host can't serve; tasuki-fleet \
                     tries again."
                );
                self.problem(BridgeConcern::Storage, Some(what));
                self.lease.failed(now_ms);
            }
            PutOutcome::Unreachable => {
                self.lease.failed(now_ms);
                if self.is_silent_about(ServerMatter::Rosters) {
                    let what = "The server lets this host log in, but does not confirm what it says of itself, so this host \
                                can't serve. The server's log may say why, such as a full disk.";
                    self.problem(BridgeConcern::Storage, Some(what.to_owned()));
                }
            }
        }
    }

    /// Learns the server's clock from the time at which it has stored this host's last roster.
    pub(super) fn clock_looked(&mut self, standing: Result<Option<StoredRoster>, CourierError>) {
        if let (Ok(Some(standing)), Some((sequence, asked_ms, answered_ms))) = (standing, self.put)
            && standing.sequence == sequence
        {
            self.server_time.learn(standing.stored_ms, asked_ms, answered_ms);
            self.clock_looked_ms = Some(self.now.boot_ms);
        }
    }

    pub(super) fn own_name_looked(&mut self, standing: Result<Option<StoredRoster>, CourierError>) {
        let now_ms = self.now.boot_ms;
        match standing {
            Ok(None) => self.lease.looked(&RosterStanding::Nothing, 0, now_ms),
            Ok(Some(standing)) => {
                // A power cut may have removed the journal's last lines, and the sidecar writes them again after the
                // bridge has started. Only lines from before the boot count here: new ones would hide that the home was
                // set back.
                let booted_ms = self.now.wall_ms.saturating_sub_unsigned(self.now.boot_ms);
                if let Some(seq) = journal_seq_before(&self.home, booted_ms) {
                    self.lease.journal_was_at(seq);
                }
                let seen = self.read_own(&standing.bytes);
                self.lease.looked(&seen, standing.sequence, now_ms);
            }
            Err(error) => {
                tracing::debug!(error = error.to_string(), "this host's name can't be looked up");
                self.lease.failed(now_ms);
            }
        }
    }

    fn read_own(&self, bytes: &[u8]) -> RosterStanding {
        let key = self.keys.user_key();
        let Ok(roster) = Roster::open(bytes, &key, &self.here.fleet, &self.here.host) else {
            return RosterStanding::NotAuthentic;
        };
        let Roster { machine, boot, instance, n, serves, journal_seq, started_at, .. } = roster;
        let digest = Bridge::digest(bytes);
        RosterStanding::Ours(Box::new(OursSeen { machine, boot, instance, n, serves, journal_seq, started_at, digest }))
    }

    /// The server has answered what it has as the list of members.
    pub(super) fn members_read(&mut self, standing: Result<Option<StoredRoster>, CourierError>) {
        match standing {
            Ok(Some(standing)) => {
                self.learn_members(&standing.bytes);
                self.is_list_read = true;
            }
            Ok(None) => {
                let what = "The server has no list of members for this fleet; run: tasuki fleet setup";
                self.problem(BridgeConcern::Members, Some(what.to_owned()));
            }
            Err(error) => {
                tracing::debug!(error = error.to_string(), "the list of members can't be read");
                self.want_members();
            }
        }
    }

    pub(super) fn learn_members(&mut self, bytes: &[u8]) {
        let list = match MemberList::open(bytes, &self.fleet_key, &self.here.fleet) {
            Ok(list) => list,
            Err(error) => {
                let what = format!("The list of members at the server is not believed: {error}.");
                return self.problem(BridgeConcern::Members, Some(what));
            }
        };
        if self.members.learn(list) == Learnt::Newer {
            let list = self.members.list();
            tracing::info!(version = list.version, members = list.members.len(), "the list of members has changed");
            members_file::save(&self.folder, bytes).unwrap_or_else(|error| tracing::warn!("{error}"));
            self.numbers.keep_only(self.members.list());
        }
        let own = self.members.list().find(&self.here.host);
        let is_own = |member: &Member| {
            member.home_id == self.here.home_id
                && member.user_key == self.keys.user_key()
                && member.box_key == self.keys.box_key()
        };
        let is_member = own.is_some_and(is_own);
        self.is_member = is_member;
        let what =
            "This host is not in the list of members: it was expelled, or another home was admitted under its name.";
        self.problem(BridgeConcern::Members, (!is_member).then(|| what.to_owned()));
    }

    /// The server reports a change of a roster or of the list of members. The report itself proves
    /// nothing: the bytes are verified as always.
    pub(super) fn changed(&mut self, name: &str, bytes: &[u8]) {
        if name == Topic::Fleet.as_str() {
            return self.learn_members(bytes);
        }
        let host = name.parse().ok().filter(|host| self.members.list().find(host).is_some());
        if let Some(host) = host {
            self.roster_heard(&host, bytes);
        }
    }
}
