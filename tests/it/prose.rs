//! Names and sentences are in plain words: private coinages, and turns of phrase that read as if translated, are found
//! here.

use crate::support::sources::{files_below, repository};
use regex::Regex;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

/// What is looked for, in lower case and with identifiers taken apart (`one_that`, `OneThat` → `one that`), and what to
/// say instead. An expression stands between word boundaries.
const COINAGES: &[(&str, &str)] = &[
    ("anew", "again"),
    ("balk(?:s|ed|ing)?", "the obstacle, by its name"),
    ("beats?|hearts?", "heartbeat, or the sidecar's status"),
    ("but for", "except, or without"),
    ("consent(?:s|ed)?", "the check before typing"),
    ("contract's word|word of the contract", "wire name"),
    ("deeds?", "action"),
    ("deserted", "the agent is dead"),
    ("dials?", "option"),
    ("doors?", "login, gate or destination, whichever it is"),
    ("farewells?", "the last notice"),
    ("for (?:people|programs)", "message, or error code"),
    ("gauges?", "context usage"),
    ("glanc(?:e|es|ed|ing)", "one look at the screen"),
    ("go(?:es|ing)? on|went on", "continue"),
    ("guests?", "the program in the pane, by its name"),
    ("(?:is|are|was|were|be) no [a-z]+", "is not a …"),
    ("meets?|meetings?", "register, find or look up"),
    ("mend(?:s|ed|ing)?", "fix or repair"),
    ("nudg(?:e|es|ed|ing)", "run what has become possible"),
    ("of which", "whose, or a sentence of its own"),
    ("ones? that", "a noun before the relative clause"),
    ("pages? in", "load from history"),
    ("paced", "with a write timeout"),
    ("pencils?", "transaction"),
    ("pumps?", "drain the queue"),
    ("puts? off|putting off", "defer"),
    ("puts? away", "finish, trash or store"),
    ("reap(?:s|ed|ing|er)?", "collect or trash"),
    ("shel(?:f|ves)", "the table or folder, by its name"),
    ("strangers?", "unknown session, or another program"),
    ("unheard", "the silence deadline"),
    ("vanish(?:es|ed)?", "the pane is gone"),
    ("who(?:m|so)?ever", "the caller, or whichever person it is"),
];

/// Sentences and names in which such a word is the right one: what of the line says so, and why.
const ALLOWED: &[(&str, &str)] = &[
    (r"\bthere (?:is|are|was|were|be) no\b", "the usual English for a thing that does not exist"),
    (r"\bthe ones? that\b", "the noun stands just before it"),
    (r"\b(?:is|are|was|were|be) no (?:longer|more|less|such|room|way|need)\b", "adverbs, not a noun"),
    (r"\bguest:guest\b", "the account that every RabbitMQ has at first"),
    (r"\bgit hub\b", "the name of a service"),
    (r"\bdial (?:tcp|unix)\b", "words of gh's own errors"),
    (r#"\b(?:rename|alias) = "[^"]*"#, "a name that is stored or sent stays, whatever the code calls the thing"),
    (r#"["`](?:put off|meetings|read gauge|unheard|glance)["`]"#, "names in stored rows and in the journal"),
    (r"\bstate/reap\b", "a folder of existing homes"),
];

/// A line with identifiers taken apart, in lower case.
fn taken_apart(line: &str) -> String {
    static JOINT: LazyLock<Regex> = LazyLock::new(|| Regex::new("([a-z0-9])([A-Z])").expect("an expression"));
    JOINT.replace_all(line, "$1 $2").replace(['_', '-'], " ").to_lowercase()
}

/// A line as it is searched: without what is allowed.
fn plain(line: &str) -> String {
    static RIGHT: LazyLock<Regex> = LazyLock::new(|| {
        let all: Vec<&str> = ALLOWED.iter().map(|(expression, _)| *expression).collect();
        Regex::new(&all.join("|")).expect("an expression")
    });
    RIGHT.replace_all(&taken_apart(line), "…").into_owned()
}

fn words(expression: &str) -> Regex {
    Regex::new(&format!(r"\b(?:{expression})\b")).expect("an expression")
}

/// The coinages of a text: line, what was found, and what to say instead.
fn coinages(text: &str) -> Vec<(usize, String, &'static str)> {
    static ALL: LazyLock<Vec<(Regex, &str)>> =
        LazyLock::new(|| COINAGES.iter().map(|(expression, instead)| (words(expression), *instead)).collect());
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = plain(line);
        for (expression, instead) in ALL.iter() {
            found.extend(expression.find_iter(&line).map(|hit| (number + 1, hit.as_str().to_owned(), *instead)));
        }
    }
    found
}

/// What is searched: each file's path from the root, and its text.
fn texts() -> Vec<(String, String)> {
    let root = repository();
    let mut files = vec![root.join("README.md"), root.join("CHANGELOG.md"), root.join(".github/CONTRIBUTING.md")];
    for (folder, ends) in [("src", &["rs"][..]), ("data", &["md", "toml", "html", "js", "css"][..])] {
        files.extend(files_below(&root.join(folder), ends));
    }
    let text = |file: &PathBuf| fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let name = |file: &PathBuf| file.strip_prefix(&root).expect("in the repository").display().to_string();
    files.iter().map(|file| (name(file), text(file))).collect()
}

#[test]
fn source_data_and_documents_hold_no_coinage() {
    let mut found = Vec::new();
    for (name, text) in texts() {
        for (line, hit, instead) in coinages(&text) {
            found.push(format!("{name}:{line}: {hit} (say: {instead})"));
        }
    }
    assert!(found.is_empty(), "{} coinages:\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_coinage_is_found_in_sentences_and_in_names() {
    let text =
        "/// One that a stranger puts off.\nfn meet_anew(gauge: OnesThat) {}\nThis is no file, and there is no other.";
    let found: Vec<(usize, String)> = coinages(text).into_iter().map(|(line, hit, _)| (line, hit)).collect();
    let expected = [
        (1, "one that"),
        (1, "puts off"),
        (1, "stranger"),
        (2, "anew"),
        (2, "gauge"),
        (2, "meet"),
        (2, "ones that"),
        (3, "is no file"),
    ];
    let mut sorted = found;
    sorted.sort();
    assert_eq!(sorted, expected.map(|(line, hit)| (line, hit.to_owned())));
}

#[test]
fn everything_that_is_allowed_is_needed() {
    let text: String = texts().iter().map(|(_, text)| taken_apart(text)).collect();
    for (expression, why) in ALLOWED {
        assert!(
            Regex::new(expression).expect("an expression").is_match(&text),
            "{expression} is needed nowhere: {why}"
        );
    }
    assert!(ALLOWED.len() <= 10, "too much is allowed");
}

/// rustfmt wraps code, but no comment. Tables and addresses can't be wrapped.
#[test]
fn comments_have_at_most_120_columns() {
    let is_wide = |line: &&str| line.chars().count() > 120 && !line.contains("//! |") && !line.contains("http");
    let comment = |line: &&str| line.trim_start().starts_with("//");
    let rust = texts().into_iter().filter(|(name, _)| name.ends_with(".rs"));
    let wide: Vec<String> = rust
        .flat_map(|(name, text)| {
            let lines = text.lines().filter(comment).filter(is_wide).map(|line| format!("{name}: {line}"));
            lines.collect::<Vec<_>>()
        })
        .collect();
    assert!(wide.is_empty(), "{}", wide.join("\n"));
}
