//! Everything that one loop owns, part by part. The parts do not know the loop, and only `checkpoint` knows another
//! part, `projection`.

use super::answers::Answers;
use super::checkpoint::Checkpoints;
use super::concerns::Concerns;
use super::health::StoreHealth;
use super::history::History;
use super::intake::{Intake, held_files, unmoved_files};
use super::learned::Learned;
use super::liveness::Liveness;
use super::projection::Projection;
use super::status_line::StatusLine;
use super::tidy::Tidy;
use super::timers::Timers;
use super::watches::Watches;
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::{self, ServerView, SidecarView, Watch};
use crate::core::effect::EffectKey;
use crate::core::event::Event;
use crate::core::pane::PaneRef;
use crate::core::state::State;
use crate::core::text::plain_json;
use crate::core::time::{Deadline, Now};
use crate::limits;
use crate::runner::{Runner, Tools, lives_elsewhere};
use crate::service::watchdog::Watchdog;
use crate::spool::{Spool, watch};
use crate::store::{Error, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) struct Sidecar {
    pub(super) home: Home,
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) spool: Spool,
    pub(super) state: State,
    pub(super) runner: Runner,
    pub(super) tools: Arc<Tools>,
    pub(super) watchdog: Watchdog,
    /// Events that did not come from files.
    pub(super) events: Vec<Event>,
    pub(super) left: Leftovers,
    pub(super) answers: Answers,
    pub(super) checkpoints: Checkpoints,
    pub(super) concerns: Concerns,
    pub(super) status_line: StatusLine,
    pub(super) health: StoreHealth,
    pub(super) liveness: Liveness,
    pub(super) history: History,
    pub(super) intake: Intake,
    pub(super) learned: Learned,
    pub(super) projection: Projection,
    pub(super) tidy: Tidy,
    pub(super) timers: Timers,
    pub(super) watches: Watches,
}

/// What an earlier process of this home left behind.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Whether deadlines or effects are left to continue.
    pub(super) has_work: bool,
    pub(super) effects: BTreeSet<EffectKey>,
}

impl Sidecar {
    /// The known reason why no requests are taken. The view shows it, and it is temporary.
    fn obstacle(&self) -> Option<&String> {
        let Intake { problem, folder_problem, .. } = &self.intake;
        self.health.problem.as_ref().or(problem.as_ref()).or(folder_problem.as_ref())
    }

    /// Requests are not being answered, and no known obstacle explains it.
    pub(super) fn is_silent(&self) -> bool {
        self.answers.judged.is_silent && self.obstacle().is_none()
    }

    /// What it means that tmux does not answer, or that another server answers, if agents live that this sidecar can't
    /// reach then: they run in another server than the one that it was told to use.
    fn cut_off(&self) -> Option<String> {
        let living = self.state.agents.values().filter(|agent| agent.state.is_live());
        let panes = living.filter_map(|agent| agent.pane);
        let agents = |count| if count == 1 { "1 living agent".to_owned() } else { format!("{count} living agents") };
        let hint = "restart the sidecar with --tmux and that server's name";
        let Some(server) = self.state.server else {
            let (reason, count) = (self.tools.tmux.no_connection()?, panes.count());
            return (count > 0).then(|| {
                format!(
                    "tmux does not answer ({reason}), so tasuki can't reach {}; if they run in another tmux server, \
                     {hint}",
                    agents(count)
                )
            });
        };
        let elsewhere: Vec<PaneRef> = panes.filter(|pane| lives_elsewhere(pane, &server)).collect();
        elsewhere.first().map(|pane| {
            format!(
                "tasuki is connected to the tmux server with process id {} and can't reach {} in another one (process \
                 id {}); nothing was done there; {hint}",
                server.pid,
                agents(elsewhere.len()),
                pane.server.pid
            )
        })
    }

    /// The most important thing that keeps the sidecar from its whole work, or from being heard. The view shows it.
    fn problem(&self) -> Option<String> {
        let tools = &self.tools;
        let obstacle = self.obstacle().cloned();
        // Unwritten files are not lost: the store has their content, and they are written as soon as the disk allows
        // it.
        obstacle
            .or_else(|| self.projection.unwritten.clone())
            .or_else(|| self.spool.unmoved().map(unmoved_files))
            .or_else(limits::shortage)
            .or_else(|| self.liveness.no_thread.clone())
            .or_else(|| self.answers.judged.problem.clone())
            .or_else(|| tools.tmux.problem())
            .or_else(|| self.cut_off())
            .or_else(|| tools.late.for_view())
            .or_else(|| self.concerns.first().cloned())
            .or_else(|| self.learned.problem())
            .or_else(|| tools.late.refused_for_view())
    }

    /// Writes the heartbeat, which says that the sidecar runs and answers, or knows why it does not. If it does not
    /// answer and knows no reason, the heartbeat is not renewed. In both cases the view has the problem.
    pub(super) fn heartbeat(&mut self, now: &Now) {
        let heartbeat = self.liveness.heartbeat(now, self.is_silent());
        let problem = self.problem();
        let held = self.intake.hold_reason.map(|reason| held_files(reason).to_owned());
        let server = self.state.server.as_ref();
        let socket = self.tools.tmux.server().map(|info| info.socket_path);
        let view = SidecarView {
            v: 1,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: self.liveness.started_at.clone(),
            heartbeat,
            taken_at: Some(self.answers.taken_at.clone()),
            tmux: server.map(|server| ServerView { pid: server.pid, start_time: server.start_time, socket }),
            state: if problem.is_some() { contract::Health::Degraded } else { contract::Health::Running }.into(),
            problem: problem.or(held),
            watch: match self.watches.folders.mode() {
                watch::WatchMode::Armed => Watch::Armed,
                watch::WatchMode::Poll => Watch::Poll,
            }
            .into(),
            journal_seq: self.projection.last_seq(),
        };
        self.status_line.judge_own(&view);
        if let Err(error) = self.spool.put_sidecar(plain_json(&contract::text(&view)).as_bytes()) {
            tracing::warn!(%error, "could not write the heartbeat, view/sidecar.json");
        }
    }

    /// The store can't be read or written. Until it can, the state in memory may hold what was never committed, so
    /// nothing is decided on it.
    pub(super) fn store_failed(&mut self, now: &Now, error: &Error) {
        self.health.failed(now, error);
        self.heartbeat(now);
    }

    /// Reads the rules again if their file has changed.
    pub(super) fn look_at_rules(&mut self, now: &Now) {
        match self.learned.look_at_rules(&self.home, now) {
            Ok(event) => self.events.extend(event),
            Err(wait_ms) => self.timers.tick = Some(Deadline::after(now, wait_ms)),
        }
    }

    /// Looks for the roles of the personas of all live agents.
    pub(super) fn learn_roles(&mut self) {
        self.events.extend(self.learned.roles(&self.home, &self.state));
    }
}
