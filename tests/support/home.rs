//! A home in a temporary folder, with clocks that the test moves.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use tasuki::core::time::Now;
use tasuki::spool::{Content, IncomingFile, Lane, Scan, Spool};

pub(crate) struct TestHome {
    _dir: tempfile::TempDir,
    pub(crate) spool: Spool,
    pub(crate) now: Now,
}

impl TestHome {
    pub(crate) fn new() -> TestHome {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let spool = Spool::open(&dir.path().join("home")).expect("a new home");
        TestHome { _dir: dir, spool, now: Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000_000 } }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.spool.home().join(below)
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.now.boot_ms += ms;
        self.now.wall_ms += i64::try_from(ms).expect("a test's time");
    }

    pub(crate) fn put(&self, below: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        fs::write(self.spool.home().join(below), bytes).expect("written in place");
    }

    pub(crate) fn scan(&mut self, lane: Lane) -> Scan {
        let now = self.now;
        self.spool.scan(lane, 1_000, 64 * 1024 * 1024, &now).expect("the folder can be read")
    }

    /// The one file that a scan of the requests finds.
    pub(crate) fn only(&mut self) -> IncomingFile {
        let mut scan = self.scan(Lane::Requests);
        assert_eq!(scan.found.len(), 1, "{:?}", scan.found);
        scan.found.remove(0)
    }

    pub(crate) fn names(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(below)).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

pub(crate) fn code(found: &IncomingFile) -> &'static str {
    match &found.content {
        Content::Whole { .. } => "whole",
        Content::Bad { code, .. } => code,
    }
}

pub(crate) fn named(found: &[IncomingFile]) -> Vec<&OsStr> {
    found.iter().map(|found| found.name.as_os_str()).collect()
}
