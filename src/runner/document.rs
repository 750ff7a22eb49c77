//! Reads a document once it has stopped changing (SPEC 12, Document).

use crate::config::Home;
use crate::core::effect::DocumentRead;
use crate::core::id::Slug;
use crate::core::text::hex;
use crate::limits;
use crate::spool::Error;
use crate::spool::documents::{DocumentError, DocumentLook, Folder, Reading, open_folder};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::time::Duration;
use tokio::time::Instant;

/// How long a document must not change.
const QUIET: Duration = Duration::from_millis(500);
/// How long it may take to come to rest.
const LIMIT: Duration = Duration::from_secs(10);
/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(50);

/// Waits for the document to come to rest and reads it. A missing one is missing at once.
pub(super) async fn read_settled(home: &Home, persona: &Slug, file_name: &str) -> DocumentRead {
    let name = OsStr::new(file_name);
    let limit = Instant::now() + LIMIT;
    let mut before = None;
    let mut since = Instant::now();
    loop {
        let folder = match open_folder(home.root(), persona) {
            Ok(folder) => folder,
            // What could not be opened is not missing for that.
            Err(error) if is_short(&error) && Instant::now() < limit => {
                tokio::time::sleep(EVERY).await;
                continue;
            }
            Err(error) if is_short(&error) => return DocumentRead::Unsafe { why: error.to_string() },
            Err(_) => return DocumentRead::Missing,
        };
        match folder.look(name) {
            DocumentLook::Missing => return DocumentRead::Missing,
            DocumentLook::Unsafe(why) => return DocumentRead::Unsafe { why: in_words(why) },
            DocumentLook::Present { stamp } => {
                if before != Some(stamp) {
                    before = Some(stamp);
                    since = Instant::now();
                }
            }
        }
        if since.elapsed() >= QUIET
            && let Some(read) = read(&folder, name)
        {
            return read;
        }
        if Instant::now() >= limit {
            return DocumentRead::Unsafe { why: "it does not stop changing".to_owned() };
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// One reading; none if the file changed meanwhile.
fn read(folder: &Folder, name: &OsStr) -> Option<DocumentRead> {
    match folder.read(name) {
        Ok(Reading { bytes, .. }) => {
            let sha256 = hex_sha256(&bytes);
            Some(match String::from_utf8(bytes) {
                Ok(text) => DocumentRead::Whole { text, sha256 },
                Err(_) => DocumentRead::Unsafe { why: "it is not UTF-8".to_owned() },
            })
        }
        Err(DocumentError::Missing { .. }) => Some(DocumentRead::Missing),
        Err(DocumentError::Empty { .. }) => Some(DocumentRead::Empty),
        Err(DocumentError::Unsafe { changing: true, .. }) => None,
        Err(DocumentError::Unsafe { why, .. }) => Some(DocumentRead::Unsafe { why }),
    }
}

fn is_short(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if limits::is_shortage(source))
}

/// Whether the document is still the recorded one.
pub(super) fn is_unchanged(home: &Home, persona: &Slug, file_name: &str, sha256: &str) -> bool {
    let reading = open_folder(home.root(), persona).ok().and_then(|folder| folder.read(OsStr::new(file_name)).ok());
    reading.is_some_and(|reading| hex_sha256(&reading.bytes) == sha256)
}

/// SHA-256, hexadecimal.
pub(crate) fn hex_sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn in_words(code: &str) -> String {
    match code {
        "link" => "it is a link".to_owned(),
        "not_regular" => "it is not a regular file".to_owned(),
        "foreign" => "it belongs to another user".to_owned(),
        "linked" => "it has more than one name".to_owned(),
        "too_large" => "it is larger than 1 MiB".to_owned(),
        other => format!("it can't be read ({other})"),
    }
}
