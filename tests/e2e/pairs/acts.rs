//! What is done to an agent: what is asked for, what its hooks say, what a person's hands do.

use super::world::World;
use crate::support::stage::Stage;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What may happen to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Ask(Ask),
    Hook(&'static str),
    Keys(Keys),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Send,
    Provided,
    File,
    SamePane,
    Existing,
    Cancel,
    Accept,
    Retry,
    Abandon,
    Shutdown,
    Force,
    Forget,
    Register,
    Create,
    Claim,
    Release,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Prompt,
    Draft,
    Enter,
    Clear,
    Exit,
    Interrupt,
    CopyMode,
    Resize,
    KillPane,
    Kill,
}

/// Every one of them.
pub(super) const ACTS: [Act; 36] = [
    Act::Ask(Ask::Send),
    Act::Ask(Ask::Provided),
    Act::Ask(Ask::File),
    Act::Ask(Ask::SamePane),
    Act::Ask(Ask::Existing),
    Act::Ask(Ask::Cancel),
    Act::Ask(Ask::Accept),
    Act::Ask(Ask::Retry),
    Act::Ask(Ask::Abandon),
    Act::Ask(Ask::Shutdown),
    Act::Ask(Ask::Force),
    Act::Ask(Ask::Forget),
    Act::Ask(Ask::Register),
    Act::Ask(Ask::Create),
    Act::Ask(Ask::Claim),
    Act::Ask(Ask::Release),
    Act::Hook("session_start"),
    Act::Hook("prompt_submit"),
    Act::Hook("stop"),
    Act::Hook("stop_failure"),
    Act::Hook("interrupted"),
    Act::Hook("blocked"),
    Act::Hook("notification"),
    Act::Hook("context"),
    Act::Hook("session_end"),
    Act::Hook("nested"),
    Act::Keys(Keys::Prompt),
    Act::Keys(Keys::Draft),
    Act::Keys(Keys::Enter),
    Act::Keys(Keys::Clear),
    Act::Keys(Keys::Exit),
    Act::Keys(Keys::Interrupt),
    Act::Keys(Keys::CopyMode),
    Act::Keys(Keys::Resize),
    Act::Keys(Keys::KillPane),
    Act::Keys(Keys::Kill),
];

/// About whom, and a word that nobody else uses.
pub(super) struct About<'a> {
    pub(super) agent: &'a Value,
    pub(super) other: &'a str,
    pub(super) handoff: &'a str,
    pub(super) item: &'a str,
    pub(super) word: &'a str,
}

impl Act {
    /// Does it; gives the id of the request, if it is one.
    pub(super) fn go(self, world: &World, about: &About<'_>) -> Option<String> {
        match self {
            Act::Ask(ask) => Some(world.stage.send(&ask.request(about))),
            Act::Hook(event) => {
                let body = hook(event, about);
                world.stage.drop_file("events", &format!("{}.json", about.word), body.to_string().as_bytes());
                None
            }
            Act::Keys(keys) => {
                keys.press(world, about);
                None
            }
        }
    }
}

impl Ask {
    fn request(self, about: &About<'_>) -> Value {
        let agent = &about.agent["agent_id"];
        let handoff = |more: Value| {
            let mut request = json!({"kind": "handoff", "agent_id": agent, "reason": about.word});
            more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
            request
        };
        let provided = json!({"text": format!("# Work\n\n{}\n", about.word)});
        let named = |kind: &str| json!({"kind": kind, "handoff_id": about.handoff});
        match self {
            Ask::Send => json!({"kind": "agent_send", "agent_id": agent, "text": format!("Note {}.", about.word)}),
            Ask::Provided => handoff(json!({"author": "provided", "document": provided})),
            Ask::File => handoff(json!({})),
            Ask::SamePane => handoff(json!({"author": "provided", "document": provided, "successor": "same_pane"})),
            Ask::Existing => {
                handoff(json!({"author": "provided", "document": provided, "successor": {"agent_id": about.other}}))
            }
            Ask::Cancel => named("handoff_cancel"),
            Ask::Accept => named("handoff_accept"),
            Ask::Retry => named("handoff_retry"),
            Ask::Abandon => named("handoff_abandon"),
            Ask::Shutdown => json!({"kind": "agent_shutdown", "agent_id": agent}),
            Ask::Force => json!({"kind": "agent_shutdown", "agent_id": agent, "force": true}),
            Ask::Forget => json!({"kind": "agent_forget", "agent_id": agent}),
            Ask::Register => json!({"kind": "agent_register", "pane": about.agent["pane"], "persona_slug": "dev"}),
            Ask::Create => json!({"kind": "agent_create", "persona_slug": "dev"}),
            Ask::Claim => json!({"kind": "work_claim", "item_id": about.item, "agent_id": agent}),
            Ask::Release => json!({"kind": "work_release", "item_id": about.item, "agent_id": agent}),
        }
    }
}

/// What the agent's own hook reports, truly or not: a hook may be late, lost or doubled. A nested one is of another CLI
/// that the agent runs, with its environment.
fn hook(event: &str, about: &About<'_>) -> Value {
    let is_nested = event == "nested";
    let mut body = json!({
        "v": 1, "event": if is_nested { "session_start" } else { event }, "agent_id": about.agent["agent_id"],
        "pane": about.agent["pane"], "session_id": about.agent["session_id"], "profile": "demo",
    });
    match event {
        "nested" => {
            body["session_id"] = json!(about.word);
            body["ancestors"] = json!([about.agent["pid"], 1]);
            body["reason"] = json!("process");
        }
        "prompt_submit" => body["text"] = json!("somebody's own words"),
        "context" => body["context"] = json!({"used": 10, "window": 1000}),
        "session_start" => body["reason"] = json!("same"),
        "session_end" => body["reason"] = json!("process"),
        _ => {}
    }
    body
}

/// Presses keys. In copy mode some of them open a prompt of tmux's own, and its client waits until that is answered:
/// nobody waits for such a client.
fn type_keys(world: &World, pane: &str, words: &[&str]) {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(world.stage.socket()).args(["-f", "/dev/null", "send-keys", "-t", pane]).args(words);
    Stage::make_own(&mut command);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("tmux runs");
    let until = Instant::now() + Duration::from_secs(5);
    while child.try_wait().expect("our own child").is_none() {
        if Instant::now() > until {
            child.kill().expect("our own child");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Keys {
    fn press(self, world: &World, about: &About<'_>) {
        let Some(pane) = about.agent["pane"].as_str() else { return };
        let keys = |words: &[&str]| type_keys(world, pane, words);
        match self {
            Keys::Prompt => keys(&[about.word, "Enter"]),
            Keys::Draft => keys(&["half a thought"]),
            Keys::Enter => keys(&["Enter"]),
            Keys::Clear => keys(&["/clear", "Enter"]),
            Keys::Exit => keys(&["/exit", "Enter"]),
            Keys::Interrupt => keys(&["C-c"]),
            Keys::CopyMode => drop(world.stage.tmux(&["copy-mode", "-t", pane])),
            Keys::Resize => drop(world.stage.tmux(&["resize-window", "-t", pane, "-x", "100", "-y", "30"])),
            Keys::KillPane => drop(world.stage.tmux(&["kill-pane", "-t", pane])),
            Keys::Kill => {
                let pid = about.agent["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
                if let Some(pid) = pid.filter(|pid| *pid > 1) {
                    let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
                }
            }
        }
    }
}
