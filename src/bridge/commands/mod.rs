//! The command line of `tasuki-fleet`.

mod about;
mod checks;
mod demo;
mod first;
mod ground;
mod hosts;
mod membership;
mod persona;
mod rights;
mod server;
mod service;

use crate::cli::args::GlobalArgs;
use crate::cli::completions::{self, CompletionsArgs};
use crate::cli::error::CliError;
use crate::cli::man::ManArgs;
use crate::cli::output::eprint_quietly;
use crate::cli::{complain, usage};
use crate::exit;
use crate::service::{BRIDGE, SERVICE_VARIABLE};
use clap::{CommandFactory, Parser, Subcommand};
use membership::{AdmitArgs, ExpelArgs, JoinArgs, KeyArgs, SetupArgs};
use std::ffi::OsString;

/// Several hosts that ask each other for things, through a server that is trusted with nothing.
#[derive(Debug, Parser)]
#[command(
    name = "tasuki-fleet",
    bin_name = "tasuki fleet",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Example, on the machine that holds the fleet's key:\n  tasuki fleet server init ./fleet-server --listen 0.0.0.0:4222 --name home\n  nats-server -c ./fleet-server/nats-server.conf &\n  tasuki fleet join --first ./fleet-server --as desk\n  ssh box tasuki fleet key box | tasuki fleet admit - | ssh box tasuki fleet join -\n  ssh box tasuki fleet accept desk view send\n\nThe whole of it: tasuki help fleet"
)]
struct FleetCli {
    #[command(flatten)]
    everywhere: GlobalArgs,
    #[command(subcommand)]
    command: FleetCommand,
}

#[derive(Debug, Subcommand)]
enum FleetCommand {
    /// Run the bridge in the foreground, until it is interrupted.
    #[command(after_help = "Example:\n  tasuki fleet run")]
    Run,
    /// Write what a NATS server of a new fleet needs.
    #[command(
        subcommand,
        after_help = "Example:\n  tasuki fleet server init ./fleet-server --listen 0.0.0.0:4222 --name home"
    )]
    Server(server::ServerCommand),
    /// Join a fleet by its ticket, or be the first host of a new one.
    #[command(
        after_help = "Example:\n  tasuki fleet join --first ./fleet-server --as desk\n  ssh box tasuki fleet key box | tasuki fleet admit - | ssh box tasuki fleet join -"
    )]
    Join(JoinArgs),
    /// Make this host's keys and print the line by which the owner admits it. The line is not secret.
    #[command(after_help = "Example:\n  tasuki fleet key box")]
    Key(KeyArgs),
    /// Admit a host by its key line, and print its ticket. The ticket is not secret.
    #[command(
        after_help = "Example:\n  ssh box tasuki fleet key box | tasuki fleet admit - | ssh box tasuki fleet join -"
    )]
    Admit(AdmitArgs),
    /// Make the streams at the server, where they are missing; or a new fleet in an account that another party has
    /// given.
    #[command(
        after_help = "Example:\n  tasuki fleet setup --replicas 3\n  tasuki fleet setup --account ACCOUNT --signing-key FILE --server tls://connect.example.org:4222 --name home --as desk"
    )]
    Setup(SetupArgs),
    /// Let a host ask this one for certain things. Without that it may ask for nothing.
    #[command(
        after_help = "Rights: view, send, receive, operate, work, personas. All but view let that host run code here.\n\nExample:\n  tasuki fleet accept desk view send\n  tasuki fleet accept '*' view"
    )]
    Accept(rights::AcceptHostArgs),
    /// Take a host's rights back.
    #[command(after_help = "Example:\n  tasuki fleet refuse desk\n  tasuki fleet refuse desk send")]
    Refuse(rights::RefuseHostArgs),
    /// Expel a host from the fleet.
    #[command(after_help = "Example:\n  tasuki fleet expel box")]
    Expel(ExpelArgs),
    /// Leave the fleet.
    #[command(after_help = "Example:\n  tasuki fleet leave")]
    Leave,
    /// Say that this home was moved here from another machine, and is gone there.
    #[command(after_help = "Example:\n  tasuki fleet moved")]
    Moved,
    /// Make this home a new one under its old name, after it was put back to an older state.
    #[command(after_help = "Example:\n  tasuki fleet rejoin")]
    Rejoin,
    /// List the hosts of the fleet.
    #[command(after_help = "Example:\n  tasuki fleet hosts")]
    Hosts,
    /// Show what this host was asked for and has asked for, newest last. There is no text in it.
    #[command(after_help = "Example:\n  tasuki fleet audit --limit 20")]
    Audit(hosts::AuditArgs),
    /// Print the checks of this host that `tasuki doctor` reports.
    #[command(hide = true)]
    Checks,
    /// Give personas to other hosts.
    #[command(subcommand, after_help = "Example:\n  tasuki fleet persona push kai box")]
    Persona(persona::FleetPersonaCommand),
    /// Show two hosts, a text from one to the other, and the death of a bridge, on this machine; nothing is left
    /// behind.
    #[command(after_help = "Example:\n  tasuki fleet demo")]
    Demo,
    /// Let systemd or launchd run the bridge for you.
    #[command(subcommand, after_help = "Example:\n  tasuki fleet service install\n  tasuki fleet service status")]
    Service(service::FleetServiceCommand),
    /// Print a completion script for the shell. It completes the names of hosts and personas too.
    #[command(after_help = "Example:\n  tasuki-fleet completions fish > ~/.config/fish/completions/tasuki-fleet.fish")]
    Completions(CompletionsArgs),
    /// Print the manual page, or write all manual pages into a folder.
    #[command(after_help = "Example:\n  tasuki fleet man --dir ~/.local/share/man/man1")]
    Man(ManArgs),
}

