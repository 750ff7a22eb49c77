//! Request ids that differ by upper and lower case alone. On some file systems, such as the usual one of macOS, their
//! files would be one file. So tasuki accepts only the first of such ids, on every system.

use super::dirs::{SpoolDir, TEMP};
use super::home::Spool;
use super::write::OutputFile;
use crate::core::id::RequestId;
use crate::files::{self, Grade};
use serde::Deserialize;
use std::ffi::OsStr;
use std::io;

/// The name of the file that tasuki makes to try a folder, and the same name in the other case.
const PROBE: [&str; 2] = [".tasuki-case", ".TASUKI-CASE"];

impl Spool {
    /// The file for the refusal of a request whose id differs from that of an earlier request by case alone. This is a
    /// result file of its own only if the folder keeps both names apart. The earlier request's result must not be
    /// replaced, and nobody may take the refusal for that result.
    pub fn twin_result(&mut self, id: RequestId) -> OutputFile {
        let dir = self.dirs.dir(SpoolDir::Results);
        self.folds_case = self.folds_case.or_else(|| folds_case(dir).ok());
        // If that can't be found out now, the name that is safe on every file system is used.
        let folds = self.folds_case.unwrap_or(true);
        if folds { OutputFile::Reused(id) } else { OutputFile::Result(id) }
    }

    /// For tests: sets whether the folder of the results keeps such names apart.
    #[cfg(test)]
    pub(crate) fn set_folds_case(&mut self, folds: bool) {
        self.folds_case = Some(folds);
    }
}

/// Whether a folder takes names that differ by case alone for one name.
fn folds_case(dir: impl std::os::fd::AsFd) -> io::Result<bool> {
    let [probe, twin] = PROBE.map(OsStr::new);
    files::replace_at(&dir, OsStr::new(TEMP), probe, b"", Grade::Fast)?;
    let found = files::meta_at(&dir, twin);
    files::remove_at(&dir, probe)?;
    Ok(found?.is_some())
}

/// Whether a result that was found under an id's name belongs to another id, which differs by case alone.
pub(super) fn is_twins_result(id: &str, bytes: &[u8]) -> bool {
    named_in(bytes).is_some_and(|named| named != id && named.eq_ignore_ascii_case(id))
}

/// Whether a refusal belongs to this id.
pub(super) fn is_refusal_of(id: &str, bytes: &[u8]) -> bool {
    named_in(bytes).is_some_and(|named| named == id)
}

fn named_in(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        request_id: String,
    }
    serde_json::from_slice(bytes).ok().map(|named: Named| named.request_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_asked_whether_it_keeps_names_apart_and_nothing_is_left_there() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut spool = Spool::open(&dir.path().join("home")).expect("a new home");
        let results = spool.path(SpoolDir::Results).to_owned();
        std::fs::write(results.join("a"), "").expect("written");
        let folds = results.join("A").exists();
        std::fs::remove_file(results.join("a")).expect("removed");
        let id: RequestId = "Deploy-1".parse().expect("an id");
        let place = if folds { OutputFile::Reused(id.clone()) } else { OutputFile::Result(id.clone()) };
        assert_eq!(spool.twin_result(id.clone()), place);
        assert_eq!(std::fs::read_dir(&results).expect("listed").count(), 0);
        spool.set_folds_case(true);
        assert_eq!(spool.twin_result(id.clone()), OutputFile::Reused(id.clone()));
        spool.reopen().expect("the same folders");
        assert_eq!(spool.twin_result(id), place, "a folder that was opened again is asked again");
    }

    #[test]
    fn a_folder_that_could_not_be_asked_is_asked_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut spool = Spool::open(&dir.path().join("home")).expect("a new home");
        let id: RequestId = "Deploy-1".parse().expect("an id");
        let place = spool.twin_result(id.clone());
        spool.reopen().expect("the same folders");
        let blocked = spool.path(SpoolDir::Results).join(TEMP);
        std::fs::create_dir_all(blocked.join("x")).expect("a folder in its place");
        assert_eq!(spool.twin_result(id.clone()), OutputFile::Reused(id.clone()));
        std::fs::remove_dir_all(&blocked).expect("removed");
        assert_eq!(spool.twin_result(id), place);
    }

    #[test]
    fn a_result_belongs_to_the_id_that_it_names() {
        let result = br#"{"v":1,"request_id":"Deploy-1"}"#;
        assert!(is_twins_result("deploy-1", result) && !is_twins_result("Deploy-1", result));
        assert!(!is_twins_result("Deploy-1.reused", result), "a refusal names the id without its suffix");
        assert!(!is_twins_result("deploy-1", b"{}") && !is_twins_result("deploy-1", b"no JSON"));
        assert!(is_refusal_of("Deploy-1", result) && !is_refusal_of("deploy-1", result));
    }
}
