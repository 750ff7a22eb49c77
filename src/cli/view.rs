//! Reads what the sidecar wrote: views, results, error files. Every read is bounded and follows no link, and a missing
//! file is an answer, not an error.

use super::error::CliError;
use super::unread::Unread;
use crate::config::Home;
use crate::contract::{self, AgentView, HandoffView, SidecarView, WorkView};
use crate::core::text::shell_word;
use crate::core::time::millis;
use crate::files;
use crate::spool::wanted::WANTED_PREFIX;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The largest JSON file that is read, in bytes: the largest request, every character of it escaped, and some room.
pub const LARGEST: u64 = 8 << 20;

/// Opens a regular file for reading, without following a link and without waiting for a writer.
///
/// # Errors
/// The system's errors, and anything that is not a regular file.
pub fn open(path: &Path) -> std::io::Result<fs::File> {
    open_with_size(path).map(|(file, _)| file)
}

/// As [`open`], with the size that the file has now, in bytes.
fn open_with_size(path: &Path) -> std::io::Result<(fs::File, u64)> {
    match files::open(path)? {
        (file, meta) if meta.is_file() => Ok((file, meta.file_stamp.size)),
        _ => Err(std::io::Error::other("is not a regular file")),
    }
}

/// The bytes of a file of at most `limit` bytes; `None` if it does not exist.
///
/// # Errors
/// When it can't be read, is not a regular file, or is larger.
pub fn read_bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, CliError> {
    let failed = |error: &std::io::Error| CliError::file("Can't read", path, error);
    let (file, size) = match open_with_size(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    // One byte more than there is, for the read that finds the end.
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or_default() + 1);
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > limit {
        let size = size.max(bytes.len() as u64);
        let message = format!("{} has {size} bytes; at most {limit} are allowed.", path.display());
        return Err(CliError::refused("too_large", message));
    }
    Ok(Some(bytes))
}

/// A file's JSON, and its contents as a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewFile<T> {
    text: Vec<u8>,
    said: T,
}

impl<T: DeserializeOwned> ViewFile<T> {
    /// Reads a file's text; `None` if it is JSON, but not an object.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn read(text: Vec<u8>) -> serde_json::Result<Option<Self>> {
        Ok(contract::read(&text)?.map(|said| ViewFile { text, said }))
    }
}

impl<T: DeserializeOwned + Default> From<Value> for ViewFile<T> {
    fn from(text: Value) -> Self {
        ViewFile { said: contract::understood(text.clone()).unwrap_or_default(), text: text.to_string().into_bytes() }
    }
}

impl<T> ViewFile<T> {
    /// The whole file as JSON, with fields that this version does not know.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }
}

impl<T> Deref for ViewFile<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.said
    }
}

/// One file that the sidecar wrote; `None` if it does not exist or does not hold a JSON object.
///
/// # Errors
/// When it can't be read or is not JSON.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<ViewFile<T>>, CliError> {
    let Some(bytes) = read_bytes(path, LARGEST)? else { return Ok(None) };
    ViewFile::read(bytes).map_err(|error| not_json(path, &error))
}

/// All valid views in a folder. A file that is removed meanwhile is left out; a file that can't be read is noted.
///
/// # Errors
/// When the folder can't be read.
pub fn all<T: DeserializeOwned>(folder: &Path, unread: &mut Unread) -> Result<Vec<ViewFile<T>>, CliError> {
    let one = |stem: String| unread.note(read(&folder.join(format!("{stem}.json"))));
    Ok(stems(folder)?.into_iter().filter_map(one).collect())
}

/// All views in a folder that can be read, for callers that make no list of them.
///
/// # Errors
/// When the folder can't be read.
pub fn readable<T: DeserializeOwned>(folder: &Path) -> Result<Vec<ViewFile<T>>, CliError> {
    all(folder, &mut Unread::default())
}

/// The `most` valid views of a folder that changed last, the newest first. Those that can't be read are noted.
///
/// # Errors
/// When the folder can't be read.
pub fn latest<T: DeserializeOwned>(
    folder: &Path,
    most: usize,
    unread: &mut Unread,
) -> Result<Vec<ViewFile<T>>, CliError> {
    let mut found = by_change(folder)?;
    found.sort_unstable_by(|a, b| b.cmp(a));
    let one = |(_, stem): (i64, String)| unread.note(read(&folder.join(format!("{stem}.json"))));
    Ok(found.into_iter().filter_map(one).take(most).collect())
}

