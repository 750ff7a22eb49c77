//! `journal.jsonl`: one line for each change of an agent, a handoff or a work item, and for each failure and notice. A
//! line is a JSON object with a number, `seq`. The numbers have no gaps. The lines come from the store: after a crash,
//! tasuki appends the missing ones, and writes none twice.

use super::dirs::SpoolDir;
use super::error::Error;
use super::home::Spool;
use crate::core::text::plain_json;
use crate::files::{self, Meta, Unfit};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

const NAME: &str = "journal.jsonl";
/// The size at which the journal rotates, in bytes.
const ROTATE_BYTES: u64 = 64 * 1024 * 1024;
/// The longest line that is read back, in bytes.
const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;
/// The search for the last valid line ends after so many lines without a `seq`. Each costs two reads of [`CHUNK`].
const MAX_BAD_LINES: usize = 10_000;
/// How much is read at once when the file is searched from its end, in bytes.
const CHUNK: u64 = 64 * 1024;

/// The journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// `None` after an error: the end of the file must be read before anything is appended.
    open: Option<Open>,
    last: u64,
    /// The highest `seq` ever given out. If the file's last line is below it and the next line does not follow, lines
    /// were cut off the file.
    reached: u64,
    rotate_bytes: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
    first: Option<u64>,
}

#[derive(Deserialize)]
struct Line {
    seq: u64,
}

