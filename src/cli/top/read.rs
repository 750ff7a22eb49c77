//! Reads the model from the files: five folders and the sidecar's own view.

use super::choice::Row;
use super::document;
use super::fleet_read::FleetReader;
use super::folder::{FolderKind, WatchedFolder};
use super::model::{AgentRow, FailureRow, HandoffRow, Model, SidecarStatus, WorkRow};
use super::plain::{aligned, plain};
use crate::cli::client::{self, Pulse, SidecarPresence};
use crate::cli::error::CliError;
use crate::cli::view::{ViewFile, said};
use crate::cli::{agents, documents, errors, go_to, handoffs, names, view, work};
use crate::config::Home;
use crate::contract::{AgentView, ErrorFile, HandoffView, NeedView, WorkBrief, WorkView};
use crate::core::needs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MOST_LINES: usize = 2_000;
const MOST_AGENTS: usize = 2_000;
const MOST_HANDOFFS: usize = 500;
const MOST_WORK: usize = 1_000;

pub(super) struct Reader<'a> {
    home: &'a Home,
    pulse: Pulse<'a>,
    sidecar: SidecarStatus,
    /// What the sidecar can't do at present.
    need: Option<NeedView>,
    agents: WatchedFolder<AgentRow>,
    handoffs: WatchedFolder<HandoffRow>,
    failures: WatchedFolder<FailureRow>,
    work: WatchedFolder<WorkRow>,
    /// The other hosts, if they are shown.
    fleet: Option<FleetReader<'a>>,
    problem: Option<String>,
}

impl<'a> Reader<'a> {
    /// A reader that has read nothing yet.
    pub(super) fn new(home: &'a Home, fleet: Option<FleetReader<'a>>) -> Self {
        let agent = |path: &Path| Ok(view::read(path)?.and_then(|seen: ViewFile<AgentView>| AgentRow::read(&seen)));
        let handoff =
            |path: &Path| Ok(view::read(path)?.and_then(|seen: ViewFile<HandoffView>| HandoffRow::read(&seen)));
        let failure = |path: &Path| Ok(view::read(path)?.and_then(|seen: ViewFile<ErrorFile>| FailureRow::read(&seen)));
        let item = |path: &Path| Ok(view::read(path)?.and_then(|seen: ViewFile<WorkBrief>| WorkRow::read(&seen)));
        let agents = FolderKind { read: agent, lives: |agent| agent.living, names: view::stems, most: MOST_AGENTS };
        let handoffs =
            FolderKind { read: handoff, lives: HandoffRow::is_running, names: view::stems, most: MOST_HANDOFFS };
        let failures = FolderKind { read: failure, lives: |_| false, names: view::stems, most: needs::MOST_FAILURES };
        let open = |folder: &Path| work::read::ids_in(&folder.join("open"));
        let work = FolderKind { read: item, lives: |_| true, names: open, most: MOST_WORK };
        Reader {
            home,
            pulse: Pulse::new(home),
            sidecar: SidecarStatus::default(),
            need: None,
            agents: WatchedFolder::new(home.agent_views(), &[], agents),
            handoffs: WatchedFolder::new(home.handoff_views(), &[], handoffs),
            failures: WatchedFolder::new(home.errors(), &[], failures),
            work: WatchedFolder::new(home.work_views(), &[home.open_work()], work),
            fleet,
            problem: None,
        }
    }

    /// The folders to watch for changes.
    pub(super) fn folders(home: &Home) -> Vec<PathBuf> {
        let own =
            [home.view(), home.agent_views(), home.handoff_views(), home.errors(), home.work_views(), home.open_work()];
        own.into_iter().chain([FleetReader::folder(home)]).collect()
    }

    /// Reads changed files; `None` if nothing has changed.
    pub(super) fn refresh(&mut self) -> Option<Model> {
        let (sidecar, need) = self.read_sidecar_status();
        let hosts = self.fleet.as_mut().map_or(Ok(false), FleetReader::refresh);
        let (agents, failures) = (self.agents.refresh(), self.failures.refresh());
        // What waits longest may be in an old handoff.
        self.handoffs.want(self.named().into_iter().map(str::to_owned).collect());
        let seen = [agents, failures, self.handoffs.refresh(), self.work.refresh(), hosts];
        let problem = seen.iter().find_map(|seen| seen.as_ref().err().map(|error| plain(&error.message)));
        let changed = seen.iter().any(|seen| matches!(seen, Ok(true)));
        if !changed && sidecar == self.sidecar && need == self.need && problem == self.problem {
            return None;
        }
        (self.sidecar, self.need, self.problem) = (sidecar, need, problem);
        Some(self.model())
    }

