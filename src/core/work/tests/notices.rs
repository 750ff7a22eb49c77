//! When agents are notified of items, and which agents.

use super::*;
use crate::core::effect::{Effect, EffectKey, LimitFound, Outcome, TypeText};
use crate::core::pane::{Refusal, Typed};

/// The texts that a decision wants typed: the effect's key, the agent, and what to type.
pub(super) fn typed(decision: &Decision) -> Vec<(EffectKey, AgentId, TypeText)> {
    let plans = decision.effects.iter().filter_map(|(key, effect)| {
        let Effect::Type(plan) = &effect.effect else { return None };
        Some((*key, plan.agent_id, plan.clone()))
    });
    plans.collect()
}

/// Sends a request; returns the notices of items that the decision wants typed.
fn deliver(world: &mut World, request: &Value) -> Vec<(EffectKey, AgentId, TypeText)> {
    let mut body = request.clone();
    body["v"] = json!(1);
    world.load_history(&body);
    let id: RequestId = format!("d{}", world.turns).parse().expect("an id");
    let read = request::read(body.to_string().as_bytes());
    let arrived = IncomingRequest { id, sha256: String::new(), read, facts: RequestFacts::default() };
    typed(&world.decide(Event::Request(Box::new(arrived)), None))
}

pub(super) fn create(
    world: &mut World,
    kind: &str,
    title: &str,
    priority: &str,
) -> Vec<(EffectKey, AgentId, TypeText)> {
    deliver(world, &json!({"kind": "work_create", "type": kind, "title": title, "priority": priority}))
}

/// The agent's CLI has taken the text: its receipt.
pub(super) fn receipt(world: &mut World, (key, agent, plan): &(EffectKey, AgentId, TypeText)) {
    world.decide(Event::Settled { key: *key, outcome: Outcome::Typed(Typed::Submitted { proven: false }) }, None);
    let text = plan.text.clone();
    world.hook(*agent, HookKind::PromptSubmit, None, |event| {
        event.text = Some(text.clone());
        event.turn_id = Some("t".to_owned());
    });
}

pub(super) fn stop(world: &mut World, agent: AgentId) -> Vec<(EffectKey, AgentId, TypeText)> {
    typed(&world.hook(agent, HookKind::Stop, None, |event| event.turn_id = Some("t".to_owned())))
}

#[test]
fn an_idle_agent_is_notified_of_one_item_at_a_time_the_most_urgent_and_oldest_first() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let first = create(&mut world, "story", "one", "normal");
    assert_eq!((first.len(), first[0].1), (1, dev), "at once, because it is idle");
    assert!(first[0].2.text.contains("one") && first[0].2.text.contains("tasuki work claim"), "{}", first[0].2.text);
    for (title, priority) in [("two", "normal"), ("three", "urgent"), ("four", "normal")] {
        assert!(create(&mut world, "story", title, priority).is_empty(), "one at a time");
    }
    assert!(create(&mut world, "prd", "not for it", "urgent").is_empty());
    receipt(&mut world, &first[0]);
    let mut seen = Vec::new();
    let mut next = stop(&mut world, dev);
    while let Some(notice) = next.pop() {
        let title =
            ["one", "two", "three", "four"].into_iter().find(|title| notice.2.text.contains(&format!("): {title}\n")));
        seen.push(title.expect("a title"));
        receipt(&mut world, &notice);
        next = stop(&mut world, dev);
    }
    assert_eq!(seen, ["three", "two", "four"], "each once");
    assert!(world.all().iter().filter(|item| item.kind == "story").all(|item| item.notified.len() == 1));
}

#[test]
fn an_agent_that_has_an_item_is_notified_of_no_other_until_it_has_none() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let notice = create(&mut world, "story", "one", "normal").remove(0);
    receipt(&mut world, &notice);
    let story = world.all()[0].item_id;
    world.claim(story, dev).expect("claimed");
    assert!(stop(&mut world, dev).is_empty());
    assert!(create(&mut world, "story", "two", "urgent").is_empty());
    let done = json!({"kind": "work_complete", "item_id": story, "agent_id": dev, "output": {"completed": true}});
    assert_eq!(deliver(&mut world, &done).len(), 1, "it is idle and free for the next one");
}

