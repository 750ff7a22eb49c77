//! Paths in a document. A path is a single word in backticks with the extension of a file. It has a slash in it, or
//! `./` or the working directory before it.

use super::lines::LineKind;
use super::made::is_tool_folder;
use super::places::{Place, has_phrase, has_word};
use super::sections::is_about_next_steps;
use super::spans::{spans, without_code};

/// Longest path that is looked up, in bytes.
const MAX_PATH: usize = 250;
/// The largest number of words in backticks of one line that are looked at.
const MOST_IN_LINE: usize = 50;

/// Extensions of files. Any other extension may be the end of a version, of a domain or of a method.
const EXTENSIONS: [&str; 91] = [
    "adoc", "astro", "bash", "bat", "c", "cc", "cfg", "cjs", "clj", "cmake", "conf", "cpp", "cs", "css", "csv", "cu",
    "cxx", "dart", "ejs", "elm", "erb", "erl", "ex", "exs", "fish", "fs", "gd", "go", "gql", "gradle", "graphql", "h",
    "hcl", "hpp", "hs", "html", "htm", "ini", "ino", "ipynb", "java", "jl", "js", "json", "json5", "jsonl", "jsx",
    "kt", "kts", "less", "lua", "m", "md", "mdx", "mjs", "ml", "mm", "mts", "nix", "php", "pl", "plist", "prisma",
    "proto", "ps1", "py", "pyi", "r", "rb", "rs", "rst", "sass", "scala", "scss", "sh", "sol", "sql", "svelte", "svg",
    "swift", "tf", "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig", "zsh",
];
/// Folders, beside those in `made.rs`, whose files are made by a build or are not in git.
const NOT_IN_GIT: [&str; 9] =
    ["outputs", ".git", "bin", "vendor", "generated", "site-packages", "scratch", "scratchpad", "memory"];

/// Words in a line that say that a file does not exist: not any more, not yet, or not at all.
const NOT_THERE: [&str; 93] = [
    "created",
    "creates",
    "create",
    "creating",
    "deleted",
    "delete",
    "deletes",
    "deleting",
    "removed",
    "remove",
    "removes",
    "removing",
    "renamed",
    "rename",
    "renames",
    "moved",
    "moves",
    "dropped",
    "replaced",
    "replaces",
    "replace",
    "retired",
    "obsolete",
    "superseded",
    "legacy",
    "formerly",
    "former",
    "previously",
    "old",
    "was",
    "were",
    "gone",
    "lost",
    "absent",
    "missing",
    "nonexistent",
    "exist",
    "exists",
    "never",
    "no",
    "not",
    "don't",
    "doesn't",
    "isn't",
    "without",
    "instead",
    "will",
    "would",
    "should",
    "could",
    "may",
    "might",
    "planned",
    "plan",
    "propose",
    "proposed",
    "future",
    "later",
    "todo",
    "example",
    "examples",
    "template",
    "e.g",
    "eg",
    "placeholder",
    "if",
    "gitignored",
    "ignored",
    "untracked",
    "uncommitted",
    "generated",
    "generates",
    "regenerates",
    "regenerated",
    "regenerate",
    "regen",
    "output",
    "outputs",
    "produces",
    "writes",
    "written",
    "emits",
    "upstream",
    "submodule",
    "want",
    "wants",
    "wanted",
    "belongs",
    "factor",
    "endpoint",
    "endpoints",
    "s3",
    "bucket",
];
/// Words that say so of everything below them: in a heading, in the first row of a table, or above a list.
const NOT_THERE_ABOVE: [&str; 17] = [
    "deleted", "delete", "removed", "remove", "renamed", "moved", "planned", "plan", "proposed", "proposal", "future",
    "create", "creating", "creation", "missing", "example", "template",
];
/// Phrases, and parts of words in other languages, that say in a line that a file does not exist.
const NOT_THERE_PHRASES: [&str; 39] = [
    "to be ",
    "calls for",
    "call for",
    "called for",
    "asks for",
    "ask for",
    "asked for",
    "e.g.",
    "[ ]",
    "->",
    "→",
    "~~",
    "gitignore",
    "other repo",
    "repos",
    "gelöscht",
    "entfernt",
    "umbenannt",
    "erstellt",
    "geplant",
    "fehlt",
    "anlegen",
    "speichern",
    "neue",
    "削除",
    "作成",
    "予定",
    "移動",
    "删除",
    "新建",
    "创建",
    "新增",
    "计划",
    "移动",
    "삭제",
    "생성",
    "удал",
    "созда",
    "http",
];
/// Words in a line about work ahead that announce a new file.
const ANNOUNCES: [&str; 29] = [
    "add",
    "adds",
    "adding",
    "creation",
    "writing",
    "implementing",
    "new",
    "write",
    "implement",
    "build",
    "introduce",
    "extract",
    "generate",
    "make",
    "draft",
    "scaffold",
    "port",
    "split",
    "move",
    "set",
    "start",
    "produce",
    "save",
    "design",
    "put",
    "need",
    "needs",
    "copy",
    "goes",
];
/// Words in a heading or above a list that announce new files in the lines below.
const ANNOUNCES_ABOVE: [&str; 16] = [
    "add",
    "adding",
    "write",
    "writing",
    "implement",
    "implementing",
    "introduce",
    "extract",
    "generate",
    "draft",
    "scaffold",
    "port",
    "split",
    "produce",
    "save",
    "design",
];
/// Words in a heading that is about work ahead.
const AHEAD: [&str; 10] =
    ["task", "tasks", "backlog", "roadmap", "phase", "pending", "upcoming", "deferred", "spec", "criteria"];
