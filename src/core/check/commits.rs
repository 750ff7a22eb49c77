//! Hashes of commits in a document. Many other things look like one: colours, checksums, parts of a UUID, ids of
//! containers. A hash counts only where the words around it speak of commits.

use super::lines::LineKind;
use super::places::{Place, has_phrase, has_word, is_about_elsewhere, names_other_repository};

/// Shortest and longest hash of the format `sha1`, in digits.
const LENGTHS: std::ops::RangeInclusive<usize> = 7..=40;
/// A whole hash of the format `sha256`, in digits.
const LONG: usize = 64;
/// Lengths that other things have too: an id of a container, half an MD5, an MD5, a checksum. A hash of such a length
/// must be called a commit, or have the subject of a commit after it.
const OTHER_LENGTHS: [usize; 4] = [12, 16, 32, LONG];
/// The largest number of words of one line that are looked at.
const MOST_IN_LINE: usize = 50;
/// How many words before a hash can say what it is.
const WORDS_BEFORE: usize = 6;

/// Words before a hash that say that it is a commit.
const NAMES: [&str; 17] = [
    "commit",
    "commits",
    "committed",
    "head",
    "rev",
    "revision",
    "merge",
    "merged",
    "cherry",
    "picked",
    "squash",
    "squashed",
    "reverted",
    "rebased",
    "tip",
    "landed",
    "pushed",
];
/// Words before a hash that say that the work stands there.
const HEADS: [&str; 3] = ["head", "committed", "tip"];
/// Words that say that a line is about commits: in the line, in a heading or an introduction above it, or in the first
/// row of its table.
const TOPICS: [&str; 14] = [
    "commit",
    "commits",
    "committed",
    "git",
    "sha",
    "shas",
    "merge",
    "merged",
    "merges",
    "head",
    "rebase",
    "rebased",
    "cherry",
    "squash",
];
/// Words that say that a hash is another thing.
const OTHERS: [&str; 43] = [
    "sha256",
    "sha512",
    "sha1sum",
    "sha256sum",
    "md5",
    "checksum",
    "checksums",
    "digest",
    "etag",
    "uuid",
    "guid",
    "color",
    "colour",
    "colors",
    "hex",
    "docker",
    "image",
    "images",
    "container",
    "address",
    "contract",
    "wallet",
    "tx",
    "txid",
    "token",
    "session",
    "trace",
    "fingerprint",
    "serial",
    "mac",
    "blob",
    "id",
    "ids",
    "bytes",
    "sentry",
    "event",
    "events",
    "chunk",
    "chunks",
    "bundle",
    "deployment",
    "release",
    "artifact",
];
/// Words with which the subject of a commit begins, as in `fix(store): …`.
const SUBJECTS: [&str; 14] = [
    "feat", "fix", "docs", "chore", "refactor", "test", "tests", "perf", "build", "ci", "style", "revert", "merge",
    "release",
];

/// A hash that is meant as a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hash<'a> {
    /// Where it begins in the line, in bytes.
    pub(super) at: usize,
    pub(super) hash: &'a str,
    /// The text says that the work stands there, as in "HEAD is at …".
    pub(super) is_head: bool,
}

/// Whether a line has a word that can be a hash.
pub(super) fn may_name(place: &Place<'_>) -> bool {
    candidates(place.text).next().is_some()
}

/// The hashes in a line that are meant as commits.
pub(super) fn in_line<'a>(place: &Place<'a>, cwd: Option<&str>) -> Vec<Hash<'a>> {
    let (text, lower) = (place.text, place.lower);
    if names_other_repository(lower) || is_about_elsewhere(text, cwd) {
        return Vec::new();
    }
    let is_topic = has_word(lower, &TOPICS) || has_word(place.table, &TOPICS) || place.is_under(&TOPICS);
    let line =
        LineContext { kind: place.kind, code_before: place.code_before, is_topic, is_other: has_word(lower, &OTHERS) };
    let is_meant = |(start, end): &(usize, usize)| {
        is_alone(&text[..*start], &text[*end..]) && line.has_commit(lower, (*start, *end))
    };
    let hash = |(start, end): (usize, usize)| {
        let is_head = place.kind == LineKind::FrontMatter || is_head(&lower[..start]);
        Hash { at: start, hash: &text[start..end], is_head }
    };
    candidates(text).take(MOST_IN_LINE).filter(is_meant).map(hash).collect()
}

/// Each word of hexadecimal digits that can be a hash.
fn candidates(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                at += 1;
            }
            let word = &bytes[start..at];
            at = at.max(start + 1);
            let may_be_hash = LENGTHS.contains(&word.len()) || word.len() == LONG;
            if may_be_hash && word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                return Some((start, start + word.len()));
            }
        }
        None
    })
}

/// Whether a word stands alone, and is not a part of something longer, such as a path, an address or a version.
fn is_alone(before: &str, after: &str) -> bool {
    let ends_well = match before.as_bytes() {
        [.., b'.', b'.'] => !before.ends_with("...") && before.len() > 2,
        [.., last] => !b"#-_/\\=&%$~+.".contains(last) || has_suffix(before, &["commit=", "sha=", "head="]),
        [] => true,
    };
    let is_named = has_suffix(before, &["sha256:", "sha1:", "md5:", "sha512:", "0x"]);
    let begins_well = match after.as_bytes() {
        [b'.', next, ..] => *next == b'.' || !next.is_ascii_alphanumeric(),
        [b'-', next, ..] => *next == b' ',
        [first, ..] => !b"_/\\=&%$@+-".contains(first),
        [] => true,
    };
    ends_well && !is_named && begins_well && !before.ends_with('…')
}

