//! Who is notified of what, and when.

use super::*;
use crate::core::effect::{Effect, EffectKey, Outcome, TypeText};
use crate::core::pane::{Refusal, Typed};

/// The texts that a decision wants typed: the effect's key, whom, what.
fn typed(decision: &Decision) -> Vec<(EffectKey, AgentId, TypeText)> {
    let plans = decision.effects.iter().filter_map(|(key, effect)| {
        let Effect::Type(plan) = &effect.effect else { return None };
        Some((*key, plan.agent_id, plan.clone()))
    });
    plans.collect()
}

/// Asks, and gives whom the decision tells of an item.
fn deliver(world: &mut World, request: &Value) -> Vec<(EffectKey, AgentId, TypeText)> {
    let mut body = request.clone();
    body["v"] = json!(1);
    let id: RequestId = format!("d{}", world.turns).parse().expect("an id");
    let read = request::read(body.to_string().as_bytes());
    let arrived = IncomingRequest { id, sha256: String::new(), read, facts: RequestFacts::default() };
    typed(&world.decide(Event::Request(Box::new(arrived)), None))
}

fn create(world: &mut World, kind: &str, title: &str, priority: &str) -> Vec<(EffectKey, AgentId, TypeText)> {
    deliver(world, &json!({"kind": "work_create", "type": kind, "title": title, "priority": priority}))
}

/// The agent's CLI has taken the text: its receipt.
fn receipt(world: &mut World, (key, agent, plan): &(EffectKey, AgentId, TypeText)) {
    world.decide(Event::Settled { key: *key, outcome: Outcome::Typed(Typed::Submitted { proven: false }) }, None);
    let text = plan.text.clone();
    world.hook(*agent, HookKind::PromptSubmit, None, |event| {
        event.text = Some(text.clone());
        event.turn_id = Some("t".to_owned());
    });
}

fn stop(world: &mut World, agent: AgentId) -> Vec<(EffectKey, AgentId, TypeText)> {
    typed(&world.hook(agent, HookKind::Stop, None, |event| event.turn_id = Some("t".to_owned())))
}

#[test]
fn an_idle_agent_is_notified_of_one_item_at_a_time_the_most_urgent_and_oldest_first() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let first = create(&mut world, "story", "one", "normal");
    assert_eq!((first.len(), first[0].1), (1, dev), "at once, for it is idle");
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
fn a_notice_that_could_not_be_typed_is_tried_again_after_a_pause_and_not_for_ever() {
    let (mut world, _) = World::new();
    let dev = world.agent("dev", Some(1));
    let mut next = create(&mut world, "story", "one", "normal");
    for _ in 0..5 {
        let (key, ..) = next.pop().expect("a try");
        let refused = Outcome::Typed(Typed::Refused { reason: Refusal::Draft });
        assert!(typed(&world.decide(Event::Settled { key, outcome: refused }, None)).is_empty(), "not at once");
        world.now.boot_ms += 61_000;
        next = typed(&world.decide(Event::Deadlines, None));
    }
    assert!(next.is_empty() && world.is_live(dev));
    assert_eq!(world.state.next_deadline_ms(&world.now), None);
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
fn the_operator_is_notified_of_human_items_and_of_items_without_an_agent() {
    let text = "[types.review]\nprocessed_by = [\"human\"]\n[types.prd]\nprocessed_by = [\"scrum_master\"]\n\
                creates = [\"review\"]\nask_human = true\n";
    let (mut world, [_, sm, dev, other]) = World::with_rules(Rules::with(text).expect("rules"));
    world.create("story");
    assert!(world.told.is_empty(), "developers are there");
    let prd = world.claimed_prd(sm);
    let children = json!([{"type": "review", "title": "look"}, {"type": "review", "title": "look again"}]);
    world.complete(prd, sm, &json!({"output": {"x": 1}, "children": children})).expect("completed");
    assert_eq!(world.told.len(), 2, "{:?}", world.told);
    assert!(world.told[0].contains("is completed"), "{:?}", world.told);
    assert!(
        world.told[1].contains("look again") && world.told[1].contains("for a person"),
        "one for both: {:?}",
        world.told
    );
    for agent in [dev, other] {
        world.end(agent, None);
    }
    world.create("bug");
    assert_eq!(world.told.len(), 3, "nobody else is there: {:?}", world.told);
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
