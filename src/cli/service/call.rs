//! Calls of a service manager's own command line tool: each with a time limit, and each in a manner, because launchd is not
//! done with a change when its tool returns.

use crate::cli::error::CliError;
use crate::core::text::sanitise;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a manager may take to start or stop the service: longer than `TimeoutStopSec`.
pub(super) const PATIENCE: Duration = Duration::from_secs(45);

/// How long launchd may know a service that it was told to end. It ends one by force after 20 s.
const GONE_WITHIN: Duration = Duration::from_secs(30);
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// How long `bootstrap` is tried again, and how often.
const BUSY: (Duration, Duration) = (Duration::from_secs(15), Duration::from_millis(500));
/// What `bootstrap` answers while launchd still ends a service of this label, or if one is there: an I/O error, and
/// "already in progress". The first has other causes too.
const IS_BUSY: [i32; 2] = [5, 37];

/// A change to be made through the manager's own tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) words: Vec<String>,
    pub(super) manner: CallManner,
}

/// How a call is made, and when it has done what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallManner {
    /// Once, and a failure is reported.
    Once,
    /// Once, and a failure is ignored: the service may already be stopped.
    MayFail,
    /// Until it fails: it asks whether a service is there, and that must have ended.
    UntilGone,
    /// Again for a while, as long as the manager says that it still ends the service.
    WhileBusy,
    /// As `WhileBusy`, unless the service of this name is there. A failure is ignored: the next call shows it.
    UntilLoaded(String),
}

impl Call {
    pub(super) fn new(words: &[&str]) -> Self {
        Call { words: words.iter().map(|word| (*word).to_owned()).collect(), manner: CallManner::Once }
    }

    pub(super) fn in_manner(self, manner: CallManner) -> Self {
        Call { manner, ..self }
    }

    /// Makes the call in its manner. Returns whether it has done what it is for, and what the tool said.
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

/// Makes a call again while launchd is busy with the service. `loaded`: the service that may be there already; then
/// nothing is left to do.
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
