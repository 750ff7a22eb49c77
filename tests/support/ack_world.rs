//! An urgent handoff in the pure core, with an injected clock. The agent is dead, the request provides the document,
//! and the successor runs already. Effects succeed at once, unless a test says otherwise.

use super::facts::demo_facts;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tasuki::core::decision::Cycle;
use tasuki::core::effect::{
    ComparedDocument, Composed, DocumentRead, DocumentSource, Effect, EffectKey, EnvironmentSearch, Examination,
    Outcome, Posted, PublishPlan,
};
use tasuki::core::event::{Event, IncomingRequest, RequestFacts};
use tasuki::core::hook::{HookEvent, HookKind};
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::pane::{PaneRef, Refusal, ServerId, Typed};
use tasuki::core::persona::{PersonaFacts, PublishDefault};
use tasuki::core::request;
use tasuki::core::rows::agent::{Agent, AgentState, Primed};
use tasuki::core::rows::handoff::Handoff;
use tasuki::core::settings::{ProfileFacts, Settings, Target};
use tasuki::core::state::State;
use tasuki::core::time::Now;

pub(crate) const DEAD: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";
pub(crate) const HEIR: &str = "0b54f3f0-3c9f-4f16-8a43-4f3a6e1f2a10";
const SERVER: ServerId = ServerId { pid: 7, start_time: 1 };
pub(crate) const MINUTE: u64 = 60_000;

/// The state, the clock, and everything that the core's decisions have shown.
pub(crate) struct AckWorld {
    pub(crate) state: State,
    pub(crate) now: Now,
    turns: u64,
    pub(crate) journal: Vec<Value>,
    pub(crate) answers: BTreeMap<String, Value>,
    pub(crate) errors: Vec<Value>,
    /// The texts that were typed, each with its agent.
    pub(crate) typed: Vec<(AgentId, String)>,
    /// The notices and messages to the operator, or to a command.
    pub(crate) told: Vec<Value>,
    /// The reason for which typing is refused; none if it is not refused.
    pub(crate) refusal: Option<Refusal>,
    /// The outcome of each message to the operator or a command.
    pub(crate) notify: Outcome,
    document: String,
    /// The text that somebody else has written over the document; none if nobody has.
    pub(crate) put_there: Option<String>,
    /// Whether examining a document fails.
    pub(crate) is_blind: bool,
    /// More fields of the request for the handoff.
    pub(crate) options: Value,
    /// What the persona's file says about publishing.
    pub(crate) persona_publish: Option<PublishDefault>,
    /// The outcome of making the copy that is published; unless set, it succeeds.
    pub(crate) copied: Option<Outcome>,
    /// The outcome of each upload; unless set, it succeeds, with an address of its own.
    pub(crate) posted: Option<Posted>,
    /// The uploads that were made.
    pub(crate) uploads: Vec<PublishPlan>,
    pub(crate) id: HandoffId,
}

fn agent(id: &str, pane: u32) -> Agent {
    let mut agent = Agent::new(id.parse().expect("an id"), "demo".to_owned(), String::new());
    agent.persona_slug = "dev".parse().ok();
    agent.state = AgentState::Idle;
    agent.pane = Some(PaneRef { server: SERVER, pane, pid: 40 + pane });
    agent.primed = Primed::Done;
    agent.hooks_seen = true;
    agent
}

/// Effects of starting and of priming an agent are left in the outbox: a test settles them itself.
fn is_left(effect: &Effect) -> bool {
    matches!(effect, Effect::Start(_) | Effect::AwaitReady { .. } | Effect::ReadPersona { .. })
}

