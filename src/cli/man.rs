//! `man`: the manual pages, made from the same texts as `--help`, and a page about the configuration. tasuki-fleet
//! makes its own by the same functions.

use super::CliSession;
use super::error::CliError;
use super::guide;
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
    /// Write the pages into this folder; without it, the program's own page is printed.
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// What the first page of a program's manual says beside its help.
#[derive(Debug)]
pub(crate) struct Manual {
    /// The program, and the name of its first page.
    pub(crate) program: &'static str,
    /// The sentence before the list of files, which says where they are.
    pub(crate) place: &'static str,
    /// Its files, each with a description.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// The variables that it reads.
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// Its exit codes.
    pub(crate) exits: &'static [(&'static str, &'static str)],
    /// The command whose page is in the manual of another program.
    pub(crate) elsewhere: Option<&'static str>,
}

/// The manual of tasuki. The page of `tasuki fleet` is that of tasuki-fleet, which is a package of its own.
const TASUKI: Manual = Manual {
    program: "tasuki",
    place: "In tasuki's home, which is --home, TASUKI_HOME, or tasuki in your data folder:",
    files: &[
        ("config.toml", "limits and switches; see tasuki-config(5)"),
        ("data/personas/SLUG/", "skill.md, experience.md, persona.toml, handoffs/*.md"),
        ("data/profiles/*.toml, data/prompts/*.md, data/rules.toml", "your own files; they override the built-in ones"),
        ("spool/requests/ID.json", "requests; written to spool/tmp/ first, then renamed"),
        ("spool/results/ID.json", "the answers to requests"),
        ("spool/errors/", "one file for each failure that nobody has dismissed"),
        ("view/", "the current state of agents, handoffs and work items; for reading only"),
        ("state/", "tasuki's own files; leave them alone"),
    ],
    environment: &[
        ("TASUKI_HOME", "tasuki's home folder, an absolute path; by default tasuki in the user's data folder"),
        ("TASUKI_TMUX", "the tmux server: a name as for tmux -L, or a path"),
        ("TASUKI_LOG", "how much the sidecar logs: warn, info or debug"),
        ("TASUKI_AGENT_ID, TASUKI_PERSONA", "set in each agent that tasuki starts: the agent's id and persona"),
        ("TMUX, TMUX_PANE", "the pane in which the command runs; `.` names the agent in that pane"),
        ("NO_COLOR, CLICOLOR_FORCE", "no colours; colours even when the output is not a terminal"),
        ("HOME", "the user's home folder, an absolute path"),
    ],
    exits: &[
        ("0", "done"),
        ("1", "refused or failed"),
        ("2", "the command line is wrong"),
        ("10", "status: something waits for you, or the sidecar can't do all of its work"),
        ("69", "no sidecar answers"),
        ("70", "internal error in run or serve"),
        ("75", "try again later"),
        ("77", "not allowed"),
        ("78", "the configuration or the state can't be used"),
        ("130", "interrupted while waiting: a handoff continues, and the message says what becomes of a request"),
    ],
    elsewhere: Some("fleet"),
};

/// Prints `tasuki(1)`, or writes it, a page for each command, `tasuki-config(5)` and a page for each chapter of the
/// guide into a folder.
///
/// # Errors
/// The folder can't be made or written, or the output is closed.
pub fn command(session: &CliSession, args: &ManArgs, cli: Command) -> Result<(), CliError> {
    let Some(folder) = &args.dir else { return print(session, &TASUKI, cli) };
    let mut written = write_pages(&TASUKI, folder, cli)?;
    write(&folder.join("tasuki-config.5"), &configuration()?, &mut written)?;
    for chapter in &guide::CHAPTERS {
        write(&folder.join(format!("tasuki-{}.7", chapter.topic)), &guide::page(chapter), &mut written)?;
    }
    report(session, folder, &written)
}

/// Prints the first page of a program.
///
/// # Errors
/// When the output is closed.
pub(crate) fn print(session: &CliSession, manual: &Manual, mut cli: Command) -> Result<(), CliError> {
    cli.build();
    session.out.raw(&String::from_utf8_lossy(&page(manual, &cli)?))
}

/// Writes the page of a program, and those of its commands, into a folder; returns their paths.
///
/// # Errors
/// The folder can't be made or written.
pub(crate) fn write_pages(manual: &Manual, folder: &Path, mut cli: Command) -> Result<Vec<String>, CliError> {
    cli.build();
    std::fs::create_dir_all(folder).map_err(|error| CliError::file("Can't create the folder", folder, &error))?;
    let mut written = Vec::new();
    write_all(manual, &cli, folder, &mut written)?;
    Ok(written)
}

