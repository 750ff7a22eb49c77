//! `service`: runs the sidecar as a service of its user, by systemd or launchd. `--dry-run` shows every change
//! beforehand, each change may be repeated, and no file that tasuki did not write is touched.

mod args;
mod file;
pub(super) mod manager;
pub(super) mod status;

pub(super) use args::ManagerKind;
pub use args::ServiceCommand;

use super::CliSession;
use super::error::CliError;
use super::output::Tone;
use crate::config::Config;
use crate::service::{self, Plan};
use args::{ChangeArgs, InstallArgs, LogsArgs};
use manager::{Call, ServiceAction};
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Installs, removes, starts or stops the service, or prints its status.
///
/// # Errors
/// The manager does not run or refuses, or the file was not written by tasuki.
pub fn command(session: &CliSession, command: &ServiceCommand) -> Result<(), CliError> {
    match command {
        ServiceCommand::Install(args) => install(session, args),
        ServiceCommand::Uninstall(args) => uninstall(session, args),
        ServiceCommand::Start(args) => simple(session, args, ServiceAction::Start, "started"),
        ServiceCommand::Stop(args) => simple(session, args, ServiceAction::Stop, "stopped"),
        ServiceCommand::Restart(args) => simple(session, args, ServiceAction::Restart, "restarted"),
        ServiceCommand::Status(args) => status::command(session, args.manager.unwrap_or_else(ManagerKind::here)),
        ServiceCommand::Logs(args) => logs(args),
    }
}

fn kind(args: &ChangeArgs) -> ManagerKind {
    args.manager.manager.unwrap_or_else(ManagerKind::here)
}

fn plan(session: &CliSession, kind: ManagerKind, tmux: Option<&String>) -> Result<(Plan, Vec<&'static str>), CliError> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::refused("program", format!("tasuki can't find the path of its own program: {error}."))
    })?;
    let config = Config::load(&session.home.config())?;
    let (environment, left_out) = service::environment(|name| std::env::var_os(name));
    let plan = Plan {
        program,
        home: session.home.root().to_path_buf(),
        tmux: tmux.cloned(),
        environment,
        starts_server: config.tmux_start,
        log: kind.log()?,
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

fn install(session: &CliSession, args: &InstallArgs) -> Result<(), CliError> {
    let kind = kind(&args.change);
    let (plan, left_out) = plan(session, kind, args.tmux.as_ref())?;
    let (text, path) = (rendered(kind, &plan)?, kind.file()?);
    let calls = kind.calls(ServiceAction::Install { start: !args.no_start })?;
    if args.change.dry_run {
        return show(session, &path, Some(&text), &calls);
    }
    kind.answers()?;
    let changed = file::write(&path, &text)?;
    if kind == ManagerKind::Launchd
        && let Some(folder) = plan.log.parent()
    {
        std::fs::create_dir_all(folder).map_err(|error| CliError::file("Can't create the folder", folder, &error))?;
    }
    make(&calls)?;
    for name in left_out {
        session.out.note(&format!("{name} was left out: its value can't be written into a service file."));
    }
    if kind == ManagerKind::Systemd && !status::lingers() {
        session.out.note(
            "The service, and maybe your tmux server, ends when you log out; to prevent that: loginctl enable-linger",
        );
    }
    let what = match (changed, args.no_start) {
        (true, true) => "installed",
        (false, true) => "already_installed",
        (_, false) => "started",
    };
    let line = match what {
        "started" => format!("The service is running; its file is {}.", path.display()),
        "installed" => {
            format!("The service is installed: {}. The service starts with your next session.", path.display())
        }
        _ => format!("{} is already up to date; nothing was changed.", path.display()),
    };
    session.report(&json!({"status": what, "file": path.display().to_string(), "manager": kind.as_str()}), &line)
}

fn uninstall(session: &CliSession, args: &ChangeArgs) -> Result<(), CliError> {
    let kind = kind(args);
    let path = kind.file()?;
    let calls = kind.calls(ServiceAction::Uninstall)?;
    if args.dry_run {
        return show(session, &path, None, &calls);
    }
    if !file::is_ours(&path)? {
        let line = format!("The service is not installed: there is no {}. Nothing was changed.", path.display());
        return session.report(&json!({"status": "not_installed", "file": path.display().to_string()}), &line);
    }
    kind.answers()?;
    make(&calls)?;
    file::remove(&path)?;
    if kind == ManagerKind::Systemd {
        make(&[Call { words: ["systemctl", "--user", "daemon-reload"].map(str::to_owned).into(), may_fail: true }])?;
    }
    let line = format!("The service was stopped and {} was removed. tasuki's home was left as it is.", path.display());
    session.report(&json!({"status": "uninstalled", "file": path.display().to_string()}), &line)
}

fn simple(session: &CliSession, args: &ChangeArgs, action: ServiceAction, done: &str) -> Result<(), CliError> {
    let kind = kind(args);
    let calls = kind.calls(action)?;
    if args.dry_run {
        return show(session, &kind.file()?, None, &calls);
    }
    if kind.installed()?.is_none() {
        let message = "The service is not installed. Nothing was done.";
        return Err(CliError::refused("not_installed", message).hint("Install it first: tasuki service install"));
    }
    kind.answers()?;
    make(&calls)?;
    session.report(&json!({"status": done, "manager": kind.as_str()}), &format!("The service was {done}."))
}

/// Prints what would be done: the file, and the calls, in order.
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

fn make(calls: &[Call]) -> Result<(), CliError> {
    for call in calls {
        let said = manager::run(call)?;
        if !said.ok && !call.may_fail {
            let why = said.err.lines().next().unwrap_or("no reason given").to_owned();
            let message = format!("{} failed: {why}", call.words.join(" "));
            return Err(CliError::refused("service_manager", message).hint("See: tasuki service logs"));
        }
    }
    Ok(())
}

/// Replaces this process by the program that prints the log.
fn logs(args: &LogsArgs) -> Result<(), CliError> {
    let kind = args.manager.manager.unwrap_or_else(ManagerKind::here);
    let lines = args.lines.to_string();
    let mut command = match kind {
        ManagerKind::Systemd => {
            let mut command = Command::new("journalctl");
            command.args(["--user", "--unit", service::UNIT, "--lines", &lines]);
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
        command.arg(kind.log()?);
    }
    let program = command.get_program().to_string_lossy().into_owned();
    let error = command.exec();
    Err(CliError::refused("logs", format!("{program} can't be started: {error}.")))
}
