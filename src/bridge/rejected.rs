//! `fleet/rejected`: files from `fleet/requests` that were refused, under the same names as in the spool, each with the
//! reason in a second file. Here the oldest go when there are too many, because each file got its answer.

use super::dropped::MOST_DROPPED;
use super::folder::FleetFolder;
use super::refused::FleetRefused;
use crate::cli::error::CliError;
use crate::contract::{self, WhyFile};
use crate::core::text::{plain_json, sha256};
use crate::core::time::Now;
use crate::spool::finish::{readable_name, safe_name};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::ErrorKind;

/// The most files that are kept, without those that hold the reasons.
const MOST_FILES: usize = 1_000;
/// The most bytes that they take on the disk together, with the reasons.
const MOST_BYTES: u64 = 64 << 20;
/// What follows the file's name in the name of its reason.
const WHY: &str = ".why.json";

/// Moves a file from `requests/` to `rejected/<milliseconds since 1970>-<safe name>`, and writes the reason beside it.
///
/// # Errors
/// The system's; then the file stays where it is.
pub(super) fn reject(folder: &FleetFolder, name: &str, refused: &FleetRefused, now: &Now) -> Result<(), CliError> {
    let read = folder.read_once("requests", name, MOST_DROPPED).ok().flatten();
    let (line, column) = refused.place.unzip();
    let why = WhyFile {
        v: 1,
        at: now.rfc3339(),
        code: refused.code.to_owned(),
        message: refused.message.clone(),
        field: refused.field.map(str::to_owned),
        line,
        column,
        name: readable_name(OsStr::new(name)),
        size: read.as_ref().map_or(0, |(file_stamp, _)| file_stamp.size),
        sha256: read.and_then(|(_, bytes)| Some(sha256(&bytes.ok()?))),
    };
    let why = contract::text(&why);
    // The reason first: a crash in between leaves a reason without a file, never a file without a reason. A name that
    // is taken belongs to a file of the same millisecond.
    let mut number = now.wall_ms;
    let aside = loop {
        let aside = format!("{number}-{}", safe_name(OsStr::new(name)));
        if folder.create("rejected", &format!("{aside}{WHY}"), plain_json(&why).as_bytes())? {
            break aside;
        }
        number += 1;
    };
    if let Err(error) = folder.rename(("requests", name), ("rejected", &aside)) {
        folder.remove("rejected", &format!("{aside}{WHY}"))?;
        // If the file is gone, its writer has taken it back.
        return match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(CliError::file("Can't put aside", &folder.path("requests", name), &error)),
        };
    }
    keep_newest(folder);
    Ok(())
}

/// Removes the oldest files, with their reasons, until the others are within the limits. The newest file stays even if
/// it alone is larger.
pub(super) fn keep_newest(folder: &FleetFolder) {
    // The names begin with the time, so the first names are the oldest.
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for (name, bytes) in folder.names_with_size("rejected").unwrap_or_default() {
        *kept.entry(name.strip_suffix(WHY).unwrap_or(&name).to_owned()).or_default() += bytes;
    }
    let (mut files, mut bytes) = (0, 0_u64);
    for (name, size) in kept.iter().rev() {
        (files, bytes) = (files + 1, bytes.saturating_add(*size));
        if files > 1 && (files > MOST_FILES || bytes > MOST_BYTES) {
            for name in [name, &format!("{name}{WHY}")] {
                if folder.remove("rejected", name).is_err() {
                    // A folder that somebody has put into `requests/`.
                    let _ = std::fs::remove_dir_all(folder.path("rejected", name));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;
    use crate::files::Grade;
    use serde_json::{Value, json};

    fn at(wall_ms: i64) -> Now {
        Now { wall_ms, boot: 1, boot_ms: 0 }
    }

    const NOON: i64 = 1_800_000_000_000;

    fn refused() -> FleetRefused {
        FleetRefused::new(400, "bad_request", "The file's v must be 1.").field("v").place(1, 5)
    }

    #[test]
    fn a_reason_lies_beside_what_is_rejected_as_in_the_spool() {
        let (_dir, _, folder) = of_test();
        let put = |bytes: &[u8]| folder.write("requests", "a \u{1b}b.json", bytes, Grade::Fast).expect("written");
        put(b"{\"v\":2}");
        reject(&folder, "a \u{1b}b.json", &refused(), &at(NOON)).expect("moved");
        put(b"{\"v\":3}");
        reject(&folder, "a \u{1b}b.json", &refused(), &at(NOON)).expect("moved, though the name is taken");
        let names = ["1800000000000-a__b.json", "1800000000001-a__b.json"];
        let all = names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}.why.json")]).collect::<Vec<_>>();
        assert_eq!(folder.names("rejected").expect("listed"), all);
        assert!(folder.names("requests").expect("listed").is_empty());
        assert_eq!(folder.read("rejected", names[0]).expect("read").as_deref(), Some(b"{\"v\":2}".as_slice()));
        let why = folder.read("rejected", &all[1]).expect("read").expect("it is there");
        let why: Value = serde_json::from_slice(&why).expect("JSON");
        let expected = json!({
            "v": 1, "at": "2027-01-15T08:00:00.000Z", "code": "bad_request", "message": "The file's v must be 1.",
            "field": "v", "line": 1, "column": 5, "name": "a \\x1bb.json", "size": 7, "sha256": sha256(b"{\"v\":2}"),
        });
        assert_eq!(why, expected);
    }

    #[test]
    fn a_file_that_is_gone_leaves_no_reason_and_a_folder_is_put_aside_too() {
        let (_dir, _, folder) = of_test();
        reject(&folder, "gone.json", &refused(), &at(NOON)).expect("nothing to do");
        assert!(folder.names("rejected").expect("listed").is_empty());
        folder.make("requests", "folder.json").expect("made");
        reject(&folder, "folder.json", &refused(), &at(NOON)).expect("moved");
        assert!(folder.path("rejected", "1800000000000-folder.json").is_dir());
    }

    #[test]
    fn the_oldest_files_go_when_there_are_too_many_or_they_are_too_large() {
        let (_dir, _, folder) = of_test();
        let put = |number: i64, bytes: &[u8]| {
            let (name, grade) =
                (format!("{}-a.json", NOON + number), if bytes.len() > 2 { Grade::Durable } else { Grade::Fast });
            folder.write("rejected", &name, bytes, grade).expect("written");
            folder.write("rejected", &format!("{name}{WHY}"), b"{}", Grade::Fast).expect("written");
        };
        let count = || folder.all_names("rejected").expect("listed").len();
        (0..1_000).for_each(|number| put(number, b"{}"));
        folder.make("rejected", "1790000000000-folder.json").expect("made");
        folder.write("requests", "b.json", b"{}", Grade::Fast).expect("written");
        reject(&folder, "b.json", &refused(), &at(NOON + 5_000)).expect("moved");
        assert_eq!(count(), 2 * MOST_FILES, "the folder and the oldest file have gone");
        assert!(!folder.path("rejected", &format!("{NOON}-a.json")).exists());
        let large = vec![b' '; 40 << 20];
        put(6_000, &large);
        keep_newest(&folder);
        assert_eq!(count(), 2 * MOST_FILES);
        put(7_000, &large);
        keep_newest(&folder);
        assert_eq!(count(), 2, "two such files are too much together");
    }
}
