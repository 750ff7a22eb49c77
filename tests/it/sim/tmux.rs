//! A model of the tmux server and of the agents in it: what is typed, what is submitted, what the agents report.

use super::rng::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, DeliveryId};
use tasuki::core::pane::{PaneRef, Process, ServerId};

/// How one agent misbehaves.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) swallows_enter: bool,
    pub(crate) writes_nothing: bool,
    pub(crate) writes_empty: bool,
    pub(crate) fails_turn: bool,
    pub(crate) ignores_exit: bool,
    pub(crate) loses_receipt: bool,
    pub(crate) loses_stop: bool,
    pub(crate) dialog: bool,
    pub(crate) never_ready: bool,
}

impl Faults {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let mut rare = || rng.chance(6);
        Faults {
            swallows_enter: rare(),
            writes_nothing: rare(),
            writes_empty: rare(),
            fails_turn: rare(),
            ignores_exit: rare(),
            loses_receipt: rare(),
            loses_stop: rare(),
            dialog: rare(),
            never_ready: rare(),
        }
    }
}

/// A turn that an agent is in.
#[derive(Debug, Clone)]
pub(crate) struct RunningTurn {
    pub(crate) id: String,
    pub(crate) prompt: String,
    pub(crate) steps_left: u64,
}

/// One agent process in one pane.
#[derive(Debug, Clone)]
pub(crate) struct SimAgent {
    pub(crate) env: Option<AgentId>,
    pub(crate) profile: String,
    pub(crate) pane: PaneRef,
    pub(crate) session: String,
    /// Where in `submitted` the present session begins.
    pub(crate) session_from: usize,
    /// It tells of a new session only with that one's first prompt.
    untold: bool,
    pub(crate) alive: bool,
    pub(crate) ready_in: u64,
    pub(crate) mark: String,
    pub(crate) composer: String,
    pub(crate) queue: VecDeque<String>,
    pub(crate) turn: Option<RunningTurn>,
    pub(crate) turns: u64,
    pub(crate) hooks: VecDeque<HookEvent>,
    pub(crate) faults: Faults,
    pub(crate) submitted: Vec<String>,
    pub(crate) exit_asked: bool,
    /// The form of an ACK that the last turn's prompt asked for.
    pub(crate) asked_to_ack: Option<String>,
}

/// The server, and what has been typed since the beginning of the world.
#[derive(Debug, Clone)]
pub(crate) struct SimTmux {
    pub(crate) server: Option<ServerId>,
    pub(crate) agents: Vec<SimAgent>,
    pub(crate) made: BTreeSet<AgentId>,
    pub(crate) spawned: BTreeMap<AgentId, u32>,
    pub(crate) typed: BTreeMap<DeliveryId, u32>,
    next: u32,
}

impl SimTmux {
    pub(crate) fn new() -> Self {
        let server = Some(ServerId { pid: 100, start_time: 1 });
        SimTmux {
            server,
            agents: Vec::new(),
            made: BTreeSet::new(),
            spawned: BTreeMap::new(),
            typed: BTreeMap::new(),
            next: 0,
        }
    }

    /// The server dies with all that is in it; another one starts, which uses pane ids again.
    pub(crate) fn restart(&mut self) {
        let Some(server) = self.server else { return };
        self.server = Some(ServerId { pid: server.pid + 1, start_time: server.start_time + 1 });
        self.made.clear();
        for agent in &mut self.agents {
            agent.alive = false;
        }
    }

    pub(crate) fn spawn(
        &mut self,
        env: Option<AgentId>,
        profile: &str,
        faults: Faults,
        rng: &mut Rng,
    ) -> Option<PaneRef> {
        let server = self.server?;
        self.next += 1;
        let pane = PaneRef { server, pane: self.next, pid: 1000 + self.next };
        if let Some(id) = env {
            self.made.insert(id);
            *self.spawned.entry(id).or_default() += 1;
        }
        let mut agent = SimAgent {
            env,
            profile: profile.to_owned(),
            pane,
            session: format!("s{}", self.next),
            session_from: 0,
            untold: false,
            alive: true,
            ready_in: rng.below(6),
            mark: String::new(),
            composer: String::new(),
            queue: VecDeque::new(),
            turn: None,
            turns: 0,
            hooks: VecDeque::new(),
            faults,
            submitted: Vec::new(),
            exit_asked: false,
            asked_to_ack: None,
        };
        let start = HookEvent { reason: Some(SessionReason::Process), ..agent.event(HookKind::SessionStart) };
        agent.hooks.push_back(start);
        self.agents.push(agent);
        Some(pane)
    }

    pub(crate) fn process(pane: &PaneRef) -> Process {
        Process { pid: pane.pid, start_ticks: u64::from(pane.pid) }
    }

    /// The living agent in exactly this pane.
    pub(crate) fn at(&mut self, pane: &PaneRef) -> Option<&mut SimAgent> {
        let server = self.server;
        self.agents.iter_mut().find(|agent| agent.pane == *pane && agent.alive && server == Some(pane.server))
    }

    pub(crate) fn by_env(&self, id: &AgentId) -> Option<&SimAgent> {
        self.agents.iter().find(|agent| agent.env == Some(*id) && agent.alive)
    }
}

