//! The state file cut short, with bits turned, foreign, moved and deleted while it is open: refused with a message and
//! left as it was, or read whole; never replaced, and never a panic.

use super::support::random::Random;
use super::support::stage::{PATIENCE, Stage};
use super::support::stage_files::{make_folder, read_json};
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Instant;
use tasuki::core::id::RequestId;
use tasuki::store::Store;

/// Requests whose answers the state file holds.
const ANSWERED: usize = 40;
/// Damaged copies in the gate and in the long suite.
const FLIPS: (u64, u64) = (120, 3_000);

fn state(stage: &Stage) -> PathBuf {
    stage.home().join("state/tasuki.redb")
}

/// A home in which something has happened, and no sidecar runs.
fn lived() -> Stage {
    let stage = Stage::with_config("");
    stage.agent("dev");
    let asked: Vec<String> =
        (0..ANSWERED).map(|_| stage.send(&json!({"kind": "handoff_cancel", "handoff_id": "nothing"}))).collect();
    asked.iter().for_each(|id| drop(stage.result(id)));
    stage.end_sidecar(Signal::SIGTERM);
    stage
}

/// Runs the sidecar, which must end by itself.
fn refused(stage: &Stage) -> Output {
    refused_with(stage, &[])
}

fn refused_with(stage: &Stage, options: &[&str]) -> Output {
    let socket = stage.socket().display().to_string();
    let mut command = stage.command(&[options, &["run", "--tmux", &socket]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let until = Instant::now() + PATIENCE;
    while child.try_wait().expect("a child of ours").is_none() {
        if Instant::now() > until {
            let _ = child.kill();
            panic!("a sidecar runs on a state file that it should refuse\n{}", stage.story());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.wait_with_output().expect("it has ended")
}

/// The real program says what is wrong with which file, and leaves it as it was.
fn check_refused(stage: &Stage, what: &str) {
    let before = fs::read(state(stage)).ok();
    let out = refused(stage);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(78), "{what}: {said}");
    let path = state(stage).display().to_string();
    assert!(said.contains(&path) && said.contains("left as it is"), "{what}: {said}");
    assert!(!said.contains("panicked"), "{what}: {said}");
    assert!(fs::read(state(stage)).ok() == before, "{what}: it was changed");
    tally::add(tally::FAULTS, 1);
}

/// The state file was opened first, so that the next start checked the whole of it.
#[test]
fn a_start_with_wrong_rules_leaves_the_state_file_closed_and_fails_in_json_if_asked() {
    let stage = lived();
    let rules = stage.home().join("data/rules.toml");
    fs::write(&rules, "[types.a]\nbogus = 1\n").expect("written");
    let before = fs::read(state(&stage)).expect("the state");
    let out = refused_with(&stage, &["--json"]);
    let said: serde_json::Value = serde_json::from_slice(&out.stderr).expect("JSON, and nothing else");
    let message = said["error"]["message"].as_str().expect("a message");
    assert!(out.status.code() == Some(78) && said["error"]["code"] == "config", "{said}");
    assert!(message.contains("rules.toml") && message.contains("bogus"), "{message}");
    assert!(fs::read(state(&stage)).expect("the state") == before, "it is marked as closed");
}

#[test]
fn a_state_file_that_is_cut_short_or_foreign_is_refused_and_left() {
    let stage = lived();
    let whole = fs::read(state(&stage)).expect("the state");
    for length in [0, 1, 64, 320, 511, 4096, whole.len() / 2, whole.len() - 4096, whole.len() - 1] {
        fs::write(state(&stage), &whole[..length]).expect("cut short");
        check_refused(&stage, &format!("cut to {length} of {}", whole.len()));
    }
    let sqlite = [b"SQLite format 3\0".as_slice(), &[0; 4096]].concat();
    for (what, bytes) in [("text", b"hello\n".repeat(2000)), ("zeros", vec![0; 262_144]), ("another program's", sqlite)]
    {
        fs::write(state(&stage), bytes).expect("foreign");
        check_refused(&stage, what);
    }
    fs::remove_file(state(&stage)).expect("it goes");
    fs::create_dir(state(&stage)).expect("a folder");
    check_refused(&stage, "a folder");
    fs::remove_dir(state(&stage)).expect("it goes");
    nix::unistd::mkfifo(&state(&stage), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let out = refused(&stage);
    assert_eq!(out.status.code(), Some(78), "a pipe: {}", String::from_utf8_lossy(&out.stderr));
    fs::remove_file(state(&stage)).expect("it is still there");
    // And with the right file in its place all is as it was.
    fs::write(state(&stage), &whole).expect("put back");
    stage.start_sidecar();
    let first = stage.spool("results").join("r-2.json");
    let before = read_json(&first).expect("an answer");
    fs::remove_file(&first).expect("taken away");
    stage.drop_file(
        "requests",
        "r-2.json",
        json!({"kind": "handoff_cancel", "handoff_id": "nothing", "v": 1}).to_string().as_bytes(),
    );
    assert_eq!(stage.result("r-2"), before);
}

/// What a store holds: its answers, and whether its working set can be read.
fn answers(folder: &Path) -> Result<Vec<Value>, tasuki::store::Error> {
    let store = Store::open(folder)?;
    store.load()?;
    let id = |number: usize| format!("r-{number}").parse::<RequestId>().expect("an id");
    let known = (2..ANSWERED + 2).map(|number| Ok(store.ledger_entry(&id(number))?.and_then(|known| known.result)));
    let known: Result<Vec<Option<Value>>, tasuki::store::Error> = known.collect();
    Ok(known?.into_iter().map(|answer| answer.unwrap_or(Value::Null)).collect())
}

#[test]
fn a_state_file_with_a_bit_turned_is_read_whole_or_refused_and_left() {
    let stage = lived();
    let whole = fs::read(state(&stage)).expect("the state");
    let scratch = stage.home().with_file_name("copy");
    make_folder(&scratch);
    let file = scratch.join("tasuki.redb");
    fs::write(&file, &whole).expect("a copy");
    let right = answers(&scratch).expect("it is whole");
    assert!(right.iter().all(Value::is_object), "{right:#?}");
    let mut random = Random::from_env();
    let (mut refused, count) = (0, if is_long() { FLIPS.1 } else { FLIPS.0 });
    for _ in 0..count {
        let mut damaged = whole.clone();
        let what = damage(&mut damaged, &mut random);
        fs::write(&file, &damaged).expect("a copy");
        match std::panic::catch_unwind(|| answers(&scratch)) {
            Err(_) => panic!("seed {}, {what}: a panic", random.seed),
            Ok(Ok(found)) => assert!(found == right, "seed {}, {what}: wrong answers", random.seed),
            Ok(Err(error)) => {
                assert!(
                    matches!(error, tasuki::store::Error::Unreadable { .. } | tasuki::store::Error::NewerSchema { .. }),
                    "seed {}, {what}: {error}",
                    random.seed
                );
                let left = fs::read(&file).expect("a copy");
                assert!(left == damaged, "seed {}, {what}: it was changed: {error}", random.seed);
                refused += 1;
            }
        }
    }
    println!("{refused} of {count} refused, the others read whole");
    tally::add(tally::FAULTS, count);
    tally::none_lost_none_twice("answers", &[], &[]);
}

/// Turns one bit, or overwrites a stretch as a broken disk does; where something stands.
fn damage(bytes: &mut [u8], random: &mut Random) -> String {
    let written = |sector: &usize| bytes[*sector..bytes.len().min(sector + 512)].iter().any(|byte| *byte != 0);
    let sectors: Vec<usize> = (0..bytes.len()).step_by(512).filter(written).collect();
    let at = random.one_of(&sectors) + usize::try_from(random.below(512)).expect("it fits");
    if random.below(4) > 0 {
        let bit = random.below(8);
        bytes[at] ^= 1 << bit;
        return format!("bit {bit} of byte {at}");
    }
    let with = if random.below(2) == 0 { 0 } else { 0xff };
    let end = bytes.len().min(at + 512);
    bytes[at..end].fill(with);
    format!("bytes {at}..{end} are {with:x}")
}

fn sidecar_view(stage: &Stage) -> Value {
    read_json(&stage.home().join("view/sidecar.json")).unwrap_or(Value::Null)
}

fn until_gone_is_told(stage: &Stage) {
    stage.until("the view tells of it", || {
        let view = sidecar_view(stage);
        view["state"] == "degraded" && view["problem"].as_str().unwrap_or_default().contains("tasuki.redb was moved")
    });
}

#[test]
fn a_state_file_that_was_moved_while_open_is_told_and_goes_on_when_it_is_back() {
    let stage = Stage::with_config("");
    let agent = stage.agent("dev");
    let away = stage.home().join("state/away");
    fs::rename(state(&stage), &away).expect("moved");
    let request = stage.send(&json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"}));
    until_gone_is_told(&stage);
    assert!(!state(&stage).exists(), "no other file is begun in its place");
    assert!(
        !stage.names("results").contains(&format!("{request}.json")),
        "nothing is promised that would be forgotten"
    );
    fs::rename(&away, state(&stage)).expect("moved back");
    let answer = stage.result(&request);
    let id = answer["result"]["handoff_id"].as_str().unwrap_or_else(|| panic!("{answer}"));
    stage.check_done(&stage.until_step(id, "done"));
    tally::add(tally::FAULTS, 1);
}

#[test]
fn a_state_file_that_was_deleted_while_open_is_told_and_nothing_is_promised() {
    let stage = Stage::with_config("");
    stage.agent("dev");
    let copy = fs::read(state(&stage)).expect("the state");
    fs::remove_file(state(&stage)).expect("deleted");
    // Also where nothing happens.
    until_gone_is_told(&stage);
    let request = stage.send(&json!({"kind": "handoff_cancel", "handoff_id": "nothing"}));
    stage.until("the heart still beats", || {
        sidecar_view(&stage)["problem"].as_str().is_some_and(|problem| problem.contains("moved"))
    });
    assert!(!stage.names("results").contains(&format!("{request}.json")));
    fs::write(state(&stage), copy).expect("the operator has a copy");
    assert_eq!(stage.result(&request)["error"]["code"], "no_handoff");
    stage.check_once();
    tally::add(tally::FAULTS, 1);
}
