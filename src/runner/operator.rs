//! Notifies the operator: in tmux, and by the command that `notify.command` names, or on the desktop.

use super::Tools;
use crate::config::OperatorCommand;
use crate::core::effect::{Notice, Outcome};
use crate::notify;
use crate::notify::desktop::DesktopProgram;
use tokio_util::sync::CancellationToken;

/// Notifies the operator in the tmux clients, and by a command or on the desktop, if that is configured. The error file
/// and the journal line do not depend on whether this works.
pub(super) async fn notify_operator(tools: &Tools, notice: &Notice, stop: &CancellationToken) -> Outcome {
    let shown = tokio::select! {
        biased;
        () = stop.cancelled() => return Outcome::Failed { why: notify::Error::Stopped.to_string() },
        shown = tools.tmux.notify_clients(&notice.text) => shown,
    };
    if let Err(error) = &shown {
        tracing::debug!(%error, "could not show a notice to the tmux clients");
    }
    match &tools.notify_command {
        OperatorCommand::None => Outcome::Done,
        OperatorCommand::Desktop => on_desktop(tools, notice, stop).await,
        OperatorCommand::Command(command) => run_command(tools, command, notice, stop).await,
    }
}

/// Runs a configured command with a notice as JSON on its standard input.
pub(super) async fn run_command(
    tools: &Tools,
    command: &[String],
    notice: &Notice,
    stop: &CancellationToken,
) -> Outcome {
    let json = serde_json::to_vec(&notice.json).unwrap_or_default();
    let reloads = tools.late.reloads();
    match notify::run(command, &json, stop).await {
        Ok(()) => {
            tools.late.note_notice(command, reloads, None);
            Outcome::Done
        }
        // The command was not started. tasuki sends the notice after its next start.
        Err(error @ notify::Error::Stopped) => Outcome::Failed { why: error.to_string() },
        Err(error) => {
            tools.late.note_notice(command, reloads, Some(&error.to_string()));
            tracing::warn!(%error, "could not pass a notice to a configured command");
            Outcome::Failed { why: error.to_string() }
        }
    }
}

/// Shows a notice on the desktop of this machine. If no program can do that, the terminals that are attached to tmux
/// get it: they may be on another machine, and show it there.
async fn on_desktop(tools: &Tools, notice: &Notice, stop: &CancellationToken) -> Outcome {
    let why = match DesktopProgram::here() {
        Err(why) => why.to_owned(),
        Ok(program) => match notify::run(&program.command(&notice.text), b"", stop).await {
            Ok(()) => return Outcome::Done,
            Err(error @ notify::Error::Stopped) => return Outcome::Failed { why: error.to_string() },
            Err(error) => error.to_string(),
        },
    };
    match tools.tmux.notify_terminals(&notice.text).await {
        Ok(1..) => Outcome::Done,
        Ok(0) | Err(_) => {
            tracing::warn!(%why, "could not show a notice on a desktop, and no terminal attached to tmux took it");
            Outcome::Failed { why }
        }
    }
}
