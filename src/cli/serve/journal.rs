//! Reads the journal's lines as server-sent events, from its end or after a given `seq`, across files that are rotated
//! meanwhile. An incomplete last line is not read.

use crate::cli::view;
use crate::config::Home;
use crate::spool::journal::last_whole_line;
use axum::body::Bytes;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How much is read at once, in bytes; more only for a line that is longer.
const CHUNK: usize = 64 * 1024;
/// The longest line that is read, in bytes. A longer line is left out.
const LONGEST: usize = 16 * 1024 * 1024;
/// How many names of the spool are searched for rotated files.
const MOST_NAMES: usize = 100_000;

/// How often the files are listed again if they change meanwhile; a journal is rotated every 64 MiB.
const LOOKS: usize = 100;

#[derive(Deserialize)]
struct Line {
    seq: u64,
    r#type: String,
}

#[derive(Debug, Clone, Default)]
pub(super) struct EventBatch {
    text: Bytes,
    /// The `seq` of each line, and where its event begins in the text.
    lines: Vec<(u64, usize)>,
    /// These lines begin another journal than the one that was read before.
    starts_over: bool,
}

impl EventBatch {
    pub(super) fn after(&self, seq: u64) -> Bytes {
        let first = self.lines.iter().find(|(number, _)| *number > seq);
        first.map_or_else(Bytes::new, |(_, at)| self.text.slice(*at..))
    }

    /// The first and the last `seq`; none if there are no lines.
    pub(super) fn ends(&self) -> Option<(u64, u64)> {
        Some((self.lines.first()?.0, self.lines.last()?.0))
    }

    /// Whether this is another journal than the one that was read before.
    pub(super) fn starts_over(&self) -> bool {
        self.starts_over
    }

    fn read(bytes: &[u8], after: u64) -> EventBatch {
        let (mut text, mut lines) = (Vec::with_capacity(bytes.len() * 2), Vec::new());
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(Line { seq, r#type }) = serde_json::from_slice::<Line>(line) else { continue };
            if seq <= after {
                continue;
            }
            lines.push((seq, text.len()));
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"._".contains(&byte);
            let name = if r#type.bytes().all(is_word) { r#type.as_str() } else { "message" };
            text.extend_from_slice(format!("id: {seq}\nevent: {name}\ndata: ").as_bytes());
            text.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            text.extend_from_slice(b"\n\n");
        }
        EventBatch { text: text.into(), lines, starts_over: false }
    }
}

pub(super) struct Cursor {
    spool: PathBuf,
    open: Option<(File, u64)>,
    /// The `seq` of the last line that was read; 0 if none was.
    last: u64,
    newest: u64,
    /// The open file follows another one, and nothing of it was read yet.
    is_turned: bool,
}

impl Cursor {
    /// A cursor at the journal's present end.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn at_end(home: &Home) -> io::Result<Cursor> {
        let mut cursor = Cursor { spool: home.spool(), open: None, last: 0, newest: 0, is_turned: false };
        let mut files = cursor.files()?;
        cursor.newest = files.newest()?;
        cursor.last = cursor.newest;
        if let Some(mut file) = files.current {
            let (end, _) = last_whole_line(&mut file)?;
            cursor.open = Some((file, end));
        }
        Ok(cursor)
    }

