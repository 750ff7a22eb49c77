//! Finds the repository of a folder. Git itself does this, with its own check of who owns the repository. These calls
//! read the repository's configuration, and so does `facts::in_progress`. They only print names and settings. None of
//! them looks at a file of the work tree, at the index or at an object, so none has a reason to run another program.

use super::call::{GitAnswer, GitCaller, GitEnd, GitPlace};
use super::ignored::ignored_everywhere;
use super::in_progress::in_progress;
use super::settings::{ConfiguredUpstream, CopiedSettings, WANTED};
use super::stand_in::{GitDirs, StandIn, StandInPlan};
use super::words::{hash_of, os_text, path_of, without_break};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// What the first call asks: three words and three paths, one per line. The work tree comes last, because git ends with
/// an error if there is none.
const ASKED: [&str; 8] = [
    "rev-parse",
    "--is-bare-repository",
    "--is-shallow-repository",
    "--show-object-format",
    "--path-format=absolute",
    "--git-common-dir",
    "--absolute-git-dir",
    "--show-toplevel",
];
const HEADS: &[u8] = b"refs/heads/";

/// What the search for a repository has found.
#[derive(Debug)]
pub(super) enum Opened {
    /// The folder is in no repository.
    Nothing,
    /// Nobody can tell; the sentence says why.
    Unreadable(String),
    Repository(Box<Repository>),
}

/// A repository to ask about.
#[derive(Debug)]
pub(super) struct Repository {
    pub dirs: GitDirs,
    pub is_bare: bool,
    /// The oldest commits are missing, as in a clone with a limited depth.
    pub is_shallow: bool,
    /// The folder with the files; none in a bare repository, or for the reason in `no_work_tree`.
    pub work_tree: Option<PathBuf>,
    pub no_work_tree: Option<&'static str>,
    /// The branch's name; none where HEAD is detached.
    pub branch: Option<Vec<u8>>,
    /// The hash of HEAD; none in a repository without a commit.
    pub head: Option<String>,
    pub settings: CopiedSettings,
    pub upstream: ConfiguredUpstream,
    pub in_progress: Option<&'static str>,
    cwd: PathBuf,
    stand_in: StandIn,
}

/// The answer to [`ASKED`].
struct Found {
    is_bare: bool,
    is_shallow: bool,
    object_format: &'static str,
    dirs: GitDirs,
    top: Option<PathBuf>,
}

impl Repository {
    /// The place of calls that look at files, index and objects: the top of the work tree.
    pub(super) fn files(&self) -> GitPlace {
        self.place(self.stand_in.files(), self.work_tree.as_ref().unwrap_or(&self.cwd))
    }

    /// As [`Repository::files`], with paths relative to the working directory.
    pub(super) fn files_here(&self) -> GitPlace {
        self.place(self.stand_in.files(), &self.cwd)
    }

    /// The place of calls that look at branches, with paths relative to the working directory.
    pub(super) fn branches(&self) -> GitPlace {
        self.place(self.stand_in.branches(), &self.cwd)
    }

    /// The place of calls that read the repository's own configuration. They must not look at files or objects.
    pub(super) fn with_its_configuration(&self) -> GitPlace {
        GitPlace { cwd: self.cwd.clone(), variables: Vec::new() }
    }

    fn place(&self, git_dir: PathBuf, cwd: &Path) -> GitPlace {
        let mut variables = vec![("GIT_DIR", Some(git_dir.into_os_string()))];
        variables.extend(self.work_tree.iter().map(|top| ("GIT_WORK_TREE", Some(top.as_os_str().to_owned()))));
        GitPlace { cwd: cwd.to_owned(), variables }
    }
}

