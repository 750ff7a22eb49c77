//! Reads and checks the files that were dropped into `fleet/requests/`, once they are whole. As in the spool, a program
//! may write a file directly there: a file that is not whole is left alone until it has not changed for 2 s.

use super::folder::FleetFolder;
use super::refused::{FleetRefused, MAIN_PART};
use super::settings::{FleetSettings, parse_ttl};
use crate::cli::error::CliError;
use crate::contract::fleet::FleetPart;
use crate::core::host::HostName;
use crate::core::id::is_file_name;
use crate::core::time::Now;
use crate::files::{FileStamp, Unfit};
use crate::fleet::letter::MOST_PARTS;
use crate::fleet::rights::may_be_asked;
use crate::spool::MAX_INPUT_BYTES;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

/// The largest dropped file, in bytes: it holds the request, and fields around it.
pub(super) const MOST_DROPPED: u64 = 2 << 20;
/// The longest name of a kind, in bytes.
const MOST_KIND: usize = 64;
/// How long a file that is not whole must have stayed unchanged until it is refused, in milliseconds.
const PATIENCE_MS: u64 = 2_000;

/// The files that were not whole when they were last looked at.
#[derive(Debug, Default)]
pub(super) struct IncompleteFiles(BTreeMap<String, IncompleteFile>);

#[derive(Debug)]
struct IncompleteFile {
    file_stamp: FileStamp,
    /// Since when it is known to be unchanged, in milliseconds since the machine's boot.
    since_ms: u64,
}

impl IncompleteFiles {
    /// Whether a file that is not whole has stayed unchanged for so long that its writer has given it up.
    fn is_left(&mut self, name: &str, file_stamp: FileStamp, now_ms: u64) -> bool {
        match self.0.get(name) {
            Some(known) if known.file_stamp == file_stamp => now_ms.saturating_sub(known.since_ms) >= PATIENCE_MS,
            _ => {
                self.0.insert(name.to_owned(), IncompleteFile { file_stamp, since_ms: now_ms });
                false
            }
        }
    }

    /// Forgets the files that are not in the folder any more.
    pub(super) fn keep_only(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| is_there(name));
    }

    /// When the first of these files is to be looked at again; none if there are none.
    pub(super) fn look_at_ms(&self) -> Option<u64> {
        self.0.values().map(|file| file.since_ms.saturating_add(PATIENCE_MS)).min()
    }
}

/// What a look at a name in `requests/` has found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DroppedBytes {
    /// Nothing, or a file that is being written: it is looked at again.
    NotYet,
    /// The bytes of a file. If they are not one JSON object, the file has stayed so for too long to wait for the rest.
    Read { bytes: Vec<u8>, is_object: bool },
    /// Something that can't be read. `code`: the reason, for the `.why.json` file in `rejected/`.
    Unfit { code: &'static str, refused: FleetRefused },
}

/// Looks at a file in `requests/`.
///
/// # Errors
/// It can't be read at this moment, which says nothing about the file.
pub(super) fn look(
    folder: &FleetFolder,
    name: &str,
    incomplete: &mut IncompleteFiles,
    now: &Now,
) -> Result<DroppedBytes, CliError> {
    let Some((file_stamp, read)) = folder.read_once("requests", name, MOST_DROPPED)? else {
        return Ok(DroppedBytes::NotYet);
    };
    // A link, a folder or another user's file will not become readable by waiting. A file with two names may do so: on
    // a file system that can't rename without replacing, a client links the file to its name, and then removes its
    // temporary name.
    let is_final = match &read {
        Ok(bytes) => is_object(bytes),
        Err(unfit) => matches!(unfit, Unfit::Link | Unfit::NotRegular | Unfit::Foreign),
    };
    if !is_final && !incomplete.is_left(name, file_stamp, now.boot_ms) {
        return Ok(DroppedBytes::NotYet);
    }
    Ok(match read {
        Ok(bytes) => DroppedBytes::Read { bytes, is_object: is_final },
        Err(unfit) => DroppedBytes::Unfit { code: unfit.code(), refused: unreadable(&unfit) },
    })
}

