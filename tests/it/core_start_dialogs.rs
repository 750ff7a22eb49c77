//! Agents whose start waits at a dialog, and what the operator is told of them.

use crate::support::decided::Decided;
use crate::support::facts::demo_facts;
use serde_json::json;
use tasuki::core::decision::Decision;
use tasuki::core::effect::{Effect, Outcome, Readiness, Started};
use tasuki::core::event::{Event, Exit};
use tasuki::core::hook::{HookEvent, HookKind};
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneRef, Process, ServerId};
use tasuki::core::rows::agent::AgentState;
use tasuki::core::settings::ProfileFacts;

const PANE: PaneRef = PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 };

/// A core without agents, whose profile reports neither context nor limits.
fn new_core() -> Decided {
    let profile = ProfileFacts { reports_context: false, shows_limits: false, ..demo_facts() };
    Decided::new(PANE.server, profile, [])
}

fn dialog() -> Readiness {
    Readiness::Blocked { screen: "1. Yes".to_owned() }
}

/// A new agent of persona `dev` that is starting in its pane.
fn starting(core: &mut Decided) -> AgentId {
    let asked = json!({"v": 1, "kind": "agent_create", "persona_slug": "dev", "profile": "demo"});
    let started = core.ask("r1", &asked);
    let key = started.effects.iter().find(|(_, row)| matches!(row.effect, Effect::Start(_))).expect("it starts").0;
    let process = Some(Process { pid: 42, start_ticks: 1 });
    core.decide(Event::Settled { key, outcome: Outcome::Started(Started::Running { pane: PANE, process }) });
    *started.agents.keys().next().expect("its row")
}

/// The same; its start waits at a dialog, and the decision has told of the dialog.
fn waiting_at_a_dialog(core: &mut Decided) -> (AgentId, Decision) {
    let agent_id = starting(core);
    let decision = look_at_start(core, dialog());
    (agent_id, decision)
}

/// The look at the screen of the agent that is starting.
fn look_at_start(core: &mut Decided, readiness: Readiness) -> Decision {
    let waits = |effect: &Effect| matches!(effect, Effect::AwaitReady { .. });
    let key = core.state.outbox.iter().find(|(_, row)| waits(&row.effect)).map(|(key, _)| *key);
    core.decide(Event::Settled { key: key.expect("it is looked at"), outcome: Outcome::Readiness(readiness) })
}

/// The first failure asked for an answer to a dialog that was gone, and the second one did not name the dialog.
#[test]
fn an_agent_that_ends_at_the_dialog_of_its_start_leaves_one_failure() {
    for is_looked_at in [false, true] {
        let mut core = new_core();
        let (agent_id, asks) = waiting_at_a_dialog(&mut core);
        let [first] = &asks.errors[..] else { panic!("one failure: {:?}", asks.errors) };
        assert!(first.message.contains("A dialog is open") && asks.dismissed.is_empty(), "{first:?}");
        // Somebody answers "No", and the CLI ends.
        if is_looked_at {
            core.pass(2_000);
            look_at_start(&mut core, Readiness::Gone { screen: String::new() });
        }
        core.decide(Event::AgentExit { agent_id, how: Exit::Dead });
        let over = core.pass(2_000);
        let [second] = &over.errors[..] else { panic!("one failure: {:?}", over.errors) };
        assert_eq!(over.dismissed, [first.error_id], "the first one is withdrawn");
        assert_eq!((second.code.as_str(), second.agent_id), ("start_failed", Some(agent_id)));
        let message = "The agent ended at a dialog in its pane, before it was ready; its screen ended: 1. Yes";
        assert_eq!(second.message, message);
        assert_eq!(second.hint, "Start another agent, and answer its dialog so that the agent continues.");
        assert_eq!(core.state.agents[&agent_id].state, AgentState::Ended);
    }
}

/// The hint spoke of a pane that tasuki had left as it was, and of a text to send there.
#[test]
fn an_agent_that_ends_at_its_start_is_not_looked_for_in_its_pane() {
    let mut core = new_core();
    let agent_id = starting(&mut core);
    look_at_start(&mut core, Readiness::Gone { screen: "no licence".to_owned() });
    core.decide(Event::AgentExit { agent_id, how: Exit::Dead });
    let over = core.pass(2_000);
    let [error] = &over.errors[..] else { panic!("one failure: {:?}", over.errors) };
    assert_eq!(error.message, "The agent ended before it was ready; its screen ended: no licence");
    let hint = &error.hint;
    assert!(hint.contains("run its command in a pane of your own") && !hint.contains("tasuki send"), "{hint}");
}

/// It was called busy, and the hint was to begin the handoff again with `--now`.
#[test]
fn a_handoff_of_an_agent_that_never_became_ready_says_so() {
    let mut core = new_core();
    let agent_id = starting(&mut core);
    look_at_start(&mut core, Readiness::NotReady { screen: "loading".to_owned() });
    core.pass(10 * 60_000);
    assert_eq!(core.state.agents[&agent_id].state, AgentState::Starting);
    let asked = json!({"v": 1, "kind": "handoff", "agent_id": agent_id.to_string(), "reason": "r", "now": true});
    core.ask("r2", &asked);
    let over = core.pass(11 * 60_000);
    let [error] = &over.errors[..] else { panic!("one failure: {:?}", over.errors) };
    assert_eq!((error.code.as_str(), error.step.as_deref()), ("agent_busy", Some("waiting")));
    assert_eq!(error.message, "The agent did not become ready before the time limit");
    assert!(!error.hint.contains("--now"), "{}", error.hint);
}

#[test]
fn a_dialog_that_stays_open_for_an_hour_leaves_one_failure_and_an_answered_one_its_own() {
    let mut core = new_core();
    let (agent_id, asks) = waiting_at_a_dialog(&mut core);
    core.pass(2_000);
    assert!(look_at_start(&mut core, dialog()).errors.is_empty(), "it is told once");
    let over = core.pass(60 * 60_000);
    assert_eq!((over.errors.len(), over.dismissed.clone()), (1, vec![asks.errors[0].error_id]));
    assert!(over.errors[0].hint.contains(&format!("tasuki send {} -", agent_id.short())), "{:?}", over.errors);
    let mut core = new_core();
    let (agent_id, _) = waiting_at_a_dialog(&mut core);
    core.decide(Event::Hook(Box::new(HookEvent {
        agent_id: Some(agent_id),
        ..HookEvent::new(HookKind::SessionStart)
    })));
    core.pass(2_000);
    let ready = look_at_start(&mut core, Readiness::Ready);
    assert_eq!(core.state.agents[&agent_id].state, AgentState::Idle);
    assert!(ready.errors.is_empty() && ready.dismissed.is_empty(), "the person dismisses it: the guide says so");
}
