//! What must be so after a pair.

use super::world::World;
use crate::support::stage_files::names;
use serde_json::Value;
use std::collections::BTreeMap;

/// Each request was answered once, and what is said of a text is true.
pub(super) fn answers(world: &World, answers: &[(Value, String)]) {
    let stage = &world.stage;
    let results = names(&stage.spool("results"));
    for (answer, word) in answers {
        let id = answer["request_id"].as_str().expect("an id");
        assert!(!results.contains(&format!("{id}.reused.json")), "{id} was answered twice\n{}", world.story());
        let lines: Vec<Value> =
            stage.journal().into_iter().filter(|line| line["type"] == "request" && line["request_id"] == id).collect();
        assert!(lines.len() <= 1, "{id} was answered twice: {lines:?}\n{}", world.story());
        if answer["kind"] != "agent_send" {
            continue;
        }
        let given = stage
            .recorded()
            .iter()
            .filter(|line| line["text"].as_str().is_some_and(|text| text.contains(&format!("Note {word}."))))
            .count();
        let verdict = answer["result"]["verdict"].as_str();
        let is_true = match verdict {
            Some("delivered") => given == 1,
            Some(_) => given <= 1,
            None => given == 0,
        };
        assert!(is_true, "given {given} times, and said of it: {answer}\n{}", world.story());
    }
}

/// The views agree with each other.
pub(super) fn views(world: &World) {
    let stage = &world.stage;
    let (agents, handoffs) = (stage.views("agents"), stage.views("handoffs"));
    let agent = |id: &Value| agents.iter().find(|view| view["agent_id"] == *id);
    let fail = |what: &str, view: &Value| panic!("{what}: {view:#}\n{}", world.story());
    let mut panes: BTreeMap<String, u32> = BTreeMap::new();
    for view in world.living() {
        if let Some(pane) = view["pane"].as_str() {
            *panes.entry(pane.to_owned()).or_default() += 1;
        }
        if !view["handoff_id"].is_null() {
            fail("an agent is held although no handoff runs", &view);
        }
        if !view["ended_at"].is_null() {
            fail("a living agent has ended", &view);
        }
    }
    if let Some((pane, count)) = panes.iter().find(|(_, count)| **count > 1) {
        fail(&format!("{count} living agents in {pane}"), &Value::Null);
    }
    for view in &agents {
        if let Some(next) = view["successor_id"].as_str().and_then(|_| agent(&view["successor_id"]))
            && next["previous_agent_id"].is_null()
        {
            fail("a successor without a predecessor", view);
        }
        let records = handoffs.iter().filter(|handoff| {
            handoff["agent_id"] == view["agent_id"] && handoff["recorded_at"].is_string() && handoff["step"] == "done"
        });
        if records.count() > 1 {
            fail("two handoffs of one agent are done", view);
        }
    }
    for view in &handoffs {
        let error = view["error"].is_null();
        if (view["step"] == "failed" && error) || (view["step"] == "done" && !error) {
            fail("the error does not fit the step", view);
        }
        if view["step"] == "done" && agent(&view["successor_id"]).is_none() {
            fail("done without a successor", view);
        }
    }
}
