//! Handoffs decided without a machine: what concerns a step is told to that step alone.

use crate::support::ack_world::{AckWorld, DEAD, HEIR, MINUTE};
use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::{Value, json};
use tasuki::contract::document::DocumentCheck;
use tasuki::core::effect::{Effect, EffectKey, Outcome, PersonaTexts};
use tasuki::core::event::{Event, Exit};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, Refusal, ServerId, Typed};
use tasuki::core::request::Successor;
use tasuki::core::rows::agent::{Agent, AgentState, Primed};
use tasuki::core::rows::handoff::{Handoff, Step};
use tasuki::core::rows::outbox::{Pending, Waiter};

const SERVER: ServerId = ServerId { pid: 7, start_time: 1 };

struct World {
    core: Decided,
}

fn id(number: u128) -> AgentId {
    AgentId(uuid::Uuid::from_u128(number))
}

impl World {
    /// Two agents of one persona: the first is at work, the second has just started and is about to be primed. The
    /// first is to hand off to the second.
    fn with_a_successor_that_is_being_primed() -> World {
        let agents = [(1, AgentState::Busy), (2, AgentState::Idle)].map(|(number, state)| {
            let mut agent = Agent::new(id(number.into()), "demo".to_owned(), String::new());
            agent.persona_slug = "dev".parse().ok();
            (agent.state, agent.ours, agent.hooks_seen) = (state, true, true);
            agent.pane = Some(PaneRef { server: SERVER, pane: number, pid: number });
            agent
        });
        let mut core = Decided::new(SERVER, demo_facts(), agents);
        let effect = EffectKey(900);
        let pending = Pending {
            waiter: Waiter::Agent(id(2)),
            effect: Effect::ReadPersona { persona: "dev".parse().expect("a slug") },
        };
        core.state.outbox.insert(effect, pending);
        core.state.next_effect = 901;
        core.state.agents.get_mut(&id(2)).expect("it is there").primed = Primed::Reading { effect };
        let mut world = World { core };
        world.ask();
        world.core.decide(Event::Settled {
            key: effect,
            outcome: Outcome::Persona(Some(PersonaTexts { skill: "Skill.".to_owned(), experience: None })),
        });
        world
    }

    fn ask(&mut self) {
        let successor = json!({ "agent_id": id(2) });
        let request = json!({"v": 1, "kind": "handoff", "agent_id": id(1), "reason": "r", "successor": successor});
        let decision = self.core.ask("r1", &request);
        assert_eq!(self.core.state.handoffs.len(), 1, "{:?}", decision.answers);
    }

    fn handoff(&self) -> &Handoff {
        self.core.state.handoffs.values().next().expect("one")
    }

    /// The text that is being typed to that agent.
    fn typed_to(&self, agent: AgentId) -> Option<EffectKey> {
        let is_its = |effect: &Effect| matches!(effect, Effect::Type(text) if text.agent_id == agent);
        self.core.state.outbox.iter().find(|(_, effect)| is_its(effect)).map(|(key, _)| *key)
    }
}

/// The agent that is to take over was started by itself, and is primed by itself: that this goes wrong is told of that
/// agent, and the handoff, which waits for another one, goes on.
#[test]
fn the_priming_of_a_successor_to_be_is_no_matter_of_a_handoff_that_waits() {
    let mut world = World::with_a_successor_that_is_being_primed();
    assert_eq!(world.handoff().step, Step::Waiting);
    let key = world.typed_to(id(2)).expect("its skill is typed");
    let refused = Outcome::Typed(Typed::Refused { reason: Refusal::NotReady });
    let decision = world.core.decide(Event::Settled { key, outcome: refused });
    assert_eq!((world.handoff().step, &world.handoff().error), (Step::Waiting, &None));
    let told: Vec<_> = decision.errors.iter().map(|error| (error.code.as_str(), error.agent_id)).collect();
    assert_eq!(told, [("priming_failed", Some(id(2)))]);
}

