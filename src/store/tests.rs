//! The state file with a failing disk, an operator who moves it, and a wall clock that jumps.

use super::*;
use crate::core::id::RequestId;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let state = dir.path().join("tasuki.redb");
    (dir, state)
}

fn is_unreadable<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Unreadable { .. }))
}

/// Changes the file in a way in which tasuki never does.
fn spoil(path: &Path, work: impl FnOnce(&redb::WriteTransaction)) {
    let database = Database::create(path).expect("a redb file");
    let write = database.begin_write().expect("a transaction");
    work(&write);
    write.commit().expect("a commit");
}

/// A process that was killed while it started a child leaves the lock to the child for a moment.
#[test]
fn a_start_waits_for_the_lock_of_a_dead_process_and_not_for_that_of_a_live_one() {
    let dir = tempfile::tempdir().expect("a folder");
    drop(Store::open(dir.path()).expect("a new store"));
    let path = dir.path().join("tasuki.lock");
    let held = || {
        let file = std::fs::File::options().read(true).write(true).open(&path).expect("the lock file");
        file.try_lock().expect("free");
        file
    };
    let dead = std::process::Command::new("true").spawn().and_then(|mut child| child.wait().map(|_| child.id()));
    std::fs::write(&path, format!("{}\n", dead.expect("it ran"))).expect("written");
    let left_behind = held();
    let lets_go = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(left_behind);
    });
    drop(Store::open(dir.path()).expect("it is let go of"));
    lets_go.join().expect("it ends");
    let _held = held();
    std::fs::write(&path, format!("{}\n", std::process::id())).expect("written");
    let begun = std::time::Instant::now();
    assert!(matches!(Store::open(dir.path()), Err(Error::Locked { .. })));
    assert!(begun.elapsed() < std::time::Duration::from_secs(5), "at once");
}

#[test]
fn a_link_that_leads_nowhere_is_never_replaced() {
    let (dir, state) = folder();
    std::os::unix::fs::symlink(dir.path().join("not mounted"), &state).expect("a link");
    assert!(is_unreadable(&Store::open(dir.path())));
    assert!(std::fs::symlink_metadata(&state).expect("the link").is_symlink(), "it was left as it was");
    assert!(!dir.path().join("not mounted").exists(), "and no file was created behind it");
}

#[test]
fn a_foreign_file_is_unreadable_and_not_a_failure_of_the_disk() {
    let (dir, state) = folder();
    spoil(&state, |write| {
        write.open_table(redb::TableDefinition::<u64, u64>::new("other")).expect("a table");
    });
    assert!(is_unreadable(&Store::open(dir.path())), "no table of ours");
    spoil(&state, |write| {
        write.open_table(tables::META).expect("a table");
    });
    assert!(is_unreadable(&Store::open(dir.path())), "a missing schema is not 0");
}

#[test]
fn a_row_that_is_not_ours_is_unreadable() {
    let (dir, state) = folder();
    drop(Store::open(dir.path()).expect("a new store"));
    spoil(&state, |write| {
        let mut outbox = write.open_table(tables::OUTBOX).expect("a table");
        outbox.insert(1, b"{".as_slice()).expect("a row");
    });
    assert!(is_unreadable(&Store::open(dir.path()).expect("its tables are there").load()));
}

#[test]
fn a_store_that_could_not_be_read_again_stays_closed() {
    let (dir, state) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let away = dir.path().join("away");
    std::fs::rename(&state, &away).expect("moved");
    assert!(matches!(store.reopen(), Err(Error::Gone { .. })), "it is reported as gone, and not as damaged");
    assert!(store.load().is_err() && store.put_live(&State::default()).is_err());
    std::fs::rename(&away, &state).expect("moved back");
    assert!(reopened(&mut store).is_ok());
    assert!(store.put_live(&State::default()).is_ok());
}

#[test]
fn the_file_of_another_home_is_not_taken_over_while_a_store_is_open() {
    let ((dir, state), (other, others)) = (folder(), folder());
    drop(Store::open(other.path()).expect("another home's store"));
    let mut store = Store::open(dir.path()).expect("a new store");
    let away = dir.path().join("away");
    std::fs::rename(&state, &away).expect("moved");
    std::fs::copy(&others, &state).expect("put in its place");
    for _ in 0..2 {
        assert!(matches!(reopened(&mut store), Err(Error::OtherHome { .. })));
        assert!(store.put_live(&State::default()).is_err());
    }
    let same = std::fs::read(&others).expect("bytes") == std::fs::read(&state).expect("bytes");
    assert!(same, "it is left as it is");
    std::fs::rename(&away, &state).expect("moved back");
    assert!(reopened(&mut store).is_ok() && store.put_live(&State::default()).is_ok());
}