/// Words in a path that are only examples of names, as in `path/to/your/file.rs`.
const EXAMPLE_NAMES: [&str; 20] = [
    "path",
    "your",
    "foo",
    "bar",
    "baz",
    "example",
    "xxx",
    "yyyy",
    "nnn",
    "placeholder",
    "some",
    "my",
    "hh",
    "mm",
    "dd",
    "slug",
    "n",
    "x",
    "nn",
    "xx",
];

/// A path in a line, relative to the working directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Path<'a> {
    /// Where the backtick before it is in the line, in bytes.
    pub(super) at: usize,
    pub(super) path: &'a str,
}

/// The paths in a line.
pub(super) fn in_line<'a>(place: &Place<'a>, cwd: Option<&str>) -> Vec<Path<'a>> {
    if !matches!(place.kind, LineKind::Text | LineKind::Heading(_)) {
        return Vec::new();
    }
    let text = place.text;
    let below = |code: &'a str| below(without_position(code), cwd);
    // As in "tokio's `tokio/src/lib.rs`".
    let is_of_another = |at: usize| text[..at].trim_end().ends_with("'s");
    let spans = spans(text).take(MOST_IN_LINE).filter(|span| !is_of_another(span.start));
    spans.filter_map(|span| Some(Path { at: span.start, path: below(span.code)? })).collect()
}

/// Whether the text around a line's paths says that these files need not exist.
pub(super) fn are_elsewhere(place: &Place<'_>) -> bool {
    // Words inside a name, such as `old/missing.rs`, say nothing about the file.
    let lower = &without_code(place.lower);
    let says_so = |text: &str| has_word(&without_code(text), &NOT_THERE) || has_phrase(text, &NOT_THERE_PHRASES);
    let is_table_of_repositories = has_word(place.table, &["repo", "repos", "repository"]);
    says_so(place.lower)
        || says_so(place.begun)
        || says_so(place.continued)
        || place.above().any(|text| has_word(text, &NOT_THERE_ABOVE))
        || is_table_of_repositories
        || is_announced(place, lower)
}

/// Whether a line is about work ahead that will make files: the line or the text above it says so.
fn is_announced(place: &Place<'_>, lower: &str) -> bool {
    place.headings_below_title().any(is_ahead)
        && (has_word(lower, &ANNOUNCES) || place.above().any(|text| has_word(text, &ANNOUNCES_ABOVE)))
}

