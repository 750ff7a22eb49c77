//! Shows an agent's pane in the tmux client of the person at this terminal. It refuses if that is a client of another
//! tmux server than the sidecar's.

use crate::child::Grouped;
use crate::cli::error::CliError;
use crate::cli::names;
use crate::config::Home;
use crate::core::pane::TmuxVariable;
use crate::core::text::sanitise;
use crate::tmux::examine::{check_owner, socket_around};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

const LIMIT: Duration = Duration::from_secs(5);
/// The most that is read of tmux's output, in bytes.
const MOST: u64 = 4 * 1024;

/// Whether this runs in a popup: inside tmux, but on a terminal that is not a pane.
pub(super) fn is_popup() -> bool {
    let Some(socket) = socket_around() else { return false };
    let Some(pane) = names::variable("TMUX_PANE") else { return true };
    let own = nix::unistd::ttyname(std::io::stdin()).unwrap_or_default();
    let asked = tmux(&socket, &["display-message", "-p", "-t", &pane, "#{pane_tty}"]);
    asked.is_ok_and(|said| own != std::path::Path::new(said.trim()))
}

/// Shows a pane in the tmux client in which this runs.
///
/// # Errors
/// This runs outside tmux, or in another server than the sidecar's, or tmux refused.
pub(super) fn jump(home: &Home, pane: &str) -> Result<String, CliError> {
    let Some(socket) = socket_around() else {
        return Err(CliError::refused("no_tmux", format!("The pane is {pane}, but this terminal is not inside tmux."))
            .hint("Run top in a pane or a popup of the tmux server that the agents are in."));
    };
    check_owner(&socket)
        .map_err(|(said, fix)| CliError::refused("no_tmux", said).hint(format!("To fix this: {fix}.")))?;
    names::check_server(home).map_err(|error| CliError { hint: None, ..error })?;
    let client = client(&socket)?;
    tmux(&socket, &["switch-client", "-c", &client, "-t", pane])?;
    Ok(format!("went to {pane}"))
}

/// The name of the tmux client that shows the session in which top runs; of several, the one that was used last.
/// Without a name, tmux would take any client, perhaps the sidecar's own.
fn client(socket: &PathBuf) -> Result<String, CliError> {
    let session = match names::variable("TMUX_PANE") {
        Some(pane) => tmux(socket, &["display-message", "-p", "-t", &pane, "#{session_id}"])?,
        // In a popup: the session of the client that shows it.
        None => {
            let value = names::variable("TMUX").unwrap_or_default();
            TmuxVariable::read(&value).map(|tmux| format!("${}", tmux.session)).unwrap_or_default()
        }
    };
    let format = "#{client_control_mode} #{client_activity} #{client_name}";
    let clients = tmux(socket, &["list-clients", "-t", &session, "-F", format])?;
    let people = clients.lines().filter_map(|line| line.strip_prefix("0 ")?.split_once(' '));
    let last = people.max_by_key(|(activity, _)| activity.parse::<u64>().unwrap_or_default());
    last.map(|(_, name)| name.to_owned()).ok_or_else(|| {
        let message = format!("No terminal is attached to the session {session}, in which top runs.");
        CliError::refused("no_client", message).hint(format!("Attach a terminal first: tmux attach -t '{session}'."))
    })
}

fn tmux(socket: &PathBuf, args: &[&str]) -> Result<String, CliError> {
    let failed = |why: String| CliError::refused("tmux", format!("tmux {}: {why}", args.first().unwrap_or(&"")));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(error.to_string()))?;
    let run = async {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(socket).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut group = Grouped::spawn(&mut command)?;
        let (mut said, mut complaint) = (Vec::new(), Vec::new());
        if let (Some(out), Some(err)) = (group.child().stdout.take(), group.child().stderr.take()) {
            out.take(MOST).read_to_end(&mut said).await?;
            err.take(MOST).read_to_end(&mut complaint).await?;
        }
        let status = group.child().wait().await?;
        Ok::<_, std::io::Error>((status.success(), if status.success() { said } else { complaint }))
    };
    let ran = runtime.block_on(async { tokio::time::timeout(LIMIT, run).await });
    let (good, said) = ran
        .map_err(|_| failed(format!("no answer within {} s", LIMIT.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    let said = sanitise(String::from_utf8_lossy(&said).trim());
    if good { Ok(said) } else { Err(failed(said)) }
}
