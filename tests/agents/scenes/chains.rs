//! Work that goes from one CLI to the next.

use super::crashes::kill_in_each_step;
use crate::cli::Cli;
use crate::scene::{PERSONA, Scene};
use serde_json::Value;

/// Claude Code, Codex, pi, and Claude Code again: each reads the document of the one before with its own tools. In each
/// handoff the sidecar is killed in each step.
pub(crate) fn chain(first: Cli) {
    let scene = Scene::of_several(&[first, Cli::Codex, Cli::Pi], "", |_| {});
    let mut agents = vec![scene.agent()];
    for next in [Cli::Codex, Cli::Pi, first] {
        scene.model.on("You take over from agent", "[[read]]", 1);
        let before = agents.last().expect("there is always one").clone();
        scene.succeeds(&["handoff", PERSONA, "--profile", next.name()]);
        let id = handoff_of(&scene, &before);
        kill_in_each_step(&scene, &id);
        let view = scene.stage.until_step(&id, "done");
        assert_eq!(view["successor_profile"], next.name(), "{view:#}");
        let name = view["file_path"].as_str().and_then(|path| path.rsplit('/').next()).expect("a document").to_owned();
        scene.until(&format!("{} reads the document", next.name()), || {
            let heading = format!("# Handoff {name}");
            scene.model.look(|heard| {
                heard.iter().any(|heard| {
                    heard.tool_result.as_ref().is_some_and(|read| read.contains(&heading))
                        && heard.prompts.last().is_some_and(|prompt| prompt.contains(&before))
                })
            })
        });
        let successor = view["successor_id"].as_str().expect("a successor").to_owned();
        scene.until_idle(&successor);
        agents.push(successor);
    }
    let text = scene.succeeds(&["lineage", agents.last().expect("the last one"), "--json"]);
    let lineage: Value = serde_json::from_str(&text).expect("JSON");
    let members: Vec<(&str, &str)> = lineage["lineage"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|view| (view["agent_id"].as_str().unwrap_or_default(), view["profile"].as_str().unwrap_or_default()))
        .collect();
    let profiles = [first, Cli::Codex, Cli::Pi, first].map(Cli::name);
    let expected: Vec<(&str, &str)> = agents.iter().map(String::as_str).zip(profiles).collect();
    assert_eq!(members, expected, "{lineage:#}");
    scene.nothing_came_twice();
}

fn handoff_of(scene: &Scene, agent: &str) -> String {
    scene.stage.wait_for("the handoff's view", || {
        let views = scene.stage.views("handoffs");
        let view = views.iter().find(|view| view["agent_id"] == agent)?;
        view["handoff_id"].as_str().map(str::to_owned)
    })
}
