//! The line in tmux's `@tasuki_status`: a projection like the views, but without their guarantees. A task beside the
//! loop writes it, at most once a second and only when it has changed; a failed write does no harm.

use crate::contract::{self, AgentView, ErrorFile, HandoffView, NeedView, SidecarView, WorkBrief};
use crate::core::decision::Decision;
use crate::core::id::{AgentId, ErrorId, HandoffId, ItemId};
use crate::core::needs::{self, AgentNeeds, FailureNeed, HandoffNeeds};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::Handoff;
use crate::core::rows::item::{Item, Status};
use crate::core::settings::Settings;
use crate::core::state::State;
use crate::core::time::Now;
use crate::core::{status_line, view};
use crate::spool::{OutputFile, ProjectionFolder, Spool};
use crate::tmux::Tmux;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::watch;
use uuid::Uuid;

/// The pause between two changes of the line.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    line: String,
    /// Counts connections to tmux: after a reconnection the server may not have the line any more.
    life: u64,
}

/// Holds the line that tmux should show. Its writer ends when this is dropped.
pub(super) struct StatusLine {
    wanted: watch::Sender<Wanted>,
    /// `tmux.status` of the configuration.
    pub(super) enabled: bool,
    needs: WaitingList,
    /// How much waits for a person.
    count: usize,
}

/// What waits for a person. It is judged from the same views that commands read, and again whenever one of them
/// changes.
#[derive(Default)]
struct WaitingList {
    /// Live agents, agents that a failure is about, and agents of handoffs that have failed.
    agents: BTreeMap<AgentId, AgentNeeds>,
    /// Handoffs that need somebody, and handoffs in which something has failed.
    handoffs: BTreeMap<HandoffId, HandoffNeeds>,
    items: BTreeMap<ItemId, NeedView>,
    failures: BTreeMap<Uuid, FailureNeed>,
    /// That some error files are not read, because there are too many.
    left_out: Option<NeedView>,
    /// What this sidecar can't do at present.
    own: Option<NeedView>,
}

impl WaitingList {
    fn agent(&mut self, agent: &Agent, settings: &Settings) -> bool {
        put(&mut self.agents, agent.agent_id, Some(AgentNeeds::of(&view::agent(agent, settings))))
    }

    fn handoff(&mut self, handoff: &Handoff, settings: &Settings) -> bool {
        put(&mut self.handoffs, handoff.handoff_id, Some(HandoffNeeds::of(&view::handoff(handoff, settings))))
    }

    fn item(&mut self, item: &Item) -> bool {
        let brief = (item.status == Status::Escalated).then(|| WorkBrief::from(view::item(item)));
        put(&mut self.items, item.item_id, brief.and_then(|brief| needs::item(&brief)))
    }

    /// Reads the new failures. A failed listing changes nothing.
    fn read_failures(&mut self, spool: &Spool) {
        let Ok(ids) = spool.ids(ProjectionFolder::Errors) else { return };
        let ids: BTreeSet<Uuid> = ids.into_iter().collect();
        self.failures.retain(|id, _| ids.contains(id));
        self.left_out = needs::left_out(ids.len().saturating_sub(needs::MOST_FAILURES));
        for id in ids {
            if self.failures.len() >= needs::MOST_FAILURES {
                return;
            }
            if self.failures.contains_key(&id) {
                continue;
            }
            let Ok(Some(bytes)) = spool.get(&OutputFile::Error(ErrorId(id))) else { continue };
            let file: ErrorFile = contract::read(&bytes).ok().flatten().unwrap_or_default();
            self.failures.insert(id, FailureNeed::of(&file));
        }
    }

    /// Reads the views of agents that are history and that a failure is about, or whose handoff has failed. Forgets
    /// agents that matter no more.
    fn read_agents(&mut self, spool: &Spool) {
        let of_failures = self.failures.values().filter_map(|failure| failure.agent_id.as_deref());
        let of_handoffs = self.handoffs.values().flat_map(HandoffNeeds::agents);
        let failed: BTreeSet<AgentId> = of_failures.chain(of_handoffs).filter_map(|id| id.parse().ok()).collect();
        self.agents.retain(|id, needs| needs.is_living() || failed.contains(id));
        add_unknown(&mut self.agents, failed, |id| {
            let view: AgentView = view_in(spool, &OutputFile::Agent(id))?;
            (view.agent_id == id.to_string()).then(|| AgentNeeds::of(&view))
        });
    }

