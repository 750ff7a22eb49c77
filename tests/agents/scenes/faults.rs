//! Handoffs in which something goes wrong, with the name that it is given.

use crate::cli::Cli;
use crate::scene::Scene;
use crate::stage_files::make_folder;
use serde_json::json;
use std::time::{Duration, Instant};

/// Somebody's half-typed draft: nothing is typed, and the draft stays.
pub(crate) fn draft(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.types(&agent, "please do not", &[]);
    scene.keep(&agent, "draft");
    let handoff = scene.stage.hand_off(&agent);
    scene.stage.until_failed(&handoff, "instructing", "not_delivered");
    let view = scene.stage.handoff_view(&handoff);
    assert_eq!(view["verdicts"]["instruction"]["reason"], "draft", "{view:#}");
    assert!(scene.screen(&agent).contains("please do not"));
    assert!(!scene.heard("handoff document"), "{}", scene.story());
    scene.only_error();
    // The user goes on with the draft, and a retry does the rest.
    scene.types(&agent, " worry", &["Enter"]);
    scene.until("the draft is whole", || scene.heard("please do not worry"));
    scene.until_idle(&agent);
    scene.succeeds(&["retry", &handoff]);
    scene.stage.until_step(&handoff, "done");
    scene.nothing_came_twice();
}

/// A permission dialog is open: nothing is typed, the operator is told; answered, the handoff goes on.
pub(crate) fn dialog(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| cli.ask_always(&scene.home()));
    let agent = scene.agent();
    let command = "touch /tmp/.tasuki-agents-e2e-never; rm -f /tmp/.tasuki-agents-e2e-never";
    scene.says(&agent, &format!("Please run it. [[run:{command}]]"));
    scene.until("a dialog is open", || scene.stage.agent_view(&agent)["state"] == "blocked");
    // The event comes a moment before the dialog is drawn.
    scene.until("the dialog is drawn", || scene.screen(&agent).contains("Yes"));
    scene.keep(&agent, "permission");
    let handoff = scene.stage.hand_off(&agent);
    let view = scene.stage.until_step(&handoff, "waiting");
    assert!(view["error"].is_null(), "{view:#}");
    scene.until("the operator is told of the dialog", || {
        let journal = scene.stage.journal();
        journal.iter().any(|line| line["agent_id"] == agent && line["state"] == "blocked")
    });
    assert!(!scene.heard("handoff document"));
    let screen = scene.screen(&agent);
    assert!(screen.contains("tasuki-agents-e2e-never") && !screen.contains("Write a handoff"), "{screen}");
    // A dialog that was just drawn takes no key for a moment.
    let mut pressed = Instant::now();
    scene.until("the dialog is answered", || {
        if pressed.elapsed() > Duration::from_secs(2) && scene.screen(&agent).contains("1. Yes") {
            scene.types(&agent, "", &["Enter"]);
            pressed = Instant::now();
        }
        scene.stage.handoff_view(&handoff)["step"] != "waiting"
    });
    scene.stage.until_step(&handoff, "done");
    scene.nothing_came_twice();
}

/// A text higher than its pane, in the renderer whose composer grows out of it.
pub(crate) fn classic_renderer(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| {
        let profiles = scene.stage.home().join("data/profiles");
        make_folder(&profiles);
        cli.draw_as_before(&scene.home(), &profiles);
    });
    let agent = scene.agent();
    let pane = scene.pane(&agent);
    let alternate = scene.stage.tmux(&["display-message", "-p", "-t", &pane, "#{alternate_on}"]);
    assert_eq!(alternate.trim(), "0", "it has a screen of its own: that is the other renderer");
    scene.stage.tmux(&["resize-window", "-t", &pane, "-x", "80", "-y", "24"]);
    let text: Vec<String> = (1..=60).map(|number| format!("short line {number}")).collect();
    let answer = scene.stage.ask(&json!({"kind": "agent_send", "agent_id": agent, "text": text.join("\n")}));
    assert_eq!(answer["result"]["verdict"], "delivered", "{answer}\n{}", scene.story());
    scene.until("the model hears all of it", || scene.heard(&text.join("\n")));
    scene.nothing_came_twice();
}

/// Claude Code tells of a prompt that another hook refuses at the same time. No model sees it, so it is not delivered;
/// the text stands in the composer again, and its user decides.
pub(crate) fn refused_by_a_hook(cli: Cli) {
    let refuse = |scene: &Scene| scene.home().join("refuse");
    let scene = Scene::with(cli, "", |scene| cli.refuse_prompts(&scene.home(), &refuse(scene)));
    let agent = scene.agent();
    std::fs::write(refuse(&scene), "").expect("a file");
    let text = "Look at the parser.";
    let answer = scene.stage.ask(&json!({"kind": "agent_send", "agent_id": agent, "text": text}));
    let verdict = (&answer["result"]["verdict"], &answer["result"]["reason"]);
    assert_eq!(verdict, (&json!("unconfirmed"), &json!("not_taken")), "{answer}\n{}", scene.story());
    assert!(!scene.heard(text) && scene.screen(&agent).contains(text), "{}", scene.story());
    std::fs::remove_file(refuse(&scene)).expect("it is there");
    scene.types(&agent, "", &["Enter"]);
    scene.until("the model hears it", || scene.heard(text));
    scene.nothing_came_twice();
}

