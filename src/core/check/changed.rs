//! Changed files that a document does not name.

use super::lines::Document;
use super::made::is_tool_folder;
use super::report::{FaultReport, short};
use crate::contract::document::{FaultCheck, FaultGrade};
use crate::contract::facts::{ActionFacts, ChangedFile, RepositoryFacts};
use std::collections::{BTreeMap, BTreeSet};

/// With so many unnamed files or more, tasuki asks the agent to name them. Fewer are only a warning. Files that may be
/// the user's own are not counted.
const MANY: usize = 3;
/// The largest number of names of folders that count as naming one file.
const MOST_FOLDERS: usize = 50;
/// The largest number of patterns and absolute paths of a document that are looked at.
const MOST_PATTERNS: usize = 200;
/// The largest number of names in one fault.
const MOST_NAMES: usize = 6;
/// Longest name in a fault, in characters.
const MAX_NAME: usize = 60;
/// Longest list of names in one fault, with its commas, in characters.
const MAX_NAMES: usize = 170;

/// Folders that tools make, beside those in `made.rs`. A file in such a folder counts only if git tracks it.
const TOOLS: [&str; 5] = [".idea", ".vscode", ".pytest_cache", ".mypy_cache", ".ruff_cache"];
/// Files that tools write as a by-product, so that no document needs to name them.
const BY_TOOLS: [&str; 12] = [
    "Cargo.lock",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lockb",
    "bun.lock",
    "poetry.lock",
    "uv.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    ".DS_Store",
];

/// The changed files that a reader would want to know of.
#[derive(Debug, Default)]
pub(super) struct Changed<'a> {
    /// Relative to the root of the repository.
    pub(super) paths: Vec<&'a str>,
    /// Those of them that git does not track.
    untracked: BTreeSet<&'a str>,
    /// The absolute path of the root, without the slashes at its beginning and end.
    root: &'a str,
}

/// The changed files, without those that tools make and those in the folder of the document.
pub(super) fn changed<'a>(repository: &'a RepositoryFacts, document_path: Option<&str>) -> Changed<'a> {
    let own =
        document_path.and_then(|path| path.strip_prefix(repository.root.trim_end_matches('/'))?.strip_prefix('/'));
    let own_folder = own.and_then(|path| path.rsplit_once('/')).map(|(folder, _)| format!("{folder}/"));
    let is_own = |path: &str| {
        let is_above = path.ends_with('/') && own.is_some_and(|own| own.starts_with(path));
        is_above || own == Some(path) || own_folder.as_deref().is_some_and(|folder| path.starts_with(folder))
    };
    let is_by_tools = |path: &str| {
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        BY_TOOLS.contains(&name) || name.ends_with(".log") || name.ends_with(".pyc") || name.ends_with(".swp")
    };
    let is_built = |path: &str| path.split('/').any(|part| is_tool_folder(part, &TOOLS));
    let is_untracked = |file: &ChangedFile| file.state == "??" || file.state == "!!";
    let counts = |file: &&ChangedFile| {
        !(is_own(&file.path) || is_by_tools(&file.path) || is_untracked(file) && is_built(&file.path))
    };
    let files: Vec<&ChangedFile> = repository.status.iter().filter(counts).collect();
    let untracked = files.iter().filter(|file| is_untracked(file));
    Changed {
        paths: files.iter().map(|file| file.path.as_str()).collect(),
        untracked: untracked.map(|file| file.path.as_str()).collect(),
        root: repository.root.trim_matches('/'),
    }
}

/// Reports the files that the document does not name. `actions`: what the agent did, if it is known.
pub(super) fn check(
    document: &Document<'_>,
    changed: &Changed<'_>,
    actions: Option<&ActionFacts>,
    report: &mut FaultReport,
) {
    let unnamed = unnamed(document, changed);
    if unnamed.is_empty() {
        return;
    }
    let mut names: Vec<String> = Vec::new();
    let mut left = MAX_NAMES;
    for path in unnamed.iter().take(MOST_NAMES) {
        let name = short(path, MAX_NAME);
        let Some(rest) = left.checked_sub(name.chars().count() + 2) else { break };
        left = rest;
        names.push(name);
    }
    let more = unnamed.len() - names.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let said = match unnamed.len() {
        1 => "the document does not name a changed file".to_owned(),
        count => format!("the document does not name {count} changed files"),
    };
    let is_the_users = |path: &str| changed.untracked.contains(path) && actions.is_some_and(|did| !made(did, path));
    let is_many = unnamed.iter().filter(|path| !is_the_users(path)).count() >= MANY;
    let grade = if is_many { FaultGrade::Fix } else { FaultGrade::Warn };
    report.add(FaultCheck::DirtyFiles, grade, None, &said, &format!("git status lists {}{more}", names.join(", ")));
}

