//! `completions`.

use super::Session;
use super::args::{Cli, CompletionsArgs};
use super::error::CliError;
use clap::CommandFactory;

/// Prints a completion script. It is made in memory first, so that a closed output is met by us and not by the maker.
///
/// # Errors
/// When the output is closed.
pub fn command(session: &Session, args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tasuki", &mut script);
    session.out.raw(&String::from_utf8_lossy(&script))
}
