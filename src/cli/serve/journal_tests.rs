//! The journal as events: where lines begin, how a `seq` is found, how rotated files are followed.

use super::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

struct Spool(tempfile::TempDir);

impl Spool {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("spool")).expect("a folder");
        Spool(dir)
    }

    fn home(&self) -> Home {
        Home::at(self.0.path()).expect("a path")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("spool").join(name)
    }

    fn append(&self, text: &str) {
        let file = OpenOptions::new().create(true).append(true).open(self.file("journal.jsonl"));
        file.expect("a journal").write_all(text.as_bytes()).expect("written");
    }

    fn lines(&self, seqs: std::ops::RangeInclusive<u64>) {
        self.append(
            &seqs
                .map(|seq| format!("{{\"seq\":{seq},\"type\":\"work\",\"pad\":\"{seq:0>200}\"}}\n"))
                .collect::<String>(),
        );
    }

    fn rotate(&self, first: u64) {
        fs::rename(self.file("journal.jsonl"), self.file(&format!("journal-{first}.jsonl"))).expect("rotated");
    }
}

fn all(cursor: &mut Cursor) -> Vec<u64> {
    let mut seqs = Vec::new();
    loop {
        let batch = cursor.read().expect("readable");
        if batch.ends().is_none() {
            return seqs;
        }
        seqs.extend(batch.lines.iter().map(|(seq, _)| *seq));
    }
}

#[test]
fn a_line_is_an_event_once_it_is_whole() {
    let spool = Spool::new();
    let mut cursor = Cursor::at_end(&spool.home()).expect("no journal yet");
    assert_eq!(all(&mut cursor), [] as [u64; 0]);
    spool.append("{\"seq\":1,\"type\":\"agent.state\"");
    assert!(cursor.read().expect("readable").ends().is_none());
    spool.append("}\nnot JSON\n{\"seq\":2,\"type\":\"a\\nid: 9\"}\n");
    let batch = cursor.read().expect("readable");
    let text = String::from_utf8(batch.after(0).to_vec()).expect("text");
    let events = "id: 1\nevent: agent.state\ndata: {\"seq\":1,\"type\":\"agent.state\"}\n\nid: 2\nevent: message\ndata: {\"seq\":2,\"type\":\"a\\nid: 9\"}\n\n";
    assert_eq!(text, events);
    assert_eq!(batch.after(1), events.as_bytes()[events.find("id: 2").expect("there")..]);
    assert!(batch.after(2).is_empty());
}

#[test]
fn every_place_in_a_long_journal_is_found_also_in_rotated_files() {
    let spool = Spool::new();
    spool.lines(1..=1_500);
    spool.rotate(1);
    spool.lines(1_501..=3_000);
    spool.rotate(1_501);
    spool.lines(3_001..=4_000);
    for seq in [0, 1, 2, 700, 1_499, 1_500, 1_501, 2_999, 3_000, 3_001, 3_999, 4_000, 9_000] {
        let mut cursor = Cursor::after(&spool.home(), seq).expect("found");
        assert_eq!(all(&mut cursor), (seq + 1..=4_000).collect::<Vec<u64>>(), "after {seq}");
    }
    fs::remove_file(spool.file("journal-1.jsonl")).expect("removed");
    let mut cursor = Cursor::after(&spool.home(), 5).expect("found");
    assert_eq!(all(&mut cursor), (1_501..=4_000).collect::<Vec<u64>>(), "the oldest that is kept");
}

#[test]
fn a_reader_follows_the_journal_into_its_next_files() {
    let spool = Spool::new();
    spool.lines(1..=10);
    let mut cursor = Cursor::at_end(&spool.home()).expect("at the end");
    assert_eq!(all(&mut cursor), [] as [u64; 0]);
    spool.lines(11..=12);
    spool.rotate(1);
    assert_eq!(all(&mut cursor), [11, 12]);
    spool.lines(13..=14);
    spool.rotate(13);
    spool.lines(15..=16);
    assert_eq!(all(&mut cursor), [13, 14, 15, 16]);
    // A cursor that has not read a line yet also continues in the next file, and not in the oldest.
    let mut cursor = Cursor::at_end(&spool.home()).expect("at the end");
    spool.rotate(15);
    spool.lines(17..=17);
    assert_eq!((all(&mut cursor), cursor.newest()), (vec![17], 16));
}

