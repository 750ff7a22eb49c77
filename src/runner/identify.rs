//! Finds out which agent is in a pane, and claims the pane for this home unless another home has claimed it.

use super::Tools;
use super::retry_look::{self, LookResult};
use crate::core::effect::Outcome;
use crate::core::id::AgentId;
use crate::core::pane::{PaneFacts, PaneRef, Process};
use crate::process;
use crate::tmux::{Error as TmuxError, is_shell};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// tmux did not answer: wait this long before reporting it, because the core may repeat the lookup at once. It does so
/// only for hook events.
const NO_ANSWER_PAUSE: Duration = Duration::from_millis(500);

/// Looks up a pane for registration. If `server_pid` is given, the pane must be in the server with this process id.
/// Claims the pane for this home unless it holds nothing but a shell, or another home has claimed it.
pub(super) async fn identify(tools: &Tools, pane: u32, server_pid: Option<u32>, stop: &CancellationToken) -> Outcome {
    let row = match tools.tmux.facts(pane).await {
        Ok(Some(row)) if !row.dead && server_pid.is_none_or(|pid| pid == row.pane.server.pid) => row,
        Ok(_) => return Outcome::Pane(None),
        Err(error) => {
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(NO_ANSWER_PAUSE) => {}
            }
            return Outcome::Failed { why: error.to_string() };
        }
    };
    let Seen { foreground, argv, agent_id } = match retry_look::until_answered(stop, move || look(row.pane.pid)).await {
        Ok(seen) => seen,
        Err(why) => return Outcome::Failed { why },
    };
    let profile = tools.profiles.detect(&argv).map(|profile| profile.name.clone());
    let bare_shell = profile.is_none() && is_bare_shell(&argv);
    let claimed_by = match foreground.filter(|_| !bare_shell) {
        None => None,
        Some(agent) => match tools.tmux.claim(&row.pane, agent, process::is_alive).await {
            Ok(claimed_by) => claimed_by,
            Err(TmuxError::Pane { .. }) => return Outcome::Pane(None),
            Err(error) => return Outcome::Failed { why: error.to_string() },
        },
    };
    Outcome::Pane(Some(PaneFacts {
        pane: row.pane,
        session_name: row.session_name,
        cwd: row.cwd,
        agent: foreground,
        bare_shell,
        profile,
        agent_id,
        claimed_by,
    }))
}

/// What a look at the processes of a pane found.
struct Seen {
    /// The program in the foreground, whether an agent or a shell.
    foreground: Option<Process>,
    /// The arguments of that program.
    argv: Vec<String>,
    /// `TASUKI_AGENT_ID` in the environment of the pane's first process.
    agent_id: Option<AgentId>,
}

/// Looks at the program in the foreground and at its arguments, and reads the environment of the pane's first process,
/// whose id is `pid`. If one part fails, the look gives no answer, because the other parts alone could make a shell
/// look like an agent.
fn look(pid: u32) -> LookResult<Seen> {
    let seen = process::front(pid).and_then(|foreground| {
        let argv = foreground.map_or(Ok(None), |program| process::arguments(program.pid))?.unwrap_or_default();
        let agent_id = process::environment(pid, "TASUKI_AGENT_ID")?.and_then(|id| id.parse().ok());
        Ok(Seen { foreground, argv, agent_id })
    });
    match seen {
        Ok(seen) => LookResult::Answered(seen),
        Err(error) => LookResult::Unavailable(format!("could not look at the processes in the pane: {error}")),
    }
}

/// Whether this is a shell that waits for commands: the name of a shell, and behind it only options other than `-c`.
fn is_bare_shell(argv: &[String]) -> bool {
    let Some((program, rest)) = argv.split_first() else { return false };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    is_shell(name) && rest.iter().all(|arg| arg.starts_with('-') && arg != "-c")
}

/// Claims the pane of an agent that we have started, if its process is known. If the claim fails, this only logs it,
/// because the guard of each later line that types checks the claim.
pub(super) async fn claim_own(tools: &Tools, pane: &PaneRef, process: Option<Process>) {
    let Some(process) = process else { return };
    match tools.tmux.claim(pane, process, process::is_alive).await {
        Ok(None) => {}
        Ok(Some(home)) => {
            tracing::warn!(%pane, home, "another tasuki home has claimed the pane of one of this home's agents")
        }
        Err(error) => tracing::debug!(%pane, %error, "could not claim the pane"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shell_that_waits_for_commands_is_bare() {
        let is_bare = |line: &str| is_bare_shell(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for line in ["-bash", "/bin/zsh -l", "csh", "mksh", "pwsh -NoLogo"] {
            assert!(is_bare(line), "{line}");
        }
        for line in ["bash script.sh", "sh -c claude", "claude"] {
            assert!(!is_bare(line), "{line}");
        }
    }
}
