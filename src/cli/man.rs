//! `man`: the manual's pages, made from the same words as `--help`, and one of the configuration.

use super::Session;
use super::error::CliError;
use crate::config;
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The folder for the pages; without it `tasuki(1)` is printed.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Where things are, for `tasuki(1)`.
const FILES: [(&str, &str); 8] = [
    ("config.toml", "limits and switches; see tasuki-config(5)"),
    ("data/personas/SLUG/", "skill.md, experience.md, persona.toml, handoffs/*.md"),
    ("data/profiles/*.toml, data/prompts/*.md, data/rules.toml", "your own, over the built-in ones"),
    ("spool/requests/ID.json", "what is asked for; written to spool/tmp/ first, then renamed"),
    ("spool/results/ID.json", "the answers"),
    ("spool/errors/", "one file for each failure that nobody has dismissed"),
    ("view/", "agents, handoffs and work items as they are; for reading"),
    ("state/", "tasuki's own"),
];
/// What is read from the environment.
const ENVIRONMENT: [(&str, &str); 7] = [
    ("TASUKI_HOME", "the folder that everything lies in, from the root; else the user's data folder"),
    ("TASUKI_TMUX", "the tmux server: a name as for tmux -L, or a path"),
    ("TASUKI_LOG", "how much the sidecar logs: warn, info or debug"),
    ("TASUKI_AGENT_ID, TASUKI_PERSONA", "set for each agent that tasuki starts: which one it is"),
    ("TMUX, TMUX_PANE", "where the command runs: `.` is the agent in that pane"),
    ("NO_COLOR, CLICOLOR_FORCE", "no colours, or colours also where no terminal is"),
    ("HOME", "the user's home folder, from the root"),
];
/// What the exit codes mean.
const EXITS: [(&str, &str); 8] = [
    ("0", "done"),
    ("1", "refused or failed"),
    ("2", "the command line is wrong"),
    ("69", "no sidecar answers"),
    ("70", "run or serve was ended by a fault of its own"),
    ("75", "try again later"),
    ("77", "not allowed"),
    ("78", "the configuration or the state is not usable"),
];

/// Prints `tasuki(1)`, or writes it, a page for each command, and `tasuki-config(5)` into a folder.
///
/// # Errors
/// The folder can't be made or written, or the output is closed.
pub fn command(session: &Session, args: &ManArgs, cli: Command) -> Result<(), CliError> {
    let mut cli = cli.disable_help_subcommand(true);
    cli.build();
    let Some(folder) = &args.dir else {
        return session.out.raw(&String::from_utf8_lossy(&page(&cli)?));
    };
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("make", folder, &error))?;
    let mut written = Vec::new();
    write_all(&cli, folder, &mut written)?;
    write(&folder.join("tasuki-config.5"), &configuration()?, &mut written)?;
    let line = format!("{} pages are in {}.", written.len(), folder.display());
    session.tell(&json!({"status": "written", "files": written}), &line)
}

/// A command's page, then those of its own commands. Hidden ones have none.
fn write_all(command: &Command, folder: &Path, written: &mut Vec<String>) -> Result<(), CliError> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    write(&folder.join(format!("{name}.1")), &page(command)?, written)?;
    let own = command.get_subcommands().filter(|own| !own.is_hide_set() && own.get_name() != "help");
    own.into_iter().try_for_each(|own| write_all(own, folder, written))
}

fn write(path: &Path, page: &[u8], written: &mut Vec<String>) -> Result<(), CliError> {
    std::fs::write(path, page).map_err(|error| CliError::file("write", path, &error))?;
    written.push(path.display().to_string());
    Ok(())
}

fn page(command: &Command) -> Result<Vec<u8>, CliError> {
    made(command).map_err(|error| CliError::refused("man", format!("The page can't be made: {error}.")))
}

/// A page: the maker's sections where they are fit, ours where it leaves arguments out or fills lines that stand alone.
fn made(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).source(concat!("tasuki ", env!("CARGO_PKG_VERSION")));
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    let usage = command.clone().render_usage().to_string();
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]);
    as_written(&mut synopsis, usage.trim_start_matches("Usage:").lines().map(str::trim));
    synopsis.to_writer(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.get_subcommands().any(|own| !own.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if command.get_display_name().is_none_or(|name| name == "tasuki") {
        let mut more = Roff::new();
        table(&mut more, "FILES", "In the home, which is --home, TASUKI_HOME, or tasuki in your data folder:", &FILES);
        table(&mut more, "ENVIRONMENT", "", &ENVIRONMENT);
        table(&mut more, "EXIT STATUS", "", &EXITS);
        more.to_writer(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        let mut examples = Roff::new();
        examples.control("SH", ["EXAMPLES"]);
        as_written(&mut examples, text.to_string().lines());
        examples.to_writer(&mut page)?;
    }
    page.flush()?;
    Ok(page)
}

/// Lines that stay lines.
fn as_written<'a>(page: &mut Roff, lines: impl Iterator<Item = &'a str>) {
    page.control("nf", []);
    for line in lines {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

fn table(page: &mut Roff, title: &str, before: &str, rows: &[(&str, &str)]) {
    page.control("SH", [title]);
    if !before.is_empty() {
        page.text([roman(before)]);
    }
    for (name, what) in rows {
        page.control("TP", []);
        page.text([bold(*name)]);
        page.text([roman(*what)]);
    }
}

/// `tasuki-config(5)`: the example with every key, as it lies in the repository.
fn configuration() -> Result<Vec<u8>, CliError> {
    let mut page = Roff::new();
    page.control("TH", ["tasuki-config", "5", "", concat!("tasuki ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]);
    page.text([roman("tasuki-config - limits and switches of tasuki")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([roman("config.toml, in tasuki's home or in tasuki's folder of your configuration")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "TOML. Every key has a default, which stands here. A wrong one is an error that names file, key and line.",
    )]);
    page.control("SH", ["EXAMPLE"]);
    as_written(&mut page, config::EXAMPLE.lines());
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("tasuki"), roman("(1)")]);
    let mut text = Vec::new();
    page.to_writer(&mut text).map_err(|error| CliError::refused("man", format!("The page can't be made: {error}.")))?;
    Ok(text)
}
