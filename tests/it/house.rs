//! The rules of the house that no compiler checks: which room may look into which, what the pure core never touches,
//! how long a file may be.

use crate::support::sources::{files_below, repository};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The rooms by rank: a room may look into rooms of a lower rank only. Rooms of the same rank never look into each
/// other.
const ROOMS: [(&str, u8); 27] = [
    ("contract", 0),
    ("child", 1),
    ("core", 1),
    ("darwin", 1),
    ("files", 1),
    ("limits", 1),
    ("exit", 1),
    ("secrets", 1),
    ("agents", 2),
    ("clock", 2),
    ("config", 2),
    ("demo", 2),
    ("fleet", 2),
    ("git", 2),
    ("notify", 2),
    ("personas", 2),
    ("process", 2),
    ("publish", 2),
    ("service", 2),
    ("spool", 2),
    ("store", 2),
    ("tmux", 2),
    ("runner", 3),
    ("sidecar", 4),
    ("cli", 5),
    ("bridge", 6),
    ("lib", 7),
];

/// What would make the core depend on when or where it runs.
const IMPURE: [&str; 22] = [
    "std::fs",
    "std::process",
    "std::net",
    "std::env",
    "std::io",
    "std::thread",
    "std::time",
    "Instant::now",
    "SystemTime",
    "Utc::now",
    "Local::now",
    "HashMap",
    "HashSet",
    "now_v7",
    "new_v4",
    "rand::",
    "tokio",
    "redb",
    "nix::",
    "notify::",
    "println!",
    "tracing::",
];

const LONGEST_FILE: usize = 400;

/// Every Rust file in `src`: its path from there, and its text.
fn sources() -> BTreeMap<String, String> {
    let src = repository().join("src");
    files_below(&src, &["rs"])
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&src).expect("below src").display().to_string();
            (name, fs::read_to_string(&path).expect("readable"))
        })
        .collect()
}

/// The text without comments and without what stands between quotation marks, so that words there count for nothing.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    for line in text.lines() {
        let mut quoted = false;
        let mut before = ' ';
        let letters: Vec<char> = line.chars().collect();
        for (at, letter) in letters.iter().enumerate() {
            if !quoted && *letter == '/' && letters.get(at + 1) == Some(&'/') {
                break;
            }
            if *letter == '"' && before != '\\' && !(before == '\'' && letters.get(at + 1) == Some(&'\'')) {
                quoted = !quoted;
            }
            if !quoted {
                code.push(*letter);
            }
            before = if before == '\\' { ' ' } else { *letter };
        }
        code.push('\n');
    }
    code
}

/// The room of a file: its first folder, or its own name.
fn room(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

/// The rooms that a text looks into: the first segments of its `crate::` paths, also of grouped ones.
fn looks_into(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let mut rooms = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        if code[..at].ends_with('$') {
            continue;
        }
        let rest = &code[at + start.len()..];
        match rest.strip_prefix('{') {
            Some(group) => rooms.extend(members(group)),
            None => rooms.extend(first_word(rest)),
        }
    }
    rooms
}

/// The first segments of a `{…}` group of paths.
fn members(group: &str) -> Vec<String> {
    let mut depth = 1;
    let mut member = String::new();
    let mut found = Vec::new();
    for letter in group.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && letter == ',') {
            found.extend(first_word(&std::mem::take(&mut member)));
            if depth == 0 {
                break;
            }
        } else {
            member.push(letter);
        }
    }
    found
}