/// As [`latest`], for callers that make no list of them.
///
/// # Errors
/// When the folder can't be read.
pub fn latest_readable<T: DeserializeOwned>(folder: &Path, most: usize) -> Result<Vec<ViewFile<T>>, CliError> {
    latest(folder, most, &mut Unread::default())
}

/// The error of a file that the sidecar wrote and that is not JSON.
pub fn not_json(path: &Path, error: &serde_json::Error) -> CliError {
    CliError::refused("not_json", format!("{} is not JSON: {error}.", path.display())).hint(match marker_of(path) {
        Some(marker) => format!(
            "Have the sidecar write it again, within some seconds: touch {}",
            shell_word(&marker.display().to_string())
        ),
        None => "The sidecar rewrites this file whole; if the file stays broken, restart the sidecar.".to_owned(),
    })
}

/// The file that asks the sidecar for the view of an agent, a handoff or a work item.
fn marker_of(path: &Path) -> Option<PathBuf> {
    let (folder, id) = (path.parent()?, path.file_stem()?.to_str()?.parse::<uuid::Uuid>().ok()?);
    // Errors have such names too, and are never written again.
    folder.parent()?.ends_with("view").then(|| folder.with_file_name(format!("{WANTED_PREFIX}{id}")))
}

/// The names of a folder's JSON files, without `.json`, sorted. A folder that does not exist has none.
///
/// # Errors
/// When the folder can't be read.
pub fn stems(folder: &Path) -> Result<Vec<String>, CliError> {
    let mut stems: Vec<String> = names(folder)?.iter().map(|name| stem(name).to_owned()).collect();
    stems.sort_unstable();
    Ok(stems)
}

/// The names of a folder's JSON files, in no order. Their number is not limited: the file that is asked for, or that of
/// a living agent, may come last.
fn names(folder: &Path) -> Result<Vec<String>, CliError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::file("Can't read", folder, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| CliError::file("Can't read", folder, &error))?.file_name().into_string();
        names.extend(name.ok().filter(|name| !name.starts_with('.') && name.ends_with(".json")));
    }
    Ok(names)
}

fn stem(name: &str) -> &str {
    name.strip_suffix(".json").unwrap_or(name)
}

/// The names of a folder's JSON files, without `.json`, each with the time of its last change in milliseconds since
/// 1970. The folder is held open meanwhile: to follow thousands of whole paths would take most of the time of a list.
///
/// # Errors
/// When the folder can't be read.
pub fn by_change(folder: &Path) -> Result<Vec<(i64, String)>, CliError> {
    let names = names(folder)?;
    let dir = match crate::files::open_dir(folder) {
        Ok(dir) => dir,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::file("Can't read", folder, &error)),
    };
    let changed = |mut name: String| {
        let changed_ms = match crate::files::meta_at(&dir, &name) {
            Ok(meta) => meta?.file_stamp.mtime_ns / 1_000_000,
            // It is read first, so that the reader learns that it can't be read.
            Err(_) => i64::MAX,
        };
        name.truncate(stem(&name).len());
        Some((changed_ms, name))
    };
    Ok(names.into_iter().filter_map(changed).collect())
}

/// One agent's view.
///
/// # Errors
/// When it can't be read.
pub fn agent(home: &Home, agent_id: &str) -> Result<Option<ViewFile<AgentView>>, CliError> {
    read(&home.agent_views().join(format!("{agent_id}.json")))
}

/// The sidecar's own view; none if the sidecar ended properly.
///
/// # Errors
/// When it can't be read.
pub fn sidecar(home: &Home) -> Result<Option<ViewFile<SidecarView>>, CliError> {
    read(&home.view().join("sidecar.json"))
}

/// One handoff's view.
///
/// # Errors
/// When it can't be read.
pub fn handoff(home: &Home, handoff_id: &str) -> Result<Option<ViewFile<HandoffView>>, CliError> {
    read(&home.handoff_views().join(format!("{handoff_id}.json")))
}

/// One work item's view.
///
/// # Errors
/// When it can't be read.
pub fn item(home: &Home, item_id: &str) -> Result<Option<ViewFile<WorkView>>, CliError> {
    read(&home.work_views().join(format!("{item_id}.json")))
}

/// A text, if it is not empty.
pub fn said<'a>(text: impl Into<Option<&'a str>>) -> Option<&'a str> {
    text.into().filter(|text| !text.is_empty())
}

/// A text for a table: `-` where there is none.
pub fn shown<'a>(text: impl Into<Option<&'a str>>) -> String {
    said(text).unwrap_or("-").to_owned()
}

