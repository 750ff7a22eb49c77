//! No files look into each other in a circle: such files can only be understood, moved and tested together. Whoever
//! needs what lies above takes it as a value, or tells what was learned; what two share lies below both.

use crate::support::sources::{files_below, repository};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Every module of the crate by its path.
struct House {
    modules: BTreeMap<String, Module>,
}

/// One file: its name, what it has in use, and the rest of its code.
struct Module {
    file: String,
    uses: Vec<Use>,
    code: String,
}

/// One `use`: the whole path, the name that it binds, and whether others may take it from here.
struct Use {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

impl House {
    fn read() -> House {
        let src = repository().join("src");
        let modules = files_below(&src, &["rs"]).into_iter().filter_map(|path| {
            let file = path.strip_prefix(&src).expect("below src").display().to_string();
            if file == "main.rs" || file.starts_with("bin/") || file.ends_with("tests.rs") || file.contains("/tests/") {
                return None;
            }
            let (uses, code) = taken_apart(&bare(&fs::read_to_string(&path).expect("readable")));
            Some((module_of(&file), Module { file, uses, code }))
        });
        House { modules: modules.collect() }
    }

    /// The absolute path of one that begins in `module`, or nothing for another crate's.
    fn absolute(&self, module: &str, path: &[String]) -> Option<Vec<String>> {
        let mut own: Vec<String> = module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => own.clear(),
            "self" => {}
            "super" => {}
            first => {
                own.push(first.to_owned());
                return self.modules.contains_key(&own.join("::")).then(|| [&own[..], &rest[1..]].concat());
            }
        }
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "super" => drop(own.pop()),
                "crate" | "self" => {}
                _ => break,
            }
            rest = others;
        }
        Some([&own[..], rest].concat())
    }

    /// The module in which the thing at this path is written, through whatever passes it on.
    fn home_of(&self, path: &[String], depth: u8) -> Option<String> {
        let known = (0..=path.len()).rev().find(|end| self.modules.contains_key(&path[..*end].join("::")))?;
        let module = path[..known].join("::");
        let Some(next) = path.get(known).filter(|_| depth < 8) else { return Some(module) };
        let uses = &self.modules[&module].uses;
        let passed_on = uses.iter().find(|found| found.is_public && found.name == *next);
        let Some(passed_on) = passed_on else { return Some(module) };
        let Some(target) = self.absolute(&module, &passed_on.path) else { return Some(module) };
        self.home_of(&[&target[..], &path[known + 1..]].concat(), depth + 1)
    }

    /// The modules that a module's code names: by `use`, by a whole path, and through a module that it has in use.
    fn named_by(&self, module: &str) -> BTreeSet<String> {
        let Module { uses, code, .. } = &self.modules[module];
        let mut named = BTreeSet::new();
        let mut bound: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for found in uses {
            let Some(path) = self.absolute(module, &found.path) else { continue };
            // A module that is in use counts by what is taken through it.
            if self.modules.contains_key(&path.join("::")) {
                bound.insert(&found.name, path);
            } else {
                named.extend(self.home_of(&path, 0));
            }
        }
        for path in paths(code) {
            let absolute = match bound.get(path[0].as_str()) {
                Some(target) => Some([&target[..], &path[1..]].concat()),
                None => self.absolute(module, &path),
            };
            named.extend(absolute.and_then(|path| self.home_of(&path, 0)));
        }
        named.remove(module);
        named.remove("");
        named
    }

    /// The circles, the largest first: the files of each.
    fn circles(&self) -> Vec<Vec<String>> {
        let arrows: BTreeMap<&str, BTreeSet<String>> =
            self.modules.keys().map(|module| (module.as_str(), self.named_by(module))).collect();
        let reached: BTreeMap<&str, BTreeSet<&str>> =
            arrows.keys().map(|module| (*module, reach(&arrows, module))).collect();
        let mut circles: BTreeSet<Vec<String>> = BTreeSet::new();
        for (module, others) in &reached {
            let both = others.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(module)));
            let mut circle: Vec<String> = both.map(|other| self.modules[*other].file.clone()).collect();
            circle.sort();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<Vec<String>> = circles.into_iter().collect();
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }
}

