//! Turns whose end nobody reports: a turn pauses because something that the agent has started still runs, a text was
//! proven by the screen alone, or an operator says that a text has arrived. And what is left of an agent afterwards.

use crate::support::flow_world::{FlowWorld, Instead, Turn, outgoing, read, seen, unknown};
use serde_json::json;
use tasuki::contract::document::DocumentCheck;
use tasuki::core::effect::{DocumentRead, Readiness};
use tasuki::core::hook::{HookEvent, HookKind};
use tasuki::core::rows::agent::AgentState;
use tasuki::core::settings::NewSession;

const MINUTE: u64 = 60_000;

fn turn(kind: HookKind, id: &str) -> HookEvent {
    HookEvent { turn_id: Some(id.to_owned()), text: Some("<task-notification>".to_owned()), ..HookEvent::new(kind) }
}

/// Claude Code wakes itself under another turn id when what it waited for has ended.
#[test]
fn a_paused_turn_continues_under_another_id() {
    let mut world = FlowWorld::new().turn("instruction", Turn::Pauses).hand_off(&json!({}));
    assert_eq!(world.step(), "writing");
    world.hear_of(outgoing(), turn(HookKind::PromptSubmit, "t2"));
    assert_eq!(world.step(), "writing", "its document would be read before it is written");
    world.hear_of(outgoing(), turn(HookKind::Stop, "t2"));
    world.pass(0);
    assert_eq!((world.step(), world.handoff().warnings.as_slice()), ("done", [].as_slice()));
}

/// A server that the agent has started may run for ever.
#[test]
fn a_paused_turn_is_over_after_a_minute_if_its_document_is_there() {
    let mut world = FlowWorld::new().turn("instruction", Turn::Pauses).hand_off(&json!({}));
    world.pass(MINUTE);
    assert_eq!(world.step(), "writing", "what it has started may wake it, and then it writes its document");
    world.see_document(40);
    world.pass(MINUTE - 1);
    assert_eq!(world.step(), "writing", "a minute without a word is waited for");
    world.pass(1);
    assert_eq!(world.step(), "done", "{:?}", world.handoff());
}

/// Claude Code says after a minute that it waits for a prompt, also while what it has started runs.
#[test]
fn a_paused_turn_of_a_person_is_over_after_a_minute_whatever_its_cli_says_meanwhile() {
    let mut world = FlowWorld::new();
    world.hear_of(outgoing(), HookEvent::new(HookKind::PromptSubmit));
    world.hear_of(outgoing(), HookEvent { paused: true, ..HookEvent::new(HookKind::Stop) });
    world.pass(MINUTE - 1);
    world.hear_of(outgoing(), HookEvent::new(HookKind::Notification));
    assert_eq!(world.agent(&outgoing()).state, AgentState::Busy);
    world.pass(1);
    assert_eq!((world.agent(&outgoing()).state, world.agent(&outgoing()).has_paused), (AgentState::Idle, false));
}

/// A prompt of ours that was queued behind a turn which has paused is answered by the next turn.
#[test]
fn the_end_of_a_turn_that_was_queued_behind_a_paused_one_is_ours() {
    let mut world = FlowWorld::new().turn("instruction", Turn::Pauses).hand_off(&json!({}));
    world.change(&outgoing(), |agent| agent.our_turn.as_mut().expect("a turn").queued = true);
    world.hear_of(outgoing(), turn(HookKind::StopFailure, "t2"));
    world.pass(0);
    assert_eq!(world.failure(), Some(("writing", "agent_failed")), "{:?}", world.handoff());
}

#[test]
fn a_paused_turn_without_a_document_ends_at_the_limit_of_its_step() {
    let mut world = FlowWorld::new().turn("instruction", Turn::Pauses).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("writing", "stop_never_came")));
}

#[test]
fn a_skill_or_a_repair_that_is_answered_by_a_paused_turn_fails_nothing() {
    let mut world = FlowWorld::new().turn("priming", Turn::Pauses).hand_off(&json!({}));
    assert_eq!(world.step(), "priming");
    world.pass(MINUTE);
    assert_eq!(world.step(), "done", "{:?}", world.handoff());

    let mut world = FlowWorld::new().turn("rework", Turn::Pauses).hand_off(&json!({"review": true}));
    world.ask_of_it("handoff_rework", &json!({"note": "Name the branch."}));
    world.pass(4 * MINUTE);
    assert!(world.handoff().examined.held_since.is_none(), "what it waits for may be a part of the repair");
    world.pass(MINUTE);
    assert!(world.handoff().examined.held_since.is_some(), "{:?}", world.handoff());
}

