//! Answers the claims of a document: whether its commits, branches and paths exist. A claim that can't be judged for
//! certain has no answer, because a wrong "no" would send the document back to its author.

use super::call::{GitCaller, GitEnd};
use super::facts::is_on_remote;
use super::paths::{Relative, ignored, in_git, on_disk, relative};
use super::repository::{Opened, Repository, open};
use super::words::{hash_of, os_text};
use crate::core::check::{Claims, CommitLookup, Lookups, PathLookup};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The largest number of claims of a kind that are looked up.
const MOST_CLAIMS: usize = 200;
/// Length of a hash of the format `sha1`, in digits.
const MAX_SHA1: usize = 40;
/// Longest name of a branch that is looked up, in bytes.
const MAX_BRANCH: usize = 250;
/// Characters that the name of a branch can't have. Git would read some of them as a pattern.
const NOT_IN_BRANCHES: [char; 8] = [' ', '~', '^', ':', '?', '*', '[', '\\'];
/// The exit code says whether files differ between two commits. Their hashes follow.
const DIFFERS: [&str; 7] =
    ["diff-tree", "--quiet", "-r", "--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules=all"];

/// Looks the claims up in the working directory and its repository.
pub(super) async fn look_up(caller: &GitCaller, cwd: &Path, claims: &Claims) -> Lookups {
    if *claims == Claims::default() {
        return Lookups::default();
    }
    // Without a repository nobody knows which files were there before.
    let Opened::Repository(repository) = open(caller, cwd).await else { return Lookups::default() };
    let repository: Arc<Repository> = repository.into();
    let (commits, branches, paths) = tokio::join!(
        commits(caller, &repository, &claims.commits),
        branches(caller, &repository, &claims.branches),
        paths(caller, cwd, &repository, claims),
    );
    Lookups { commits, branches, paths }
}

async fn paths(
    caller: &GitCaller,
    cwd: &Path,
    repository: &Repository,
    claims: &Claims,
) -> BTreeMap<String, PathLookup> {
    let named = claims.paths.iter().take(MOST_CLAIMS).filter_map(|claim| Some((claim.clone(), relative(claim)?)));
    let mut left: Relative = named.collect();
    if left.is_empty() {
        return BTreeMap::new();
    }
    let (at, top, named) = (cwd.to_owned(), repository.work_tree.clone(), left.clone());
    let on_disk = caller.in_own_thread(move || on_disk(&at, top.as_deref(), &named)).await.unwrap_or_default();
    left.retain(|claim, _| on_disk.get(claim) == Some(&false));
    let there = on_disk.into_iter().filter(|(_, is_there)| *is_there);
    let mut found: BTreeMap<_, _> = there.map(|(claim, _)| (claim, PathLookup::Exists)).collect();
    // Without a work tree nobody knows to what a path is relative.
    if !left.is_empty() && repository.work_tree.is_some() {
        found.extend(in_git(caller, repository, &left).await);
        left.retain(|claim, _| found.get(claim) == Some(&PathLookup::Missing));
        let unknown = ignored(caller, repository, &left).await;
        found.retain(|claim, _| !unknown.contains(claim));
    }
    found
}

/// Asks for each commit in a call of its own. Several calls run at once.
async fn commits(
    caller: &GitCaller,
    repository: &Arc<Repository>,
    claims: &BTreeSet<String>,
) -> BTreeMap<String, CommitLookup> {
    let mut asked = JoinSet::new();
    // A claim that is longer than the hashes of this repository is another thing, or of another repository.
    let longest = repository.head.as_ref().map_or(MAX_SHA1, String::len);
    for claim in claims.iter().take(MOST_CLAIMS).filter(|claim| may_be_hash(claim) && claim.len() <= longest) {
        let (caller, repository, claim) = (caller.clone(), repository.clone(), claim.clone());
        asked.spawn(async move {
            let answer = commit(&caller, &repository, &claim).await?;
            Some((claim, answer))
        });
    }
    let mut found = BTreeMap::new();
    while let Some(answer) = asked.join_next().await {
        found.extend(answer.ok().flatten());
    }
    found
}

/// Whether git can read a claim only as a hash. Git needs four digits or more. With other characters, the claim could
/// be an option, or an expression such as `HEAD@{1}`.
fn may_be_hash(claim: &str) -> bool {
    (4..=64).contains(&claim.len()) && claim.bytes().all(|byte| byte.is_ascii_hexdigit())
}

async fn commit(caller: &GitCaller, repository: &Repository, claim: &str) -> Option<CommitLookup> {
    let place = repository.files();
    let named = format!("{claim}^{{commit}}");
    let answer = caller.call(&place, &["rev-parse", "--verify", "--end-of-options", &named]).await;
    let hash = match answer.end {
        GitEnd::Exit(0) => hash_of(&answer.stdout)?,
        GitEnd::Exit(_) => return is_missing(repository, &answer.stderr).then_some(CommitLookup::Missing),
        _ => return None,
    };
    // The claimed hash may be that of a tag, which leads to a commit with another hash.
    if !hash.starts_with(&claim.to_ascii_lowercase()) {
        return None;
    }
    let (on_remote, differs) =
        tokio::join!(is_on_remote(caller, repository, &hash), differs(caller, repository, &hash));
    Some(CommitLookup::Known { on_remote: on_remote.ok()?, differs_from_head: differs?, hash })
}

