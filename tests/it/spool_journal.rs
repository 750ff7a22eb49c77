//! The journal: gapless, each line once, whatever was cut off.

use crate::support::home::TestHome;
use proptest::prelude::*;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant};
use tasuki::spool::{Error, Journal};

fn lines(seqs: impl IntoIterator<Item = u64>) -> Vec<(u64, String)> {
    seqs.into_iter().map(|seq| (seq, format!("{{\"seq\":{seq},\"type\":\"delivery\"}}"))).collect()
}

fn seqs(home: &TestHome, name: &str) -> Vec<u64> {
    let text = fs::read_to_string(home.path(&format!("spool/{name}"))).expect("a journal");
    assert!(text.is_empty() || text.ends_with('\n'));
    let seq = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("a whole line")["seq"].as_u64();
    text.lines().map(|line| seq(line).expect("a number")).collect()
}

#[test]
fn lines_are_appended_and_a_restart_goes_on_behind_them() {
    let home = TestHome::new();
    let (mut journal, last) = Journal::open(&home.spool, 1).expect("a new one");
    assert_eq!(last, 0);
    journal.append(&home.spool, &lines(1..=3)).expect("written");
    journal.append(&home.spool, &lines(2..=5)).expect("two of them are there");
    drop(journal);
    let (mut journal, last) = Journal::open(&home.spool, 6).expect("there");
    assert_eq!(last, 5);
    journal.append(&home.spool, &lines(1..=6)).expect("one of them is new");
    assert_eq!(seqs(&home, "journal.jsonl"), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_gap_is_refused() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open(&home.spool, 1).expect("a new one");
    journal.append(&home.spool, &lines([1])).expect("written");
    assert!(matches!(journal.append(&home.spool, &lines([3])), Err(Error::Gap { last: 1, got: 3, .. })));
    assert!(matches!(journal.append(&home.spool, &lines([2, 4])), Err(Error::Gap { last: 2, got: 4, .. })));
    assert_eq!(seqs(&home, "journal.jsonl"), [1]);
}

#[test]
fn a_full_file_is_put_by_under_its_first_number() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open_with(&home.spool, 1, 100).expect("a new one");
    for seq in 1..=7 {
        journal.append(&home.spool, &lines([seq])).expect("written");
    }
    let journals: Vec<String> = home.names("spool").into_iter().filter(|name| name.starts_with("journal")).collect();
    assert_eq!(journals, ["journal-1.jsonl", "journal-4.jsonl", "journal.jsonl"]);
    let all: Vec<u64> = journals.iter().flat_map(|name| seqs(&home, name)).collect();
    assert_eq!(all, (1..=7).collect::<Vec<_>>());
    fs::remove_file(home.path("spool/journal.jsonl")).expect("a crash before the new file held anything");
    let (_, last) = Journal::open(&home.spool, 7).expect("there");
    assert_eq!(last, 6);
}

#[test]
fn somebody_elses_writing_is_noticed_before_the_next_line() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open(&home.spool, 1).expect("a new one");
    journal.append(&home.spool, &lines([1])).expect("written");
    let mut file = OpenOptions::new().append(true).open(home.path("spool/journal.jsonl")).expect("open");
    file.write_all(b"{\"seq\":2,\"ty").expect("a torn line");
    journal.append(&home.spool, &lines([2])).expect("written");
    assert_eq!(seqs(&home, "journal.jsonl"), [1, 2]);
    fs::remove_file(home.path("spool/journal.jsonl")).expect("removed");
    journal.append(&home.spool, &lines([3])).expect("goes on in a new file");
    assert_eq!(seqs(&home, "journal.jsonl"), [3]);
}

#[test]
fn a_journal_without_a_readable_line_is_kept_aside() {
    let home = TestHome::new();
    home.put("spool/journal.jsonl", b"what\nis this\n");
    let (mut journal, last) = Journal::open(&home.spool, 1).expect("a new one");
    assert_eq!(last, 0);
    journal.append(&home.spool, &lines([1])).expect("written");
    assert_eq!(fs::read(home.path("spool/journal-damaged-1.jsonl")).expect("kept"), b"what\nis this\n");
    assert_eq!(seqs(&home, "journal.jsonl"), [1]);
}

#[test]
fn a_journal_of_nothing_but_line_feeds_is_kept_aside_at_once() {
    let home = TestHome::new();
    home.put("spool/journal.jsonl", vec![b'\n'; 32 * 1024 * 1024]);
    let begun = Instant::now();
    let (mut journal, last) = Journal::open(&home.spool, 1).expect("a new one");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(last, 0);
    journal.append(&home.spool, &lines([1])).expect("written");
    assert_eq!(fs::metadata(home.path("spool/journal-damaged-1.jsonl")).expect("kept").len(), 32 * 1024 * 1024);
    assert_eq!(seqs(&home, "journal.jsonl"), [1]);
}

