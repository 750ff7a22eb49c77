//! The command line with what its definitions do not say: the groups of commands in `--help`, the guide's chapters
//! below the help of commands, and the candidates that a shell offers for arguments.

use super::args::Cli;
use super::completions;
use super::guide::Chapter;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write as _;

/// The groups of commands, in the order of `--help`.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Get started", &["run", "demo", "service", "fleet", "doctor", "help"]),
    (
        "Hand off",
        &["handoff", "handoffs", "retry", "cancel", "accept", "rework", "abandon", "publish", "read", "reopen"],
    ),
    ("Acknowledgements", &["ack", "clarify", "ack-override"]),
    ("Agents and personas", &["agents", "agent", "send", "lineage", "persona"]),
    ("Watch", &["status", "top", "serve", "errors"]),
    ("Work items", &["work", "rules"]),
    ("For agent CLIs, shells and programs", &["hooks", "hook", "statusline", "schema", "completions", "man"]),
];

/// The command line as clap knows it, with all subcommands.
#[must_use]
pub fn command() -> Command {
    let whole = with_chapters(with_names(fit_options(Cli::command())), "");
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

/// The commands that print nothing as JSON. They still take `--json`, for their errors.
const WITHOUT_JSON: [&str; 2] = ["top", "completions"];
/// The commands that look for a tmux server. All others take `--tmux` too, so that one line fits several commands: the
/// sidecar knows its server.
const WITH_TMUX: [&str; 3] = ["run", "doctor", "service install"];

/// Leaves options that every command takes out of the help of those for which they say nothing.
pub(super) fn fit_options(command: Command) -> Command {
    let command = shown(command, ("json", false), &WITHOUT_JSON);
    shown(command, ("tmux", true), &WITH_TMUX)
}

/// Shows an option of all commands in the help of these, or hides it there.
fn shown(command: Command, (id, is_shown): (&str, bool), paths: &[&str]) -> Command {
    let own = command.get_arguments().find(|arg| arg.get_id() == id).cloned();
    let Some(arg) = own.map(|arg| arg.hide(!is_shown)) else { return command };
    paths.iter().fold(command, |command, path| with_own(command, path, &arg))
}

/// Gives this option to the command of this path, such as `service install`.
fn with_own(command: Command, path: &str, arg: &Arg) -> Command {
    let (name, rest) = path.split_once(' ').unwrap_or((path, ""));
    if name.is_empty() { command.arg(arg) } else { command.mut_subcommand(name, |own| with_own(own, rest, arg)) }
}

/// The commands whose agents, handoffs, personas and errors may be on another host, as in `kai@box`.
const ON_HOSTS: [&str; 14] = [
    "abandon",
    "accept",
    "ack-override",
    "agent create",
    "agent shutdown",
    "cancel",
    "clarify",
    "errors dismiss",
    "handoff",
    "handoffs follow",
    "handoffs show",
    "lineage",
    "retry",
    "send",
];

/// Adds candidates for the shell to every argument that names something tasuki knows, such as `agent`. A shell asks the
/// program for them when it completes.
pub(crate) fn with_names(command: Command) -> Command {
    named_below(command, "")
}

fn named_below(command: Command, path: &str) -> Command {
    let command = command.mut_args(|arg| {
        let name = match arg.get_id().as_str() {
            "kind" if path == "schema" => "schema",
            name => name,
        };
        match completions::candidates(name, ON_HOSTS.contains(&path)) {
            Some(candidates) => arg.add(candidates),
            None => arg,
        }
    });
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let below = format!("{path} {name}");
        command.mut_subcommand(&name, |own| named_below(own, below.trim_start()))
    })
}

/// Names the chapter of the guide below the help of each command that has one.
fn with_chapters(command: Command, above: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|own| own.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = if above.is_empty() { name.clone() } else { format!("{above}-{name}") };
        command.mut_subcommand(&name, |own| with_chapter(with_chapters(own, &path), Chapter::of_command(&path)))
    })
}

fn with_chapter(command: Command, chapter: Option<&Chapter>) -> Command {
    let Some(chapter) = chapter else { return command };
    let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    command.after_help(format!("{before}Guide: tasuki help {}", chapter.topic))
}

