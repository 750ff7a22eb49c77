//! What the sidecar says on standard error: for people on a terminal, as JSON on demand, with fields for the journal;
//! one line for each step, by ids and kinds.

use super::support::small_disk::{SmallDisk, has_mounts_of_its_own};
use super::support::stage::{PATIENCE, Stage};
use super::support::steps::STEPS;
use nix::sys::signal::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Starts the sidecar with this standard error, and what systemd would say of it.
fn start(stage: &Stage, args: &[&str], stderr: fs::File, stream: Option<&str>) {
    let socket = stage.socket().display().to_string();
    let mut command = stage.command(&[&["run", "--tmux", &socket], args].concat());
    command.env_remove("TASUKI_LOG").stdout(Stdio::null()).stderr(stderr);
    command.env_remove("JOURNAL_STREAM").envs(stream.map(|stream| ("JOURNAL_STREAM", stream)));
    stage.adopt(command.spawn().expect("it starts"));
    stage.until_beating();
}

fn log_file(stage: &Stage) -> fs::File {
    fs::File::create(stage.log_file()).expect("a log")
}

fn log(stage: &Stage) -> String {
    fs::read_to_string(stage.log_file()).expect("a log")
}

/// One handoff, to its end.
fn hand_off(stage: &Stage) -> String {
    let agent = stage.agent("kai");
    let handoff = stage.hand_off(&agent);
    stage.until_step(&handoff, "done");
    handoff
}

#[test]
fn on_demand_every_line_is_json_and_each_step_has_one() {
    let stage = Stage::without_sidecar("");
    start(&stage, &["--json"], log_file(&stage), None);
    let handoff = hand_off(&stage);
    // The log is written by a thread of its own, and may be later than the view.
    stage.until("the log has the last step", || log(&stage).contains("\"step\":\"done\""));
    let text = log(&stage);
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let of = |line: &&Value| line["fields"]["message"] == "handoff" && line["fields"]["handoff"] == handoff.as_str();
    let steps: Vec<&str> = lines.iter().filter(of).filter_map(|line| line["fields"]["step"].as_str()).collect();
    assert_eq!(steps, STEPS, "{text}");
    let verdicts = lines.iter().filter(|line| line["fields"]["verdict"] == "delivered").count();
    assert_eq!(verdicts, 4, "the first agent's skill, and three texts of the handoff: {text}");
}

#[test]
fn in_a_pane_it_is_coloured_and_in_a_file_it_is_not() {
    let stage = Stage::without_sidecar("");
    start(&stage, &[], log_file(&stage), None);
    stage.until("it says something", || log(&stage).contains("tasuki runs"));
    assert!(!log(&stage).contains('\u{1b}'), "{}", log(&stage));
    stage.end_sidecar(Signal::SIGTERM);
    let (home, socket) = (stage.home().display().to_string(), stage.socket().display().to_string());
    let run = format!("exec env -u NO_COLOR '{}' --home '{home}' run --tmux '{socket}'", env!("CARGO_BIN_EXE_tasuki"));
    stage.tmux(&["new-window", "-d", "-t", "user:", "-n", "pretty", &run]);
    let screen = || stage.tmux(&["capture-pane", "-p", "-e", "-t", "user:pretty"]);
    stage.until("it runs in a pane", || screen().contains("tasuki runs"));
    assert!(screen().contains("\u{1b}[32m"), "{}", screen());
}

/// The fields of one message in the journal's own protocol.
fn fields(message: &[u8]) -> BTreeMap<String, String> {
    let (mut fields, mut rest) = (BTreeMap::new(), message);
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match line.iter().position(|byte| *byte == b'=') {
            Some(at) => {
                fields.insert(text(&line[..at]), text(&line[at + 1..]));
                rest = after;
            }
            None => {
                // A value of several lines: its length in eight bytes, the value, a line end.
                let length = u64::from_le_bytes(after[..8].try_into().expect("eight bytes"));
                let length = usize::try_from(length).expect("a length");
                fields.insert(text(line), text(&after[8..8 + length]));
                rest = &after[8 + length + 1..];
            }
        }
    }
    fields
}

/// All messages, until nothing comes after it is over.
fn read_journal(socket: &UnixDatagram, is_over: &AtomicBool) -> Vec<BTreeMap<String, String>> {
    let (mut heard, mut bytes, began) = (Vec::new(), vec![0; 64 * 1024], Instant::now());
    loop {
        match socket.recv(&mut bytes) {
            Ok(length) => heard.push(fields(&bytes[..length])),
            Err(_) if is_over.load(Ordering::Relaxed) || began.elapsed() > 2 * PATIENCE => return heard,
            Err(_) => {}
        }
    }
}

#[test]
fn under_systemd_the_journal_gets_a_field_for_each_thing() {
    if !has_mounts_of_its_own() {
        return;
    }
    let stage = Stage::without_sidecar("");
    // What systemd does: standard error is a stream to the journal, and a variable says which one.
    let file = log_file(&stage);
    let stat = nix::sys::stat::fstat(file.as_fd()).expect("a file");
    let stream = format!("{}:{}", stat.st_dev, stat.st_ino);
    let _run = SmallDisk::over(Path::new("/run"), "size=1m");
    let folder = Path::new("/run/systemd/journal");
    fs::create_dir_all(folder).expect("a place that nobody else sees");
    let socket = UnixDatagram::bind(folder.join("socket")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a limit");
    let is_over = AtomicBool::new(false);
    let (handoff, heard) = std::thread::scope(|scope| {
        // Whoever writes to the journal waits for it, so it is read all the time.
        let journal = scope.spawn(|| read_journal(&socket, &is_over));
        start(&stage, &[], file, Some(&stream));
        let handoff = hand_off(&stage);
        is_over.store(true, Ordering::Relaxed);
        (handoff, journal.join().expect("the reader ends"))
    });
    let is = |line: &&BTreeMap<String, String>| line.get("TASUKI_HANDOFF").is_some_and(|id| *id == handoff);
    let steps: Vec<&str> =
        heard.iter().filter(is).filter_map(|line| line.get("TASUKI_STEP").map(String::as_str)).collect();
    assert_eq!(steps, STEPS, "{heard:#?}");
    let first = heard.iter().find(is).expect("a line");
    assert_eq!((first["SYSLOG_IDENTIFIER"].as_str(), first["MESSAGE"].as_str()), ("tasuki", "handoff"));
    assert_eq!(log(&stage), "", "nothing is said twice");
}
