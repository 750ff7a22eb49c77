//! Who is in a pane, and that it is nobody else's.

use super::Tools;
use super::again::{self, Look};
use crate::core::effect::Outcome;
use crate::core::id::AgentId;
use crate::core::pane::{PaneFacts, PaneRef, Process};
use crate::process;
use crate::tmux::Error as TmuxError;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Looks at a pane for registration, and claims it for this home unless nothing but a shell is there.
pub(super) async fn identify(tools: &Tools, pane: u32, stop: &CancellationToken) -> Outcome {
    let row = match tools.tmux.facts(pane).await {
        Ok(Some(row)) if !row.dead => row,
        Ok(_) => return Outcome::Pane(None),
        Err(error) => return Outcome::Failed { why: error.to_string() },
    };
    let Seen { agent, argv, agent_id } = match again::until_told(stop, || look(row.pane.pid)).await {
        Ok(seen) => seen,
        Err(why) => return Outcome::Failed { why },
    };
    let profile = tools.profiles.detect(&argv).map(|profile| profile.name.clone());
    let bare_shell = profile.is_none() && is_shell(&argv);
    let claimed_by = match agent.filter(|_| !bare_shell) {
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
        agent,
        bare_shell,
        profile,
        agent_id,
        claimed_by,
    }))
}

/// Who was seen in a pane.
struct Seen {
    agent: Option<Process>,
    argv: Vec<String>,
    agent_id: Option<AgentId>,
}

/// A look that told of one thing and not of another would take a shell for the program in front.
fn look(pid: u32) -> Look<Seen> {
    let seen = process::front(pid).and_then(|agent| {
        let argv = agent.map_or(Ok(None), |agent| process::arguments(agent.pid))?.unwrap_or_default();
        let agent_id = process::environment(pid, "TASUKI_AGENT_ID")?.and_then(|id| id.parse().ok());
        Ok(Seen { agent, argv, agent_id })
    });
    match seen {
        Ok(seen) => Look::Told(seen),
        Err(error) => Look::Untold(format!("the processes of the pane can't be looked at: {error}")),
    }
}

/// A shell that waits for commands: its name and nothing but options behind it.
fn is_shell(argv: &[String]) -> bool {
    const SHELLS: [&str; 9] = ["sh", "bash", "zsh", "fish", "dash", "ksh", "tcsh", "nu", "ash"];
    let Some((program, rest)) = argv.split_first() else { return false };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    SHELLS.contains(&name.trim_start_matches('-')) && rest.iter().all(|arg| arg.starts_with('-') && arg != "-c")
}

/// Claims the pane of an agent that we have started. What does not come of it the guard of each line settles later.
pub(super) async fn claim_own(tools: &Tools, pane: &PaneRef, process: Option<Process>) {
    let Some(process) = process else { return };
    match tools.tmux.claim(pane, process, process::is_alive).await {
        Ok(None) => {}
        Ok(Some(home)) => tracing::warn!(%pane, home, "another home has claimed the pane of an agent of ours"),
        Err(error) => tracing::debug!(%pane, %error, "the pane could not be claimed"),
    }
}
