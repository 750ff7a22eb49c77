//! `man` and `completions`: manual pages and completion scripts, made by the same code as those of tasuki.

use crate::cli::completions::{self, CompletionsArgs};
use crate::cli::error::CliError;
use crate::cli::man::{self, ManArgs, Manual};
use crate::cli::{CliSession, help};
use crate::fleet::rights::RIGHTS;
use clap::Command;
use clap_complete::{ArgValueCandidates, CompletionCandidate};

/// The program's name.
const PROGRAM: &str = "tasuki-fleet";

pub(super) const MANUAL: Manual = Manual {
    program: PROGRAM,
    place: "In fleet/, in tasuki's home:",
    files: &[
        ("fleet.toml", "what other hosts may ask for, and other settings"),
        ("host.json, key, jwt, ca.pem", "this host's name, its keys, and its way to the server; key is secret"),
        ("owner.json", "the fleet's key, on the machine that admits hosts; secret"),
        ("members.json", "the hosts of the fleet, as its owner has signed them"),
        ("hosts/NAME.json", "what each host has last told of itself"),
        ("bridge.json", "the bridge: whether it is connected, and what is wrong"),
        ("requests/ID.json, results/ID.json", "requests to other hosts, and their answers"),
        ("audit.jsonl", "one line for each letter that was sent, taken or refused; no texts"),
    ],
    environment: &[
        ("TASUKI_HOME", "tasuki's home folder, an absolute path; by default tasuki in the user's data folder"),
        ("TASUKI_LOG", "how much the bridge logs: warn, info or debug"),
        ("TASUKI_NATS_SERVER", "the program nats-server, for the demo"),
    ],
    exits: &[
        ("0", "done"),
        ("1", "refused or failed"),
        ("2", "the command line is wrong"),
        ("69", "no bridge or no server answers"),
        ("75", "try again later; another bridge runs on this home"),
        ("77", "not allowed, or this home has joined no fleet"),
        ("78", "the settings can't be used, or this bridge must not serve as its host"),
    ],
    elsewhere: None,
};

/// Prints `tasuki-fleet(1)`, or writes it and a page for each command into a folder.
pub(super) fn man(session: &CliSession, args: &ManArgs, cli: Command) -> Result<(), CliError> {
    let Some(folder) = &args.dir else { return man::print(session, &MANUAL, cli) };
    man::report(session, folder, &man::write_pages(&MANUAL, folder, cli)?)
}

/// Prints a completion script.
pub(super) fn completions(session: &CliSession, args: &CompletionsArgs) -> Result<(), CliError> {
    completions::print(session, args, PROGRAM)
}

/// The command line, with the values that a shell can offer for its arguments.
pub(super) fn for_shells(cli: Command) -> Command {
    help::with_names(cli.mut_subcommand("accept", with_rights).mut_subcommand("refuse", with_rights))
}

fn with_rights(command: Command) -> Command {
    command.mut_arg("rights", |arg| {
        arg.add(ArgValueCandidates::new(|| RIGHTS.map(|right| CompletionCandidate::new(right.as_str())).into()))
    })
}
