//! Reads the rosters of all hosts while somebody looks at them: commands touch `fleet/looked`, and the bridge then
//! keeps `fleet/hosts` up to date for a while.

use super::directory::{KnownHost, ReadRoster};
use super::state::{Bridge, Done};
use crate::contract::fleet::{HOST_STALE_MS, HostView};
use crate::core::host::HostName;
use crate::core::time::rfc3339;
use crate::fleet::nats::{CourierError, StoredRoster};
use crate::fleet::roster::Seen;
use crate::fleet::{Roster, Topic};

/// For how long the rosters are read after `fleet/looked` was touched, in milliseconds.
const LOOKED_FOR_MS: i64 = 60_000;
/// How often all rosters are read again while somebody looks, in milliseconds: the server's report of a change may be
/// lost.
const ALL_EVERY_MS: u64 = 60_000;
/// How many rosters are asked for at once.
const AT_ONCE: usize = 64;
/// How long reading all rosters may take, in milliseconds. After that it counts as complete, and begins again when it
/// is due.
const READ_WITHIN_MS: u64 = 20_000;
/// While nothing else in a host's file changes, its `seen_at` is renewed only this often, in milliseconds.
const WRITTEN_FOR_MS: u64 = 5_000;

impl Bridge {
    /// Reads the rosters while somebody looks, and notes which hosts are away.
    pub(super) fn tend_directory(&mut self) {
        let touched_ms = self.folder.changed_ms("", "looked");
        let is_new = touched_ms.is_some() && touched_ms != self.directory.looked_ms;
        self.directory.looked_ms = touched_ms;
        let age_ms = touched_ms.map(|at| self.now.wall_ms.saturating_sub(at).saturating_abs());
        let is_looked = age_ms.is_some_and(|age| age <= LOOKED_FOR_MS);
        self.directory.wants_changes.send_if_modified(|wants| std::mem::replace(wants, is_looked) != is_looked);
        if !is_looked {
            return;
        }
        let is_due = is_new || self.now.boot_ms >= self.directory.all_due_ms;
        let is_reading = self.directory.reading_for.is_some();
        let is_late = is_reading && self.now.boot_ms.saturating_sub(self.directory.asked_ms) >= READ_WITHIN_MS;
        if is_late {
            self.reading_complete();
        }
        if is_due && self.directory.reading_for.is_none() {
            self.read_all();
        }
        self.ask_for_rosters();
        self.tell_who_is_away();
    }

    fn read_all(&mut self) {
        let members = self.members.list();
        self.directory.hosts.retain(|host, _| members.find(host).is_some());
        for name in self.folder.names("hosts").unwrap_or_default() {
            let host = name.strip_suffix(".json").and_then(|stem| stem.parse().ok());
            if host.is_none_or(|host| members.find(&host).is_none()) {
                let _ = self.folder.remove("hosts", &name);
            }
        }
        self.directory.to_ask = members.members.iter().map(|member| member.name.clone()).collect();
        self.directory.asked = 0;
        self.directory.asked_ms = self.now.boot_ms;
        self.directory.all_due_ms = self.now.boot_ms.saturating_add(ALL_EVERY_MS);
        self.directory.reading_for = Some(self.now.rfc3339());
        if self.directory.to_ask.is_empty() {
            self.reading_complete();
        }
    }

    fn ask_for_rosters(&mut self) {
        while self.directory.asked < AT_ONCE {
            let Some(host) = self.directory.to_ask.pop() else { return };
            self.directory.asked += 1;
            self.beside(|courier| async move {
                let standing = courier.standing(&Topic::Host(&host)).await;
                Done::Roster { host, standing }
            });
        }
    }

    fn reading_complete(&mut self) {
        self.directory.read_at = self.directory.reading_for.take().or(self.directory.read_at.take());
        self.directory.to_ask.clear();
        self.directory.asked = 0;
    }

    /// The server has answered what stands at the name of a host.
    pub(super) fn roster_read(&mut self, host: &HostName, standing: Result<Option<StoredRoster>, CourierError>) {
        self.directory.asked = self.directory.asked.saturating_sub(1);
        match standing {
            Ok(Some(standing)) => self.see(host, &standing.bytes, Some(standing.stored_ms)),
            Ok(None) => self.see_nothing(host),
            Err(_) => {}
        }
        if self.directory.asked == 0 && self.directory.to_ask.is_empty() && self.directory.reading_for.is_some() {
            self.tell_who_is_away();
            self.reading_complete();
        }
    }

