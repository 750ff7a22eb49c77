//! Takes the facts of a repository: asks git, and reads its answers.

use super::address::public_address;
use super::call::{GitCaller, GitEnd};
use super::repository::{Opened, Repository, open};
use super::status::{Changes, changes, diff_stat};
use super::words::{hash_of, os_text, plain_line, plain_name, plain_path};
use crate::contract::facts::{CommitFacts, RepositoryFacts};
use crate::core::cut::quotable_words;
use crate::core::time::millis;
use std::path::Path;

/// The commits that are asked for, at most 50: hash, time in seconds since 1970, and subject.
const LOG: [&str; 7] = [
    "log",
    "--max-count=50",
    "--format=%H %ct %s",
    "--encoding=UTF-8",
    "--no-show-signature",
    "--no-notes",
    "--no-color",
];
/// Longest subject of a commit (the first paragraph of its message, as one line), in characters.
const MAX_SUBJECT: usize = 200;
const UPSTREAM: &str = "--format=%(upstream:short)%00%(upstream:track,nobracket)";

/// A value, or a sentence that says why it is not known.
type Told<T> = Result<T, String>;

/// The upstream of the current branch, and how far the two are apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct UpstreamState {
    name: Option<String>,
    ahead: Option<u64>,
    behind: Option<u64>,
}

/// One commit of the log.
#[derive(Debug)]
struct Logged {
    facts: CommitFacts,
    /// In seconds since 1970.
    at: i64,
}

/// Finds the repository of the folder and asks git about it. What could not be found out is added to `not_known`.
pub(super) async fn take(
    caller: &GitCaller,
    cwd: &Path,
    since: Option<&str>,
    not_known: &mut Vec<String>,
) -> Option<RepositoryFacts> {
    let repository = match open(caller, cwd).await {
        Opened::Repository(repository) => repository,
        Opened::Nothing => return None,
        Opened::Unreadable(reason) => {
            not_known.push(reason);
            return None;
        }
    };
    let repository = &*repository;
    let ((changes, stat), upstream, on_remote, log, stashes, in_progress) = tokio::join!(
        files(caller, repository),
        upstream(caller, repository),
        head_on_remote(caller, repository),
        log(caller, repository),
        stashes(caller, repository),
        in_progress(caller, repository),
    );
    let mut facts = basics(repository);
    if let Some(changes) = note(not_known, "changed files", changes).flatten() {
        not_known.extend(changes.note());
        facts.changed = Some(changes.count);
        facts.status = changes.files;
    }
    facts.diff_stat = note(not_known, "size of the changes", stat).flatten();
    let upstream = note(not_known, "commits ahead of the upstream and behind it", upstream).unwrap_or_default();
    UpstreamState { name: facts.upstream, ahead: facts.ahead, behind: facts.behind } = upstream;
    facts.head_on_remote = note(not_known, "whether HEAD is on a branch of a remote", on_remote).flatten();
    facts.stashes = note(not_known, "stashes", stashes);
    facts.in_progress = note(not_known, "what is under way", in_progress).flatten().map(str::to_owned);
    let log = note(not_known, "commits", log).unwrap_or_default();
    facts.subject = log.first().map(|newest| newest.facts.subject.clone());
    let since = since.and_then(|since| note(not_known, "commits since the registration", seconds(since)));
    if let Some(since) = since {
        facts.commits = log.into_iter().filter(|commit| commit.at >= since).map(|commit| commit.facts).collect();
    }
    Some(facts)
}

/// The value. If it is not known, a line with `what` and the reason is added to `not_known`.
fn note<T>(not_known: &mut Vec<String>, what: &str, told: Told<T>) -> Option<T> {
    told.map_err(|reason| not_known.push(format!("{what}: {reason}"))).ok()
}

/// The facts that are known as soon as the repository is found.
fn basics(repository: &Repository) -> RepositoryFacts {
    let dirs = &repository.dirs;
    let remote = repository.settings.remote(&repository.upstream).and_then(|remote| remote.url.as_deref());
    RepositoryFacts {
        root: plain_path(repository.work_tree.as_deref().unwrap_or(&dirs.own)),
        bare: repository.is_bare,
        main: (dirs.own != dirs.common).then(|| plain_path(&dirs.common)),
        branch: repository.branch.as_deref().map(plain_name),
        head: repository.head.clone(),
        remote: remote.map(public_address).filter(|address| !address.is_empty()),
        ..RepositoryFacts::default()
    }
}

/// The changed files, and how much they differ from HEAD.
async fn files(caller: &GitCaller, repository: &Repository) -> (Told<Option<Changes>>, Told<Option<String>>) {
    if let Some(reason) = repository.no_work_tree {
        return (Err(reason.to_owned()), Ok(None));
    }
    if repository.is_bare {
        return (Ok(None), Ok(None));
    }
    let changes = changes(caller, repository).await;
    let stat = match (&changes, &repository.head) {
        (Ok(changes), Some(head)) => diff_stat(caller, repository, changes, head).await,
        _ => Ok(None),
    };
    (changes.map(Some), stat)
}

