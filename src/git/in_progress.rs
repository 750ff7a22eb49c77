//! Which operation is under way in a work tree. The files that git keeps until its end show it.

use crate::files;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`. A rebase that has stopped at a conflict also looks like a
/// cherry-pick, so the order matters.
pub(super) fn in_progress(own: &Path) -> Option<&'static str> {
    let has = |name: &str| fs::symlink_metadata(own.join(name)).is_ok();
    // `git am` uses the same folder, with the file `applying` in it. It does not count.
    if has("rebase-merge") || (has("rebase-apply") && !has("rebase-apply/applying")) {
        return Some("rebase");
    }
    let files = [("MERGE_HEAD", "merge"), ("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")];
    let found = files.into_iter().find(|(name, _)| has(name)).map(|(_, word)| word);
    found.or_else(|| sequence(own)).or_else(|| has("BISECT_LOG").then_some("bisect"))
}

/// The operation, if some of several commits are still to be picked or reverted.
fn sequence(own: &Path) -> Option<&'static str> {
    let (file, _) = files::open(&own.join("sequencer/todo")).ok()?;
    // Read as bytes, because the limit may cut a letter in two.
    let mut todo = Vec::new();
    file.take(16).read_to_end(&mut todo).ok()?;
    match todo.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())? {
        b"pick" | b"p" => Some("cherry-pick"),
        b"revert" => Some("revert"),
        _ => None,
    }
}