/// All that can be reached from a module by at least one arrow.
fn reach<'a>(arrows: &'a BTreeMap<&str, BTreeSet<String>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = arrows[from].iter().map(String::as_str).collect();
    while let Some(next) = left.pop() {
        if reached.insert(next) {
            left.extend(arrows.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

/// `core/handoff/mod.rs` is `core::handoff`, `spool.rs` is `spool`, `lib.rs` is the crate itself.
fn module_of(file: &str) -> String {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    if path == "lib" { String::new() } else { path.replace('/', "::") }
}

/// The code without comments, texts and the tests at its end.
fn bare(text: &str) -> String {
    let text = text.split("\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|line| {
        let mut kept = String::new();
        for (number, part) in line.split('"').enumerate() {
            if number % 2 == 0 {
                kept.push_str(part.split("//").next().unwrap_or_default());
                if part.contains("//") {
                    break;
                }
            }
        }
        kept
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What is in use, and the code without the statements that say so.
fn taken_apart(text: &str) -> (Vec<Use>, String) {
    let (mut uses, mut code) = (Vec::new(), String::new());
    let mut rest = text;
    while let Some(at) = rest.find("use ") {
        let (before, after) = (&rest[..at], &rest[at + 4..]);
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        code.push_str(before);
        rest = after;
        if line.is_empty() || line == "pub" || (line.starts_with("pub(") && line.ends_with(')')) {
            let end = after.find(';').unwrap_or(after.len());
            let (tree, is_public) = (after[..end].split_whitespace().collect::<Vec<_>>().join(" "), !line.is_empty());
            leaves(&tree, &[], &mut |path, name| uses.push(Use { path, name, is_public }));
            rest = &after[end..];
        }
    }
    code.push_str(rest);
    (uses, code)
}

/// Each path in a tree of `use`, with the name that it binds.
fn leaves(tree: &str, before: &[String], found: &mut impl FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some((head, group)) = tree.split_once('{') {
        let head = head.trim_end().trim_end_matches("::");
        let before = [before, &parts(head)[..]].concat();
        let group = &group[..group.rfind('}').unwrap_or(group.len())];
        split_at_commas(group).into_iter().for_each(|member| leaves(member, &before, found));
        return;
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias)));
    let mut path = [before, &parts(path)[..]].concat();
    if path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = alias.map(str::to_owned).or_else(|| path.last().cloned()) {
        found(path, name);
    }
}

fn parts(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn split_at_commas(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut members) = (0, 0, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    members.push(&group[from..]);
    members.retain(|member| !member.trim().is_empty());
    members
}

/// Every path of two names or more in the code: `a::b::C`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = text.split(|letter: char| !is_part(letter) && letter != ':');
    let found = words.filter(|word| word.contains("::") && !word.starts_with("::"));
    found.map(parts).filter(|path| path.len() > 1).collect()
}

#[test]
fn no_files_look_into_each_other_in_a_circle() {
    let house = House::read();
    let room = |file: &str| file.split(['/', '.']).next().unwrap_or_default().to_owned();
    let mut largest: BTreeMap<String, usize> = house.modules.values().map(|module| (room(&module.file), 0)).collect();
    let circles = house.circles();
    for circle in &circles {
        let most = largest.entry(room(&circle[0])).or_default();
        *most = circle.len().max(*most);
    }
    println!("the largest circle of each room: {largest:?}");
    assert!(circles.is_empty(), "files that look into each other: {circles:#?}");
}

/// What is stored lies below the machines that change it.
#[test]
fn rows_name_nothing_that_changes_them() {
    let below = ["rows", "effect", "hook", "id", "pane", "reply", "request", "settings", "time"]
        .map(|room| format!("core::{room}"));
    let below = [&below[..], &["contract".to_owned()]].concat();
    let is_below = |named: &String| below.iter().any(|room| named == room || named.starts_with(&format!("{room}::")));
    let house = House::read();
    let rows = house.modules.keys().filter(|module| module.starts_with("core::rows"));
    let wrong: Vec<(&String, String)> = rows
        .flat_map(|row| house.named_by(row).into_iter().map(move |named| (row, named)))
        .filter(|(_, named)| !is_below(named))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The machines of the core, from the bottom up; what is not named lies below them all. What one of them learns that
/// concerns those above rises as a fact.
const LAYERS: [(&str, &[&str]); 6] = [
    ("agents", &["core::agent"]),
    (
        "work items",
        &[
            "core::work::ask",
            "core::work::transfer",
            "core::work::complete",
            "core::work::import",
            "core::work::items",
            "core::work::judge",
            "core::work::notices",
            "core::work::people",
            "core::work::rollback",
            "core::work::watch",
        ],
    ),
    ("handoffs", &["core::handoff"]),
    ("what follows", &["core::follow", "core::needs", "core::status_line", "core::view"]),
    ("what comes in", &["core::due", "core::hooks"]),
    ("the decision", &["core"]),
];

fn layer(module: &str) -> usize {
    let is_in = |room: &&str| module == *room || (*room != "core" && module.starts_with(&format!("{room}::")));
    LAYERS.iter().position(|(_, rooms)| rooms.iter().any(is_in)).map_or(0, |at| at + 1)
}

#[test]
fn nobody_in_the_core_calls_upward() {
    let house = House::read();
    let core = house.modules.keys().filter(|module| *module == "core" || module.starts_with("core::"));
    let upward: Vec<String> = core
        .flat_map(|module| house.named_by(module).into_iter().map(move |named| (module, named)))
        .filter(|(module, named)| layer(named) > layer(module))
        .map(|(module, named)| format!("{module} names {named}"))
        .collect();
    assert!(upward.is_empty(), "{upward:#?}");
}

#[test]
fn a_path_is_followed_to_where_the_thing_is_written() {
    let house = House::read();
    let home = |path: &str| house.home_of(&parts(path), 0);
    assert_eq!(home("core::effect::Outcome").as_deref(), Some("core::effect::outcome"));
    assert_eq!(home("spool::Spool").as_deref(), Some("spool::home"));
    let mut found = Vec::new();
    leaves("super::{Tx, flow::{self, enter as go}, *}", &[], &mut |path, name| found.push((path.join("/"), name)));
    let expected = [("super/Tx", "Tx"), ("super/flow", "flow"), ("super/flow/enter", "go"), ("super/*", "*")];
    assert_eq!(found, expected.map(|(path, name)| (path.to_owned(), name.to_owned())));
}
