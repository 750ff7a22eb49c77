//! Ends an agent by force.

use super::Tools;
use crate::core::effect::Outcome;
use crate::core::pane::{PaneRef, Process};
use crate::process;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgid};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a process may take to end after its terminal is gone.
const HANG_UP: Duration = Duration::from_secs(3);
/// Pause between two looks at the process.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Kills a pane. The agent's process may outlive its pane, as Gemini CLI's has done. Nobody else would end it, so
/// tasuki kills it too.
pub(super) async fn kill_pane(
    tools: &Tools,
    pane: &PaneRef,
    process: Option<&Process>,
    stop: &CancellationToken,
) -> Outcome {
    if let Err(error) = tools.tmux.kill_pane(pane).await {
        return Outcome::Failed { why: error.to_string() };
    }
    let Some(process) = process else { return Outcome::Done };
    let until = Instant::now() + HANG_UP;
    while process::is_alive(process) {
        if Instant::now() >= until {
            end(process);
            return Outcome::Done;
        }
        tokio::select! {
            () = stop.cancelled() => return Outcome::Failed { why: "tasuki stopped waiting for the process".to_owned() },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    Outcome::Done
}

/// Ends a process by force, and the group that it leads. If only the process id is known, this does nothing: another
/// process may have the id by now.
fn end(process: &Process) {
    let Ok(pid) = i32::try_from(process.pid).map(Pid::from_raw) else { return };
    if process.start_ticks == 0 || process::start_ticks(process.pid) != Some(process.start_ticks) {
        return;
    }
    let leads = getpgid(Some(pid)) == Ok(pid);
    // The process may have ended by itself at this very moment.
    let _ = if leads { killpg(pid, Signal::SIGKILL) } else { kill(pid, Signal::SIGKILL) };
}
