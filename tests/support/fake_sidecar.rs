//! A fake sidecar, which only writes files: it has a heartbeat, takes requests and answers them as a test says. For
//! tests of the command line alone.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A home with the folders that a sidecar makes.
pub(crate) struct FakeHome {
    folder: tempfile::TempDir,
}

impl FakeHome {
    /// An empty home without a heartbeat.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["spool/tmp", "spool/requests", "spool/results", "spool/errors", "view/agents", "view/handoffs"] {
            let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.path().join(name));
            made.expect("a folder");
        }
        FakeHome { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the sidecar's view with a heartbeat so many seconds old.
    pub(crate) fn beat(&self, age_s: i64) {
        beat(self.path(), age_s);
    }

    pub(crate) fn write(&self, name: &str, value: &Value) {
        write_whole(&self.path().join(name), value);
    }

    /// Writes an agent's view. `previous`: the id of its predecessor.
    pub(crate) fn agent(&self, id: &str, slug: Option<&str>, previous: Option<&str>, state: &str) {
        let view = json!({
            "agent_id": id, "persona_slug": slug, "profile": "demo", "pane": "%1", "state": state,
            "previous_agent_id": previous, "registered_at": format!("2026-11-21T20:00:{}.000Z", &id[..2]),
        });
        self.write(&format!("view/agents/{id}.json"), &view);
    }

    /// Runs the program with this home, and without tmux and other variables of the person who runs the tests.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("--home").arg(self.path()).args(args).stdin(Stdio::null());
        // As in an agent's pane. If `TASUKI_HOME` is not set, the printed commands name the home.
        command.env("TASUKI_HOME", self.path());
        for name in ["TMUX", "TMUX_PANE", "TASUKI_AGENT_ID", "CLICOLOR_FORCE", "NO_COLOR"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn files(&self, name: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path().join(name)).expect("a folder");
        entries.filter_map(Result::ok).map(|entry| entry.path()).collect()
    }
}

fn beat(home: &Path, age_s: i64) {
    let at = chrono::Utc::now() - chrono::TimeDelta::seconds(age_s);
    let at = at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    write_whole(&home.join("view/sidecar.json"), &json!({"pid": 1, "version": "0", "heartbeat": at}));
}

/// Writes a file as the sidecar does: whole, by rename.
pub(crate) fn write_whole(path: &Path, value: &Value) {
    let scratch = path.with_extension(format!("{:?}.tmp", std::thread::current().id()));
    fs::write(&scratch, value.to_string()).expect("written");
    fs::rename(&scratch, path).expect("renamed");
}

/// The answer to a request: `(status, result or error)`. `None`: the request is taken and never answered.
pub(crate) type Answer = dyn Fn(&FakeHome, &Value) -> Option<(u16, Value)> + Send + Sync;

/// A fake sidecar: it renews its heartbeat and answers requests in a thread of its own until it is dropped.
pub(crate) struct FakeSidecar {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeSidecar {
    pub(crate) fn start(home: &Arc<FakeHome>, answer: Box<Answer>) -> Self {
        home.beat(0);
        let stop = Arc::new(AtomicBool::new(false));
        let (flag, home) = (Arc::clone(&stop), Arc::clone(home));
        let thread = std::thread::spawn(move || {
            let mut last = Instant::now();
            while !flag.load(Ordering::SeqCst) {
                if last.elapsed() > Duration::from_secs(2) {
                    home.beat(0);
                    last = Instant::now();
                }
                home.files("spool/requests").iter().for_each(|file| take(&home, file, &answer));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        FakeSidecar { stop, thread: Some(thread) }
    }
}

impl Drop for FakeSidecar {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn take(home: &FakeHome, file: &Path, answer: &Answer) {
    let Ok(bytes) = fs::read(file) else { return };
    let request: Value = serde_json::from_slice(&bytes).expect("a request is whole JSON");
    fs::remove_file(file).expect("taken");
    let Some((status, body)) = answer(home, &request) else { return };
    let id = file.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let ok = (200..300).contains(&status);
    let mut result = json!({"v": 1, "request_id": id, "kind": request["kind"], "status": status, "ok": ok, "at": "x"});
    result[if ok { "result" } else { "error" }] = body;
    home.write(&format!("spool/results/{id}.json"), &result);
}
