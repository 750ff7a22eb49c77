//! `work import` and `work export`: move items from and to other programs.

use super::args::{ExportArgs, ImportArgs};
use super::read;
use crate::cli::error::CliError;
use crate::cli::view::ViewFile;
use crate::cli::{ANSWER_SOON, CliSession};
use crate::contract::WorkBrief;
use crate::contract::reply::ImportReply;
use crate::core::id::ItemId;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// The longest line, in bytes: what one request can carry.
const MAX_LINE: u64 = 1 << 20;
const MAX_LINES: usize = 100_000;
/// Most bytes and items that go into one request.
const MOST_BYTES: usize = 700 * 1024;
const MOST_ITEMS: usize = 1_000;

/// One line of the file: its number, the item's id here, its parent's id, and its fields.
struct Entry {
    line: usize,
    id: String,
    parent: Option<String>,
    item: Map<String, Value>,
}

pub(super) fn import(session: &CliSession, args: &ImportArgs) -> Result<(), CliError> {
    let mut entries = if args.file.as_os_str() == "-" {
        entries(std::io::stdin().lock())?
    } else {
        let opened = File::open(&args.file).map_err(|error| CliError::file("Can't read", &args.file, &error))?;
        entries(BufReader::new(opened))?
    };
    let before = entries.len();
    if args.skip_known {
        entries.retain(|entry| !session.home.work_views().join(format!("{}.json", entry.id)).exists());
    }
    let left_out = before - entries.len();
    let mut ids = Vec::new();
    for batch in batches(in_order(entries)?) {
        let fields = Map::from_iter([("items".to_owned(), Value::Array(batch))]);
        let answer = session.ask("work_import", fields, ANSWER_SOON);
        let answer: ViewFile<ImportReply> = answer.map_err(|error| so_far(error, ids.len()))?;
        ids.extend(answer.item_ids.iter().cloned());
    }
    let mut line = format!("{} items imported", ids.len());
    if left_out > 0 {
        line += &format!(", {left_out} already existed");
    }
    session.report(&json!({ "status": "imported", "item_ids": ids, "left_out": left_out }), &line)
}

fn so_far(error: CliError, count: usize) -> CliError {
    if count == 0 {
        return error;
    }
    let note =
        format!("{count} items were imported before that; to continue, run the command again with --skip-known.");
    let hint = error.hint.as_ref().map_or_else(|| note.clone(), |hint| format!("{hint}\n  {note}"));
    error.hint(hint)
}

/// Our id for a foreign key: the same in every import, so that items imported before are recognised.
fn id_of(key: &str) -> String {
    let digest = Sha256::digest(key.as_bytes());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Reads the lines. A key that is not an item id is replaced by an id, and kept as `metadata.imported_id`.
fn entries(file: impl BufRead) -> Result<Vec<Entry>, CliError> {
    let here = |key: &str| key.parse::<ItemId>().map_or_else(|_| id_of(key), |id| id.to_string());
    let mut found = Vec::new();
    let mut file = file;
    for line in 1.. {
        let mut bytes = Vec::new();
        let read = file.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut bytes);
        read.map_err(|error| CliError::refused("input", format!("Line {line} can't be read: {error}.")))?;
        if bytes.is_empty() {
            break;
        }
        let wrong =
            |what: String| CliError::refused("bad_line", format!("Line {line} {what}.")).hint("Nothing was imported.");
        if bytes.len() as u64 > MAX_LINE || found.len() >= MAX_LINES {
            return Err(wrong(format!("is too long: a line may have at most 1 MiB, a file at most {MAX_LINES} lines")));
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let mut item: Map<String, Value> =
            serde_json::from_slice(&bytes).map_err(|error| wrong(format!("is not a JSON object: {error}")))?;
        let key = |name: &str, item: &Map<String, Value>| match item.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(key)) => Ok(Some(here(key))),
            Some(Value::Number(key)) => Ok(Some(here(&key.to_string()))),
            Some(_) => Err(wrong(format!("has a {name} that is not a string"))),
        };
        let (id, parent) = (key("item_id", &item)?, key("parent_id", &item)?);
        let foreign = item.get("item_id").filter(|key| !key.is_null() && key.as_str() != id.as_deref()).cloned();
        let id = id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        item.insert("item_id".to_owned(), id.clone().into());
        if let Some(parent) = &parent {
            item.insert("parent_id".to_owned(), parent.clone().into());
        }
        let is_id = |key: &Value| key.as_str().is_some_and(|key| key.parse::<ItemId>().is_ok());
        if let Some(foreign) = foreign.filter(|key| !is_id(key)) {
            let metadata = item.entry("metadata").or_insert_with(|| json!({}));
            if let Some(fields) = metadata.as_object_mut() {
                fields.entry("imported_id").or_insert(foreign);
            }
        }
        found.push(Entry { line, id, parent, item });
    }
    Ok(found)
}

