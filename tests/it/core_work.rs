//! Work items in handoffs, in the pure core: what a briefing says of them, and which agents of a handoff are told of
//! more.

use super::support::ack_world::{AckWorld, DEAD, HEIR};
use serde_json::{Value, json};
use tasuki::core::pane::Refusal;
use tasuki::core::rows::agent::{Agent, AgentState};

/// A world in which the agent that is handed off has claimed these items; returns the ids of the items.
fn world_with_items(titles: &[&str]) -> (AckWorld, Vec<String>) {
    let mut world = AckWorld::new();
    world.state.roles.insert("dev".parse().expect("a slug"), "developer".to_owned());
    let set = |world: &mut AckWorld, id: &str, change: fn(&mut Agent)| {
        change(world.state.agents.get_mut(&id.parse().expect("an id")).expect("an agent"));
    };
    // No notice of an item is typed while the items are made and claimed.
    world.refusal = Some(Refusal::Draft);
    set(&mut world, DEAD, |agent| agent.state = AgentState::Idle);
    let ids = titles.iter().map(|title| {
        let made = world.ask(&json!({"v": 1, "kind": "work_create", "type": "task", "title": title}));
        let id = made["result"]["item_id"].as_str().expect("made").to_owned();
        let claimed = world.ask(&json!({"v": 1, "kind": "work_claim", "item_id": id, "agent_id": DEAD}));
        assert_eq!(claimed["ok"], true, "{claimed}");
        id
    });
    let ids = ids.collect();
    world.refusal = None;
    set(&mut world, DEAD, |agent| agent.state = AgentState::Ended);
    (world, ids)
}

fn owner(world: &AckWorld, id: &str) -> Value {
    json!(world.state.items.get(&id.parse().expect("an id")).and_then(|item| item.claimed_by))
}

#[test]
fn a_briefing_says_which_of_its_items_are_not_the_successors_any_more() {
    let (mut world, ids) = world_with_items(&["one", "two", "three"]);
    world.refusal = Some(Refusal::Draft);
    world.begin("immediate", "# Work\n");
    assert_eq!(world.handoff().error.as_ref().map(|error| error.code.as_str()), Some("not_delivered"));
    let done =
        json!({"v": 1, "kind": "work_complete", "item_id": ids[0], "agent_id": HEIR, "output": {"completed": true}});
    let released = json!({"v": 1, "kind": "work_release", "item_id": ids[1]});
    for request in [done, released] {
        assert_eq!(world.ask(&request)["ok"], true, "{request}");
    }
    world.refusal = None;
    let retry = json!({"v": 1, "kind": "handoff_retry", "handoff_id": world.id});
    assert_eq!(world.ask(&retry)["ok"], true);
    let briefing = world.texts("Here is your handoff").remove(0);
    for (id, status) in [(&ids[0], "done"), (&ids[1], "ready")] {
        assert!(briefing.contains(&format!("Work item {id} is not yours: it is {status}")), "{briefing}");
    }
    assert!(!briefing.contains(&format!("{} is not yours", ids[2])), "{briefing}");
    assert_eq!(world.view()["drift"], json!([]), "the repository has not changed");
}

#[test]
fn a_briefing_after_an_updated_document_names_the_items_that_the_handoff_holds() {
    let (mut world, ids) = world_with_items(&["one"]);
    world.begin("immediate", "# Work\n");
    assert_eq!((world.step(), owner(&world, &ids[0])), ("acknowledging", json!(HEIR)));
    assert!(world.texts("Here is your handoff")[0].contains(&format!("Work item {} (task)", ids[0])));
    world.ack(&json!({"status": "needs_clarification", "questions": ["Which?"]}));
    let clarify = json!({"v": 1, "kind": "clarify", "handoff_id": world.id,
        "clarifications": [{"question": "Which?", "answer": "This."}], "document": {"text": "# Better\n"}});
    world.ask(&clarify);
    assert_eq!(world.texts("it was brought up to date").len(), 1);
    let prompt = world.view()["injection_prompt"].to_string();
    assert!(prompt.contains(&format!("Work item {} (task)", ids[0])), "{prompt}");
}