impl Journal {
    /// Opens the journal, cuts off all that follows the last valid line, and returns the last `seq` on the disk (0 if
    /// none). A file without a valid line, or with more than 10,000 other lines after the last valid one, is renamed.
    /// Exception: if the whole file is one line without a line feed, that line is cut off. `next_seq` is the number
    /// that the store would give to its next line. The caller must append the lines between the two numbers again from
    /// the store. If the returned number is `next_seq` or more, the store is older than the journal: the caller must
    /// continue with the number after the returned one.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn open(spool: &Spool, next_seq: u64) -> Result<(Journal, u64), Error> {
        Journal::open_with(spool, next_seq, ROTATE_BYTES)
    }

    /// As [`Journal::open`], with another size at which the journal rotates.
    ///
    /// # Errors
    /// An I/O error of the system.
    pub fn open_with(spool: &Spool, next_seq: u64, rotate_bytes: u64) -> Result<(Journal, u64), Error> {
        let path = spool.path(SpoolDir::Spool).join(NAME);
        let reached = next_seq.saturating_sub(1);
        let mut journal = Journal { path, open: None, last: 0, reached, rotate_bytes };
        journal.reopen(spool)?;
        if journal.last >= next_seq.max(1) {
            tracing::warn!(on_disk = journal.last, next_seq, "the journal has lines that the state file does not know");
        }
        let last = journal.last;
        Ok((journal, last))
    }

    /// The `seq` of the last line.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.last
    }

    /// Appends lines in one write. Skips lines that are already in the file. If no last line is known, the first of
    /// `lines` may have any number. Otherwise the lines that are not skipped must follow the last line without a gap.
    /// Exception: if lines that were already written are missing, tasuki renames what is left of the file and begins a
    /// new one with the first of `lines`. Each text is one JSON object without a line break.
    ///
    /// # Errors
    /// `Gap` if the lines would leave a gap; otherwise an I/O error of the system. After that, the next call reads the
    /// end of the file first.
    pub fn append(&mut self, spool: &Spool, lines: &[(u64, String)]) -> Result<(), Error> {
        if !self.is_in_place(spool) {
            self.reopen(spool)?;
        }
        let lines: Vec<&(u64, String)> = lines.iter().filter(|(seq, _)| *seq > self.last).collect();
        let Some((first, _)) = lines.first() else { return Ok(()) };
        self.start_over_if_cut(spool, *first)?;
        let buffer = self.join(&lines)?;
        self.rotate_if_full(spool, buffer.len() as u64)?;
        let Some(open) = &mut self.open else { return Err(self.failed("append to", Errno::EBADF)) };
        if let Err(error) = open.file.write_all(&buffer) {
            self.open = None;
            return Err(self.failed("append to", error));
        }
        open.size += buffer.len() as u64;
        open.first.get_or_insert(*first);
        self.last = lines.last().map_or(self.last, |(seq, _)| *seq);
        self.reached = self.reached.max(self.last);
        Ok(())
    }

    /// Begins a new journal if the present one has lost its end and can't be continued. Its rest is kept under a name
    /// that says so.
    fn start_over_if_cut(&mut self, spool: &Spool, first: u64) -> Result<(), Error> {
        let is_cut = self.last != 0 && first > self.last + 1 && self.reached > self.last;
        if !is_cut {
            return Ok(());
        }
        tracing::warn!(last = self.last, first, "the end of the journal is missing; tasuki begins a new journal");
        if self.open.as_ref().is_some_and(|open| open.size > 0) {
            self.open = None;
            self.set_aside(spool, &format!("journal.cut-after-{}", self.last))?;
            let file = self.open_file(spool)?;
            self.open = Some(Open { file, size: 0, first: None });
        }
        self.last = first - 1;
        Ok(())
    }

    /// The bytes to append for these lines, after a check that they follow the last line and each other.
    fn join(&self, lines: &[&(u64, String)]) -> Result<Vec<u8>, Error> {
        let mut last = self.last;
        let mut buffer = Vec::with_capacity(lines.iter().map(|(_, json)| json.len() + 1).sum());
        for (seq, json) in lines {
            // An empty journal may begin with any number: the user may have moved the old file away.
            if last != 0 && *seq != last + 1 {
                return Err(Error::Gap { path: self.path.clone(), last, got: *seq });
            }
            last = *seq;
            buffer
                .extend(plain_json(json).bytes().map(|byte| if byte == b'\n' || byte == b'\r' { b' ' } else { byte }));
            buffer.push(b'\n');
        }
        Ok(buffer)
    }

    /// Whether the open file is the one under the journal's name, and nobody has written to it.
    fn is_in_place(&self, spool: &Spool) -> bool {
        let Some(open) = &self.open else { return false };
        let there = files::meta_at(spool.dir(SpoolDir::Spool), NAME).ok().flatten();
        let ours = files::meta(&open.file).ok();
        matches!((there, ours), (Some(there), Some(ours)) if there.file_stamp.is_same_file(&ours.file_stamp) && ours.file_stamp.size == open.size)
    }

    /// Opens the file, cuts its end where needed, and learns the last line.
    fn reopen(&mut self, spool: &Spool) -> Result<(), Error> {
        self.open = None;
        let mut file = self.open_file(spool)?;
        let (end, last) = last_whole_line(&mut file).map_err(|error| self.failed("read", error))?;
        let size = file.metadata().map_err(|error| self.failed("read", error))?.len();
        let is_one_torn_line =
            size <= MAX_LINE_BYTES && last_feed_before(&mut file, size).is_ok_and(|feed| feed.is_none());
        if end == 0 && size > 0 && !is_one_torn_line {
            self.set_aside(spool, "journal-damaged")?;
            file = self.open_file(spool)?;
        } else if end < size {
            file.set_len(end).map_err(|error| self.failed("cut the end of", error))?;
        }
        let first = first_seq(&mut file).map_err(|error| self.failed("read", error))?;
        self.open = Some(Open { file, size: end, first });
        let rotated = if last.is_none() { self.last_rotated(spool)? } else { None };
        // What this process has written counts even if somebody has removed the file.
        self.last = last.or(rotated).unwrap_or(0).max(if last.is_none() { self.last } else { 0 });
        Ok(())
    }

    /// Opens the file, or makes it. A file with a second hard link, for example in a snapshot, is renamed and a new one
    /// is begun, because appended lines would change the snapshot too.
    fn open_file(&mut self, spool: &Spool) -> Result<File, Error> {
        let mut file = self.open_any_file(spool)?;
        let meta: Meta = files::meta(&file).map_err(|error| self.failed("open", error))?;
        match files::check_readable(&meta, u64::MAX) {
            Ok(()) => Ok(file),
            Err(Unfit::Linked(_)) => {
                // The file's lines must not be written again.
                let (_, last) = last_whole_line(&mut file).map_err(|error| self.failed("read", error))?;
                self.last = last.unwrap_or(self.last);
                match first_seq(&mut file).map_err(|error| self.failed("read", error))? {
                    // As a full journal, so that readers find its lines.
                    Some(first) => self.rename_as_full(spool, first)?,
                    None => self.set_aside(spool, "journal-linked")?,
                }
                self.open_any_file(spool)
            }
            Err(Unfit::Foreign) => {
                let foreign = io::Error::new(io::ErrorKind::PermissionDenied, Unfit::Foreign.to_string());
                Err(self.failed("open", foreign))
            }
            Err(unfit) => Err(self.failed("open", io::Error::other(unfit.to_string()))),
        }
    }

    fn open_any_file(&self, spool: &Spool) -> Result<File, Error> {
        let flags =
            OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(spool.dir(SpoolDir::Spool), NAME, flags, Mode::S_IRUSR | Mode::S_IWUSR);
        Ok(File::from(file.map_err(|error| self.failed("open", error))?))
    }

    /// Renames a journal that can't be continued, so that nothing of it is destroyed.
    fn set_aside(&self, spool: &Spool, stem: &str) -> Result<(), Error> {
        let name = self.rename_to_free(spool, NAME, stem)?;
        tracing::warn!(name, "the journal can't be continued; tasuki renamed it and began a new one");
        Ok(())
    }

    /// Renames a file to `<stem>-<n>.jsonl`, with the first number that is free. Returns the new name.
    fn rename_to_free(&self, spool: &Spool, from: &str, stem: &str) -> Result<String, Error> {
        let dir = spool.dir(SpoolDir::Spool);
        for number in 1..1_000 {
            let name = format!("{stem}-{number}.jsonl");
            match files::rename_new(dir, OsStr::new(from), dir, OsStr::new(&name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(self.failed("rename", error)),
                Ok(()) => return Ok(name),
            }
        }
        Err(self.failed("rename", Errno::EEXIST))
    }

    fn rotate_if_full(&mut self, spool: &Spool, more: u64) -> Result<(), Error> {
        let Some(Open { size, first: Some(first), .. }) = &self.open else { return Ok(()) };
        if *size == 0 || size + more <= self.rotate_bytes {
            return Ok(());
        }
        self.rename_as_full(spool, *first)?;
        self.open = None;
        let file = self.open_file(spool)?;
        self.open = Some(Open { file, size: 0, first: None });
        Ok(())
    }

    /// Renames the journal to the name under which readers look for lines from this one on.
    fn rename_as_full(&self, spool: &Spool, first: u64) -> Result<(), Error> {
        let name = format!("journal-{first}.jsonl");
        let dir = spool.dir(SpoolDir::Spool);
        let rotate = || files::rename_new(dir, OsStr::new(NAME), dir, OsStr::new(&name));
        let rotated = match rotate() {
            // Readers look for our lines under this name, so the other file has to make room.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let other = self.rename_to_free(spool, &name, &format!("journal-other-{first}"))?;
                tracing::warn!(name, other, "another file had the name for the full journal; tasuki renamed that file");
                rotate()
            }
            rotated => rotated,
        };
        rotated.map_err(|error| self.failed("rotate", error))
    }

    /// The `seq` of the last line of the newest rotated file, after which an empty journal continues.
    fn last_rotated(&self, spool: &Spool) -> Result<Option<u64>, Error> {
        let dir = spool.dir(SpoolDir::Spool);
        let number =
            |name: &OsStr| name.to_str()?.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse::<u64>().ok();
        let (names, _) = files::names(dir, 100_000, |name| number(name).is_some())
            .map_err(|error| self.failed("find the last rotated journal beside", error))?;
        let Some(newest) = names.iter().max_by_key(|name| number(name)) else { return Ok(None) };
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(dir, newest.as_os_str(), flags, Mode::empty())
            .map_err(|error| self.failed("find the last rotated journal beside", error))?;
        let (_, last) = last_whole_line(&mut File::from(file))
            .map_err(|error| self.failed("find the last rotated journal beside", error))?;
        Ok(last)
    }

    fn failed(&self, action: &'static str, error: impl Into<io::Error>) -> Error {
        Error::io(action, &self.path, error)
    }
}

