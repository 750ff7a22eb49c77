//! Paths that a document names: on disk, in HEAD, or in any earlier commit.

use super::call::{GitAnswer, GitCaller, GitEnd};
use super::repository::Repository;
use super::words::path_of;
use crate::core::check::PathLookup;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The entries of a commit that have exactly these names. The commit and the paths follow.
const IN_COMMIT: [&str; 3] = ["ls-tree", "-z", "--name-only"];
/// Where files were added, in the whole history of all branches: a file that was there at some time was added once.
/// `--full-history`: git would skip a branch on which a file came and went before it was merged. `-m`: git would not
/// compare a merge with its parents, and a merge may add a file too.
const ADDED: [&str; 10] = [
    "log",
    "-m",
    "-z",
    "--all",
    "--full-history",
    "--no-renames",
    "--diff-filter=A",
    "--name-only",
    "--relative",
    "--format=",
];
/// Longest path that is looked up, in bytes.
const MAX_PATH: usize = 4_096;

/// Claimed paths and where they are below the working directory.
pub(super) type Relative = BTreeMap<String, PathBuf>;

/// The path without what means nothing, such as `./`. None if it could lead out of the working directory, or if it names
/// the directory itself.
pub(super) fn relative(claim: &str) -> Option<PathBuf> {
    if claim.len() > MAX_PATH || claim.contains('\0') {
        return None;
    }
    let mut path = PathBuf::new();
    for component in Path::new(claim).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!path.as_os_str().is_empty()).then_some(path)
}

/// Whether each path is in the directory. A path is left out if that can't be told, or if a link on its way leads
/// out of the directory.
pub(super) fn on_disk(cwd: &Path, paths: &Relative) -> BTreeMap<String, bool> {
    let Ok(cwd) = fs::canonicalize(cwd) else { return BTreeMap::new() };
    let found = paths.iter().filter_map(|(claim, path)| Some((claim.clone(), is_there(&cwd, path)?)));
    found.collect()
}

fn is_there(cwd: &Path, path: &Path) -> Option<bool> {
    let path = cwd.join(path);
    let is_absent = |error: &io::Error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    match fs::canonicalize(path.parent()?) {
        Ok(folder) if folder.starts_with(cwd) => {}
        Ok(_) => return None,
        Err(error) => return is_absent(&error).then_some(false),
    }
    match fs::symlink_metadata(&path) {
        Ok(_) => Some(true),
        Err(error) => is_absent(&error).then_some(false),
    }
}

/// Where paths are that are not on disk. A path is left out if git can't tell.
pub(super) async fn in_git(
    caller: &GitCaller,
    repository: &Repository,
    paths: &Relative,
) -> BTreeMap<String, PathLookup> {
    let head = repository.head.as_deref();
    let arguments = |options: &[&str]| -> Vec<OsString> {
        let words = options.iter().copied().chain(head).chain(["--"]).map(OsString::from);
        words.chain(paths.values().map(|path| path.as_os_str().to_owned())).collect()
    };
    let (files, branches) = (repository.files_here(), repository.branches());
    let (in_head, added) = (arguments(&IN_COMMIT), arguments(&ADDED));
    let in_head = async {
        match head {
            Some(_) => Some(caller.call(&files, &in_head).await),
            None => None,
        }
    };
    let (in_head, added) = tokio::join!(in_head, caller.call(&branches, &added));
    let answers: Vec<GitAnswer> = in_head.into_iter().chain([added]).collect();
    let known: BTreeSet<&Path> = answers.iter().flat_map(|answer| names(&answer.stdout)).collect();
    // A shallow repository does not have its whole history.
    let is_whole = !repository.is_shallow && answers.iter().all(|answer| answer.end == GitEnd::Exit(0));
    let found = paths.iter().filter_map(|(claim, path)| {
        let is_known = known.contains(path.as_path());
        let answer = if is_known { PathLookup::InGit } else { PathLookup::Missing };
        (is_known || is_whole).then(|| (claim.clone(), answer))
    });
    found.collect()
}

/// The names that were printed and the folders in which they are. The last one counts only if it has its end.
fn names(printed: &[u8]) -> impl Iterator<Item = &Path> {
    let end = printed.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    printed[..end].split(|byte| *byte == 0).flat_map(|name| path_of(name).ancestors())
}
