//! Calls systemd and launchd by their own command line tools, each call with a time limit.

use super::args::ManagerKind;
use crate::cli::error::CliError;
use crate::core::text::sanitise;
use crate::service::ServiceProgram;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a manager may take to start or stop the service: longer than `TimeoutStopSec`.
const PATIENCE: Duration = Duration::from_secs(45);

/// A change to be made through the manager's own tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) words: Vec<String>,
    /// Whether a failure is ignored: the service may already be stopped.
    pub(super) may_fail: bool,
}

impl Call {
    fn new(words: &[&str]) -> Self {
        Call { words: words.iter().map(|word| (*word).to_owned()).collect(), may_fail: false }
    }

    fn may_fail(self) -> Self {
        Call { may_fail: true, ..self }
    }
}

pub(super) struct ToolOutput {
    pub(super) ok: bool,
    pub(super) out: String,
    pub(super) err: String,
}

/// A change to the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceAction {
    Install { start: bool },
    Uninstall,
    Start,
    Stop,
    Restart,
}

impl ServiceAction {
    /// What the service was, when it is done.
    pub(super) fn done(self) -> &'static str {
        match self {
            ServiceAction::Install { .. } => "installed",
            ServiceAction::Uninstall => "uninstalled",
            ServiceAction::Start => "started",
            ServiceAction::Stop => "stopped",
            ServiceAction::Restart => "restarted",
        }
    }
}

impl ManagerKind {
    /// The service manager of this machine.
    pub(crate) fn here() -> ManagerKind {
        if cfg!(target_os = "macos") { ManagerKind::Launchd } else { ManagerKind::Systemd }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            ManagerKind::Systemd => "systemd",
            ManagerKind::Launchd => "launchd",
        }
    }
}

/// One of our programs, in the hands of a service manager.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ManagedService {
    pub(crate) kind: ManagerKind,
    pub(crate) service: &'static ServiceProgram,
}

impl ManagedService {
    /// The program, in the hands of the service manager that was named, else of this machine's.
    pub(crate) fn of(service: &'static ServiceProgram, named: Option<ManagerKind>) -> ManagedService {
        ManagedService { kind: named.unwrap_or_else(ManagerKind::here), service }
    }

    pub(crate) fn file(self) -> Result<PathBuf, CliError> {
        let dirs = directories::BaseDirs::new().ok_or(crate::config::ConfigError::NoHome)?;
        Ok(match self.kind {
            ManagerKind::Systemd => dirs.config_dir().join("systemd/user").join(self.service.unit),
            ManagerKind::Launchd => {
                dirs.home_dir().join("Library/LaunchAgents").join(format!("{}.plist", self.service.label))
            }
        })
    }

    /// The file that systemd uses: the user's own, else one from a package.
    pub(super) fn installed(self) -> Result<Option<PathBuf>, CliError> {
        let own = self.file()?;
        if own.exists() {
            return Ok(Some(own));
        }
        let folders = match self.kind {
            ManagerKind::Systemd => std::env::var_os("XDG_DATA_DIRS").filter(|folders| !folders.is_empty()),
            ManagerKind::Launchd => return Ok(None),
        };
        let folders = folders.unwrap_or_else(|| "/usr/local/share:/usr/share".into());
        let all = [PathBuf::from("/etc")].into_iter().chain(std::env::split_paths(&folders));
        let all = all.chain([PathBuf::from("/usr/lib")]);
        let mut units = all.map(|folder| folder.join("systemd/user").join(self.service.unit));
        Ok(units.find(|unit| unit.is_file()))
    }

    /// Where launchd writes the program's output; systemd has its journal.
    pub(super) fn log(self) -> Result<PathBuf, CliError> {
        let dirs = directories::BaseDirs::new().ok_or(crate::config::ConfigError::NoHome)?;
        Ok(dirs.home_dir().join("Library/Logs/tasuki").join(self.service.log))
    }

    /// The calls for this change. The file is written before them, or removed after them.
    pub(super) fn calls(self, action: ServiceAction) -> Result<Vec<Call>, CliError> {
        Ok(match self.kind {
            ManagerKind::Systemd => systemd(action, self.service.unit),
            ManagerKind::Launchd => launchd(action, &self.file()?.display().to_string(), &self.target()),
        })
    }

