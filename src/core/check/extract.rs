//! Finds the commits, branches and paths that a document names, and the lines in which it names them.

use super::claims::Claims;
use super::lines::{Document, read};
use super::places::{Place, has_phrase, has_word, places};
use super::{branches, commits, paths};
use std::collections::{BTreeMap, BTreeSet};

/// The largest number of commits, branches and paths of one document that are looked up.
const MOST_COMMITS: usize = 50;
const MOST_BRANCHES: usize = 20;
const MOST_PATHS: usize = 200;
/// The largest number of lines that are searched for commits, for branches and for paths.
const MOST_LINES: usize = 2_000;

/// The first place where a document names a commit, a branch or a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mention<'a> {
    pub(super) line: usize,
    /// The line, or the beginning of a long one.
    pub(super) text: &'a str,
    /// Where the name, or the backtick before it, begins in the line, in bytes.
    pub(super) at: usize,
    /// This mention, or a later one of the same name, says where the work stands now. Always true for a path.
    pub(super) is_current: bool,
}

impl<'a> Mention<'a> {
    fn new(place: &Place<'a>, at: usize, is_current: bool) -> Mention<'a> {
        Mention { line: place.number, text: place.text, at, is_current }
    }
}

/// The commits, branches and paths that a document names, by name.
#[derive(Debug, Default)]
pub(super) struct Mentions<'a> {
    pub(super) commits: BTreeMap<&'a str, Mention<'a>>,
    pub(super) branches: BTreeMap<&'a str, Mention<'a>>,
    pub(super) paths: BTreeMap<&'a str, Mention<'a>>,
    /// The document speaks of several repositories.
    pub(super) names_several_repositories: bool,
}

/// The claims of the document that git can check. `cwd`: the agent's working directory.
#[must_use]
pub fn claims(text: &str, cwd: Option<&str>) -> Claims {
    let lower = text.to_ascii_lowercase();
    let found = mentions(&read(text, &lower), cwd);
    let names = |of: &BTreeMap<&str, Mention<'_>>| of.keys().map(|name| (*name).to_owned()).collect();
    let mut paths: BTreeSet<String> = names(&found.paths);
    paths.extend(found.paths.keys().filter_map(|path| paths::first_folder(path)).map(str::to_owned));
    Claims { commits: names(&found.commits), branches: names(&found.branches), paths }
}

pub(super) fn mentions<'a>(document: &Document<'a>, cwd: Option<&str>) -> Mentions<'a> {
    let mut found = Mentions::default();
    let mut elsewhere: BTreeSet<&'a str> = BTreeSet::new();
    let (mut lines_with_hashes, mut lines_with_branches, mut lines_with_paths) = (0, 0, 0);
    for place in places(document) {
        let speaks_of_several = |lower| has_word(lower, &["repos", "repositories", "submodule", "submodules"]);
        found.names_several_repositories |=
            has_phrase(place.lower, &["repos", "submodule"]) && speaks_of_several(place.lower);
        if lines_with_hashes < MOST_LINES && commits::may_name(&place) {
            lines_with_hashes += 1;
            add_commits(&place, cwd, &mut found.commits);
        }
        if lines_with_branches < MOST_LINES && branches::may_name(&place) {
            lines_with_branches += 1;
            add_branches(&place, cwd, &mut found.branches);
        }
        if lines_with_paths < MOST_LINES {
            lines_with_paths += usize::from(add_paths(&place, cwd, &mut found.paths, &mut elsewhere));
        }
    }
    // If one line says that a file is deleted or not made yet, it may be missing, although other lines name it too.
    found.paths.retain(|path, _| !elsewhere.contains(path));
    found
}

fn add_commits<'a>(place: &Place<'a>, cwd: Option<&str>, named: &mut BTreeMap<&'a str, Mention<'a>>) {
    for found in commits::in_line(place, cwd) {
        add(named, MOST_COMMITS, found.hash, Mention::new(place, found.at, found.is_head));
    }
}

fn add_branches<'a>(place: &Place<'a>, cwd: Option<&str>, named: &mut BTreeMap<&'a str, Mention<'a>>) {
    for (at, name) in branches::in_line(place, cwd) {
        // The first branch that a document names counts as the current one.
        let is_current = named.is_empty() || branches::is_current(place);
        add(named, MOST_BRANCHES, name, Mention::new(place, at, is_current));
    }
}

/// Adds the paths of a line. Returns whether it has any.
fn add_paths<'a>(
    place: &Place<'a>,
    cwd: Option<&str>,
    named: &mut BTreeMap<&'a str, Mention<'a>>,
    elsewhere: &mut BTreeSet<&'a str>,
) -> bool {
    let here = paths::in_line(place, cwd);
    if here.is_empty() {
        return false;
    }
    let are_elsewhere = paths::are_elsewhere(place);
    for found in here {
        if are_elsewhere && elsewhere.len() < MOST_PATHS {
            elsewhere.insert(found.path);
        } else if !are_elsewhere {
            add(named, MOST_PATHS, found.path, Mention::new(place, found.at, true));
        }
    }
    true
}

fn add<'a>(named: &mut BTreeMap<&'a str, Mention<'a>>, most: usize, name: &'a str, mention: Mention<'a>) {
    if named.len() < most || named.contains_key(name) {
        named.entry(name).or_insert(mention).is_current |= mention.is_current;
    }
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
