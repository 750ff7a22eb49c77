//! Checks the folders of a home by the rules that the sidecar applies at its start, for `tasuki doctor`. It creates and
//! changes nothing, and reports every fault, not only the first.

use super::dirs::{DIRS, SpoolDir, check_dir, check_not_in_shared_folder, check_parent, forbidden, is_shared};
use super::error::Error;
use crate::files::Meta;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const MAX_LEFTOVERS: usize = 10_000;
/// The most names of one folder that are looked at.
const MAX_LISTED: usize = 100_000;

/// The part of a home in which a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The home itself or a folder above it.
    HomeOrAbove,
    /// `spool/` and its contents.
    Spool,
    /// `state/` and its contents.
    State,
    /// `view/` and its contents.
    View,
}

/// A fault that keeps the sidecar from starting.
#[derive(Debug)]
pub struct SurveyFault {
    pub part: Part,
    /// The error that the sidecar would report.
    pub error: Error,
    /// The folder and its mode without the forbidden bits, if the folder belongs to this user.
    pub chmod: Option<(PathBuf, u32)>,
}

/// The result of the survey.
#[derive(Debug, Default)]
pub struct Survey {
    /// Faults that keep the sidecar from starting.
    pub faults: Vec<SurveyFault>,
    /// Missing folders; the sidecar creates them at its start.
    pub missing: Vec<PathBuf>,
    /// Files in `spool/tmp/`, and test events. Old ones were left behind by killed processes. `tasuki doctor` makes
    /// hooks write test events, and removes them afterwards.
    pub leftovers: Vec<LeftoverFile>,
}

/// A file that a writer has left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftoverFile {
    pub path: PathBuf,
    /// The change time of its inode, in milliseconds since 1970.
    pub changed_ms: i64,
}