fn has_suffix(text: &str, suffixes: &[&str]) -> bool {
    suffixes.iter().any(|suffix| text.ends_with(suffix))
}

/// What a line, and the text above it, say of all hashes in the line.
struct LineContext<'a> {
    kind: LineKind,
    code_before: &'a str,
    /// It is about commits.
    is_topic: bool,
    /// It is about other things that look like hashes.
    is_other: bool,
}

impl LineContext<'_> {
    /// Whether the words around a word of hexadecimal digits say that it is a commit.
    fn has_commit(&self, lower: &str, (start, end): (usize, usize)) -> bool {
        let hash = &lower[start..end];
        let (before, after) = (&lower[..start], &lower[end..]);
        let is_number = hash.bytes().all(|byte| byte.is_ascii_digit());
        let is_word = hash.bytes().all(|byte| byte.is_ascii_alphabetic());
        if is_number || is_word {
            // A number never counts. Letters alone may be a word, such as "defaced", so they must be called a commit.
            return is_word && is_named(before, after);
        }
        match self.kind {
            LineKind::FrontMatter => {
                has_phrase(before, &["verified:", "commit:", "head:", "checkpoint:", "starting_from:"])
                    && (hash.len() != LONG || is_named(before, after))
            }
            LineKind::Code => self.has_in_code(before, after),
            LineKind::Text | LineKind::Heading(_) => {
                let is_marked =
                    before.is_empty() || before.ends_with(['`', '(', '[', '@', '|']) || after.starts_with('`');
                let is_other = self.is_other || OTHER_LENGTHS.contains(&hash.len());
                // Git shortens a hash to 7 digits, and in a large repository to 9 or more. 8 digits are more often
                // another thing, such as the beginning of a UUID.
                let is_usual = matches!(hash.len(), 7 | 9..=11 | 40);
                let is_ours = !is_of_another_project(before);
                let is_likely = is_marked && (self.is_topic || is_usual) && !is_other && is_ours;
                is_likely || is_named(before, after) || has_subject(after)
            }
            LineKind::Fence | LineKind::Unseen | LineKind::Blank => false,
        }
    }

    /// Whether a hash in a block of code is the argument of a git command, or begins a line of `git log --oneline`.
    fn has_in_code(&self, before: &str, after: &str) -> bool {
        let command = before.trim_start_matches(['$', '>', ' ']);
        if command.starts_with("git ") {
            return has_phrase(
                command,
                &["show", "log", "cherry-pick", "revert", "reset", "checkout", "diff", "rebase"],
            );
        }
        let is_first = before.chars().all(|c| matches!(c, '*' | '|' | '/' | '\\' | ' '));
        let is_log = self.is_topic || has_phrase(self.code_before, &["git log", "commit"]) || has_subject(after);
        is_first && is_log && after.starts_with(' ')
    }
}

/// Whether one of the last words before a hash, or the next word after it, calls it a commit. Words before one of
/// [`OTHERS`] do not count, as in "commit 7 has the checksum …".
fn is_named(before: &str, after: &str) -> bool {
    let is_other = |word: &str| OTHERS.contains(&word);
    let next = after.trim_start_matches(['`', '*', ')', ' ']);
    let is_after = next.starts_with("commit") && next.len() < after.len();
    if is_of_another_project(before) {
        return false;
    }
    is_after || last_words(before).take_while(|word| !is_other(word)).any(|word| NAMES.contains(&word))
}

/// Whether a commit is one of another project, as in "fixed in tokio commit …".
fn is_of_another_project(before: &str) -> bool {
    const OURS: [&str; 26] = [
        "a", "the", "this", "that", "my", "our", "its", "last", "latest", "previous", "first", "second", "third",
        "next", "new", "initial", "parent", "same", "single", "one", "local", "merge", "fix", "wip", "git", "head",
    ];
    let words: Vec<&str> = last_words(before).take(3).collect();
    matches!(words[..], ["commit", name, "in" | "by" | "with" | "since"] if !OURS.contains(&name))
}

/// Whether the words before a hash say that the work stands there, such as "the latest commit".
fn is_head(before: &str) -> bool {
    let words: Vec<&str> = last_words(before).collect();
    let is_latest = |pair: &[&str]| pair[0] == "commit" && matches!(pair[1], "last" | "latest" | "current");
    words.iter().any(|word| HEADS.contains(word)) || words.windows(2).any(is_latest)
}

/// The last few words, the last one first.
fn last_words(text: &str) -> impl Iterator<Item = &str> {
    text.rsplit(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).take(WORDS_BEFORE)
}

/// Whether a subject of a commit follows, such as `fix(store): …`.
fn has_subject(after: &str) -> bool {
    let text = after.trim_start_matches(|c: char| c.is_whitespace() || "`*|:)—–-\"'".contains(c));
    let word = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    SUBJECTS.contains(&&text[..word]) && text[word..].starts_with([':', '(', '!'])
}
