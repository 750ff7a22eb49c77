//! Who is in a pane, and that it is nobody else's.

use super::Tools;
use crate::core::effect::Outcome;
use crate::core::pane::{PaneFacts, PaneRef, Process};
use crate::tmux::Error as TmuxError;
use crate::{limits, process};
use std::path::Path;

/// Looks at a pane for registration, and claims it for this home unless nothing but a shell is there.
pub(super) async fn identify(tools: &Tools, pane: u32) -> Outcome {
    let row = match tools.tmux.facts(pane).await {
        Ok(Some(row)) if !row.dead => row,
        Ok(_) => return Outcome::Pane(None),
        Err(error) => return Outcome::Failed { why: error.to_string() },
    };
    let agent = process::foreground_leader(row.pane.pid).or_else(|| process::identify(row.pane.pid));
    let argv = agent.and_then(|agent| process::argv(agent.pid)).unwrap_or_default();
    if argv.is_empty()
        && let Some(why) = limits::shortage()
    {
        return Outcome::Failed { why };
    }
    let profile = tools.profiles.detect(&argv).map(|profile| profile.name.clone());
    let agent_id = process::environ_var(row.pane.pid, "TASUKI_AGENT_ID").and_then(|id| id.parse().ok());
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