/// Otherwise it would commit into a file that has no name any more.
#[test]
fn a_file_that_is_replaced_while_it_is_checked_is_not_taken_for_the_one_at_the_path() {
    let (dir, state) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let replace = || {
        let copy = dir.path().join("copy");
        std::fs::copy(&state, &copy).and_then(|_| std::fs::rename(&copy, &state)).expect("put in its place");
    };
    replace();
    assert!(store.reopen().expect("a check begins").is_none());
    while !store.checking.as_ref().is_some_and(IntegrityCheck::is_done) {
        std::thread::yield_now();
    }
    replace();
    assert!(matches!(store.reopen(), Err(Error::Gone { .. })));
    assert!(store.put_live(&State::default()).is_err());
    assert!(reopened(&mut store).is_ok() && store.put_live(&State::default()).is_ok());
}

#[test]
fn a_store_that_was_opened_but_not_read_again_is_not_written_to() {
    let (dir, state) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    store.database = None;
    let put = |row: Option<&[u8]>| {
        spoil(&state, |write| {
            let mut outbox = write.open_table(tables::OUTBOX).expect("a table");
            match row {
                Some(row) => drop(outbox.insert(1, row).expect("a row")),
                None => drop(outbox.remove(1).expect("a row")),
            }
        });
    };
    put(Some(b"{"));
    assert!(is_unreadable(&reopened(&mut store)));
    assert!(store.put_live(&State::default()).is_err(), "what is in memory may never have been committed");
    put(None);
    let schema = |number: u64| {
        spoil(&state, |write| {
            write.open_table(tables::META).expect("a table").insert("schema", number).map(drop).expect("a row");
        });
    };
    schema(SCHEMA + 1);
    assert!(
        matches!(reopened(&mut store), Err(Error::NewerSchema { .. })),
        "a later tasuki has written to it meanwhile"
    );
    schema(SCHEMA);
    assert!(reopened(&mut store).is_ok() && store.put_live(&State::default()).is_ok());
}

#[test]
fn a_file_of_a_later_version_that_is_put_in_place_is_left_as_it_is() {
    let (dir, state) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let (later, placed) = (dir.path().join("later"), dir.path().join("placed"));
    std::fs::copy(&state, &later).expect("a copy");
    let database = Database::create(&later).expect("a redb file");
    let write = database.begin_write().expect("a transaction");
    write.open_table(tables::META).expect("a table").insert("schema", SCHEMA + 1).map(drop).expect("a row");
    write.commit().expect("a commit");
    // As a power cut leaves it: redb repairs such a file when it opens it.
    std::fs::copy(&later, &placed).expect("a copy");
    drop(database);
    std::fs::rename(&placed, &state).expect("moved");
    let before = std::fs::read(&state).expect("readable");
    assert!(matches!(reopened(&mut store), Err(Error::NewerSchema { .. })));
    assert!(std::fs::read(&state).expect("readable") == before, "its bytes were changed");
}

#[test]
fn a_message_names_the_file_that_failed() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(dir.path().join("tasuki.lock")).expect("in the lock's place");
    let failed = Store::open(dir.path()).err().expect("no lock").to_string();
    assert!(failed.starts_with("the lock file /") && failed.contains("tasuki.lock could not be opened"), "{failed}");
}

/// Calls `reopen` until it has a result, as the loop does.
fn reopened(store: &mut Store) -> Result<Loaded, Error> {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        if let Some(loaded) = store.reopen().transpose() {
            return loaded;
        }
        assert!(std::time::Instant::now() < until, "the check never ends");
        std::thread::yield_now();
    }
}

fn answered(store: &mut Store, now: Now) -> RequestId {
    answered_as("r1", store, now)
}

fn answered_as(id: &str, store: &mut Store, now: Now) -> RequestId {
    let id: RequestId = id.parse().expect("an id");
    let reply = crate::core::reply::Reply::Ok(serde_json::json!({}));
    let answer =
        crate::core::reply::Answer { request_id: id.clone(), kind: None, request_sha256: "00".to_owned(), reply };
    let decision = Decision { answers: vec![answer], ..Decision::default() };
    store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    id
}

