//! The session of an agent that was handed off, opened again: what it is, what it never becomes, and when it is
//! refused.

use crate::support::ack_world::{AckWorld, DEAD, HEIR};
use serde_json::{Value, json};
use tasuki::core::effect::{Effect, EffectKey, Outcome, Readiness, StartAgent, Started};
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{HookEvent, HookKind, SessionReason};
use tasuki::core::id::{AgentId, ErrorId};
use tasuki::core::pane::{PaneRef, Process, ServerId};
use tasuki::core::rows::agent::{Agent, AgentState};
use tasuki::core::rows::handoff::{HandoffError, Step};
use tasuki::core::view;

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 9, pid: 49 };

/// A handoff of an agent whose session is known, with a successor in another tmux session.
fn briefed() -> AckWorld {
    let mut world = AckWorld::new();
    let dead = agent_mut(&mut world, DEAD);
    (dead.session.id, dead.cwd) = (Some("s-1".to_owned()), Some("/w".to_owned()));
    (dead.tmux_session, dead.transcript_path) = (Some("old".to_owned()), Some("/t.jsonl".to_owned()));
    agent_mut(&mut world, HEIR).tmux_session = Some("new".to_owned());
    world.begin("immediate", "# Work\n");
    world
}

fn agent_mut<'w>(world: &'w mut AckWorld, id: &str) -> &'w mut Agent {
    world.state.agents.get_mut(&id.parse().expect("an id")).expect("it is there")
}

fn agent(world: &AckWorld, id: &str) -> Agent {
    world.state.agents[&id.parse::<AgentId>().expect("an id")].clone()
}

fn reopen(world: &mut AckWorld) -> Value {
    let request = json!({"v": 1, "kind": "handoff_reopen", "handoff_id": world.id});
    world.ask(&request)
}

