//! Hostile files before the whole program: nothing hangs, nothing is followed, every name that is a request id is
//! answered, everything else is put aside with a reason, and the next request is taken as if nothing had been.

use crate::support::stage::Stage;
use crate::support::stage_files::read_json;
use crate::support::tally;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
#[cfg(target_os = "linux")]
use nix::sys::stat::{SFlag, makedev, mknod};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

const PRECIOUS: &[u8] = b"{\"v\":1,\"kind\":\"precious\"}";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Puts one of each kind into a lane. Gives the names that a file may have in vain.
fn plant(stage: &Stage, lane: &Path, precious: &Path) -> u64 {
    let at = |name: &str| lane.join(name);
    symlink(precious, at("link.json")).expect("a link");
    symlink("nowhere", at("dangling.json")).expect("a link");
    symlink("loop.json", at("loop.json")).expect("a link");
    symlink(stage.home().join("state/tasuki.redb"), at("store.json")).expect("a link");
    symlink(stage.home(), at("home.json")).expect("a link");
    nix::unistd::mkfifo(&at("pipe.json"), Mode::S_IRWXU).expect("a pipe");
    // Under a name that is never read until it is whole: the sidecar takes a folder away as soon as it sees one.
    fs::create_dir_all(at(".folder/inner")).expect("a folder");
    fs::write(at(".folder/inner/file"), b"x").expect("a file in it");
    fs::rename(at(".folder"), at("folder.json")).expect("a name");
    drop(UnixListener::bind(at("socket.json")).expect("a socket"));
    fs::hard_link(precious, at("hard.json")).expect("a second name");
    File::create(at("sparse.json")).and_then(|file| file.set_len(1 << 40)).expect("a hole");
    File::create(at("large.json")).and_then(|file| file.set_len(1024 * 1024 + 1)).expect("a hole");
    fs::write(at("empty.json"), b"").expect("written");
    fs::write(at("zeros.json"), [0; 4096]).expect("written");
    fs::write(at("cut.json"), b"{\"v\":1,\"kind\":\"hand").expect("written");
    fs::write(at("two.json"), b"{\"v\":1}{\"v\":1}").expect("written");
    fs::write(at("bom.json"), b"\xef\xbb\xbf{\"v\":1}").expect("written");
    fs::write(at("deep.json"), "[".repeat(500_000)).expect("written");
    fs::write(at("deeper.json"), format!("{{\"v\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000)))
        .expect("written");
    fs::write(at("closed.json"), b"{}").expect("written");
    fs::set_permissions(at("closed.json"), Permissions::from_mode(0o0)).expect("closed");
    let names: [&[u8]; 8] = [
        b"\xff\xfe.json",
        b"esc\x1b[31m\x1b]0;t\x07.json",
        b"line\nbreak.json",
        b"bl ank;$(touch x)`y`.json",
        b"#{pane_pid}.json",
        "ri\u{202e}ght.json".as_bytes(),
        b"-rf",
        "é.JSON".as_bytes(),
    ];
    for name in names {
        fs::write(lane.join(OsStr::from_bytes(name)), PRECIOUS).expect("written");
    }
    fs::write(at(&format!("{}.json", "x".repeat(250))), PRECIOUS).expect("written");
    let device = made_a_device(&at("device.json"));
    if !device {
        tally::skip("a device among the files needs root");
    }
    19 + names.len() as u64 + 1 + u64::from(device)
}

/// `false` where that is not allowed, or where only Linux has the call.
#[cfg(target_os = "linux")]
fn made_a_device(path: &Path) -> bool {
    mknod(path, SFlag::S_IFCHR, Mode::S_IRWXU, makedev(1, 9)).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn made_a_device(_path: &Path) -> bool {
    false
}

#[test]
fn every_hostile_file_is_put_aside_and_answered_where_it_has_an_id() {
    let stage = Stage::new();
    let precious = stage.home().join("precious");
    fs::write(&precious, PRECIOUS).expect("written");
    let before = fs::read(stage.home().join("config.toml")).expect("read");
    let mut planted = plant(&stage, &stage.spool("requests"), &precious);
    planted += plant(&stage, &stage.spool("events"), &precious);
    tally::add(tally::INPUTS, planted);
    stage.all_answered(&[stage.send_cheap()]);
    stage.until("both lanes are empty", || stage.names("requests").is_empty() && stage.names("events").is_empty());
    let ids: BTreeMap<&str, (u64, &str)> = [
        ("link", (400, "bad_request")),
        ("dangling", (400, "bad_request")),
        ("loop", (400, "bad_request")),
        ("store", (400, "bad_request")),
        ("home", (400, "bad_request")),
        ("pipe", (400, "bad_request")),
        ("folder", (400, "bad_request")),
        ("socket", (400, "bad_request")),
        ("hard", (400, "bad_request")),
        ("sparse", (413, "too_large")),
        ("large", (413, "too_large")),
        ("empty", (400, "bad_request")),
        ("zeros", (400, "bad_request")),
        ("cut", (400, "bad_request")),
        ("two", (400, "bad_request")),
        ("bom", (400, "bad_request")),
        ("deep", (400, "bad_request")),
        ("deeper", (400, "bad_request")),
    ]
    .into();
    for (id, (status, code)) in ids {
        let answer = stage.result(id);
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(status), &json!(code)), "{id}: {answer}");
    }
    let (whys, files): (Vec<_>, Vec<_>) =
        stage.names("rejected").into_iter().partition(|name| name.ends_with(".why.json"));
    // Two files are whole JSON in a lane where that is enough, and nothing was rejected twice.
    assert_eq!(whys.len(), files.len());
    assert!(planted - files.len() as u64 <= 4, "{planted} were planted, {files:?}");
    for name in &whys {
        let why = read_json(&stage.spool("rejected").join(name)).expect("a reason");
        assert!(
            ["code", "message", "name"].iter().all(|field| why[field].as_str().is_some_and(|text| !text.is_empty()))
        );
    }
    assert_eq!(fs::read(&precious).expect("still there"), PRECIOUS);
    assert_eq!(fs::read(stage.home().join("config.toml")).expect("still there"), before);
    stage.check_plain();
    stage.all_answered(&[stage.send_cheap()]);
    assert!(stage.peak_memory() < 128 * 1024, "{} KiB", stage.peak_memory());
    // What was put aside does no harm at the next start either.
    stage.crash_and_restart();
    stage.all_answered(&[stage.send_cheap()]);
}

/// The bytes that are answered are the bytes that were hashed, whatever is put in their place meanwhile.
#[test]
fn a_file_that_is_replaced_again_and_again_is_answered_once_for_what_it_was() {
    let stage = Stage::new();
    let rounds = if tally::is_long() { 2_000 } else { 100 };
    for round in 0..rounds {
        let id = format!("race-{round}");
        let mut versions = BTreeMap::new();
        for version in 0..6 {
            let request = json!({"v": 1, "kind": "handoff_cancel", "handoff_id": "x", format!("field{version}"): 1});
            let bytes = request.to_string().into_bytes();
            versions.insert(sha256(&bytes), format!("field{version}"));
            let (lane, name) = (stage.spool("requests"), format!("{id}.json"));
            if version % 3 == 2 {
                // In place, over whatever lies there: shorter, then whole.
                let _ = fs::write(lane.join(&name), b"{").and_then(|()| fs::write(lane.join(&name), &bytes));
            } else {
                stage.drop_file("requests", &name, &bytes);
            }
        }
        let answer = stage.result(&id);
        let hash = answer["request_sha256"].as_str().expect("a hash").to_owned();
        assert_eq!(answer["error"]["field"].as_str(), versions.get(&hash).map(String::as_str), "{answer}");
        if round % 25 == 24 {
            stage.until("the lane is empty", || stage.names("requests").is_empty());
            for name in stage.names("rejected") {
                fs::remove_file(stage.spool("rejected").join(name)).expect("tidied up");
            }
        }
    }
    tally::add(tally::INPUTS, 6 * rounds);
    tally::add(tally::REQUESTS, rounds);
}

#[test]
fn thousands_of_files_at_once_are_each_answered_once() {
    let count = if tally::is_long() { 100_001 } else { 5_000 };
    let stage = Stage::new();
    stage.signal(Signal::SIGSTOP);
    let mut hashes = BTreeMap::new();
    for number in 0..count {
        let bytes = format!("{{\"v\":1,\"kind\":\"handoff_cancel\",\"handoff_id\":\"{number}\"}}");
        hashes.insert(format!("m-{number}"), sha256(bytes.as_bytes()));
        stage.drop_file("requests", &format!("m-{number}.json"), bytes.as_bytes());
    }
    stage.signal(Signal::SIGCONT);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(if tally::is_long() { 900 } else { 120 });
    let entries = |room: &str| fs::read_dir(stage.spool(room)).map_or(0, Iterator::count);
    while entries("requests") > 0 {
        assert!(std::time::Instant::now() < deadline, "{} are left\n{}", entries("requests"), stage.story());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let (mut lost, mut twice) = (Vec::new(), Vec::new());
    for (id, hash) in &hashes {
        match read_json(&stage.spool("results").join(format!("{id}.json"))) {
            Some(answer) if answer["request_sha256"] == *hash && answer["status"] == 404 => {}
            _ => lost.push(id.clone()),
        }
    }
    let extra = |name: &String| !name.strip_suffix(".json").is_some_and(|id| hashes.contains_key(id));
    twice.extend(stage.names("results").into_iter().filter(|name| !name.starts_with('.') && extra(name)));
    twice.extend(stage.names("rejected"));
    tally::add(tally::REQUESTS, hashes.len() as u64);
    println!("{} KiB", stage.peak_memory());
    assert!(stage.peak_memory() < 256 * 1024, "{} KiB", stage.peak_memory());
    tally::none_lost_none_twice("files that came at once", &lost, &twice);
}

/// Files that tasuki itself writes to or reads at its start, with something else in their place.
#[test]
fn links_in_place_of_its_own_files_are_not_written_through() {
    let stage = Stage::new();
    stage.end_sidecar(Signal::SIGTERM);
    let precious = stage.home().join("precious");
    for below in ["view/.built", "view/sidecar.json", "spool/journal.jsonl"] {
        fs::write(&precious, PRECIOUS).expect("written");
        let place = stage.home().join(below);
        let _ = fs::remove_file(&place);
        symlink(&precious, &place).expect("linked");
        stage.spawn_sidecar();
        // It starts, or says why not; it does not write there.
        stage.until("it runs or has ended", || {
            let ended =
                stage.sidecar.borrow_mut().as_mut().is_none_or(|child| child.try_wait().expect("ours").is_some());
            ended || stage.sidecar_view()["pid"] == stage.sidecar_pid()
        });
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(stage.sidecar_pid().cast_signed()), Signal::SIGKILL);
        let _ = stage.sidecar.borrow_mut().take().expect("started").wait();
        assert_eq!(fs::read(&precious).expect("there"), PRECIOUS, "written through {below}");
        if place.is_symlink() {
            fs::remove_file(&place).expect("removed");
        }
        tally::add(tally::FAULTS, 1);
    }
    fs::remove_file(stage.home().join("view/.built")).expect("there");
    nix::unistd::mkfifo(&stage.home().join("view/.built"), Mode::S_IRWXU).expect("a pipe");
    stage.start_sidecar();
    stage.end_sidecar(Signal::SIGTERM);
    let lock = fs::read_dir(stage.home().join("state"))
        .expect("a folder")
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().contains("lock"));
    let lock = lock.expect("a lock").path();
    fs::remove_file(&lock).expect("removed");
    symlink(&precious, &lock).expect("linked");
    let (code, said) = stage.refused_start();
    assert!(code != Some(0) && said.contains(&lock.display().to_string()), "{said}");
    assert_eq!(fs::read(&precious).expect("there"), PRECIOUS, "written through the lock");
}