    fn read_sidecar_status(&mut self) -> (SidecarStatus, Option<NeedView>) {
        let seen = self.pulse.check();
        let file = view::sidecar(self.home).ok().flatten();
        let problem = file.as_ref().and_then(|file| said(file.problem.as_deref()));
        let (pid, heartbeat_ms, is_alive) = match seen {
            SidecarPresence::Alive { pid, heartbeat_ms } => (Some(pid), Some(heartbeat_ms), true),
            SidecarPresence::Stale { pid, heartbeat_ms, .. } => (Some(pid), Some(heartbeat_ms), false),
            SidecarPresence::None => (None, None, false),
        };
        let missing = || client::no_sidecar(self.home, &seen).hint;
        let status = SidecarStatus {
            pid,
            is_alive,
            // While the heartbeat is fresh, its exact time is not shown, and must not count as a change.
            heartbeat_ms: heartbeat_ms.filter(|_| !is_alive),
            tmux: file.as_ref().and_then(|file| Some(u64::from(file.tmux.as_ref()?.pid))),
            problem: if is_alive { problem.map(plain) } else { missing().as_deref().map(plain) },
        };
        (status, file.filter(|_| is_alive).and_then(|file| needs::sidecar(&file)))
    }

    fn model(&self) -> Model {
        let unread = [
            first(self.agents.unread()),
            first(self.handoffs.unread()),
            first(self.failures.unread()),
            first(self.work.unread()),
        ];
        let unread =
            unread.into_iter().flatten().map(|(count, why)| format!("{count} files could not be read: {}", plain(why)));
        let counts = [
            (self.agents.left_out, "older agents"),
            (self.handoffs.left_out, "older handoffs"),
            (self.failures.left_out, "older errors"),
            (self.work.left_out, "work items"),
        ];
        let left_out = counts.iter().filter(|(count, _)| *count > 0);
        let left_out = left_out.map(|(count, what)| format!("{count} {what} are not shown"));
        let user = names::variable("HOME").unwrap_or_default();
        let mut model = Model::new(&self.home.root().display().to_string(), &user, self.sidecar.clone());
        model.agents = self.agents.rows().cloned().collect();
        model.handoffs = self.handoffs.rows().cloned().collect();
        model.failures = self.failures.rows().cloned().collect();
        model.work = self.work.rows().cloned().collect();
        model.of_tasuki =
            self.need.iter().cloned().chain(self.lacks()).chain(needs::left_out(self.failures.left_out)).collect();
        model.left_out = self.problem.iter().cloned().chain(unread).chain(left_out).collect();
        if let Some(fleet) = &self.fleet {
            fleet.add_to(&mut model);
        }
        let mut model = model.arranged();
        for need in &mut model.needs {
            need.command = go_to::fit(self.home, &need.command);
        }
        model
    }

    /// The entry about files that can't be read, if some are of those from which the list of needs is made. Not every
    /// handoff is: only those that an agent or an error names.
    fn lacks(&self) -> Option<NeedView> {
        let named = self.named();
        let handoffs = self.handoffs.unread().filter(|(name, _)| named.contains(name));
        let all = self.agents.unread().chain(self.failures.unread()).chain(handoffs).chain(self.work.unread());
        first(all).map(|(count, why)| needs::unread(count, why))
    }

    /// The handoffs that an agent or an error names.
    fn named(&self) -> BTreeSet<&str> {
        let of_agents = self.agents.rows().filter_map(|agent| agent.handoff.as_deref());
        let of_failures = self.failures.rows().filter_map(|failure| failure.handoff.as_deref());
        of_agents.chain(of_failures).collect()
    }

    /// Reads the file of a row.
    fn lines(&self, row: &Row, path: &Path) -> Result<Option<Vec<String>>, CliError> {
        Ok(match row {
            Row::Agent(_) => view::read(path)?.map(|seen: ViewFile<AgentView>| agents::lines(&seen)),
            Row::Handoff(_) => view::read(path)?.map(|seen: ViewFile<HandoffView>| handoffs::lines(&seen)),
            Row::Failure(_) => view::read(path)?.map(|seen: ViewFile<ErrorFile>| errors::lines(self.home, &seen)),
            Row::Work(_) => view::read(path)?.map(|seen: ViewFile<WorkView>| work::show::lines(&seen)),
            Row::Document(_) => view::read(path)?
                .map(|seen: ViewFile<HandoffView>| document::lines(&documents::whole(self.home, &seen))),
        })
    }

    /// The details of a row, in lines as the commands print them.
    pub(super) fn details(&self, row: &Row) -> Vec<String> {
        let (folder, id): (PathBuf, &str) = match row {
            Row::Agent(id) => (self.home.agent_views(), id),
            Row::Handoff(id) | Row::Document(id) => (self.home.handoff_views(), id),
            Row::Failure(id) => (self.home.errors(), id),
            Row::Work(id) => (self.home.work_views(), id),
        };
        let of_other_host = || self.fleet.as_ref().and_then(|fleet| fleet.lines(row));
        let lines = match self.lines(row, &folder.join(format!("{id}.json"))).map(|own| own.or_else(of_other_host)) {
            Ok(Some(lines)) => lines,
            Ok(None) => vec!["This entry no longer exists.".to_owned()],
            Err(CliError { message, .. }) => vec![message],
        };
        let most = if matches!(row, Row::Document(_)) { document::MOST_LINES } else { MOST_LINES };
        let lines = lines.iter().flat_map(|text| text.lines()).take(most);
        lines.map(aligned).collect()
    }
}

/// How many files can't be read, and why the first of them can't.
fn first<'a>(mut unread: impl Iterator<Item = (&'a str, &'a str)>) -> Option<(usize, &'a str)> {
    let (_, why) = unread.next()?;
    Some((1 + unread.count(), why))
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
