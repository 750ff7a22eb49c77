//! The demo agent's hooks, in the shape of Claude Code's: for each event one child process, `tasuki hook demo`, with
//! the event's JSON on standard input.

use super::faults::Faults;
use crate::files;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a hook may take before it is killed.
const HOOK_TIME: Duration = Duration::from_secs(5);

/// The hooks of one session, and the programs that they run.
#[derive(Debug)]
pub struct DemoHooks {
    program: PathBuf,
    cwd: String,
    late: Vec<JoinHandle<()>>,
    /// The session's id; `/clear` changes it.
    pub session_id: String,
    /// Where the session's transcript is, if one is kept.
    pub transcript_path: Option<PathBuf>,
}

impl DemoHooks {
    /// A new session. Its hooks run this very program.
    #[must_use]
    pub fn new() -> Self {
        DemoHooks {
            program: files::own_program().unwrap_or_else(|_| PathBuf::from("tasuki")),
            cwd: std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default(),
            late: Vec::new(),
            session_id: new_id(),
            transcript_path: None,
        }
    }

    /// Runs the hook of one event and waits for it, as CLIs do; with `slow_hooks` it runs later, beside the turn.
    pub fn fire(&mut self, name: &str, more: Value, faults: &Faults) {
        if faults.has("hooks_off") {
            return;
        }
        let mut event = json!({
            "hook_event_name": name,
            "session_id": self.session_id,
            "transcript_path": self.transcript_path,
            "cwd": self.cwd,
        });
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        let times = if faults.has("hooks_twice") { 2 } else { 1 };
        for _ in 0..times {
            self.fire_once(event.to_string(), faults.number("slow_hooks"));
        }
    }

    fn fire_once(&mut self, input: String, late: Option<u64>) {
        let program = self.program.clone();
        match late {
            None => run(&program, &input),
            Some(late) => {
                self.late.retain(|hook| !hook.is_finished());
                self.late.push(std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(late));
                    run(&program, &input);
                }));
            }
        }
    }

    /// Waits for the hooks that run beside the turn.
    pub fn finish(&mut self) {
        for hook in self.late.drain(..) {
            // A thread that panicked has no hook left to wait for.
            let _ = hook.join();
        }
    }

    /// Runs a command of tasuki's, as an agent's tool would; returns its output.
    ///
    /// # Errors
    /// The message of a command that failed.
    pub fn run_tool(&self, words: &[String]) -> Result<String, String> {
        let (said, granted) = super::work::run(&self.program, words);
        if granted { Ok(said) } else { Err(said) }
    }

    /// Runs a second agent inside this one's turn, with the same environment, and waits for it.
    pub fn run_nested(&self) {
        let child = Command::new(&self.program)
            .args(["demo-agent", "--nested"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        if let Ok(child) = child {
            wait(child, HOOK_TIME);
        }
    }
}

impl Default for DemoHooks {
    fn default() -> Self {
        DemoHooks::new()
    }
}

/// The whole run of the second agent: one turn in a session of its own.
pub fn nested() {
    let (mut hooks, faults, turn) = (DemoHooks::new(), Faults::default(), new_id());
    hooks.fire("SessionStart", json!({"source": "startup"}), &faults);
    hooks.fire("UserPromptSubmit", json!({"prompt_id": turn, "prompt": "a prompt of a nested agent"}), &faults);
    hooks.fire("Stop", json!({"prompt_id": turn, "last_assistant_message": "done", "background_tasks": []}), &faults);
    hooks.fire("SessionEnd", json!({"reason": "other"}), &faults);
}

/// A random id for a session or a turn.
#[must_use]
pub fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

fn run(program: &std::path::Path, input: &str) {
    let child = Command::new(program)
        .args(["hook", "demo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // A CLI continues when its hook can't be run; so does this one.
    let Ok(mut child) = child else { return };
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    wait(child, HOOK_TIME);
}

/// Waits for a child, and kills it when its time is over.
pub(super) fn wait(mut child: std::process::Child, within: Duration) {
    let deadline = Instant::now() + within;
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
