//! Reads a document once it has stopped changing, so that no half-written document is recorded. Also compares a
//! document with the recorded one.

use super::fault;
use super::retry_look::{self, LookResult};
use crate::clock::wall_ns;
use crate::config::Home;
use crate::core::effect::{ComparedDocument, DocumentRead, Outcome};
use crate::core::id::Slug;
use crate::core::text;
use crate::files::{FileStamp, Grade};
use crate::spool::documents::{
    DocumentError, DocumentFolder, DocumentLook, DocumentReading, open_folder, remake_folder,
};
use std::ffi::{OsStr, OsString};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a document must not have changed before it is read.
const QUIET: Duration = Duration::from_millis(500);
/// How long tasuki waits until a document no longer changes.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause between two looks at the document.
const EVERY: Duration = Duration::from_millis(50);
/// The code of [`DocumentLook::Unsafe`] if the system did not let tasuki look at the file.
const UNREADABLE: &str = "unreadable";

/// Waits until the document no longer changes, and reads it. It does not wait for a missing document.
pub(super) async fn read_settled(home: &Home, persona: &Slug, file_name: &str) -> DocumentRead {
    let (now, limit) = (Instant::now(), Instant::now() + LIMIT);
    let (home, persona, file_name) = (home.clone(), persona.clone(), OsString::from(file_name));
    let mut reader = SettledReader { home, persona, file_name, limit, before: None, since: now };
    loop {
        let looked = fault::blocking(move || (reader.look(), reader)).await;
        reader = match looked {
            Ok((Some(read), _)) => return read,
            Ok((None, reader)) => reader,
            Err(error) => return DocumentRead::Unsafe { why: error.to_string() },
        };
        tokio::time::sleep(EVERY).await;
    }
}

/// Looks at a document until it no longer changes.
struct SettledReader {
    home: Home,
    persona: Slug,
    file_name: OsString,
    limit: Instant,
    /// The state of the file at the last look.
    before: Option<FileStamp>,
    /// Since when the file is in this state.
    since: Instant,
}

impl SettledReader {
    /// One look. Reads the document if it no longer changes. `None`: a later look may tell more.
    fn look(&mut self) -> Option<DocumentRead> {
        let name = self.file_name.as_os_str();
        let folder = match open_folder(self.home.root(), &self.persona) {
            Ok(folder) => folder,
            // A folder that can't be opened may still hold the document.
            Err(error) if error.unavailable().is_some() && Instant::now() < self.limit => return None,
            Err(error) if error.unavailable().is_some() => {
                return Some(DocumentRead::Unsafe { why: error.to_string() });
            }
            Err(_) => return Some(DocumentRead::Missing),
        };
        match folder.look(name) {
            DocumentLook::Missing => return Some(DocumentRead::Missing),
            DocumentLook::Unsafe(UNREADABLE) if Instant::now() < self.limit => {}
            DocumentLook::Unsafe(why) => return Some(DocumentRead::Unsafe { why: in_words(why) }),
            DocumentLook::Present { file_stamp } => {
                if self.before != Some(file_stamp) {
                    self.before = Some(file_stamp);
                    self.since = unchanged_since(&file_stamp, wall_ns());
                }
            }
        }
        let mut why = "it keeps changing".to_owned();
        if self.before.is_some() && self.since.elapsed() >= QUIET {
            match to_document_read(folder.read(name)) {
                LookResult::Answered(read) => return Some(read),
                LookResult::Unavailable(reason) => why = reason,
            }
        }
        (Instant::now() >= self.limit).then_some(DocumentRead::Unsafe { why })
    }
}

/// The moment since which a file is unchanged, by its change time, but at most [`QUIET`] ago. The time before the first
/// look counts too, because most agents still answer for seconds after they have written the document. If the clock is
/// set at just that time, a half-written document may be read. The comparison before the briefing notices that.
fn unchanged_since(file_stamp: &FileStamp, wall_ns: i64) -> Instant {
    let age = u64::try_from(wall_ns.saturating_sub(file_stamp.ctime_ns)).map_or(Duration::ZERO, Duration::from_nanos);
    let now = Instant::now();
    now.checked_sub(age.min(QUIET)).unwrap_or(now)
}

/// The result of one reading. There is no answer if the file changed meanwhile, or can't be read at this moment.
fn to_document_read(reading: Result<DocumentReading, DocumentError>) -> LookResult<DocumentRead> {
    match reading {
        Ok(DocumentReading { bytes, .. }) => {
            let sha256 = text::sha256(&bytes);
            LookResult::Answered(match String::from_utf8(bytes) {
                Ok(text) => DocumentRead::Whole { text, sha256 },
                Err(_) => DocumentRead::Unsafe { why: "it is not UTF-8".to_owned() },
            })
        }
        Err(DocumentError::Missing { .. }) => LookResult::Answered(DocumentRead::Missing),
        Err(DocumentError::Empty { .. }) => LookResult::Answered(DocumentRead::Empty),
        Err(DocumentError::Unsafe { changing: true, .. }) => LookResult::Unavailable("it keeps changing".to_owned()),
        Err(DocumentError::Unsafe { why, .. }) => LookResult::Answered(DocumentRead::Unsafe { why }),
        Err(DocumentError::Unread { source, .. }) => LookResult::Unavailable(format!("it can't be read: {source}")),
    }
}

