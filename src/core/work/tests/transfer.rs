//! What becomes of items, and of the completions of their parents, when the agents that have claimed them end or
//! release them.

use super::*;
use crate::core::rows::item::Action;

#[test]
fn an_agent_that_ends_gives_back_what_it_has() {
    let (mut world, [_, _, dev, other]) = World::new();
    let ids = [world.create("story"), world.create("bug"), world.create("task")];
    for id in &ids[..2] {
        world.claim(*id, dev).expect("claimed");
    }
    world.claim(ids[2], other).expect("claimed");
    world.end(dev, None);
    for id in &ids[..2] {
        let item = world.item(*id);
        let last = item.history.last().expect("a line");
        assert_eq!((item.status, last.action, last.by), (Status::Ready, Action::Released, Who::Tasuki));
        assert_eq!(last.reason.as_deref(), Some("its owner has ended"));
    }
    assert_eq!(world.item(ids[2]).status, Status::Claimed);
    let claim = json!({"kind": "work_claim", "item_id": ids[0], "agent_id": dev});
    assert_eq!(world.refused(&claim), (400, "not_active".to_owned()));
}

fn undoing(on: &str) -> Rules {
    let text = format!(
        "[types.prd]\nprocessed_by = [\"scrum_master\"]\ncreates = [\"story\"]\ntaken_within = \"60s\"\nrollback_on = [\"{on}\"]\n"
    );
    Rules::with(&text).expect("rules")
}

fn later(world: &mut World, ms: u64) {
    world.now.boot_ms += ms;
    world.decide(Event::Deadlines, None);
}

#[test]
fn a_completion_whose_children_nobody_claims_in_time_is_undone_by_rule() {
    let (mut world, [_, sm, dev, _]) = World::with_rules(undoing("timed_out"));
    let (prd, stories) = world.stories(sm, 2);
    later(&mut world, 50_000);
    assert_eq!(world.item(prd).status, Status::Done);
    later(&mut world, 20_000);
    let item = world.item(prd);
    assert_eq!((item.status, item.claimed_by), (Status::Claimed, Some(Who::Agent(sm))));
    assert_eq!(world.item(stories[0]).status, Status::Withdrawn);
    assert!(world.told.iter().any(|text| text.contains("was undone")), "{:?}", world.told);
    assert_eq!(item.history.last().map(|entry| entry.by), Some(Who::Tasuki));
    // A completion whose children were claimed can't be undone, and the operator is notified.
    let (prd, stories) = world.stories(sm, 2);
    world.claim(stories[0], dev).expect("claimed");
    later(&mut world, 70_000);
    assert_eq!(world.item(prd).status, Status::Done);
    assert!(world.told.iter().any(|text| text.contains("can't be undone")), "{:?}", world.told);
    assert_eq!(world.state.next_deadline_ms(&world.now), None);
    check(&world).expect("whole");
}

#[test]
fn a_child_whose_owner_ends_or_releases_it_undoes_the_completion_only_by_rule() {
    for (on, by) in [("gone", "end"), ("refused", "release"), ("gone", "release"), ("refused", "end")] {
        let (mut world, [_, sm, dev, _]) = World::with_rules(undoing(on));
        let (prd, stories) = world.stories(sm, 2);
        world.claim(stories[1], dev).expect("claimed");
        if by == "end" {
            world.end(dev, Some(Crash::AfterCommit));
        } else {
            let release =
                json!({"kind": "work_release", "item_id": stories[1], "agent_id": dev, "reason": "not for me"});
            world.ask(&release).expect("released");
        }
        let undone = (on == "gone") == (by == "end");
        let expected = if undone { Status::Claimed } else { Status::Done };
        assert_eq!(world.item(prd).status, expected, "{on} {by}");
        check(&world).expect("whole");
    }
}

#[test]
fn a_done_child_makes_its_parents_completion_final() {
    let (mut world, [_, sm, dev, _]) = World::with_rules(undoing("timed_out"));
    let (prd, stories) = world.stories(sm, 1);
    world.claim(stories[0], dev).expect("claimed");
    assert_eq!(world.state.next_deadline_ms(&world.now), None, "all are taken");
    world.complete(stories[0], dev, &json!({"output": {"completed": true}})).expect("completed");
    assert!(world.item(prd).watch.is_none());
}

#[test]
fn a_child_that_the_completion_has_not_made_decides_nothing_about_it() {
    let (mut world, [_, sm, dev, other]) = World::with_rules(undoing("gone"));
    let (prd, stories) = world.stories(sm, 1);
    let add = json!({"kind": "work_create", "type": "story", "title": "later", "parent_id": prd});
    let later = [id_of(&world.ask(&add).expect("created")), id_of(&world.ask(&add).expect("created"))];
    world.claim(later[0], dev).expect("claimed");
    world.complete(later[0], dev, &json!({"output": {"completed": true}})).expect("completed");
    assert!(world.item(prd).watch.is_some(), "a later child that is done");
    world.claim(later[1], dev).expect("claimed");
    world.end(dev, None);
    assert_eq!(world.item(prd).status, Status::Done, "a later child whose owner has ended");
    world.claim(stories[0], other).expect("claimed");
    world.end(other, None);
    assert_eq!(world.item(prd).status, Status::Claimed, "its own child");
    check(&world).expect("whole");
}