/// Where the last complete line with a `seq` ends, and that `seq`; `(0, None)` if there is no such line, or if more
/// than 10,000 other lines follow it. Reads from the end, because a journal may be long.
///
/// # Errors
/// An I/O error of the system.
pub fn last_whole_line(file: &mut File) -> io::Result<(u64, Option<u64>)> {
    let size = file.metadata()?.len();
    // The line to try next ends before `end`: the end of the file at first, then the line feed at the end of the line
    // that was tried last.
    let mut end = size;
    for _ in 0..=MAX_BAD_LINES {
        let Some(feed) = last_feed_before(file, end)? else { return Ok((0, None)) };
        let start = last_feed_before(file, feed)?.map_or(0, |before| before + 1);
        if feed - start <= MAX_LINE_BYTES {
            let mut line = vec![0; usize::try_from(feed - start).unwrap_or(0)];
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(&mut line)?;
            if let Ok(line) = serde_json::from_slice::<Line>(&line) {
                return Ok((feed + 1, Some(line.seq)));
            }
        }
        end = feed;
    }
    Ok((0, None))
}

/// The offset of the last line feed before `end`.
fn last_feed_before(file: &mut File, end: u64) -> io::Result<Option<u64>> {
    let mut end = end;
    let mut chunk = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(CHUNK);
        chunk.resize(usize::try_from(end - start).unwrap_or(0), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut chunk)?;
        if let Some(place) = chunk.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(start + place as u64));
        }
        end = start;
    }
    Ok(None)
}

/// The `seq` of the first line, by which a rotated file is named.
fn first_seq(file: &mut File) -> io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(0))?;
    let mut line = Vec::new();
    BufReader::new(file).take(MAX_LINE_BYTES).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice::<Line>(&line).ok().map(|line| line.seq))
}
