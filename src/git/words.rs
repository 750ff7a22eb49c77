//! Names and texts of a repository as facts may hold them: one line, nothing that drives a terminal, and not too long.

use crate::core::text::quotable;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Longest path that facts hold, in characters: as long as the system allows.
const MAX_PATH: usize = 4_096;
/// Longest name of a branch or remote that facts hold, in characters. A longer one is cut.
const MAX_NAME: usize = 255;

/// A text in one line, cut after `max` characters. Bytes that are not UTF-8 are replaced.
pub(super) fn plain_line(bytes: &[u8], max: usize) -> String {
    let text = quotable(&String::from_utf8_lossy(bytes), max);
    text.replace(['\n', '\t', '\u{2028}', '\u{2029}'], " ")
}

/// A path in one line.
pub(super) fn plain_path(path: &Path) -> String {
    plain_line(path.as_os_str().as_bytes(), MAX_PATH)
}

/// The name of a branch or a remote in one line.
pub(super) fn plain_name(name: &[u8]) -> String {
    plain_line(name, MAX_NAME)
}

/// The text without the line break that git prints after a single answer.
pub(super) fn without_break(printed: &[u8]) -> &[u8] {
    printed.strip_suffix(b"\n").unwrap_or(printed)
}

/// An argument from git's own bytes.
pub(super) fn os_text(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

/// A path from git's own bytes.
pub(super) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// A hash as git prints it: 40 or 64 hexadecimal digits. Anything else is none.
pub(super) fn hash_of(printed: &[u8]) -> Option<String> {
    let hash = str::from_utf8(without_break(printed)).ok()?;
    let is_hash = [40, 64].contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash.to_owned())
}
