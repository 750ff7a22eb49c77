//! The modules of the page of `tasuki serve`: short files without circles of imports, and no text that becomes HTML or
//! code.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

const LONGEST_FILE: usize = 400;

/// What would make a text of an agent into HTML or code, or load something from elsewhere.
const FORBIDDEN: [&str; 12] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "createContextualFragment",
    "setHTML",
    "eval(",
    "new Function",
    "import(",
    ".style.",
    "style:",
];

/// Each file of the page, by its name.
fn files() -> BTreeMap<String, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data/page");
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("readable"))
    };
    fs::read_dir(folder).expect("the page").map(read).collect()
}

/// Each module, with the names that it imports, by the module that they come from.
fn imports() -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
    let line = Regex::new(r#"(?m)^import \{ ([^}]+) \} from "\./([a-z]+\.js)";$"#).expect("an expression");
    let modules = files().into_iter().filter(|(name, _)| name.ends_with(".js"));
    let of = |text: &str| {
        let found = line.captures_iter(text);
        found.map(|one| (one[2].to_owned(), one[1].split(", ").map(str::to_owned).collect())).collect()
    };
    let all: BTreeMap<_, _> =
        modules.map(|(name, text)| (name, (of(&text), text.matches("\nimport ").count()))).collect();
    for (name, (read, count)) in &all {
        let read: &BTreeMap<String, Vec<String>> = read;
        assert_eq!(read.len(), *count, "{name} has an import that this test can't read");
    }
    all.into_iter().map(|(name, (read, _))| (name, read)).collect()
}

#[test]
fn each_file_is_short_and_says_at_its_top_what_it_is() {
    for (name, text) in files() {
        let lines = text.lines().count();
        assert!(lines <= LONGEST_FILE, "{name} has {lines} lines");
        assert!(!name.ends_with(".js") || text.starts_with("// "), "{name} does not say what it is");
    }
}

#[test]
fn no_text_becomes_html_or_code() {
    for (name, text) in files() {
        let found: Vec<&str> = FORBIDDEN.into_iter().filter(|word| text.contains(word)).collect();
        assert!(found.is_empty() || name.ends_with(".css"), "{name}: {found:?}");
        let other = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!other.contains("http://") && !other.contains("https://"), "{name} names another site");
    }
}

#[test]
fn each_import_is_exported_and_used() {
    let files = files();
    for (name, from) in imports() {
        let text = &files[&name];
        for (module, names) in from {
            let exporter = files.get(&module).unwrap_or_else(|| panic!("{name} imports {module}, which is not there"));
            for imported in names {
                let export = Regex::new(&format!(r"(?m)^export (?:async )?(?:const|function|class) {imported}\b"));
                assert!(export.expect("an expression").is_match(exporter), "{module} does not export {imported}");
                let uses = Regex::new(&format!(r"\b{imported}\b")).expect("an expression").find_iter(text).count();
                assert!(uses > 1, "{name} imports {imported} and does not use it");
            }
        }
    }
}

#[test]
fn no_module_imports_itself_through_others() {
    let mut left: BTreeMap<String, BTreeSet<String>> =
        imports().into_iter().map(|(name, from)| (name, from.into_keys().collect())).collect();
    while !left.is_empty() {
        let next: Vec<String> = left
            .iter()
            .filter(|(_, from)| from.iter().all(|module| !left.contains_key(module)))
            .map(|(name, _)| name.clone())
            .collect();
        assert!(!next.is_empty(), "a circle among {:?}", left.keys());
        next.iter().for_each(|name| drop(left.remove(name)));
    }
}
