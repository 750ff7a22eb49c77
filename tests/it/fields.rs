//! Readers that no compiler looks at: the page of `tasuki serve` and the guide's recipe take only what our formats
//! have.

use regex::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use tasuki::cli::schema;
use tasuki::contract::Step;

/// What a name stands for: fields of a format, such as `handoff_view.steps`; and what else it may be asked for.
type Name = (&'static str, &'static [&'static str], &'static [&'static str]);

/// In the page. A name that stands for several things has each field in one of them.
const PAGE: [Name; 23] = [
    ("need", &["need"], &[]),
    ("agent", &["agent_view", "host_view.agents"], &[]),
    ("context", &["agent_view.context"], &[]),
    ("handoff", &["handoff_view", "host_view.handoffs"], &[]),
    ("host", &["host_view"], &["state", "own", "counts"]),
    ("item", &["work_view"], &[]),
    ("comment", &["work_view.comments"], &[]),
    ("entry", &["work_view.history"], &[]),
    ("child", &["agent_view", "work_view.failed_children"], &[]),
    ("wrong", &["work_view.failed_children.errors"], &[]),
    ("ack", &["handoff_view.ack"], &[]),
    ("publish", &["handoff_view.publish"], &[]),
    ("facts", &["handoff_view.facts"], &[]),
    ("repository", &["handoff_view.facts.repository"], &[]),
    ("ran", &["handoff_view.facts.actions.last_test"], &[]),
    ("fault", &["handoff_view.faults"], &[]),
    ("earlier", &["handoff_view.earlier"], &[]),
    ("seen", &["handoff_view.steps"], &[]),
    ("error", &["error", "handoff_view.error"], &[]),
    ("one", &["agent_view", "handoff_view.steps", "handoff_view.verdicts.instruction", "host_view"], &["id"]),
    ("line", &["journal"], &["hidden"]),
    ("a", &["agent_view", "error"], &[]),
    ("b", &["agent_view", "error"], &[]),
];

/// In the recipe.
const RECIPE: [Name; 5] = [
    ("a", &["agent_view"], &[]),
    ("kai", &["agent_view"], &[]),
    ("event", &["journal"], &[]),
    ("answer", &["result"], &[]),
    ("handoff", &["handoff_view"], &[]),
];

fn text(name: &str) -> String {
    fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)).expect("readable")
}

/// All modules of the page in one text.
fn page() -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/page");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("the page").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "js"));
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).expect("readable")).collect()
}

/// What is described, whichever way it is said: by a name, as null or else, or as the members of a list.
fn plain<'s>(root: &'s Value, about: &'s Value) -> &'s Value {
    let named = about["$ref"].as_str().and_then(|name| root.pointer(name.trim_start_matches('#')));
    let other = || about["anyOf"].as_array()?.iter().find(|one| one["type"] != "null");
    let member = || Some(&about["items"]).filter(|items| items.is_object());
    named.or_else(other).or_else(member).map_or(about, |inner| plain(root, inner))
}

/// Goes from one field to the next as long as there are any; false where one is missing.
fn has<'s>(root: &'s Value, mut about: &'s Value, path: &[&str]) -> bool {
    for field in path {
        let Some(fields) = plain(root, about)["properties"].as_object() else { return true };
        let Some(next) = fields.get(*field) else { return false };
        about = next;
    }
    true
}

/// What of these readings is in no format, and how many there are.
fn missing(names: &[Name], readings: impl Iterator<Item = (String, Vec<String>)>) -> (Vec<String>, usize) {
    let schemas: BTreeMap<&str, Value> = schema::all().into_iter().map(|format| (format.name, format.schema)).collect();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (name, path) in readings {
        let Some((_, of_what, other)) = names.iter().find(|(known, _, _)| *known == name) else { continue };
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        count += 1;
        let is_there = of_what.iter().any(|place| {
            let mut parts = place.split('.');
            let root = &schemas[parts.next().unwrap_or_default()];
            let within: Vec<&str> = parts.collect();
            assert!(has(root, root, &within), "there is no {place}");
            has(root, root, &[&within[..], &path[..]].concat())
        });
        if !is_there && !path.first().is_some_and(|field| other.contains(field)) {
            wrong.push(format!("{name}.{}", path.join(".")));
        }
    }
    (wrong, count)
}

#[test]
fn the_page_reads_only_fields_that_there_are() {
    let page = page();
    let chain = Regex::new(r"\b([a-z]+)((?:\??\.\w+)+)(\()?").expect("an expression");
    let readings = chain.captures_iter(&page).map(|found| {
        let mut path: Vec<String> =
            found[2].split(['?', '.']).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        // What is called is the language's, and so is the length of a list.
        path.truncate(path.len() - usize::from(found.get(3).is_some()));
        path.truncate(path.len() - usize::from(path.last().is_some_and(|field| field == "length")));
        (found[1].to_owned(), path)
    });
    let (wrong, count) = missing(&PAGE, readings.filter(|(_, path)| !path.is_empty()));
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(count > 80, "only {count} were found");
}

#[test]
fn the_page_knows_every_step() {
    let page = page();
    let list = |name: &str| -> Vec<String> {
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("export const {name} = ")));
        serde_json::from_str(line.and_then(|line| line.strip_suffix(';')).expect("a list")).expect("JSON")
    };
    let all: Vec<&str> = Step::ALL.iter().map(|step| step.as_str()).collect();
    assert_eq!([list("STEPS"), list("ENDS")].concat(), all);
}

#[test]
fn the_recipe_reads_only_fields_that_there_are() {
    let readme = text("data/guide/spool.md");
    let recipe = readme.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a recipe");
    let chain = Regex::new(r#"\b([a-z]+)((?:\["\w+"\]|\.get\("\w+"\))+)"#).expect("an expression");
    let readings = chain.captures_iter(recipe).map(|found| {
        let path = found[2].split('"').skip(1).step_by(2).map(str::to_owned).collect();
        (found[1].to_owned(), path)
    });
    let (wrong, count) = missing(&RECIPE, readings);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(count > 12, "only {count} were found");
}