#[test]
fn the_next_agent_is_notified_of_an_item_that_one_agent_does_not_claim() {
    let (mut world, _) = World::new();
    let (first, second) = (world.agent("dev", Some(1)), world.agent("dev", Some(2)));
    let notice = create(&mut world, "story", "one", "normal");
    assert_eq!((notice.len(), notice[0].1), (1, first));
    receipt(&mut world, &notice[0]);
    let next = stop(&mut world, first);
    assert_eq!((next.len(), next[0].1), (1, second));
    receipt(&mut world, &next[0]);
    assert!(stop(&mut world, second).is_empty(), "each agent is notified once");
    // The agent that gives the item back is not notified of it again; the other free agent is.
    let story = world.all()[0].item_id;
    world.claim(story, second).expect("claimed");
    let release = json!({"kind": "work_release", "item_id": story, "agent_id": second});
    let told = deliver(&mut world, &release);
    assert_eq!((told.len(), told[0].1), (1, first));
}

#[test]
fn an_agent_that_claims_nothing_is_no_longer_notified_after_a_while() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let mut next = create(&mut world, "story", "0", "normal");
    for number in 1..20 {
        create(&mut world, "story", &number.to_string(), "normal");
    }
    let mut told = 0;
    while let Some(notice) = next.pop() {
        told += 1;
        receipt(&mut world, &notice);
        next = stop(&mut world, dev);
    }
    assert_eq!(told, 8);
    let story = world.all()[19].item_id;
    world.claim(story, dev).expect("claimed");
    let done = json!({"kind": "work_complete", "item_id": story, "agent_id": dev, "output": {"completed": true}});
    assert_eq!(deliver(&mut world, &done).len(), 1, "it works again");
}

#[test]
fn an_agent_that_reports_nothing_is_no_longer_notified_after_a_while() {
    let (mut world, _) = World::new();
    world.agent("dev", Some(1));
    let mut next = create(&mut world, "story", "0", "normal");
    for number in 1..20 {
        create(&mut world, "story", &number.to_string(), "normal");
    }
    let mut told = 0;
    while let Some((key, ..)) = next.pop() {
        told += 1;
        world.decide(Event::Settled { key, outcome: Outcome::Typed(Typed::Submitted { proven: false }) }, None);
        next = later(&mut world, 61_000);
    }
    assert_eq!(told, 8);
    assert!(later(&mut world, 3_600_000).is_empty());
}

/// Lets this many milliseconds pass; returns the texts that are typed then.
pub(super) fn later(world: &mut World, ms: u32) -> Vec<(EffectKey, AgentId, TypeText)> {
    world.now.boot_ms += u64::from(ms);
    world.now.wall_ms += i64::from(ms);
    typed(&world.decide(Event::Deadlines, None))
}

fn refused(world: &mut World, key: EffectKey, reason: Refusal) {
    let refused = Outcome::Typed(Typed::Refused { reason });
    assert!(typed(&world.decide(Event::Settled { key, outcome: refused }, None)).is_empty(), "not at once");
}

#[test]
fn a_notice_that_could_not_be_typed_is_tried_again_after_a_pause() {
    let (mut world, _) = World::new();
    world.agent("dev", Some(1));
    let mut next = create(&mut world, "story", "one", "normal");
    for _ in 0..5 {
        let (key, ..) = next.pop().expect("a try");
        refused(&mut world, key, Refusal::Draft);
        next = later(&mut world, 61_000);
    }
    // The person who has left the draft may come back late.
    for _ in 0..5 {
        let (key, ..) = next.pop().expect("a try");
        refused(&mut world, key, Refusal::Draft);
        assert!(later(&mut world, 61_000).is_empty(), "less often");
        next = later(&mut world, 600_000);
    }
    let notice = next.pop().expect("a try");
    receipt(&mut world, &notice);
    assert!(world.all()[0].offered_to.is_some());
}