/// Sorts parents before their children, so that each request finds the parent that it names.
fn in_order(entries: Vec<Entry>) -> Result<Vec<Value>, CliError> {
    let here: BTreeMap<String, usize> = entries.iter().map(|entry| (entry.id.clone(), entry.line)).collect();
    let mut below: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
    let mut next = Vec::new();
    for entry in entries.into_iter().rev() {
        match entry.parent.clone().filter(|parent| here.contains_key(parent)) {
            Some(parent) => below.entry(parent).or_default().push(entry),
            None => next.push(entry),
        }
    }
    let mut ordered = Vec::with_capacity(here.len());
    while let Some(entry) = next.pop() {
        next.extend(below.remove(&entry.id).unwrap_or_default());
        ordered.push(Value::Object(entry.item));
    }
    match below.values().flatten().map(|entry| entry.line).min() {
        None => Ok(ordered),
        Some(line) => Err(CliError::refused("cycle", format!("The item of line {line} is its own ancestor."))
            .hint("Nothing was imported.")),
    }
}

fn batches(items: Vec<Value>) -> Vec<Vec<Value>> {
    let mut batches: Vec<Vec<Value>> = Vec::new();
    let mut bytes = usize::MAX;
    for item in items {
        let length = item.to_string().len();
        if bytes.saturating_add(length) > MOST_BYTES || batches.last().is_none_or(|batch| batch.len() >= MOST_ITEMS) {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(batch) = batches.last_mut() {
            batch.push(item);
        }
    }
    batches
}

pub(super) fn export(session: &CliSession, args: &ExportArgs) -> Result<(), CliError> {
    session.require_views()?;
    let ids = if args.open { read::open_ids(&session.home)? } else { read::all_ids(&session.home)? };
    for id in ids {
        // One after the other: all items together may need too much memory.
        for (text, item) in read::views::<WorkBrief>(&session.home, &[id]) {
            if item.is_open() || !args.open {
                session.out.line(text.trim())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Value>, CliError> {
        entries(text.as_bytes()).and_then(in_order)
    }

    #[test]
    fn keys_of_other_programs_become_ids_and_parents_come_first() {
        let text = "{\"item_id\":\"BD-2\",\"type\":\"story\",\"title\":\"b\",\"parent_id\":\"BD-1\"}\n\n\
                    {\"item_id\":\"BD-1\",\"type\":\"prd\",\"title\":\"a\"}\n{\"type\":\"bug\",\"title\":\"c\"}\n";
        let items = read(text).expect("readable");
        let titles: Vec<&str> = items.iter().filter_map(|item| item["title"].as_str()).collect();
        assert_eq!(titles, ["a", "b", "c"]);
        assert_eq!(items[0]["metadata"]["imported_id"], "BD-1");
        assert_eq!(items[1]["parent_id"], items[0]["item_id"]);
        assert!(items.iter().all(|item| item["item_id"].as_str().is_some_and(|id| id.parse::<ItemId>().is_ok())));
        assert_eq!(items[2].get("metadata"), None);
    }

    #[test]
    fn an_error_in_an_import_names_its_line() {
        for (text, word) in [
            ("{\"title\":\"a\"}\n[1]\n", "Line 2"),
            ("{\"item_id\":\"a\",\"parent_id\":\"b\"}\n{\"item_id\":\"b\",\"parent_id\":\"a\"}\n", "line 1"),
            ("{\"item_id\":[1]}\n", "item_id"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.message.contains(word), "{}", error.message);
        }
    }

    #[test]
    fn a_request_carries_only_so_much() {
        let items: Vec<Value> = (0..2_500).map(|number| json!({ "title": number })).collect();
        let sizes: Vec<usize> = batches(items).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        let large: Vec<Value> = (0..3).map(|_| json!({ "description": "x".repeat(400 * 1024) })).collect();
        assert_eq!(batches(large).len(), 3);
    }
}