impl AckWorld {
    /// A world in which no handoff was requested yet.
    pub(crate) fn new() -> Self {
        let profile = ProfileFacts { screen_proof: true, reports_context: false, ..demo_facts() };
        let settings = Settings {
            profiles: BTreeMap::from([("demo".to_owned(), profile)]),
            command: "/opt/tasuki --home /h".to_owned(),
            requests_dir: "/h/spool/requests".to_owned(),
            ..Settings::default()
        };
        let mut dead = agent(DEAD, 3);
        dead.state = AgentState::Ended;
        let rows = [dead, agent(HEIR, 4)].map(|agent| (agent.agent_id, agent));
        let state = State { agents: BTreeMap::from(rows), server: Some(SERVER), settings, ..State::default() };
        AckWorld {
            state,
            now: Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 5_000 },
            turns: 0,
            journal: Vec::new(),
            answers: BTreeMap::new(),
            errors: Vec::new(),
            typed: Vec::new(),
            told: Vec::new(),
            refusal: None,
            notify: Outcome::Done,
            document: String::new(),
            put_there: None,
            is_blind: false,
            options: json!({}),
            persona_publish: None,
            copied: None,
            posted: None,
            uploads: Vec::new(),
            id: HandoffId(uuid::Uuid::nil()),
        }
    }

    /// A handoff whose successor was briefed and has ended the turn of its briefing.
    pub(crate) fn briefed(urgency: &str) -> Self {
        AckWorld::briefed_with(urgency, "# Work\n", Target::Operator, Target::Operator)
    }

    pub(crate) fn briefed_with(urgency: &str, document: &str, orchestrator: Target, escalation: Target) -> Self {
        let mut world = AckWorld::new();
        world.state.settings.orchestrator = orchestrator;
        world.state.settings.escalation = escalation;
        world.begin(urgency, document);
        assert_eq!(world.step(), "acknowledging", "{:?}", world.handoff());
        world
    }

    pub(crate) fn begin(&mut self, urgency: &str, document: &str) {
        self.begin_with(urgency, document, false);
    }

    pub(crate) fn begin_with(&mut self, urgency: &str, document: &str, review: bool) {
        let mut asked = json!({
            "v": 1, "kind": "handoff", "agent_id": DEAD, "reason": "context_loss", "author": "provided",
            "document": {"text": document}, "successor": {"agent_id": HEIR}, "tasks": ["task-1", "task-2"],
            "urgency": urgency, "review": review,
        });
        for (name, value) in self.options.as_object().into_iter().flatten() {
            asked[name] = value.clone();
        }
        let answer = self.ask(&asked);
        self.id = answer["result"]["handoff_id"].as_str().expect("it begins").parse().expect("an id");
        self.go_on();
    }

    pub(crate) fn handoff(&self) -> &Handoff {
        &self.state.handoffs[&self.id]
    }

    pub(crate) fn view(&self) -> Value {
        json!(tasuki::core::view::handoff(self.handoff(), &self.state.settings))
    }

    pub(crate) fn step(&self) -> &'static str {
        self.handoff().step.as_str()
    }

    pub(crate) fn decide(&mut self, event: Event) {
        self.turns += 1;
        let mut entropy = [0; 32];
        entropy[..8].copy_from_slice(&self.turns.to_le_bytes());
        let decision = tasuki::core::decide(&self.state, event, &Cycle { now: self.now, entropy });
        self.state.apply(&decision);
        self.journal.extend(decision.journal.into_iter().map(|(_, line)| line));
        self.errors.extend(decision.errors.iter().map(|row| json!(row.file())));
        for answer in decision.answers {
            self.answers.insert(answer.request_id.to_string(), answer.to_json(&self.now));
        }
    }

    /// Makes a request and carries out all effects; returns the answer, or null if there is none yet.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.turns += 1;
        let id = format!("r{}", self.turns);
        self.ask_as(&id, request);
        self.answers.get(&id).cloned().unwrap_or(Value::Null)
    }

    pub(crate) fn ask_as(&mut self, id: &str, request: &Value) {
        let persona = PersonaFacts {
            exists: true,
            has_skill: true,
            handoffs_dir: "/h/dev".to_owned(),
            publish: self.persona_publish.clone(),
            ..PersonaFacts::default()
        };
        let document = request["document"]["text"].as_str().map(|text| Ok(text.to_owned()));
        let facts = RequestFacts {
            persona: Some(("dev".parse().expect("a slug"), persona)),
            document,
            ..RequestFacts::default()
        };
        let read = request::read(request.to_string().as_bytes());
        let arrived = IncomingRequest { id: id.parse().expect("an id"), sha256: String::new(), read, facts };
        self.decide(Event::Request(Box::new(arrived)));
        self.go_on();
    }

    /// The successor sends an ACK. `changes`: fields with other values than usual; null removes a field.
    pub(crate) fn ack(&mut self, changes: &Value) -> Value {
        let mut ack = json!({
            "v": 1, "kind": "ack", "handoff_id": self.id, "agent_id": HEIR, "understanding": "to do both tasks",
            "starting_from": "step 2", "questions": [], "status": "ready_to_proceed",
        });
        for (name, value) in changes.as_object().into_iter().flatten() {
            ack[name] = value.clone();
            if value.is_null() {
                ack.as_object_mut().expect("an object").remove(name);
            }
        }
        self.ask(&ack)
    }

    /// Carries out all effects except those that are left to the test. An agent that gets a text ends its turn at once.
    pub(crate) fn go_on(&mut self) {
        for _ in 0..200 {
            let Some((key, effect)) = self
                .state
                .outbox
                .iter()
                .find(|(_, pending)| !is_left(pending))
                .map(|(key, pending)| (*key, pending.effect.clone()))
            else {
                return;
            };
            self.carry_out(key, effect);
        }
        panic!("effects do not end: {:?}", self.state.outbox);
    }

    fn carry_out(&mut self, key: EffectKey, effect: Effect) {
        let outcome = match effect {
            Effect::ComposeDocument { source, .. } => {
                if let DocumentSource::Text(text) = source {
                    self.document = text;
                }
                Outcome::Composed(Composed::Written)
            }
            Effect::ReadDocument { .. } => {
                let text = self.put_there.clone().unwrap_or_else(|| self.document.clone());
                let sha256 = tasuki::core::text::sha256(text.as_bytes());
                Outcome::Document(DocumentRead::Whole { text, sha256 })
            }
            Effect::Examine(_) if self.is_blind => Outcome::Failed { why: "a disk hangs".to_owned() },
            Effect::Examine(plan) => {
                let text = self.put_there.clone().unwrap_or_else(|| self.document.clone());
                let document = DocumentRead::Whole { text, sha256: plan.sha256 };
                let (facts, faults, redacted) = (Box::default(), Vec::new(), None);
                Outcome::Examined(Box::new(Examination {
                    document,
                    facts,
                    faults,
                    redacted,
                    environment: EnvironmentSearch::Clean,
                }))
            }
            Effect::CompareDocument { .. } => Outcome::Compared { document: ComparedDocument::Same, drift: Vec::new() },
            Effect::Type(plan) => {
                if let Some(reason) = self.refusal {
                    return self.decide(Event::Settled { key, outcome: Outcome::Typed(Typed::Refused { reason }) });
                }
                self.typed.push((plan.agent_id, plan.text));
                self.decide(Event::Settled { key, outcome: Outcome::Typed(Typed::Submitted { proven: true }) });
                return self.hear(&plan.agent_id, HookKind::Stop);
            }
            Effect::Notify(plan) => {
                self.told.push(plan.notice.json);
                self.notify.clone()
            }
            Effect::KeepCopy(plan) => self
                .copied
                .clone()
                .unwrap_or_else(|| Outcome::Copied { file_name: format!("{}.md", plan.stem), redacted_sha256: None }),
            Effect::Publish(plan) => {
                let url = Some(format!("https://x/{}", plan.number));
                self.uploads.push(plan);
                Outcome::Posted(self.posted.clone().unwrap_or(Posted::Done { url, is_public: false }))
            }
            Effect::NotifyOperator(notice) => {
                self.told.push(notice.json);
                Outcome::Done
            }
            _ => Outcome::Done,
        };
        self.decide(Event::Settled { key, outcome });
    }

    pub(crate) fn hear(&mut self, agent_id: &AgentId, kind: HookKind) {
        let event = HookEvent { agent_id: Some(*agent_id), ..HookEvent::new(kind) };
        self.decide(Event::Hook(Box::new(event)));
    }

    /// Lets time pass. Each deadline in between is decided when it is due.
    pub(crate) fn pass(&mut self, ms: u64) {
        let mut left = ms;
        loop {
            let next = self.state.next_deadline_ms(&self.now).unwrap_or(u64::MAX);
            let step = next.min(left);
            self.sleep(step);
            left -= step;
            if next > step || (left == 0 && step == 0 && next != 0) {
                return;
            }
            self.decide(Event::Deadlines);
            self.go_on();
            if left == 0 && self.state.next_deadline_ms(&self.now) != Some(0) {
                return;
            }
        }
    }

    /// Lets time pass without deciding any deadline.
    pub(crate) fn sleep(&mut self, ms: u64) {
        self.now.boot_ms += ms;
        self.now.wall_ms += i64::try_from(ms).expect("a short time");
    }

    /// Kills the sidecar and starts it again: agents and handoffs are written as rows and read again.
    pub(crate) fn restart(&mut self) {
        let text = serde_json::to_string(&(&self.state.agents, &self.state.handoffs)).expect("rows");
        let (agents, handoffs) = serde_json::from_str(&text).expect("rows");
        (self.state.agents, self.state.handoffs) = (agents, handoffs);
        self.state.rebase(&self.now);
    }

    /// The texts with this part that were typed to the successor.
    pub(crate) fn texts(&self, part: &str) -> Vec<&str> {
        let heir: AgentId = HEIR.parse().expect("an id");
        let of = self.typed.iter().filter(|(agent_id, text)| *agent_id == heir && text.contains(part));
        of.map(|(_, text)| text.as_str()).collect()
    }

    /// The journal's lines of one type.
    pub(crate) fn lines(&self, kind: &str) -> Vec<&Value> {
        self.journal.iter().filter(|line| line["type"] == kind).collect()
    }
}
