//! Agents that can't be started, or wait for their user at the start.

use crate::cli::Cli;
use crate::scene::{PERSONA, Scene};
use serde_json::json;

/// The program is not there: that is said, and nothing is left behind.
pub(crate) fn not_installed(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| scene.set("PATH", "/usr/bin:/bin"));
    let answer = scene.stage.ask(&json!({"kind": "agent_create", "persona_slug": PERSONA}));
    assert_eq!(answer["ok"], false, "{answer}");
    let error = scene.only_error();
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains(cli.name()), "the operator learns which program is missing: {error:#}");
    assert!(scene.model.heard().is_empty());
}

/// A user who has not logged in, which Claude Code says only when it is spoken to.
pub(crate) fn not_logged_in(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| scene.set("ANTHROPIC_API_KEY", ""));
    scene.stage.ask(&json!({"kind": "agent_create", "persona_slug": PERSONA}));
    let error = scene.only_error();
    let message = error["message"].as_str().expect("a message");
    assert_eq!(error["code"], "priming_failed", "{error:#}\n{}", scene.story());
    assert!(message.contains("login"), "the operator learns what the matter is: {error:#}\n{}", scene.story());
}

/// A first-run dialog: the operator is told what the screen shows, and nothing is typed.
pub(crate) fn first_run(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| cli.unsettle(&scene.home()));
    scene.stage.ask(&json!({"kind": "agent_create", "persona_slug": PERSONA}));
    let error = scene.only_error();
    let message = error["message"].as_str().expect("a message");
    let shown = match cli {
        Cli::Claude => "trust this folder",
        Cli::Codex => "Sign in with ChatGPT",
        Cli::Pi => "No models available",
        Cli::Gemini | Cli::Opencode => unreachable!("no scene is played with it"),
    };
    assert!(message.contains(shown), "the operator learns what the screen shows: {error:#}\n{}", scene.story());
    assert!(scene.model.heard().is_empty());
    let agent = scene.stage.views("agents").remove(0);
    scene.keep(agent["agent_id"].as_str().expect("an id"), "first_run");
    assert!(agent["ended_at"].is_null(), "the agent is left for its user: {agent:#}");
}
