//! The same type name always means the same thing: no two rooms define a type with the same name.

use crate::support::sources::{files_below, repository};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Names that several rooms may define.
const SHARED: [(&str, &str); 1] =
    [("Error", "the error of an adapter, as in std::io::Error; it is always read with its room")];

/// The type names that a file defines for others, including those that the macro `words!` defines.
fn type_names(text: &str) -> BTreeSet<String> {
    let defined =
        Regex::new(r"(?m)^\s*pub(?:\([a-z: ]+\))? (?:struct|enum|trait|type|union) (\w+)").expect("an expression");
    let listed = Regex::new(r"(?ms)^(?:pub\(\w+\) )?words! \{(.*?)^\}").expect("an expression");
    let name = Regex::new(r"(?m)^    ([A-Z]\w*)(?: \w+)? \{").expect("an expression");
    let mut names: BTreeSet<String> = defined.captures_iter(text).map(|found| found[1].to_owned()).collect();
    for list in listed.captures_iter(text) {
        names.extend(name.captures_iter(&list[1]).map(|found| found[1].to_owned()));
    }
    names
}

#[test]
fn no_type_name_is_used_by_two_rooms() {
    let src = repository().join("src");
    let mut rooms: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_below(&src, &["rs"]) {
        let file = path.strip_prefix(&src).expect("below src").display().to_string();
        if file.ends_with("tests.rs") || file.contains("/tests/") {
            continue;
        }
        let room = file.split(['/', '.']).next().unwrap_or_default().to_owned();
        for name in type_names(&fs::read_to_string(&path).expect("readable")) {
            rooms.entry(name).or_default().insert(room.clone());
        }
    }
    rooms.retain(|_, rooms| rooms.len() > 1);
    for (name, why) in SHARED {
        assert!(rooms.remove(name).is_some(), "{name} is not used by several rooms any more: {why}");
    }
    assert!(rooms.is_empty(), "give each of these types a name of its own: {rooms:#?}");
}

#[test]
fn type_names_are_found_in_definitions_and_in_lists_of_words() {
    let text = "pub struct One;\npub(crate) enum Two {}\nstruct Private;\nwords! {\n    /// Words.\n    Three {\n        A = \"a\",\n    }\n}\n";
    assert_eq!(type_names(text), ["One", "Three", "Two"].map(str::to_owned).into());
}