/// Whether a heading is about work ahead.
fn is_ahead(heading: &str) -> bool {
    is_about_next_steps(heading) || has_word(heading, &AHEAD)
}

/// Whether a word without backticks is the name of a file, alone or with its folder, or a link to one.
pub(super) fn is_like_a_file(word: &str) -> bool {
    let word = word.rsplit_once("](").map_or(word, |(_, target)| target);
    let word = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '_'));
    let path = without_position(word);
    path.len() > 3 && is_plain(path) && has_extension(path)
}

/// A path without the line, the range of lines or the name after it: `a.rs:12`, `a.rs:3-9`, `a.rs#L4`, `a.py::test`.
fn without_position(code: &str) -> &str {
    let end = code.find([':', '#']).filter(|at| *at > 0).unwrap_or(code.len());
    &code[..end]
}

/// The path relative to the working directory, if the word is a path below it.
fn below<'a>(code: &'a str, cwd: Option<&str>) -> Option<&'a str> {
    if code.len() > MAX_PATH || !is_plain(code) {
        return None;
    }
    let relative = if code.starts_with('/') {
        let rest = code.strip_prefix(cwd?.trim_end_matches('/'))?;
        rest.strip_prefix('/')?
    } else {
        code.strip_prefix("./").unwrap_or(code)
    };
    // The two sides of a diff, and the sources of Rust's own library, as panics name them.
    if ["a/", "b/", "library/std/", "library/core/", "library/alloc/"].iter().any(|start| code.starts_with(start)) {
        return None;
    }
    let is_named = code.starts_with('/') || code.starts_with("./") || relative.contains('/');
    // Folders that begin with a dot belong to tools, which may empty them.
    let is_hidden = relative.starts_with(['.', '@']) && !relative.starts_with(".github/");
    (is_named && !is_hidden && has_extension(relative) && !relative.split('/').any(is_not_of_a_file))
        .then_some(relative)
}

/// The folder in which a relative path begins.
pub(super) fn first_folder(path: &str) -> Option<&str> {
    path.split_once('/').map(|(folder, _)| folder)
}

/// Whether a word has only characters of a usual path: no blank, no pattern, no variable.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@'))
        && !word.contains("//")
        && !word.contains("...")
}

fn has_extension(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()))
}

/// Whether a part of a path shows that the path need not exist: it leads out of the working directory, to a file that a
/// build or a tool makes, or it is only an example of a name.
fn is_not_of_a_file(part: &str) -> bool {
    let lower = part.to_ascii_lowercase();
    let has_letters_for_digits = ["XX", "NN", "YYYY"].iter().any(|letters| part.contains(letters));
    let is_example = has_letters_for_digits || has_word(&lower.replace(['-', '_', '.'], " "), &EXAMPLE_NAMES);
    part.is_empty() || part == ".." || is_tool_folder(part, &NOT_IN_GIT) || is_example || is_built(part)
}

/// Whether a name looks like that of a script or style sheet from a build: it ends with eight characters of a hash, as
/// in `index-BbMHCdJ9.js` and `main.8f3a2b1c.css`.
fn is_built(name: &str) -> bool {
    const HASH: usize = 8;
    let stem = [".js", ".mjs", ".css"].iter().find_map(|extension| name.strip_suffix(extension));
    let Some(stem) = stem.map(|stem| stem.strip_suffix(".chunk").unwrap_or(stem)) else { return false };
    let Some((rest, hash)) = stem.len().checked_sub(HASH).and_then(|at| stem.split_at_checked(at)) else {
        return false;
    };
    let has = |of: fn(&u8) -> bool| hash.bytes().any(|byte| of(&byte));
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    // An ordinary word may also begin with a capital letter or end with a number, such as `Settings` or `handler1`.
    let word = hash.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_word = word.bytes().skip(1).all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'));
    let is_mixed = has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase);
    rest.len() > 1 && rest.ends_with(['-', '.']) && is_hash && is_mixed && !is_word
}
