//! Repositories and programs for the tests.

use crate::contract::facts::RepositoryFacts;
use crate::git::Git;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// More than a call needs on a machine that has much else to do.
const ENOUGH: Duration = Duration::from_secs(60);

/// Every git that `PATH` names.
pub(super) fn gits() -> Vec<Git> {
    let path = std::env::var_os("PATH").expect("a PATH");
    let mut programs: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join("git")).collect();
    // Several names may mean one program.
    let mut seen = BTreeSet::new();
    programs.retain(|program| fs::canonicalize(program).is_ok_and(|program| seen.insert(program)));
    assert!(!programs.is_empty(), "git is not installed");
    programs.into_iter().map(|program| git(program.to_str().expect("UTF-8"))).collect()
}

pub(super) fn git(program: &str) -> Git {
    Git { program: program.to_owned(), limit: ENOUGH }
}

/// A folder with a repository in it, which is removed at the end.
pub(super) struct Place {
    folder: TempDir,
}

impl Place {
    /// A repository with the branch `main` and no commit.
    pub(super) fn empty() -> Place {
        let place = Place { folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir(place.work()).expect("a folder");
        place.git(&["init", "-q", "-b", "main"]);
        place
    }

    /// A repository with a commit of `a` and `sub/b`.
    pub(super) fn new() -> Place {
        let place = Place::empty();
        place.write("a", "one\n");
        place.write("sub/b", "two\n");
        place.commit("First commit");
        place
    }

    /// The folder that holds everything of this test.
    pub(super) fn outside(&self) -> PathBuf {
        fs::canonicalize(self.folder.path()).expect("a folder")
    }

    /// The work tree.
    pub(super) fn work(&self) -> PathBuf {
        self.outside().join("work")
    }

    pub(super) fn write(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    /// Runs git in the work tree, as a user would. Returns what it has printed.
    pub(super) fn git<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        let output = self.try_git("git", &self.work(), arguments);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Runs this git in this folder, without the settings of the user who runs the tests.
    pub(super) fn try_git<S: AsRef<OsStr>>(&self, program: &str, cwd: &Path, arguments: &[S]) -> Output {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path()).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Kai").env(format!("GIT_{role}_EMAIL"), "kai@example.org");
        }
        command.current_dir(cwd).args(arguments).output().expect("git runs")
    }

    /// Commits all files. Returns the hash.
    pub(super) fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    pub(super) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Writes a program outside of the work tree. Returns its path.
    pub(super) fn program(&self, name: &str, script: &str) -> String {
        let path = self.outside().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
        path.to_str().expect("UTF-8").to_owned()
    }

    /// All files and folders below the work tree, with their times of change and the bytes of files. If a file is made
    /// and removed, the time of its folder changes.
    pub(super) fn snapshot(&self) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
        let mut left = vec![self.work()];
        let mut found = BTreeMap::new();
        while let Some(path) = left.pop() {
            let meta = fs::symlink_metadata(&path).expect("a file");
            let bytes = if meta.is_file() { fs::read(&path).expect("readable") } else { Vec::new() };
            if meta.is_dir() {
                left.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
            }
            found.insert(path, (meta.modified().expect("a time"), bytes));
        }
        found
    }
}

/// The facts, and what was not known. Nothing in the work tree may have changed.
pub(super) async fn facts(git: &Git, place: &Place, cwd: &Path) -> (Option<RepositoryFacts>, Vec<String>) {
    let before = place.snapshot();
    let mut not_known = Vec::new();
    let facts = git.facts(cwd, Some("2000-01-01T00:00:00.000Z"), &mut not_known).await;
    let after = place.snapshot();
    let differ = before.iter().filter(|(path, state)| after.get(*path) != Some(state)).map(|(path, _)| path);
    let written: Vec<_> = differ.chain(after.keys().filter(|path| !before.contains_key(*path))).collect();
    assert!(written.is_empty(), "something has written {written:?}");
    (facts, not_known)
}

/// The facts of a repository. Everything must be known.
pub(super) async fn all_facts(git: &Git, place: &Place) -> RepositoryFacts {
    let (facts, not_known) = facts(git, place, &place.work()).await;
    assert_eq!(not_known, [""; 0], "{git:?}");
    facts.expect("a repository")
}