    /// Reads the views of handoffs that are history and in which something has failed. Forgets handoffs that matter no
    /// more.
    fn read_handoffs(&mut self, spool: &Spool) {
        let of_failure = |failure: &FailureNeed| failure.handoff_id.as_deref()?.parse().ok();
        let failed: BTreeSet<HandoffId> = self.failures.values().filter_map(of_failure).collect();
        self.handoffs.retain(|id, needs| !needs.is_empty() || failed.contains(id));
        add_unknown(&mut self.handoffs, failed, |id| {
            let view: HandoffView = view_in(spool, &OutputFile::Handoff(id))?;
            (view.handoff_id == id.to_string()).then(|| HandoffNeeds::of(&view))
        });
    }

    fn count(&self) -> usize {
        let (agents, handoffs) = (self.agents.values(), self.handoffs.values());
        let others = self.items.values().chain(&self.own).chain(&self.left_out);
        needs::list(agents, handoffs, others, self.failures.values()).len()
    }
}

/// Judges the ids that are not known yet, and adds the result.
fn add_unknown<K: Ord + Copy, V>(known: &mut BTreeMap<K, V>, ids: BTreeSet<K>, judge: impl Fn(K) -> Option<V>) {
    for id in ids {
        if !known.contains_key(&id)
            && let Some(judged) = judge(id)
        {
            known.insert(id, judged);
        }
    }
}

/// The contents of a view; none where it is missing or can't be read.
fn view_in<V: DeserializeOwned>(spool: &Spool, file: &OutputFile) -> Option<V> {
    contract::read(&spool.get(file).ok()??).ok()?
}

/// Keeps what was judged. Returns whether that changes anything.
fn put<K: Ord, V: PartialEq>(known: &mut BTreeMap<K, V>, id: K, judged: Option<V>) -> bool {
    match judged {
        None => known.remove(&id).is_some(),
        Some(judged) if known.get(&id) == Some(&judged) => false,
        Some(judged) => {
            known.insert(id, judged);
            true
        }
    }
}

impl StatusLine {
    pub(super) fn new(tmux: Tmux, enabled: bool) -> Self {
        let (wanted, receiver) = watch::channel(Wanted::default());
        tokio::spawn(keep(tmux, receiver));
        StatusLine { wanted, enabled, needs: WaitingList::default(), count: 0 }
    }

    pub(super) fn connected(&self) {
        if self.enabled {
            self.wanted.send_modify(|wanted| wanted.life += 1);
        }
    }

    /// Judges what the sidecar says of itself.
    pub(super) fn judge_own(&mut self, view: &SidecarView) {
        self.needs.own = needs::sidecar(view);
        self.count = self.needs.count();
    }

    /// Judges everything: at each tick, because files may have changed without a decision.
    pub(super) fn judge_all(&mut self, spool: &Spool, state: &State) {
        // Handoffs stay: the view of a handoff that is history does not change without a decision.
        (self.needs.agents, self.needs.items) = (BTreeMap::new(), BTreeMap::new());
        for agent in state.agents.values() {
            self.needs.agent(agent, &state.settings);
        }
        for handoff in state.handoffs.values() {
            self.needs.handoff(handoff, &state.settings);
        }
        for item in state.items.values() {
            self.needs.item(item);
        }
        self.needs.read_failures(spool);
        self.needs.read_handoffs(spool);
        self.needs.read_agents(spool);
        self.count = self.needs.count();
    }

    /// Judges what a decision has changed.
    pub(super) fn judge(&mut self, spool: &Spool, decision: &Decision, settings: &Settings) {
        let mut has_changed = !decision.errors.is_empty() || !decision.dismissed.is_empty();
        if has_changed {
            self.needs.read_failures(spool);
        }
        for agent in decision.agents.values() {
            has_changed |= self.needs.agent(agent, settings);
        }
        for handoff in decision.handoffs.values() {
            has_changed |= self.needs.handoff(handoff, settings);
        }
        for item in decision.items.values() {
            has_changed |= self.needs.item(item);
        }
        if has_changed {
            self.needs.read_handoffs(spool);
            self.needs.read_agents(spool);
            self.count = self.needs.count();
        }
    }

    /// The counts of the line, for the service manager.
    pub(super) fn counts(&self, state: &State) -> String {
        status_line::counts(state, self.count)
    }

    /// Sets the line for tmux's option.
    pub(super) fn update(&self, state: &State, now: &Now) {
        let line = if self.enabled { status_line::line(state, self.count, now) } else { String::new() };
        self.wanted.send_if_modified(|wanted| {
            let is_new = wanted.line != line;
            wanted.line = line;
            is_new
        });
    }
}

/// Writes each new line, until its `StatusLine` is dropped.
async fn keep(tmux: Tmux, mut receiver: watch::Receiver<Wanted>) {
    while receiver.changed().await.is_ok() {
        let line = receiver.borrow_and_update().line.clone();
        if let Err(error) = tmux.show_status(&line).await {
            tracing::debug!(%error, "could not update the status line in tmux");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
#[path = "status_line_tests.rs"]
mod tests;
