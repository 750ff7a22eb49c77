//! A stage in a bad environment, such as a full disk: starts the sidecar there, and reads what it reports.

use super::stage::{FOREIGN, PATIENCE, Stage};
use super::stage_files::{names, read_json};
use super::tally;
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tasuki::core::text::sanitise;

/// Whether this process runs as the real root, and not as the root of a user namespace. If not, the test counts as
/// skipped.
pub(crate) fn is_root(needed_for: &str) -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let is = nix::unistd::geteuid().is_root() && map.split_whitespace().eq(["0", "0", "4294967295"]);
    if !is {
        tally::skip(&format!("{needed_for} needs root"));
    }
    is
}

impl Stage {
    /// Waits until no process holds the home's lock. A sidecar that was killed under a tracer may live a moment longer.
    pub(crate) fn until_left(&self) {
        let Ok(lock) = fs::File::open(self.home().join("state/tasuki.lock")) else { return };
        self.until("nobody holds the home", || lock.try_lock().is_ok());
    }

    /// Starts the sidecar without waiting for it.
    pub(crate) fn spawn_sidecar(&self) {
        self.spawn_sidecar_by(&[], "debug");
    }

    /// The same by way of another program. `wrapper`: this program with its arguments; it must replace itself by the
    /// sidecar (exec). `log`: the value of `TASUKI_LOG`.
    pub(crate) fn spawn_sidecar_by(&self, wrapper: &[&str], log: &str) {
        let socket = self.socket().display().to_string();
        let own = self.command(&["run", "--tmux", &socket]);
        let mut command = match wrapper.split_first() {
            None => own,
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments).arg(own.get_program()).args(own.get_args());
                for name in FOREIGN {
                    command.env_remove(name);
                }
                command
            }
        };
        let file = fs::OpenOptions::new().append(true).create(true).open(self.log_file()).expect("a log");
        command.env("TASUKI_LOG", log).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        *self.sidecar.borrow_mut() = Some(command.spawn().expect("the sidecar starts"));
    }

    /// How the sidecar has ended, if it has. Then another one may be started.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        let mut sidecar = self.sidecar();
        let status = sidecar.as_mut()?.try_wait().expect("a child of ours");
        if status.is_some() {
            *sidecar = None;
        }
        status
    }

    /// Waits until the sidecar has ended or a condition is true. Returns how the sidecar ended; none if it did not.
    pub(crate) fn ended_or(&self, what: &str, mut is_so: impl FnMut() -> bool) -> Option<ExitStatus> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            if is_so() {
                return None;
            }
            assert!(Instant::now() < deadline, "neither dead nor {what}\n{}\n{}", self.trace(), self.story());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The last lines that strace wrote.
    pub(crate) fn trace(&self) -> String {
        let text = fs::read(self.home().with_file_name("trace")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        format!("--- trace\n{}", lines[lines.len().saturating_sub(30)..].join("\n"))
    }

    /// Starts a sidecar that must refuse to run, and waits until it has ended. Returns its exit code and its log.
    pub(crate) fn refused_start(&self) -> (Option<i32>, String) {
        let _ = fs::remove_file(self.log_file());
        self.spawn_sidecar();
        let code = self.wait_for("the sidecar refuses", || {
            let mut child = self.sidecar.borrow_mut();
            child.as_mut().expect("it was started").try_wait().expect("a child of ours").map(|status| status.code())
        });
        (code, fs::read_to_string(self.log_file()).expect("a log"))
    }

    /// The sidecar's view of itself; null if there is none.
    pub(crate) fn sidecar_view(&self) -> Value {
        read_json(&self.home().join("view/sidecar.json")).unwrap_or(Value::Null)
    }

    /// Waits until the sidecar reports a problem whose message contains all of these words.
    pub(crate) fn until_degraded(&self, words: &[&str]) {
        self.until(&format!("the sidecar tells of {words:?}"), || {
            let view = self.sidecar_view();
            let problem = view["problem"].as_str().unwrap_or_default();
            view["state"] == "degraded" && words.iter().all(|word| problem.contains(word))
        });
    }

    /// Waits until the sidecar reports no problem.
    pub(crate) fn until_well(&self) {
        self.until("the sidecar is well", || {
            let view = self.sidecar_view();
            view["state"] == "running" && view["problem"].is_null()
        });
    }

    /// The most memory that the sidecar has held so far, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        super::processes::peak_kib(self.sidecar_pid())
    }

    /// Drops a request that costs little to answer and is always refused. Returns its id.
    pub(crate) fn send_cheap(&self) -> String {
        self.send(&json!({"kind": "error_dismiss", "error_id": "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa"}))
    }

    /// Waits until these requests of [`Stage::send_cheap`] are answered, and checks that each answer is a 404 and that
    /// none was refused because of a reused id.
    pub(crate) fn all_answered(&self, ids: &[String]) {
        tally::add(tally::REQUESTS, ids.len() as u64);
        for id in ids {
            let answer = self.result(id);
            assert_eq!(answer["status"], 404, "{answer}");
        }
        let twice: Vec<String> = self.names("results").into_iter().filter(|name| name.contains(".reused.")).collect();
        tally::none_lost_none_twice("requests", &[], &twice);
    }

    /// Checks that no file that tasuki has written for others holds characters that control a terminal: files of the
    /// spool, views, and the log.
    pub(crate) fn check_plain(&self) {
        let rooms = ["spool/results", "spool/errors", "spool/rejected", "view/agents", "view/handoffs", "view"];
        let mut files = vec![self.spool("journal.jsonl"), self.log_file()];
        for room in rooms {
            let folder = self.home().join(room);
            // A rejected file is kept as it was. Only the file with the reason is written by tasuki.
            let ours = |name: &String| room != "spool/rejected" || name.ends_with(".why.json");
            files.extend(names(&folder).into_iter().filter(ours).map(|name| folder.join(name)));
        }
        for path in files.into_iter().filter(|path| path.is_file()) {
            let text = String::from_utf8(fs::read(&path).expect("read")).expect("UTF-8");
            assert_eq!(sanitise(&text), text, "{} would drive a terminal", path.display());
        }
        for name in names(&self.spool("rejected")) {
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)), "{name}");
        }
    }
}
