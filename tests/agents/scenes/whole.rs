//! Handoffs in which nothing goes wrong.

use crate::cli::Cli;
use crate::scene::{PERSONA, Scene, skill};
use serde_json::{Map, Value, json};
use std::fs;

/// What is between our first line and our last one.
fn body(prompt: &str) -> &str {
    let (_, rest) = prompt.split_once('\n').expect("a first line of ours");
    rest.rsplit_once('\n').expect("a last line of ours").0
}

/// With default permissions and settings that nobody has touched: two commands, no dialog, and everything that was
/// typed reaches the model as it was written, once, in its order.
pub(crate) fn handoff(cli: Cli) {
    let scene = Scene::new(cli);
    let settings = scene.settings();
    scene.succeeds(&["agent", "create", PERSONA, "--profile", cli.name()]);
    let agent = scene.stage.views("agents")[0]["agent_id"].as_str().expect("an id").to_owned();
    scene.succeeds(&["handoff", PERSONA, "--reason", "context_limit", "--wait"]);
    let handoff = scene.stage.views("handoffs").remove(0);
    assert_eq!(handoff["step"], "done", "{handoff:#}\n{}", scene.story());
    let written = fs::read_to_string(handoff["file_path"].as_str().expect("a path")).expect("the document");
    assert!(written.contains("\n# Handoff 2"), "the document is the model's own: {written}");
    assert_eq!(scene.stage.errors(), Vec::<Value>::new());
    arrived(&scene, &agent, &handoff);
    // Some CLIs add notes of their own; nothing else may be different.
    for ((path, before), (_, after)) in settings.iter().zip(scene.settings()) {
        assert!(is_kept(before, &after), "{} was changed:\n{before}\n{after}", path.display());
    }
    let own = scene.own_hooks();
    let (prompt, stop) = match cli {
        Cli::Claude | Cli::Codex => ("UserPromptSubmit", "Stop"),
        Cli::Pi => ("input", "agent_end"),
        Cli::Gemini => ("BeforeAgent", "AfterAgent"),
        Cli::Opencode => ("chat.message", "session.idle"),
    };
    assert!(own.iter().any(|name| name == prompt) && own.iter().any(|name| name == stop), "{own:?}");
    let blocked = scene.stage.journal().into_iter().any(|line| line["state"] == "blocked");
    assert!(!blocked, "no dialog was open at any time\n{}", scene.story());
}

/// Whether everything that stood in a file is there still.
fn is_kept(before: &str, after: &str) -> bool {
    match (serde_json::from_str::<Map<String, Value>>(before), serde_json::from_str::<Map<String, Value>>(after)) {
        (Ok(before), Ok(after)) => before.iter().all(|(key, value)| after.get(key) == Some(value)),
        _ => after.starts_with(before),
    }
}

/// What both agents were told, word for word.
fn arrived(scene: &Scene, agent: &str, handoff: &Value) {
    let outgoing = scene.conversation("Write a handoff document");
    assert_eq!(outgoing.len(), 2, "skill and instruction: {outgoing:#?}");
    assert_eq!(body(&outgoing[0]), skill().trim_end());
    let briefing = handoff["injection_prompt"].as_str().expect("a briefing");
    scene.until("the successor answers", || scene.heard(briefing.lines().next().expect("a line")));
    let successor = scene.conversation("You take over from agent");
    assert_eq!(successor.len(), 2, "skill and briefing: {successor:#?}");
    assert_eq!(body(&successor[0]), skill().trim_end());
    assert_eq!(body(&successor[1]), briefing);
    assert!(briefing.contains(agent));
    scene.nothing_came_twice();
    for prompt in outgoing.iter().chain(&successor) {
        assert!(!prompt.contains("pasted_content"), "{prompt}");
    }
}

/// The CLI itself tells the size of its context window, so tasuki knows how full the context is, without a guess.
pub(crate) fn context_in_percent(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let context = || scene.stage.agent_view(&agent)["context"].clone();
    scene.until("it is known how full the context is", || context()["percent"].is_u64());
    assert_eq!(context()["window_is_guess"], false, "{:#}", context());
}

