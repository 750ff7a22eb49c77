//! Profiles of agent CLIs: what the guide and the schema say of them is true of the built-in ones and of any other.

use super::support::readme::blocks;
use super::support::schema::faults;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use tasuki::agents::reset_time::ReadingTime;
use tasuki::agents::{Profile, ToolKind, read_facts};
use tasuki::contract::LimitKind;

/// The guide's profile, what else may stand in one, how limits show, and how tool calls are read.
fn shown() -> [String; 4] {
    blocks("profiles", "toml").try_into().expect("four blocks")
}

#[test]
fn the_guides_profile_holds_to_the_schema_and_so_do_the_built_in_ones() {
    let schemas = tasuki::cli::schema::all();
    let schema = &schemas.iter().find(|format| format.name == "profile").expect("a schema").schema;
    let built_in = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/profiles");
    let mut texts: Vec<String> = fs::read_dir(built_in)
        .expect("a folder")
        .map(|entry| fs::read_to_string(entry.expect("an entry").path()).expect("readable"))
        .collect();
    texts.push(shown()[0].clone());
    for text in texts {
        let value: toml::Value = toml::from_str(&text).expect("TOML");
        let value = serde_json::to_value(value).expect("JSON");
        let faults = faults(schema, &value);
        assert!(faults.is_empty(), "{faults:#?}\n{text}");
    }
}

/// Lays one table over another, table by table.
fn lay(over: toml::Table, base: &mut toml::Table) {
    for (key, value) in over {
        match (value, base.get_mut(&key)) {
            (toml::Value::Table(over), Some(toml::Value::Table(base))) => lay(over, base),
            (value, _) => drop(base.insert(key, value)),
        }
    }
}

#[test]
fn each_key_that_other_clis_need_can_be_put_into_the_guides_profile() {
    let [base, all, limits, tools] = shown();
    let mut more: toml::Table = toml::from_str(&all).expect("TOML");
    lay(toml::from_str(&tools).expect("TOML"), &mut more);
    lay(toml::from_str(&limits).expect("TOML"), &mut more);
    let base: toml::Table = toml::from_str(&base).expect("TOML");
    for key in ["lazy", "scrolled", "ghost_texts", "collapsed", "transcript_path", "{home}", "(?<size>"] {
        assert!(all.contains(key), "{key} is not shown");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let tried = |over: toml::Table| {
        let mut whole = base.clone();
        lay(over, &mut whole);
        fs::write(dir.path().join("wren.toml"), toml::to_string(&whole).expect("TOML")).expect("written");
        let read = tasuki::agents::Profiles::load(Some(dir.path()));
        read.unwrap_or_else(|error| panic!("{error}\n{whole:#?}")).get("wren").expect("there").clone()
    };
    // Each section alone, because the guide says to take those that a CLI needs, and all together.
    for (section, value) in more.clone() {
        tried(toml::Table::from_iter([(section, value)]));
    }
    let whole = tried(more);
    assert!(whole.file.transcript.is_some() && whole.file.version.is_some());
    assert!(whole.file.new_session.as_ref().is_some_and(|section| section.lazy));
    assert_eq!(whole.resume_command("c1").as_deref(), Some("wren --conversation c1"));
    let clock = ReadingTime { now_ms: 1_795_613_040_000, is_utc: true };
    let limit = whole.limit_in_event("No songs left, try again in 2 hours", &clock).expect("a limit");
    assert_eq!((limit.kind, limit.until_ms), (LimitKind::UsageLimit, Some(clock.now_ms + 7_200_000)));
    calls_are_read(&whole);
}

/// The rules that the guide shows read the lines that it shows.
fn calls_are_read(wren: &Profile) {
    let lines = blocks("profiles", "").into_iter().find(|block| block.contains("tool.done")).expect("two lines");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(lines.as_bytes()).expect("written");
    let calls = read_facts(wren, file.path()).expect("read").calls.expect("rules");
    let [call] = calls.try_into().expect("one call");
    assert_eq!((call.kind, call.target.as_str(), call.exit), (ToolKind::Command, "make test", Some(2)));
    assert_eq!((call.printed.as_deref(), call.failed), (Some("2 tests failed"), Some(true)));
    assert_eq!(call.at.as_deref(), Some("2026-11-22T02:18:07.000Z"));
}

#[test]
fn every_key_of_the_profile_is_described() {
    let schemas = tasuki::cli::schema::all();
    let schema = &schemas.iter().find(|format| format.name == "profile").expect("a schema").schema;
    let mut mute = Vec::new();
    look(schema, "", &mut mute);
    assert!(mute.is_empty(), "{mute:?}");
}

/// The properties below a schema that have no description.
fn look(schema: &Value, at: &str, mute: &mut Vec<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if !property["description"].is_string() && property.get("$ref").is_none() {
            mute.push(format!("{at}/{name}"));
        }
    }
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        look(definition, name, mute);
    }
}