/// Finds the repository of this folder.
pub(super) async fn open(caller: &GitCaller, cwd: &Path) -> Opened {
    if !cwd.is_absolute() {
        return Opened::Unreadable("the working directory is not known".to_owned());
    }
    let place = GitPlace { cwd: cwd.to_owned(), variables: Vec::new() };
    let settings = ["config", "--no-includes", "-z", "--get-regexp", WANTED];
    let (found, upstream, head, settings, ignored) = tokio::join!(
        caller.call(&place, &ASKED),
        configured_upstream(caller, &place),
        caller.call(&place, &["rev-parse", "-q", "--verify", "HEAD"]),
        caller.call(&place, &settings),
        ignored_everywhere(caller),
    );
    let found = match read_found(caller, &found) {
        Ok(Some(found)) => found,
        Ok(None) => return Opened::Nothing,
        Err(reason) => return Opened::Unreadable(reason),
    };
    let settings = printed(caller, &settings).and_then(|printed| CopiedSettings::read(printed.unwrap_or_default()));
    let head = printed(caller, &head).map(|printed| printed.and_then(hash_of));
    match (upstream, head, settings) {
        (Ok(upstream), Ok(head), Ok(mut settings)) => {
            settings.ignored = ignored;
            finish(caller, cwd, found, upstream, head, settings).await
        }
        (Err(reason), _, _) | (_, Err(reason), _) | (_, _, Err(reason)) => Opened::Unreadable(reason),
    }
}

/// Makes the stand-in, and looks whether an operation such as a merge is under way.
async fn finish(
    caller: &GitCaller,
    cwd: &Path,
    found: Found,
    (branch, upstream): (Option<Vec<u8>>, ConfiguredUpstream),
    head: Option<String>,
    settings: CopiedSettings,
) -> Opened {
    let Found { is_bare, is_shallow, object_format, dirs, top } = found;
    let without_commit = || [b"ref: ", HEADS, branch.as_deref().unwrap_or(b"main")].concat();
    let mut plan = StandInPlan {
        dirs: dirs.clone(),
        head: head.clone().map_or_else(without_commit, String::into_bytes),
        object_format,
        has_work_tree: false,
        settings: settings.clone(),
        upstream: upstream.clone(),
    };
    let at = cwd.to_owned();
    let looked = caller.in_own_thread(move || {
        let work_tree = if is_bare { Ok(None) } else { work_tree(&at, top).map(Some) };
        plan.has_work_tree = matches!(work_tree, Ok(Some(_)));
        (work_tree, in_progress(&plan.dirs.own), StandIn::make(&plan))
    });
    let (work_tree, in_progress, stand_in) = match looked.await {
        Some((work_tree, in_progress, Ok(stand_in))) => (work_tree, in_progress, stand_in),
        Some((_, _, Err(error))) => {
            let reason = "no temporary folder could be made, which git needs to look at the repository";
            return Opened::Unreadable(format!("{reason}: {error}"));
        }
        None => return Opened::Unreadable("the repository's files could not be looked at in time".to_owned()),
    };
    let (cwd, no_work_tree) = (cwd.to_owned(), work_tree.as_ref().err().copied());
    let work_tree = work_tree.ok().flatten();
    Opened::Repository(Box::new(Repository {
        dirs,
        is_bare,
        is_shallow,
        work_tree,
        no_work_tree,
        branch,
        head,
        settings,
        upstream,
        in_progress,
        cwd,
        stand_in,
    }))
}

/// The branch, and its upstream as far as the configuration names one.
async fn configured_upstream(
    caller: &GitCaller,
    place: &GitPlace,
) -> Result<(Option<Vec<u8>>, ConfiguredUpstream), String> {
    let answer = caller.call(place, &["symbolic-ref", "-q", "HEAD"]).await;
    let Some(branch) = printed(caller, &answer)?.and_then(|name| without_break(name).strip_prefix(HEADS)) else {
        return Ok((None, ConfiguredUpstream::default()));
    };
    let key = |variable: &str| os_text(&[b"branch.", branch, b".", variable.as_bytes()].concat());
    let ask = async |variable: &str| {
        let words = ["config", "--no-includes", "-z", "--get"].map(OsString::from);
        let answer = caller.call(place, &[&words[..], &[key(variable)]].concat()).await;
        let printed = printed(caller, &answer)?;
        Ok::<_, String>(printed.map(|value| value.strip_suffix(b"\0").unwrap_or(value).to_vec()))
    };
    let (remote, merge) = tokio::join!(ask("remote"), ask("merge"));
    Ok((Some(branch.to_vec()), ConfiguredUpstream { branch: branch.to_vec(), remote: remote?, merge: merge? }))
}

