//! Watches what an agent's life hangs on: its process, its pane; and the documents that are awaited.

use super::Sidecar;
use super::turn::SeenGone;
use crate::core::decision::Decision;
use crate::core::event::{Event, Gone};
use crate::core::id::{AgentId, Slug};
use crate::core::pane::{PaneRef, Process};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::Step;
use crate::process;
use crate::spool::documents::{DocumentLook, open_folder};
use crate::tmux::PaneRow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use tokio::sync::mpsc;

/// The panes of the server, as they were when they were asked for.
pub(super) struct Listing {
    /// Agents that were known to be in a pane before tmux was asked: a pane that was made later proves nothing.
    asked: Vec<(AgentId, PaneRef)>,
    rows: Option<Vec<PaneRow>>,
}

/// Asking for the panes.
pub(super) struct Panes {
    /// They should be looked at.
    pub(super) wanted: bool,
    asking: bool,
    answers: mpsc::Sender<Listing>,
}

impl Panes {
    pub(super) fn new() -> (Panes, mpsc::Receiver<Listing>) {
        let (answers, receiver) = mpsc::channel(4);
        (Panes { wanted: false, asking: false, answers }, receiver)
    }
}

impl Sidecar {
    /// Asks tmux for its panes, if that is wanted and there is anybody in them. The loop does not wait for the answer.
    pub(super) fn ask_for_panes(&mut self) {
        if !self.panes.wanted || self.panes.asking || self.state.server.is_none() {
            return;
        }
        self.panes.wanted = false;
        let live = self.state.agents.values().filter(|agent| agent.state.is_live());
        let asked: Vec<_> = live.filter_map(|agent| Some((agent.agent_id, agent.pane?))).collect();
        if asked.is_empty() {
            return;
        }
        self.panes.asking = true;
        let (tmux, answers) = (self.tmux.clone(), self.panes.answers.clone());
        tokio::spawn(async move {
            let rows = tmux.list_panes().await.ok();
            // Nobody listens any more only at the end of the sidecar.
            let _ = answers.send(Listing { asked, rows }).await;
        });
    }

    /// Compares the panes with the agents that are said to be in them.
    pub(super) fn panes_listed(&mut self, listing: Listing) {
        self.panes.asking = false;
        let Some(rows) = listing.rows else { return };
        let there: BTreeSet<PaneRef> = rows.iter().filter(|row| !row.dead).map(|row| row.pane).collect();
        for (agent_id, pane) in listing.asked {
            if there.contains(&pane) {
                continue;
            }
            let Some(agent) = self.state.agents.get(&agent_id).filter(|agent| agent.pane == Some(pane)) else {
                continue;
            };
            let how = if is_known_dead(agent, pane) { Gone::Dead } else { Gone::PaneGone };
            self.note_gone(agent_id, how);
        }
    }

    /// A process has ended: whose was it?
    pub(super) fn process_ended(&mut self, process: &Process) {
        let of = |agent: &&Agent| agent.process == Some(*process) && agent.state.is_live();
        let agents: Vec<AgentId> = self.state.agents.values().filter(of).map(|agent| agent.agent_id).collect();
        for agent_id in agents {
            self.note_gone(agent_id, Gone::Dead);
        }
    }

    /// Notes that an agent is gone: judged when every event that lies in the spool by now was taken.
    fn note_gone(&mut self, agent_id: AgentId, how: Gone) {
        let is_noted = self.pending.gone.iter().any(|gone| gone.agent_id == agent_id && gone.how == how);
        let dying = self.state.agents.get(&agent_id).and_then(|agent| agent.dying);
        let is_dying = dying.is_some_and(|dying| how == Gone::PaneGone || !dying.lost);
        if !is_noted && !is_dying {
            self.pending.gone.push(SeenGone { agent_id, how, listing: self.pending.listing });
        }
    }

    /// Follows the processes and document folders that matter after this decision.
    pub(super) fn watch_what_matters(&mut self, decision: &Decision) {
        for agent in decision.agents.values() {
            self.watch_process(agent);
        }
        let slugs: BTreeSet<&Slug> = decision.handoffs.values().map(|handoff| &handoff.persona_slug).collect();
        for slug in slugs {
            let awaited = self
                .state
                .handoffs
                .values()
                .any(|handoff| handoff.step == Step::Writing && handoff.persona_slug == *slug);
            let folder = self.handoffs_folder(slug);
            if awaited {
                self.watch.watch_dir(&self.spool, &folder);
            } else {
                self.watch.unwatch_dir(&self.spool, &folder);
            }
        }
        if !decision.handoffs.is_empty() {
            self.look_at_documents();
        }
    }

    fn handoffs_folder(&self, slug: &Slug) -> PathBuf {
        self.home.personas().join(slug.as_str()).join("handoffs")
    }

    pub(super) fn watch_process(&mut self, agent: &Agent) {
        let Some(process) = agent.process else { return };
        if agent.state.is_live() {
            if !self.exits.watch(process) {
                self.panes.wanted = true;
            }
            return;
        }
        // An agent that was handed off in its own pane has ended, but its successor lives on in its process.
        let mut others = self.state.agents.values();
        if !others.any(|other| other.process == Some(process) && other.state.is_live()) {
            self.exits.unwatch(&process);
        }
    }

    /// Reports the growth of awaited documents. Only looks: they are read when they have stopped changing.
    pub(super) fn look_at_documents(&mut self) {
        for handoff in self.state.handoffs.values().filter(|handoff| handoff.step == Step::Writing) {
            let Ok(folder) = open_folder(self.home.root(), &handoff.persona_slug) else { continue };
            let DocumentLook::Present { stamp } = folder.look(OsStr::new(&handoff.file_name)) else { continue };
            if handoff.document.as_ref().is_none_or(|seen| seen.bytes != stamp.size) {
                let event = Event::DocumentGrew { handoff_id: handoff.handoff_id, bytes: stamp.size };
                self.pending.events.push(event);
            }
        }
    }
}

fn is_known_dead(agent: &Agent, pane: PaneRef) -> bool {
    match agent.process {
        Some(process) => !process::is_alive(&process),
        None => !process::exists(pane.pid),
    }
}