/// Whether the agent has written a file of this path, or into a folder of this path, or has run a command that names
/// it.
fn made(actions: &ActionFacts, path: &str) -> bool {
    let pattern = FilePattern { folder: path.trim_end_matches('/'), end: "" };
    let name = base_name(path);
    // With a slash at its end, a file counts as a folder of its own.
    actions.files.iter().any(|file| pattern.fits(&format!("{}/", file.path)))
        || actions.commands.iter().any(|command| command.command.contains(name))
}

/// The paths that the document does not name. It names a path by any of these: the whole path, the base name with or
/// without its extension, a folder that contains it, or a pattern with such a folder.
fn unnamed<'p>(document: &Document<'_>, changed: &Changed<'p>) -> Vec<&'p str> {
    let paths = &changed.paths;
    let mut wanted: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    // This spares a search in the map for most words: they do not even share the short hash of a name.
    let mut may_be_wanted = [false; 1 << 16];
    for (at, path) in paths.iter().enumerate() {
        for name in names(path) {
            wanted.entry(name).or_default().push(at);
            may_be_wanted[short_hash(name)] = true;
        }
    }
    let mut named = vec![false; paths.len()];
    for line in &document.lines {
        for word in words(line.text) {
            let word = word.trim_matches(['.', '/', '-']);
            let base = word.contains('/').then(|| base_name(word));
            for form in [Some(word), base].into_iter().flatten().filter(|form| may_be_wanted[short_hash(form)]) {
                for at in wanted.get(form).into_iter().flatten() {
                    named[*at] |= is_one_word(paths[*at]) || line.text.contains(base_name(paths[*at]));
                }
            }
        }
    }
    name_folders(document, paths, &mut named);
    let all = document.lines.iter().flat_map(|line| patterns(line.text, changed.root));
    let patterns: Vec<FilePattern<'_>> = all.take(MOST_PATTERNS).collect();
    let is_unnamed = |(path, named): &(&&str, bool)| !named && !patterns.iter().any(|pattern| pattern.fits(path));
    paths.iter().zip(named).filter(is_unnamed).map(|(path, _)| *path).collect()
}

/// Git shows a new folder as one path with a slash at its end. A document that names a file below it names the folder.
fn name_folders(document: &Document<'_>, paths: &[&str], named: &mut [bool]) {
    let folders = paths.iter().enumerate().filter(|(_, path)| path.ends_with('/'));
    let folders: BTreeMap<&str, usize> = folders.map(|(at, path)| (path.trim_end_matches('/'), at)).collect();
    if folders.is_empty() {
        return;
    }
    let words = document.lines.iter().flat_map(|line| words(line.text)).filter(|word| word.contains('/'));
    for word in words {
        let slashes = || word.match_indices('/').map(|(at, _)| at).take(MOST_FOLDERS);
        for from in std::iter::once(0).chain(slashes().map(|at| at + 1)) {
            for to in slashes().filter(|to| from < *to && to + 1 < word.len()) {
                if let Some(at) = folders.get(&word[from..to]) {
                    named[*at] = true;
                }
            }
        }
    }
}

/// A pattern such as `src/commands/*.md`. Only its folder, `src/commands`, and its end, `.md`, are compared. The
/// absolute path of a folder counts as a pattern with an empty end.
#[derive(Debug)]
struct FilePattern<'a> {
    folder: &'a str,
    end: &'a str,
}

impl FilePattern<'_> {
    /// Whether a path ends as the pattern does and has the pattern's folder in it, at any depth.
    fn fits(&self, path: &str) -> bool {
        let starts_there = |(at, _): (usize, &str)| {
            let is_first = at == 0 || path.as_bytes()[at - 1] == b'/';
            is_first && path.as_bytes().get(at + self.folder.len()) == Some(&b'/')
        };
        path.ends_with(self.end) && path.match_indices(self.folder).any(starts_there)
    }
}

/// The patterns in a text that begin with a folder, and the absolute paths below the root.
fn patterns<'a>(text: &'a str, root: &'a str) -> impl Iterator<Item = FilePattern<'a>> {
    let is_in_a_pattern = |c: char| u8::try_from(c).is_ok_and(is_in_a_word) || matches!(c, '*' | '{' | '}' | ',');
    let may_have = text.contains(['*', '{']) || text.contains(root);
    let words = may_have.then(|| text.split(move |c: char| !is_in_a_pattern(c)));
    words.into_iter().flatten().filter_map(move |word| {
        // Stars around a word are emphasis.
        let is_bold = word.strip_prefix("**").filter(|rest| !rest.starts_with('/'));
        let word = is_bold.map_or(word, |rest| rest.trim_end_matches('*')).trim_end_matches([',', '.']);
        let word = word.strip_prefix("**/").unwrap_or(word).trim_start_matches(['.', '/']);
        let below = word.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        let folder = match word.find(['*', '{']) {
            Some(at) => word[..at].rsplit_once('/')?.0,
            None => below?.trim_end_matches('/'),
        };
        let folder = folder.strip_prefix(root).map_or(folder, |rest| rest.trim_start_matches('/'));
        let end = word.rfind(['*', '}']).map_or("", |at| &word[at + 1..]);
        (!folder.is_empty()).then_some(FilePattern { folder, end })
    })
}

