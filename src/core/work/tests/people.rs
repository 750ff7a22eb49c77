//! When the operator is notified of items.

use super::*;

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
    assert_eq!(world.told.len(), 3, "nobody is left for the story: {:?}", world.told);
    world.create("bug");
    assert_eq!(world.told.len(), 4, "nobody else is there: {:?}", world.told);
}

#[test]
fn the_operator_is_notified_once_of_all_that_waits_when_the_last_agent_of_a_role_ends() {
    let (mut world, [_, _, dev, other]) = World::new();
    let ids = [world.create("story"), world.create("bug"), world.create("task")];
    world.create("prd");
    for id in &ids[..2] {
        world.claim(*id, dev).expect("claimed");
    }
    world.end(other, None);
    assert!(world.told.is_empty(), "one is left: {:?}", world.told);
    world.end(dev, None);
    assert_eq!(world.told.len(), 1, "{:?}", world.told);
    assert!(["a story", "a bug", "a task"].iter().all(|title| world.told[0].contains(title)), "{:?}", world.told);
    assert!(!world.told[0].contains("a prd"), "a scrum master is there: {:?}", world.told);
}

/// A type that only agents process, and another type that a person may process too.
const ONE_WORKER: &str = "[types.plan]\nprocessed_by = [\"scrum_master\"]\n[types.fix]\n\
                          processed_by = [\"scrum_master\", \"human\"]\n";

#[test]
fn an_item_that_its_only_agent_escalated_waits_for_a_person_once_it_is_released() {
    for kind in ["plan", "fix"] {
        let (mut world, [_, sm, ..]) = World::with_rules(Rules::with(ONE_WORKER).expect("rules"));
        let id = world.create(kind);
        world.claim(id, sm).expect("claimed");
        world.ask(&json!({"kind": "work_escalate", "item_id": id, "agent_id": sm, "reason": "r"})).expect("escalated");
        world.told.clear();
        world.ask(&json!({"kind": "work_release", "item_id": id, "agent_id": "human"})).expect("released");
        assert!(world.told.len() == 1 && world.told[0].contains("for a person"), "{kind}: {:?}", world.told);
        world.claim(id, "human").expect("it was given to a person before");
        check(&world).expect("whole");
    }
}

#[test]
fn an_escalated_item_that_another_agent_can_process_waits_for_no_person_until_that_agent_ends() {
    let (mut world, [_, sm, ..]) = World::with_rules(Rules::with(ONE_WORKER).expect("rules"));
    let other = world.agent("sm", None);
    let id = world.create("plan");
    world.claim(id, sm).expect("claimed");
    world.ask(&json!({"kind": "work_escalate", "item_id": id, "agent_id": sm, "reason": "r"})).expect("escalated");
    world.told.clear();
    world.ask(&json!({"kind": "work_release", "item_id": id, "agent_id": "human"})).expect("released");
    assert!(world.told.is_empty(), "{:?}", world.told);
    world.end(other, None);
    assert_eq!(world.told.len(), 1, "{:?}", world.told);
    world.end(sm, None);
    assert_eq!(world.told.len(), 1, "this agent could not have claimed it: {:?}", world.told);
}

#[test]
fn an_item_that_its_only_agent_gives_back_waits_for_a_person_if_the_rule_allows_one() {
    for (kind, told) in [("plan", 0), ("fix", 1)] {
        let (mut world, [_, sm, ..]) = World::with_rules(Rules::with(ONE_WORKER).expect("rules"));
        let id = world.create(kind);
        world.claim(id, sm).expect("claimed");
        world.ask(&json!({"kind": "work_release", "item_id": id, "agent_id": sm, "reason": "r"})).expect("released");
        assert_eq!(world.told.len(), told, "{kind}: {:?}", world.told);
    }
}

#[test]
fn the_operator_is_notified_of_items_that_no_agent_can_process_any_more_because_rules_or_roles_have_changed() {
    let (mut world, [_, sm, dev, _]) = World::new();
    let ids = ["prd", "story", "bug"].map(|kind| world.create(kind));
    world.claim(ids[2], dev).expect("claimed");
    let rules = |text: &str| Event::Rules(Ok(Box::new(Rules::with(text).expect("rules"))));
    world.decide(rules("[types.prd]\nprocessed_by = [\"human\"]\n"), None);
    assert!(world.told.len() == 1 && world.told[0].contains("A work item waits for a person"), "{:?}", world.told);
    assert!(world.told[0].contains("a prd"), "{:?}", world.told);
    world.decide(rules("[types.prd]\nprocessed_by = [\"human\", \"architect\"]\n"), None);
    assert_eq!(world.told.len(), 1, "it waits for a person as before: {:?}", world.told);
    let mut roles = world.state.roles.clone();
    roles.remove(&"dev".parse().expect("a slug"));
    world.decide(Event::Roles(roles.clone()), None);
    assert!(world.told.len() == 2 && world.told[1].contains("a story"), "{:?}", world.told);
    assert!(!world.told[1].contains("a prd") && !world.told[1].contains("a bug"), "{:?}", world.told);
    world.end(sm, None);
    roles.remove(&"sm".parse().expect("a slug"));
    world.decide(Event::Roles(roles), None);
    assert_eq!(world.told.len(), 2, "nothing more: {:?}", world.told);
}
