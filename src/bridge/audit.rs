//! `fleet/audit.jsonl`: one line for each letter that was sent, taken, refused or not authentic, and for each time that
//! somebody else has written to this host's name at the server. No line has text of a letter.

use super::folder::FleetFolder;
use crate::core::text::sha256;
use crate::spool::journal::last_whole_line;
use nix::fcntl::OFlag;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

/// The file's name.
pub(super) const FILE: &str = "audit.jsonl";
/// When the file has this size, in bytes, it is renamed and a new one begins.
const ROTATE_AT: u64 = 16 << 20;
/// How many former files are kept.
const KEPT: usize = 4;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditLine<'a> {
    /// `in` or `out`.
    pub(crate) dir: &'a str,
    /// The other host, as the letter's subject says.
    pub(crate) host: &'a str,
    /// The request's id, where it could be read.
    pub(crate) id: &'a str,
    /// The request's kind, or `result`.
    pub(crate) kind: &'a str,
    /// Such as `sent`, `taken`, `answered 200`, `not authentic: seal`, or the status and code of a refusal.
    pub(crate) status: &'a str,
}

/// Writes the audit.
#[derive(Debug)]
pub(crate) struct Audit {
    folder: FleetFolder,
    file: Option<File>,
    /// The number of the last line.
    seq: u64,
}

impl Audit {
    /// Continues where the file ends.
    #[must_use]
    pub(crate) fn open(folder: &FleetFolder) -> Audit {
        let last = |name: String| {
            let (mut file, _) = crate::files::open(&folder.path("", &name)).ok()?;
            last_whole_line(&mut file).ok()?.1
        };
        // If the file was renamed a moment ago, the last line is in the former file.
        let seq = last(FILE.to_owned()).or_else(|| last(format!("{FILE}.1"))).unwrap_or_default();
        Audit { folder: folder.clone(), file: None, seq }
    }

    /// Adds a line. `bytes`: the request, result or letter; the line has only its length and hash. If the line can't be
    /// written, a warning is logged and the bridge continues.
    pub(crate) fn note(&mut self, line: AuditLine<'_>, bytes: &[u8], at: &str) {
        if let Err(error) = self.write(line, bytes, at) {
            let path = self.folder.path("", FILE);
            tracing::warn!(path = %path.display(), error = error.to_string(), "a line of the audit was not written");
            self.file = None;
        }
    }

    fn write(&mut self, line: AuditLine<'_>, bytes: &[u8], at: &str) -> std::io::Result<()> {
        let AuditLine { dir, host, id, kind, status } = line;
        self.seq += 1;
        let entry = json!({
            "at": at, "seq": self.seq, "dir": dir, "host": host, "id": id, "kind": kind, "status": status,
            "bytes": bytes.len(), "sha256": sha256(bytes),
        });
        let path = self.folder.path("", FILE);
        let mut file = match self.file.take() {
            Some(file) => file,
            None => OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
                .open(&path)?,
        };
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is not a plain file"));
        }
        file.write_all(format!("{entry}\n").as_bytes())?;
        let is_full = file.metadata()?.len() >= ROTATE_AT;
        if is_full {
            self.rotate()
        } else {
            self.file = Some(file);
            Ok(())
        }
    }

    fn rotate(&self) -> std::io::Result<()> {
        let aside = |number: usize| self.folder.path("", &format!("{FILE}.{number}"));
        for number in (1..KEPT).rev() {
            match std::fs::rename(aside(number), aside(number + 1)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(self.folder.path("", FILE), aside(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;

    const LINE: AuditLine<'_> = AuditLine { dir: "in", host: "b", id: "x", kind: "agent_send", status: "taken" };

    #[test]
    fn lines_are_numbered_over_restarts_and_hold_no_text() {
        let (_dir, _, folder) = of_test();
        Audit::open(&folder).note(LINE, b"a secret text", "2026-11-25T12:00:00.000Z");
        Audit::open(&folder).note(LINE, b"a secret text", "2026-11-25T12:00:01.000Z");
        let text = std::fs::read_to_string(folder.path("", FILE)).expect("written");
        let seqs: Vec<u64> = text
            .lines()
            .map(|line| {
                serde_json::from_str::<serde_json::Value>(line).expect("JSON")["seq"].as_u64().expect("a number")
            })
            .collect();
        assert_eq!(seqs, [1, 2]);
        assert!(!text.contains("secret") && text.contains(&sha256(b"a secret text")));
    }

    #[test]
    fn a_pipe_in_its_place_does_not_block() {
        let (_dir, _, folder) = of_test();
        nix::unistd::mkfifo(&folder.path("", FILE), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let mut audit = Audit::open(&folder);
        assert!(audit.write(LINE, b"", "2026-11-25T12:00:00.000Z").is_err());
    }

    #[test]
    fn a_full_file_is_renamed_and_four_are_kept() {
        let (_dir, _, folder) = of_test();
        for _ in 0..6 {
            let full = File::create(folder.path("", FILE)).expect("a file");
            full.set_len(ROTATE_AT).expect("room");
            Audit::open(&folder).note(LINE, b"", "2026-11-25T12:00:00.000Z");
        }
        let mut names = folder.names("").expect("listed");
        names.retain(|name| name.starts_with(FILE));
        assert_eq!(names, ["audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.3", "audit.jsonl.4"]);
    }
}
