//! Power cuts, on a simulated disk that may lose any part of what was not synced. After each cut the file must open and
//! hold each commit completely or not at all, even after a second cut during the repair.

#[path = "../../tests/support/tally.rs"]
mod tally;

use super::*;
use crate::core::decision::ErrorRow;
use crate::core::id::RequestId;
use crate::core::reply::{Answer, Reply};
use serde_json::json;
use std::io;
use std::sync::{Arc, Mutex};

/// How many commits are recorded; each fifth is followed by a checkpoint.
const COMMITS: u64 = 24;
/// How many images of a disk after a power cut are tried in the gate; the long suite tries all of them.
const IMAGES: usize = 250;
/// Up to this number of unsynced operations, every combination is tried; above it, all prefixes and some random
/// combinations.
const ALL_COMBINATIONS_OF: usize = 6;
/// The size of a sector, which a disk writes whole or not at all, in bytes.
const SECTOR: usize = 512;

#[derive(Debug, Clone)]
enum Op {
    Write(u64, Vec<u8>),
    Length(u64),
    Sync,
}

/// A disk that records each operation.
#[derive(Debug, Clone, Default)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    ops: Arc<Mutex<Vec<Op>>>,
}

impl Disk {
    fn with(bytes: Vec<u8>) -> Disk {
        Disk { bytes: Arc::new(Mutex::new(bytes)), ops: Arc::default() }
    }

    fn ops(&self) -> Vec<Op> {
        self.ops.lock().expect("no panic before").clone()
    }

    fn done(&self) -> usize {
        self.ops.lock().expect("no panic before").len()
    }
}

impl redb::StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().expect("no panic before").len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes.lock().expect("no panic before");
        let start = usize::try_from(offset).expect("it fits");
        let there = bytes.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(there);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        apply(&mut self.bytes.lock().expect("no panic before"), &Op::Length(length));
        self.ops.lock().expect("no panic before").push(Op::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.ops.lock().expect("no panic before").push(Op::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let op = Op::Write(offset, data.to_vec());
        apply(&mut self.bytes.lock().expect("no panic before"), &op);
        self.ops.lock().expect("no panic before").push(op);
        Ok(())
    }
}

fn apply(bytes: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(offset, data) => write_part(bytes, *offset, data, 0, data.len()),
        Op::Length(length) => bytes.resize(usize::try_from(*length).expect("it fits"), 0),
        Op::Sync => {}
    }
}

fn write_part(bytes: &mut Vec<u8>, offset: u64, data: &[u8], from: usize, to: usize) {
    let start = usize::try_from(offset).expect("it fits");
    if bytes.len() < start + to {
        bytes.resize(start + to, 0);
    }
    bytes[start + from..start + to].copy_from_slice(&data[from..to]);
}

/// Random numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound.max(1) as u64).expect("it fits")
    }
}

/// Which part of the unsynced operations reached the disk.
#[derive(Debug, Clone)]
enum Survived {
    /// Complete operations: whether each one survived.
    Whole(Vec<bool>),
    /// This many complete operations, and this many bytes of the next one.
    Torn(usize, usize),
    /// Some sectors of each write, chosen by this seed.
    Sectors(u64),
}

/// The contents of the disk after a cut.
fn image(durable: &[u8], held_back: &[Op], survived: &Survived) -> Vec<u8> {
    let mut bytes = durable.to_vec();
    match survived {
        Survived::Whole(kept) => {
            held_back.iter().zip(kept).filter(|(_, kept)| **kept).for_each(|(op, _)| apply(&mut bytes, op));
        }
        Survived::Torn(count, first) => {
            held_back.iter().take(*count).for_each(|op| apply(&mut bytes, op));
            if let Some(Op::Write(offset, data)) = held_back.get(*count) {
                write_part(&mut bytes, *offset, data, 0, (*first).min(data.len()));
            }
        }
        Survived::Sectors(seed) => {
            let mut random = Random(*seed);
            for op in held_back {
                match op {
                    Op::Write(offset, data) => {
                        for from in (0..data.len()).step_by(SECTOR).filter(|_| random.below(2) == 0) {
                            write_part(&mut bytes, *offset, data, from, (from + SECTOR).min(data.len()));
                        }
                    }
                    other if random.below(2) == 0 => apply(&mut bytes, other),
                    _ => {}
                }
            }
        }
    }
    bytes
}

