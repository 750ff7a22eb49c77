//! `service`: the bridge as a user service of systemd or launchd, as `tasuki service` makes one of the sidecar.

use super::ground::Ground;
use crate::bridge::identity::HostFile;
use crate::cli::error::CliError;
use crate::cli::service::{self, ChangeArgs, LogsArgs, ManagedService, ManagerArgs, ServiceAction, WantedService};
use crate::cli::{CliSession, hosts};
use crate::service::BRIDGE;
use clap::{Args, Subcommand};

/// `service …`.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetServiceCommand {
    /// Install the bridge as a user service that starts with your session, and start it.
    #[command(after_help = "Example:\n  tasuki fleet service install --dry-run\n  tasuki fleet service install")]
    Install(FleetInstallArgs),
    /// Stop the service and remove its file.
    #[command(after_help = "Example:\n  tasuki fleet service uninstall")]
    Uninstall(ChangeArgs),
    /// Start the service.
    #[command(after_help = "Example:\n  tasuki fleet service start")]
    Start(ChangeArgs),
    /// Stop the service; requests to other hosts wait.
    #[command(after_help = "Example:\n  tasuki fleet service stop")]
    Stop(ChangeArgs),
    /// Stop and start the service, for example after an upgrade.
    #[command(after_help = "Example:\n  tasuki fleet service restart")]
    Restart(ChangeArgs),
    /// Show whether the service is installed and running. Exit code 1 if it is not running.
    #[command(after_help = "Example:\n  tasuki fleet service status")]
    Status(ManagerArgs),
    /// Print the bridge's log.
    #[command(after_help = "Example:\n  tasuki fleet service logs --lines 50\n  tasuki fleet service logs --follow")]
    Logs(LogsArgs),
}

/// `service install`.
#[derive(Debug, Args)]
pub(crate) struct FleetInstallArgs {
    /// Write the service file without starting the service.
    #[arg(long)]
    pub(crate) no_start: bool,
    /// How, and by which manager.
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

pub(super) fn command(session: &CliSession, command: &FleetServiceCommand) -> Result<(), CliError> {
    match command {
        FleetServiceCommand::Install(args) => {
            let ground = Ground::open(session)?;
            HostFile::load(&ground.folder)?.and_then(|host| host.fleet).ok_or_else(hosts::no_fleet)?;
            let wanted = WantedService { no_start: args.no_start, ..WantedService::default() };
            service::install(session, bridge(&args.change.manager), &wanted, args.change.dry_run)
        }
        FleetServiceCommand::Uninstall(args) => service::uninstall(session, bridge(&args.manager), args.dry_run),
        FleetServiceCommand::Start(args) => control(session, args, ServiceAction::Start),
        FleetServiceCommand::Stop(args) => control(session, args, ServiceAction::Stop),
        FleetServiceCommand::Restart(args) => control(session, args, ServiceAction::Restart),
        FleetServiceCommand::Status(args) => {
            let is_alive = hosts::has_bridge(&session.home)?;
            service::status::command(session, bridge(args), is_alive)
        }
        FleetServiceCommand::Logs(args) => service::logs(bridge(&args.manager), args),
    }
}

fn bridge(args: &ManagerArgs) -> ManagedService {
    ManagedService::of(&BRIDGE, args.manager)
}

fn control(session: &CliSession, args: &ChangeArgs, action: ServiceAction) -> Result<(), CliError> {
    service::control(session, bridge(&args.manager), action, args.dry_run)
}