#[test]
fn a_wall_clock_that_jumps_ahead_and_back_forgets_no_request() {
    let (dir, _) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let now = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    let id = answered(&mut store, now);
    // The machine was started again meanwhile; within one boot the boot clock would decide.
    let now = Now { boot: 8, ..now };
    let ahead = Now { wall_ms: now.wall_ms + 31 * DAY_MS, boot_ms: 2_000, ..now };
    assert_eq!(store.purge(&ahead).expect("a look"), 0, "by the first look alone nothing is forgotten");
    let corrected = Now { boot_ms: 2_000 + 11 * 60_000, ..now };
    assert_eq!(store.purge(&corrected).expect("a look"), 0, "nor once the clock is right again");
    assert!(store.ledger_entry(&id).expect("a look").is_some());
}

/// A sidecar that starts now looks twice, so far apart that the wall clock is believed. Returns how many rows the
/// second look has handled.
fn purged(dir: &Path, now: Now) -> usize {
    let mut store = Store::open(dir).expect("the store");
    store.purge(&now).expect("a look");
    let later = Now { wall_ms: now.wall_ms + 11 * 60_000, boot_ms: now.boot_ms + 11 * 60_000, ..now };
    store.purge(&later).expect("a look")
}

fn is_known(dir: &Path, id: &RequestId) -> bool {
    Store::open(dir).expect("the store").ledger_entry(id).expect("a look").is_some()
}

#[test]
fn a_wall_clock_that_was_behind_forgets_no_request() {
    let (dir, _) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let right = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    let id = answered(&mut store, Now { wall_ms: right.wall_ms - 60 * DAY_MS, ..right });
    drop(store);
    assert_eq!(purged(dir.path(), Now { boot_ms: 60_000, ..right }), 0, "it was answered a minute ago");
    assert!(is_known(dir.path(), &id));
    let after = |days: i64| Now {
        wall_ms: right.wall_ms + days * DAY_MS,
        boot_ms: u64::try_from(days * DAY_MS).expect("later"),
        ..right
    };
    assert_eq!(purged(dir.path(), after(29)), 0);
    assert_eq!(purged(dir.path(), after(30)), 1, "by now it is too old");
}

#[test]
fn an_answer_that_is_dated_in_the_future_does_not_keep_the_rest_for_ever() {
    let (dir, _) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let right = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    let wrong = answered_as("wrong", &mut store, Now { wall_ms: right.wall_ms + 3_650 * DAY_MS, ..right });
    answered_as("honest", &mut store, right);
    drop(store);
    let of = |boot: u64, days: i64| Now { wall_ms: right.wall_ms + days * DAY_MS, boot, boot_ms: 1_000 };
    assert_eq!(purged(dir.path(), of(8, 1)), 1, "it is noted when its date was seen to be wrong");
    assert!(is_known(dir.path(), &wrong), "as if it had been answered then");
    assert_eq!(purged(dir.path(), of(9, 30)), 0);
    assert!(is_known(dir.path(), &wrong));
    assert_eq!(purged(dir.path(), of(10, 32)), 2);
    assert!(!is_known(dir.path(), &wrong));
}

#[test]
fn a_request_is_forgotten_when_it_was_too_old_for_a_while() {
    let (dir, _) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let now = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    let id = answered(&mut store, now);
    let at = |boot_ms: u64| Now { wall_ms: now.wall_ms + 31 * DAY_MS, boot: 8, boot_ms };
    assert_eq!(store.purge(&at(2_000)).expect("a look"), 0);
    assert_eq!(store.purge(&at(2_000 + 9 * 60_000)).expect("a look"), 0, "an early look does not start the time again");
    assert_eq!(store.purge(&at(2_000 + 10 * 60_000)).expect("a look"), 1);
    assert!(store.ledger_entry(&id).expect("a look").is_none());
}

/// Without its row, the request could be carried out a second time.
#[test]
fn a_ledger_row_that_can_not_be_understood_stays() {
    let (dir, path) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let now = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    let id = answered(&mut store, now);
    drop(store);
    spoil(&path, |write| {
        write.open_table(tables::LEDGER).expect("a table").insert(id.as_str(), b"{".as_slice()).expect("a row");
    });
    purged(dir.path(), Now { wall_ms: now.wall_ms + 31 * DAY_MS, boot: 8, boot_ms: 60_000 });
    let entry = Store::open(dir.path()).expect("the store").ledger_entry(&id);
    assert!(entry.is_err(), "it is there, and damaged");
}

