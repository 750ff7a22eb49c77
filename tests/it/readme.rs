//! The README and the guide are true in what can be read off: its tables and pictures show all that there is, and each
//! of its recipes is run by some test.

use super::support::{readme, tally};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tasuki::core::rows::handoff::Step;

/// The README and every chapter of the guide, each with its path below the root.
fn documents() -> Vec<(String, String)> {
    let chapters = fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/guide")).expect("the guide");
    let chapter = |name: String| (format!("data/guide/{name}"), readme::chapter(name.trim_end_matches(".md")));
    let names = chapters.map(|entry| entry.expect("a chapter").file_name().to_string_lossy().into_owned());
    let mut all: Vec<(String, String)> = names.map(chapter).collect();
    all.push(("README.md".to_owned(), readme::readme()));
    all.sort();
    all
}

/// The README and the guide in one text.
pub(crate) fn text() -> String {
    documents().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")
}

/// What a dashboard's author may not see for months: the journal is renamed while it is read.
const ROTATION: &str = r#"
import itertools, tempfile, threading

folder = tempfile.TemporaryDirectory()
SPOOL = pathlib.Path(folder.name)
LAST = 3000


def write():
    first, file = 1, open(SPOOL / "journal.jsonl", "w")
    for seq in range(1, LAST + 1):
        line = json.dumps({"seq": seq, "type": "handoff.step"})
        file.write(line[:9])
        file.flush()
        file.write(line[9:] + "\n")
        file.flush()
        if seq % 100 == 0:
            file.close()
            os.rename(SPOOL / "journal.jsonl", SPOOL / f"journal-{first}.jsonl")
            first, file = seq + 1, open(SPOOL / "journal.jsonl", "w")


writer = threading.Thread(target=write)
writer.start()
got = [event["seq"] for event in itertools.islice(journal(0, 30), LAST)]
writer.join()
assert got == list(range(1, LAST + 1)), got
later = [event["seq"] for event in itertools.islice(journal(1250, 30), LAST - 1250)]
assert later == list(range(1251, LAST + 1)), later
assert list(journal(LAST, 0.2)) == []
print("every line once, in order")
"#;

#[test]
fn the_recipe_reads_every_line_of_a_journal_that_is_renamed_meanwhile() {
    if !readme::has_python() {
        tally::skip("there is no python3 to run the guide's recipe");
        return;
    }
    let recipe = readme::blocks("spool", "python").remove(0);
    let functions = recipe.split("\nagents = ").next().expect("it begins with functions").to_owned();
    let program = format!("{functions}\n{ROTATION}");
    let mut command = Command::new("python3");
    let output = command.args(["-c", &program]).env("TASUKI_HOME", "/nowhere").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output.stdout.starts_with(b"every line once"), "{said}");
}

#[test]
fn the_picture_shows_the_steps_that_there_are() {
    let picture = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/pictures/flow.svg"));
    let picture = picture.expect("a picture");
    assert!(readme::readme().contains("(packaging/pictures/flow.svg)"));
    let shown: Vec<&str> = picture
        .lines()
        .filter_map(|line| line.trim().strip_prefix("<text class=\"word\"")?.split(['<', '>']).nth(1))
        .filter(|word| !word.contains(' '))
        .collect();
    // An acknowledgement is asked for only where a handoff is urgent.
    let flow: Vec<&str> = Step::ALL
        .iter()
        .filter(|step| !step.is_end() && **step != Step::Acknowledging)
        .map(|step| step.as_str())
        .collect();
    assert_eq!(shown, [flow, vec!["done"]].concat());
}

#[test]
fn the_table_of_keys_names_every_key_of_the_configuration() {
    let section = readme::chapter("configuration");
    let schema = Value::from(tasuki::config::schema());
    for (table, about) in schema["properties"].as_object().expect("tables") {
        let name = about["$ref"].as_str().map(|name| name.trim_start_matches('#'));
        let keys = name.and_then(|pointer| schema.pointer(pointer)).unwrap_or(about)["properties"].clone();
        let keys = keys.as_object().unwrap_or_else(|| panic!("{table}: {about}")).clone();
        for key in keys.keys() {
            assert!(section.contains(&format!("`{table}.{key}`")), "{table}.{key}");
        }
    }
}

