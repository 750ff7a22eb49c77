//! Looks up the paths that a document names: on disk, in HEAD or in any other commit, whole or as the end of a longer
//! path.

use super::call::{GitAnswer, GitCaller, GitEnd, GitPlace};
use super::repository::Repository;
use super::words::{os_text, path_of};
use crate::core::check::PathLookup;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Lists the entries of a commit that have exactly the given paths. The commit and the paths follow.
const IN_COMMIT: [&str; 3] = ["ls-tree", "-z", "--name-only"];
/// Lists the folders and submodules of a commit that have exactly the given paths. The commit and the paths follow.
const FOLDERS: [&str; 3] = ["ls-tree", "-z", "-d"];
/// What git prints before the hash of a submodule.
const SUBMODULE: &[u8] = b"160000 ";
/// Lists the files that were added in the whole history of all branches: a file that was there at some time was added
/// at some time. Without `--full-history`, git would skip a branch that added a file and removed it before it was
/// merged. Without `-m`, git would not compare a merge with its parents, and a merge may add a file too.
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
/// As [`ADDED`], for patterns that fit the ends of paths. The commit and the patterns follow.
const ADDED_BY_END: [&str; 9] =
    ["log", "-m", "-z", "--all", "--full-history", "--no-renames", "--diff-filter=A", "--name-only", "--format="];
/// Lists entries of the index: mode, hash and stage, a tab, and the path. Patterns follow.
const ENTRIES: [&str; 4] = ["ls-files", "-z", "--stage", "--"];
/// Lists files of the work tree, whether git tracks them, ignores them, or neither. Patterns follow.
const FILES: [&str; 5] = ["ls-files", "-z", "--cached", "--others", "--"];
/// Prints which of the given paths git ignores by a rule. The paths follow.
const IGNORED: [&str; 4] = ["-c", "core.quotepath=false", "check-ignore", "--"];
/// Longest path that is looked up, in bytes.
const MAX_PATH: usize = 4_096;

/// Each claimed path as the document writes it, with its plain form; see [`relative`].
pub(super) type Relative = BTreeMap<String, PathBuf>;

/// The path without parts that mean nothing, such as `./`. None if it could lead out of the working directory, or if it
/// names the directory itself.
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

/// Whether each path exists in the working directory or below the top of the work tree. Git names files from the top,
/// and so do documents; some documents put the name of the top folder before the path. If a path does not exist in one
/// of the two, and nobody can tell whether it exists in the other (a link may lead out of it), the path is left out.
pub(super) fn on_disk(cwd: &Path, top: Option<&Path>, paths: &Relative) -> BTreeMap<String, bool> {
    let Ok(cwd) = fs::canonicalize(cwd) else { return BTreeMap::new() };
    let is_in_one = |path: &Path| {
        let here = is_there(&cwd, path);
        let Some(top) = top.filter(|_| here != Some(true)) else { return here };
        match is_there(top, path) {
            Some(false) if below_own_name(top, path).is_some_and(|path| is_there(top, path) == Some(true)) => {
                Some(true)
            }
            Some(false) => here,
            at_top => at_top,
        }
    };
    let found = paths.iter().filter_map(|(claim, path)| Some((claim.clone(), is_in_one(path)?)));
    found.collect()
}

/// The rest of a path that begins with the name of the top folder.
fn below_own_name<'p>(top: &Path, path: &'p Path) -> Option<&'p Path> {
    path.strip_prefix(top.file_name()?).ok()
}

/// Whether the folder has the path; none if that can't be told, or if a link leads out of the folder.
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