/// Without its own events nobody would hear of the end of this turn.
#[test]
fn an_agent_whose_text_the_screen_has_proven_is_watched() {
    let mut world = FlowWorld::new().turn("instruction", Turn::GoesOn).hand_off(&json!({}));
    assert_eq!((world.step(), world.agent(&outgoing()).state), ("writing", AgentState::Busy));
    world.end_turn(outgoing());
    assert_eq!(world.step(), "done");
}

/// It repairs its document at this very moment.
#[test]
fn a_repair_that_is_said_to_have_been_asked_for_is_waited_for() {
    let mut world = FlowWorld::new().hand_off(&json!({"review": true}));
    let examined = &mut world.core.state.handoffs.values_mut().next().expect("a handoff").examined;
    (examined.review, examined.check, examined.reworks) = (false, DocumentCheck::Fix, 1);
    let mut world = world.at("rework", unknown());
    world.ask_of_it("handoff_rework", &json!({"note": "Name the branch."}));
    world.wait();
    assert_eq!(world.failure(), Some(("checking", "unconfirmed")));
    world.hear_of(outgoing(), HookEvent::new(HookKind::PromptSubmit));
    let mut world = world.at("await_idle", Instead::Silence);
    world.ask_of_it("handoff_retry", &json!({ "assume": "delivered" }));
    assert_eq!(world.step(), "checking", "{:?}", world.handoff());
    world.end_turn(outgoing());
    assert_eq!(world.step(), "done");
}

/// The failed handoff has asked for it.
#[test]
fn an_agent_that_ends_after_its_work_was_recorded_has_not_died() {
    let mut world = FlowWorld::new().turn("exit", Turn::GoesOn).hand_off(&json!({}));
    world.wait();
    assert_eq!((world.failure(), world.errors.len()), (Some(("ending", "did_not_exit")), 1));
    world.die(outgoing());
    assert!(!world.agent_lives());
    assert_eq!(world.errors.len(), 1, "{:?}", world.errors);
    world.ask_of_it("handoff_retry", &json!({}));
    assert_eq!(world.step(), "done");
}

#[test]
fn a_successor_in_the_same_pane_has_the_model_of_its_predecessor() {
    let mut world = FlowWorld::new();
    let profile = world.core.state.settings.profiles.get_mut("demo").expect("a profile");
    profile.new_session = Some(NewSession::Lazy);
    world.change(&outgoing(), |agent| agent.model = Some("opus".to_owned()));
    let world = world.hand_off(&json!({"successor": "same_pane"}));
    let successor = world.handoff().successor_id.expect("a successor");
    assert_eq!(world.agent(&successor).model.as_deref(), Some("opus"), "{:?}", world.handoff());
}

/// A Stop hook of the user's own has let the turn continue after the Stop that tasuki's hook has reported.
#[test]
fn a_turn_that_continues_after_its_stop_may_still_write_the_document() {
    let screen = String::new();
    for readiness in [Readiness::AtWork { screen: screen.clone() }, Readiness::Blocked { screen }] {
        let world =
            FlowWorld::new().at("read_document", read(DocumentRead::Missing)).at("look_at_turn", seen(readiness));
        let mut world = world.at("await_idle", Instead::Silence).hand_off(&json!({}));
        assert_eq!((world.step(), world.agent(&outgoing()).state), ("writing", AgentState::Busy));
        world.hear_of(outgoing(), turn(HookKind::Stop, "t1"));
        world.pass(0);
        assert_eq!((world.step(), world.handoff().warnings.as_slice()), ("done", [].as_slice()));
    }
}

#[test]
fn a_turn_that_is_over_without_a_document_fails() {
    let world = FlowWorld::new().at("read_document", read(DocumentRead::Missing)).hand_off(&json!({}));
    assert_eq!(world.step(), "done", "it was written while the screen was looked at");
    let mut world = FlowWorld::new().turn("instruction", Turn::GoesOn).hand_off(&json!({}));
    world.document.clear();
    world.end_turn(outgoing());
    assert_eq!(world.failure(), Some(("writing", "document_missing")), "{:?}", world.handoff());
}

/// The screen shows a turn whenever it is looked at, and no event ever ends it.
#[test]
fn a_turn_that_continues_for_ever_ends_at_the_limit_of_its_step() {
    let at_work = seen(Readiness::AtWork { screen: String::new() });
    let world = FlowWorld::new().at("read_document", read(DocumentRead::Missing)).at("look_at_turn", at_work);
    let mut world = world.at("await_idle", Instead::Silence).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("writing", "stop_never_came")));
}
