//! `service`: the bridge as a service of this user's systemd, beside the sidecar's.

use super::ground::Ground;
use crate::bridge::identity::{HostFile, not_a_member};
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::exit;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The unit as a package installs it.
const TEMPLATE: &str = include_str!("../../../packaging/systemd/tasuki-fleet.service");
/// The unit's name.
const UNIT: &str = "tasuki-fleet.service";
/// The first line of a unit that this program has written.
const OURS: &str = "# Written by `tasuki fleet service install`";

/// `service …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetServiceCommand {
    /// Install the bridge as a service that starts with your session, and start it.
    #[command(after_help = "Example:\n  tasuki fleet service install --dry-run\n  tasuki fleet service install")]
    Install(FleetServiceArgs),
    /// Stop the service and remove its file.
    #[command(after_help = "Example:\n  tasuki fleet service uninstall")]
    Uninstall(FleetServiceArgs),
    /// Show whether the service runs. Exit code 1 if it does not.
    #[command(after_help = "Example:\n  tasuki fleet service status")]
    Status,
}

/// A change.
#[derive(Debug, Args)]
pub(crate) struct FleetServiceArgs {
    /// Show what would be done, without doing it.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

pub(super) fn command(session: &CliSession, command: &FleetServiceCommand) -> Result<(), CliError> {
    if cfg!(target_os = "macos") {
        let message = "The bridge can't be installed as a launchd service yet. Nothing was changed.";
        return Err(CliError::refused("not_built", message).hint("Run it in a window of tmux: tasuki fleet run"));
    }
    match command {
        FleetServiceCommand::Install(args) => install(session, args.dry_run),
        FleetServiceCommand::Uninstall(args) => uninstall(session, args.dry_run),
        FleetServiceCommand::Status => status(session),
    }
}

fn install(session: &CliSession, dry_run: bool) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    HostFile::load(&ground.folder)?.and_then(|host| host.fleet).ok_or_else(not_a_member)?;
    let (text, path) = (unit(session)?, place()?);
    if dry_run {
        session.out.line(&format!("# {}", path.display()))?;
        session.out.raw(&text)?;
        return session.out.line("# then: systemctl --user daemon-reload, enable --now tasuki-fleet");
    }
    check_ours(&path)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| CliError::file("Can't make", folder, &error))?;
    }
    std::fs::write(&path, text).map_err(|error| CliError::file("Can't write", &path, &error))?;
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", UNIT])?;
    systemctl(&["restart", UNIT])?;
    let line = format!("The bridge is running; its file is {}.", path.display());
    session.report(&json!({"status": "started", "file": path.display().to_string()}), &line)
}

fn uninstall(session: &CliSession, dry_run: bool) -> Result<(), CliError> {
    let path = place()?;
    if dry_run {
        return session.out.line(&format!("systemctl --user disable --now {UNIT}; rm '{}'", path.display()));
    }
    if !path.exists() {
        let line = format!("The service is not installed: there is no {}. Nothing was changed.", path.display());
        return session.report(&json!({"status": "not_installed"}), &line);
    }
    check_ours(&path)?;
    systemctl(&["disable", "--now", UNIT])?;
    std::fs::remove_file(&path).map_err(|error| CliError::file("Can't remove", &path, &error))?;
    systemctl(&["daemon-reload"])?;
    let line = format!("The bridge was stopped and {} was removed.", path.display());
    session.report(&json!({"status": "uninstalled"}), &line)
}

fn status(session: &CliSession) -> Result<(), CliError> {
    let run = Command::new("systemctl").args(["--user", "is-active", UNIT]).stdin(Stdio::null()).output();
    let output = run.map_err(|error| no_systemd(&error.to_string()))?;
    let word = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    session.report(&json!({"status": word}), &format!("{UNIT}: {word}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(CliError::new(exit::REFUSED, "not_running", "The bridge's service does not run."))
    }
}

/// The unit for this user: the packaged one, with this program's path and this home.
fn unit(session: &CliSession) -> Result<String, CliError> {
    let program = std::env::current_exe()
        .map_err(|error| CliError::refused("program", format!("The path of this program can't be found: {error}.")))?;
    let words = [quoted(&program)?, "--home".to_owned(), quoted(session.home.root())?, "run".to_owned()];
    let mut unit = format!("{OURS}; `tasuki fleet service uninstall` removes it.\n");
    for line in TEMPLATE.lines().skip_while(|line| line.starts_with('#')) {
        let line =
            if line.starts_with("ExecStart=") { format!("ExecStart={}", words.join(" ")) } else { line.to_owned() };
        unit.push_str(&line);
        unit.push('\n');
    }
    Ok(unit)
}

fn quoted(path: &Path) -> Result<String, CliError> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| {
        CliError::config("unfit_for_service", format!("{} can't be written into a service file.", path.display()))
    })?;
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$")))
}

fn place() -> Result<PathBuf, CliError> {
    let dirs =
        directories::BaseDirs::new().ok_or_else(|| CliError::config("no_home", "This user has no home folder."))?;
    Ok(dirs.config_dir().join("systemd/user").join(UNIT))
}

/// Refuses to touch a unit that somebody else has written.
fn check_ours(path: &Path) -> Result<(), CliError> {
    match crate::cli::view::read_bytes(path, 1 << 20)? {
        Some(bytes) if !bytes.starts_with(OURS.as_bytes()) => {
            let message = format!("{} was not written by tasuki. Nothing was changed.", path.display());
            Err(CliError::refused("not_ours", message))
        }
        _ => Ok(()),
    }
}

fn systemctl(args: &[&str]) -> Result<(), CliError> {
    let run = Command::new("systemctl").arg("--user").args(args).stdin(Stdio::null()).output();
    let output = run.map_err(|error| no_systemd(&error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(CliError::refused("systemd", format!("systemctl --user {} failed: {said}", args.join(" "))))
}

fn no_systemd(why: &str) -> CliError {
    CliError::new(exit::UNAVAILABLE, "no_systemd", format!("systemctl can't be run: {why}."))
        .hint("Run the bridge in a window of tmux: tasuki fleet run")
}
