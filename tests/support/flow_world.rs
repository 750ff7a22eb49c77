//! Whole handoffs in the pure core: everything goes well, except where a test says otherwise.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tasuki::contract::DocumentFault;
use tasuki::contract::document::FaultGrade;
use tasuki::core::decision::Decision;
use tasuki::core::effect::{
    AutoHandoffCheck, ComparedDocument, Composed, DocumentRead, DocumentSource, Effect, EffectKey, EnvironmentSearch,
    Examination, Outcome, PersonaTexts, Readiness, Started, SuccessorWindow,
};
use tasuki::core::event::{Event, Exit, RequestFacts};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, Process, ServerId, Typed};
use tasuki::core::persona::{PersonaFacts, ProfileChoice};
use tasuki::core::rows::agent::{Agent, AgentState, Primed, Purpose};
use tasuki::core::rows::handoff::Handoff;
use tasuki::core::settings::ProfileFacts;

use super::decided::Decided;
use super::facts::demo_facts;

const SERVER: ServerId = ServerId { pid: 7, start_time: 1 };
/// How long tasuki waits for the last hooks of a process that is dead, in milliseconds.
const LAST_HOOKS_MS: u64 = 2_000;

/// What happens to one effect instead of success.
pub(crate) enum Instead {
    /// The effect has this outcome.
    Outcome(Outcome),
    /// The effect never has an outcome.
    Silence,
}

/// What an agent does with a text that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Ends,
    Fails,
    GoesOn,
    /// The turn pauses, because something that the agent has started still runs.
    Pauses,
    /// The agent dies in the turn.
    Dies,
}

/// A home with two idle agents of the persona `dev`. The first one is handed off.
pub(crate) struct FlowWorld {
    pub(crate) core: Decided,
    pub(crate) document: String,
    /// What happens instead, by the name of an effect or of a typed text: see [`FlowWorld::moment`].
    instead: BTreeMap<&'static str, VecDeque<Instead>>,
    turns: BTreeMap<&'static str, Turn>,
    silent: Vec<EffectKey>,
    /// The agents whose screens show work.
    at_work: BTreeSet<AgentId>,
    asked: u64,
    /// The texts that were submitted, each with its agent, in order.
    pub(crate) typed: Vec<(AgentId, &'static str)>,
    /// The agents that were started.
    pub(crate) started: Vec<AgentId>,
    /// The hooks of started agents do not report their sessions.
    pub(crate) unreported: bool,
    pub(crate) errors: Vec<Value>,
    pub(crate) answers: BTreeMap<String, Value>,
    /// Whether the outgoing agent was ever ended while a handoff had no record.
    pub(crate) ended_unrecorded: bool,
}

pub(crate) fn outgoing() -> AgentId {
    AgentId(uuid::Uuid::from_u128(1))
}

pub(crate) fn other() -> AgentId {
    AgentId(uuid::Uuid::from_u128(2))
}

impl FlowWorld {
    pub(crate) fn new() -> Self {
        let agents = [(1, outgoing()), (2, other())].map(|(number, id)| {
            let mut agent = Agent::new(id, "demo".to_owned(), String::new());
            agent.persona_slug = "dev".parse().ok();
            (agent.state, agent.ours, agent.hooks_seen, agent.primed) = (AgentState::Idle, true, true, Primed::Done);
            agent.pane = Some(PaneRef { server: SERVER, pane: number, pid: 100 + number });
            agent.transcript_path = Some(format!("/t/{number}.jsonl"));
            agent.process = Some(Process { pid: 100 + number, start_ticks: 1 });
            agent
        });
        let profile = ProfileFacts { screen_proof: true, reports_context: false, ..demo_facts() };
        let mut core = Decided::new(SERVER, profile, agents);
        core.persona.handoffs_dir = "/h/dev".to_owned();
        FlowWorld {
            core,
            document: "# Work\n\nThe parser is half done.\n".to_owned(),
            instead: BTreeMap::new(),
            turns: BTreeMap::new(),
            silent: Vec::new(),
            at_work: BTreeSet::new(),
            asked: 0,
            typed: Vec::new(),
            started: Vec::new(),
            unreported: false,
            errors: Vec::new(),
            answers: BTreeMap::new(),
            ended_unrecorded: false,
        }
    }