    /// The server reports that a roster has changed, but not when. A bridge that has not put a roster of its own yet,
    /// as after a reboot, does not know the server's clock: it asks for the roster, whose answer says when it was
    /// stored.
    pub(super) fn roster_heard(&mut self, host: &HostName, bytes: &[u8]) {
        if let Some(stored_ms) = self.server_time.server_ms(self.now.boot_ms) {
            self.see(host, bytes, Some(stored_ms));
            self.tell_who_is_away();
        } else if !self.directory.to_ask.contains(host) {
            self.directory.to_ask.push(host.clone());
        }
    }

    fn see(&mut self, host: &HostName, bytes: &[u8], stored_ms: Option<i64>) {
        let read = ReadRoster { digest: Bridge::digest(bytes), list_version: self.members.list().version };
        if self.directory.hosts.get(host).is_some_and(|known| known.read == Some(read)) {
            return self.see_nothing(host);
        }
        let seen = self.numbers.read(bytes, host, self.members.list());
        let before = self.known(host);
        let view = match seen {
            Seen::Roster(roster) => view_of(*roster, stored_ms),
            Seen::NotAuthentic => HostView { authentic: false, ..before.view },
        };
        let told_ms = if view.authentic { stored_ms } else { before.told_ms };
        self.seen(host, KnownHost { view, told_ms, read: Some(read), written_ms: None });
    }

    /// The host's roster is missing, or the same as before.
    fn see_nothing(&mut self, host: &HostName) {
        let known = self.known(host);
        self.seen(host, known);
    }

    /// Takes out what is known of a host. Of a host that has told nothing yet, only name and home are known, from the
    /// list of members.
    fn known(&mut self, host: &HostName) -> KnownHost {
        if let Some(known) = self.directory.hosts.remove(host) {
            return known;
        }
        let home_id = self.members.list().find(host).map(|member| member.home_id.to_string()).unwrap_or_default();
        let view = HostView { v: 1, host: host.to_string(), home_id, authentic: true, ..HostView::default() };
        KnownHost { view, told_ms: None, read: None, written_ms: None }
    }

    fn seen(&mut self, host: &HostName, mut known: KnownHost) {
        let away_since = self.away_since(&known);
        let is_fresh = known.written_ms.is_some_and(|at| self.now.boot_ms.saturating_sub(at) < WRITTEN_FOR_MS);
        let is_written = is_fresh && away_since == known.view.away_since;
        known.view.seen_at = self.now.rfc3339();
        known.view.away_since = away_since;
        known.written_ms = if is_written { known.written_ms } else { Some(self.now.boot_ms) };
        self.directory.hosts.insert(host.clone(), known);
        if !is_written {
            self.directory.write(host);
        }
    }

    /// Since when a host is away, by this host's clock; none while it is live, or while the server's clock is not
    /// known. How old its roster is, is counted by the server's clock.
    fn away_since(&self, known: &KnownHost) -> Option<String> {
        let Some(told_ms) = known.told_ms else {
            return Some(known.view.away_since.clone().unwrap_or(self.now.rfc3339()));
        };
        let age_ms = self.server_time.server_ms(self.now.boot_ms)?.saturating_sub(told_ms);
        let since = || rfc3339(self.now.wall_ms.saturating_sub(age_ms));
        (age_ms > HOST_STALE_MS).then(|| known.view.away_since.clone().unwrap_or_else(since))
    }

    fn tell_who_is_away(&mut self) {
        let changed = |(host, known): (&HostName, &KnownHost)| {
            let away_since = self.away_since(known);
            (known.view.away_since != away_since).then(|| (host.clone(), away_since))
        };
        let changed: Vec<(HostName, Option<String>)> = self.directory.hosts.iter().filter_map(changed).collect();
        for (host, away_since) in changed {
            if let Some(known) = self.directory.hosts.get_mut(&host) {
                known.view.away_since = away_since;
            }
            self.directory.write(&host);
        }
    }
}

fn view_of(roster: Roster, stored_ms: Option<i64>) -> HostView {
    HostView {
        v: 1,
        host: roster.host.to_string(),
        home_id: roster.home_id.to_string(),
        instance: roster.instance.to_string(),
        n: roster.n,
        machine: roster.machine,
        boot: roster.boot,
        version: roster.version,
        journal_seq: roster.journal_seq,
        started_at: roster.started_at,
        sidecar: roster.sidecar,
        agents: roster.agents,
        handoffs: roster.handoffs,
        errors: roster.errors,
        personas: roster.personas,
        journal: roster.journal,
        more: roster.more,
        told_at: stored_ms.map(rfc3339).unwrap_or_default(),
        seen_at: String::new(),
        away_since: None,
        authentic: true,
    }
}
