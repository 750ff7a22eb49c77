//! What the command line takes, and what it refuses.

use super::*;
use crate::cli::handoff_words::{AuthorArg, CheckArg, UrgencyArg};
use clap::CommandFactory;

fn parse(line: &str) -> Result<Cli, clap::error::ErrorKind> {
    Cli::try_parse_from(line.split_whitespace()).map_err(|error| error.kind())
}

#[test]
fn the_commands_hold_together() {
    Cli::command().debug_assert();
}

#[test]
fn each_command_works_with_a_home_or_is_known_to_need_none() {
    let without = ["completions", "demo", "help", "hook", "man", "schema", "statusline"];
    let all = Cli::command();
    let mut known: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
    known.retain(|name| !without.contains(name));
    known.sort_unstable();
    assert_eq!(known, home_option::COMMANDS);
}

/// Agents write lists: `--understanding "- fix the test"`.
#[test]
fn a_text_may_begin_with_a_hyphen_but_not_be_an_option() {
    let texts = [
        ["handoff", "--reason"],
        ["handoff", "--focus"],
        ["handoff", "--task"],
        ["rework 5f", "--note"],
        ["ack --starting-from x", "--understanding"],
        ["ack --understanding x", "--starting-from"],
        ["ack --understanding x --starting-from x", "--question"],
        ["clarify 5f", "--answer"],
        ["ack-override 5f", "--reason"],
        ["work escalate 5f", "--reason"],
    ];
    for [command, option] in texts {
        let parse = |text: &str| {
            let words = std::iter::once("tasuki").chain(command.split(' ')).chain([option, text]);
            Cli::try_parse_from(words).map_err(|error| error.to_string())
        };
        for text in ["- the flaky test", "-x", "--", "-- a rule", "--fast is slow"] {
            assert!(parse(text).is_ok(), "{command} {option} {text:?}: {:?}", parse(text).err());
        }
        let error = parse("--wait").expect_err("the text was forgotten");
        assert!(error.contains("looks like an option"), "{error}");
    }
}

#[test]
fn a_handoff_takes_all_its_options() {
    let line = "tasuki handoff kai --reason r --author agent_file --successor same-pane --urgency when-available --task a --task b --now --wait --json";
    let cli = parse(line).expect("a legal line");
    let Command::Handoff(args) = cli.command else { panic!("not a handoff") };
    assert!(cli.everywhere.json && args.now && args.wait);
    assert_eq!(args.tasks, ["a", "b"]);
    assert_eq!((args.author, args.urgency), (Some(AuthorArg::AgentFile), Some(UrgencyArg::WhenAvailable)));
}

#[test]
fn a_provided_document_must_be_given() {
    assert!(parse("tasuki handoff kai --author provided").is_err());
    assert!(parse("tasuki handoff kai --author provided --document a.md").is_ok());
}

#[test]
fn a_check_is_one_of_four_and_a_rework_has_a_note() {
    let cli = parse("tasuki handoff kai --check hold --review").expect("a legal line");
    let Command::Handoff(args) = cli.command else { panic!("not a handoff") };
    assert_eq!((args.check, args.review), (Some(CheckArg::Hold), true));
    assert!(parse("tasuki rework 5f --note x --wait").is_ok());
    for wrong in ["tasuki handoff kai --check maybe", "tasuki rework 5f", "tasuki handoffs show 5f --document --facts"]
    {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn global_options_stand_before_or_after() {
    for line in ["tasuki --home /h agents", "tasuki agents --home /h"] {
        assert_eq!(parse(line).expect("a legal line").everywhere.home, Some(PathBuf::from("/h")), "{line}");
    }
    let cli = parse("tasuki send kai hello --timeout 2m").expect("a legal line");
    assert_eq!(cli.everywhere.timeout, Some(Duration::from_secs(120)));
}

#[test]
fn mistakes_are_refused() {
    for line in [
        "tasuki persona new Kai",
        "tasuki persona new ../kai",
        "tasuki errors dismiss",
        "tasuki errors dismiss 5f --all",
        "tasuki retry 5f --assume maybe",
        "tasuki handoff kai --urgency soon",
        "tasuki send kai",
        "tasuki agents --timeout soon",
        "tasuki nonsense",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
}

#[test]
fn lists_take_a_subcommand_or_options() {
    assert!(parse("tasuki handoffs").is_ok());
    assert!(parse("tasuki handoffs show 5f").is_ok());
    assert!(parse("tasuki handoffs --limit 3").is_ok());
    assert!(parse("tasuki errors").is_ok());
}