    /// At the next moment of this name, this happens instead of success, once. If it is said twice, it happens at the
    /// next two moments.
    pub(crate) fn at(mut self, moment: &'static str, instead: Instead) -> Self {
        self.instead.entry(moment).or_default().push_back(instead);
        self
    }

    /// The agent that gets the next text of this name does this with it, once.
    pub(crate) fn turn(mut self, text: &'static str, turn: Turn) -> Self {
        self.turns.insert(text, turn);
        self
    }

    /// Requests a handoff of the first agent, with these additional fields, and carries out everything that follows.
    pub(crate) fn hand_off(mut self, fields: &Value) -> Self {
        let mut asked = json!({"v": 1, "kind": "handoff", "agent_id": outgoing(), "reason": "r"});
        asked.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        let answer = self.ask("h1", &asked);
        assert_eq!(answer["ok"], true, "{answer}");
        self
    }

    pub(crate) fn ask(&mut self, id: &str, request: &Value) -> Value {
        let facts = RequestFacts {
            document: request["document"]["text"].as_str().map(|text| Ok(text.to_owned())),
            messages: Some(9),
            ..RequestFacts::default()
        };
        let decision = self.core.ask_with(id, request, facts);
        self.note(decision);
        self.run();
        self.answers.get(id).cloned().unwrap_or_default()
    }

    /// Makes a request about the handoff, such as a retry.
    pub(crate) fn ask_of_it(&mut self, kind: &str, fields: &Value) -> Value {
        let mut asked = json!({"v": 1, "kind": kind, "handoff_id": self.handoff().handoff_id});
        asked.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        self.asked += 1;
        let id = format!("q{}", self.asked);
        self.ask(&id, &asked)
    }

    pub(crate) fn handoff(&self) -> &Handoff {
        self.core.state.handoffs.values().next().expect("a handoff")
    }

    pub(crate) fn step(&self) -> &'static str {
        self.handoff().step.as_str()
    }

    /// The step and the code of the handoff's failure, if it has failed.
    pub(crate) fn failure(&self) -> Option<(&'static str, &str)> {
        self.handoff().error.as_ref().map(|error| (error.step.as_str(), error.code.as_str()))
    }

    pub(crate) fn agent(&self, id: &AgentId) -> &Agent {
        &self.core.state.agents[id]
    }

    /// Changes an agent's row directly, in place of events that this world does not have.
    pub(crate) fn change(&mut self, id: &AgentId, change: impl FnOnce(&mut Agent)) {
        change(self.core.state.agents.get_mut(id).expect("it is there"));
    }

    /// The agent's turn ends well.
    pub(crate) fn end_turn(&mut self, id: AgentId) {
        self.hear(id, HookKind::Stop, None);
        self.run();
    }

    /// Whether the outgoing agent is live.
    pub(crate) fn agent_lives(&self) -> bool {
        self.core.state.agents.get(&outgoing()).is_some_and(|agent| agent.state.is_live())
    }