/// Checks the folders of a home; `None` if there is no home. `is_test_event` recognises the names of test events.
///
/// # Errors
/// The path of the home can't be followed.
pub fn survey(home: &Path, is_test_event: impl Fn(&OsStr) -> bool) -> io::Result<Option<Survey>> {
    let root = match home.canonicalize() {
        Ok(root) => root,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut found = Survey::default();
    for path in root.ancestors() {
        let meta = Meta::from(nix::sys::stat::stat(path)?);
        let judged = if path == root { check_dir(path, &meta, SpoolDir::Home) } else { check_parent(path, &meta) };
        found.add_fault(Part::HomeOrAbove, path, &meta, 0o022, judged);
    }
    if let Some(parent) = root.parent() {
        let meta = Meta::from(nix::sys::stat::stat(parent)?);
        found.add_fault(Part::HomeOrAbove, &root, &meta, 0, check_not_in_shared_folder(&root, parent, &meta));
    }
    for (spool_dir, below) in DIRS.into_iter().filter(|(spool_dir, _)| *spool_dir != SpoolDir::Home) {
        if has_no_link_above(&root, below) {
            found.check(spool_dir, &root.join(below));
        }
    }
    found.one_file_system(&root);
    if has_no_link_above(&root, "spool/tmp/.") {
        found.leftovers = leftovers(&root.join("spool/tmp"), |_| true);
    }
    if has_no_link_above(&root, "spool/events/.") {
        found.leftovers.extend(leftovers(&root.join("spool/events"), is_test_event));
    }
    Ok(Some(found))
}

/// Whether no folder above the last part of `below` is a link. To ask about the last part too, append `/.`. The survey
/// reports links, but does not follow them, because they may lead to another user's files.
fn has_no_link_above(root: &Path, below: &str) -> bool {
    let is_link = |path: PathBuf| std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    let mut above = below.match_indices('/').map(|(at, _)| root.join(&below[..at]));
    !above.any(is_link)
}

impl Survey {
    fn check(&mut self, spool_dir: SpoolDir, path: &Path) {
        let part = part(spool_dir);
        match nix::sys::stat::lstat(path).map(Meta::from) {
            Err(nix::errno::Errno::ENOENT) => self.missing.push(path.to_owned()),
            // The folder above it was reported already.
            Err(nix::errno::Errno::ENOTDIR) => {}
            Err(errno) => {
                let error = Error::io("look at the folder", path, io::Error::from(errno));
                self.faults.push(SurveyFault { part, error, chmod: None });
            }
            Ok(meta) if !meta.is_dir() => {
                let error = Error::open_dir(path, io::Error::from(nix::errno::Errno::ENOTDIR));
                self.faults.push(SurveyFault { part, error, chmod: None });
            }
            Ok(meta) => {
                self.add_fault(part, path, &meta, forbidden(spool_dir), check_dir(path, &meta, spool_dir));
                self.closed_to_us(part, path, &meta, forbidden(spool_dir));
            }
        }
    }

    /// Reports a folder in which its owner can't make files.
    fn closed_to_us(&mut self, part: Part, path: &Path, meta: &Meta, forbidden: u32) {
        if !meta.is_ours() || meta.mode & 0o700 == 0o700 {
            return;
        }
        let what = format!("is closed to its owner, so that tasuki can't make files in it (mode {:04o})", meta.mode);
        let fix = format!("Run: chmod u+rwx '{}'", path.display());
        let error = Error::NotAllowed { path: path.to_owned(), what, fix };
        let mode = (meta.mode | 0o700) & !forbidden;
        self.faults.push(SurveyFault { part, error, chmod: Some((path.to_owned(), mode)) });
    }

    fn add_fault(&mut self, part: Part, path: &Path, meta: &Meta, forbidden: u32, checked: Result<(), Error>) {
        let Err(error) = checked else { return };
        // A folder for all users, such as `/tmp`, is not for tasuki to close.
        let may_close = meta.is_ours() && !is_shared(meta);
        let chmod = may_close.then(|| (path.to_owned(), meta.mode & !forbidden));
        self.faults.push(SurveyFault { part, error, chmod });
    }

    /// Checks that the folders between which files are renamed are on one file system.
    fn one_file_system(&mut self, root: &Path) {
        let device =
            |below: &str| nix::sys::stat::lstat(&root.join(below)).ok().map(|stat| Meta::from(stat).file_stamp.dev);
        let Some(spool) = device("spool") else { return };
        for below in ["spool/tmp", "spool/requests", "spool/events", "spool/rejected", "state/reap"] {
            if !has_no_link_above(root, below) {
                continue;
            }
            if device(below).is_some_and(|device| device != spool) {
                let path = root.join(below);
                let part = if below.starts_with("state") { Part::State } else { Part::Spool };
                self.faults.push(SurveyFault { part, error: Error::other_file_system(path), chmod: None });
            }
        }
    }
}

fn part(spool_dir: SpoolDir) -> Part {
    match spool_dir {
        SpoolDir::Home => Part::HomeOrAbove,
        SpoolDir::State | SpoolDir::Trash => Part::State,
        SpoolDir::View | SpoolDir::Agents | SpoolDir::Handoffs | SpoolDir::Work | SpoolDir::OpenWork => Part::View,
        SpoolDir::Spool
        | SpoolDir::Tmp
        | SpoolDir::Requests
        | SpoolDir::Events
        | SpoolDir::Results
        | SpoolDir::Errors
        | SpoolDir::Rejected => Part::Spool,
    }
}

/// This user's regular files in a folder, if `wanted` accepts their names.
fn leftovers(folder: &Path, wanted: impl Fn(&OsStr) -> bool) -> Vec<LeftoverFile> {
    let Ok(dir) = crate::files::open_dir(folder) else { return Vec::new() };
    let Ok(listing) = crate::files::open_listing(&dir) else { return Vec::new() };
    let names = listing.take(MAX_LISTED).filter_map(Result::ok);
    let look = |name: &OsStr| {
        let meta = crate::files::meta_at(&dir, name).ok().flatten()?;
        let is_one = meta.is_file() && meta.is_ours();
        is_one.then(|| LeftoverFile { path: folder.join(name), changed_ms: meta.file_stamp.ctime_ns / 1_000_000 })
    };
    names
        .filter_map(|entry| {
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if wanted(name) { look(name) } else { None }
        })
        .take(MAX_LEFTOVERS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn made() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        drop(super::super::Spool::open(&dir.path().join("home")).expect("opened"));
        dir
    }

    fn look(dir: &tempfile::TempDir) -> Survey {
        survey(&dir.path().join("home"), |name| name.as_bytes().starts_with(b".probe-")).expect("read").expect("there")
    }

    #[test]
    fn folders_of_the_sidecar_have_no_fault_and_a_missing_home_has_no_survey() {
        let dir = made();
        let found = look(&dir);
        assert!(found.faults.is_empty() && found.missing.is_empty() && found.leftovers.is_empty(), "{found:?}");
        assert!(survey(&dir.path().join("none"), |_| false).expect("read").is_none());
        assert!(!dir.path().join("none").exists());
    }

    #[test]
    fn each_fault_is_in_its_part_and_a_wrong_mode_can_be_fixed() {
        let dir = made();
        let home = dir.path().join("home");
        let set = |below: &str, mode: u32| {
            fs::set_permissions(home.join(below), fs::Permissions::from_mode(mode)).expect("ours");
        };
        set("spool/events", 0o755);
        set("view", 0o755);
        fs::remove_dir(home.join("state/reap")).expect("empty");
        fs::write(home.join("state/reap"), "").expect("a file in its place");
        fs::remove_dir(home.join("spool/results")).expect("empty");
        let found = look(&dir);
        let parts: Vec<Part> = found.faults.iter().map(|fault| fault.part).collect();
        assert_eq!(parts, [Part::Spool, Part::State], "{found:?}");
        assert_eq!(found.faults[0].chmod.as_ref().map(|(_, mode)| *mode), Some(0o700));
        assert!(found.faults[1].chmod.is_none());
        assert_eq!(found.missing, [home.canonicalize().expect("there").join("spool/results")]);
    }

    #[test]
    fn a_folder_that_its_owner_cant_write_is_a_fault() {
        let dir = made();
        let home = dir.path().join("home");
        for (below, mode) in [("spool/requests", 0o577), ("view/agents", 0o500), ("state", 0o500)] {
            fs::set_permissions(home.join(below), fs::Permissions::from_mode(mode)).expect("ours");
        }
        let found = look(&dir);
        let said: Vec<(Part, u32)> =
            found.faults.iter().map(|fault| (fault.part, fault.chmod.as_ref().expect("a mode").1)).collect();
        let wanted = [(Part::Spool, 0o500), (Part::Spool, 0o700), (Part::State, 0o700), (Part::View, 0o700)];
        assert_eq!(said, wanted, "the last mode of a folder counts: {found:?}");
        assert!(found.faults[1].error.to_string().contains("is closed to its owner"), "{found:?}");
        for below in ["spool/requests", "view/agents", "state"] {
            fs::set_permissions(home.join(below), fs::Permissions::from_mode(0o700)).expect("ours");
        }
    }

    #[test]
    fn a_parent_folder_that_others_can_write_is_a_fault() {
        let dir = made();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("ours");
        let found = look(&dir);
        assert!(
            matches!(found.faults.as_slice(), [SurveyFault { part: Part::HomeOrAbove, chmod: Some((_, 0o755)), .. }]),
            "{found:?}"
        );
    }

    /// For root, `/tmp` is such a folder of its own: to close it would take it from everybody.
    #[test]
    fn a_home_that_is_for_all_users_is_not_closed() {
        let dir = made();
        let home = dir.path().join("home");
        for (mode, may_close) in [(0o777, true), (0o1777, false)] {
            fs::set_permissions(&home, fs::Permissions::from_mode(mode)).expect("ours");
            let found = look(&dir);
            let [fault] = found.faults.as_slice() else { panic!("{found:?}") };
            let said = fault.error.to_string();
            assert_eq!(
                (fault.chmod.is_some(), said.contains("Choose a home inside")),
                (may_close, !may_close),
                "{said}"
            );
        }
    }

    #[test]
    fn the_survey_does_not_follow_links() {
        for link in ["spool/tmp", "spool/events", "spool"] {
            let dir = made();
            let (home, other) = (dir.path().join("home"), dir.path().join("other"));
            fs::create_dir_all(other.join("tmp")).expect("made");
            for file in ["a.tmp", ".probe-1.json", "tmp/b.tmp"] {
                fs::write(other.join(file), "precious").expect("written");
            }
            fs::remove_dir_all(home.join(link)).expect("ours");
            std::os::unix::fs::symlink(&other, home.join(link)).expect("a link");
            let found = look(&dir);
            assert!(found.leftovers.is_empty() && found.missing.is_empty(), "{link}: {found:?}");
            assert_eq!(found.faults.len(), 1, "{link}: {found:?}");
        }
    }

    #[test]
    fn only_test_events_are_left_overs_among_events() {
        let dir = made();
        let spool = dir.path().join("home/spool");
        for file in ["tmp/a.tmp", "events/real.json", "events/.probe-1.json"] {
            fs::write(spool.join(file), "{}").expect("written");
        }
        let mut names: Vec<_> =
            look(&dir).leftovers.into_iter().filter_map(|left| Some(left.path.file_name()?.to_owned())).collect();
        names.sort();
        assert_eq!(names, [".probe-1.json", "a.tmp"]);
    }
}