#[test]
fn agents_whose_notice_was_refused_are_tried_again_even_if_no_more_agents_are_notified() {
    let (mut world, _) = World::new();
    for pane in 1..=33 {
        world.agent("dev", Some(pane));
    }
    let mut next = create(&mut world, "story", "one", "normal");
    let mut tried = 0;
    while let Some((key, ..)) = next.pop() {
        tried += 1;
        let outcome = Outcome::Typed(Typed::Refused { reason: Refusal::Draft });
        next = typed(&world.decide(Event::Settled { key, outcome }, None));
    }
    assert_eq!(tried, 32, "each once, and one agent not at all");
    let again = later(&mut world, 61_000);
    assert_eq!(again.len(), 1, "one of them may have sent the draft");
    receipt(&mut world, &again[0]);
}

#[test]
fn a_notice_that_can_never_be_typed_is_not_tried_for_ever() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let mut next = create(&mut world, "story", "one", "normal");
    for _ in 0..5 {
        let (key, ..) = next.pop().expect("a try");
        refused(&mut world, key, Refusal::PaneChanged);
        next = later(&mut world, 61_000);
    }
    assert!(next.is_empty() && world.is_live(dev));
    assert_eq!(world.state.next_deadline_ms(&world.now), None);
}

#[test]
fn the_next_agent_is_notified_of_an_item_whose_notice_may_not_have_arrived() {
    let (mut world, _) = World::new();
    let (first, second) = (world.agent("dev", Some(1)), world.agent("dev", Some(2)));
    let (key, told, _) = create(&mut world, "story", "one", "normal").remove(0);
    assert_eq!(told, first);
    world.decide(Event::Settled { key, outcome: Outcome::Typed(Typed::Submitted { proven: false }) }, None);
    let next = later(&mut world, 61_000);
    assert_eq!((next.len(), next[0].1), (1, second));
    receipt(&mut world, &next[0]);
    assert!(stop(&mut world, second).is_empty(), "nothing is typed twice");
    assert!(later(&mut world, 3_600_000).is_empty());
}

/// The agent's turn ends with this event: it has failed or was interrupted.
pub(super) fn fail(world: &mut World, agent: AgentId, kind: HookKind) -> Decision {
    world.hook(agent, kind, None, |event| {
        event.turn_id = Some("t".to_owned());
        event.message = Some("it went wrong".to_owned());
    })
}

/// After a failed turn tasuki looks for a limit: the look ends with this result.
pub(super) fn looked(
    world: &mut World,
    failed: &Decision,
    found: Option<LimitFound>,
) -> Vec<(EffectKey, AgentId, TypeText)> {
    let look = failed.effects.iter().find(|(_, pending)| matches!(pending.effect, Effect::ReadLimit { .. }));
    let (key, _) = look.expect("a look");
    typed(&world.decide(Event::Settled { key: *key, outcome: Outcome::Limit(found) }, None))
}

#[test]
fn an_agent_whose_turn_fails_is_notified_again_after_a_pause() {
    for kind in [HookKind::StopFailure, HookKind::Interrupted] {
        let (mut world, _) = World::new();
        let dev = world.agent("dev", Some(1));
        let mut next = create(&mut world, "story", "one", "normal");
        create(&mut world, "story", "two", "normal");
        for _ in 0..12 {
            let notice = next.pop().expect("a notice");
            assert!(notice.2.text.contains("): one\n"), "{kind:?}");
            receipt(&mut world, &notice);
            let failed = fail(&mut world, dev, kind);
            assert!(typed(&failed).is_empty(), "not at once: {kind:?}");
            if kind == HookKind::StopFailure {
                assert!(looked(&mut world, &failed, None).is_empty(), "not at once");
            }
            next = later(&mut world, 601_000);
        }
        receipt(&mut world, &next[0]);
        assert_eq!(stop(&mut world, dev).len(), 1, "a failed turn is not an answer: {kind:?}");
    }
}

#[test]
fn an_agent_is_notified_of_items_that_were_made_while_tmux_did_not_answer() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    world.decide(Event::Server(None), None);
    assert!(create(&mut world, "story", "one", "normal").is_empty());
    let told = typed(&world.decide(Event::Server(Some(SERVER)), None));
    assert_eq!((told.len(), told[0].1), (1, dev));
}

