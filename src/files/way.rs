//! Finds out whether another user could change what a path leads to: as the owner of a folder or link on the way, or
//! with the right to write there.
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

/// The largest number of links on a way: as many as Linux follows.
const MOST_LINKS: usize = 40;
/// The sticky bit. In a folder with it, only the owner of a file, of the folder, or root can rename or remove the file.
const STICKY: u32 = 0o1000;

/// Why a path can't be trusted.
#[derive(Debug)]
pub enum Unsafe {
    /// Another user could change what the path leads to.
    Exposed {
        /// The folder, link or file on the way that makes that possible.
        path: PathBuf,
        /// What is wrong, as a phrase that continues the path: `belongs to user 7, who could …`.
        what: String,
        /// What to do about it.
        fix: String,
    },
    /// The path could not be followed to its end.
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

    /// The folder, link or file by which another user could change what the path leads to; none if the path could not
    /// be followed.
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

/// The file or folder at the end of a path, after all links.
#[derive(Debug)]
pub struct End {
    pub path: PathBuf,
    pub meta: Meta,
    /// The folder that contains it. For the root, this is the root itself.
    pub folder: Meta,
}

/// Walks to the end of an absolute path, and checks the folders and links on the way. It does not check what lies at
/// the end. A folder in which others can add files but not replace ours, such as `/tmp`, is allowed.
///
/// # Errors
/// [`Unsafe::Exposed`] if somebody other than root and us owns a folder or a link on the way, or could replace what is
/// in such a folder. [`Unsafe::Io`] for errors of the system, and for a relative path, which is not looked at.
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

/// Walks to the end of an absolute path, and checks also what lies there: it must belong to us or root, and nobody else
/// may write to it. For files that name programs, or whose text is typed, and for folders of such files.
///
/// # Errors
/// As for [`walk`], and [`Unsafe::Exposed`] if the file or folder at the end fails the check.
pub fn trust(path: &Path) -> Result<End, Unsafe> {
    let end = walk(path)?;
    check_owner(&end.path, &end.meta, "could change it")?;
    if end.meta.mode & 0o022 != 0 {
        let what = format!("can be written by other users (mode {:04o})", end.meta.mode);
        return Err(Unsafe::exposed(&end.path, what, format!("run: chmod go-w '{}'", end.path.display())));
    }
    Ok(end)
}

/// As [`trust`], for a path that may be missing. Returns whether it exists.
///
/// # Errors
/// As for [`trust`], except that a missing path is not an error.
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

/// Checks a folder on the way: its owner must be root or us, and nobody else may replace what is in it.
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
        // The folder in which a link lies counts, although the path of the end does not lead through it.
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
