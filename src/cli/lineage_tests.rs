//! Chains of agents by their views, and the handoffs between them.

use super::*;

fn agent(id: &str, previous: Option<&str>, at: u32) -> ViewFile<AgentView> {
    let view =
        json!({"agent_id": id, "previous_agent_id": previous, "registered_at": format!("2026-01-01T00:00:{at:02}Z")});
    ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")
}

fn tree(id: &str, agents: &[ViewFile<AgentView>]) -> Vec<(String, usize)> {
    members(id, agents).into_iter().map(|member| (member.id, member.depth)).collect()
}

#[test]
fn a_lineage_is_the_same_from_each_of_its_members() {
    let agents = [agent("c", Some("b"), 3), agent("a", None, 1), agent("b", Some("a"), 2), agent("x", None, 4)];
    let expected = [("a".to_owned(), 0), ("b".to_owned(), 1), ("c".to_owned(), 2)];
    for id in ["a", "b", "c"] {
        assert_eq!(tree(id, &agents), expected, "{id}");
    }
}

#[test]
fn several_successors_stand_in_the_order_in_which_they_came() {
    let agents = [agent("a", None, 1), agent("z", Some("a"), 2), agent("b", Some("a"), 3)];
    assert_eq!(tree("a", &agents), [("a".to_owned(), 0), ("z".to_owned(), 1), ("b".to_owned(), 1)]);
}

#[test]
fn the_handoff_that_led_to_an_agent_is_found_whenever_its_view_last_changed() {
    let dir = tempfile::tempdir().expect("a folder");
    let write = |name: &str, successor: Option<&str>| {
        let view = json!({"handoff_id": name, "successor_id": successor});
        std::fs::write(dir.path().join(format!("{name}.json")), view.to_string()).expect("written");
    };
    let agents = [agent("a", None, 1), agent("b", Some("a"), 2), agent("c", Some("b"), 3), agent("d", Some("c"), 4)];
    // All views have changed long after the agents registered, in another order.
    for (name, successor) in [("h3", Some("c")), ("h1", None), ("h2", Some("b")), ("h4", Some("nobody"))] {
        write(name, successor);
    }
    let members = members("a", &agents);
    let found = handoffs(dir.path(), &members).expect("readable");
    let by: Vec<(&str, String)> = found.iter().map(|(id, handoff)| (*id, handoff.handoff_id.clone())).collect();
    assert_eq!(by, [("b", "h2".to_owned()), ("c", "h3".to_owned())]);
}

#[test]
fn the_handoff_that_a_predecessor_names_is_believed_only_if_it_led_to_the_agent() {
    let dir = tempfile::tempdir().expect("a folder");
    let id = |number: u128| uuid::Uuid::from_u128(number).to_string();
    let write = |number: u128, successor: &str| {
        let view = json!({"handoff_id": id(number), "successor_id": successor});
        std::fs::write(dir.path().join(format!("{}.json", id(number))), view.to_string()).expect("written");
    };
    for (number, successor) in [(1, "b"), (2, "nobody"), (3, "c")] {
        write(number, successor);
    }
    let recorded = |agent: ViewFile<AgentView>, handoff: &str| {
        let mut view = agent.json();
        view["recorded_in"] = json!(handoff);
        ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")
    };
    let agents = [
        recorded(agent("a", None, 1), &id(1)),
        recorded(agent("b", Some("a"), 2), &id(2)),
        recorded(agent("c", Some("b"), 3), "../3"),
    ];
    let members = members("a", &agents);
    let found = handoffs(dir.path(), &members).expect("readable");
    let by: Vec<(&str, String)> = found.iter().map(|(id, handoff)| (*id, handoff.handoff_id.clone())).collect();
    assert_eq!(by, [("b", id(1)), ("c", id(3))]);
}

#[test]
fn a_circle_ends_and_a_missing_ancestor_is_still_named() {
    let circle = [agent("a", Some("b"), 1), agent("b", Some("a"), 2)];
    assert_eq!(tree("a", &circle).len(), 2);
    let orphan = [agent("b", Some("gone"), 2)];
    assert_eq!(tree("b", &orphan), [("gone".to_owned(), 0), ("b".to_owned(), 1)]);
}

#[test]
fn a_successor_without_a_view_is_known_by_its_predecessors() {
    let next = |agent: ViewFile<AgentView>, id: &str| {
        let mut view = agent.json();
        view["successor_id"] = json!(id);
        ViewFile::read(view.to_string().into_bytes()).expect("JSON").expect("an object")
    };
    let alone = [next(agent("a", None, 1), "gone")];
    assert_eq!(tree("a", &alone), [("a".to_owned(), 0), ("gone".to_owned(), 1)]);
    // A view that is there says itself whose successor it is.
    let taken = [next(agent("a", None, 1), "b"), agent("b", Some("x"), 2), agent("x", None, 0)];
    assert_eq!(tree("a", &taken), [("a".to_owned(), 0)]);
}