#[test]
fn the_owner_is_notified_once_that_its_completion_was_undone() {
    let (mut world, _) = World::new();
    let sm = world.agent("sm", Some(1));
    let notice = create(&mut world, "prd", "plan", "normal").remove(0);
    receipt(&mut world, &notice);
    let prd = world.all()[0].item_id;
    world.claim(prd, sm).expect("claimed");
    let child = json!([{"type": "story", "title": "s"}]);
    world.complete(prd, sm, &json!({"output": {"stories": [1]}, "children": child})).expect("completed");
    assert!(stop(&mut world, sm).is_empty());
    let rollback = json!({"kind": "work_rollback", "item_id": prd, "reason": "the wrong stories"});
    let told = deliver(&mut world, &rollback);
    assert_eq!((told.len(), told[0].1), (1, sm));
    let text = &told[0].2.text;
    assert!(["was undone", "the wrong stories", &prd.to_string()].iter().all(|part| text.contains(part)), "{text}");
    assert!(!text.contains("work claim"), "it has the item: {text}");
    assert!(create(&mut world, "prd", "another", "urgent").is_empty());
    receipt(&mut world, &told[0]);
    assert!(stop(&mut world, sm).is_empty(), "once, and nothing else while it has the item");
    let release = json!({"kind": "work_release", "item_id": prd, "agent_id": sm});
    let told = deliver(&mut world, &release);
    assert!(told.len() == 1 && told[0].2.text.contains("another"), "{told:?}");
    check(&world).expect("whole");
}

#[test]
fn an_owner_whose_notice_of_an_undone_completion_failed_is_notified_again() {
    let (mut world, _) = World::new();
    let sm = world.agent("sm", Some(1));
    let notice = create(&mut world, "prd", "plan", "normal").remove(0);
    receipt(&mut world, &notice);
    let prd = world.all()[0].item_id;
    world.claim(prd, sm).expect("claimed");
    world.complete(prd, sm, &json!({"output": {"stories": [1]}})).expect("completed");
    assert!(stop(&mut world, sm).is_empty());
    let rollback = json!({"kind": "work_rollback", "item_id": prd, "reason": "r"});
    let (key, ..) = deliver(&mut world, &rollback).remove(0);
    refused(&mut world, key, Refusal::Busy);
    let again = later(&mut world, 61_000).remove(0);
    receipt(&mut world, &again);
    let failed = fail(&mut world, sm, HookKind::StopFailure);
    looked(&mut world, &failed, None);
    assert_eq!(later(&mut world, 61_000).len(), 1);
}

#[test]
fn a_new_agent_of_the_role_is_notified() {
    let (mut world, _) = World::new();
    assert!(create(&mut world, "prd", "plan", "normal").is_empty(), "nobody with a pane is there");
    let sm = world.agent("sm", Some(3));
    let told = typed(&world.hook(sm, HookKind::Notification, None, |_| {}));
    assert_eq!((told.len(), told[0].1), (1, sm));
    // A role that is known only later counts from then on.
    let other = world.agent("pet", Some(4));
    create(&mut world, "bug", "broken", "normal");
    let mut roles = world.state.roles.clone();
    roles.insert("pet".parse().expect("a slug"), "developer".to_owned());
    let told = typed(&world.decide(Event::Roles(roles), None));
    assert_eq!((told.len(), told[0].1), (1, other));
}

#[test]
fn items_offered_to_an_agent_that_ends_are_offered_to_the_next() {
    let (mut world, _) = World::new();
    let first = world.agent("dev", Some(1));
    let notice = create(&mut world, "story", "one", "normal").remove(0);
    receipt(&mut world, &notice);
    let second = world.agent("dev", Some(2));
    let ended = world.hook(first, HookKind::SessionEnd, None, |event| event.reason = Some(SessionReason::Process));
    let told = typed(&ended);
    assert_eq!((told.len(), told[0].1), (1, second));
}
