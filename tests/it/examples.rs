//! Examples are true: every command line that the help texts, the README and the guide show is one, every file that
//! they show is as its schema says, and the schemas that lie in the repository are those that the program prints.

use super::readme;
use super::support::schema::{faults, of};
use clap::{CommandFactory, Parser};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tasuki::cli::args::Cli;
use tasuki::cli::schema;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The words of a shell's command line, up to where it goes on with something else; none where a quotation does not
/// end.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | ';' | '#') if word.is_none() => break,
            (None, ' ') => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// A line of ours somewhere in a shell's line, read as the program reads it.
fn read(line: &str) -> Result<Vec<String>, String> {
    let at = line.match_indices("tasuki ").map(|(at, _)| at).find(|at| *at == 0 || line[..*at].ends_with(' '));
    let line = &line[at.ok_or("it calls nothing of ours")?..];
    let words = words(line).ok_or("a quotation does not end")?;
    Cli::try_parse_from(&words).map_err(|error| error.to_string())?;
    Ok(words)
}

/// The lines of the first paragraph after "Example:", less what is said of them behind two blanks.
fn examples(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Example:").skip(1).take_while(|line| !line.is_empty());
    lines.map(|line| line.trim().split("   ").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_command_shows_an_example_of_itself_that_can_be_run() {
    fn walk(command: &clap::Command, path: &[&str], wrong: &mut Vec<String>) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = examples(&help);
        if examples.is_empty() {
            wrong.push(format!("{} has no example", path.join(" ")));
        }
        for example in examples {
            match read(&example) {
                Ok(words) if words.iter().zip(path).all(|(word, name)| word == name) => {}
                Ok(_) => wrong.push(format!("{}: `{example}` is of another command", path.join(" "))),
                Err(error) => wrong.push(format!("{}: `{example}`: {error}", path.join(" "))),
            }
        }
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            walk(sub, &[path, &[sub.get_name()]].concat(), wrong);
        }
    }
    let mut wrong = Vec::new();
    walk(&Cli::command(), &["tasuki"], &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_line_of_the_documents_can_be_run() {
    let text = readme::text();
    let mut tried = 0;
    for block in text.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for line in block.lines().filter(|line| line.starts_with("tasuki ")) {
            assert!(read(line).is_ok(), "{line}: {:?}", read(line));
            tried += 1;
        }
    }
    assert!(tried > 20, "only {tried} lines were found");
}

/// Every JSON object in a text that says which version of our formats it is.
fn versioned(text: &str) -> Vec<Value> {
    // Where a shell puts a variable's value in.
    let text = text.replace("'\"$agent\"'", "an-agent");
    let starts = text.match_indices("{\"v\":1").map(|(at, _)| at).collect::<Vec<_>>();
    let read = |at: usize| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let shown: String = text[at..].chars().take(80).collect();
        values.next().unwrap_or_else(|| panic!("nothing at {shown}")).unwrap_or_else(|error| panic!("{shown}: {error}"))
    };
    starts.into_iter().map(read).collect()
}

#[test]
fn every_file_that_the_documents_show_is_as_its_schema_says() {
    let others = ["packaging/README.md", "CHANGELOG.md", ".github/CONTRIBUTING.md"];
    let others = others.map(|name| fs::read_to_string(root().join(name)).expect("a document"));
    let shown: Vec<Value> = others.iter().chain([&readme::text()]).flat_map(|text| versioned(text)).collect();
    assert!(shown.len() >= 4, "only {} were found", shown.len());
    for value in shown {
        let format = match (value.get("status"), value.get("event"), value["kind"].as_str()) {
            (Some(_), _, _) => "result".to_owned(),
            (None, Some(_), _) => "event".to_owned(),
            (None, None, kind) => kind.unwrap_or_else(|| panic!("of which format is {value}?")).to_owned(),
        };
        let faults = faults(&of(&format), &value);
        assert!(faults.is_empty(), "{format}: {value}: {faults:#?}");
    }
    let text = readme::text();
    let blocks: Vec<&str> = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "rules and a profile are shown");
    // A piece of a profile is held by `stranger`, where it is laid over the whole one.
    for block in blocks.into_iter().filter(|block| !block.contains("[[transcript.") && !block.contains("[[limits.")) {
        let value: Value = toml::from_str(block).unwrap_or_else(|error| panic!("{block}: {error}"));
        let names = ["rules", "profile", "persona", "config"];
        let best =
            names.map(|name| (faults(&of(name), &value), name)).into_iter().min_by_key(|(faults, _)| faults.len());
        let (faults, name) = best.expect("there are names");
        assert!(faults.is_empty(), "{name}: {faults:#?}\n{block}");
    }
}

#[test]
fn the_schemas_in_the_repository_are_those_that_the_program_prints() {
    let folder = root().join("packaging/schemas");
    let all = schema::all();
    if std::env::var_os("TASUKI_WRITE_SCHEMAS").is_some() {
        write_schemas(&folder, &all);
    }
    let there: BTreeSet<String> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    let named: BTreeSet<String> = all.iter().map(|format| format!("{}.json", format.name)).collect();
    assert_eq!(there, named, "run this test once with TASUKI_WRITE_SCHEMAS=1, and look at what it changes");
    for format in all {
        let file = fs::read(folder.join(format!("{}.json", format.name))).expect("readable");
        let file: Value = serde_json::from_slice(&file).expect("JSON");
        assert!(
            file == format.schema,
            "packaging/schemas/{}.json is not what `tasuki schema` prints: run this test once with TASUKI_WRITE_SCHEMAS=1",
            format.name
        );
    }
}

/// As a person reads them best; the program's own output is for programs.
fn write_schemas(folder: &Path, all: &[schema::Format]) {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("made");
    for format in all {
        let text = serde_json::to_string_pretty(&format.schema).expect("JSON");
        fs::write(folder.join(format!("{}.json", format.name)), format!("{text}\n")).expect("written");
    }
}