#[test]
fn another_text_than_the_provided_one_is_recorded_only_when_a_person_says_so() {
    let mut world = AckWorld::new();
    world.put_there = Some("# Somebody else's\n".to_owned());
    world.begin("immediate", "# Work\n");
    let view = world.view();
    assert_eq!((&view["step"], &view["error"]["code"]), (&json!("failed"), &json!("document_unsafe")), "{view}");
    assert_eq!((&view["error"]["step"], &view["record"]), (&json!("recording"), &Value::Null), "{view}");
    assert!(world.typed.is_empty(), "nobody was briefed with it: {:?}", world.typed);
    let reasons = |view: &Value| -> Vec<String> {
        let points = view["checklist"].as_array().expect("points");
        points[..7].iter().map(|point| point["reason"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let failed = reasons(&view);
    assert_eq!(failed[0], "no agent was asked: the document was provided");
    assert!(failed[1..6].iter().all(|reason| reason == "the handoff failed before"), "{failed:?}");
    let retry = json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id});
    world.ask(&retry);
    assert!(world.handoff().record.is_some(), "a retry takes what a person left there: {}", world.view());
}

/// What was not searched for credentials is shown to nobody: neither to the successor nor in a view.
#[test]
fn a_document_that_could_not_be_examined_is_recorded_and_not_quoted() {
    let mut world = AckWorld::new();
    world.is_blind = true;
    world.begin("immediate", "---\ncheckpoint: the key is hunter2\n---\nThe key is hunter2.\n");
    let view = world.view();
    assert_eq!(view["step"], "acknowledging", "{view}");
    assert!(view["record"].is_object() || view["recorded_at"].is_string(), "{view}");
    assert!(view["warnings"].to_string().contains("was not checked"), "{view}");
    assert!(!view.to_string().contains("hunter2") && !format!("{:?}", world.typed).contains("hunter2"), "{view}");
}

#[test]
fn a_document_that_could_not_be_examined_waits_for_the_person_who_wants_to_see_it() {
    let mut world = AckWorld::new();
    world.is_blind = true;
    world.begin_with("immediate", "# Work\n", true);
    let view = world.view();
    assert_eq!((&view["step"], view["held_since"].is_string()), (&json!("checking"), true), "{view}");
    assert!(world.told.iter().any(|json| json["code"] == "document_held"), "{:?}", world.told);
    assert!(world.typed.is_empty(), "{:?}", world.typed);
    let accept = json!({"v": 1, "kind": "handoff_accept", "handoff_id": world.id});
    world.ask(&accept);
    assert_eq!(world.step(), "acknowledging", "{}", world.view());
}

#[test]
fn a_retry_after_the_successors_pane_was_closed_starts_another_one_before_its_end_is_known() {
    let mut world = AckWorld::new();
    world.refusal = Some(Refusal::PaneGone);
    world.begin("immediate", "# Work\n");
    let failed = world.handoff().error.clone().expect("the briefing has failed");
    assert_eq!((failed.step, failed.code.as_str()), (Step::Briefing, "pane_gone"));
    let former = world.handoff().successor_id.expect("a successor");
    assert!(world.state.agents[&former].state.is_live(), "nobody has heard of its end");
    world.state.handoffs.get_mut(&world.id).expect("a handoff").successor = Successor::New;
    world.refusal = None;
    let answer = world.ask(&json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id}));
    assert_eq!((world.step(), world.typed.len()), ("starting", 0), "{answer}");
    assert_eq!(world.handoff().former_successors, [former]);
}

/// A successor that tasuki did not start is not started again: a plain retry would only fail once more.
#[test]
fn the_hint_after_the_end_of_a_successor_that_already_ran_begins_with_a_new_one() {
    let named = |world: &AckWorld| {
        let error = world.handoff().error.clone().expect("it has failed");
        let command = format!("tasuki retry {} --successor new", world.id.short());
        let (_, first) = error.hint.split_once("tasuki retry").expect("a command");
        assert!(format!("tasuki retry{first}").starts_with(&command), "{:?}: {}", error.step, error.hint);
        error.step
    };
    let mut world = AckWorld::new();
    world.refusal = Some(Refusal::PaneGone);
    world.begin("immediate", "# Work\n");
    assert_eq!(named(&world), Step::Briefing);
    for step in [Step::Priming, Step::Briefing, Step::Reading, Step::Acknowledging] {
        let mut world = AckWorld::briefed("immediate");
        world.state.handoffs.get_mut(&world.id).expect("a handoff").step = step;
        world.decide(Event::AgentExit { agent_id: HEIR.parse().expect("an id"), how: Exit::Dead });
        world.pass(MINUTE);
        assert_eq!(named(&world), step);
    }
}

/// Nobody records a document as it is while a person waits for its repair.
#[test]
fn an_agent_that_a_person_wants_to_repair_its_document_and_that_can_t_be_asked_is_not_ended() {
    let mut world = AckWorld::new();
    let author: AgentId = DEAD.parse().expect("an id");
    world.state.agents.get_mut(&author).expect("an agent").state = AgentState::Idle;
    world.put_there = Some("# Work\n".to_owned());
    let request = json!({"v": 1, "kind": "handoff", "agent_id": DEAD, "reason": "r", "review": true});
    let answer = world.ask(&request);
    world.id = answer["result"]["handoff_id"].as_str().expect("it begins").parse().expect("an id");
    let rework = json!({"v": 1, "kind": "handoff_rework", "handoff_id": world.id, "note": "Name the branch."});
    for review in [true, false] {
        assert_eq!((world.step(), world.view()["held_since"].is_string()), ("checking", true), "{}", world.view());
        let examined = &mut world.state.handoffs.get_mut(&world.id).expect("a handoff").examined;
        // What a failed step leaves after the one repair that tasuki asks for by itself.
        (examined.review, examined.check, examined.reworks) = (review, DocumentCheck::Fix, 1);
        world.refusal = Some(Refusal::Draft);
        world.ask(&rework);
    }
    let view = world.view();
    assert_eq!((&view["step"], &view["error"]["code"]), (&json!("failed"), &json!("not_delivered")), "{view}");
    assert!(world.handoff().record.is_none() && world.state.agents[&author].state.is_live(), "{view}");
    world.refusal = None;
    let asked = world.typed.len();
    world.ask(&json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id}));
    assert!(world.typed[asked].1.contains("Name the branch."), "a retry asks with the same note: {:?}", world.typed);
}