fn unreadable(unfit: &Unfit) -> FleetRefused {
    match unfit {
        Unfit::TooLarge { .. } => FleetRefused::new(413, "too_large", format!("The file is too large: {unfit}.")),
        _ => FleetRefused::new(400, "bad_request", format!("The file can't be read: {unfit}.")),
    }
}

/// Whether the bytes are one whole JSON object.
fn is_object(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    first == Some(&b'{')
        && std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// `fleet/requests/<id>.json`, with the request's own bytes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dropped {
    v: u8,
    pub(super) to: String,
    pub(super) request: Box<RawValue>,
    #[serde(default)]
    ttl: Option<String>,
    #[serde(default)]
    pub(super) parts: Vec<FleetPart>,
}

/// A dropped request that is valid. Whether its host is a member of the fleet is checked later.
pub(super) struct RequestToSend {
    pub(super) dropped: Dropped,
    pub(super) kind: String,
    pub(super) ttl_ms: u64,
}

/// Reads a dropped file, and checks all that can be checked without other files.
pub(super) fn read(bytes: &[u8], own: &HostName, settings: &FleetSettings) -> Result<RequestToSend, FleetRefused> {
    let bad = |message: String| FleetRefused::new(400, "bad_request", message);
    let dropped: Dropped = serde_json::from_slice(bytes).map_err(|error| {
        bad(format!("The file is wrong: {error}.")).place(error.line() as u64, error.column() as u64)
    })?;
    if dropped.v != 1 {
        return Err(bad("The file's v must be 1.".to_owned()).field("v"));
    }
    if dropped.to == own.as_str() {
        return Err(bad(format!("{own} is this host: put the request into its own spool.")).field("to"));
    }
    let request = dropped.request.get().as_bytes();
    if request.len() as u64 > MAX_INPUT_BYTES {
        let message = format!("The request has {} bytes; at most {MAX_INPUT_BYTES} are allowed.", request.len());
        return Err(FleetRefused::new(413, "too_large", message).field("request"));
    }
    let kind = kind_of(request)
        .ok_or_else(|| bad("The request must be an object with a kind.".to_owned()).field("request"))?;
    if !may_be_asked(&kind) {
        let message = format!("A request of the kind {kind} can't be asked of another host.");
        let hint = format!("Run the command there: ssh {} tasuki …", dropped.to);
        return Err(FleetRefused::new(400, "not_from_elsewhere", message).hint(hint).field("request"));
    }
    let ttl = match &dropped.ttl {
        Some(text) => parse_ttl(text).map_err(|error| bad(format!("ttl: {error}.")).field("ttl"))?,
        None => settings.ttl.default,
    };
    // The request itself is a part of the letter too.
    let count = dropped.parts.len() + 1;
    if count > MOST_PARTS {
        let message =
            format!("The letter would have {count} files; at most {MOST_PARTS} are allowed, with the request.");
        return Err(FleetRefused::new(413, "too_large", message).field("parts"));
    }
    let names: BTreeSet<&str> = dropped.parts.iter().map(|part| part.name.as_str()).collect();
    let are_fine = names.len() == dropped.parts.len() && !names.contains(MAIN_PART);
    if !are_fine || !names.iter().all(|name| is_file_name(name)) {
        let message = format!("parts: each file needs a plain name of its own, other than {MAIN_PART}.");
        return Err(bad(message).field("parts"));
    }
    Ok(RequestToSend { kind, ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX), dropped })
}

/// The kind of a request, if it has one. A word that is longer than any kind does not count, because the kind is
/// written into answers, the audit and messages.
pub(super) fn kind_of(request: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    let readable = Some(request).filter(|request| request.len() as u64 <= MAX_INPUT_BYTES)?;
    serde_json::from_slice::<Kind>(readable).ok().map(|read| read.kind).filter(|kind| kind.len() <= MOST_KIND)
}