/// Looks in git for paths that are not on disk. A path has no answer if git can't tell. Neither has a path that leads
/// into a submodule, which is a repository of its own.
pub(super) async fn in_git(
    caller: &GitCaller,
    repository: &Repository,
    paths: &Relative,
) -> BTreeMap<String, PathLookup> {
    let all: Vec<&Path> = paths.values().map(PathBuf::as_path).collect();
    let above: BTreeSet<&Path> = all.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let folders: Vec<&Path> = above.into_iter().filter(|folder| !folder.as_os_str().is_empty()).collect();
    let (in_head, folders) = (arguments(&IN_COMMIT, repository, &all), arguments(&FOLDERS, repository, &folders));
    let (branches, added) = (repository.branches(), arguments(&ADDED, repository, &all));
    let (in_head, folders, added) = tokio::join!(
        in_commit(caller, repository, &in_head),
        in_commit(caller, repository, &folders),
        caller.call(&branches, &added),
    );
    let submodules: BTreeSet<&Path> = folders.iter().flat_map(|answer| submodules(&answer.stdout)).collect();
    let known: BTreeSet<&Path> =
        in_head.iter().chain([&added]).flat_map(|answer| names(&answer.stdout)).flat_map(Path::ancestors).collect();
    let answers: Vec<&GitAnswer> = in_head.iter().chain(&folders).chain([&added]).collect();
    // A shallow repository does not have its whole history.
    let is_whole = !repository.is_shallow && answers.iter().all(|answer| answer.end == GitEnd::Exit(0));
    let is_known = |path: &Path| known.contains(path);
    let (known, mut left): (Relative, Relative) = paths.clone().into_iter().partition(|(_, path)| is_known(path));
    let mut found: BTreeMap<String, PathLookup> = known.into_keys().map(|claim| (claim, PathLookup::InGit)).collect();
    left.retain(|_, path| !path.ancestors().any(|it| submodules.contains(it)));
    if is_whole && !left.is_empty() {
        found.extend(by_end(caller, repository, &left).await);
    }
    found
}

/// Whether each path is the end of a file's path, in the work tree or in the history. A path is left out if git can't
/// tell, or if it may lead into a submodule anywhere.
async fn by_end(caller: &GitCaller, repository: &Repository, paths: &Relative) -> BTreeMap<String, PathLookup> {
    let files: BTreeSet<&Path> = paths.values().map(PathBuf::as_path).collect();
    let above = files.iter().flat_map(|path| path.ancestors()).filter(|path| !path.as_os_str().is_empty()).collect();
    let added = [arguments(&ADDED_BY_END, repository, &[]), patterns(&files)].concat();
    let with_options = |options: &[&str], paths: &BTreeSet<&Path>| -> Vec<OsString> {
        options.iter().map(OsString::from).chain(patterns(paths)).collect()
    };
    let (files, entries) = (with_options(&FILES, &files), with_options(&ENTRIES, &above));
    let (on_disk, in_history) = (with_patterns(repository.files()), with_patterns(repository.branches()));
    let (files, added, entries) =
        tokio::join!(caller.call(&on_disk, &files), caller.call(&in_history, &added), caller.call(&on_disk, &entries),);
    let is_whole = [&files, &added, &entries].iter().all(|answer| answer.end == GitEnd::Exit(0));
    let named: Vec<&Path> = names(&files.stdout).chain(names(&added.stdout)).collect();
    let submodules: Vec<&Path> = submodules(&entries.stdout).collect();
    let found = paths.iter().filter_map(|(claim, path)| {
        let is_end = named.iter().any(|name| name.ends_with(path));
        let may_be_in_one = path.ancestors().skip(1).any(|folder| {
            !folder.as_os_str().is_empty() && submodules.iter().any(|submodule| submodule.ends_with(folder))
        });
        let answer = if is_end { PathLookup::InGit } else { PathLookup::Missing };
        (is_end || (is_whole && !may_be_in_one)).then(|| (claim.clone(), answer))
    });
    found.collect()
}

/// Which of these paths git would ignore. A path at which git gives up counts as ignored. If git does not answer, all
/// of them do. An ignored file may be missing only here: a build makes it, or each machine has its own. A path may
/// begin in the working directory, at the top of the work tree, or with the name of the top folder.
pub(super) async fn ignored(caller: &GitCaller, repository: &Repository, paths: &Relative) -> BTreeSet<String> {
    let all = || paths.keys().cloned().collect();
    let Some(top) = repository.work_tree.as_deref().filter(|_| !paths.is_empty()) else { return all() };
    let here: Vec<&Path> = paths.values().map(PathBuf::as_path).collect();
    let from_top: Vec<&Path> =
        here.iter().flat_map(|path| [Some(*path), below_own_name(top, path)]).flatten().collect();
    // `check-ignore` refuses to run with `GIT_LITERAL_PATHSPECS`, so it uses the places without that variable.
    let (here_place, top_place) = (with_patterns(repository.files_here()), with_patterns(repository.files()));
    let (ignored_here, ignored_at_top) =
        tokio::join!(ignored_from(caller, &here_place, &here), ignored_from(caller, &top_place, &from_top));
    let (Some(ignored_here), Some(ignored_at_top)) = (ignored_here, ignored_at_top) else { return all() };
    let is_at_top = |path: &Path| ignored_at_top.contains(path);
    let is_ignored = |path: &Path| {
        ignored_here.contains(path) || is_at_top(path) || below_own_name(top, path).is_some_and(is_at_top)
    };
    paths.iter().filter(|(_, path)| is_ignored(path)).map(|(claim, _)| claim.clone()).collect()
}

