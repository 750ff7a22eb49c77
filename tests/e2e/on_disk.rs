//! What must outlast a power cut is on the disk before anything is built on it: the order of the system's own calls, as
//! `strace` sees them. A file is synced before it gets its name, and its folder after that.

use super::support::fake_sidecar::FakeHome;
use super::support::stage::Stage;
use super::support::strace;
use super::support::tally;
use nix::sys::signal::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Calls that put something onto the disk, or give it its name.
const CALLS: &str = "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2";

/// The calls that succeeded, in the order in which they ended, with the paths of open files. One that lasts while
/// another thread is traced is written in two halves.
fn calls(trace: &Path) -> Vec<String> {
    let text = fs::read_to_string(trace).unwrap_or_default();
    let (mut begun, mut done) = (BTreeMap::new(), Vec::new());
    for line in text.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        if let Some((head, _)) = call.split_once(" <unfinished ...>") {
            begun.insert(thread, head.trim().to_owned());
            continue;
        }
        let whole = match call.split_once(" resumed>") {
            Some((_, tail)) => begun.remove(thread).unwrap_or_default() + tail,
            None => call.to_owned(),
        };
        if whole.ends_with("= 0") {
            done.push(whole);
        }
    }
    done
}

/// Where the first of them is that has all these words, from a place on.
fn find(calls: &[String], from: usize, words: &[&str]) -> usize {
    let has = |call: &String| words.iter().all(|word| call.contains(word));
    let found = calls[from..].iter().position(has);
    from + found.unwrap_or_else(|| panic!("no {words:?} from {from} on in {calls:#?}"))
}

fn tracing(trace: &Path) -> Vec<String> {
    // Long names are shown whole.
    let words = ["-f", "-y", "-q", "-s", "4096", "-b", "execve", "-e", CALLS, "-o"];
    words.iter().map(|word| (*word).to_owned()).chain([trace.display().to_string()]).collect()
}

#[test]
fn a_request_of_a_command_is_on_the_disk_before_it_is_waited_for() {
    if !strace::is_there() {
        return;
    }
    let home = FakeHome::new();
    home.agent("11111111-1111-4111-8111-111111111111", Some("kai"), None, "idle");
    home.beat(0);
    let (trace, plain) = (home.path().join("trace"), home.command(&["send", "kai", "hello", "--timeout", "50ms"]));
    let mut command = Command::new("strace");
    command.args(tracing(&trace)).arg(plain.get_program()).args(plain.get_args());
    Stage::make_own(&mut command);
    let out = command.output().expect("strace runs");
    assert_eq!(out.status.code(), Some(75), "{}", String::from_utf8_lossy(&out.stderr));
    let calls = calls(&trace);
    let written = find(&calls, 0, &["sync(", "/spool/tmp/"]);
    let named = find(&calls, written, &["rename", "/spool/requests>", "cli-"]);
    find(&calls, named, &["sync(", "/spool/requests>)"]);
    tally::add(tally::REQUESTS, 1);
}

#[test]
fn a_new_state_file_an_error_and_a_checkpoint_are_on_the_disk_before_they_count() {
    if !strace::is_there() {
        return;
    }
    let stage = Stage::without_sidecar("");
    let trace = stage.work_dir().join("calls");
    let wrapper = [vec!["strace".to_owned(), "-D".to_owned()], tracing(&trace)].concat();
    stage.spawn_sidecar_by(&wrapper.iter().map(String::as_str).collect::<Vec<_>>(), "info");
    stage.until_beating();
    let agent = stage.agent("dev");
    stage.faults("write_empty");
    let id = stage.hand_off(&agent);
    stage.until_ended(&id);
    stage.all_answered(&[stage.send_cheap()]);
    assert!(stage.end_sidecar(Signal::SIGTERM).success());
    stage.until("all of it is traced", || {
        fs::read_to_string(&trace).is_ok_and(|text| text.lines().any(|line| line.ends_with("+++ exited with 0 +++")))
    });
    let calls = calls(&trace);
    // The state file: whole under another name, then in its place, then is that known to last.
    let written = find(&calls, 0, &["sync(", "/state/tasuki.redb.new>"]);
    let named = find(&calls, written, &["rename(", "tasuki.redb.new"]);
    find(&calls, named, &["sync(", "/state>)"]);
    // The error file, which a person may be told to look at.
    assert_eq!(stage.errors_of(&id).len(), 1, "{}", stage.story());
    let written = find(&calls, named, &["sync(", "/spool/errors/.tasuki-new>"]);
    let named = find(&calls, written, &["rename", "/spool/errors>", ".json"]);
    find(&calls, named, &["sync(", "/spool/errors>)"]);
    // The last checkpoint: both file systems, which are one here, and only then the commit that says so.
    let last = calls.iter().rposition(|call| call.contains("rename") && call.contains("/spool/results>"));
    let spool = find(&calls, last.expect("results were written"), &["syncfs(", "/spool>)"]);
    let device = |below: &str| fs::metadata(stage.home().join(below)).expect("a folder").dev();
    assert_eq!(device("spool"), device("view"));
    find(&calls, spool, &["fdatasync(", "/state/tasuki.redb>)"]);
}