/// The agent's user begins a new session in the same process, then the handoff goes on as ever.
pub(crate) fn new_session_between(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.keep(&agent, "ready");
    scene.says(&agent, "Remember the number eleven.");
    scene.until_idle(&agent);
    scene.types(&agent, cli.new_session(), &["Enter"]);
    scene.until("the new session is there", || !scene.screen(&agent).contains("number eleven"));
    scene.says(&agent, "Remember the number twelve.");
    scene.until_idle(&agent);
    let handoff = scene.stage.hand_off(&agent);
    let view = scene.stage.until_step(&handoff, "done");
    let outgoing = scene.conversation("Write a handoff document");
    assert_eq!(outgoing.len(), 2, "the new session's prompt and the instruction: {outgoing:#?}");
    assert!(outgoing[0].contains("twelve"), "{outgoing:#?}");
    assert_eq!(view["verdicts"]["briefing"]["verdict"], "delivered", "{view:#}");
    scene.nothing_came_twice();
}

/// A handoff waits for the agent's turn, and the turn's answer is not lost.
pub(crate) fn busy(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.says(
        &agent,
        "Take your time. [[slow:6]] [[say:That was the whole of the long answer, to its very last word.]]",
    );
    scene.until("the agent is seen to be busy", || scene.stage.agent_view(&agent)["state"] == "busy");
    let handoff = scene.stage.hand_off(&agent);
    scene.stage.until_step(&handoff, "waiting");
    assert!(!scene.heard("Write a handoff document"));
    scene.until("the answer ends", || scene.screen(&agent).contains("very last word."));
    scene.stage.until_step(&handoff, "done");
    let outgoing = scene.conversation("Write a handoff document");
    assert_eq!(outgoing.len(), 3, "{outgoing:#?}");
    scene.nothing_came_twice();
}

/// The user hands the agent off by the command that tasuki brings into the CLI, with a focus.
pub(crate) fn by_command(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| scene.install_hooks(cli));
    let agent = if cli == Cli::Codex { reviewed(&scene) } else { scene.agent() };
    let asks = format!(
        "{} handoff --self --home {} --reason 'asked for in the session' --focus='the parser'",
        env!("CARGO_BIN_EXE_tasuki"),
        scene.stage.home().display()
    );
    scene.model.on("through tasuki", &format!("[[run:{asks}]][[outside]]"), 1);
    let command = if cli == Cli::Codex { "$handoff the parser" } else { "/handoff the parser" };
    scene.types(&agent, command, &["Enter"]);
    let mut pressed = None;
    let handoff = scene.stage.wait_for("the handoff begins", || {
        let view = scene.stage.agent_view(&agent);
        // The CLI asks whether the model may run that.
        if view["state"] == "blocked" {
            scene.presses(&agent, &["Enter"], &mut pressed);
        }
        view["handoff_id"].as_str().map(str::to_owned)
    });
    let view = scene.stage.until_step(&handoff, "done");
    assert_eq!(view["focus"], "the parser", "{view:#}");
    scene.until("the successor is briefed", || scene.heard("You take over from agent"));
    scene.nothing_came_twice();
    assert_eq!(scene.stage.errors(), Vec::<serde_json::Value>::new());
}

/// Codex asks its user at its next start whether new hooks are to be trusted; then the agent continues by itself.
fn reviewed(scene: &Scene) -> String {
    scene.stage.send(&json!({"kind": "agent_create", "persona_slug": PERSONA}));
    let agent = scene.stage.wait_for("the dialog is seen", || {
        let blocked = scene.stage.views("agents").into_iter().find(|view| view["state"] == "blocked")?;
        blocked["agent_id"].as_str().map(str::to_owned)
    });
    assert!(scene.screen(&agent).contains("Trust all and continue"), "{}", scene.story());
    scene.types(&agent, "", &["Down", "Enter"]);
    scene.until_idle(&agent);
    let told = scene.only_error();
    assert_eq!(told["code"], "start_failed", "{told}");
    let error = told["error_id"].as_str().expect("an id");
    scene.succeeds(&["errors", "dismiss", error]);
    agent
}
