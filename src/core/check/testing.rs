//! What the tests of the checks share: a good document, and a short way to judge one.

use super::{CheckInput, CommitLookup, FoundSecret, Lookups, PathLookup, faults};
use crate::contract::Facts;
use crate::contract::facts::{ChangedFile, RepositoryFacts};
use crate::contract::handoff::Author;

/// HEAD of the repository in all tests.
pub(super) const HEAD: &str = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d";

/// A document without a fault.
pub(super) const GOOD: &str = "\
---
checkpoint: the third test of the parser
verified: cargo test, 41 passed, at 1a2b3c4
---
# Handoff

## What I was working on
The parser must read numbers with exponents. It is done when `cargo test parser` passes and the benchmark does not get
slower than 40 ms.

## Current progress
Reading works and is checked. Printing is half made: `src/print.rs` still drops the sign of the exponent.
Committed on branch `exponents` as 1a2b3c4.

## Key decisions and why
I rejected a regular expression, because it was three times slower on the long example.

## Blockers
None.

## Files modified
- `src/parser.rs`: the new states
- `src/print.rs`: half made, see line 88

## Next steps
1. Run `cargo test print` and repair the sign.
2. Then measure with `scripts/bench`.
";

/// All that a document is checked against.
pub(super) struct World {
    pub(super) author: Author,
    pub(super) is_urgent: bool,
    pub(super) document_path: Option<&'static str>,
    pub(super) facts: Facts,
    pub(super) lookups: Lookups,
    pub(super) predecessor: Option<String>,
    pub(super) secrets: Vec<FoundSecret>,
}

impl Default for World {
    fn default() -> World {
        let head = CommitLookup::Known { hash: HEAD.to_owned(), on_remote: true, differs_from_head: false };
        let mut lookups = Lookups::default();
        lookups.commits.insert("1a2b3c4".to_owned(), head);
        lookups.branches.insert("exponents".to_owned(), true);
        for path in ["src/parser.rs", "src/print.rs", "src"] {
            lookups.paths.insert(path.to_owned(), PathLookup::Exists);
        }
        World {
            author: Author::AgentFile,
            is_urgent: false,
            document_path: Some("/work/handoffs/20260220T143025-6f1c3a52.md"),
            facts: Facts { repository: Some(repository()), ..Facts::default() },
            lookups,
            predecessor: None,
            secrets: Vec::new(),
        }
    }
}

impl World {
    pub(super) fn repository(&mut self) -> &mut RepositoryFacts {
        self.facts.repository.get_or_insert_default()
    }

    /// Adds files that differ from HEAD, in a state as `git status` prints it.
    pub(super) fn changes(&mut self, state: &str, paths: &[&str]) {
        let changed = paths.iter().map(|path| ChangedFile { path: (*path).to_owned(), state: state.to_owned() });
        self.repository().status.extend(changed);
    }

    pub(super) fn unknown_commit(&mut self, hash: &str) {
        self.lookups.commits.insert(hash.to_owned(), CommitLookup::Missing);
    }

    pub(super) fn missing(&mut self, path: &str) {
        self.lookups.paths.insert(path.to_owned(), PathLookup::Missing);
    }

    pub(super) fn secret(&mut self, kind: &str, line: usize, last: &str) {
        self.secrets.push(FoundSecret { kind: kind.to_owned(), line, last: last.to_owned() });
    }
}

fn repository() -> RepositoryFacts {
    RepositoryFacts {
        root: "/work/project".to_owned(),
        branch: Some("exponents".to_owned()),
        head: Some(HEAD.to_owned()),
        upstream: Some("origin/exponents".to_owned()),
        ahead: Some(0),
        behind: Some(0),
        head_on_remote: Some(true),
        ..RepositoryFacts::default()
    }
}

/// The faults of a document, one line each: check, grade and sentence.
pub(super) fn judged(text: &str, world: &World) -> Vec<String> {
    let found = faults(&CheckInput {
        text,
        author: world.author,
        is_urgent: world.is_urgent,
        cwd: Some("/work/project"),
        document_path: world.document_path,
        facts: &world.facts,
        lookups: &world.lookups,
        predecessor: world.predecessor.as_deref(),
        instruction: include_str!("../../../data/prompts/instruction.md"),
        secrets: &world.secrets,
        min_chars: 400,
        max_bytes: 65_536,
    });
    let line = |fault: &crate::contract::DocumentFault| {
        format!("{} {}: {}", fault.check.as_str(), fault.grade.as_str(), fault.sentence())
    };
    found.iter().map(line).collect()
}

/// The faults of a document in the default world, in which the good document has none.
pub(super) fn faults_in_default_world(text: &str) -> Vec<String> {
    judged(text, &World::default())
}

/// The good document with `new` in the place of the first `old`.
pub(super) fn good_with(old: &str, new: &str) -> String {
    assert!(GOOD.contains(old), "{old}");
    GOOD.replacen(old, new, 1)
}

/// Only the faults that this check has found.
pub(super) fn only_check(check: &str, found: &[String]) -> Vec<String> {
    found.iter().filter(|fault| fault.starts_with(&format!("{check} "))).cloned().collect()
}
