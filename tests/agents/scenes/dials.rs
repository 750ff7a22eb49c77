//! The other authors and the other successors.

use crate::cli::Cli;
use crate::model::script;
use crate::scene::Scene;
use crate::steps::STEPS;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;

/// The agent answers with the document, and every block of its answer is in it.
pub(crate) fn agent_reply(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let handoff = scene.stage.hand_off_with(&agent, &json!({"author": "agent_reply"}));
    let view = scene.stage.until_step(&handoff, "done");
    let document = fs::read_to_string(view["file_path"].as_str().expect("a path")).expect("the document");
    assert_eq!(document.trim_end(), script::blocks().join("\n").trim_end());
    scene.until("the successor is briefed", || scene.heard("You take over from agent"));
    scene.nothing_came_twice();
}

/// The agent writes a document with nothing but headings, is asked once in its own pane to repair it, and does. The
/// facts are those that its own transcript tells.
pub(crate) fn repaired(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let handoff = scene.stage.hand_off_with(&agent, &json!({"focus": "the parser [[flaw]]"}));
    let view = scene.stage.until_step(&handoff, "done");
    let path = view["file_path"].as_str().expect("a path");
    assert_eq!(fs::read_to_string(path).expect("the document"), script::document(path), "{view:#}");
    assert_eq!((&view["reworks"], &view["faults"]), (&json!(1), &json!([])), "{view:#}");
    assert_eq!(scene.stage.steps_of(&handoff), STEPS);
    // Codex writes with a command.
    let done = &view["facts"]["actions"];
    let is_named = [&done["files"], &done["commands"]].iter().any(|list| list.to_string().contains(path));
    assert!(is_named, "its own transcript names the file that it wrote: {view:#}");
    scene.nothing_came_twice();
}

/// The successor is a new session of the same process, in the same pane.
pub(crate) fn same_pane(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.says(&agent, "Remember the number eleven.");
    scene.until_idle(&agent);
    let before = scene.stage.agent_view(&agent);
    let handoff = scene.stage.hand_off_with(&agent, &json!({"successor": "same_pane"}));
    let view = scene.stage.until_step(&handoff, "done");
    let successor = scene.stage.agent_view(view["successor_id"].as_str().expect("a successor"));
    assert_eq!((&successor["pane"], &successor["pid"]), (&before["pane"], &before["pid"]), "{successor:#}");
    scene.until("the model hears the context", || scene.heard("<handoff-context>"));
    let heard = scene.conversation("<handoff-context>");
    assert!(!heard.iter().any(|prompt| prompt.contains("number eleven")), "a new session: {heard:#?}");
    assert!(
        heard.iter().any(|prompt| prompt.contains("Continue") || prompt.contains("continue the work")),
        "{heard:#?}"
    );
    scene.nothing_came_twice();
}

/// The agent was killed: its document is made from its transcript.
pub(crate) fn salvage(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.says(&agent, "Remember the number eleven.");
    scene.until_idle(&agent);
    let transcript = scene.stage.agent_view(&agent)["transcript_path"].as_str().expect("it is known").to_owned();
    scene.until("the transcript is written", || {
        let text = fs::read_to_string(&transcript).unwrap_or_default();
        text.contains("number eleven") && text.matches("Understood.").count() > 1
    });
    let pid = scene.stage.agent_view(&agent)["pid"].as_i64().expect("its process is known");
    kill(Pid::from_raw(i32::try_from(pid).expect("a process id")), Signal::SIGKILL).expect("it runs");
    scene.until("the agent is seen to have ended", || !scene.stage.agent_view(&agent)["ended_at"].is_null());
    let handoff = scene.stage.hand_off_with(&agent, &json!({"author": "salvage"}));
    let view = scene.stage.until_step(&handoff, "done");
    let document = fs::read_to_string(view["file_path"].as_str().expect("a path")).expect("the document");
    assert!(document.contains("number eleven") && document.contains("Understood."), "{document}");
    scene.until("the successor is briefed", || scene.heard("You take over from agent"));
    scene.nothing_came_twice();
}

/// What opencode's plugin writes is the whole conversation: also where a prompt is submitted while the agent works, and
/// where a turn is broken off.
pub(crate) fn transcript_is_whole(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    let line = "It takes a while to think about all this.\n\n";
    scene.model.on("First question.", &format!("[[slow:6]] [[say:The first answer. {}]]", line.repeat(10)), 1);
    scene.says(&agent, "First question.");
    scene.until("the answer has begun", || scene.screen(&agent).contains("The first answer"));
    scene.says(&agent, "And this, please.");
    scene.until_idle(&agent);
    scene.model.on("Last question.", &format!("[[slow:60]] [[say:The last answer. {}]]", line.repeat(30)), 1);
    scene.says(&agent, "Last question.");
    scene.until("the answer has begun", || scene.screen(&agent).contains("The last answer"));
    scene.breaks_off(&agent);
    scene.until("the turn is over", || scene.stage.agent_view(&agent)["state"] == "idle");
    let read = scene.succeeds(&["read", &agent]);
    let all = ["First question.", "The first answer.", "And this, please.", "Last question.", "The last answer."];
    assert!(all.iter().all(|said| read.contains(said)), "{read}\n{}", scene.story());
    assert_eq!(read.matches("The first answer.").count(), 1, "{read}");
    assert_eq!(scene.stage.errors(), Vec::<Value>::new());
}

/// The agent that was handed off is asked: its conversation is read, and its session opened again beside the successor.
/// It knows what was said, and nothing of tasuki's is typed to it.
pub(crate) fn asked_afterwards(cli: Cli) {
    let scene = Scene::new(cli);
    let agent = scene.agent();
    scene.says(&agent, "Remember the number eleven.");
    scene.until_idle(&agent);
    let handoff = scene.stage.hand_off(&agent);
    let view = scene.stage.until_step(&handoff, "done");
    let session_id = scene.stage.agent_view(&agent)["session_id"].as_str().expect("it is known").to_owned();
    assert!(view["resume_command"].as_str().is_some_and(|command| command.ends_with(&session_id)), "{view:#}");
    let found = scene.succeeds(&["read", &handoff, "--find", "number eleven"]);
    assert!(found.contains("] user, 20") && found.contains("    Remember the number eleven."), "{found}");
    assert!(scene.succeeds(&["read", &handoff]).contains("    Understood."));
    let answer: Value = serde_json::from_str(&scene.succeeds(&["reopen", &handoff, "--json"])).expect("JSON");
    let old = answer["agent_id"].as_str().expect("an agent").to_owned();
    scene.keep(&old, "reopened");
    scene.says(&old, "Tell me the number again.");
    let heard = scene.conversation("Tell me the number again.");
    assert!(heard.iter().any(|prompt| prompt.contains("number eleven")), "{heard:#?}\n{}", scene.story());
    scene.nothing_came_twice();
    let ended = scene.stage.agent_view(&agent);
    assert_eq!((&ended["state"], &ended["session_id"]), (&json!("ended"), &json!(session_id)), "{ended:#}");
    scene.succeeds(&["agent", "shutdown", &old, "--force"]);
    assert_eq!(scene.stage.errors(), Vec::<Value>::new());
}
