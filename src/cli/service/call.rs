//! Calls of a service manager's command line tool, each with a time limit. A call has a [`CallManner`], which may
//! repeat it: launchd has not yet finished a change when its tool returns.

use crate::cli::error::CliError;
use crate::core::text::sanitise;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a manager may take to start or stop the service: longer than `TimeoutStopSec`.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);

/// How long launchd may still know a service that it was told to end. launchd ends a service by force after 20 s.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// The pause between two questions whether launchd still knows the service.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// For how long `bootstrap` is repeated while launchd is busy, and the pause between two tries.
const BUSY: (Duration, Duration) = (Duration::from_secs(15), Duration::from_millis(500));
/// The exit codes of `bootstrap` while launchd is still ending a service of this label, or if such a service is loaded:
/// 5, an I/O error, and 37, "already in progress". The I/O error has other causes too.
const IS_BUSY: [i32; 2] = [5, 37];

/// A change to be made through the manager's own tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) words: Vec<String>,
    pub(super) manner: CallManner,
}

/// How often a call is made, and when it counts as successful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallManner {
    /// Once, and a failure is reported.
    Once,
    /// Once, and a failure is ignored: the service may already be stopped.
    MayFail,
    /// Until it fails. The call asks about a service, and fails when that service is gone.
    UntilGone,
    /// Again for a while, as long as its exit code says that launchd is busy with the service.
    WhileBusy,
    /// As `WhileBusy`, but not again if the service of this name is loaded. A failure is ignored: the next call fails
    /// then.
    UntilLoaded(String),
}

impl Call {
    pub(super) fn new(words: &[&str]) -> Self {
        Call { words: words.iter().map(|word| (*word).to_owned()).collect(), manner: CallManner::Once }
    }

    pub(super) fn in_manner(self, manner: CallManner) -> Self {
        Call { manner, ..self }
    }

    /// Makes the call in its manner. Returns whether it was successful, and what the tool printed.
    ///
    /// # Errors
    /// The tool does not run.
    pub(super) fn make(&self) -> Result<ToolOutput, CliError> {
        match &self.manner {
            CallManner::Once => run(self),
            CallManner::MayFail => Ok(ToolOutput { ok: true, ..run(self)? }),
            CallManner::UntilGone => until_gone(self),
            CallManner::WhileBusy => while_busy(self, None),
            CallManner::UntilLoaded(target) => Ok(ToolOutput { ok: true, ..while_busy(self, Some(target.as_str()))? }),
        }
    }
}

pub(super) struct ToolOutput {
    pub(super) ok: bool,
    /// The exit code; none if a signal has ended the tool.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// Asks until launchd no longer knows a service.
///
/// # Errors
/// Its tool does not run.
fn until_gone(call: &Call) -> Result<ToolOutput, CliError> {
    let until = Instant::now() + GONE_WITHIN;
    loop {
        let said = run(call)?;
        if !said.ok {
            return Ok(ToolOutput { ok: true, ..said });
        }
        if Instant::now() >= until {
            let err = format!("launchd has not ended the service within {} s", GONE_WITHIN.as_secs());
            return Ok(ToolOutput { ok: false, err, ..said });
        }
        std::thread::sleep(ASK_EVERY);
    }
}

/// Repeats a call while launchd is busy with the service. If the service `loaded` is already loaded, nothing is left to
/// do, and the call counts as successful.
///
/// # Errors
/// Its tool does not run.
fn while_busy(call: &Call, loaded: Option<&str>) -> Result<ToolOutput, CliError> {
    let (limit, pause) = BUSY;
    let until = Instant::now() + limit;
    loop {
        let said = run(call)?;
        if said.ok || !said.code.is_some_and(|code| IS_BUSY.contains(&code)) || Instant::now() >= until {
            return Ok(said);
        }
        if let Some(target) = loaded
            && run(&Call::new(&["launchctl", "print", target]))?.ok
        {
            return Ok(ToolOutput { ok: true, ..said });
        }
        std::thread::sleep(pause);
    }
}

/// Runs a tool and waits for its end, at most [`PATIENCE`].
pub(super) fn run(call: &Call) -> Result<ToolOutput, CliError> {
    run_within(call, PATIENCE)
}

/// As [`run`], with another time limit.
pub(super) fn run_within(call: &Call, patience: Duration) -> Result<ToolOutput, CliError> {
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
            code: output.status.code(),
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