/// What may have survived of these operations: all cases, or some if there are too many.
fn possibilities(held_back: &[Op], random: &mut Random) -> Vec<Survived> {
    let count = held_back.len();
    let mut all = Vec::new();
    if count <= ALL_COMBINATIONS_OF {
        all.extend(
            (0..1_usize << count).map(|bits| Survived::Whole((0..count).map(|at| bits >> at & 1 == 1).collect())),
        );
    } else {
        all.extend((0..=count).map(|prefix| Survived::Whole((0..count).map(|at| at < prefix).collect())));
        let drawn = (0..1 << ALL_COMBINATIONS_OF).map(|_| (0..count).map(|_| random.below(2) == 0).collect());
        all.extend(drawn.map(Survived::Whole));
    }
    for (at, op) in held_back.iter().enumerate() {
        if let Op::Write(_, data) = op {
            all.push(Survived::Torn(at, 1 + random.below(data.len())));
        }
    }
    all.extend((0..4).map(|_| Survived::Sectors(random.below(usize::MAX) as u64)));
    all
}

/// A store on a simulated disk, as [`Store::open`] makes it.
fn open(disk: &Disk) -> Result<Store, Error> {
    let path = PathBuf::from("a disk of its own");
    let database = open::builder().create_with_backend(disk.clone());
    let database = database.map_err(|error| Error::of(&path, "opened", error))?;
    let lock = File::open("/dev/null").expect("it is there");
    Store::from_database(path, database, None, lock)
}

/// The contents of the store as text, for comparison.
fn content(store: &Store) -> Result<String, Error> {
    let loaded = store.load()?;
    let known: Vec<bool> = (1..=COMMITS + 1)
        .map(|number| Ok(store.ledger_entry(&request(number))?.is_some_and(|known| known.result.is_some())))
        .collect::<Result<_, Error>>()?;
    Ok(format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n{known:?}",
        loaded.state.next_seq, loaded.journal, loaded.results, loaded.errors, loaded.written_errors
    ))
}

fn request(number: u64) -> RequestId {
    format!("r{number}").parse().expect("an id")
}

/// One commit: an answer, a journal line and a failure.
fn decide(number: u64) -> Decision {
    let reply =
        Reply::Ok(json!({"number": number, "text": "x".repeat(usize::try_from(number * 97 % 5000).expect("small"))}));
    let request_sha256 = "00".to_owned();
    let error_id = ErrorId(uuid::Uuid::from_u128(u128::from(number)));
    let error = ErrorRow {
        error_id,
        at: String::new(),
        code: "made_up".into(),
        message: String::new(),
        hint: String::new(),
        handoff_id: None,
        agent_id: None,
        step: None,
    };
    Decision {
        answers: vec![Answer { request_id: request(number), kind: None, request_sha256, reply }],
        journal: vec![(number, json!({"seq": number}))],
        errors: vec![error],
        next_effect: number + 1,
        next_seq: number + 1,
        ..Decision::default()
    }
}

/// A commit that has returned: after `done` operations the store must hold `content`.
struct Committed {
    done: usize,
    content: String,
}

fn run_commits(disk: &Disk) -> Vec<Committed> {
    let database = open::builder().create_with_backend(disk.clone()).expect("a new file");
    tables::create(&database, 7).expect("its tables");
    drop(database);
    let mut store = open(disk).expect("it was just made");
    let mut committed = vec![Committed { done: disk.done(), content: content(&store).expect("it can be read") }];
    let mut note = |store: &Store| {
        committed.push(Committed { done: disk.done(), content: content(store).expect("it can be read") })
    };
    let now = Now { wall_ms: 1_800_000_000_000, boot: 7, boot_ms: 1_000 };
    for number in 1..=COMMITS {
        let seen =
            [SeenEvent { name: format!("e{number}"), ino: number, ctime_ns: 1, mtime_ns: None, sha256: String::new() }];
        store.commit(&Batch { decision: &decide(number), now, seen: &seen }).expect("a commit");
        note(&store);
        if number % 5 == 0 {
            let errors = vec![ErrorId(uuid::Uuid::from_u128(u128::from(number)))];
            let checkpoint =
                Checkpoint { journal_below: number, ledger_below: store.next_ledger(), views: Vec::new(), errors };
            store.checkpoint(&checkpoint).expect("a checkpoint");
            note(&store);
        }
    }
    committed
}