    /// The names of the texts that an agent got, in order.
    pub(crate) fn texts(&self, id: &AgentId) -> Vec<&'static str> {
        self.typed.iter().filter(|(agent, _)| agent == id).map(|(_, text)| *text).collect()
    }

    /// Lets time pass until the handoff is over, or no deadline is left.
    pub(crate) fn wait(&mut self) {
        for _ in 0..100 {
            let is_over = self.core.state.handoffs.values().all(|handoff| handoff.step.is_end());
            let Some(ms) = self.core.state.next_deadline_ms(&self.core.now).filter(|_| !is_over) else { return };
            self.pass(ms);
        }
        panic!("deadlines do not end: {:?}", self.handoff());
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.core.now.wall_ms += i64::try_from(ms).expect("a short time");
        let decision = self.core.pass(ms);
        self.note(decision);
        self.run();
    }

    fn decide(&mut self, event: Event) {
        let decision = self.core.decide(event);
        self.note(decision);
    }

    fn note(&mut self, decision: Decision) {
        self.errors.extend(decision.errors.iter().map(|row| json!(row.file())));
        for answer in decision.answers {
            self.answers.insert(answer.request_id.to_string(), answer.to_json(&self.core.now));
        }
        let state = &self.core.state;
        let has_ended = state.agents.get(&outgoing()).is_none_or(|agent| !agent.state.is_live());
        self.ended_unrecorded |= has_ended && state.handoffs.values().any(|handoff| handoff.record.is_none());
    }

    /// Carries out effects until none is left.
    fn run(&mut self) {
        for _ in 0..300 {
            let next = self.core.state.outbox.iter().find(|(key, _)| !self.silent.contains(key));
            let Some((key, effect)) = next.map(|(key, pending)| (*key, pending.effect.clone())) else { return };
            self.carry_out(key, &effect);
        }
        panic!("effects do not end: {:?}", self.core.state.outbox);
    }

    /// The name of the moment at which this effect is carried out: the name of the typed text, or that of another
    /// effect.
    fn moment(&self, effect: &Effect) -> &'static str {
        let Effect::Type(plan) = effect else { return effect.kind() };
        match self.core.state.agents[&plan.agent_id].typing.as_ref().map(|typing| &typing.purpose) {
            Some(Purpose::Instruction(_)) => "instruction",
            Some(Purpose::Rework(_)) => "rework",
            Some(Purpose::Priming(_)) => "priming",
            Some(Purpose::Briefing(_)) => "briefing",
            Some(Purpose::Exit(_)) => "exit",
            _ => "another text",
        }
    }

    fn carry_out(&mut self, key: EffectKey, effect: &Effect) {
        if matches!(effect, Effect::AwaitIdle { agent_id, .. } if self.at_work.contains(agent_id)) {
            return self.silent.push(key);
        }
        let moment = self.moment(effect);
        let outcome = match self.instead.get_mut(moment).and_then(VecDeque::pop_front) {
            Some(Instead::Silence) => return self.silent.push(key),
            Some(Instead::Outcome(outcome)) => outcome,
            None => self.outcome(effect),
        };
        let submitted = matches!(outcome, Outcome::Typed(Typed::Submitted { .. }));
        let runs = matches!(outcome, Outcome::Started(Started::Running { .. }));
        if let (Effect::ComposeDocument { source: DocumentSource::Text(text), .. }, Outcome::Composed(_)) =
            (effect, &outcome)
        {
            self.document.clone_from(text);
        }
        self.decide(Event::Settled { key, outcome });
        match effect {
            Effect::Type(plan) if submitted => {
                self.typed.push((plan.agent_id, moment));
                self.answer(plan.agent_id, moment);
            }
            Effect::Start(plan) if runs => {
                self.started.push(plan.agent_id);
                if self.unreported {
                    return;
                }
                let pane = self.agent(&plan.agent_id).pane.map(|pane| pane.pane);
                self.hear(plan.agent_id, HookKind::SessionStart, pane);
            }
            _ => {}
        }
    }

    /// Does with a text what the test has said, or else ends the turn (or, after the exit command, the agent).
    fn answer(&mut self, agent_id: AgentId, text: &'static str) {
        let usual = if text == "exit" { Turn::Dies } else { Turn::Ends };
        match self.turns.remove(text).unwrap_or(usual) {
            Turn::Ends => self.hear(agent_id, HookKind::Stop, None),
            Turn::Fails => self.hear(agent_id, HookKind::StopFailure, None),
            Turn::GoesOn => drop(self.at_work.insert(agent_id)),
            Turn::Pauses => {
                self.change(&agent_id, |agent| {
                    agent.our_turn.as_mut().expect("a turn").turn_id = Some("t1".to_owned())
                });
                let paused =
                    HookEvent { paused: true, turn_id: Some("t1".to_owned()), ..HookEvent::new(HookKind::Stop) };
                self.hear_of(agent_id, paused);
            }
            Turn::Dies => self.die(agent_id),
        }
    }

    pub(crate) fn die(&mut self, agent_id: AgentId) {
        self.at_work.remove(&agent_id);
        self.decide(Event::AgentExit { agent_id, how: Exit::Dead });
        self.pass(LAST_HOOKS_MS);
    }

    fn hear(&mut self, agent_id: AgentId, kind: HookKind, pane: Option<u32>) {
        let reason = (kind == HookKind::SessionStart).then_some(SessionReason::Process);
        self.hear_of(agent_id, HookEvent { pane, reason, ..HookEvent::new(kind) });
    }

    /// Decides a report of an agent's hook. The effects that follow are not carried out yet.
    pub(crate) fn hear_of(&mut self, agent_id: AgentId, event: HookEvent) {
        self.at_work.remove(&agent_id);
        self.decide(Event::Hook(Box::new(HookEvent { agent_id: Some(agent_id), ..event })));
    }

    /// A person interrupts all agents that are at work.
    pub(crate) fn interrupt(&mut self) {
        for agent_id in std::mem::take(&mut self.at_work) {
            self.hear_of(agent_id, HookEvent::new(HookKind::Interrupted));
        }
    }

    /// The document is reported with this size.
    pub(crate) fn see_document(&mut self, bytes: u64) {
        let handoff_id = self.handoff().handoff_id;
        self.decide(Event::DocumentGrew { handoff_id, bytes });
        self.run();
    }

    /// The outcome of an effect if all goes well.
    fn outcome(&self, effect: &Effect) -> Outcome {
        match effect {
            Effect::Type(_) => Outcome::Typed(Typed::Submitted { proven: true }),
            Effect::ComposeDocument { .. } => Outcome::Composed(Composed::Written),
            Effect::ReadDocument { .. } => Outcome::Document(whole(&self.document)),
            Effect::Examine(_) => examined(&self.document, 0),
            Effect::CompareDocument { .. } => Outcome::Compared { document: ComparedDocument::Same, drift: Vec::new() },
            Effect::ReadPersona { .. } => {
                Outcome::Persona(Some(PersonaTexts { skill: "# Skill\n".to_owned(), experience: None }))
            }
            Effect::HoldPlaceholder { .. } => Outcome::Placeholder(Some(SuccessorWindow {
                session: "work".to_owned(),
                session_number: None,
                size: (80, 24),
                cwd: None,
            })),
            Effect::Start(_) => {
                let number = 10 + u32::try_from(self.started.len()).expect("few");
                Outcome::Started(Started::Running {
                    pane: PaneRef { server: SERVER, pane: number, pid: 100 + number },
                    process: Some(Process { pid: 100 + number, start_ticks: 1 }),
                })
            }
            Effect::AwaitReady { .. } | Effect::AwaitIdle { .. } | Effect::LookAtTurn { .. } => {
                Outcome::Readiness(Readiness::Ready)
            }
            Effect::CheckAutoHandoff { .. } => {
                let other = ProfileChoice { profile: "demo".to_owned(), model: Some("small".to_owned()) };
                let persona =
                    PersonaFacts { exists: true, has_skill: true, fallbacks: vec![other], ..PersonaFacts::default() };
                Outcome::AutoHandoffCheck(Box::new(AutoHandoffCheck::new(Some(0), persona)))
            }
            Effect::ReadContextUsage { .. } => Outcome::ContextUsage(None),
            Effect::ReadLimit { .. } => Outcome::Limit(None),
            _ => Outcome::Done,
        }
    }
}

/// Nobody knows whether the text was typed.
pub(crate) fn unknown() -> Instead {
    Instead::Outcome(Outcome::Typed(Typed::Unknown { reason: "not_seen".to_owned() }))
}

/// What is read of the document.
pub(crate) fn read(document: DocumentRead) -> Instead {
    Instead::Outcome(Outcome::Document(document))
}

/// What the screen shows.
pub(crate) fn seen(readiness: Readiness) -> Instead {
    Instead::Outcome(Outcome::Readiness(readiness))
}

fn whole(text: &str) -> DocumentRead {
    if text.is_empty() {
        return DocumentRead::Missing;
    }
    DocumentRead::Whole { text: text.to_owned(), sha256: tasuki::core::text::sha256(text.as_bytes()) }
}

/// What the examination of a document finds that has so many faults that matter.
pub(crate) fn examined(text: &str, faults: usize) -> Outcome {
    let fault = DocumentFault { grade: FaultGrade::Fix.into(), said: "a fault".to_owned(), ..DocumentFault::default() };
    Outcome::Examined(Box::new(Examination {
        document: whole(text),
        facts: Box::default(),
        faults: vec![fault; faults],
        redacted: None,
        environment: EnvironmentSearch::Clean,
    }))
}
