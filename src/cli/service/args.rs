//! `service …` as data.

use clap::{Args, Subcommand, ValueEnum};

/// `service …`.
#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    /// Make the sidecar a service of yours that starts with your session, and start it.
    #[command(after_help = "Example:\n  tasuki service install --dry-run\n  tasuki service install --tmux work")]
    Install(InstallArgs),
    /// Stop the service and remove its file.
    #[command(after_help = "Example:\n  tasuki service uninstall")]
    Uninstall(ChangeArgs),
    /// Start it.
    #[command(after_help = "Example:\n  tasuki service start")]
    Start(ChangeArgs),
    /// Stop it; nothing is lost by that.
    #[command(after_help = "Example:\n  tasuki service stop")]
    Stop(ChangeArgs),
    /// Stop and start it, after an upgrade for example.
    #[command(after_help = "Example:\n  tasuki service restart")]
    Restart(ChangeArgs),
    /// Say whether it is installed and runs. Exit code 1 if it does not run.
    #[command(after_help = "Example:\n  tasuki service status")]
    Status(ManagerArgs),
    /// Print what the sidecar has said.
    #[command(after_help = "Example:\n  tasuki service logs --lines 50\n  tasuki service logs --follow")]
    Logs(LogsArgs),
}

/// What runs services here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A user's own systemd.
    Systemd,
    /// macOS.
    Launchd,
}

/// Which manager.
#[derive(Debug, Args)]
pub struct ManagerArgs {
    /// What runs services here [else launchd on macOS, systemd elsewhere].
    #[arg(long, value_name = "MANAGER")]
    pub manager: Option<Kind>,
}

/// A change.
#[derive(Debug, Args)]
pub struct ChangeArgs {
    /// Show what would be done, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Which manager.
    #[command(flatten)]
    pub manager: ManagerArgs,
}

/// `service install`.
#[derive(Debug, Args)]
pub struct InstallArgs {
    /// The tmux server, as for `tasuki run` [else TASUKI_TMUX, else your default server].
    #[arg(long, value_name = "SOCKET")]
    pub tmux: Option<String>,
    /// Write the file, and start nothing.
    #[arg(long)]
    pub no_start: bool,
    /// What, and by whom.
    #[command(flatten)]
    pub change: ChangeArgs,
}

/// `service logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// How many lines, the last ones.
    #[arg(long, short = 'n', default_value_t = 100)]
    pub lines: u32,
    /// Go on as more comes, until interrupted.
    #[arg(long, short)]
    pub follow: bool,
    /// Which manager.
    #[command(flatten)]
    pub manager: ManagerArgs,
}
