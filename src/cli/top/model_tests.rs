//! Views of any kind become rows, and rows are in order.

use super::*;
use crate::contract::understood;
use serde_json::{Value, json};

fn agent(id: &str, previous: Option<&str>, state: &str, at: u32) -> AgentRow {
    let view = json!({"agent_id": id, "previous_agent_id": previous, "state": state,
        "registered_at": format!("2026-01-01T00:00:{at:02}.000Z")});
    read_agent(&view).expect("an agent")
}

fn read_failure(file: &Value) -> Option<FailureRow> {
    FailureRow::read(&understood(file.clone())?)
}

fn read_handoff(view: &Value) -> Option<HandoffRow> {
    HandoffRow::read(&understood(view.clone())?)
}

fn read_agent(view: &Value) -> Option<AgentRow> {
    AgentRow::read(&understood(view.clone())?)
}

fn model(agents: Vec<AgentRow>, handoffs: &[Value]) -> Model {
    let handoffs = handoffs.iter().filter_map(read_handoff).collect();
    Model { agents, handoffs, ..Model::default() }.arranged()
}

#[test]
fn empty_and_nonsensical_views_make_neither_rows_nor_panics() {
    let nonsense = [json!(null), json!([]), json!({}), json!({"agent_id": 5}), json!({"handoff_id": "x", "steps": 7})];
    for view in &nonsense {
        assert!(read_agent(view).is_none() && read_handoff(view).is_none(), "{view}");
        assert!(
            read_failure(view).is_none() && understood(view.clone()).as_ref().and_then(WorkRow::read).is_none(),
            "{view}"
        );
    }
    let odd = json!({"handoff_id": "h", "agent_id": "a", "steps": [{}, 1, null], "verdicts": 3, "error": "no", "deadline": "soon"});
    let odd = read_handoff(&odd).expect("it has ids");
    assert_eq!((odd.entered_ms, odd.deadline_ms, odd.error, odd.step.as_str()), (None, None, None, "-"));
}

#[test]
fn a_view_whose_id_is_not_a_plain_file_name_makes_no_row() {
    for id in ["../../etc/passwd", ".hidden", "a/b"] {
        assert!(read_agent(&json!({"agent_id": id})).is_none(), "{id}");
    }
}

#[test]
fn lineages_with_a_living_agent_come_first() {
    let agents = vec![
        agent("dead-a", None, "ended", 1),
        agent("b", Some("a"), "idle", 3),
        agent("a", None, "ended", 2),
        agent("c", Some("gone"), "busy", 4),
    ];
    let model = model(agents, &[]);
    let shown: Vec<(usize, &str)> =
        model.kin.iter().map(|(depth, place)| (*depth, model.agents[*place].id.as_str())).collect();
    assert_eq!(shown, [(0, "a"), (1, "b"), (0, "c"), (0, "dead-a")]);
}

#[test]
fn handoffs_that_run_come_first_then_failed_ones_then_the_newest() {
    let handoff =
        |id: &str, step: &str, at: &str| json!({"handoff_id": id, "agent_id": "a", "step": step, "created_at": at});
    let all = [
        handoff("1", "done", "5"),
        handoff("2", "failed", "1"),
        handoff("3", "writing", "2"),
        handoff("4", "done", "6"),
    ];
    let model = model(vec![agent("a", None, "idle", 1)], &all);
    let order: Vec<&str> = model.handoffs.iter().map(|handoff| handoff.id.as_str()).collect();
    assert_eq!(order, ["3", "2", "4", "1"]);
    assert_eq!(model.running().count(), 1);
    assert_eq!(model.holds_for().as_secs(), 1, "its steps have running clocks");
    let own = |model: &Model| model.handoff_of(&model.agents[0]).map(|handoff| handoff.id.clone());
    assert_eq!(
        own(&model).as_deref(),
        Some("3"),
        "the agent's view may no longer name a handoff that runs by its own view"
    );
    let model = self::model(vec![agent("a", None, "idle", 1)], &[all[0].clone(), all[1].clone()]);
    assert_eq!(own(&model).as_deref(), Some("2"), "a failed handoff is found though the agent's view does not name it");
}

