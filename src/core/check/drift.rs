//! Says how a repository differs from facts that were taken of it earlier.

use crate::contract::facts::RepositoryFacts;
use std::collections::BTreeSet;

/// Digits of a hash that are shown.
const SHORT: usize = 7;

/// Sentences that say what has changed in the repository, the most important first. A fact that tasuki knew at only one
/// of the two times is left out. `now` is none if the repository is gone; a caller that can't tell whether it is gone
/// must not ask.
#[must_use]
pub fn drift(before: &RepositoryFacts, now: Option<&RepositoryFacts>) -> Vec<String> {
    let Some(now) = now else { return vec!["the repository is gone".to_owned()] };
    if before.root != now.root {
        return vec![format!("the repository is {} instead of {}", now.root, before.root)];
    }
    let mut said = Vec::new();
    said.extend(branch(before, now));
    said.extend(head(before, now));
    said.extend(in_progress(before, now));
    files(before, now, &mut said);
    upstream(before, now, &mut said);
    if before.head_on_remote == Some(false) && now.head_on_remote == Some(true) {
        said.push("HEAD is on a branch of a remote now".to_owned());
    } else if before.head_on_remote == Some(true) && now.head_on_remote == Some(false) {
        said.push("HEAD is not on a branch of a remote any more".to_owned());
    }
    let stashes = |count: u64| counted(count, "stash", "stashes");
    said.extend(instead(before.stashes, now.stashes, stashes));
    said
}

fn branch(before: &RepositoryFacts, now: &RepositoryFacts) -> Option<String> {
    match (&before.branch, &now.branch) {
        (Some(old), Some(new)) if old != new => Some(format!("branch {new} instead of {old}")),
        (Some(old), None) => Some(format!("HEAD is detached instead of on branch {old}")),
        (None, Some(new)) => Some(format!("branch {new} instead of a detached HEAD")),
        _ => None,
    }
}

fn head(before: &RepositoryFacts, now: &RepositoryFacts) -> Option<String> {
    match (&before.head, &now.head) {
        (Some(old), Some(new)) if old != new => Some(format!("HEAD moved from {} to {}", short(old), short(new))),
        (None, Some(new)) => Some(format!("HEAD has its first commit, {}", short(new))),
        (Some(old), None) => Some(format!("HEAD has no commit instead of {}", short(old))),
        _ => None,
    }
}

fn in_progress(before: &RepositoryFacts, now: &RepositoryFacts) -> Option<String> {
    match (&before.in_progress, &now.in_progress) {
        (Some(old), Some(new)) if old != new => Some(format!("a {new} is in progress instead of a {old}")),
        (None, Some(new)) => Some(format!("a {new} is in progress")),
        (Some(old), None) => Some(format!("the {old} is not in progress any more")),
        _ => None,
    }
}

/// Compares the changed files by path and state. Their content may change without a change of state; the size of the
/// changes (`diff_stat`) shows that.
fn files(before: &RepositoryFacts, now: &RepositoryFacts, said: &mut Vec<String>) {
    let (Some(old_count), Some(new_count)) = (before.changed, now.changed) else { return };
    let listed = |facts: &RepositoryFacts| -> BTreeSet<(String, String)> {
        facts.status.iter().map(|file| (file.path.clone(), file.state.clone())).collect()
    };
    let (old, new) = (listed(before), listed(now));
    let paths: BTreeSet<&String> = old.symmetric_difference(&new).map(|(path, _)| path).collect();
    let is_cut = |count: u64, list: &BTreeSet<_>| count > list.len() as u64;
    if is_cut(old_count, &old) || is_cut(new_count, &new) {
        // A list is cut, so only the counts can be compared.
        said.extend(instead(Some(old_count), Some(new_count), |count| counted(count, "changed file", "changed files")));
    } else if !paths.is_empty() {
        said.push(format!("{} changed since", counted(paths.len() as u64, "file", "files")));
    }
    match (&before.diff_stat, &now.diff_stat) {
        (Some(old), Some(new)) if old != new => said.push(format!("the changes are {new} instead of {old}")),
        _ => {}
    }
}

fn upstream(before: &RepositoryFacts, now: &RepositoryFacts, said: &mut Vec<String>) {
    if before.branch != now.branch {
        return;
    }
    match (&before.upstream, &now.upstream) {
        (Some(old), Some(new)) if old != new => {
            said.push(format!("the branch follows {new} instead of {old}"));
            return;
        }
        (None, Some(new)) => said.push(format!("the branch follows {new} now")),
        (Some(old), None) => said.push(format!("the branch does not follow {old} any more")),
        _ => {}
    }
    let ahead = |count: u64| format!("{} ahead of the upstream", counted(count, "commit", "commits"));
    let behind = |count: u64| format!("{} behind the upstream", counted(count, "commit", "commits"));
    said.extend(instead(before.ahead, now.ahead, ahead));
    said.extend(instead(before.behind, now.behind, behind));
}

