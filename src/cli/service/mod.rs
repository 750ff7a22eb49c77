//! `service`: runs the sidecar as a service of its user, by systemd or launchd. `tasuki fleet service` does the same
//! for the bridge, with the same functions. `--dry-run` shows every change beforehand, each change may be repeated, and
//! no file that tasuki did not write is touched.

mod args;
mod call;
mod file;
mod launchd;
pub(super) mod manager;
pub(crate) mod status;

#[cfg(feature = "fleet")]
pub(crate) use args::ChangeArgs;
pub(super) use args::ManagerKind;
pub use args::ServiceCommand;
pub(crate) use args::{LogsArgs, ManagerArgs};
pub(super) use launchd::LaunchdState;
pub(crate) use manager::{ManagedService, ServiceAction};

use super::CliSession;
use super::client::{Pulse, SidecarPresence};
use super::error::CliError;
use super::output::Tone;
use super::run::whole_socket;
use crate::config::Config;
use crate::core::text::{sanitise, shell_word};
use crate::files;
use crate::service::{self, Plan, SIDECAR};
use call::{Call, CallManner};
use serde_json::json;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Installs, removes, starts or stops the service, or prints its status. `tmux`: the tmux server for the sidecar, if
/// one was named.
///
/// # Errors
/// The manager does not run or refuses, or the file was not written by tasuki.
pub fn command(session: &CliSession, command: &ServiceCommand, tmux: Option<&str>) -> Result<(), CliError> {
    match command {
        ServiceCommand::Install(args) => {
            // Read for the sidecar only: the bridge never starts a tmux server.
            let starts_server = Config::load(&session.home.config())?.tmux_start;
            let wanted = WantedService { tmux: tmux.map(whole_socket), starts_server, no_start: args.no_start };
            install(session, sidecar(&args.change.manager), &wanted, args.change.dry_run)
        }
        ServiceCommand::Uninstall(args) => uninstall(session, sidecar(&args.manager), args.dry_run),
        ServiceCommand::Start(args) => control(session, sidecar(&args.manager), ServiceAction::Start, args.dry_run),
        ServiceCommand::Stop(args) => control(session, sidecar(&args.manager), ServiceAction::Stop, args.dry_run),
        ServiceCommand::Restart(args) => control(session, sidecar(&args.manager), ServiceAction::Restart, args.dry_run),
        ServiceCommand::Status(args) => {
            let is_alive = matches!(Pulse::new(&session.home).check(), SidecarPresence::Alive { .. });
            status::command(session, sidecar(args), is_alive)
        }
        ServiceCommand::Logs(args) => logs(sidecar(&args.manager), args),
    }
}

fn sidecar(args: &ManagerArgs) -> ManagedService {
    ManagedService::of(&SIDECAR, args.manager)
}

/// What `service install` is to install.
#[derive(Debug, Default)]
pub(crate) struct WantedService {
    /// The tmux server, if one was named.
    pub(crate) tmux: Option<String>,
    /// The program may start a tmux server.
    pub(crate) starts_server: bool,
    /// Only write the file, without starting the service.
    pub(crate) no_start: bool,
}

/// A variable for the service's environment. Relative paths become absolute, because the service runs in another folder
/// than this shell.
fn variable(name: &str) -> Option<OsString> {
    let value = std::env::var_os(name)?;
    let whole = match name {
        "TASUKI_TMUX" => value.to_str().map(|named| whole_socket(named).into()),
        "TMUX_TMPDIR" => std::path::absolute(&value).ok().map(OsString::from),
        _ => None,
    };
    Some(whole.unwrap_or(value))
}

