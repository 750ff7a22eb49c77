//! `service status`: what the service manager says, and what the program's own view says.

use super::args::ManagerKind;
use super::launchd;
use super::manager::ManagedService;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::output::Tone;
use serde_json::{Value, json};
use std::path::Path;

/// Prints the status. The exit code is 1 if the service does not run.
///
/// `is_alive`: the program answers in this home.
///
/// # Errors
/// The service does not run.
pub(crate) fn command(session: &CliSession, managed: ManagedService, is_alive: bool) -> Result<(), CliError> {
    let (kind, service) = (managed.kind, managed.service);
    let installed = managed.installed()?;
    let is_installed = installed.is_some();
    let path = installed.map_or_else(|| managed.file(), Ok)?;
    let (state, pid, more) = match kind {
        _ if !is_installed => ("not_installed".to_owned(), None, Value::Null),
        ManagerKind::Systemd => systemd(managed),
        ManagerKind::Launchd => ask_launchd(managed),
    };
    let is_unknown = state == UNKNOWN;
    let runs = state == "active";
    let mut view = json!({
        "installed": is_installed, "file": path.display().to_string(), "manager": kind.as_str(), "state": state,
        "pid": pid, "properties": more, "lingers": (kind == ManagerKind::Systemd).then(lingers),
    });
    view[format!("{}_answers", service.role)] = is_alive.into();
    if session.out.is_json() {
        session.out.document(&view)?;
    } else {
        let tone = if runs { Tone::Good } else { Tone::Bad };
        let pid = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
        session.out.line(&format!("service   {}{pid}", session.out.paint(tone, &state)))?;
        session.out.line(&format!("file      {}", path.display()))?;
        let answers = if is_alive { "answers" } else { "does not answer" };
        session.out.line(&format!("{:<9} {answers}, home {}", service.role, session.home.root().display()))?;
        if runs && kind == ManagerKind::Systemd && !lingers() {
            session.out.note("The service ends when you log out; to keep it running: loginctl enable-linger");
        }
    }
    if runs {
        return Ok(());
    }
    if is_unknown {
        // Says why it does not answer, and what to do about that.
        managed.answers()?;
        let message = format!("{} did not say whether the service runs. Nothing was changed.", kind.as_str());
        return Err(CliError::refused("no_service_manager", message).hint("Ask again."));
    }
    let hint = match (is_installed, is_alive) {
        (false, true) => format!("A {} is running, but it was not started by the service.", service.role),
        (false, false) => format!("Install the service: {} install", service.command),
        (true, _) => format!("To see why: {} logs", service.command),
    };
    Err(CliError::refused("not_running", "The service is not running.").hint(hint))
}

fn systemd(managed: ManagedService) -> (String, Option<u64>, Value) {
    let Ok(properties) = managed.properties() else { return (UNKNOWN.to_owned(), None, Value::Null) };
    let get = |key: &str| properties.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let state = get("ActiveState").filter(|state| !state.is_empty()).unwrap_or_else(|| UNKNOWN.to_owned());
    let pid = get("MainPID").and_then(|pid| pid.parse().ok()).filter(|pid| *pid != 0);
    let more = properties.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<serde_json::Map<_, _>>();
    (state, pid, Value::Object(more))
}

fn ask_launchd(managed: ManagedService) -> (String, Option<u64>, Value) {
    let Ok(said) = managed.printed() else { return (UNKNOWN.to_owned(), None, Value::Null) };
    let said = launchd::read(&said);
    let state = if said.is_loaded && said.pid.is_some() { "active" } else { "inactive" };
    (state.to_owned(), said.pid, json!({"state": said.state, "last_exit": said.last_exit}))
}

/// The word for the state of a service if its manager does not say it.
const UNKNOWN: &str = "unknown";

/// Whether this user's services keep running after the last logout.
pub(crate) fn lingers() -> bool {
    let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten();
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user.name).exists())
}