/// A text such as "1 stash instead of 0"; none if the counts are the same, or one is not known.
fn instead(old: Option<u64>, new: Option<u64>, words: impl Fn(u64) -> String) -> Option<String> {
    let (old, new) = (old?, new?);
    (old != new).then(|| format!("{} instead of {old}", words(new)))
}

/// A number of things, such as "1 commit" or "2 commits".
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn short(hash: &str) -> &str {
    hash.get(..SHORT).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::facts::ChangedFile;

    fn facts() -> RepositoryFacts {
        RepositoryFacts {
            root: "/r".to_owned(),
            branch: Some("main".to_owned()),
            head: Some("a1b2c3d4".repeat(5)),
            changed: Some(0),
            stashes: Some(0),
            ..RepositoryFacts::default()
        }
    }

    fn with_files(files: &[(&str, &str)], count: u64) -> RepositoryFacts {
        let file = |(state, path): &(&str, &str)| ChangedFile { path: (*path).to_owned(), state: (*state).to_owned() };
        RepositoryFacts { changed: Some(count), status: files.iter().map(file).collect(), ..facts() }
    }

    #[test]
    fn a_repository_may_be_the_same_or_gone_or_another_one() {
        assert_eq!(drift(&facts(), Some(&facts())), [""; 0]);
        assert_eq!(drift(&facts(), None), ["the repository is gone"]);
        let other = RepositoryFacts { root: "/other".to_owned(), ..facts() };
        assert_eq!(drift(&facts(), Some(&other)), ["the repository is /other instead of /r"]);
    }

    #[test]
    fn head_and_branch_that_moved() {
        let moved = RepositoryFacts {
            branch: Some("x".to_owned()),
            head: Some("e4f5a6b7".repeat(5)),
            in_progress: Some("merge".to_owned()),
            head_on_remote: Some(true),
            ..facts()
        };
        let before = RepositoryFacts { head_on_remote: Some(false), ..facts() };
        let expected = [
            "branch x instead of main",
            "HEAD moved from a1b2c3d to e4f5a6b",
            "a merge is in progress",
            "HEAD is on a branch of a remote now",
        ];
        assert_eq!(drift(&before, Some(&moved)), expected);
        let detached = RepositoryFacts { branch: None, head: None, stashes: Some(1), ..facts() };
        let expected = [
            "HEAD is detached instead of on branch main",
            "HEAD has no commit instead of a1b2c3d",
            "1 stash instead of 0",
        ];
        assert_eq!(drift(&facts(), Some(&detached)), expected);
        let back =
            ["branch main instead of a detached HEAD", "HEAD has its first commit, a1b2c3d", "0 stashes instead of 1"];
        assert_eq!(drift(&detached, Some(&facts())), back);
    }

    #[test]
    fn files_are_compared_by_path_and_state() {
        let (one, two) = (with_files(&[(" M", "a"), ("??", "b")], 2), with_files(&[("M ", "a"), ("??", "c")], 2));
        assert_eq!(drift(&one, Some(&two)), ["3 files changed since"]);
        assert_eq!(drift(&with_files(&[], 0), Some(&with_files(&[(" M", "a")], 1))), ["1 file changed since"]);
        // If the lists were cut, only the counts are compared.
        let (long, longer) = (with_files(&[(" M", "a")], 300), with_files(&[(" M", "b")], 301));
        assert_eq!(drift(&long, Some(&longer)), ["301 changed files instead of 300"]);
        let unknown = RepositoryFacts { changed: None, ..facts() };
        assert_eq!(drift(&one, Some(&unknown)), [""; 0]);
        let more = RepositoryFacts { diff_stat: Some("1 file changed, 2 insertions(+)".to_owned()), ..one.clone() };
        let less = RepositoryFacts { diff_stat: Some("1 file changed, 1 insertion(+)".to_owned()), ..one };
        let expected = ["the changes are 1 file changed, 2 insertions(+) instead of 1 file changed, 1 insertion(+)"];
        assert_eq!(drift(&less, Some(&more)), expected);
    }

    #[test]
    fn the_upstream_is_compared_on_the_same_branch_only() {
        let follows = |name: &str, ahead: u64, behind: u64| RepositoryFacts {
            upstream: Some(name.to_owned()),
            ahead: Some(ahead),
            behind: Some(behind),
            ..facts()
        };
        let (old, new) = (follows("origin/main", 0, 2), follows("origin/main", 1, 0));
        let expected = ["1 commit ahead of the upstream instead of 0", "0 commits behind the upstream instead of 2"];
        assert_eq!(drift(&old, Some(&new)), expected);
        assert_eq!(drift(&old, Some(&facts())), ["the branch does not follow origin/main any more"]);
        assert_eq!(drift(&facts(), Some(&new)), ["the branch follows origin/main now"]);
        let expected = ["the branch follows b/main instead of origin/main"];
        assert_eq!(drift(&old, Some(&follows("b/main", 0, 0))), expected);
        let elsewhere = RepositoryFacts { branch: Some("x".to_owned()), ..follows("b/x", 0, 0) };
        assert_eq!(drift(&old, Some(&elsewhere)), ["branch x instead of main"]);
    }
}
