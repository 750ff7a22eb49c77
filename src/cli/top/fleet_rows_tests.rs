//! The rows of other hosts.

use super::*;
use crate::contract::understood;
use serde_json::json;

fn host(away_since: Option<&str>) -> HostView {
    let view = json!({
        "host": "box-1", "authentic": true, "seen_at": "2026-11-25T12:30:00.000Z", "away_since": away_since,
        "agents": [
            {"agent_id": "a-1", "persona": "mia", "profile": "demo", "state": "blocked", "context": 81, "handoff_id": "h-1"},
            {"agent_id": "a-2", "persona": null, "profile": "claude", "state": "busy"},
            {"agent_id": "../../etc", "persona": "eve", "state": "idle"},
        ],
        "handoffs": [
            {"handoff_id": "h-1", "agent_id": "a-1", "persona": "mia", "step": "writing", "since": "2026-11-25T12:00:00.000Z"},
            {"handoff_id": "h-2", "agent_id": "a-1", "persona": null, "step": "failed", "error": "document_missing"},
        ],
    });
    understood(view).expect("a host")
}

#[test]
fn rows_of_a_live_host_have_its_name_and_no_age() {
    let (agents, handoffs) = (agents(&host(None), true), handoffs(&host(None), true));
    let ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["a-1", "a-2"], "an id is never a path");
    let mark = HostMark { name: "box-1".to_owned(), state: HostState::Live, since_ms: None };
    assert_eq!((agents[0].host.as_ref(), agents[0].context), (Some(&mark), Some((0, Some(81)))));
    assert!(handoffs[0].is_running() && handoffs[0].entered_ms.is_some() && handoffs[0].host.is_some());
    let error = handoffs[1].error.as_ref().map(|error| error.code.as_str());
    assert_eq!((handoffs[1].is_running(), error), (false, Some("document_missing")));
}

#[test]
fn rows_of_a_host_that_is_not_live_say_how_old_they_are() {
    let since = "2026-11-25T12:00:00.000Z";
    let known = |host: &HostView, is_fresh: bool| {
        let mark = agents(host, is_fresh)[0].host.clone().expect("a host");
        (mark.state, mark.since_ms)
    };
    assert_eq!(known(&host(Some(since)), true), (HostState::Away, millis(since)));
    assert_eq!(known(&host(None), false), (HostState::Unknown, millis("2026-11-25T12:30:00.000Z")));
    let away = host(Some(since));
    let lines = agent_lines(&away, true, &away.agents[0]).join("\n");
    for part in ["host        box-1", "known       away", "away since  2026", "persona     mia", "context     81 %"] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    assert!(handoff_lines(&away, true, &away.handoffs[1]).contains(&"error       document_missing".to_owned()));
}
