//! What a person sees who does not know the commands yet: help by groups, names at Tab, pages of the manual.

use super::cli::code;
use super::support::fake_sidecar::FakeHome;
use super::support::fleet_home::{home_in_fleet, host};
use super::support::said::{err, out};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The commands that `--help` lists, and the headings that they stand under.
pub(crate) fn listed(help: &str) -> (Vec<&str>, BTreeSet<&str>) {
    let (mut commands, mut headings, mut heading) = (Vec::new(), BTreeSet::new(), "");
    for line in help.lines() {
        if line.ends_with(':') && !line.starts_with(' ') {
            heading = line;
        } else if let Some(row) =
            line.strip_prefix("  ").filter(|row| row.starts_with(|c: char| c.is_ascii_lowercase()))
            && !heading.starts_with("Example")
        {
            commands.push(row.split_whitespace().next().unwrap_or_default());
            headings.insert(heading);
        }
    }
    (commands, headings)
}

#[test]
fn help_lists_each_command_once_by_what_it_is_about() {
    let home = FakeHome::new();
    let help = out(&home.run(&["--help"]));
    let (commands, headings) = listed(&help);
    let once: BTreeSet<&str> = commands.iter().copied().collect();
    assert_eq!(once.len(), commands.len(), "{help}");
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().display().to_string();
    assert_eq!(code(&home.run(&["man", "--dir", &dir])), 0);
    let pages = fs::read_dir(folder.path()).expect("pages");
    let names = pages.map(|page| page.expect("a page").file_name().to_string_lossy().into_owned());
    let all: BTreeSet<String> = names
        .filter_map(|name| Some(name.strip_prefix("tasuki-")?.strip_suffix(".1")?.split('-').next()?.to_owned()))
        .collect();
    let known: BTreeSet<String> = once.iter().map(|name| name.split('-').next().unwrap_or(name).to_owned()).collect();
    assert!(known.is_superset(&all), "without a group: {:?}", all.difference(&known).collect::<Vec<_>>());
    assert!((4..=9).contains(&headings.len()), "{headings:?}");
    assert!(help.contains("--home <DIR>") && help.contains("Exit codes"), "{help}");
    // A command's own options come first, those of every command apart from them.
    let own = out(&home.run(&["work", "complete", "--help"]));
    let (first, second) = own.split_once("Global options:").unwrap_or_else(|| panic!("{own}"));
    assert!(first.contains("--output") && !first.contains("--home"), "{own}");
    assert!(second.contains("--home") && second.contains("--timeout"), "{own}");
}

#[test]
fn readme_help_and_manual_name_the_same_exit_codes() {
    let home = FakeHome::new();
    let codes = |text: &str, pattern: &str| -> Vec<String> {
        let found = Regex::new(pattern).expect("a pattern");
        found.captures_iter(text).map(|code| code[1].to_owned()).collect()
    };
    let (help, manual) = (out(&home.run(&["--help"])), out(&home.run(&["man"])));
    let after = |text: &str, heading: &str| text.split_once(heading).unwrap_or_else(|| panic!("{text}")).1.to_owned();
    let table = after(&super::support::readme::readme(), "| exit code | meaning |");
    let of_readme = codes(table.split("\n\n").next().unwrap_or_default(), r"(?m)^\| (\d+) \|");
    let status = after(&manual, "EXIT STATUS");
    assert!(of_readme.len() > 8, "{of_readme:?}");
    assert_eq!(codes(&after(&help, "Exit codes:"), r"(?:^|,)\s(\d+) "), of_readme, "{help}");
    assert_eq!(codes(status.split(".SH").next().unwrap_or_default(), r"(?m)^\\fB(\d+)\\fR$"), of_readme, "{status}");
}

#[test]
fn the_guide_is_shown_by_chapters() {
    let home = FakeHome::new();
    let list = out(&home.run(&["help"]));
    let json: Value = serde_json::from_str(&out(&home.run(&["help", "--json"]))).expect("JSON");
    let topics: Vec<&str> =
        json["topics"].as_array().expect("a list").iter().filter_map(|one| one["topic"].as_str()).collect();
    assert!(topics.len() > 15 && topics.iter().all(|topic| list.contains(&format!("  {topic}  "))), "{list}");
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("data/guide")).expect("the chapters");
    assert_eq!(files.count(), topics.len(), "each file of data/guide is a chapter");
    for topic in &topics {
        let text = out(&home.run(&["help", topic]));
        let title = json["topics"].as_array().expect("a list").iter().find(|one| one["topic"] == *topic);
        let title = title.and_then(|one| one["title"].as_str()).expect("a title").to_uppercase();
        assert!(text.starts_with(&title) && !text.contains("```") && !text.contains("]("), "{topic}: {text}");
    }
    let whole: Value = serde_json::from_str(&out(&home.run(&["help", "spool", "--json"]))).expect("JSON");
    assert!(whole["text"].as_str().is_some_and(|text| text.starts_with("# ")), "{whole}");
    // As before there was a guide: the help of a command, and of a command of a command.
    assert!(out(&home.run(&["help", "agent", "create"])).contains("tasuki agent create"));
    assert!(out(&home.run(&["work", "complete", "--help"])).contains("Guide: tasuki help work-items"));
    let wrong = home.run(&["help", "nonsense"]);
    assert_eq!(code(&wrong), 2);
    assert!(err(&wrong).contains("nonsense") && err(&wrong).contains("work-items"), "{}", err(&wrong));
}