#[test]
fn the_table_of_keys_of_top_is_its_own_help() {
    let text = readme::chapter("screen");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows: Vec<(&str, &str)> = rows.filter_map(|row| row.split_once(" | ")).skip(1).collect();
    assert_eq!(rows, tasuki::cli::top::keys::KEYS);
    let picture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/pictures/handoff.svg");
    let picture = fs::read_to_string(picture).expect("scripts/pictures has made it");
    for part in ["tasuki handoff lea", "waiting", "writing", "done", "lineage"] {
        assert!(picture.contains(part), "the recording shows no {part}: run scripts/pictures");
    }
    let picture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/pictures/top.svg");
    let picture = fs::read_to_string(picture).expect("scripts/pictures has made it");
    for part in ["tasuki", "[1 Agents 4]", "hands off: writing", "document_missing", "? help"] {
        assert!(picture.contains(part), "the picture shows no {part}: run scripts/pictures");
    }
}

#[test]
fn the_tables_of_commands_and_kinds_are_whole() {
    let text = readme::chapter("spool");
    for kind in tasuki::core::request::KINDS {
        assert!(text.contains(&format!("`{kind}`")), "{kind}");
    }
    let out = Command::new(env!("CARGO_BIN_EXE_tasuki")).arg("--help").output().expect("the program runs");
    let help = String::from_utf8_lossy(&out.stdout).into_owned();
    let (commands, _) = crate::cli_help::listed(&help);
    let text = readme::readme();
    assert!(commands.len() > 25, "{help}");
    for command in commands {
        let named = ["`", "`tasuki "].iter().any(|start| text.contains(&format!("{start}{command}")));
        assert!(named, "{command} is in no table");
    }
}

/// Recipes that `as_installed` can't type, each with what it takes.
const ELSEWHERE: [(&str, &str); 11] = [
    ("scripts/demo", "builds the program"),
    ("cargo install", "builds the program"),
    ("tasuki run", "typed with the server's name"),
    ("tasuki persona new mia", "needs Claude Code"),
    ("tasuki agent create mia", "needs Claude Code"),
    ("tasuki handoff mia", "needs Claude Code"),
    ("tasuki hooks install claude\ntasuki persona new lea", "needs Claude Code"),
    ("server=", "`first_use` types it at a server with a port of its own"),
    ("tasuki service install", "would install a service"),
    ("#!/bin/sh\n# Sends a notice", "`guide_notices` runs it against a server of its own"),
    ("tasuki hooks show wren", "`stranger` plays it"),
];

#[test]
fn every_recipe_of_the_readme_and_the_guide_is_typed_somewhere() {
    let text = text();
    // What `as_installed` types.
    let typed = [
        "tasuki persona new kai",
        "# ask ID JSON",
        "tasuki work create",
        "tasuki hooks install claude --dry-run",
        "(umask 077",
    ];
    let mut elsewhere = ELSEWHERE.map(|(begins, _)| begins).to_vec();
    for block in text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        if typed.iter().any(|begins| block.starts_with(begins)) {
            continue;
        }
        let at = elsewhere.iter().position(|begins| block.starts_with(begins));
        let at = at.unwrap_or_else(|| panic!("nobody types this:\n{block}"));
        elsewhere.remove(at);
    }
    assert!(elsewhere.is_empty(), "there is no such recipe any more: {elsewhere:?}");
}

/// A newcomer reads it in one go.
#[test]
fn the_readme_is_short() {
    let lines = readme::readme().lines().count();
    assert!(lines <= 300, "{lines} lines: what not every newcomer needs belongs into the guide");
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut documents = documents();
    for name in [".github/CONTRIBUTING.md", "CHANGELOG.md"] {
        documents.push((name.to_owned(), fs::read_to_string(root.join(name)).expect("a document")));
    }
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").expect("an expression");
    let mut wrong = Vec::new();
    for (name, text) in &documents {
        for found in link.captures_iter(text).filter(|found| !found[1].starts_with("http")) {
            let (file, anchor) = found[1].split_once('#').unwrap_or((&found[1], ""));
            let folder = root.join(name).parent().expect("a folder").to_owned();
            let path = if file.is_empty() { root.join(name) } else { folder.join(file) };
            let is_there = path.exists()
                && (anchor.is_empty()
                    || anchors(&fs::read_to_string(&path).unwrap_or_default()).contains(&anchor.to_owned()));
            if !is_there {
                wrong.push(format!("{name}: {}", &found[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The names by which the headings of a document can be linked.
fn anchors(text: &str) -> Vec<String> {
    let heading = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
    };
    text.lines().filter(|line| line.starts_with('#')).map(heading).collect()
}