/// Splits operations at the last sync: the durable bytes, and the operations after it.
fn at_cut(base: &[u8], ops: &[Op]) -> (Vec<u8>, Vec<Op>) {
    let synced = ops.iter().rposition(|op| matches!(op, Op::Sync)).map_or(0, |at| at + 1);
    let mut durable = base.to_vec();
    ops[..synced].iter().for_each(|op| apply(&mut durable, op));
    (durable, ops[synced..].to_vec())
}

/// Opens a file after a cut and checks its contents. Returns the disk, which has recorded the repair.
fn recovered(bytes: Vec<u8>, allowed: &[&str], what: &str) -> Disk {
    let disk = Disk::with(bytes);
    let store = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = content(&store).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(allowed.contains(&found.as_str()), "{what}: it holds\n{found}\nand should hold one of\n{allowed:#?}");
    disk
}

#[test]
fn a_power_cut_loses_nothing_that_was_committed_and_tears_no_commit() {
    let seed = std::env::var("TASUKI_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(4);
    println!("seed {seed}: TASUKI_SEED plays another one");
    let mut random = Random(seed);
    let disk = Disk::default();
    let committed = run_commits(&disk);
    let ops = disk.ops();
    let mut images = Vec::new();
    for cut in committed[0].done..=ops.len() {
        let (_, held_back) = at_cut(&[], &ops[..cut]);
        // Only cuts just before a sync, or at the end: the others are covered by the prefixes of these.
        if ops.get(cut).is_none_or(|next| matches!(next, Op::Sync)) {
            images.extend(possibilities(&held_back, &mut random).into_iter().map(|survived| (cut, survived)));
        }
    }
    let all = images.len();
    while !tally::is_long() && images.len() > IMAGES {
        images.swap_remove(random.below(images.len()));
    }
    for (cut, survived) in &images {
        let (durable, held_back) = at_cut(&[], &ops[..*cut]);
        let last = committed.iter().rposition(|committed| committed.done <= *cut).expect("after the beginning");
        let allowed: Vec<&str> = committed[last..].iter().take(2).map(|committed| committed.content.as_str()).collect();
        let what = format!("seed {seed}, cut {cut}, {survived:?}");
        let left = image(&durable, &held_back, survived);
        let repaired = recovered(left.clone(), &allowed, &what);
        second_cut(&repaired, &left, &allowed, &what, &mut random);
    }
    println!("{} of {all} images, each with a second cut", images.len());
    tally::add(tally::FAULTS, 2 * images.len() as u64);
    tally::none_lost_none_twice("commits", &[], &[]);
}

/// Cuts the power again during the repair, then commits to the file.
fn second_cut(repaired: &Disk, base: &[u8], allowed: &[&str], what: &str, random: &mut Random) {
    let ops = repaired.ops();
    let cut = random.below(ops.len() + 1);
    let (durable, held_back) = at_cut(base, &ops[..cut]);
    let drawn = possibilities(&held_back, random);
    let survived = &drawn[random.below(drawn.len())];
    let what = format!("{what}; then cut {cut} of {}, {survived:?}", ops.len());
    let disk = recovered(image(&durable, &held_back, survived), allowed, &what);
    let mut store = open(&disk).unwrap_or_else(|error| panic!("{what}: {error}"));
    let now = Now { wall_ms: 1_800_000_000_000, boot: 8, boot_ms: 1 };
    store
        .commit(&Batch { decision: &decide(COMMITS + 1), now, seen: &[] })
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(store.ledger_entry(&request(COMMITS + 1)).is_ok_and(|known| known.is_some()), "{what}");
}
