//! Reads the files that the program writes for others, and finds the processes that it has started.

use super::processes;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use tasuki::core::text::sentence;

/// Makes a folder and its parents, for this user alone.
pub(crate) fn make_folder(path: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).expect("a folder");
}

/// The JSON in a file; none if there is no file. The program puts such files there by rename, so a file that is not
/// whole is a panic.
pub(crate) fn read_json(path: &Path) -> Option<Value> {
    let bytes = fs::read(path).ok()?;
    Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{} is torn: {error}", path.display())))
}

/// The lines of a file as JSON. A last line without its newline does not count.
pub(crate) fn json_lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The content of all JSON files in a folder, in the order of their names.
pub(crate) fn json_files(folder: &Path) -> Vec<Value> {
    let names = names(folder);
    let files = names.iter().filter(|name| name.ends_with(".json") && !name.starts_with('.'));
    files.filter_map(|name| read_json(&folder.join(name))).collect()
}

/// `(status, code, message)` of an answer, which must be a refusal.
pub(crate) fn refusal(answer: &Value) -> (u64, String, String) {
    assert_eq!(answer["ok"], false, "{answer}");
    let text = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    assert_eq!(text("hint"), sentence(&text("hint")), "a hint is a whole sentence: {answer}");
    (answer["status"].as_u64().expect("a status"), text("code"), text("message"))
}

/// The delivery ids in a text: each typed text ends in one.
pub(crate) fn delivery_ids(text: &str) -> Vec<String> {
    let parts = text.split("(tasuki delivery ").skip(1);
    parts.filter_map(|part| part.split_once('.').map(|(id, _)| id.to_owned())).collect()
}

/// The living processes that were started with this environment variable and with arguments that fit. `fits` gets the
/// arguments as one text, with zero bytes between them.
pub(crate) fn processes_with(variable: &str, fits: impl Fn(&str) -> bool) -> Vec<i32> {
    let fit = processes::bearing(variable).into_iter().filter(|pid| fits(&processes::words(*pid).join("\0")));
    fit.filter_map(|pid| i32::try_from(pid).ok()).collect()
}

/// The demo agents that were started with this environment variable. When a demo agent starts a hook, the child looks
/// like a second agent between fork and exec: so a child of a found process does not count.
pub(crate) fn demo_agents_with(variable: &str) -> Vec<i32> {
    let found = processes_with(variable, |arguments| {
        arguments.ends_with("demo-agent") || arguments.contains("demo-agent\0--model\0")
    });
    let parent = |pid: &i32| -> Option<i32> {
        let parent = tasuki::process::ancestors(u32::try_from(*pid).ok()?, 1).pop()?;
        i32::try_from(parent).ok()
    };
    found.iter().filter(|pid| parent(pid).is_none_or(|parent| !found.contains(&parent))).copied().collect()
}

/// The credentials that tests plant in documents. They are put together here, so that no file of the repository holds a
/// text that looks like a credential. A demo agent whose document has a flaw writes the last two.
pub(crate) fn planted_keys() -> [String; 4] {
    [
        format!("ghp_{}", "q7Zk2Vx9Lm4TcR8wYb3NfJ6sHd5GpA1eUoXi"),
        format!("glpat-{}", "Kt9vCnMzQj4rEyDu2gSh"),
        format!("ghp_{}", "4MsZaTr3xXnCH2eRwyKU8VJdovkf9QBP5mip"),
        format!("app:{}", "4MsZaTr3xXnCH2eRwyKU"),
    ]
}

/// The files at or below a path that hold a planted credential, byte for byte.
pub(crate) fn holding_keys(path: &Path) -> Vec<String> {
    if path.is_dir() {
        return names(path).iter().flat_map(|name| holding_keys(&path.join(name))).collect();
    }
    let bytes = fs::read(path).unwrap_or_default();
    let holds = |key: &String| bytes.windows(key.len()).any(|part| part == key.as_bytes());
    if planted_keys().iter().any(holds) { vec![path.display().to_string()] } else { Vec::new() }
}

/// The same among the files of a home that others read: results, errors, journal, views, and the facts beside
/// documents.
pub(crate) fn shown_keys(home: &Path) -> Vec<String> {
    let shown = ["view", "spool/results", "spool/errors", "spool/journal.jsonl", "spool/journal.1.jsonl"];
    let mut found: Vec<String> = shown.iter().flat_map(|name| holding_keys(&home.join(name))).collect();
    let personas = home.join("data/personas");
    for persona in names(&personas) {
        let folder = personas.join(persona).join("handoffs");
        let beside = names(&folder).into_iter().filter(|name| name.contains(".facts."));
        found.extend(beside.flat_map(|name| holding_keys(&folder.join(name))));
    }
    found
}

/// How much memory a running process holds, in MiB.
pub(crate) fn resident_mib(pid: impl std::fmt::Display) -> u64 {
    processes::resident_kib(pid) / 1_024
}