#[test]
fn children_that_are_made_later_must_be_claimed_in_time_too() {
    for first in ["story", "bug"] {
        let (mut world, [_, sm, dev, _]) = World::with_rules(undoing("timed_out"));
        let prd = world.claimed_prd(sm);
        let children = json!([{"type": first, "title": "one"}, {"type": "bug", "title": "two"}]);
        let partial = json!({"output": {"x": 1}, "children": children, "partial": true});
        let made = world.complete(prd, sm, &partial).expect("207");
        for child in made["children"].as_array().expect("a list") {
            world.claim(id_of(child), dev).expect("claimed");
        }
        let last = json!([{"type": "story", "title": "two"}]);
        let retry = json!({"kind": "work_retry_children", "item_id": prd, "agent_id": sm, "children": last});
        let made = world.ask(&retry).expect("made");
        later(&mut world, 70_000);
        let wanted = if first == "story" { "can't be undone" } else { "was undone" };
        assert!(world.told.iter().any(|text| text.contains(wanted)), "{first}: {:?}", world.told);
        let child = world.item(id_of(&made["children"][0]));
        assert_eq!(child.status == Status::Withdrawn, first == "bug", "{first}");
        check(&world).expect("whole");
    }
}

#[test]
fn a_completion_that_was_claimed_again_is_not_undone_and_the_notice_says_why() {
    let (mut world, [_, sm, dev, _]) = World::with_rules(undoing("gone"));
    let prd = world.claimed_prd(sm);
    let children = json!([{"type": "story", "title": "one"}]);
    let draft = json!({"output": {"x": 1}, "children": children, "next_status": "ready"});
    let made = world.complete(prd, sm, &draft).expect("completed");
    world.claim(id_of(&made["children"][0]), dev).expect("claimed");
    world.claim(prd, sm).expect("claimed again");
    world.end(dev, None);
    assert!(world.told.iter().any(|text| text.contains("the item itself was claimed again")), "{:?}", world.told);
    assert_eq!(world.item(prd).status, Status::Claimed);
}

#[test]
fn a_child_that_is_given_back_must_be_claimed_in_time_again() {
    for by in ["agent", "human"] {
        let (mut world, [_, sm, dev, _]) = World::with_rules(undoing("timed_out"));
        let (prd, stories) = world.stories(sm, 1);
        world.claim(stories[0], dev).expect("claimed");
        later(&mut world, 70_000);
        let release = json!({"kind": "work_release", "item_id": stories[0]});
        let who = if by == "agent" { dev.to_string() } else { by.to_owned() };
        let mut asked = release;
        asked["agent_id"] = json!(who);
        world.ask(&asked).expect("released");
        later(&mut world, 50_000);
        assert_eq!(world.item(prd).status, Status::Done);
        later(&mut world, 20_000);
        assert_eq!(world.item(prd).status, Status::Claimed, "{by}: nobody has claimed it in time");
    }
}

#[test]
fn a_release_that_undoes_the_completion_answers_what_has_become_of_the_item() {
    let rules = "[types.prd]\nprocessed_by = [\"scrum_master\"]\ncreates = [\"review\"]\n\
                 rollback_on = [\"refused\", \"gone\"]\n[types.review]\nprocessed_by = [\"developer\", \"human\"]\n";
    let (mut world, [_, sm, dev, other]) = World::with_rules(Rules::with(rules).expect("rules"));
    world.end(other, None);
    let prd = world.claimed_prd(sm);
    let children = json!([{"type": "review", "title": "one"}, {"type": "review", "title": "two"}]);
    let completion = json!({"output": {"x": 1}, "children": children});
    let made = world.complete(prd, sm, &completion).expect("completed");
    let review = id_of(&made["children"][0]);
    world.claim(review, dev).expect("claimed");
    let release = json!({"kind": "work_release", "item_id": review, "agent_id": dev, "reason": "not mine"});
    assert_eq!(world.ask(&release).expect("released"), json!({"item_id": review, "status": "withdrawn"}));
    // If an agent that has two of the children ends, both are given back before tasuki judges the completion.
    let made = world.complete(prd, sm, &completion).expect("completed");
    for child in made["children"].as_array().expect("a list") {
        world.claim(id_of(child), dev).expect("claimed");
    }
    world.told.clear();
    world.end(dev, None);
    assert_eq!(world.item(prd).status, Status::Claimed);
    assert!(world.told.len() == 1 && world.told[0].contains("was undone"), "{:?}", world.told);
    check(&world).expect("whole");
}
