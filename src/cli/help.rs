//! The command line as people see it: commands in groups, the options of every command apart, and names to choose from
//! where a shell completes.

use super::args::Cli;
use super::completions;
use clap::{Command, CommandFactory};
use std::fmt::Write as _;

/// What the commands are about, in the order in which `--help` lists them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Begin", &["run", "demo", "service", "doctor"]),
    ("Hand off", &["handoff", "handoffs", "retry", "cancel", "accept", "abandon", "publish"]),
    ("Acknowledgements", &["ack", "clarify", "ack-override"]),
    ("Agents and personas", &["agents", "agent", "send", "lineage", "persona"]),
    ("Look", &["top", "serve", "errors"]),
    ("Work items", &["work", "rules"]),
    ("For agent CLIs, shells and programs", &["hooks", "hook", "statusline", "schema", "completions", "man"]),
];

/// The whole command line.
#[must_use]
pub fn command() -> Command {
    let whole = with_names(Cli::command());
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

/// Lets a shell ask us for what an argument can be, wherever one of that name stands.
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

#[cfg(test)]
mod tests {
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
}
