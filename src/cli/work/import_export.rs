//! `work import` and `work export`: move items from and to other programs.

use super::args::{ExportArgs, ImportArgs};
use super::read;
use crate::cli::error::CliError;
use crate::cli::unread::Unread;
use crate::cli::view::ViewFile;
use crate::cli::{ANSWER_SOON, CliSession};
use crate::contract::WorkBrief;
use crate::contract::reply::ImportReply;
use crate::core::id::ItemId;
use crate::core::request::work::size;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// The longest line, in bytes: what one request can carry.
const MAX_LINE: u64 = 1 << 20;
const MAX_LINES: usize = 100_000;
/// How many bytes and items go into one request at most.
const MOST_BYTES: usize = 700 * 1024;
const MOST_ITEMS: usize = 1_000;

/// One line of the file: its number, the id that the item gets in tasuki, the parent's id, and the item's fields.
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
        let items = batch.iter().map(|entry| Value::Object(entry.item.clone())).collect();
        let fields = Map::from_iter([("items".to_owned(), Value::Array(items))]);
        let answer = session.ask("work_import", fields, ANSWER_SOON);
        let answer: ViewFile<ImportReply> = answer.map_err(|error| so_far(of_line(error, &batch), ids.len()))?;
        ids.extend(answer.item_ids.iter().cloned());
    }
    let mut line = format!("{} items imported", ids.len());
    if left_out > 0 {
        line += &format!(", {left_out} already existed");
    }
    session.report(&json!({ "status": "imported", "item_ids": ids, "left_out": left_out }), &line)
}

/// Adds to the error of a request how to continue, if `count` items were imported before. The command can be repeated,
/// because each line has the same id in every import.
fn so_far(error: CliError, count: usize) -> CliError {
    let again = "To continue, run the command again with --skip-known: it leaves out what was imported.";
    let note = match (count, error.code.as_str()) {
        (0, "exists") => {
            "--skip-known leaves out what already exists. To import the same line as a new item, give it an \
                          item_id of its own."
                .to_owned()
        }
        (0, "no_answer") => again.to_owned(),
        (0, _) => return error,
        (count, _) => format!("{count} items were imported before that. {again}"),
    };
    // The hint is true of the failed request, but not of the requests before it.
    let hint = error.hint.clone().filter(|hint| count == 0 || hint != "Nothing was imported.");
    let parts: Vec<String> = hint.into_iter().chain([note]).collect();
    error.hint(parts.join("\n  "))
}

/// Adds to an error the line that it is about. The sidecar names an item by its place in the request, or by its id.
fn of_line(error: CliError, batch: &[Entry]) -> CliError {
    let line_at = |text: &str| {
        let digits = text.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
        let entry = digits.parse::<usize>().ok().and_then(|index| batch.get(index));
        entry.map(|entry| (entry.line, digits.len()))
    };
    if let Some((before, after)) = error.message.split_once("/items/")
        && let Some((line, digits)) = line_at(after)
    {
        let rest = &after[digits..];
        let comma = if rest.starts_with('/') { ", " } else { "" };
        return CliError { message: format!("{before}line {line}{comma}{rest}"), ..error };
    }
    let by_field = error.field.as_deref().and_then(|field| line_at(field.strip_prefix("items[")?));
    let by_id = || batch.iter().find(|entry| error.message.contains(&entry.id)).map(|entry| entry.line);
    match by_field.map(|(line, _)| line).or_else(by_id) {
        Some(line) => CliError { message: format!("Line {line}: {}", error.message), ..error },
        None => error,
    }
}

/// Our id for a key of another program: the same in every import, so that items imported before are recognised.
fn id_of(key: &str) -> String {
    id_from(Sha256::new().chain_update(key))
}

/// The id of an item whose line has none, made from the line's text: the same in every import, wherever the line stands
/// in the file. Lines with the same text are different items: `times_before` says how many such lines came before.
fn id_of_line(text: &[u8], times_before: usize) -> String {
    // No key of another program begins like this: JSON is UTF-8, which never holds the byte 0xff.
    let count = u64::try_from(times_before).unwrap_or(u64::MAX).to_be_bytes();
    id_from(Sha256::new().chain_update(b"\xffline").chain_update(count).chain_update(text))
}