    /// A cursor after the line with this `seq`, or at the oldest line if that line was removed.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn after(home: &Home, seq: u64) -> io::Result<Cursor> {
        let mut cursor = Cursor { spool: home.spool(), open: None, last: seq, newest: 0, is_turned: false };
        let mut files = cursor.files()?;
        cursor.newest = files.newest()?;
        if let Some(file) = files.with_line(seq.saturating_add(1))? {
            let start = start_after(&file, seq)?;
            cursor.open = Some((file, start));
        }
        Ok(cursor)
    }

    /// The `seq` of the newest line when the cursor was made; 0 if there was none.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// Some of the next whole lines; an empty batch at the end.
    ///
    /// # Errors
    /// The system's; the cursor does not move.
    pub(super) fn read(&mut self) -> io::Result<EventBatch> {
        loop {
            let Some((file, at)) = &mut self.open else {
                let Some(next) = existing(&self.current())? else { return Ok(EventBatch::default()) };
                (self.open, self.is_turned) = (Some((next, 0)), true);
                continue;
            };
            if let Some((bytes, end)) = whole_lines(file, *at)? {
                if bytes.is_empty() {
                    *at = end;
                    continue;
                }
                let starts_over = self.is_turned && is_another(file, self.last)?;
                if starts_over {
                    self.last = 0;
                }
                let batch = EventBatch { starts_over, ..EventBatch::read(&bytes, self.last) };
                (*at, self.is_turned) = (end, false);
                if let Some((_, last)) = batch.ends() {
                    self.last = last;
                    return Ok(batch);
                }
                continue;
            }
            if !self.turn_the_page()? {
                return Ok(EventBatch::default());
            }
        }
    }

    /// Continues in the next file if the open file was rotated, or at its new end if it was cut. Returns whether there
    /// may be more to read.
    fn turn_the_page(&mut self) -> io::Result<bool> {
        let Some((file, at)) = &mut self.open else { return Ok(false) };
        let there = existing(&self.spool.join("journal.jsonl"))?;
        if let Some(there) = &there {
            let (ours, found) = (file.metadata()?, there.metadata()?);
            if (found.dev(), found.ino()) == (ours.dev(), ours.ino()) {
                // The file was cut: new lines are read from its new end on.
                let cut = ours.len() < *at;
                *at = (*at).min(ours.len());
                return Ok(cut);
            }
        }
        // Lines may have been written just before the rotation. From now on none are added to this file.
        if whole_lines(file, *at)?.is_some() {
            return Ok(true);
        }
        let last = self.last;
        let next = self.rotated()?.into_iter().find(|(first, _)| *first > last).map(|(_, path)| path);
        let next = next.map(|path| existing(&path)).transpose()?.flatten();
        // During a rotation there is no `journal.jsonl` for a moment.
        let Some(file) = next.or(there) else { return Ok(false) };
        (self.open, self.is_turned) = (Some((file, 0)), true);
        Ok(true)
    }

    fn current(&self) -> PathBuf {
        self.spool.join("journal.jsonl")
    }

    /// All files at one moment. A journal may be rotated between two looks and be missed in both places, so this looks
    /// again until nothing has changed.
    fn files(&self) -> io::Result<Files> {
        let mut rotated = self.rotated()?;
        for _ in 0..LOOKS {
            let current = existing(&self.current())?;
            let again = self.rotated()?;
            if again == rotated {
                return Ok(Files { rotated, current });
            }
            rotated = again;
        }
        Err(io::Error::new(io::ErrorKind::WouldBlock, "the journal is rotated too often"))
    }

    /// The rotated files by the `seq` of their first lines, which is in their names.
    fn rotated(&self) -> io::Result<Vec<(u64, PathBuf)>> {
        let first = |name: &str| name.strip_prefix("journal-")?.strip_suffix(".jsonl")?.parse::<u64>().ok();
        let names = std::fs::read_dir(&self.spool)?.take(MOST_NAMES).flatten();
        let mut files: Vec<(u64, PathBuf)> =
            names.filter_map(|entry| Some((first(entry.file_name().to_str()?)?, entry.path()))).collect();
        files.sort_unstable();
        Ok(files)
    }
}