#[test]
fn what_is_wrong_with_a_line_is_said_by_tasuki() {
    let home = FakeHome::new();
    let said = err(&home.run(&["nonsense"]));
    assert!(said.starts_with("tasuki: unrecognized"), "{said}");
}

/// What bash would offer for a line whose last word is being typed.
fn offered(home: &FakeHome, line: &[&str]) -> Vec<String> {
    let script = r#"
        PATH="$1:$PATH"; shift
        eval "$(tasuki completions bash)"
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9; COMP_LINE="$*"; COMP_LINE=${COMP_LINE// @/@}; COMP_LINE=${COMP_LINE//@ /@}; COMP_POINT=${#COMP_LINE}
        found=$(complete -p tasuki | sed 's/.*-F \([^ ]*\).*/\1/')
        current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
        # bash makes a word of its own of each "@", and replaces what begins there.
        [ "$before" = @ ] && current=@$current
        "$found" tasuki "$current" "$before"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let bin = Path::new(env!("CARGO_BIN_EXE_tasuki")).parent().expect("a folder");
    let mut command = Command::new("bash");
    command.args(["--norc", "-c", script, "bash"]).arg(bin).args(line);
    let output = command.env("TASUKI_HOME", home.path()).output().expect("bash runs");
    assert!(output.stderr.is_empty(), "{}", err(&output));
    out(&output).lines().map(|word| word.trim_end().to_owned()).collect()
}

#[test]
fn a_shell_offers_what_there_is() {
    let home = FakeHome::new();
    home.beat(0);
    let (kai, mia) = ("11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb");
    let write = |below: &str, value: &Value| {
        let path = home.path().join(below);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, value.to_string()).expect("written");
    };
    write(
        &format!("view/agents/{kai}.json"),
        &json!({"agent_id": kai, "persona_slug": "kai", "state": "idle", "pane": "%1"}),
    );
    write(
        &format!("view/agents/{mia}.json"),
        &json!({"agent_id": mia, "persona_slug": "mia", "state": "ended", "ended_at": "2026-01-01T00:00:00.000Z"}),
    );
    let handoff = "33333333-cccc-4ccc-8ccc-cccccccccccc";
    let steps = json!([{"step": "waiting", "entered_at": "2026-01-01T00:00:00.000Z", "left_at": null}]);
    write(
        &format!("view/handoffs/{handoff}.json"),
        &json!({"handoff_id": handoff, "agent_id": kai, "persona_slug": "kai", "step": "failed", "steps": steps, "reason": "r"}),
    );
    for slug in ["kai", "zoe"] {
        let folder = home.path().join("data/personas").join(slug);
        fs::create_dir_all(&folder).expect("a persona");
        fs::write(folder.join("skill.md"), "x").expect("a skill");
    }
    let has = |line: &[&str], word: &str| {
        let words = offered(&home, line);
        assert!(words.iter().any(|offered| offered == word), "{line:?} offers {words:?}, not {word}");
        words
    };
    let agents = has(&["tasuki", "handoff", ""], "kai");
    assert!(!agents.iter().any(|word| word == "mia"), "it has ended: {agents:?}");
    has(&["tasuki", "send", "k"], "kai");
    has(&["tasuki", "retry", ""], &handoff[..8]);
    has(&["tasuki", "handoffs", "show", "33"], &handoff[..8]);
    has(&["tasuki", "agent", "create", ""], "zoe");
    has(&["tasuki", "persona", "new", "x", "--profile", ""], "codex");
    has(&["tasuki", "hooks", "install", "cl"], "claude");
    has(&["tasuki", "schema", "handoff_v"], "handoff_view");
    has(&["tasuki", "handoffs", ""], "show");
}