#[test]
fn a_failure_counts_until_its_handoff_is_over_or_has_continued() {
    let handoff = |id: &str, step: &str, more: Value| {
        let mut view = json!({"handoff_id": id, "agent_id": "a", "step": step});
        view.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        view
    };
    let published = |state: &str, error: Value| json!({"publish": {"state": state, "error": error}});
    let all = [
        handoff("1", "failed", json!({"error": {"error_id": "e1", "step": "briefing", "code": "not_delivered"}})),
        handoff("2", "cancelled", json!({})),
        handoff("3", "done", published("failed", json!({"error_id": "e5", "message": "log in"}))),
        handoff("4", "done", published("published", Value::Null)),
        handoff("5", "reading", published("retrying", Value::Null)),
    ];
    let failure = |id: &str, handoff: &str, code: &str, step: &str| {
        let file = json!({"error_id": id, "handoff_id": handoff, "code": code, "step": step});
        read_failure(&file).expect("a failure")
    };
    let failures = vec![
        failure("e1", "1", "not_delivered", "briefing"),
        failure("e2", "2", "not_delivered", "instructing"),
        failure("e3", "3", "not_delivered", "briefing"),
        // These failures did not stop the handoff, so they still count when it is done.
        failure("e4", "3", "message_failed", "acknowledging"),
        failure("e5", "3", "gh_auth", "publishing"),
        failure("e6", "unknown", "not_delivered", "briefing"),
        // The document was published after that, or is being published.
        failure("e7", "4", "gh_auth", "publishing"),
        failure("e8", "5", "gh_auth", "publishing"),
        failure("e9", "5", "not_delivered", "briefing"),
    ];
    let handoffs = all.iter().filter_map(read_handoff).collect();
    let model = Model { handoffs, failures, ..Model::default() }.arranged();
    let mut open: Vec<&str> = model.open_failures().map(|failure| failure.id.as_str()).collect();
    open.sort_unstable();
    assert_eq!(open, ["e1", "e4", "e5", "e6"]);
    let mut listed: Vec<&str> = model.needs.iter().filter_map(|need| need.error_id.as_deref()).collect();
    listed.sort_unstable();
    assert_eq!(listed, open, "what waits for a person is the same");
}

/// What a person decides about the earlier failure would count for the later one.
#[test]
fn a_handoff_has_failed_again_only_after_a_failure_that_had_stopped_it() {
    let error = json!({"error_id": "e2", "code": "unconfirmed", "step": "briefing"});
    let view = json!({"handoff_id": "h", "agent_id": "a", "step": "failed", "error": error});
    let failure = |id: &str, handoff: &str, step: &str| {
        let file = json!({"error_id": id, "handoff_id": handoff, "code": "unconfirmed", "step": step});
        read_failure(&file).expect("a failure")
    };
    let failures = vec![
        failure("e1", "h", "priming"),
        failure("e2", "h", "briefing"),
        failure("e3", "h", "publishing"),
        failure("e4", "other", "priming"),
    ];
    let model = Model { failures, ..model(Vec::new(), &[view]) };
    let again = |id: &str| model.has_failed_again("h", Some(id));
    assert_eq!(["e1", "e2", "e3", "e4", "e5"].map(again), [true, false, false, false, false]);
    assert!(!model.has_failed_again("h", None) && !model.has_failed_again("other", Some("e4")));
}

#[test]
fn only_a_text_that_a_person_must_decide_about_is_in_doubt() {
    let failed = |code: &str, step: &str| {
        let view = json!({"handoff_id": "h", "agent_id": "a", "step": "failed", "error": {"error_id": "e", "code": code, "step": step}});
        read_handoff(&view).expect("a handoff").is_in_doubt()
    };
    assert!(failed("unconfirmed", "briefing") && failed("priming_failed", "priming"));
    assert!(!failed("not_delivered", "briefing") && !failed("priming_failed", "briefing"));
}

#[test]
fn a_screen_without_running_clocks_is_drawn_again_when_its_ages_have_grown_by_a_minute() {
    let done = json!({"handoff_id": "h", "agent_id": "a", "step": "done"});
    assert_eq!(model(Vec::new(), &[done]).holds_for().as_secs(), 60);
    let silent = SidecarStatus { is_alive: false, heartbeat_ms: Some(1), ..SidecarStatus::default() };
    assert_eq!(Model::new("/h", "/u", silent).holds_for().as_secs(), 1, "how long the sidecar is silent");
}
