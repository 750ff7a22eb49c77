//! Watches the processes and panes of agents, and the documents that are expected.

use crate::config::Home;
use crate::core::decision::Decision;
use crate::core::event::{Event, Exit};
use crate::core::id::{AgentId, Slug};
use crate::core::pane::{PaneRef, Process, ServerId};
use crate::core::rows::agent::Agent;
use crate::core::rows::handoff::{Handoff, Step};
use crate::core::state::State;
use crate::process::{self, ExitWatch};
use crate::runner;
use crate::spool::documents::{DocumentLook, open_folder};
use crate::spool::{Spool, SpoolWatch};
use crate::tmux::Tmux;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use tokio::sync::mpsc;

/// The panes of the tmux server, as they were when tmux was asked for them.
pub(super) struct PaneList {
    /// Agents that had a pane before tmux was asked. A pane that was made later may be missing from the list, which
    /// proves nothing.
    asked: Vec<(AgentId, PaneRef)>,
    /// The server that answered, and its panes whose program runs; `None` if none has answered.
    listed: Option<(ServerId, BTreeSet<PaneRef>)>,
}

/// An agent that is gone.
pub(super) struct SeenGone {
    pub(super) agent_id: AgentId,
    pub(super) how: Exit,
    /// The number of the latest listing of `events/` when that was seen.
    pub(super) events_listing: u64,
}

/// Watches what the sidecar must know of agents: their processes, their panes, and the documents that they write.
pub(super) struct Watches {
    /// The folders of the spool, and those in which documents are awaited.
    pub(super) folders: SpoolWatch,
    exits: ExitWatch,
    pub(super) panes_wanted: bool,
    asking: bool,
    pane_lists: mpsc::Sender<PaneList>,
    /// Agents that are gone. This is decided only after all events of a listing of `events/` that began later.
    pub(super) gone: Vec<SeenGone>,
}

impl Watches {
    /// Returns the watches, and the channels on which ended processes and lists of panes arrive.
    pub(super) fn new(folders: SpoolWatch) -> (Watches, mpsc::Receiver<Process>, mpsc::Receiver<PaneList>) {
        let ((exits, ended), (pane_lists, listed)) = (ExitWatch::new(), mpsc::channel(4));
        let watches = Watches { folders, exits, panes_wanted: false, asking: false, pane_lists, gone: Vec::new() };
        (watches, ended, listed)
    }

    /// Asks tmux for its panes, if that is wanted and a live agent has a pane. The loop does not wait for the answer.
    pub(super) fn ask_for_panes(&mut self, tmux: &Tmux, state: &State) {
        if !self.panes_wanted || self.asking || state.server.is_none() {
            return;
        }
        self.panes_wanted = false;
        let live = state.agents.values().filter(|agent| agent.state.is_live());
        let asked: Vec<_> = live.filter_map(|agent| Some((agent.agent_id, agent.pane?))).collect();
        if asked.is_empty() {
            return;
        }
        self.asking = true;
        let (tmux, pane_lists) = (tmux.clone(), self.pane_lists.clone());
        tokio::spawn(async move {
            let listed = tmux.living_panes().await.ok();
            // At the end of the sidecar the receiver may be gone by then.
            let _ = pane_lists.send(PaneList { asked, listed }).await;
        });
    }

    /// Compares the panes with the agents that are said to be in them. The list of one tmux server proves nothing about
    /// an agent that lives in another, which happens if the sidecar was started again without that server's name.
    pub(super) fn panes_listed(&mut self, list: PaneList, state: &State, events_listing: u64) {
        self.asking = false;
        let Some((server, there)) = list.listed else { return };
        for (agent_id, pane) in list.asked {
            if there.contains(&pane) {
                continue;
            }
            let Some(agent) = state.agents.get(&agent_id).filter(|agent| agent.pane == Some(pane)) else {
                continue;
            };
            let how = match is_known_dead(agent, pane) {
                true => Exit::Dead,
                false if runner::lives_elsewhere(&pane, &server) => continue,
                false => Exit::PaneGone,
            };
            self.note_gone(state, (agent_id, how), events_listing);
        }
    }