#[test]
fn a_shell_offers_what_other_hosts_have() {
    let home = home_in_fleet();
    let (kai, mia) = ("11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa", "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb");
    home.agent(kai, Some("kai"), None, "idle");
    let told = json!({
        "agents": [{"agent_id": mia, "persona": "mia", "state": "busy"}],
        "handoffs": [{"handoff_id": mia, "persona": "mia", "step": "failed"}],
        "errors": [{"error_id": kai, "code": "document_missing"}],
        "personas": [{"slug": "zoe"}, {"slug": "$(id)"}],
    });
    host(&home, "box", &told);
    // This host's own agents are offered by their names alone.
    host(&home, "desk", &json!({"agents": [{"agent_id": kai, "persona": "kai", "state": "idle"}]}));
    host(&home, "liar", &json!({"authentic": false, "agents": [{"agent_id": mia, "persona": "mib"}]}));
    fs::write(home.path().join("fleet/hosts/torn.json"), "{").expect("written");
    let offered = |home: &FakeHome, line: &[&str]| -> Vec<String> {
        offered(home, line).into_iter().filter(|word| !word.starts_with("--")).collect()
    };
    assert_eq!(offered(&home, &["tasuki", "send", ""]), ["kai", "mia@box"]);
    assert_eq!(offered(&home, &["tasuki", "lineage", "m"]), ["mia@box"]);
    assert_eq!(offered(&home, &["tasuki", "retry", ""]), ["22222222@box"]);
    assert_eq!(offered(&home, &["tasuki", "errors", "dismiss", "11"]), ["11111111@box"]);
    assert_eq!(offered(&home, &["tasuki", "agent", "create", ""]), ["zoe@box"]);
    // Commands that ask no other host.
    assert!(!offered(&home, &["tasuki", "agent", "forget", ""]).contains(&"mia@box".to_owned()));
    assert_eq!(offered(&home, &["tasuki", "send", "mia", "@", "b"]), ["@box"]);
    assert_eq!(offered(&home, &["tasuki", "send", "mia", "@"]), ["@box"]);
    assert_eq!(offered(&home, &["tasuki", "send", "mia", "@", "x"]), [""]);
    fs::remove_file(home.path().join("fleet/host.json")).expect("removed");
    assert_eq!(offered(&home, &["tasuki", "send", ""]), ["kai"], "this home is in no fleet");
}

/// The pages of ours that a page names, as files.
fn pages_named(text: &str) -> BTreeSet<String> {
    let name = Regex::new(r"tasuki((?:\\-[a-z\\-]+)?)(?:\\f[A-Z])?\(([1-8])\)").expect("an expression");
    name.captures_iter(text).map(|found| format!("tasuki{}.{}", found[1].replace('\\', ""), &found[2])).collect()
}

#[test]
fn the_manual_is_whole() {
    let (home, folder) = (FakeHome::new(), tempfile::tempdir().expect("a folder"));
    assert_eq!(code(&home.run(&["man", "--dir", &folder.path().display().to_string()])), 0);
    let page =
        |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let top = page("tasuki.1");
    for part in [
        ".SH FILES",
        "config.toml",
        "spool/requests",
        ".SH ENVIRONMENT",
        "TASUKI_HOME",
        ".SH \"EXIT STATUS\"",
        "tasuki\\-handoff(1)",
    ] {
        assert!(top.contains(part), "{part} is not in {top}");
    }
    let send = page("tasuki-send.1");
    assert!(send.contains("<AGENT> <TEXT>"), "{send}");
    for entry in fs::read_dir(folder.path()).expect("pages") {
        let name = entry.expect("a page").file_name().to_string_lossy().into_owned();
        let text = page(&name);
        // The page of `tasuki fleet` is in the package of that program.
        for named in pages_named(&text).into_iter().filter(|named| named != "tasuki-fleet.1") {
            assert!(folder.path().join(&named).exists(), "{name} names {named}, which is not made");
        }
        // Examples stand as they were written, a line for a line.
        assert!(!name.ends_with(".1") || text.contains(".SH EXAMPLES\n.nf\n"), "{name}: {text}");
    }
    let guide = page("tasuki-work-items.7");
    assert!(guide.contains("tasuki\\-work\\-items \\- Work items") && guide.contains(".SH DESCRIPTION"), "{guide}");
    assert!(pages_named(&top).contains("tasuki-spool.7") && pages_named(&send).contains("tasuki-spool.7"), "{send}");
    let config = page("tasuki-config.5");
    assert!(config.contains("suggest_at") && config.contains(".nf"), "{config}");
}

#[test]
fn a_home_that_would_depend_on_the_present_folder_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    for (name, value) in [("HOME", "here"), ("TASUKI_HOME", "here"), ("TASUKI_HOME", "./here")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.args(["persona", "new", "kai"]).current_dir(dir.path());
        for name in ["TASUKI_HOME", "XDG_DATA_HOME"] {
            command.env_remove(name);
        }
        let output = command.env(name, value).output().expect("it runs");
        assert_eq!(output.status.code(), Some(78), "{}", err(&output));
        assert!(err(&output).contains(name) && err(&output).contains("here"), "{}", err(&output));
        assert!(!dir.path().join("here").exists(), "something was made below the present folder");
    }
}