/// Which paths git would ignore at this place; `None` if git does not answer. At a path beyond a link, git gives up.
/// Then each path is asked for on its own, and a path at which git gives up counts as ignored: nobody knows whether it
/// is.
async fn ignored_from(caller: &GitCaller, place: &GitPlace, paths: &[&Path]) -> Option<BTreeSet<PathBuf>> {
    match ignored_among(caller, place, paths).await {
        (GitEnd::Exit(0 | 1), ignored) => return Some(ignored),
        (GitEnd::Exit(_), _) => {}
        _ => return None,
    }
    let mut all = BTreeSet::new();
    for path in paths {
        match ignored_among(caller, place, std::slice::from_ref(path)).await {
            (GitEnd::Exit(0 | 1), ignored) => all.extend(ignored),
            (GitEnd::Exit(_), _) => drop(all.insert(path.to_path_buf())),
            _ => return None,
        }
    }
    Some(all)
}

async fn ignored_among(caller: &GitCaller, place: &GitPlace, paths: &[&Path]) -> (GitEnd, BTreeSet<PathBuf>) {
    // After a `./` nothing in a path is a pattern.
    let named = paths.iter().map(|path| Path::new(".").join(path).into_os_string());
    let arguments: Vec<OsString> = IGNORED.iter().map(OsString::from).chain(named).collect();
    let answer = caller.call(place, &arguments).await;
    // Git prints a name with odd characters in another form. Such a path counts as not ignored.
    let lines = answer.stdout.split(|byte| *byte == b'\n').map(path_of);
    let ignored = lines.filter_map(|line| line.strip_prefix(".").ok()).map(Path::to_owned).collect();
    (answer.end, ignored)
}

fn patterns(paths: &BTreeSet<&Path>) -> Vec<OsString> {
    paths.iter().map(|path| os_text(&pattern(path))).collect()
}

/// A pattern for files, at the top of the work tree or anywhere below, whose paths end with this path.
fn pattern(path: &Path) -> Vec<u8> {
    let mut pattern = b":(top,glob)**/".to_vec();
    for byte in path.as_os_str().as_bytes() {
        if b"*?[\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

/// The place of a call whose paths are patterns. In other calls, git takes every path as it is.
fn with_patterns(mut place: GitPlace) -> GitPlace {
    place.variables.push(("GIT_LITERAL_PATHSPECS", None));
    place
}

/// Asks for entries of HEAD. None if HEAD has no commit.
async fn in_commit(caller: &GitCaller, repository: &Repository, arguments: &[OsString]) -> Option<GitAnswer> {
    repository.head.as_ref()?;
    Some(caller.call(&repository.files_here(), arguments).await)
}

/// The options, HEAD, and the names.
fn arguments(options: &[&str], repository: &Repository, names: &[&Path]) -> Vec<OsString> {
    let words = options.iter().copied().chain(repository.head.as_deref()).chain(["--"]).map(OsString::from);
    words.chain(names.iter().map(|name| name.as_os_str().to_owned())).collect()
}

/// The submodules among the entries that were printed: mode, kind and hash, a tab, and the name.
fn submodules(printed: &[u8]) -> impl Iterator<Item = &Path> {
    names(printed).filter_map(|entry| {
        let entry = entry.as_os_str().as_bytes();
        let tab = entry.iter().position(|byte| *byte == b'\t').filter(|_| entry.starts_with(SUBMODULE))?;
        Some(path_of(&entry[tab + 1..]))
    })
}

/// The names that git has printed. A name counts only if its end, a NUL, was printed too.
fn names(printed: &[u8]) -> impl Iterator<Item = &Path> {
    let end = printed.iter().rposition(|byte| *byte == 0).unwrap_or(0);
    printed[..end].split(|byte| *byte == 0).map(path_of)
}
