//! The help: commands in groups, the common options apart from a command's own, and candidates where a
//! shell completes.

use super::args::Cli;
use super::completions;
use super::guide::Chapter;
use clap::{Command, CommandFactory};
use std::fmt::Write as _;

/// The groups of commands, in the order of `--help`.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Get started", &["run", "demo", "service", "doctor", "help"]),
    ("Hand off", &["handoff", "handoffs", "retry", "cancel", "accept", "rework", "abandon", "publish"]),
    ("Acknowledgements", &["ack", "clarify", "ack-override"]),
    ("Agents and personas", &["agents", "agent", "send", "lineage", "persona"]),
    ("Watch", &["top", "serve", "errors"]),
    ("Work items", &["work", "rules"]),
    ("For agent CLIs, shells and programs", &["hooks", "hook", "statusline", "schema", "completions", "man"]),
];

/// The command line as clap knows it, with all subcommands.
#[must_use]
pub fn command() -> Command {
    let whole = with_chapters(with_names(Cli::command()));
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&whole)
    );
    whole.help_template(template)
}

fn groups(whole: &Command) -> String {
    let wide = whole.get_subcommands().map(|own| own.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        // Writing into a text can't fail.
        let _ = writeln!(text, "{heading}:");
        for name in names {
            let about = whole.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            let _ = writeln!(text, "  {name:wide$}  {}", about.unwrap_or_default().trim_end_matches('.'));
        }
        text.push('\n');
    }
    text
}

/// Lets a shell ask the program for the values of an argument, for all arguments of that name.
fn with_names(command: Command) -> Command {
    let is_schema = command.get_name() == "schema";
    let command = command.mut_args(|arg| {
        let name = match arg.get_id().as_str() {
            "kind" if is_schema => "schema",
            name => name,
        };
        match completions::candidates(name) {
            Some(candidates) => arg.add(candidates),
            None => arg,
        }
    });
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_names))
}

/// Names the chapter of the guide below the help of each command that has one.
fn with_chapters(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| match Chapter::of_command(&name) {
        Some(chapter) => command.mut_subcommand(&name, |own| with_chapter(own, chapter)),
        None => command,
    })
}

fn with_chapter(command: Command, chapter: &Chapter) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_owned()).collect();
    let command =
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |own| with_chapter(own, chapter)));
    let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    command.after_help(format!("{before}Guide: tasuki help {}", chapter.topic))
}

#[cfg(test)]
mod tests {
    use super::super::guide::CHAPTERS;
    use super::*;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let whole = command();
        let mut all: Vec<&str> = whole.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
        whole.debug_assert();
    }

    #[test]
    fn every_command_that_a_chapter_names_is_there() {
        let whole = command();
        for name in CHAPTERS.iter().flat_map(Chapter::commands) {
            let own = whole.find_subcommand(name).unwrap_or_else(|| panic!("there is no command {name}"));
            assert!(
                own.get_after_help().is_some_and(|text| text.to_string().contains("Guide: tasuki help ")),
                "{name}"
            );
        }
    }
}
