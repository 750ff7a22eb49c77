//! Who could change what a path leads to: the owner of a folder or link on the way to it, and everybody who may write
//! there.
//!
//! The way is walked as the system walks it, link by link. So a link that another user has put there is found, even if
//! at this moment it leads to one of our own files.

use super::{Meta, is_plain};
use nix::errno::Errno;
use nix::sys::stat::lstat;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;
/// In such a folder nobody can rename or remove another user's files.
const STICKY: u32 = 0o1000;

/// Why a path can't be trusted.
#[derive(Debug)]
pub enum Unsafe {
    /// Another user could change what the path leads to.
    Exposed {
        /// The folder, link or file on the way that makes that possible.
        path: PathBuf,
        what: String,
        fix: String,
    },
    /// It could not be followed to its end.
    Io { path: PathBuf, source: io::Error },
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsafe::Exposed { path, what, fix } => write!(f, "{} {what}; {fix}", path.display()),
            Unsafe::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl Unsafe {
    /// Whether the only fault is that nothing is there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Unsafe::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// What on the way gives somebody else the chance; none if the way could not be followed.
    #[must_use]
    pub fn blamed(&self) -> Option<&Path> {
        match self {
            Unsafe::Exposed { path, .. } => Some(path),
            Unsafe::Io { .. } => None,
        }
    }

    fn exposed(path: &Path, what: impl Into<String>, fix: impl Into<String>) -> Unsafe {
        Unsafe::Exposed { path: path.to_owned(), what: what.into(), fix: fix.into() }
    }
}

/// What is found at the end of a way.
#[derive(Debug)]
pub struct End {
    pub path: PathBuf,
    pub meta: Meta,
    /// The folder that contains it; for the root the root itself.
    pub folder: Meta,
}

/// Walks to the end of an absolute path.
///
/// # Errors
/// [`Unsafe::Io`] for a relative path, without a look at it; [`Unsafe::Exposed`] if somebody but root and us owns a
/// folder or a link on the way, or may put something else into its place; what lies at the end is not judged, and
/// neither is who may add to its folder. Else the system's.
pub fn walk(path: &Path) -> Result<End, Unsafe> {
    if !path.is_absolute() {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "the path is not absolute");
        return Err(Unsafe::Io { path: path.to_owned(), source });
    }
    let mut left: VecDeque<OsString> = VecDeque::new();
    push_front(&mut left, path);
    let mut here = PathBuf::from("/");
    let mut meta = look(&here)?;
    let mut folder = meta;
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        if name == ".." {
            here.pop();
            meta = look(&here)?;
            folder = here.parent().map_or(Ok(meta), look)?;
            continue;
        }
        check_folder(&here, &meta)?;
        let next = here.join(&name);
        let found = look(&next)?;
        if !found.is_link() {
            (folder, meta, here) = (meta, found, next);
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(Unsafe::Io { path: next, source: Errno::ELOOP.into() });
        }
        check_owner(&next, &found, "could let the link lead elsewhere")?;
        let target = std::fs::read_link(&next).map_err(|source| Unsafe::Io { path: next, source })?;
        if target.is_absolute() {
            here = PathBuf::from("/");
            meta = look(&here)?;
            folder = meta;
        }
        push_front(&mut left, &target);
    }
    Ok(End { path: here, meta, folder })
}

/// Refuses a file or folder that names programs, or is typed, unless it and its whole way are ours or root's and nobody
/// else can write to it or add to it.
///
/// # Errors
/// As for [`walk`].
pub fn trust(path: &Path) -> Result<End, Unsafe> {
    let end = walk(path)?;
    check_owner(&end.path, &end.meta, "could change it")?;
    if end.meta.mode & 0o022 != 0 {
        let what = format!("can be written by other users (mode {:04o})", end.meta.mode);
        return Err(Unsafe::exposed(&end.path, what, format!("run: chmod go-w '{}'", end.path.display())));
    }
    Ok(end)
}

/// The same for a path that may be missing; returns whether it exists.
///
/// # Errors
/// As for [`walk`], but that it is missing is none.
pub fn trust_if_there(path: &Path) -> Result<bool, Unsafe> {
    match trust(path) {
        Ok(_) => Ok(true),
        Err(error) if error.is_missing() => Ok(false),
        Err(error) => Err(error),
    }
}

fn push_front(left: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) if is_plain(name) => left.push_front(name.to_owned()),
            Component::ParentDir => left.push_front("..".into()),
            _ => {}
        }
    }
}

fn look(path: &Path) -> Result<Meta, Unsafe> {
    let meta = lstat(path).map(Meta::from);
    meta.map_err(|errno| Unsafe::Io { path: path.to_owned(), source: errno.into() })
}

/// Checks a folder on the way: its owner is root or us, and nobody else can rename its contents.
fn check_folder(path: &Path, meta: &Meta) -> Result<(), Unsafe> {
    check_owner(path, meta, "could replace what is in it")?;
    if meta.mode & 0o022 != 0 && meta.mode & STICKY == 0 {
        let what = format!("can be written by other users (mode {:04o}), who could replace what is in it", meta.mode);
        return Err(Unsafe::exposed(path, what, format!("run: chmod go-w '{}'", path.display())));
    }
    Ok(())
}

fn check_owner(path: &Path, meta: &Meta, could: &str) -> Result<(), Unsafe> {
    if meta.uid == 0 || meta.is_ours() {
        return Ok(());
    }
    let what = format!("belongs to user {}, who {could}", meta.uid);
    Err(Unsafe::exposed(path, what, "choose a place inside your own folders"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_way_is_followed_through_links_and_each_open_folder_on_it_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("it is there");
        fs::create_dir_all(root.join("a/b")).expect("made");
        fs::create_dir(root.join("links")).expect("made");
        fs::write(root.join("a/b/file"), "x").expect("written");
        symlink("../links/other", root.join("a/link")).expect("a link");
        symlink(root.join("a/b"), root.join("links/other")).expect("a link");
        let end = walk(&root.join("a/link/../b/file")).expect("ours");
        assert_eq!((end.path, end.meta.is_file(), end.folder.is_dir()), (root.join("a/b/file"), true, true));
        // The folder of a link in the middle counts, though nothing of the end's own path is in it.
        fs::set_permissions(root.join("links"), fs::Permissions::from_mode(0o777)).expect("a mode");
        let Err(Unsafe::Exposed { path, fix, .. }) = walk(&root.join("a/link/file")) else { panic!("trusted") };
        assert_eq!((path, fix.contains("chmod go-w")), (root.join("links"), true));
        fs::set_permissions(root.join("links"), fs::Permissions::from_mode(0o1777)).expect("a mode");
        walk(&root.join("a/link/file")).expect("nobody can replace what is ours in a sticky folder");
        assert!(walk(&root.join("a/none/file")).expect_err("not there").is_missing());
        let Err(Unsafe::Io { source, .. }) = walk(Path::new("tmp")) else { panic!("walked from the root") };
        assert_eq!(source.kind(), io::ErrorKind::InvalidInput, "a relative path does not begin at the root");
        symlink("round", root.join("round")).expect("a link");
        assert!(matches!(walk(&root.join("round")), Err(Unsafe::Io { .. })));
    }
}
