//! The table of guards in `tests/guards` is true of the code: each text is there once, and the test that is named as
//! failing without it exists. Whether it does fail then is what `scripts/guards` tries.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

/// One guard: what is taken out where, what stands there then, and which test must fail.
#[derive(Debug, Default)]
struct Guard {
    heading: String,
    file: String,
    old: Vec<String>,
    new: Vec<String>,
    test: String,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The entries of one file, or the line that can't be understood.
fn read(text: &str) -> Result<Vec<Guard>, String> {
    let mut guards: Vec<Guard> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(heading) = line.strip_prefix("# ") {
            guards.push(Guard { heading: heading.to_owned(), ..Guard::default() });
            continue;
        }
        let guard = guards.last_mut().ok_or_else(|| format!("before the first heading: {line}"))?;
        match line.split_once(' ') {
            Some(("in", file)) => file.clone_into(&mut guard.file),
            Some(("-", text)) => guard.old.push(text.to_owned()),
            Some(("+", text)) => guard.new.push(text.to_owned()),
            Some(("fails", test)) => test.clone_into(&mut guard.test),
            _ => return Err(line.to_owned()),
        }
    }
    Ok(guards)
}

/// What is wrong with an entry.
fn fault(guard: &Guard) -> Option<String> {
    let (old, new) = (guard.old.join("\n"), guard.new.join("\n"));
    if old.trim().is_empty() || old == new {
        return Some("nothing is taken out".to_owned());
    }
    let text = fs::read_to_string(root().join(&guard.file)).unwrap_or_default();
    let found = text.matches(&old).count();
    if found != 1 {
        return Some(format!("{} has its text {found} times", guard.file));
    }
    (!crate::rules::exists(&guard.test)).then(|| format!("there is no test {}", guard.test))
}

#[test]
fn every_guard_is_where_its_entry_says_and_has_its_test() {
    let (mut wrong, mut headings, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for table in fs::read_dir(root().join("tests/guards")).expect("the tables") {
        let path = table.expect("a table").path();
        let room = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let guards = read(&fs::read_to_string(&path).expect("readable"));
        for guard in guards.unwrap_or_else(|line| panic!("tests/guards/{room}: what is this line? {line}")) {
            count += 1;
            wrong.extend(fault(&guard).map(|fault| format!("{}: {fault}", guard.heading)));
            let is_here = guard.heading.starts_with(&format!("{room}/"))
                && (guard.file == format!("src/{room}.rs") || guard.file.starts_with(&format!("src/{room}/")));
            if !is_here {
                wrong.push(format!("{} does not belong into tests/guards/{room}", guard.heading));
            }
            if !headings.insert(guard.heading.clone()) {
                wrong.push(format!("{}: twice", guard.heading));
            }
        }
    }
    assert!(wrong.is_empty(), "a guard that was moved or changed needs its entry changed: {wrong:#?}");
    assert!(count > 0, "no guards at all");
}