fn existing(path: &Path) -> io::Result<Option<File>> {
    match view::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

struct Files {
    /// The rotated files, the oldest first, each with the `seq` of its first line. They keep their names.
    rotated: Vec<(u64, PathBuf)>,
    /// The file that the sidecar writes to. It is held open, because its name may belong to another file a moment
    /// later.
    current: Option<File>,
}

impl Files {
    /// The `seq` of the newest line; 0 if there is none.
    fn newest(&mut self) -> io::Result<u64> {
        let of = |file: &mut File| last_whole_line(file).map(|(_, newest)| newest);
        if let Some(newest) = self.current.as_mut().map(of).transpose()?.flatten() {
            return Ok(newest);
        }
        for (_, path) in self.rotated.iter().rev() {
            if let Some(newest) = existing(path)?.as_mut().map(of).transpose()?.flatten() {
                return Ok(newest);
            }
        }
        Ok(0)
    }

    /// The file that holds the line with this `seq`, or that will hold it; the oldest file if the line was removed.
    fn with_line(self, seq: u64) -> io::Result<Option<File>> {
        let first = self.current.as_ref().map(first_seq).transpose()?.flatten();
        if first.is_some_and(|first| first <= seq) {
            return Ok(self.current);
        }
        let at = self.rotated.iter().rposition(|(first, _)| *first <= seq).unwrap_or(0);
        match self.rotated.get(at) {
            Some((_, path)) => existing(path),
            None => Ok(self.current),
        }
    }
}

/// Whether a file that follows the journal is another journal: its newest `seq` is smaller than `last`, which was read
/// already. This happens after the state was begun again or restored from a backup. All its lines are new then.
fn is_another(file: &mut File, last: u64) -> io::Result<bool> {
    let (_, newest) = last_whole_line(file)?;
    Ok(newest.is_some_and(|newest| newest < last))
}

/// The whole lines from a position on, as many as one chunk holds, or one line that is longer; and where they end. A
/// line longer than [`LONGEST`] is left out: then only its end is returned.
fn whole_lines(file: &File, at: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
    let mut size = CHUNK;
    loop {
        let mut bytes = Vec::with_capacity(size);
        let mut part = file;
        part.seek(SeekFrom::Start(at))?;
        part.take(size as u64).read_to_end(&mut bytes)?;
        if let Some(feed) = bytes.iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(feed + 1);
            let end = at + bytes.len() as u64;
            return Ok(Some((bytes, end)));
        }
        if bytes.len() < size {
            return Ok(None);
        }
        if size >= LONGEST {
            return Ok(end_of_line(file, at + size as u64)?.map(|end| (Vec::new(), end)));
        }
        size *= 4;
    }
}

/// Where the line ends that a position is in.
fn end_of_line(mut file: &File, at: u64) -> io::Result<Option<u64>> {
    file.seek(SeekFrom::Start(at))?;
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let mut end = at;
    loop {
        let bytes = reader.fill_buf()?;
        if let Some(feed) = bytes.iter().position(|byte| *byte == b'\n') {
            return Ok(Some(end + feed as u64 + 1));
        }
        let read = bytes.len();
        if read == 0 {
            return Ok(None);
        }
        reader.consume(read);
        end += read as u64;
    }
}

fn first_seq(mut file: &File) -> io::Result<Option<u64>> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    BufReader::new(file).take(LONGEST as u64).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice::<Line>(&line).ok().map(|line| line.seq))
}

/// The position of a line that is at most [`CHUNK`] bytes before the first line after a `seq`, or at it. It is found by
/// bisection, because a journal may be long. The reader skips the lines up to `seq`.
fn start_after(file: &File, seq: u64) -> io::Result<u64> {
    let (mut low, mut high) = (0, file.metadata()?.len());
    while high - low > CHUNK as u64 {
        let middle = low + (high - low) / 2;
        let Some((start, found)) = line_from(file, middle)? else {
            high = middle;
            continue;
        };
        if start < high && found <= seq {
            low = start;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The first line that begins after a position: its position and its `seq`.
fn line_from(file: &File, place: u64) -> io::Result<Option<(u64, u64)>> {
    let mut part = file;
    part.seek(SeekFrom::Start(place))?;
    let mut reader = BufReader::new(part).take(LONGEST as u64);
    let (mut rest, mut at) = (Vec::new(), place);
    loop {
        rest.clear();
        at += reader.read_until(b'\n', &mut rest)? as u64;
        rest.clear();
        let read = reader.read_until(b'\n', &mut rest)?;
        if read == 0 || !rest.ends_with(b"\n") {
            return Ok(None);
        }
        if let Ok(line) = serde_json::from_slice::<Line>(&rest) {
            return Ok(Some((at, line.seq)));
        }
        at += read as u64;
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
