//! `service …` as data.

use clap::{Args, Subcommand, ValueEnum};

/// `service …`.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Install the sidecar as a user service that starts with your session, and start it.
    #[command(after_help = "Example:\n  tasuki service install --dry-run\n  tasuki service install --tmux work")]
    Install(InstallArgs),
    /// Stop the service and remove its file.
    #[command(after_help = "Example:\n  tasuki service uninstall")]
    Uninstall(ChangeArgs),
    /// Start the service.
    #[command(after_help = "Example:\n  tasuki service start")]
    Start(ChangeArgs),
    /// Stop the service; nothing is lost.
    #[command(after_help = "Example:\n  tasuki service stop")]
    Stop(ChangeArgs),
    /// Stop and start the service, for example after an upgrade.
    #[command(after_help = "Example:\n  tasuki service restart")]
    Restart(ChangeArgs),
    /// Show whether the service is installed and running. Exit code 1 if it is not running.
    #[command(after_help = "Example:\n  tasuki service status")]
    Status(ManagerArgs),
    /// Print the sidecar's log.
    #[command(after_help = "Example:\n  tasuki service logs --lines 50\n  tasuki service logs --follow")]
    Logs(LogsArgs),
}

/// A service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ManagerKind {
    /// systemd, for this user.
    Systemd,
    /// launchd on macOS.
    Launchd,
}

/// The service manager.
#[derive(Debug, Args)]
pub struct ManagerArgs {
    /// The service manager to use [default: launchd on macOS, systemd elsewhere].
    #[arg(long, value_name = "MANAGER")]
    pub manager: Option<ManagerKind>,
}

/// The arguments of each change to the service.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Show what would be done, without doing it.
    #[arg(long)]
    pub dry_run: bool,
    /// The service manager.
    #[command(flatten)]
    pub manager: ManagerArgs,
}

/// `service install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// Write the service file without starting the service.
    #[arg(long)]
    pub no_start: bool,
    /// `--dry-run` and the service manager.
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// `service logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// How many of the last lines to print.
    #[arg(long, short = 'n', default_value_t = 100)]
    pub lines: u32,
    /// Keep printing new lines until interrupted.
    #[arg(long, short)]
    pub follow: bool,
    /// The service manager.
    #[command(flatten)]
    pub manager: ManagerArgs,
}