    /// Notes that the live agents of a process that has ended are gone.
    pub(super) fn process_ended(&mut self, process: &Process, state: &State, events_listing: u64) {
        let of = |agent: &&Agent| agent.process == Some(*process) && agent.state.is_live();
        let agents: Vec<AgentId> = state.agents.values().filter(of).map(|agent| agent.agent_id).collect();
        for agent_id in agents {
            self.note_gone(state, (agent_id, Exit::Dead), events_listing);
        }
    }

    /// Notes that an agent is gone: this is decided after every event that is now in the spool.
    fn note_gone(&mut self, state: &State, (agent_id, how): (AgentId, Exit), events_listing: u64) {
        let is_noted = self.gone.iter().any(|gone| gone.agent_id == agent_id && gone.how == how);
        let pending_exit = state.agents.get(&agent_id).and_then(|agent| agent.pending_exit);
        let is_pending = pending_exit.is_some_and(|pending_exit| how == Exit::PaneGone || !pending_exit.pane_gone);
        if !is_noted && !is_pending {
            self.gone.push(SeenGone { agent_id, how, events_listing });
        }
    }

    /// The ends of agents that were seen before this listing of `events/` began. Everything that these agents had
    /// reported lay there, and has been taken.
    pub(super) fn gone_before(&mut self, events_listing: u64) -> impl Iterator<Item = Event> + use<> {
        let (released, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.gone).into_iter().partition(|gone| gone.events_listing < events_listing);
        self.gone = waiting;
        released.into_iter().map(|gone| Event::AgentExit { agent_id: gone.agent_id, how: gone.how })
    }

    /// Follows the processes and document folders that matter after this decision.
    pub(super) fn follow(&mut self, decision: &Decision, state: &State, (home, spool): (&Home, &Spool)) {
        for agent in decision.agents.values() {
            self.follow_process(agent, state);
        }
        let slugs: BTreeSet<&Slug> = decision.handoffs.values().map(|handoff| &handoff.persona_slug).collect();
        for slug in slugs {
            let awaits = |handoff: &Handoff| handoff.step == Step::Writing && handoff.persona_slug == *slug;
            let folder = home.personas().join(slug.as_str()).join("handoffs");
            if state.handoffs.values().any(awaits) {
                self.folders.watch_dir(spool, &folder);
            } else {
                self.folders.unwatch_dir(spool, &folder);
            }
        }
    }

    pub(super) fn follow_process(&mut self, agent: &Agent, state: &State) {
        let Some(process) = agent.process else { return };
        if agent.state.is_live() {
            runner::keep_environment(&process);
            if !self.exits.watch(process) {
                self.panes_wanted = true;
            }
            return;
        }
        // An agent that was handed off in its own pane has ended, but its successor lives on in its process.
        let mut others = state.agents.values();
        if !others.any(|other| other.process == Some(process) && other.state.is_live()) {
            self.exits.unwatch(&process);
        }
    }
}

/// The growth of awaited documents. Only looks: they are read when they have stopped changing.
pub(super) fn grown_documents<'a>(home: &'a Home, state: &'a State) -> impl Iterator<Item = Event> + use<'a> {
    state.handoffs.values().filter(|handoff| handoff.step == Step::Writing).filter_map(|handoff| {
        let folder = open_folder(home.root(), &handoff.persona_slug).ok()?;
        let DocumentLook::Present { file_stamp } = folder.look(OsStr::new(&handoff.file_name)) else { return None };
        let has_grown = handoff.document.as_ref().is_none_or(|seen| seen.bytes != file_stamp.size);
        has_grown.then_some(Event::DocumentGrew { handoff_id: handoff.handoff_id, bytes: file_stamp.size })
    })
}

fn is_known_dead(agent: &Agent, pane: PaneRef) -> bool {
    match agent.process {
        Some(process) => !process::is_alive(&process),
        None => !process::exists(pane.pid),
    }
}