fn refusal(answer: &Value) -> (u64, String) {
    (answer["status"].as_u64().expect("a status"), answer["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// The start that is being asked for.
fn start(world: &AckWorld) -> (EffectKey, StartAgent) {
    let starts = world.state.outbox.iter().filter_map(|(key, pending)| match &pending.effect {
        Effect::Start(plan) => Some((*key, plan.clone())),
        _ => None,
    });
    let starts: Vec<_> = starts.collect();
    let [start] = &starts[..] else { panic!("one start: {starts:?}") };
    start.clone()
}

fn settle(world: &mut AckWorld, key: EffectKey, outcome: Outcome) {
    world.decide(Event::Settled { key, outcome });
    world.go_on();
}

/// The process runs in its pane; its screen is waited for.
fn runs(world: &mut AckWorld) -> (AgentId, EffectKey) {
    let (key, plan) = start(world);
    settle(world, key, Outcome::Started(Started::Running { pane: PANE, process: None }));
    let waits = |effect: &Effect| matches!(effect, Effect::AwaitReady { agent_id, .. } if *agent_id == plan.agent_id);
    let key = world.state.outbox.iter().find(|(_, pending)| waits(pending)).map(|(key, _)| *key);
    (plan.agent_id, key.expect("its screen is waited for"))
}

/// It runs, and the request has its answer.
fn reopened(world: &mut AckWorld) -> AgentId {
    assert_eq!(reopen(world), Value::Null, "the answer comes when it runs");
    let (agent_id, key) = runs(world);
    settle(world, key, Outcome::Readiness(Readiness::Ready));
    agent_id
}

fn last_answer(world: &AckWorld) -> Value {
    world.answers.iter().rfind(|(_, answer)| answer["kind"] == "handoff_reopen").expect("an answer").1.clone()
}

#[test]
fn the_command_and_how_to_read_the_conversation_stand_in_view_and_briefing() {
    let world = briefed();
    assert_eq!(world.view()["resume_command"], "demo --session s-1");
    let dead = view::agent(&agent(&world, DEAD), &world.state.settings);
    assert_eq!(dead.resume_command.as_deref(), Some("demo --session s-1"));
    let read = format!("`/opt/tasuki --home /h read {} --find", world.id.short());
    let [briefing] = &world.texts("You take over")[..] else { panic!("one briefing: {:?}", world.typed) };
    assert!(briefing.contains(&read) && briefing.contains("`demo --session s-1`"), "{briefing}");
}

#[test]
fn without_a_transcript_and_a_session_the_briefing_names_neither() {
    let mut world = AckWorld::new();
    world.begin("immediate", "# Work\n");
    assert_eq!(world.view()["resume_command"], Value::Null);
    let [briefing] = &world.texts("You take over")[..] else { panic!("one briefing") };
    assert!(!briefing.contains(" read ") && !briefing.contains("--session"), "{briefing}");
}

#[test]
fn a_session_is_opened_beside_the_successor_and_changes_nobody_else() {
    let mut world = briefed();
    let (dead, heir, handoff) = (agent(&world, DEAD), agent(&world, HEIR), world.view());
    assert_eq!(reopen(&mut world), Value::Null);
    let (_, plan) = start(&world);
    assert_eq!((plan.reopens.as_deref(), plan.profile.as_str(), plan.previous), (Some("s-1"), "demo", None));
    assert_eq!((plan.cwd.as_deref(), plan.session.as_str()), (Some("/w"), "new"), "beside the successor");
    let (agent_id, key) = runs(&mut world);
    settle(&mut world, key, Outcome::Readiness(Readiness::Ready));
    let answer = last_answer(&world);
    let expected = json!({"status": "reopened", "handoff_id": world.id, "agent_id": agent_id, "pane": "%9"});
    assert_eq!((&answer["status"], &answer["result"]), (&json!(200), &expected));
    let seen = json!(view::agent(&agent(&world, &agent_id.to_string()), &world.state.settings));
    for (field, value) in [
        ("reopened", json!(true)),
        ("reopened_from", json!(DEAD)),
        ("persona_slug", Value::Null),
        ("previous_agent_id", Value::Null),
        ("state", json!("idle")),
        ("pane", json!("%9")),
    ] {
        assert_eq!(seen[field], value, "{field}");
    }
    assert_eq!((agent(&world, DEAD), agent(&world, HEIR), world.view()), (dead, heir, handoff));
}

#[test]
fn nothing_is_typed_to_it_and_no_request_makes_it_an_agent_of_the_flow() {
    let mut world = briefed();
    let agent_id = reopened(&mut world);
    let typed = world.typed.len();
    let asked = [
        json!({"v": 1, "kind": "agent_send", "agent_id": agent_id, "text": "hello"}),
        json!({"v": 1, "kind": "handoff", "agent_id": agent_id, "reason": "r"}),
        json!({"v": 1, "kind": "agent_shutdown", "agent_id": agent_id}),
    ];
    for request in &asked {
        assert_eq!(refusal(&world.ask(request)), (400, "no_persona".to_owned()), "{request}");
    }
    world.pass(60 * 60_000);
    assert_eq!(world.typed.iter().skip(typed).filter(|(to, _)| *to == agent_id).count(), 0);
    let shutdown = json!({"v": 1, "kind": "agent_shutdown", "agent_id": agent_id, "force": true});
    world.ask(&shutdown);
    world.decide(Event::AgentExit { agent_id, how: Exit::Dead });
    assert_eq!(agent(&world, &agent_id.to_string()).state, AgentState::Ended);
    assert!(world.errors.iter().all(|error| error["agent_id"] != json!(agent_id)), "{:?}", world.errors);
}

/// Both processes have the same session of the CLI: what tells them apart is the agent's id, or the pane.
#[test]
fn its_events_are_its_own_and_late_ones_of_the_ended_agent_are_not() {
    let mut world = briefed();
    assert_eq!(reopen(&mut world), Value::Null);
    let (agent_id, key) = runs(&mut world);
    let own = agent_id.to_string();
    let (dead, heir) = (agent(&world, DEAD), agent(&world, HEIR));
    let event = |kind, of: Option<AgentId>, pane: Option<u32>| {
        let mut event = HookEvent { agent_id: of, pane, ..HookEvent::new(kind) };
        event.session_id = Some("s-1".to_owned());
        event
    };
    let begun =
        HookEvent { reason: Some(SessionReason::Replaced), ..event(HookKind::SessionStart, Some(agent_id), Some(9)) };
    world.decide(Event::Hook(Box::new(begun)));
    assert_eq!(agent(&world, &own).session.id.as_deref(), Some("s-1"));
    settle(&mut world, key, Outcome::Readiness(Readiness::Ready));
    world.decide(Event::Hook(Box::new(event(HookKind::PromptSubmit, Some(agent_id), Some(9)))));
    assert_eq!(agent(&world, &own).state, AgentState::Busy);
    let dead_id = DEAD.parse().expect("an id");
    world.decide(Event::Hook(Box::new(event(HookKind::Stop, Some(dead_id), Some(3)))));
    world.decide(Event::Hook(Box::new(event(HookKind::SessionEnd, Some(dead_id), None))));
    assert_eq!(agent(&world, &own).state, AgentState::Busy, "that was not its turn");
    world.decide(Event::Hook(Box::new(event(HookKind::Stop, None, Some(9)))));
    assert_eq!(agent(&world, &own).state, AgentState::Idle);
    assert_eq!((agent(&world, DEAD), agent(&world, HEIR)), (dead, heir));
}

#[test]
fn a_dialog_or_an_unknown_screen_is_the_persons_matter() {
    for (readiness, state) in [
        (Readiness::Blocked { screen: "trust?".to_owned() }, AgentState::Blocked),
        (Readiness::NotReady { screen: "?".to_owned() }, AgentState::Idle),
    ] {
        let mut world = briefed();
        assert_eq!(reopen(&mut world), Value::Null);
        let (agent_id, key) = runs(&mut world);
        settle(&mut world, key, Outcome::Readiness(readiness));
        assert_eq!(last_answer(&world)["result"]["status"], "reopened");
        assert_eq!(agent(&world, &agent_id.to_string()).state, state);
        assert!(world.errors.is_empty(), "{:?}", world.errors);
    }
}

#[test]
fn a_screen_that_shows_nothing_in_time_is_left_to_the_person() {
    let mut world = briefed();
    assert_eq!(reopen(&mut world), Value::Null);
    let (agent_id, _) = runs(&mut world);
    world.pass(2 * 60_000);
    assert_eq!(last_answer(&world)["result"]["status"], "reopened");
    assert_eq!(agent(&world, &agent_id.to_string()).state, AgentState::Idle);
    assert!(world.state.outbox.is_empty() && world.errors.iter().all(|error| error["agent_id"] != json!(agent_id)));
}

#[test]
fn it_is_refused_where_it_can_not_be() {
    let no_handoff = json!({"v": 1, "kind": "handoff_reopen", "handoff_id": "none"});
    assert_eq!(refusal(&briefed().ask(&no_handoff)), (404, "no_handoff".to_owned()));
    let refused = |change: &dyn Fn(&mut AckWorld)| {
        let mut world = briefed();
        change(&mut world);
        let answer = reopen(&mut world);
        assert!(world.state.outbox.is_empty(), "nothing is started: {:?}", world.state.outbox);
        refusal(&answer)
    };
    let no_session = |world: &mut AckWorld| {
        agent_mut(world, DEAD).session.id = None;
        let id = world.id;
        world.state.handoffs.get_mut(&id).expect("it is there").session.id = None;
    };
    assert_eq!(refused(&no_session), (400, "no_resume".to_owned()));
    let no_words = |world: &mut AckWorld| {
        world.state.settings.profiles.get_mut("demo").expect("it is there").resume.clear();
    };
    assert_eq!(refused(&no_words), (400, "no_resume".to_owned()));
    assert_eq!(refused(&|world| world.state.server = None), (503, "no_tmux".to_owned()));
    assert_eq!(refused(&|world| agent_mut(world, DEAD).state = AgentState::Busy), (409, "not_ended".to_owned()));
    // Its pane was closed, and its CLI survives that: the CLI would have the same session open twice.
    let survives = |world: &mut AckWorld, step, error: Option<(Step, &str)>| {
        let dead = agent_mut(world, DEAD);
        (dead.state, dead.process) = (AgentState::Lost, Some(Process { pid: 4711, start_ticks: 1 }));
        let id = world.id;
        let handoff = world.state.handoffs.get_mut(&id).expect("it is there");
        handoff.step = step;
        handoff.error = error.map(|(step, code)| {
            let (message, hint) = (String::new(), String::new());
            HandoffError { error_id: ErrorId(uuid::Uuid::nil()), step, code: code.to_owned(), message, hint }
        });
    };
    let not_ended = (409, "not_ended".to_owned());
    assert_eq!(refused(&|world| survives(world, Step::Ending, None)), not_ended);
    let stuck = Some((Step::Ending, "did_not_exit"));
    assert_eq!(refused(&|world| survives(world, Step::Failed, stuck)), not_ended);
    for (step, error) in [(Step::Done, None), (Step::Failed, Some((Step::Starting, "no_tmux")))] {
        let mut world = briefed();
        survives(&mut world, step, error);
        assert_eq!(reopen(&mut world), Value::Null, "its end was waited for: {step:?}");
    }
}

#[test]
fn a_session_is_open_once_and_can_be_opened_again_after_its_end() {
    let mut world = briefed();
    assert_eq!(reopen(&mut world), Value::Null);
    assert_eq!(refusal(&reopen(&mut world)), (409, "already_open".to_owned()), "also while it starts");
    let (key, plan) = start(&world);
    settle(&mut world, key, Outcome::Started(Started::Died));
    let failed: Vec<(u64, String)> = world.answers.values().map(refusal).collect();
    assert!(failed.contains(&(502, "start_failed".to_owned())), "{failed:?}");
    assert_eq!(agent(&world, &plan.agent_id.to_string()).state, AgentState::Ended);
    let again = reopened(&mut world);
    assert_ne!(again, plan.agent_id);
    assert_eq!(refusal(&reopen(&mut world)), (409, "already_open".to_owned()));
}
