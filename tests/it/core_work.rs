//! Work items in handoffs, in the pure core: what a briefing says of them, and which agents of a handoff are told of
//! more.

use super::support::ack_world::{AckWorld, DEAD, HEIR};
use super::support::flow_world::{FlowWorld, Instead, Turn, outgoing};
use serde_json::{Value, json};
use tasuki::core::effect::Outcome;
use tasuki::core::id::AgentId;
use tasuki::core::pane::{Refusal, Typed};
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

/// A world in which the agents' persona has the role `developer`.
fn developers() -> FlowWorld {
    let mut world = FlowWorld::new();
    world.core.state.roles.insert("dev".parse().expect("a slug"), "developer".to_owned());
    world
}

/// Whether the agent was told of a work item.
fn is_told(world: &FlowWorld, agent: AgentId) -> bool {
    world.texts(&agent).contains(&"another text")
}

fn make_item(world: &mut FlowWorld) {
    let made = world.ask("w1", &json!({"v": 1, "kind": "work_create", "type": "task", "title": "one"}));
    assert_eq!(made["ok"], true, "{made}");
}

#[test]
fn an_agent_whose_document_is_recorded_is_told_of_no_item_until_the_handoff_is_abandoned() {
    let mut world = developers().turn("exit", Turn::Ends).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("ending", "did_not_exit")));
    make_item(&mut world);
    assert!(!is_told(&world, outgoing()));
    world.ask_of_it("handoff_abandon", &json!({}));
    assert!(is_told(&world, outgoing()));
}

#[test]
fn a_successor_that_was_not_briefed_is_told_of_no_item_as_long_as_its_handoff_can_be_retried() {
    for (text, retried) in [("priming", "handoff_abandon"), ("priming", "handoff_retry"), ("briefing", "")] {
        let mut world = developers().turn(text, Turn::Fails).hand_off(&json!({}));
        world.wait();
        let successor = world.handoff().successor_id.expect("a successor");
        make_item(&mut world);
        let is_briefed = text == "briefing";
        assert_eq!(is_told(&world, successor), is_briefed, "{text}: {:?}", world.failure());
        if !is_briefed {
            let fields = if retried == "handoff_retry" { json!({"assume": "not_delivered"}) } else { json!({}) };
            let answer = world.ask_of_it(retried, &fields);
            assert_eq!(answer["ok"], true, "{answer}");
            world.wait();
            assert!(is_told(&world, successor), "{retried}: {:?}", world.step());
        }
    }
}

/// It may have the document, and nobody may ever say whether it has: its failure can be dismissed.
#[test]
fn a_successor_whose_briefing_is_in_doubt_is_told_of_items() {
    let unknown = Instead::Outcome(Outcome::Typed(Typed::Unknown { reason: "not_seen".to_owned() }));
    let mut world = developers().at("briefing", unknown).hand_off(&json!({}));
    world.wait();
    assert_eq!(world.failure(), Some(("briefing", "unconfirmed")));
    let successor = world.handoff().successor_id.expect("a successor");
    make_item(&mut world);
    assert!(is_told(&world, successor));
}