fn plan(
    session: &CliSession,
    managed: ManagedService,
    wanted: &WantedService,
) -> Result<(Plan, Vec<&'static str>), CliError> {
    let program = files::own_program().map_err(|error| {
        CliError::refused("program", format!("tasuki can't find the path of its own program: {error}."))
    })?;
    let (environment, left_out) = service::environment(variable);
    let plan = Plan {
        service: managed.service,
        program,
        home: session.home.root().to_path_buf(),
        tmux: wanted.tmux.clone(),
        environment,
        starts_server: wanted.starts_server,
        log: managed.log()?,
    };
    Ok((plan, left_out))
}

fn rendered(kind: ManagerKind, plan: &Plan) -> Result<String, CliError> {
    let text = match kind {
        ManagerKind::Systemd => service::unit::render(plan),
        ManagerKind::Launchd => service::plist::render(plan),
    };
    text.map_err(|unfit| CliError::config("unfit_for_service", format!("{unfit}.")))
}

/// Writes the service's file and starts the service.
///
/// # Errors
/// As [`command`].
pub(crate) fn install(
    session: &CliSession,
    managed: ManagedService,
    wanted: &WantedService,
    dry_run: bool,
) -> Result<(), CliError> {
    let (plan, left_out) = plan(session, managed, wanted)?;
    let (text, path) = (rendered(managed.kind, &plan)?, managed.file()?);
    let calls = managed.calls(ServiceAction::Install { start: !wanted.no_start })?;
    if dry_run {
        return show(session, &path, Some(&text), &calls);
    }
    check_home(session, managed, &path)?;
    managed.answers()?;
    let changed = file::write(&path, managed.service, &text)?;
    if managed.kind == ManagerKind::Launchd
        && let Some(folder) = plan.log.parent()
    {
        std::fs::create_dir_all(folder).map_err(|error| CliError::file("Can't create the folder", folder, &error))?;
    }
    make(managed, &calls)?;
    for name in left_out {
        session.out.note(&format!("{name} was left out: its value can't be written into a service file."));
    }
    if managed.kind == ManagerKind::Systemd && !status::lingers() {
        session.out.note(
            "The service, and maybe your tmux server, ends when you log out; to prevent that: loginctl enable-linger",
        );
    }
    report_installed(session, managed, &path, (changed, wanted.no_start))
}

fn report_installed(
    session: &CliSession,
    managed: ManagedService,
    path: &Path,
    (changed, no_start): (bool, bool),
) -> Result<(), CliError> {
    let (what, line) = match (changed, no_start) {
        (true, true) => (
            "installed",
            format!("The service is installed: {}. The service starts with your next session.", path.display()),
        ),
        (false, true) => {
            ("already_installed", format!("{} is already up to date; nothing was changed.", path.display()))
        }
        (_, false) => ("started", format!("The service is running; its file is {}.", path.display())),
    };
    let manager = managed.kind.as_str();
    session.report(&json!({"status": what, "file": path.display().to_string(), "manager": manager}), &line)
}

/// Stops the service and removes its file.
///
/// # Errors
/// As [`command`].
pub(crate) fn uninstall(session: &CliSession, managed: ManagedService, dry_run: bool) -> Result<(), CliError> {
    let path = managed.file()?;
    let calls = managed.calls(ServiceAction::Uninstall)?;
    if dry_run {
        return show(session, &path, None, &calls);
    }
    if !file::is_ours(&path, managed.service)? {
        let line = match managed.installed()? {
            Some(packaged) => format!(
                "{} is from a package, which tasuki does not remove. Nothing was changed. To end the service and keep \
                 it from starting: systemctl --user disable --now {}",
                packaged.display(),
                managed.service.unit
            ),
            None => format!("The service is not installed: there is no {}. Nothing was changed.", path.display()),
        };
        return session.report(&json!({"status": "not_installed", "file": path.display().to_string()}), &line);
    }
    check_home(session, managed, &path)?;
    managed.answers()?;
    make(managed, &calls)?;
    file::remove(&path)?;
    if managed.kind == ManagerKind::Systemd {
        let reload = Call::new(&["systemctl", "--user", "daemon-reload"]);
        make(managed, &[reload.in_manner(CallManner::MayFail)])?;
    }
    let line = format!("The service was stopped and {} was removed. tasuki's home was left as it is.", path.display());
    session.report(&json!({"status": "uninstalled", "file": path.display().to_string()}), &line)
}