    pub(super) fn answers(self) -> Result<(), CliError> {
        let call = match self.kind {
            ManagerKind::Systemd => Call::new(&["systemctl", "--user", "show-environment"]),
            ManagerKind::Launchd => Call::new(&["launchctl", "print", &domain()]),
        };
        let why = match run(&call) {
            Ok(said) if said.ok => return Ok(()),
            Ok(said) => said.err.lines().next().unwrap_or("no reason given").to_owned(),
            Err(error) => error.message,
        };
        let message = format!("{} is not available for this user ({why}). Nothing was changed.", self.kind.as_str());
        let hint = format!(
            "Without it, run `{}` in a tmux window of its own, or let your own supervisor run it; \
             `{} install --dry-run` shows the file that would be written.",
            self.service.by_hand, self.service.command
        );
        Err(CliError::refused("no_service_manager", message).hint(hint))
    }

    /// launchd's name of the agent.
    fn target(self) -> String {
        format!("{}/{}", domain(), self.service.label)
    }

    /// The unit's properties, as systemd reports them.
    pub(super) fn properties(self) -> Result<Vec<(String, String)>, CliError> {
        self.properties_within(PATIENCE)
    }

    /// The same with a time limit.
    ///
    /// # Errors
    /// systemd does not run, or did not answer in time.
    pub(crate) fn properties_within(self, patience: Duration) -> Result<Vec<(String, String)>, CliError> {
        let wanted = "--property=LoadState,ActiveState,SubState,UnitFileState,MainPID,Result,NRestarts";
        let said = run_within(&Call::new(&["systemctl", "--user", "show", self.service.unit, wanted]), patience)?;
        if !said.ok {
            let why = said.err.lines().next().unwrap_or("no reason given").to_owned();
            return Err(CliError::refused("service_manager", format!("systemd does not report on the service: {why}")));
        }
        let pair = |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(said.out.lines().filter_map(pair).collect())
    }

    /// What launchd says about the agent: whether it is loaded, and its process.
    pub(super) fn printed(self) -> Result<ToolOutput, CliError> {
        run(&Call::new(&["launchctl", "print", &self.target()]))
    }
}

fn systemd(action: ServiceAction, unit: &str) -> Vec<Call> {
    let call = |words: &[&str]| Call::new(&[&["systemctl", "--user"], words].concat());
    match action {
        ServiceAction::Install { start: true } => {
            vec![call(&["daemon-reload"]), call(&["enable", unit]), call(&["restart", unit])]
        }
        ServiceAction::Install { start: false } => vec![call(&["daemon-reload"]), call(&["enable", unit])],
        ServiceAction::Uninstall => vec![call(&["disable", "--now", unit]).may_fail()],
        ServiceAction::Start => vec![call(&["start", unit])],
        ServiceAction::Stop => vec![call(&["stop", unit])],
        ServiceAction::Restart => vec![call(&["restart", unit])],
    }
}

fn launchd(action: ServiceAction, file: &str, target: &str) -> Vec<Call> {
    let bootstrap = Call::new(&["launchctl", "bootstrap", &domain(), file]);
    let bootout = Call::new(&["launchctl", "bootout", target]);
    match action {
        ServiceAction::Install { start: true } => vec![bootout.may_fail(), bootstrap],
        ServiceAction::Install { start: false } => Vec::new(),
        ServiceAction::Uninstall => vec![bootout.may_fail()],
        ServiceAction::Start => vec![bootstrap.may_fail(), Call::new(&["launchctl", "kickstart", target])],
        ServiceAction::Stop => vec![bootout],
        ServiceAction::Restart => vec![Call::new(&["launchctl", "kickstart", "-k", target])],
    }
}

fn domain() -> String {
    format!("gui/{}", nix::unistd::getuid())
}

/// Runs a tool and waits for its end, at most [`PATIENCE`].
pub(super) fn run(call: &Call) -> Result<ToolOutput, CliError> {
    run_within(call, PATIENCE)
}

fn run_within(call: &Call, patience: Duration) -> Result<ToolOutput, CliError> {
    let failed = |why: String| CliError::refused("service_manager", format!("{} {why}", call.words.join(" ")));
    let (program, arguments) = call.words.split_first().ok_or_else(|| failed("names no program.".to_owned()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| failed(format!("can't be started: {error}.")))?;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap_or(0));
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    match ended.recv_timeout(patience) {
        Ok(Ok(output)) => Ok(ToolOutput {
            ok: output.status.success(),
            out: sanitise(&String::from_utf8_lossy(&output.stdout)),
            err: sanitise(&String::from_utf8_lossy(&output.stderr)),
        }),
        Ok(Err(error)) => Err(failed(format!("could not be awaited: {error}."))),
        Err(_) => {
            // It may just have ended by itself; then there is nothing to kill.
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
            Err(failed(format!("did not end within {} s and was stopped.", patience.as_secs())))
        }
    }
}