#[test]
fn ids_that_differ_by_case_alone_are_known_until_the_request_is_forgotten() {
    let (dir, path) = folder();
    let mut store = Store::open(dir.path()).expect("a new store");
    let id = |text: &str| -> RequestId { text.parse().expect("an id") };
    let now = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    for known in ["Deploy-1", "plain"] {
        answered_as(known, &mut store, now);
    }
    let twins = ["deploy-1", "DEPLOY-1", "Plain"];
    let others = ["Deploy-1", "plain", "deploy-2", "Deploy-"];
    let judged = |store: &Store, ids: &[&str]| -> Vec<bool> {
        ids.iter().map(|text| store.has_case_twin(&id(text)).expect("a look")).collect()
    };
    assert_eq!((judged(&store, &twins), judged(&store, &others)), (vec![true; 3], vec![false; 4]));
    drop(store);
    // A store of schema 4 has no second table.
    spoil(&path, |write| {
        write.delete_table(tables::LEDGER_CASES).expect("a table");
        write.open_table(tables::META).expect("a table").insert("schema", 4).expect("a number");
    });
    let mut store = Store::open(dir.path()).expect("an upgrade");
    assert_eq!((judged(&store, &twins), judged(&store, &others)), (vec![true; 3], vec![false; 4]));
    let at = |boot_ms: u64| Now { wall_ms: now.wall_ms + 31 * DAY_MS, boot: 8, boot_ms };
    store.purge(&at(2_000)).expect("a look");
    assert_eq!(store.purge(&at(2_000 + 10 * 60_000)).expect("a look"), 2);
    assert_eq!(judged(&store, &twins), vec![false; 3]);
}

/// A store with this many mebibytes of answers, which a start does not load.
#[cfg(target_os = "linux")]
fn filled(dir: &Path, mebibytes: u64) -> Store {
    let mut store = Store::open(dir).expect("a new store");
    for number in 0..mebibytes {
        let answer = |part: u64| crate::core::reply::Answer {
            request_id: format!("r{number}-{part}").parse().expect("an id"),
            kind: None,
            request_sha256: "00".to_owned(),
            reply: crate::core::reply::Reply::Ok(serde_json::json!({"text": "x".repeat(64 * 1024)})),
        };
        let decision = Decision { answers: (0..16).map(answer).collect(), ..Decision::default() };
        store.commit(&Batch { decision: &decision, now: NOW, seen: &[] }).expect("a commit");
    }
    store.checkpoint(&Checkpoint { ledger_below: store.next_ledger(), ..Checkpoint::default() }).expect("a checkpoint");
    store
}

#[cfg(target_os = "linux")]
const NOW: Now = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };

/// Bytes that this process has read while it opened the store.
#[cfg(target_os = "linux")]
fn read_at_start(dir: &Path) -> (Store, u64) {
    let read = || -> u64 {
        let io = std::fs::read_to_string("/proc/self/io").expect("what we have read");
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: ")).expect("a count");
        line.parse().expect("a number")
    };
    let before = read();
    let store = Store::open(dir).expect("it is whole");
    (store, read() - before)
}

#[cfg(target_os = "linux")]
#[test]
fn only_a_store_that_was_not_closed_properly_is_read_as_a_whole() {
    const MEBIBYTES: u64 = 4;
    let whole = MEBIBYTES * 1024 * 1024;
    let (dir, state) = folder();
    filled(dir.path(), MEBIBYTES).close();
    let (store, read) = read_at_start(dir.path());
    assert!(read < whole / 8, "{read} bytes were read after the store was closed properly");
    // The seal is valid for one start. This store is not closed properly.
    drop(store);
    let (store, read) = read_at_start(dir.path());
    assert!(read >= whole, "{read} bytes were read after the store was not closed");
    store.close();
    // The file was replaced by a copy of itself.
    std::fs::write(&state, std::fs::read(&state).expect("the state")).expect("a copy");
    let (store, read) = read_at_start(dir.path());
    assert!(read >= whole, "{read} bytes were read of a copy");
    store.close();
}