/// Whether git says for certain that there is no such commit. If git can't read an object, or if several hashes begin
/// like the claim, it prints other lines too. A shallow repository lacks commits that exist.
fn is_missing(repository: &Repository, stderr: &str) -> bool {
    let is_usual = |line: &str| {
        line == "fatal: Needed a single revision"
            || line.contains("expected commit type, but the object dereferences to")
    };
    !repository.is_shallow && !stderr.is_empty() && stderr.lines().all(is_usual)
}

/// Whether files differ between this commit and HEAD.
async fn differs(caller: &GitCaller, repository: &Repository, hash: &str) -> Option<bool> {
    let Some(head) = &repository.head else { return Some(true) };
    if head == hash {
        return Some(false);
    }
    match caller.call(&repository.files(), &[&DIFFERS[..], &[hash, head]].concat()).await.end {
        GitEnd::Exit(0) => Some(false),
        GitEnd::Exit(1) => Some(true),
        _ => None,
    }
}

/// Asks for all branches in one call.
async fn branches(caller: &GitCaller, repository: &Repository, claims: &BTreeSet<String>) -> BTreeMap<String, bool> {
    let claims: Vec<&String> = claims.iter().filter(|name| name.len() <= MAX_BRANCH).take(MOST_CLAIMS).collect();
    let may_exist: Vec<&&String> = claims.iter().filter(|claim| may_be_branch(claim)).collect();
    let mut arguments = ["for-each-ref", "--format=%(refname)"].map(OsString::from).to_vec();
    for name in &may_exist {
        for folder in ["refs/heads/", "refs/remotes/", "refs/remotes/**/"] {
            arguments.push(os_text(format!("{folder}{name}").as_bytes()));
        }
    }
    let answer = match may_exist.is_empty() {
        true => None,
        false => Some(caller.call(&repository.branches(), &arguments).await),
    };
    let is_whole = answer.as_ref().is_none_or(|answer| answer.end == GitEnd::Exit(0));
    let printed = answer.as_ref().map_or(&[][..], |answer| match is_whole {
        true => &answer.stdout,
        false => whole_lines(&answer.stdout),
    });
    let printed = String::from_utf8_lossy(printed);
    // If the current branch has no commit, git lists no entry for it yet.
    let current = repository.branch.as_deref().and_then(|name| str::from_utf8(name).ok());
    let remotes: Vec<&str> =
        repository.settings.remotes.iter().filter_map(|remote| str::from_utf8(&remote.name).ok()).collect();
    let exists = |name: &str| current == Some(name) || printed.lines().any(|line| is_named(line, name, &remotes));
    let answers = claims.into_iter().map(|name| (name.clone(), exists(name)));
    answers.filter(|(_, exists)| *exists || is_whole).collect()
}

/// What was printed, without a last line that was cut off: the beginning of a branch's name may be another's name.
fn whole_lines(printed: &[u8]) -> &[u8] {
    let end = printed.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &printed[..end]
}

/// Whether git allows a branch of this name, as far as its rules matter here. A claim that git does not allow is
/// answered with "does not exist".
fn may_be_branch(name: &str) -> bool {
    let is_odd = name.chars().any(|letter| letter.is_control() || NOT_IN_BRANCHES.contains(&letter));
    !name.is_empty() && !is_odd && !name.starts_with(['-', '/']) && !name.ends_with('/')
}

/// Whether a full name that git has printed is that of the branch `name`, here or at a remote. Git prints more names
/// than were asked for: the pattern `refs/heads/a` also finds `refs/heads/a/b`. The name of a remote may have slashes.
/// If a remote is not in the configuration any more, its name is assumed to have none.
fn is_named(full: &str, name: &str, remotes: &[&str]) -> bool {
    if let Some(local) = full.strip_prefix("refs/heads/") {
        return local == name;
    }
    let Some(branch) = full.strip_prefix("refs/remotes/") else { return false };
    let is_at = |remote: &str| branch.strip_prefix(remote).and_then(|rest| rest.strip_prefix('/')) == Some(name);
    branch == name || is_at(branch.split('/').next().unwrap_or_default()) || remotes.iter().any(|remote| is_at(remote))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_list_that_was_cut_is_left_out() {
        assert_eq!(whole_lines(b"refs/heads/a\nrefs/heads/fix"), b"refs/heads/a\n");
        assert_eq!((whole_lines(b"refs/heads/fix"), whole_lines(b"")), (&b""[..], &b""[..]));
    }
}