#[test]
fn a_journal_whose_end_was_cut_is_set_aside_and_goes_on() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open(&home.spool, 1).expect("a new one");
    journal.append(&home.spool, &lines(1..=5)).expect("written");
    let kept: String = lines(1..=2).into_iter().map(|(_, line)| line + "\n").collect();
    home.put("spool/journal.jsonl", &kept);
    journal.append(&home.spool, &lines([6])).expect("it goes on");
    drop(journal);
    home.put("spool/journal.jsonl", &kept);
    let (mut journal, last) = Journal::open(&home.spool, 7).expect("opened");
    assert_eq!(last, 2);
    journal.append(&home.spool, &lines([7, 8])).expect("it goes on after a restart");
    assert!(matches!(journal.append(&home.spool, &lines([10])), Err(Error::Gap { last: 8, got: 10, .. })));
    assert_eq!(seqs(&home, "journal.jsonl"), [7, 8]);
    for name in ["journal.cut-after-2-1.jsonl", "journal.cut-after-2-2.jsonl"] {
        assert_eq!(seqs(&home, name), [1, 2], "{name}");
    }
}

/// As after a backup was unpacked over the home.
#[test]
fn a_file_that_has_the_name_of_a_full_journal_is_renamed() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open_with(&home.spool, 1, 100).expect("a new one");
    for seq in 1..=7 {
        if seq % 3 == 1 {
            home.put(format!("spool/journal-{seq}.jsonl"), format!("{{\"seq\":{}}}\n", seq + 50));
        }
        journal.append(&home.spool, &lines([seq])).expect("written");
    }
    assert_eq!(seqs(&home, "journal-1.jsonl"), [1, 2, 3]);
    assert_eq!(seqs(&home, "journal-4.jsonl"), [4, 5, 6]);
    assert_eq!(seqs(&home, "journal.jsonl"), [7]);
    assert_eq!(seqs(&home, "journal-other-1-1.jsonl"), [51]);
    assert_eq!(seqs(&home, "journal-other-4-1.jsonl"), [54]);
}

#[test]
fn a_journal_that_was_removed_beside_a_rotated_one_goes_on_after_a_restart() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open_with(&home.spool, 1, 100).expect("a new one");
    for seq in 1..=5 {
        journal.append(&home.spool, &lines([seq])).expect("written");
    }
    drop(journal);
    fs::remove_file(home.path("spool/journal.jsonl")).expect("removed");
    let (mut journal, last) = Journal::open(&home.spool, 6).expect("opened");
    assert_eq!(last, 3);
    journal.append(&home.spool, &lines([6])).expect("it goes on");
    assert_eq!(seqs(&home, "journal-1.jsonl"), [1, 2, 3]);
    assert_eq!(seqs(&home, "journal.jsonl"), [6]);
}

/// What is added to it would change the snapshot too.
#[test]
fn a_journal_that_a_snapshot_of_hard_links_shares_is_set_aside() {
    let home = TestHome::new();
    let (mut journal, _) = Journal::open(&home.spool, 1).expect("a journal");
    journal.append(&home.spool, &lines(1..=3)).expect("written");
    drop(journal);
    fs::hard_link(home.path("spool/journal.jsonl"), home.path("snapshot")).expect("a second name");
    let (mut journal, _) = Journal::open(&home.spool, 4).expect("it is no reason not to start");
    journal.append(&home.spool, &lines(4..=5)).expect("written");
    assert_eq!(seqs(&home, "journal.jsonl"), [4, 5]);
    assert_eq!(seqs(&home, "journal-1.jsonl"), [1, 2, 3]);
    assert_eq!(fs::read_to_string(home.path("snapshot")).expect("it is there").lines().count(), 3);
}

#[test]
fn zeros_left_by_a_power_cut_are_cut_off() {
    let home = TestHome::new();
    let mut bytes = b"{\"seq\":1}\n{\"seq\":2}\n".to_vec();
    bytes.extend([0; 5_000]);
    bytes.extend(b"\n\0\0");
    home.put("spool/journal.jsonl", bytes);
    let (mut journal, last) = Journal::open(&home.spool, 3).expect("opened");
    assert_eq!(last, 2);
    journal.append(&home.spool, &lines([3])).expect("written");
    assert_eq!(seqs(&home, "journal.jsonl"), [1, 2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn cut_anywhere_the_journal_is_whole_again_after_the_store_repeats_it(cut in 0u64..400, batches in proptest::collection::vec(1u64..5, 1..5)) {
        let home = TestHome::new();
        let (mut journal, _) = Journal::open_with(&home.spool, 1, 150).expect("a new one");
        let mut next = 1;
        for count in batches {
            journal.append(&home.spool, &lines(next..next + count)).expect("written");
            next += count;
        }
        drop(journal);
        let path = home.path("spool/journal.jsonl");
        let size = fs::metadata(&path).expect("there").len();
        OpenOptions::new().write(true).open(&path).expect("open").set_len(cut.min(size)).expect("cut");
        let (mut journal, last) = Journal::open_with(&home.spool, next, 150).expect("opened");
        prop_assert!(last < next);
        journal.append(&home.spool, &lines(1..=next)).expect("repeated");
        let mut all: Vec<u64> = Vec::new();
        for name in home.names("spool").iter().filter(|name| name.starts_with("journal")) {
            all.extend(seqs(&home, name));
        }
        all.sort_unstable();
        prop_assert_eq!(all, (1..=next).collect::<Vec<_>>());
    }
}
