//! The command line: one file or folder for each command. Most commands submit requests to the spool or read the views.
//! Only `run`, which is the sidecar, opens the database.
//!
//! Read [`args`] for the list of commands, [`client`] for how a request is submitted and answered, [`names`] for how
//! agents, handoffs and work items are named, [`follow`] and [`wait`] for `--wait`, [`remote`] for agents and handoffs
//! of other hosts, such as `kai@b`.

pub mod ack;
pub mod agents;
pub mod args;
pub mod client;
pub mod completions;
pub mod demo;
mod diff;
pub mod doctor;
pub mod documents;
mod editor;
pub mod error;
pub mod errors;
pub mod examined;
pub mod fleet;
pub mod follow;
mod free_text;
mod go_to;
pub mod guide;
pub mod handoff;
pub mod handoff_words;
pub mod handoffs;
pub mod help;
mod home_option;
pub mod hook;
pub mod hooks;
pub mod hosts;
pub mod input;
pub(crate) mod interrupts;
pub mod lineage;
mod live;
pub mod man;
pub mod names;
pub mod needs;
pub mod output;
pub mod past;
pub mod persona;
pub mod publish;
mod publishing;
pub mod read;
mod register;
pub mod remote;
pub mod reopen;
mod review;
pub mod rules;
pub mod run;
pub mod schema;
pub mod serve;
pub mod service;
mod session;
pub mod status;
pub mod statusline;
pub mod top;
pub mod unread;
pub mod view;
pub mod wait;
mod waiting;
pub mod work;

pub use session::{ANSWER_SOON, CliSession};

use crate::core::text::{plain_json, sanitise};
use crate::exit;
use crate::service::{SERVICE_VARIABLE, SIDECAR};
use args::{Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use error::CliError;
use output::{Out, eprint_quietly};
use std::ffi::OsString;
use std::io::Write as _;

/// Runs one command line, the program's name first, and returns the exit code.
#[must_use]
pub fn main(args: &[OsString]) -> u8 {
    if let Some(own) = hook::arguments(args) {
        hook::run(&own);
        return exit::DONE;
    }
    let manager = std::env::var_os(SERVICE_VARIABLE);
    SIDECAR.exit_code(args, manager.as_deref(), run_line(args), eprint_quietly)
}

/// Runs a command line that is not a hook's.
fn run_line(args: &[OsString]) -> u8 {
    if let Some(own) = statusline::arguments(args) {
        statusline::run(&own);
        return exit::DONE;
    }
    if args.get(1).is_some_and(|arg| arg == "demo-agent") {
        return run::demo_agent(args.get(2..).unwrap_or_default());
    }
    if completions::passed_on(args) || completions::answer(args, help::command) {
        return exit::DONE;
    }
    if let Some(own) = fleet::arguments(args) {
        return complain(&fleet::run(&own), own.iter().any(|arg| arg == "--json"));
    }
    let parsed = help::command().try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(args, &error, ("tasuki", "tasuki --help")),
    };
    let json = cli.everywhere.json;
    match dispatch(&cli) {
        Ok(code) => code,
        Err(error) => complain(&error, json),
    }
}

/// Prints what the parser returned instead of arguments, and returns the exit code. Help and version go to standard
/// output with code 0, mistakes to standard error with code 2.
///
/// `name`: the program's name, which is put before a mistake. `help`: the command that shows its help.
pub fn usage(args: &[OsString], error: &clap::Error, (name, help): (&str, &str)) -> u8 {
    if error.use_stderr() && args.iter().any(|arg| arg == "--json") {
        let text = error.to_string();
        return complain(&CliError::usage(sanitise(&mistake(&text))).hint(format!("See {help}.")), true);
    }
    // The parser quotes the arguments, which may contain control characters.
    let quoted = error.render().to_string();
    if error.use_stderr() && sanitise(&quoted) != quoted {
        eprint_quietly(quoted.trim_end());
        return exit::USAGE;
    }
    if error.use_stderr() {
        eprint_quietly(&format!("{name}: {}", quoted.trim_end().trim_start_matches("error: ")));
        return exit::USAGE;
    }
    match error.print().and_then(|()| std::io::stdout().flush()) {
        // A pager may close the output before the end of a help text; that is not a failure.
        Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => complain(&CliError::output(&why), false),
        Ok(()) | Err(_) => exit::DONE,
    }
}