impl SimAgent {
    fn event(&self, kind: HookKind) -> HookEvent {
        HookEvent {
            agent_id: self.env,
            pane: Some(self.pane.pane),
            server_pid: Some(self.pane.server.pid),
            profile: Some(self.profile.clone()),
            transcript_path: Some(format!("/t/{}", self.session)),
            session_id: Some(self.session.clone()),
            ..HookEvent::new(kind)
        }
    }

    /// Enter: what stands in the composer is submitted, now or when the running turn has ended.
    pub(crate) fn enter(&mut self) {
        if self.faults.swallows_enter {
            self.faults.swallows_enter = false;
            return;
        }
        let text = std::mem::take(&mut self.composer);
        if text.is_empty() {
            return;
        }
        if text == "/exit" {
            self.exit_asked = !self.faults.ignores_exit;
            return;
        }
        if text == "/clear" {
            return self.begin_session();
        }
        if std::mem::take(&mut self.untold) {
            let start = HookEvent { reason: Some(SessionReason::Replaced), ..self.event(HookKind::SessionStart) };
            self.hooks.push_back(start);
        }
        let turn = match &self.turn {
            Some(turn) => turn.id.clone(),
            None => self.begin(text.clone()),
        };
        if self.turn.as_ref().is_some_and(|running| running.prompt != text) {
            self.queue.push_back(text.clone());
        }
        self.submitted.push(text.clone());
        if self.faults.loses_receipt {
            self.faults.loses_receipt = false;
            return;
        }
        let event = HookEvent { turn_id: Some(turn), text: Some(text), ..self.event(HookKind::PromptSubmit) };
        self.hooks.push_back(event);
    }

    /// Another session in the same process, as a CLI does it that tells of it, or one that does not.
    fn begin_session(&mut self) {
        if self.faults.ignores_exit {
            self.faults.ignores_exit = false;
            return;
        }
        let is_told = self.profile != "lazy";
        if is_told {
            let end = HookEvent { reason: Some(SessionReason::Replaced), ..self.event(HookKind::SessionEnd) };
            self.hooks.push_back(end);
        }
        self.session.push('n');
        self.session_from = self.submitted.len();
        self.untold = !is_told;
        if is_told {
            let start = HookEvent { reason: Some(SessionReason::Replaced), ..self.event(HookKind::SessionStart) };
            self.hooks.push_back(start);
        }
    }

    fn begin(&mut self, prompt: String) -> String {
        self.turns += 1;
        let id = format!("{}-{}", self.session, self.turns);
        self.turn = Some(RunningTurn { id: id.clone(), prompt, steps_left: 3 });
        id
    }

    /// A person types a prompt of their own.
    pub(crate) fn prompt_by_hand(&mut self) {
        if self.composer.is_empty() && self.alive && self.ready_in == 0 {
            self.composer = "go on with it".to_owned();
            self.enter();
        }
    }

    /// One step of the agent's own life. Returns the path of a document that it writes now, and the text.
    pub(crate) fn live(&mut self) -> Option<(String, String)> {
        if !self.alive {
            return None;
        }
        self.ready_in = self.ready_in.saturating_sub(1);
        if self.exit_asked && self.turn.is_none() {
            let end = HookEvent { reason: Some(SessionReason::Process), ..self.event(HookKind::SessionEnd) };
            self.hooks.push_back(end);
            self.alive = false;
            return None;
        }
        let turn = self.turn.as_mut()?;
        turn.steps_left -= 1;
        if turn.steps_left == 1 {
            return self.document();
        }
        if turn.steps_left == 0 {
            self.end_turn();
        }
        None
    }

    fn document(&mut self) -> Option<(String, String)> {
        let prompt = &self.turn.as_ref()?.prompt;
        let asks = ["Please write a handoff document", "Please repair your handoff document"];
        if !asks.iter().any(|beginning| prompt.starts_with(beginning)) || self.faults.writes_nothing {
            return None;
        }
        let path = prompt.split('`').nth(1)?.to_owned();
        let text =
            if self.faults.writes_empty { " \n".to_owned() } else { format!("# Work\nI was {}\n", self.session) };
        Some((path, text))
    }

    fn end_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let form = turn.prompt.lines().find(|line| line.starts_with("{\"v\":1,\"kind\":\"ack\""));
        self.asked_to_ack = form.map(str::to_owned).or_else(|| self.asked_to_ack.take());
        let kind = if self.faults.fails_turn { HookKind::StopFailure } else { HookKind::Stop };
        self.faults.fails_turn = false;
        if self.faults.loses_stop {
            self.faults.loses_stop = false;
        } else {
            let asks = ["Please answer with a handoff document", "Please answer with your handoff document"];
            let is_asked = asks.iter().any(|beginning| turn.prompt.starts_with(beginning));
            let answer = if is_asked && !self.faults.writes_nothing { "# Goal\nTo finish" } else { "" };
            let last_text = Some(answer.to_owned());
            let event = HookEvent { turn_id: Some(turn.id), last_text, ..self.event(kind) };
            self.hooks.push_back(event);
        }
        if let Some(next) = self.queue.pop_front() {
            self.begin(next);
        }
    }
}