/// The kind and host of a dropped file, as far as they can be read.
pub(super) fn kind_and_host(bytes: &[u8]) -> (Option<String>, String) {
    let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    let host = value["to"].as_str().filter(|to| to.len() <= 32).unwrap_or_default().to_owned();
    (value["request"]["kind"].as_str().map(str::to_owned), host)
}

/// The request's own bytes in a dropped file, or the whole file where it can't be read.
pub(super) fn inner(bytes: &[u8]) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Inner {
        request: Box<RawValue>,
    }
    serde_json::from_slice::<Inner>(bytes)
        .map_or_else(|_| bytes.to_owned(), |read| read.request.get().as_bytes().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;

    fn at(boot_ms: u64) -> Now {
        Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms }
    }

    #[test]
    fn a_file_that_is_not_whole_is_left_alone_until_it_has_not_changed_for_two_seconds() {
        let (_dir, _, folder) = of_test();
        let (mut incomplete, path) = (IncompleteFiles::default(), folder.path("requests", "a.json"));
        let mut look = |ms: u64| look(&folder, "a.json", &mut incomplete, &at(ms)).expect("it can be looked at");
        assert_eq!(look(0), DroppedBytes::NotYet, "nothing is there");
        std::fs::write(&path, "").expect("written");
        assert_eq!((look(1_000), look(2_999)), (DroppedBytes::NotYet, DroppedBytes::NotYet));
        std::fs::write(&path, "{\"v\":1").expect("written");
        assert_eq!((look(3_100), look(5_000)), (DroppedBytes::NotYet, DroppedBytes::NotYet), "it has changed");
        let left = DroppedBytes::Read { bytes: b"{\"v\":1".to_vec(), is_object: false };
        assert_eq!(look(5_100), left);
        std::fs::write(&path, "{\"v\":1}").expect("written");
        assert_eq!(look(5_200), DroppedBytes::Read { bytes: b"{\"v\":1}".to_vec(), is_object: true });
    }

    #[test]
    fn a_file_with_two_names_is_still_being_dropped() {
        let (_dir, _, folder) = of_test();
        let (mut incomplete, path) = (IncompleteFiles::default(), folder.path("requests", "a.json"));
        let mut look = |ms: u64| look(&folder, "a.json", &mut incomplete, &at(ms)).expect("it can be looked at");
        std::fs::write(folder.path("tmp", "a"), "{}").expect("written");
        std::fs::hard_link(folder.path("tmp", "a"), &path).expect("linked");
        assert_eq!(look(0), DroppedBytes::NotYet);
        assert!(matches!(look(2_000), DroppedBytes::Unfit { code: "linked", .. }));
        std::fs::remove_file(folder.path("tmp", "a")).expect("removed");
        assert_eq!(look(2_100), DroppedBytes::Read { bytes: b"{}".to_vec(), is_object: true });
    }

    #[test]
    fn a_file_that_is_too_large_a_folder_and_a_link_are_refused() {
        let (_dir, _, folder) = of_test();
        let mut incomplete = IncompleteFiles::default();
        let mut look = |name: &str, ms: u64| match look(&folder, name, &mut incomplete, &at(ms)) {
            Ok(DroppedBytes::Unfit { code, refused }) => Some((code, refused.status)),
            other => {
                assert_eq!(other, Ok(DroppedBytes::NotYet));
                None
            }
        };
        let file = std::fs::File::create(folder.path("requests", "a.json")).expect("made");
        file.set_len(MOST_DROPPED + 1).expect("a hole");
        assert_eq!((look("a.json", 0), look("a.json", 2_000)), (None, Some(("too_large", 413))));
        std::fs::create_dir(folder.path("requests", "b.json")).expect("made");
        std::os::unix::fs::symlink("/etc/hostname", folder.path("requests", "c.json")).expect("a link");
        assert_eq!(look("b.json", 0), Some(("not_regular", 400)));
        assert_eq!(look("c.json", 0), Some(("link", 400)));
    }
}
