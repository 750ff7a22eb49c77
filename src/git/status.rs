//! The files that differ from HEAD, by `git status`.

use super::call::{GitCaller, GitEnd, MAX_PRINTED};
use super::repository::Repository;
use super::words::{os_text, path_of, plain_path};
use crate::contract::facts::ChangedFile;
use std::ffi::OsString;

/// The largest number of changed files that facts hold.
const MOST_FILES: usize = 200;

/// Without `--no-renames`, git would read whole files to find renames. Without `--ignore-submodules`, git would read
/// the configuration of each submodule.
const STATUS: [&str; 6] =
    ["status", "--porcelain", "-z", "--untracked-files=normal", "--no-renames", "--ignore-submodules=all"];
/// Prints the last line of `git diff --stat`. The hash of HEAD and the files follow.
const DIFF: [&str; 6] =
    ["diff", "--shortstat", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all"];

/// What `git status` says.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// How many changed files there are; if `is_cut`, at least so many. A folder with nothing but new files counts as
    /// one.
    pub count: u64,
    pub is_cut: bool,
    /// The first of them.
    pub files: Vec<ChangedFile>,
    /// The paths of all changed files that git tracks, as git names them. To tell how much they differ, git needs to
    /// compare only these again. None if there are more than [`MOST_FILES`], or if git's list was cut; then git
    /// compares all files.
    in_git: Option<Vec<OsString>>,
}

/// Asks git for the changed files.
///
/// # Errors
/// A sentence that says why they are not known.
pub(super) async fn changes(caller: &GitCaller, repository: &Repository) -> Result<Changes, String> {
    let answer = caller.call(&repository.files(), &STATUS).await;
    match answer.end {
        GitEnd::Exit(0) => Ok(Changes::read(&answer.stdout, false)),
        GitEnd::Cut => Ok(Changes::read(&answer.stdout, true)),
        _ => Err(answer.reason(caller.limit())),
    }
}

/// Asks git how much the changed files differ from this commit; none if they don't.
///
/// # Errors
/// A sentence that says why that is not known.
pub(super) async fn diff_stat(
    caller: &GitCaller,
    repository: &Repository,
    changes: &Changes,
    head: &str,
) -> Result<Option<String>, String> {
    let paths = match &changes.in_git {
        Some(paths) if paths.is_empty() => return Ok(None),
        Some(paths) => &paths[..],
        None => &[],
    };
    let words = DIFF.into_iter().chain([head, "--"]).map(OsString::from);
    let arguments: Vec<OsString> = words.chain(paths.iter().cloned()).collect();
    let answer = caller.call(&repository.files(), &arguments).await;
    if answer.end != GitEnd::Exit(0) {
        return Err(answer.reason(caller.limit()));
    }
    let line = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    Ok(Some(line).filter(|line| !line.is_empty()))
}

impl Changes {
    /// Reads entries of two letters, a blank, a path and a NUL. An entry without its NUL was cut, and is left out.
    fn read(printed: &[u8], is_cut: bool) -> Changes {
        let mut changes = Changes { is_cut, ..Changes::default() };
        let mut in_git = Vec::new();
        let ended = printed.iter().rposition(|byte| *byte == 0).map_or(&b""[..], |end| &printed[..end]);
        let mut entries = ended.split(|byte| *byte == 0);
        while let Some(entry) = entries.next() {
            let Some((state, path)) = entry.split_at_checked(3) else { continue };
            let state = &state[..2];
            if state.iter().any(|letter| matches!(letter, b'R' | b'C')) {
                // The path that it had before.
                entries.next();
            }
            changes.count += 1;
            if changes.files.len() < MOST_FILES {
                let words = String::from_utf8_lossy(state).into_owned();
                changes.files.push(ChangedFile { path: plain_path(path_of(path)), state: words });
            }
            if state != b"??" {
                in_git.push(os_text(path));
            }
        }
        changes.in_git = (!is_cut && in_git.len() <= MOST_FILES).then_some(in_git);
        changes
    }

    /// If the list was cut: the sentence that says so.
    pub(super) fn note(&self) -> Option<String> {
        let kib = MAX_PRINTED / 1024;
        self.is_cut.then(|| format!("changed files: more than {}, because git printed more than {kib} KiB", self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_up_to_the_last_that_is_whole() {
        let changes = Changes::read(b" M a\0?? b c\0R  new\0old\0 D \xff\x1b[2J\nx\0 M cut", true);
        let files: Vec<(&str, &str)> = changes.files.iter().map(|it| (it.state.as_str(), it.path.as_str())).collect();
        assert_eq!(files, [(" M", "a"), ("??", "b c"), ("R ", "new"), (" D", "\u{fffd}[2J x")]);
        assert_eq!((changes.count, changes.is_cut, changes.in_git), (4, true, None));
        let none = Changes::read(b"", false);
        assert_eq!((none.count, none.in_git.as_deref(), none.note()), (0, Some(&[][..]), None));
        assert_eq!(Changes::read(b"?? a\0 M \xff\0", false).in_git, Some(vec![os_text(b"\xff")]));
    }
}