/// What a call has printed; none if it ended with 1, which means for these commands that nothing was found.
fn printed<'a>(caller: &GitCaller, answer: &'a GitAnswer) -> Result<Option<&'a [u8]>, String> {
    match answer.end {
        GitEnd::Exit(0) => Ok(Some(&answer.stdout)),
        GitEnd::Exit(1) => Ok(None),
        _ => Err(answer.reason(caller.limit())),
    }
}

/// Reads the answer to [`ASKED`]. None if there is no repository.
fn read_found(caller: &GitCaller, answer: &GitAnswer) -> Result<Option<Found>, String> {
    let lines: Vec<&[u8]> = answer.stdout.split_inclusive(|byte| *byte == b'\n').map(without_break).collect();
    match answer.end {
        GitEnd::Exit(0) => {}
        // Without a work tree, git prints the other answers and then ends with an error.
        GitEnd::Exit(_) if !lines.is_empty() => {}
        GitEnd::Exit(_) => return why_not_found(caller, answer),
        _ => return Err(answer.reason(caller.limit())),
    }
    let [bare, shallow, format, common, own, top @ ..] = &lines[..] else {
        return Err("git's answer about the repository can't be understood".to_owned());
    };
    let paths = [common, own].map(|path| path_of(path).to_owned());
    // A line break in a path makes more lines than were asked for.
    let tops = usize::from(answer.end == GitEnd::Exit(0));
    if top.len() != tops || paths.iter().any(|path| !path.is_absolute()) {
        return Err("the path of the repository has a line break".to_owned());
    }
    let [common, own] = paths;
    let object_format = match *format {
        b"sha1" => "sha1",
        b"sha256" => "sha256",
        _ => return Err("the repository's hashes are of a kind that is unknown to tasuki".to_owned()),
    };
    Ok(Some(Found {
        is_bare: *bare == b"true",
        is_shallow: *shallow == b"true",
        object_format,
        dirs: GitDirs { own, common },
        top: top.first().map(|top| path_of(top).to_owned()),
    }))
}

/// Why git has found no repository, in our own words if the reason is a usual one. None if there simply is none.
fn why_not_found(caller: &GitCaller, answer: &GitAnswer) -> Result<Option<Found>, String> {
    let said = |words: &str| answer.stderr.contains(words);
    if said("not a git repository (or any") {
        return Ok(None);
    }
    let reason = if said("dubious ownership") || said("unsafe repository") {
        "the repository belongs to another user, and git refuses to read it"
    } else if said("cannot change to") && said("No such file") {
        "the working directory does not exist"
    } else if said("cannot change to") {
        "the working directory can't be entered"
    } else if said("not a git repository: ") {
        "the file .git names a repository that does not exist"
    } else {
        return Err(answer.reason(caller.limit()));
    };
    Err(reason.to_owned())
}

/// The work tree, which must be the folder whose `.git` has led to the repository. A configuration may name any other
/// folder as the work tree, and then the facts would tell the names of the files there.
///
/// # Errors
/// A sentence that says why there are no files to compare.
fn work_tree(cwd: &Path, top: Option<PathBuf>) -> Result<PathBuf, &'static str> {
    let top = top.ok_or("the working directory is inside the repository's own folder of git")?;
    let cwd = fs::canonicalize(cwd).map_err(|_| "the working directory can't be looked at")?;
    let found = cwd.ancestors().find(|folder| fs::symlink_metadata(folder.join(".git")).is_ok());
    let is_same = found.is_some_and(|folder| folder == top);
    if is_same {
        Ok(top)
    } else {
        Err("the repository names another folder as its work tree, which tasuki leaves alone")
    }
}