fn id_from(hashed: Sha256) -> String {
    let digest = hashed.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// Reads the lines. If `item_id` is not an item id but another program's key, an id replaces it, and the key is kept as
/// `metadata.imported_id`.
fn entries(file: impl BufRead) -> Result<Vec<Entry>, CliError> {
    let here = |key: &str| key.parse::<ItemId>().map_or_else(|_| id_of(key), |id| id.to_string());
    let mut found = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
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
        let id = id.unwrap_or_else(|| {
            let text = bytes.trim_ascii();
            let times = seen.entry(id_of_line(text, 0)).or_default();
            *times += 1;
            id_of_line(text, *times - 1)
        });
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
fn in_order(entries: Vec<Entry>) -> Result<Vec<Entry>, CliError> {
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
        ordered.push(entry);
    }
    match below.values().flatten().map(|entry| entry.line).min() {
        None => Ok(ordered),
        Some(line) => Err(CliError::refused("cycle", format!("The item of line {line} is its own ancestor."))
            .hint("Nothing was imported.")),
    }
}

fn batches(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut batches: Vec<Vec<Entry>> = Vec::new();
    let mut bytes = usize::MAX;
    for entry in entries {
        let length = size(&entry.item);
        if bytes.saturating_add(length) > MOST_BYTES || batches.last().is_none_or(|batch| batch.len() >= MOST_ITEMS) {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += length;
        if let Some(batch) = batches.last_mut() {
            batch.push(entry);
        }
    }
    batches
}

pub(super) fn export(session: &CliSession, args: &ExportArgs) -> Result<(), CliError> {
    session.require_views()?;
    let ids = if args.open { read::open_ids(&session.home)? } else { read::all_ids(&session.home)? };
    let mut unread = Unread::default();
    for id in ids {
        // Items are read one after the other: all of them together may need too much memory.
        for (text, item) in read::views::<WorkBrief>(&session.home, &[id], &mut unread) {
            if item.is_open() || !args.open {
                session.out.line(text.trim())?;
            }
        }
    }
    session.warn(&unread);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Value>, CliError> {
        let ordered = entries(text.as_bytes()).and_then(in_order)?;
        Ok(ordered.into_iter().map(|entry| Value::Object(entry.item)).collect())
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
    fn a_line_without_an_id_gets_the_same_id_in_every_import_wherever_it_stands() {
        let line = |title: &str| format!("{{\"type\":\"task\",\"title\":\"{title}\"}}\n");
        let ids = |text: String| -> Vec<String> {
            let items = read(&text).expect("readable");
            items.iter().filter_map(|item| item["item_id"].as_str().map(str::to_owned)).collect()
        };
        let first = ids(line("a") + &line("b") + &line("a"));
        assert!(first[0] != first[1] && first[0] != first[2], "two lines with one text are two items: {first:?}");
        assert_eq!(ids(line("a") + &line("b") + &line("a")), first);
        let later = ids(line("new") + "\n" + line("a").replace('\n', "\r\n").as_str() + &line("a") + &line("b"));
        assert_eq!(later[1..], [first[0].clone(), first[2].clone(), first[1].clone()]);
    }

    #[test]
    fn a_refusal_by_the_sidecar_names_the_line() {
        let batch = entries("\n{\"item_id\":\"a\",\"type\":7}\n\n{\"type\":\"task\"}\n".as_bytes()).expect("readable");
        let refused = |message: &str, field: Option<&str>| {
            let error = CliError { field: field.map(str::to_owned), ..CliError::refused("x", message) };
            of_line(error, &batch).message
        };
        assert_eq!(refused("Can't: /items/0/type: must be a string", None), "Can't: line 2, /type: must be a string");
        assert_eq!(refused("Can't: /items/1: missing field `title`", None), "Can't: line 4: missing field `title`");
        assert_eq!(refused("Not created", Some("items[1].type")), "Line 4: Not created");
        let known = format!("An item {} already exists", batch[1].id);
        assert_eq!(refused(&known, Some("item_id")), format!("Line 4: {known}"));
        assert_eq!(refused("Can't: /items/7/type: no", None), "Can't: /items/7/type: no");
    }

    #[test]
    fn a_request_has_limited_items_and_bytes() {
        let file =
            |count: usize, item: &Value| entries(format!("{item}\n").repeat(count).as_bytes()).expect("readable");
        let sizes: Vec<usize> = batches(file(2_500, &json!({"title": "t"}))).iter().map(Vec::len).collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        assert_eq!(batches(file(3, &json!({ "description": "x".repeat(400 * 1024) }))).len(), 3);
    }
}
