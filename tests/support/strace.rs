//! Runs the sidecar under `strace`, which kills it at its n-th system call of a kind, or makes that call fail.

use super::stage::Stage;
use super::stage_files::read_json;
use super::{stage_files, tally};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// What strace does to one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Injection {
    /// The name of the call.
    pub(crate) call: &'static str,
    /// What happens, as strace writes it, such as `signal=SIGKILL` or `error=EIO`. A process that is killed at a call
    /// does not make the call.
    pub(crate) what: &'static str,
    /// Only calls on these files and folders count; if there are none, all calls do.
    pub(crate) paths: Vec<PathBuf>,
    /// Which of these calls, from 1; each thread counts its own.
    pub(crate) when: u64,
}

impl Injection {
    /// Kills the sidecar at the n-th call of a kind.
    pub(crate) fn death(call: &'static str, when: u64) -> Injection {
        Injection { call, what: "signal=SIGKILL", paths: Vec::new(), when }
    }

    fn arguments(&self, trace: &str) -> Vec<String> {
        // -D: the sidecar is our child, and not strace's. -b execve: its child programs are not traced.
        let mut arguments: Vec<String> = ["-D", "-f", "-q", "-b", "execve", "-o", trace].map(str::to_owned).into();
        for path in &self.paths {
            arguments.extend(["-P".to_owned(), path.display().to_string()]);
        }
        let (call, what, when) = (self.call, self.what, self.when);
        arguments.extend(["-e".to_owned(), format!("trace={call}")]);
        arguments.extend(["-e".to_owned(), format!("inject={call}:{what}:when={when}")]);
        arguments
    }
}

/// Whether strace is installed and may trace. If not, the test counts as skipped.
pub(crate) fn is_there() -> bool {
    let works = Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    if !works {
        tally::skip("no strace, or it may not trace");
    }
    works
}

impl Stage {
    /// Starts the sidecar under strace without waiting for it. The child process is the sidecar, not strace.
    pub(crate) fn spawn_under_strace(&self, injection: &Injection) {
        let trace = self.home().with_file_name("trace");
        let _ = fs::remove_file(&trace);
        let mut command = Command::new("strace");
        command.args(injection.arguments(&trace.display().to_string())).arg(env!("CARGO_BIN_EXE_tasuki"));
        let socket = self.socket().display().to_string();
        command.arg("--home").arg(self.home()).args(["run", "--tmux", &socket]);
        Stage::make_own(&mut command);
        let log = fs::OpenOptions::new().append(true).create(true).open(self.log_file()).expect("a log");
        command.env("TASUKI_LOG", "info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.adopt(command.spawn().expect("strace starts"));
    }

    /// Whether the handoff that a result file names is done or has failed.
    pub(crate) fn handoff_has_ended(&self, result: &Path) -> bool {
        let Some(answer) = read_json(result) else { return false };
        let Some(id) = answer["result"]["handoff_id"].as_str() else { return false };
        let view = self.handoff_view(id);
        view["step"].as_str().is_some_and(|step| ["done", "failed"].contains(&step))
    }

    /// Whether the trace shows that strace has injected something.
    pub(crate) fn was_injected(&self) -> bool {
        fs::read(self.home().with_file_name("trace"))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains("(INJECTED"))
    }

    /// Replaces the home by a new one with only this `config.toml`. No sidecar may run.
    pub(crate) fn fresh_home(&self, config: &str) {
        fs::remove_dir_all(self.home()).expect("the old home goes");
        stage_files::make_folder(&self.home());
        fs::write(self.home().join("config.toml"), config).expect("the configuration");
    }
}

/// Whether a process was ended by SIGKILL.
pub(crate) fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(nix::sys::signal::Signal::SIGKILL as i32)
}