/// A path as people write it: `~` for their home.
#[must_use]
pub fn tilde(path: &str, home: &str) -> String {
    let home = home.trim_end_matches('/');
    match path.strip_prefix(home).filter(|rest| !home.is_empty() && (rest.is_empty() || rest.starts_with('/'))) {
        Some(rest) => format!("~{rest}"),
        None => path.to_owned(),
    }
}

/// A time of the contract as people read it: date and seconds, in their own time zone.
#[must_use]
pub fn clock(at: &str) -> String {
    let local = |at: chrono::DateTime<chrono::FixedOffset>| at.with_timezone(&chrono::Local);
    let read = chrono::DateTime::parse_from_rfc3339(at);
    read.map_or_else(|_| at.to_owned(), |at| local(at).format("%Y-%m-%d %H:%M:%S").to_string())
}

/// How long ago a time of the contract was, in one unit, for lists that people read; a time in the future is printed as
/// it is.
#[must_use]
pub fn ago(at: &str, now: chrono::DateTime<chrono::Utc>) -> String {
    let Ok(then) = chrono::DateTime::parse_from_rfc3339(at) else { return at.to_owned() };
    match (now - then.with_timezone(&chrono::Utc)).num_seconds() {
        ..0 => clock(at),
        seconds @ 0..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// Milliseconds from one time of the contract to another.
#[must_use]
pub fn millis_between(from: &str, to: &str) -> Option<u64> {
    u64::try_from(millis(to)? - millis(from)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_ago_is_told_in_one_unit_and_a_future_time_as_a_date() {
        let now = chrono::DateTime::parse_from_rfc3339("2026-11-22T12:00:00.000Z").expect("a time").to_utc();
        for (at, told) in [
            ("2026-11-22T12:00:00.000Z", "0 s ago"),
            ("2026-11-22T11:59:01.000Z", "59 s ago"),
            ("2026-11-22T11:59:00.000Z", "1 min ago"),
            ("2026-11-22T11:00:01.000Z", "59 min ago"),
            ("2026-11-22T11:00:00.000Z", "1 h ago"),
            ("2026-11-20T12:00:01.000Z", "47 h ago"),
            ("2026-11-20T12:00:00.000Z", "2 days ago"),
            ("never", "never"),
        ] {
            assert_eq!(ago(at, now), told, "{at}");
        }
        let later = "2026-11-22T12:00:01.000Z";
        assert_eq!(ago(later, now), clock(later));
    }

    #[test]
    fn links_and_pipes_are_not_read_and_sizes_are_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("a.json");
        fs::write(&file, "{\"a\":1}").expect("a file");
        std::os::unix::fs::symlink(&file, dir.path().join("link.json")).expect("a link");
        nix::unistd::mkfifo(&dir.path().join("fifo.json"), nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
        assert!(read::<Value>(&dir.path().join("link.json")).is_err());
        assert!(read::<Value>(&dir.path().join("fifo.json")).is_err());
        assert_eq!(read::<Value>(&dir.path().join("missing.json")), Ok(None));
        assert_eq!(read_bytes(&file, 3).map_err(|error| error.code), Err("too_large".to_owned()));
        let mut unread = Unread::default();
        assert_eq!(all::<Value>(dir.path(), &mut unread).expect("readable").len(), 1);
        assert_eq!(latest::<Value>(dir.path(), 5, &mut unread).expect("readable").len(), 1);
        let (count, why) = unread.first().expect("some can't be read");
        assert!(count == 4 && why.contains("fifo.json"), "{count}: {why}");
    }

    #[test]
    fn no_name_of_very_many_files_is_left_out() {
        // In memory, if the system has such a folder: a disk needs half a minute for that many files.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
        for number in 0..200_100 {
            fs::write(dir.path().join(format!("{number}.json")), "").expect("a file");
        }
        assert_eq!(stems(dir.path()).expect("readable").len(), 200_100);
    }

    #[test]
    fn the_home_of_the_user_is_written_as_a_tilde() {
        let all = ["/home/kai", "/home/kai/src", "/home/kaito", "/srv"].map(|path| tilde(path, "/home/kai/"));
        assert_eq!(all, ["~", "~/src", "/home/kaito", "/srv"]);
        assert_eq!(tilde("/srv", ""), "/srv");
    }

    #[test]
    fn times_are_subtracted() {
        assert_eq!(millis_between("2026-11-21T20:00:00.000Z", "2026-11-21T20:00:01.250Z"), Some(1_250));
        assert_eq!(millis_between("2026-11-21T20:00:02Z", "2026-11-21T20:00:01Z"), None);
    }
}