/// Reads the document as it is at this moment. It waits for the disk: see [`fault::blocking`].
pub(super) fn read_once(home: &Home, persona: &Slug, file_name: &str) -> DocumentRead {
    let read = match open_folder(home.root(), persona) {
        Ok(folder) => to_document_read(folder.read(OsStr::new(file_name))),
        Err(error) => LookResult::Unavailable(error.to_string()),
    };
    match read {
        LookResult::Answered(read) => read,
        LookResult::Unavailable(why) => DocumentRead::Unsafe { why },
    }
}

/// A file's bytes, if they have this hash.
pub(super) fn recorded(folder: &DocumentFolder, name: &str, sha256: &str) -> Option<Vec<u8>> {
    let reading = folder.read(OsStr::new(name)).ok()?;
    (text::sha256(&reading.bytes) == sha256).then_some(reading.bytes)
}

/// Compares the document with the recorded one. If its file is gone or holds nothing, writes the recorded text again.
/// `record`: the hash of that text, and the text. If the document can't be read, this tries again; if that does not
/// help, or if something else has taken the file's place, the effect fails.
pub(super) async fn compare(
    home: &Home,
    persona: &Slug,
    file_name: &str,
    (sha256, text): (&str, Option<&str>),
    stop: &CancellationToken,
) -> Outcome {
    let (home, persona) = (home.clone(), persona.clone());
    let (file_name, sha256, text) = (OsString::from(file_name), sha256.to_owned(), text.map(str::to_owned));
    let look = move || match compare_once(&home, &persona, &file_name, &sha256) {
        LookResult::Answered(Found::Gone(why)) => match text.as_deref().filter(|text| is_recorded(text, &sha256)) {
            Some(text) => restore(&home, &persona, &file_name, text),
            None => LookResult::Answered(Err(why)),
        },
        LookResult::Answered(Found::Unfit(why)) => LookResult::Answered(Err(why)),
        LookResult::Answered(Found::Same) => LookResult::Answered(Ok(ComparedDocument::Same)),
        LookResult::Answered(Found::Changed) => LookResult::Answered(Ok(ComparedDocument::Changed)),
        LookResult::Unavailable(why) => LookResult::Unavailable(why),
    };
    match retry_look::until_answered(stop, look).await {
        Ok(Ok(document)) => Outcome::Compared { document, drift: Vec::new() },
        Ok(Err(why)) | Err(why) => Outcome::Failed { why },
    }
}

/// What one comparison found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Same,
    Changed,
    /// There is no file, or it holds nothing; with the words for that.
    Gone(String),
    /// Something is in the file's place that tasuki does not read, such as a link; with the words for that.
    Unfit(String),
}

fn compare_once(home: &Home, persona: &Slug, file_name: &OsStr, sha256: &str) -> LookResult<Found> {
    match open_folder(home.root(), persona) {
        Ok(folder) => found(folder.read(file_name), sha256),
        Err(error) => match error.unavailable() {
            Some(_) => LookResult::Unavailable(error.to_string()),
            None => LookResult::Answered(Found::Gone(error.to_string())),
        },
    }
}

fn found(reading: Result<DocumentReading, DocumentError>, sha256: &str) -> LookResult<Found> {
    LookResult::Answered(match reading {
        Ok(reading) if text::sha256(&reading.bytes) == sha256 => Found::Same,
        Ok(_) | Err(DocumentError::Unsafe { changing: true, .. }) => Found::Changed,
        Err(error @ DocumentError::Unread { .. }) => return LookResult::Unavailable(error.to_string()),
        Err(error @ (DocumentError::Missing { .. } | DocumentError::Empty { .. })) => Found::Gone(error.to_string()),
        Err(error @ DocumentError::Unsafe { .. }) => Found::Unfit(error.to_string()),
    })
}

fn is_recorded(text: &str, sha256: &str) -> bool {
    text::sha256(text.as_bytes()) == sha256
}

/// Writes the recorded text again. The persona's own folder is not made again: a person may have moved it.
fn restore(home: &Home, persona: &Slug, file_name: &OsStr, text: &str) -> LookResult<Result<ComparedDocument, String>> {
    let written = remake_folder(home.root(), persona).and_then(|folder| match folder.read(file_name) {
        Err(DocumentError::Missing { .. }) => folder.write_new(file_name, text.as_bytes()),
        Err(DocumentError::Empty { .. }) => {
            folder.replace(&file_name.to_string_lossy(), text, Grade::Durable).map(|()| true)
        }
        Ok(_) | Err(DocumentError::Unsafe { .. } | DocumentError::Unread { .. }) => Ok(false),
    });
    match written {
        Ok(true) => LookResult::Answered(Ok(ComparedDocument::Restored)),
        Ok(false) => LookResult::Unavailable("its file has just come back".to_owned()),
        Err(error) if error.unavailable().is_some() => LookResult::Unavailable(error.to_string()),
        Err(error) => LookResult::Answered(Err(error.to_string())),
    }
}