/// What is wrong, in one line, of the parser's text. If the first line ends with a colon, its paragraph continues with
/// a list: the arguments that are missing, or those that exclude each other.
fn mistake(text: &str) -> String {
    let mut lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ");
    let rest = lines.collect::<Vec<_>>().join(", ");
    format!("{first} {rest}").trim_end().to_owned()
}

/// Prints an error to standard error, and returns its exit code.
pub fn complain(error: &CliError, json: bool) -> u8 {
    if !error.is_silent() {
        let hint = error.hint.as_deref().map(|hint| home_option::fit(hint).into_owned());
        let error = CliError { hint, ..error.clone() };
        eprint_quietly(&if json { plain_json(&error.json().to_string()).into_owned() } else { error.text() });
    }
    error.exit
}

/// Runs a command that needs no session; `None` if the command needs one.
fn dispatch_alone(cli: &Cli) -> Option<Result<u8, CliError>> {
    let (home, json) = (cli.everywhere.home.as_deref(), cli.everywhere.json);
    match &cli.command {
        Command::Demo => return Some(demo::command(json)),
        Command::Help(args) => {
            return Some(guide::command(&Out::new(json), args, help::command()).map(|()| exit::DONE));
        }
        // Mostly, `main` has recognised these two before the parser. A line that gets here does the same, and never
        // fails.
        Command::Hook(args) => hook::run(&hook::words(args, home)),
        Command::Statusline(args) => statusline::run(&statusline::words(args, home)),
        _ => return None,
    }
    Some(Ok(exit::DONE))
}

fn dispatch(cli: &Cli) -> Result<u8, CliError> {
    if let Some(done) = dispatch_alone(cli) {
        return done;
    }
    let (session, tmux) = (cli.everywhere.session()?, cli.tmux.as_deref());
    match &cli.command {
        Command::Run => return Ok(run::start(session.home, tmux, cli.everywhere.json)),
        Command::Handoff(args) => handoff::handoff(&session, args),
        Command::Retry(args) => handoff::retry(&session, args),
        Command::Cancel(args) => handoff::cancel(&session, args),
        Command::Accept(args) => handoff::accept(&session, args),
        Command::Rework(args) => handoff::rework(&session, args),
        Command::Abandon(args) => handoff::abandon(&session, args),
        Command::Ack(args) => ack::ack(&session, args),
        Command::Clarify(args) => ack::clarify(&session, args),
        Command::AckOverride(args) => ack::ack_override(&session, args),
        Command::Publish(args) => publish::command(&session, args),
        Command::Status => return status::command(&session),
        Command::Read(args) => read::command(&session, args),
        Command::Reopen(args) => reopen::command(&session, args),
        Command::Doctor(command) => doctor::command(&session, command, tmux),
        Command::Agents(args) => agents::list(&session, args),
        Command::Handoffs(args) => handoffs::command(&session, args),
        Command::Lineage(args) => lineage::command(&session, args),
        Command::Send(args) => agents::send(&session, args),
        Command::Agent(command) => agents::command(&session, command),
        Command::Persona(command) => persona::command(&session, command),
        Command::Work(command) => work::command(&session, command),
        Command::Rules(command) => rules::command(&session, command),
        Command::Errors(args) => errors::command(&session, args),
        Command::Hooks(command) => hooks::command(&session, command),
        Command::Serve(args) => serve::command(&session, args),
        Command::Top(args) => top::command(&session, args),
        Command::Service(command) => service::command(&session, command, tmux),
        Command::Schema(args) => schema::command(&session, args),
        Command::Man(args) => man::command(&session, args, help::fit_options(Cli::command())),
        Command::Completions(args) => completions::command(&session, args),
        // `run_line` handles `fleet` before the parser, unless it does not understand the options before it.
        Command::Fleet(_) => Err(CliError::usage(
            "The options before `fleet` were not understood. Nothing was done. Write them after `fleet`.",
        )),
        // `dispatch_alone` has handled these.
        Command::Hook(_) | Command::Statusline(_) | Command::Demo | Command::Help(_) => Ok(()),
    }?;
    Ok(exit::DONE)
}