/// Claude Code tells of the end of a turn also if another hook lets the turn continue at the same time. The document
/// that is written only then counts.
pub(crate) fn continued_by_a_hook(cli: Cli) {
    let more = |scene: &Scene| scene.home().join("more");
    let scene = Scene::with(cli, "", |scene| cli.continue_after_stop(&scene.home(), &more(scene)));
    let agent = scene.agent();
    scene.model.on("Write a handoff document", "[[say:Done.]] [[slow:2]]", 1);
    let handoff = scene.stage.hand_off(&agent);
    let path = scene.stage.handoff_view(&handoff)["file_path"].as_str().expect("a path").to_owned();
    let said = format!("Your handoff document is missing:\n`{path}`\nWrite it, with ## Next steps. [[slow:6]]\n");
    std::fs::write(more(&scene), said).expect("a file");
    let view = scene.stage.until_step(&handoff, "done");
    assert!(!more(&scene).exists(), "the hook was asked: {view:#}");
    assert!(scene.heard("Your handoff document is missing"), "{}", scene.story());
    scene.nothing_came_twice();
}

/// In a folder that it was not told to trust Codex writes nothing, its document neither. As an answer it can give it.
pub(crate) fn untrusted_folder(cli: Cli) {
    let scene = Scene::with(cli, "", |scene| cli.distrust(&scene.home()));
    let agent = scene.agent();
    let handoff = scene.stage.hand_off(&agent);
    scene.stage.until_failed(&handoff, "writing", "document_missing");
    scene.only_error();
    let handoff = scene.stage.hand_off_with(&agent, &json!({"author": "agent_reply"}));
    scene.stage.until_step(&handoff, "done");
    scene.nothing_came_twice();
}

/// The model fails in the handoff's own turn.
pub(crate) fn model_error(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.model.on("Write a handoff document", "[[error:400]]", 20);
    let handoff = scene.stage.hand_off(&agent);
    let view = scene.stage.until_step(&handoff, "failed");
    let code = view["error"]["code"].as_str().expect("a code");
    let named: &[&str] = match cli {
        Cli::Claude | Cli::Opencode | Cli::Pi => &["agent_failed"],
        // It has no event for that: the screen tells.
        Cli::Codex | Cli::Gemini => &["document_missing", "stop_never_came"],
    };
    assert!(named.contains(&code), "{view:#}\n{}", scene.story());
    assert_eq!(view["error"]["step"], "writing");
    scene.only_error();
    assert!(scene.stage.agent_view(&agent)["ended_at"].is_null(), "the agent is left running");
}

/// The user presses Esc before the first word of the answer; Claude Code then puts the prompt back into its composer.
pub(crate) fn early_interrupt(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.model.on("Write a handoff document", "[[hang]]", 1);
    let handoff = scene.stage.hand_off(&agent);
    scene.until("the model hears the instruction", || scene.heard("Write a handoff document"));
    scene.until("the turn is seen", || scene.screen(&agent).contains("esc to interrupt"));
    scene.types(&agent, "", &["Escape"]);
    scene.stage.until_failed(&handoff, "writing", "document_missing");
    scene.keep(&agent, "interrupted");
    // The text that came back is the user's to clear away; until then nothing more is typed.
    scene.succeeds(&["retry", &handoff]);
    scene.stage.until_failed(&handoff, "instructing", "not_delivered");
    scene.types(&agent, "", &["C-c"]);
    scene.until("the composer is empty", || !scene.screen(&agent).contains("Write it with your own tools"));
    scene.succeeds(&["retry", &handoff]);
    scene.stage.until_step(&handoff, "done");
}

/// The user presses Esc in the handoff's own turn.
pub(crate) fn interrupt(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let lines = "It takes a while to think about all this.\n\n".repeat(20);
    scene.model.on("Write a handoff document", &format!("[[slow:60]] [[say:{lines}]]"), 1);
    let handoff = scene.stage.hand_off(&agent);
    scene.stage.until_step(&handoff, "writing");
    scene.until("the answer has begun", || scene.screen(&agent).contains("It takes"));
    scene.keep(&agent, "busy");
    scene.breaks_off(&agent);
    let view = scene.stage.until_step(&handoff, "failed");
    assert_eq!(view["error"]["step"], "writing", "{view:#}");
    let code = view["error"]["code"].as_str().expect("a code");
    assert!(["document_missing", "agent_failed", "interrupted"].contains(&code), "{view:#}");
    scene.only_error();
    // The user says what is wanted; a retry writes the document after all.
    scene.succeeds(&["retry", &handoff]);
    scene.stage.until_step(&handoff, "done");
    scene.nothing_came_twice();
}