/// Runs one command line of `tasuki-fleet`, the program's name first, and returns the exit code.
#[must_use]
pub fn main(args: &[OsString]) -> u8 {
    let manager = std::env::var_os(SERVICE_VARIABLE);
    BRIDGE.exit_code(args, manager.as_deref(), run_line(args), eprint_quietly)
}

fn run_line(args: &[OsString]) -> u8 {
    if completions::answer(args, for_shells) {
        return exit::DONE;
    }
    let cli = match FleetCli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => return usage(args, &error, ("tasuki-fleet", "tasuki fleet --help")),
    };
    let json = cli.everywhere.json;
    match dispatch(&cli) {
        Ok(()) => exit::DONE,
        Err(error) => complain(&error, json),
    }
}

fn for_shells() -> clap::Command {
    about::for_shells(FleetCli::command())
}

fn dispatch(cli: &FleetCli) -> Result<(), CliError> {
    let session = cli.everywhere.session()?;
    match &cli.command {
        FleetCommand::Run => {
            log(cli.everywhere.json);
            super::run::run(&session.home)
        }
        FleetCommand::Server(command) => server::command(&session, command),
        FleetCommand::Join(args) => membership::join(&session, args),
        FleetCommand::Key(args) => membership::key(&session, args),
        FleetCommand::Admit(args) => membership::admit(&session, args),
        FleetCommand::Setup(args) => membership::setup(&session, args),
        FleetCommand::Accept(args) => rights::accept(&session, args),
        FleetCommand::Refuse(args) => rights::refuse(&session, args),
        FleetCommand::Expel(args) => membership::expel(&session, args),
        FleetCommand::Leave => membership::leave(&session),
        FleetCommand::Moved => membership::moved(&session),
        FleetCommand::Rejoin => membership::rejoin(&session),
        FleetCommand::Hosts => hosts::list(&session),
        FleetCommand::Audit(args) => hosts::audit(&session, args),
        FleetCommand::Checks => checks::print(&session),
        FleetCommand::Persona(command) => persona::command(&session, command),
        FleetCommand::Demo => demo::command(cli.everywhere.json),
        FleetCommand::Service(command) => service::command(&session, command),
        FleetCommand::Completions(args) => about::completions(&session, args),
        FleetCommand::Man(args) => about::man(&session, args, FleetCli::command()),
    }
}

/// Begins the log of `run`, on standard error. `TASUKI_LOG` says how much is logged. By default the messages of the
/// NATS library are left out, because tasuki-fleet itself logs what happens to the connection.
fn log(json: bool) {
    let filter = std::env::var("TASUKI_LOG").unwrap_or_else(|_| "tasuki=info,warn,async_nats=off".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_else(|_| "info".into());
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    if json {
        lines.json().init()
    } else {
        lines.with_ansi(false).init()
    }
    exit::end_on_fault(|| false, eprint_quietly);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_each_command_has_an_example() {
        fn walk(command: &clap::Command) {
            let is_shown = !command.is_hide_set();
            assert!(!is_shown || command.get_after_help().is_some(), "{} has no example", command.get_name());
            command.get_subcommands().for_each(walk);
        }
        walk(&FleetCli::command());
        for_shells().debug_assert();
    }

    #[test]
    fn the_manual_has_a_page_for_each_command_and_its_own_tables() {
        let folder = tempfile::tempdir().expect("a folder");
        let written =
            crate::cli::man::write_pages(&about::MANUAL, folder.path(), FleetCli::command()).expect("written");
        let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let top = page("tasuki-fleet.1");
        for part in
            ["tasuki\\-fleet\\-join(1)", ".SH FILES", "fleet.toml", "TASUKI_NATS_SERVER", "tasuki\\-fleet", "(7)"]
        {
            assert!(top.contains(part), "{part} is not in {top}");
        }
        assert!(!top.contains("TASUKI_TMUX") && !page("tasuki-fleet-join.1").contains(".SH FILES"));
        assert!(page("tasuki-fleet-server-init.1").contains("tasuki fleet server init"));
        assert!(written.len() > 20 && !written.iter().any(|path| path.ends_with("checks.1")), "{written:?}");
    }

    #[test]
    fn the_host_that_gets_a_persona_is_named_in_one_of_two_ways() {
        let read = |more: &[&str]| {
            FleetCli::try_parse_from([&["tasuki-fleet", "persona", "push", "kai"], more].concat()).is_ok()
        };
        assert!(read(&["box"]) && read(&["--to", "box", "--replace"]) && read(&["--replace", "box"]));
        assert!(!read(&[]) && !read(&["box", "--to", "box"]) && !read(&["box", "lab"]));
    }
}