async fn upstream(caller: &GitCaller, repository: &Repository) -> Told<UpstreamState> {
    let Some(branch) = repository.branch.as_deref() else { return Ok(UpstreamState::default()) };
    let pattern = os_text(&[b"refs/heads/", branch].concat());
    let words = ["for-each-ref", "--count=1", UPSTREAM].map(Into::into);
    let answer = caller.call(&repository.branches(), &[&words[..], &[pattern]].concat()).await;
    match answer.end {
        GitEnd::Exit(0) => Ok(read_upstream(&answer.stdout)),
        _ => Err(answer.reason(caller.limit())),
    }
}

/// Reads `origin/main`, a NUL, and `ahead 1, behind 2`, `gone`, or nothing if both are at the same commit.
fn read_upstream(printed: &[u8]) -> UpstreamState {
    let line = printed.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let end = line.iter().position(|byte| *byte == 0).unwrap_or(line.len());
    if end == 0 {
        return UpstreamState::default();
    }
    let name = Some(plain_name(&line[..end]));
    let track = String::from_utf8_lossy(line.get(end + 1..).unwrap_or_default()).into_owned();
    if track == "gone" {
        return UpstreamState { name, ..UpstreamState::default() };
    }
    let count = |word: &str| {
        let said = track.split(", ").find_map(|part| part.strip_prefix(word));
        said.map_or(Some(0), |count| count.trim().parse().ok())
    };
    UpstreamState { name, ahead: count("ahead "), behind: count("behind ") }
}

/// Whether a branch of a remote holds HEAD, as far as this repository knows; nothing is fetched. None without a commit.
async fn head_on_remote(caller: &GitCaller, repository: &Repository) -> Told<Option<bool>> {
    match &repository.head {
        Some(head) => is_on_remote(caller, repository, head).await.map(Some),
        None => Ok(None),
    }
}

/// Whether a branch of a remote holds this commit.
///
/// # Errors
/// A sentence that says why that is not known.
pub(super) async fn is_on_remote(caller: &GitCaller, repository: &Repository, hash: &str) -> Result<bool, String> {
    let arguments = ["rev-list", "--max-count=1", hash, "--not", "--remotes"];
    let answer = caller.call(&repository.branches(), &arguments).await;
    match answer.end {
        GitEnd::Exit(0) => Ok(answer.stdout.is_empty()),
        _ => Err(answer.reason(caller.limit())),
    }
}

async fn log(caller: &GitCaller, repository: &Repository) -> Told<Vec<Logged>> {
    let Some(head) = &repository.head else { return Ok(Vec::new()) };
    let answer = caller.call(&repository.files(), &[&LOG[..], &[head, "--"]].concat()).await;
    match answer.end {
        // Subjects may be so long that the output is cut. What was read is enough.
        GitEnd::Exit(0) | GitEnd::Cut => Ok(read_log(&answer.stdout)),
        _ => Err(answer.reason(caller.limit())),
    }
}

fn read_log(printed: &[u8]) -> Vec<Logged> {
    let commit = |line: &[u8]| {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let (commit, at) = (hash_of(parts.next()?)?, parts.next()?);
        let at = str::from_utf8(at).ok()?.parse().unwrap_or(0);
        let subject = quotable_words(&plain_line(parts.next()?, usize::MAX), MAX_SUBJECT);
        Some(Logged { facts: CommitFacts { commit, subject }, at })
    };
    printed.split(|byte| *byte == b'\n').filter_map(commit).collect()
}

/// How many stashes there are.
async fn stashes(caller: &GitCaller, repository: &Repository) -> Told<u64> {
    let place = repository.branches();
    let last = caller.call(&place, &["rev-parse", "-q", "--verify", "refs/stash"]).await;
    match last.end {
        GitEnd::Exit(0) => {}
        GitEnd::Exit(1) => return Ok(0),
        _ => return Err(last.reason(caller.limit())),
    }
    let answer = caller.call(&place, &["rev-list", "--walk-reflogs", "--count", "refs/stash", "--"]).await;
    let count = String::from_utf8_lossy(&answer.stdout).trim().parse();
    match (answer.end == GitEnd::Exit(0), count) {
        // If the log of the stashes is gone, the last stash is still there.
        (true, Ok(count)) => Ok(u64::max(count, 1)),
        _ => Err(answer.reason(caller.limit())),
    }
}

/// What is under way. In the format `reftable`, two of the files that show it are entries of a table instead, so git is
/// asked for them.
async fn in_progress(caller: &GitCaller, repository: &Repository) -> Told<Option<&'static str>> {
    if repository.in_progress.is_some() || !repository.settings.reftable {
        return Ok(repository.in_progress);
    }
    for (name, word) in [("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")] {
        let answer = caller.call(&repository.with_its_configuration(), &["rev-parse", "-q", "--verify", name]).await;
        match answer.end {
            GitEnd::Exit(0) => return Ok(Some(word)),
            GitEnd::Exit(1) => {}
            _ => return Err(answer.reason(caller.limit())),
        }
    }
    Ok(None)
}

/// Reads a time as in RFC 3339. Returns whole seconds since 1970, as git counts them.
fn seconds(time: &str) -> Told<i64> {
    let time = millis(time).ok_or("the time of the registration can't be read")?;
    Ok(time.div_euclid(1_000))
}