/// A number below 65,536, made of a word's length, first byte and last byte. Different words may share a number, so it
/// can only rule words out.
fn short_hash(word: &str) -> usize {
    let bytes = word.as_bytes();
    let (first, last) = (bytes.first().copied().unwrap_or_default(), bytes.last().copied().unwrap_or_default());
    (bytes.len() % 64) << 10 | usize::from(first % 32) << 5 | usize::from(last % 32)
}

/// Whether the base name of a path is one word for [`words`]. A base name with blanks or accents is several words, and
/// counts as named only in a line that has all of it.
fn is_one_word(path: &str) -> bool {
    base_name(path).bytes().all(is_in_a_word)
}

/// The words of a text that can be names of files.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        let start = at + bytes[at..].iter().position(|byte| is_in_a_word(*byte))?;
        let length = bytes[start..].iter().position(|byte| !is_in_a_word(*byte)).unwrap_or(bytes.len() - start);
        at = start + length;
        Some(&text[start..at])
    })
}

/// The words by which a path can be named.
fn names(path: &str) -> Vec<&str> {
    /// Names that say nothing without their folder.
    const USUAL: [&str; 12] =
        ["index", "main", "mod", "lib", "test", "tests", "utils", "page", "config", "types", "setup", "app"];
    let path = path.trim_end_matches('/');
    let base = base_name(path);
    if !is_one_word(path) {
        return words(base).max_by_key(|word| word.len()).into_iter().collect();
    }
    let stem = base.trim_start_matches('.').split('.').next().unwrap_or_default();
    // The folders that contain the file, each by its path or by an end of its path. A single name could mean anything.
    let folders = path.match_indices('/').map(|(at, _)| &path[..at]);
    let ends = folders.flat_map(|folder| {
        let ends = folder.match_indices('/').map(|(at, _)| &folder[at + 1..]);
        std::iter::once(folder).chain(ends).filter(|end| end.contains('/'))
    });
    let mut names: Vec<&str> = ends.take(MOST_FOLDERS).collect();
    names.extend([path, base, base.trim_start_matches('.')]);
    if stem.len() > 3 && !USUAL.contains(&stem) {
        names.push(stem);
    }
    names
}

fn base_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

fn is_in_a_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-' | b'+' | b'@')
}

#[cfg(test)]
mod tests {
    use super::super::testing::{GOOD, World, judged};
    use crate::contract::facts::{ActionFacts, CommandFacts, WrittenFile};

    #[test]
    fn a_new_folder_is_named_by_a_file_below_it() {
        let mut world = World::default();
        world.changes("??", &["src/billing/", "src/invoice/", "docs/adr/", "cookies/"]);
        let text = GOOD.replace(
            "## Next steps",
            "New: `src/billing/mod.rs`, `/work/project/src/invoice/a/lib.rs`, `docs/adr/0001.md`, `cookies/basic.rs`.\n\n## Next steps",
        );
        assert_eq!(judged(&text, &world), Vec::<String>::new());
        let text = GOOD.replace("## Next steps", "Read src/billing.rs/x and billing/mod.rs.\n\n## Next steps");
        assert!(judged(&text, &world).join("").contains("does not name 4 changed files"), "other files");
    }

    /// The user's own notes lay there before the agent began.
    #[test]
    fn untracked_files_that_the_agent_has_not_made_are_only_a_warning() {
        let mut world = World::default();
        world.changes("??", &["notes.txt", "todo/", "scratch.py"]);
        let graded =
            |world: &World| judged(GOOD, world).join("\n").chars().take("dirty_files warn".len()).collect::<String>();
        assert_eq!(graded(&world), "dirty_files fix:", "nothing is known of what the agent did");
        world.facts.actions = Some(ActionFacts::default());
        assert_eq!(graded(&world), "dirty_files warn");
        let wrote = |path: &str| WrittenFile { path: path.to_owned(), state: "exists".to_owned() };
        let ran = |command: &str| CommandFacts { command: command.to_owned(), ..CommandFacts::default() };
        world.facts.actions = Some(ActionFacts {
            files: vec![
                wrote("/work/project/todo/first.md"),
                wrote("old-notes.txt"),
                wrote("/work/project/scratch.py"),
            ],
            ..ActionFacts::default()
        });
        assert_eq!(graded(&world), "dirty_files warn", "two of them");
        world.facts.actions.as_mut().expect("they are known").commands = vec![ran("cat > notes.txt <<E")];
        assert_eq!(graded(&world), "dirty_files fix:");
        world.facts.actions = Some(ActionFacts::default());
        world.changes(" M", &["src/a.rs", "src/b.rs", "src/c.rs"]);
        assert_eq!(
            graded(&world),
            "dirty_files fix:",
            "tracked files count, also those that the agent has not written"
        );
    }
}