/// Starts or stops the service.
///
/// # Errors
/// It is not installed; else as [`command`].
pub(crate) fn control(
    session: &CliSession,
    managed: ManagedService,
    action: ServiceAction,
    dry_run: bool,
) -> Result<(), CliError> {
    let calls = managed.calls(action)?;
    if dry_run {
        return show(session, &managed.file()?, None, &calls);
    }
    if managed.installed()?.is_none() {
        let message = "The service is not installed. Nothing was done.";
        let hint = format!("Install it first: {} install", managed.service.command);
        return Err(CliError::refused("not_installed", message).hint(hint));
    }
    check_home(session, managed, &managed.file()?)?;
    managed.answers()?;
    make(managed, &calls)?;
    let done = action.done();
    session.report(&json!({"status": done, "manager": managed.kind.as_str()}), &format!("The service was {done}."))
}

/// Refuses if the service's file, written by tasuki, is for another home that is still there. A user has one such
/// service, and this command would end the other home's.
fn check_home(session: &CliSession, managed: ManagedService, path: &Path) -> Result<(), CliError> {
    let Some(other) = managed.other_home(path, session.home.root()) else { return Ok(()) };
    let other = other.display().to_string();
    let message = format!("The service of this user has another home: {}. Nothing was changed.", sanitise(&other));
    let uninstall = format!("{} uninstall --home {}", managed.service.command, shell_word(&other));
    let hint = format!("Name that home with --home; or, to give the service to this home, first: {uninstall}");
    Err(CliError::refused("other_home", message).hint(hint))
}

/// Prints what would be done: the file, then the calls in their order.
fn show(session: &CliSession, path: &Path, text: Option<&str>, calls: &[Call]) -> Result<(), CliError> {
    let lines: Vec<String> = calls.iter().map(|call| call.words.join(" ")).collect();
    if session.out.is_json() {
        let file = path.display().to_string();
        return session.out.document(&json!({"status": "would_change", "file": file, "text": text, "calls": lines}));
    }
    if let Some(text) = text {
        session.out.note(&session.out.paint(Tone::Faint, &format!("# {}", path.display())));
        session.out.raw(text)?;
    }
    for line in lines {
        session.out.note(&session.out.paint(Tone::Faint, &format!("# then: {line}")));
    }
    session.out.note("Nothing was changed.");
    Ok(())
}

fn make(managed: ManagedService, calls: &[Call]) -> Result<(), CliError> {
    for call in calls {
        let said = call.make()?;
        if !said.ok {
            let why = said.err.lines().next().unwrap_or("no reason given").to_owned();
            let message = format!("{} failed: {why}", call.words.join(" "));
            return Err(
                CliError::refused("service_manager", message).hint(format!("See: {} logs", managed.service.command))
            );
        }
    }
    Ok(())
}

/// Replaces this process by the program that prints the log.
///
/// # Errors
/// That program can't be started.
pub(crate) fn logs(managed: ManagedService, args: &LogsArgs) -> Result<(), CliError> {
    let kind = managed.kind;
    let lines = args.lines.to_string();
    let mut command = match kind {
        ManagerKind::Systemd => {
            let mut command = Command::new("journalctl");
            command.args(["--user", "--unit", managed.service.unit, "--lines", &lines]);
            command
        }
        ManagerKind::Launchd => {
            let mut command = Command::new("tail");
            command.args(["-n", &lines]);
            command
        }
    };
    if args.follow {
        command.arg("-f");
    }
    if kind == ManagerKind::Launchd {
        command.arg(managed.log()?);
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let error = command.exec();
    Err(CliError::refused("logs", format!("{program} can't be started: {error}.")))
}