/// A code of [`DocumentLook::Unsafe`] in words.
fn in_words(code: &str) -> String {
    match code {
        "link" => "it is a link".to_owned(),
        "not_regular" => "it is not a regular file".to_owned(),
        "foreign" => "it belongs to another user".to_owned(),
        "too_large" => "it is larger than 1 MiB".to_owned(),
        other => format!("it can't be read ({other})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;

    /// The result of a reading that failed with this system error.
    fn reading_that_failed(errno: nix::errno::Errno) -> Result<DocumentReading, DocumentError> {
        Err(DocumentError::Unread { path: PathBuf::from("d.md"), source: io::Error::from(errno) })
    }

    #[test]
    fn a_document_is_at_rest_by_its_own_time_of_change_whatever_the_clock_says() {
        let file_stamp = |ctime_ns| FileStamp { dev: 1, ino: 1, size: 1, mtime_ns: 0, ctime_ns };
        let waited = |ctime_ns, wall_ns| unchanged_since(&file_stamp(ctime_ns), wall_ns).elapsed();
        const MS: i64 = 1_000_000;
        assert!(waited(1_000 * MS, 3_000 * MS) >= QUIET, "it was written long ago");
        assert!(waited(i64::MIN, i64::MAX) < 2 * QUIET, "and no longer than that counts");
        let young = waited(1_000 * MS, 1_200 * MS);
        assert!(young >= Duration::from_millis(200) && young < QUIET, "{young:?}");
        assert!(waited(3_000 * MS, 1_000 * MS) < QUIET, "the clock was set back");
    }

    #[test]
    fn a_document_that_could_not_be_read_is_neither_changed_nor_broken() {
        use nix::errno::Errno;
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EACCES, Errno::EIO] {
            assert!(matches!(found(reading_that_failed(errno), "00"), LookResult::Unavailable(_)), "{errno}");
            assert!(
                matches!(to_document_read(reading_that_failed(errno)), LookResult::Unavailable(why) if why.contains(&io::Error::from(errno).to_string())),
                "{errno}"
            );
        }
        let missing = || Err(DocumentError::Missing { path: PathBuf::from("d.md") });
        assert!(matches!(found(missing(), "00"), LookResult::Answered(Found::Gone(_))));
        assert!(matches!(to_document_read(missing()), LookResult::Answered(DocumentRead::Missing)));
    }
    /// A document in a home, and what a comparison with this text, which was recorded, comes to.
    async fn compared(home: &Home, text: Option<&str>) -> Outcome {
        let (kai, stop) = ("kai".parse().expect("a slug"), CancellationToken::new());
        compare(home, &kai, "d.md", (&text::sha256(b"# All of it\n"), text), &stop).await
    }

    #[tokio::test]
    async fn a_document_that_is_gone_is_written_again_and_anything_else_in_its_place_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        let persona = dir.path().join("data/personas/kai");
        let file = persona.join("handoffs/d.md");
        let put = |text: &str| std::fs::write(&file, text).expect("written");
        let (text, is) = (Some("# All of it\n"), |document| Outcome::Compared { document, drift: Vec::new() });
        std::fs::create_dir_all(&persona).expect("folders");
        assert_eq!(compared(&home, text).await, is(ComparedDocument::Restored), "its folder is gone too");
        assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "# All of it\n");
        assert_eq!(compared(&home, text).await, is(ComparedDocument::Same));
        put(" \n");
        assert_eq!(compared(&home, text).await, is(ComparedDocument::Restored), "it held nothing");
        put("# Changed\n");
        assert_eq!(compared(&home, text).await, is(ComparedDocument::Changed));
        std::fs::remove_file(&file).expect("removed");
        for unknown in [None, Some("# Another text\n")] {
            let outcome = compared(&home, unknown).await;
            assert!(matches!(&outcome, Outcome::Failed { why } if why.contains("no such document")), "{outcome:?}");
        }
        std::os::unix::fs::symlink("elsewhere.md", &file).expect("a link");
        let outcome = compared(&home, text).await;
        assert!(matches!(&outcome, Outcome::Failed { why } if why.contains("link")), "{outcome:?}");
        assert!(file.is_symlink() && !persona.join("handoffs/elsewhere.md").exists());
        std::fs::remove_dir_all(&persona).expect("removed");
        let outcome = compared(&home, text).await;
        assert!(matches!(&outcome, Outcome::Failed { .. }) && !persona.exists(), "{outcome:?}");
    }
}
