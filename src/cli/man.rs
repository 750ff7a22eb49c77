//! `man`: the manual's pages, made from the same words as `--help`.

use super::Session;
use super::args::{Cli, ManArgs};
use super::error::CliError;
use clap::CommandFactory;
use serde_json::json;
use std::path::Path;

/// Prints `tasuki(1)`, or writes it and a page for each command into a folder.
///
/// # Errors
/// The folder can't be made or written, or the output is closed.
pub fn command(session: &Session, args: &ManArgs) -> Result<(), CliError> {
    let mut cli = Cli::command();
    cli.build();
    let Some(folder) = &args.dir else {
        return session.out.raw(&String::from_utf8_lossy(&page(&cli)?));
    };
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("make", folder, &error))?;
    let mut written = Vec::new();
    write_all(&cli, folder, &mut written)?;
    let line = format!("{} pages are in {}.", written.len(), folder.display());
    session.tell(&json!({"status": "written", "files": written}), &line)
}

/// A command's page, then those of its own commands. Hidden ones have none.
fn write_all(command: &clap::Command, folder: &Path, written: &mut Vec<String>) -> Result<(), CliError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).map_err(|error| CliError::file("write", &path, &error))?;
    written.push(path.display().to_string());
    let own = command.get_subcommands().filter(|own| !own.is_hide_set() && own.get_name() != "help");
    own.into_iter().try_for_each(|own| write_all(own, folder, written))
}

fn page(command: &clap::Command) -> Result<Vec<u8>, CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .render(&mut page)
        .map_err(|error| CliError::refused("man", format!("The page can't be made: {error}.")))?;
    Ok(page)
}