fn first_word(path: &str) -> Option<String> {
    let word: String =
        path.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn every_room_is_known_and_looks_only_downwards() {
    let ranks: BTreeMap<&str, u8> = ROOMS.into_iter().collect();
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        if file == "main.rs" || file.starts_with("bin/") {
            continue;
        }
        let own = room(&file);
        let Some(rank) = ranks.get(own) else {
            wrong.push(format!("{file}: the room {own} has no rank; give it one here, and a line in the README"));
            continue;
        };
        for other in looks_into(&text).iter().filter(|other| *other != own) {
            // A macro or a re-export at the top of the crate is nobody's room.
            if let Some(theirs) = ranks.get(other.as_str()).filter(|theirs| *theirs >= rank) {
                wrong.push(format!("{file} (rank {rank}) looks into {other} (rank {theirs})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Files of `cli` that go through JSON by name which no type of `contract` describes: what people give, and schemas.
const BY_NAME: [&str; 5] =
    ["cli/ack.rs", "cli/schema.rs", "cli/serve/openapi.rs", "cli/serve/openapi_hosts.rs", "cli/work/import_export.rs"];

/// What the sidecar writes is read by its type: nobody in `cli` reads a field by name, for no compiler sees where that
/// is wrong.
#[test]
fn nobody_in_cli_reads_a_field_by_its_name() {
    let by_name = regex::Regex::new(r#"\.get\("[a-z_]+"\)|\["[a-z_]+"\]( = )?"#).expect("an expression");
    let (mut wrong, mut known) = (Vec::new(), BTreeSet::new());
    for (file, text) in sources().into_iter().filter(|(file, _)| room(file) == "cli" && !file.ends_with("tests.rs")) {
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (number, line) in text.lines().enumerate() {
            // What is written by name is only now being made.
            if by_name.captures_iter(line).all(|found| found.get(1).is_some()) {
                continue;
            }
            match BY_NAME.iter().find(|known| **known == file) {
                Some(name) => drop(known.insert(*name)),
                None => wrong.push(format!("src/{file}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(known.len(), BY_NAME.len(), "of {BY_NAME:?} only {known:?} do");
}

#[test]
fn the_core_touches_no_file_no_clock_no_process_and_no_chance() {
    let mut wrong = Vec::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| ["contract", "core"].contains(&room(file))) {
        for (number, line) in code(&text).lines().enumerate() {
            let found = IMPURE.into_iter().filter(|word| line.contains(word));
            wrong.extend(found.map(|word| format!("src/{file}:{}: {word}", number + 1)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_source_file_is_longer_than_four_hundred_lines() {
    let long = sources().into_iter().map(|(file, text)| (file, text.lines().count()));
    let long: Vec<_> = long.filter(|(_, lines)| *lines > LONGEST_FILE).collect();
    assert!(long.is_empty(), "{long:?}");
}

/// What one turn decides, writes and answers bears one time: the loop reads the clock when it wakes, when it goes to
/// sleep, when it tells the watchdog of a turn that is over, and at its beginning and end.
#[test]
fn a_turn_sees_one_clock() {
    let readings: Vec<(String, usize)> = sources()
        .into_iter()
        .filter(|(file, _)| room(file) == "sidecar" && !file.ends_with("tests.rs"))
        .map(|(file, text)| (file, code(&text).matches("clock.now()").count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let allowed = [("sidecar/cycle.rs", 1), ("sidecar/start.rs", 1), ("sidecar/wait.rs", 3)];
    assert_eq!(readings, allowed.map(|(file, count)| (file.to_owned(), count)));
}

#[test]
fn nothing_is_left_to_do() {
    let words =
        [["to", "do!("].concat(), ["unimple", "mented!("].concat(), ["TO", "DO"].concat(), ["FIX", "ME"].concat()];
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                wrong.push(format!("src/{file}:{}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_source_file_says_what_it_is_for() {
    let silent: Vec<String> =
        sources().into_iter().filter(|(_, text)| !text.starts_with("//!")).map(|(file, _)| file).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

/// What others may call or name says what it does, with its errors and where a rule comes from. A field whose name says
/// it all needs no words beside it.
#[test]
fn whatever_others_may_use_says_what_it_is() {
    let kinds =
        ["fn ", "async fn ", "const fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "macro_rules! "];
    let mut silent = Vec::new();
    for (file, text) in sources() {
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix("pub ") else { continue };
            // What a macro makes is described where the macro is used.
            if !kinds.iter().any(|kind| rest.starts_with(kind)) || rest.contains('$') {
                continue;
            }
            let above = without_attributes(&lines[..number]);
            if !above.is_some_and(|line| line.starts_with("///")) {
                silent.push(format!("src/{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(silent.is_empty(), "without a doc comment:\n{}", silent.join("\n"));
}

/// The last line that is in no attribute. One that takes several lines ends with a bracket.
fn without_attributes<'l>(above: &[&'l str]) -> Option<&'l str> {
    let mut inside = false;
    above.iter().rev().map(|line| line.trim_start()).find(|line| {
        let begins = line.starts_with("#[");
        let ends = line.ends_with(")]") || *line == "]";
        inside = (inside || ends) && !begins;
        !(begins || ends || inside)
    })
}

#[test]
fn scripts_can_be_run() {
    let mut scripts = files_below(&repository().join("scripts"), &[]);
    scripts.push(repository().join(".ci/run"));
    for script in scripts.iter().filter(|path| path.extension().is_none()) {
        let mode = fs::metadata(script).expect("a script").permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{}", script.display());
        let text = fs::read_to_string(script).expect("readable");
        assert!(text.starts_with("#!"), "{} has no interpreter line", script.display());
    }
}

/// What is fetched comes from where the system, cargo or npm are told to fetch from: the user has chosen that.
#[test]
fn scripts_name_no_place_to_fetch_from() {
    // A hint for people, and the name of a format.
    let fine = ["https://rustup.rs", "http://www.w3.org/2000/svg"];
    let mut found = Vec::new();
    let folders = ["scripts", ".ci"].map(|folder| files_below(&repository().join(folder), &[]));
    for script in folders.into_iter().flatten() {
        let text = String::from_utf8_lossy(&fs::read(&script).expect("readable")).into_owned();
        let addresses = text.lines().filter(|line| {
            let line = fine.iter().fold((*line).to_owned(), |line, fine| line.replace(fine, ""));
            // This very machine is nobody's.
            let line = line.replace("http://127.0.0.1", "").replace("http://localhost", "");
            line.contains("http://") || line.contains("https://")
        });
        found.extend(addresses.map(|line| format!("{}: {line}", script.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Programs that tests wait for. Those of `tests/it` start none of them: that part is to take seconds.
const WAITED_FOR: [&str; 5] = ["gh", "prlimit", "strace", "tmux", "unshare"];

#[test]
fn the_fast_tests_start_no_program_that_runs_on() {
    let mut files = files_below(&repository().join("tests/it"), &[]);
    files.extend(shared("it").iter().map(|name| repository().join(format!("tests/support/{name}.rs"))));
    let text = |path: &PathBuf| fs::read_to_string(path).expect("readable");
    let starts = |path: &&PathBuf| WAITED_FOR.iter().any(|name| text(path).contains(&format!("new(\"{name}\")")));
    let wrong: Vec<&PathBuf> = files.iter().filter(starts).collect();
    assert!(wrong.is_empty(), "what starts such a program belongs into tests/e2e: {wrong:#?}");
}

/// What one part of the tests shares of `tests/support`.
fn shared(part: &str) -> BTreeSet<String> {
    let list = fs::read_to_string(repository().join("tests").join(part).join("support.rs")).expect("a list");
    list.lines().filter_map(|line| Some(line.split_once("/support/")?.1.split_once(".rs\"")?.0.to_owned())).collect()
}

/// The modules in a folder of tests.
fn modules(folder: &str) -> BTreeSet<String> {
    let paths =
        fs::read_dir(repository().join("tests").join(folder)).expect("a folder").map(|it| it.expect("an entry").path());
    let is_one = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs") || path.join("mod.rs").exists();
    let names = paths.filter(is_one).filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    names.filter(|name| name != "main").collect()
}

/// A file that no list names is never built, and says nothing; a test is found by its module's name alone.
#[test]
fn every_file_of_the_tests_is_a_module_of_one_part() {
    let [fast, real] = ["it", "e2e"].map(modules);
    assert_eq!(fast.intersection(&real).collect::<Vec<_>>(), ["support"], "one name in both parts");
    for (part, modules) in [("it", fast), ("e2e", real)] {
        let main = fs::read_to_string(repository().join("tests").join(part).join("main.rs")).expect("readable");
        let left_out: Vec<_> = modules.iter().filter(|name| !main.contains(&format!("\nmod {name};\n"))).collect();
        assert!(left_out.is_empty(), "tests/{part}/main.rs does not name {left_out:?}");
    }
    assert_eq!(&shared("it") | &shared("e2e"), modules("support"));
}

#[test]
fn paths_are_found_in_any_form() {
    let text = "use crate::core::id;\nuse crate::{exit, tmux::{client, pane}, spool};\n// crate::notify\nlet x = \"crate::demo\"; crate::cli::main();";
    let found: Vec<String> = looks_into(text).into_iter().collect();
    assert_eq!(found, ["cli", "core", "exit", "spool", "tmux"]);
}

#[test]
fn nothing_is_printed_by_a_macro_that_panics_when_its_reader_has_gone() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        if file.ends_with("tests.rs") {
            continue;
        }
        let text = code(text.split("#[cfg(test)]\nmod ").next().unwrap_or_default());
        // `println!`, `eprintln!`, `eprint!`, and `print!` of its own.
        let prints = |line: &&str| {
            line.contains("println!") || line.contains("eprint!") || line.trim_start().starts_with("print!")
        };
        found.extend(text.lines().filter(prints).map(|line| format!("{file}: {}", line.trim())));
    }
    assert!(found.is_empty(), "write to the stream, and mind that nobody may read it: {found:#?}");
}
