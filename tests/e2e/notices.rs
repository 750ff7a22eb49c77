//! Notices to the operator's own command, many at once: a bound on what runs, and none is lost where nothing can be
//! started.

use super::support::processes::{children, words};
use super::support::stage::Stage;
use super::support::stage_files::{json_lines, names};
use super::support::tally;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Commands that may run at once.
const AT_ONCE: usize = 8;
/// Notices that are to be told.
const NOTICES: usize = 20;
/// Descriptors that are left where nothing can be started.
const FREE: usize = 2;

/// A stage whose notices go through a shell script, which has the stage's work folder as its `$0`.
fn stage(script: &str) -> (Stage, PathBuf) {
    let stage = Stage::without_sidecar("");
    let folder = stage.work_dir();
    let config = format!("[notify]\ncommand = [\"/bin/sh\", \"-c\", '{script}', \"{}\"]\n", folder.display());
    fs::write(stage.home().join("config.toml"), config).expect("a configuration");
    stage.start_sidecar();
    (stage, folder)
}

/// An item that nobody who is there could process: the operator is told.
fn something_to_tell(stage: &Stage, number: usize) {
    stage.granted(&json!({"kind": "work_create", "type": "task", "title": format!("item {number}")}));
}

/// How many shells the sidecar has as children.
fn shells(stage: &Stage) -> usize {
    let is_shell = |pid: &u32| words(*pid).first().is_some_and(|word| word.rsplit('/').next() == Some("sh"));
    children(stage.sidecar_pid()).iter().filter(|pid| is_shell(pid)).count()
}

#[test]
fn many_notices_at_once_run_a_few_commands_at_a_time_and_each_is_told() {
    let script =
        "cat >/dev/null; until test -e \"$0/go\" || ! test -d \"$0\"; do sleep 0.1; done; mktemp \"$0/told-XXXXXXXX\"";
    let (stage, folder) = stage(script);
    for number in 0..NOTICES {
        something_to_tell(&stage, number);
    }
    stage.until("the first commands run", || shells(&stage) >= AT_ONCE);
    let running = shells(&stage);
    fs::write(folder.join("go"), "").expect("written");
    assert_eq!(running, AT_ONCE, "of {NOTICES}");
    let told = || names(&folder).iter().filter(|name| name.starts_with("told-")).count();
    // One that took longer than a command may was stopped, and was told all the same.
    stage.until("the others are told", || told() >= NOTICES - AT_ONCE);
    tally::add(tally::REQUESTS, NOTICES as u64);
}

/// What runs at the end of the sidecar has been given its notice, and may end; what still waits is told after the
/// start.
#[test]
fn at_the_end_no_further_notice_is_begun_and_the_next_start_tells_it() {
    let script = "cat >/dev/null; mktemp \"$0/begun-XXXXXXXX\"; until test -e \"$0/go\" || ! test -d \"$0\"; do sleep 0.1; done; \
                  mktemp \"$0/told-XXXXXXXX\"";
    let (stage, folder) = stage(script);
    for number in 0..NOTICES {
        something_to_tell(&stage, number);
    }
    let many = |prefix: &str| names(&folder).iter().filter(|name| name.starts_with(prefix)).count();
    stage.until("the first commands run", || many("begun-") >= AT_ONCE);
    stage.signal(Signal::SIGTERM);
    stage.until("it ends", || fs::read_to_string(stage.log_file()).unwrap_or_default().contains("ending"));
    fs::write(folder.join("go"), "").expect("written");
    stage.end_sidecar(Signal::SIGTERM);
    assert_eq!((many("begun-"), many("told-")), (AT_ONCE, AT_ONCE), "of {NOTICES}");
    stage.start_sidecar();
    stage.until("all are told", || many("told-") >= NOTICES);
    assert_eq!((many("begun-"), many("told-")), (NOTICES, NOTICES));
}

#[test]
fn a_notice_whose_command_can_not_be_started_for_want_of_descriptors_is_told_later() {
    let (stage, folder) = stage("cat >> \"$0/told\"; echo >> \"$0/told\"");
    let pid = stage.sidecar_pid().to_string();
    // What is open in each of many looks stays open: a file that was read in the moment of one look would leave more
    // free than were to be left.
    let look = || names(&PathBuf::from(format!("/proc/{pid}/fd")));
    let mut open = look();
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(10));
        let now = look();
        open.retain(|number| now.contains(number));
    }
    let is_free = |number: &usize| !open.contains(&number.to_string());
    let most = (0..).filter(is_free).nth(FREE).expect("a number");
    let limit = |words: String| {
        let done = Command::new("prlimit").args(["--pid", &pid, &format!("--nofile={words}")]).status();
        assert!(done.expect("prlimit").success());
    };
    limit(format!("{most}:"));
    let asked = stage.send(&json!({"kind": "work_create", "type": "task", "title": "an item"}));
    // It is held back before the try, or after it.
    stage.until("it could not be started", || {
        let log = fs::read_to_string(stage.log_file()).unwrap_or_default();
        log.contains("could not start a command") || log.contains("hardly any file descriptors")
    });
    assert!(!folder.join("told").exists());
    limit("1024:".to_owned());
    assert_eq!(stage.result(&asked)["ok"], true);
    stage.until("it is told", || json_lines(&folder.join("told")).len() == 1);
    tally::add(tally::FAULTS, 1);
}