#[cfg(test)]
mod tests {
    use super::super::guide::CHAPTERS;
    use super::*;
    use clap::FromArgMatches;

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
    fn a_command_that_prints_no_json_takes_the_option_without_naming_it() {
        let mut whole = command();
        whole.build();
        let mut help = |name: &str| whole.find_subcommand_mut(name).map(|own| own.render_help().to_string());
        assert!(help("agents").is_some_and(|text| text.contains("--json")));
        assert!(help("top").is_some_and(|text| text.contains("--home") && !text.contains("--json")));
        for line in ["tasuki top --json", "tasuki --json top"] {
            let found = command().try_get_matches_from(line.split(' ')).expect("a legal line");
            assert!(Cli::from_arg_matches(&found).expect("a legal line").everywhere.json, "{line}");
        }
        assert!(
            !Cli::from_arg_matches(&command().get_matches_from(["tasuki", "top"]))
                .expect("a legal line")
                .everywhere
                .json
        );
    }

    #[test]
    fn every_command_takes_a_tmux_server_at_any_place_and_shows_it_where_it_says_something() {
        let tmux = |line: &str| {
            let found =
                command().try_get_matches_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
            Cli::from_arg_matches(&found).expect("a legal line").tmux
        };
        for line in [
            "tasuki run --tmux s",
            "tasuki --tmux s run --home /h",
            "tasuki --home /h --tmux=s doctor",
            "tasuki doctor --tmux s",
            "tasuki --tmux s service install",
            "tasuki service --tmux s install --dry-run",
            "tasuki service install --tmux s",
            "tasuki --tmux s agents",
            "tasuki handoffs show 5f --tmux s",
        ] {
            assert_eq!(tmux(line).as_deref(), Some("s"), "{line}");
        }
        assert_eq!(tmux("tasuki --tmux a run --tmux b").as_deref(), Some("b"), "as with --home, the last one counts");
        assert_eq!((tmux("tasuki run"), tmux("tasuki service install")), (None, None));
        let mut whole = command();
        whole.build();
        let mut shows = |path: &str| {
            let own = path.split(' ').fold(&mut whole, |own, name| own.find_subcommand_mut(name).expect("a command"));
            own.render_help().to_string().contains("--tmux <SOCKET>")
        };
        assert!(WITH_TMUX.iter().all(|path| shows(path)) && !shows("agents") && !shows("service start"));
    }

    #[test]
    fn commands_that_offer_names_of_other_hosts_are_those_whose_help_mentions_them() {
        fn walk(command: &Command, path: &str, found: &mut Vec<String>) {
            let says_so = |arg: &clap::Arg| {
                let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
                completions::candidates(arg.get_id().as_str(), true).is_some() && help.contains("@b`")
            };
            if command.get_arguments().any(says_so) {
                found.push(path.to_owned());
            }
            for own in command.get_subcommands() {
                walk(own, format!("{path} {}", own.get_name()).trim_start(), found);
            }
        }
        let mut found = Vec::new();
        walk(&command(), "", &mut found);
        found.sort_unstable();
        assert_eq!(found, ON_HOSTS);
    }

    #[test]
    fn every_command_that_a_chapter_names_is_there() {
        let whole = command();
        let find = |name: &str| match (whole.find_subcommand(name), name.split_once('-')) {
            (None, Some((group, name))) => whole.find_subcommand(group)?.find_subcommand(name),
            (own, _) => own,
        };
        for (chapter, name) in CHAPTERS.iter().flat_map(|chapter| chapter.commands().map(move |name| (chapter, name))) {
            let own = find(name).unwrap_or_else(|| panic!("there is no command {name}"));
            let guide = format!("Guide: tasuki help {}", chapter.topic);
            assert!(own.get_after_help().is_some_and(|text| text.to_string().contains(&guide)), "{name}");
        }
    }

    #[test]
    fn every_chapter_names_the_commands_that_it_explains() {
        for chapter in &CHAPTERS {
            for name in chapter.commands() {
                // The chapter about the spool names request kinds such as `agent_send` instead of commands.
                let names =
                    [format!("tasuki {name}"), format!("tasuki {}", name.replace('-', " ")), format!("_{name}")];
                assert!(names.iter().any(|name| chapter.text.contains(name)), "{} and {name}", chapter.topic);
            }
        }
    }
}