#[test]
fn a_journal_that_was_begun_again_is_read_from_its_first_line_and_starts_over() {
    let spool = Spool::new();
    spool.lines(1..=49);
    let mut cursor = Cursor::at_end(&spool.home()).expect("readable");
    fs::remove_file(spool.file("journal.jsonl")).expect("ours");
    assert_eq!(all(&mut cursor), [] as [u64; 0]);
    spool.lines(1..=3);
    let batch = cursor.read().expect("readable");
    assert_eq!((batch.ends(), batch.starts_over()), (Some((1, 3)), true));
    spool.lines(4..=4);
    let batch = cursor.read().expect("readable");
    assert_eq!((batch.ends(), batch.starts_over()), (Some((4, 4)), false));
}

#[test]
fn a_journal_that_continues_in_another_file_does_not_start_over() {
    let spool = Spool::new();
    spool.lines(1..=9);
    let mut cursor = Cursor::at_end(&spool.home()).expect("readable");
    // Somebody has put a copy of it in its place.
    fs::copy(spool.file("journal.jsonl"), spool.file("copy")).expect("copied");
    fs::rename(spool.file("copy"), spool.file("journal.jsonl")).expect("renamed");
    assert_eq!(all(&mut cursor), [] as [u64; 0]);
    spool.lines(10..=10);
    spool.rotate(1);
    spool.lines(11..=12);
    let mut seqs = Vec::new();
    for _ in 0..2 {
        let batch = cursor.read().expect("readable");
        assert!(!batch.starts_over());
        seqs.extend(batch.lines.iter().map(|(seq, _)| *seq));
    }
    assert_eq!(seqs, [10, 11, 12]);
}

#[test]
fn a_line_that_is_too_long_is_left_out() {
    let spool = Spool::new();
    spool.lines(1..=1);
    let mut cursor = Cursor::after(&spool.home(), 0).expect("a journal");
    spool.append(&"x".repeat(LONGEST + CHUNK + 1));
    assert_eq!(all(&mut cursor), [1], "the long line has no end yet");
    spool.append("\n");
    assert_eq!(all(&mut cursor), [] as [u64; 0]);
    spool.lines(2..=3);
    assert_eq!(all(&mut cursor), [2, 3]);
    spool.rotate(1);
    spool.lines(4..=4);
    assert_eq!(all(&mut cursor), [4]);
    assert_eq!(all(&mut Cursor::after(&spool.home(), 1).expect("a journal")), [2, 3, 4]);
}

#[test]
fn no_line_is_skipped_while_files_are_rotated() {
    const ROUNDS: u64 = 1_000;
    /// How many rotations may happen during one look: without a limit a look would never succeed. Rotations that an
    /// earlier look did not use are not added.
    const PER_LOOK: u64 = 3;
    let spool = Spool::new();
    spool.lines(1..=3);
    let (done, allowed) = (AtomicU64::new(3), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 1..=ROUNDS {
                let end = Instant::now() + Duration::from_secs(60);
                while allowed.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_err() {
                    assert!(Instant::now() < end, "a look takes longer than a minute");
                    std::thread::yield_now();
                }
                spool.rotate(3 * round - 2);
                spool.lines(3 * round + 1..=3 * round + 3);
                done.store(3 * round + 3, SeqCst);
            }
        });
        for look in 0_usize.. {
            if writer.is_finished() {
                break;
            }
            allowed.store(PER_LOOK, SeqCst);
            let newest = done.load(SeqCst);
            // By turns after the newest line, a line in the file before, and a line in a much older file.
            let after = newest.saturating_sub([1, 4, 40][look % 3]);
            let mut cursor = Cursor::after(&spool.home(), after).expect("it settles between two rotations");
            assert!(cursor.newest() >= newest, "after {after} of {newest}: only {} was found", cursor.newest());
            let first = cursor.read().expect("readable").ends().map(|(first, _)| first);
            assert_eq!(first, Some(after + 1), "after {after} of {newest}");
        }
    });
}