/// Says which pages were written.
///
/// # Errors
/// When the output is closed.
pub(crate) fn report(session: &CliSession, folder: &Path, written: &[String]) -> Result<(), CliError> {
    let line = format!("{} pages were written to {}.", written.len(), folder.display());
    session.report(&json!({"status": "written", "files": written}), &line)
}

/// A command's page, then those of its own commands. Hidden ones have none.
fn write_all(manual: &Manual, command: &Command, folder: &Path, written: &mut Vec<String>) -> Result<(), CliError> {
    write(&folder.join(format!("{}.1", name_of(command))), &page(manual, command)?, written)?;
    let own = command.get_subcommands().filter(|own| !own.is_hide_set() && manual.elsewhere != Some(own.get_name()));
    own.into_iter().try_for_each(|own| write_all(manual, own, folder, written))
}

/// The name of a command's page.
fn name_of(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

fn write(path: &Path, page: &[u8], written: &mut Vec<String>) -> Result<(), CliError> {
    std::fs::write(path, page).map_err(|error| CliError::file("Can't write", path, &error))?;
    written.push(path.display().to_string());
    Ok(())
}

fn page(manual: &Manual, command: &Command) -> Result<Vec<u8>, CliError> {
    made(manual, command).map_err(|error| CliError::refused("man", format!("Can't make the manual page: {error}.")))
}

/// A page: the generator's sections, except those in which it leaves out arguments or joins lines that must
/// stay apart.
fn made(manual: &Manual, command: &Command) -> std::io::Result<Vec<u8>> {
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
    if name_of(command) == manual.program {
        let mut more = Roff::new();
        table(&mut more, "FILES", manual.place, manual.files);
        table(&mut more, "ENVIRONMENT", "", manual.environment);
        table(&mut more, "EXIT STATUS", "", manual.exits);
        more.to_writer(&mut page)?;
    }
    if let Some(text) = command.get_after_help() {
        let mut examples = Roff::new();
        examples.control("SH", ["EXAMPLES"]);
        as_written(&mut examples, text.to_string().lines());
        examples.to_writer(&mut page)?;
    }
    let mut others = Roff::new();
    see_also(&mut others, command);
    others.to_writer(&mut page)?;
    page.flush()?;
    Ok(page)
}

/// Adds the chapters of the guide: for `tasuki(1)` all of them, for a command the chapter that explains it.
fn see_also(page: &mut Roff, command: &Command) {
    let name = name_of(command);
    let command = name.trim_start_matches("tasuki-");
    let own = guide::Chapter::of_command(command).map(|chapter| chapter.topic);
    let all = guide::CHAPTERS.iter().map(|chapter| chapter.topic);
    let topics: Vec<&str> = if name == "tasuki" { all.collect() } else { own.into_iter().collect() };
    if topics.is_empty() {
        return;
    }
    page.control("SH", ["SEE ALSO"]);
    let pages = topics.iter().enumerate().flat_map(|(at, topic)| {
        let after = if at + 1 == topics.len() { "(7)" } else { "(7), " };
        [bold(format!("tasuki-{topic}")), roman(after)]
    });
    page.text(pages.collect::<Vec<_>>());
}

/// Adds lines that are not joined when the page is formatted.
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

/// `tasuki-config(5)`: the example with every key, as it is in the repository.
fn configuration() -> Result<Vec<u8>, CliError> {
    let mut page = Roff::new();
    page.control("TH", ["tasuki-config", "5", "", concat!("tasuki ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]);
    page.text([roman("tasuki-config - limits and switches of tasuki")]);
    page.control("SH", ["SYNOPSIS"]);
    page.text([roman("config.toml, in tasuki's home or in tasuki in your configuration folder")]);
    page.control("SH", ["DESCRIPTION"]);
    page.text([roman(
        "The file is TOML. The example shows every key with its default. An invalid key is an error \
         that names the file, the key and the line.",
    )]);
    page.control("SH", ["EXAMPLE"]);
    as_written(&mut page, config::EXAMPLE.lines());
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("tasuki"), roman("(1)")]);
    let mut text = Vec::new();
    page.to_writer(&mut text)
        .map_err(|error| CliError::refused("man", format!("Can't make the manual page: {error}.")))?;
    Ok(text)
}