/// A retry does not always take the document as it is: the hint says what it does.
#[test]
fn the_hint_of_a_repair_that_did_not_come_says_what_a_retry_does() {
    let hint = |note: bool, reworks: u64, review: bool| {
        let mut world = AckWorld::new();
        let author: AgentId = DEAD.parse().expect("an id");
        world.state.agents.get_mut(&author).expect("an agent").state = AgentState::Idle;
        world.put_there = Some("# Work\n".to_owned());
        let answer = world.ask(&json!({"v": 1, "kind": "handoff", "agent_id": DEAD, "reason": "r", "review": true}));
        world.id = answer["result"]["handoff_id"].as_str().expect("it begins").parse().expect("an id");
        world.state.agents.get_mut(&author).expect("an agent").state = AgentState::Busy;
        world.ask(&json!({"v": 1, "kind": "handoff_rework", "handoff_id": world.id, "note": "Name the branch."}));
        let examined = &mut world.state.handoffs.get_mut(&world.id).expect("a handoff").examined;
        assert!(examined.note.is_some() && examined.reworks == 0, "it waits for the agent's turn");
        examined.note = examined.note.take().filter(|_| note);
        (examined.reworks, examined.review) = (reworks, review);
        world.pass(world.state.settings.limits.checking_ms);
        let error = world.handoff().error.clone().expect("it has failed");
        assert_eq!((error.step, error.code.as_str()), (Step::Checking, "stop_never_came"));
        error.hint
    };
    for (note, reworks, review, says) in [
        (true, 0, true, "a retry asks the agent again"),
        (true, 1, false, "a retry asks the agent again"),
        (false, 0, false, "a retry checks the document again"),
        (false, 1, true, "a retry checks the document again"),
        (false, 1, false, "a retry takes the document as it is"),
    ] {
        let hint = hint(note, reworks, review);
        assert!(hint.ends_with(says), "{note} {reworks} {review}: {hint}");
    }
}

/// The skill can't be read before the step's limit has passed. Who looks at the pane after that finds it as it is.
#[test]
fn a_skill_that_is_read_after_its_step_has_failed_is_typed_to_nobody() {
    let mut world = AckWorld::new();
    let heir: AgentId = HEIR.parse().expect("an id");
    world.state.agents.get_mut(&heir).expect("an agent").primed = Primed::Never;
    world.begin("immediate", "# Work\n");
    let reading = |world: &AckWorld| {
        let is_its = |pending: &Pending| matches!(pending.effect, Effect::ReadPersona { .. });
        world.state.outbox.iter().find(|(_, pending)| is_its(pending)).map(|(key, _)| *key)
    };
    let key = reading(&world).expect("its skill is being read");
    world.pass(world.state.settings.limits.priming_ms);
    let error = world.handoff().error.clone().expect("it has failed");
    assert_eq!((error.step, error.code.as_str()), (Step::Priming, "not_delivered"));
    let read = || Outcome::Persona(Some(PersonaTexts { skill: "Skill.".to_owned(), experience: None }));
    world.decide(Event::Settled { key, outcome: read() });
    assert!(world.state.outbox.is_empty(), "{:?}", world.state.outbox);
    world.ask(&json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id}));
    let key = reading(&world).expect("a retry reads it again");
    world.decide(Event::Settled { key, outcome: read() });
    world.go_on();
    assert_eq!(world.texts("Skill.").len(), 1, "{:?}", world.typed);
}

/// Its `persona.toml` may ask for `check = "hold"`, which must not be dropped because of a typing error in it.
#[test]
fn a_handoff_of_a_persona_that_can_not_be_read_is_refused_with_the_reason() {
    let mut agent = Agent::new(id(1), "demo".to_owned(), String::new());
    agent.persona_slug = "dev".parse().ok();
    (agent.state, agent.ours, agent.hooks_seen) = (AgentState::Idle, true, true);
    agent.pane = Some(PaneRef { server: SERVER, pane: 1, pid: 1 });
    let mut core = Decided::new(SERVER, demo_facts(), [agent]);
    core.persona.broken = Some("persona.toml, line 2: unknown field".to_owned());
    let request = json!({"v": 1, "kind": "handoff", "agent_id": id(1), "reason": "r"});
    let decision = core.ask("r1", &request);
    let answer = decision.answers[0].to_json(&core.now);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(400), &json!("bad_persona")), "{answer}");
    assert_eq!(answer["error"]["message"], "persona.toml, line 2: unknown field");
    assert!(core.state.handoffs.is_empty());
    core.persona.broken = None;
    core.ask("r2", &request);
    assert_eq!(core.state.handoffs.len(), 1);
}
