//! Clocks that jump, a machine that reboots, and a sidecar that is stopped: no limit is lost, doubled or early. The
//! simulation (`sim`) checks the same over the whole flow; this is the real program.
//!
//! The wall clock is moved for the sidecar alone, by libfaketime; another boot is one whose id lies over the kernel's
//! in a mount namespace of the sidecar's own. Both take minutes or root, and are part of the long suite.

use super::support::stage::{PATIENCE, Stage};
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long an agent may write in these tests.
const WRITING: Duration = Duration::from_secs(8);
/// What a limit may be late by: the grace after a start or a standstill, and a loaded machine.
const LATE: Duration = Duration::from_secs(25);

fn stage() -> Stage {
    Stage::without_sidecar("[limits]\nwriting = \"8s\"\n")
}

/// The library that moves the wall clock of one program.
fn faketime() -> Option<PathBuf> {
    let folders = ["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from);
    let deeper = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let libraries = folders.into_iter().chain(deeper).map(|folder| folder.join("faketime/libfaketime.so.1"));
    libraries.into_iter().find(|path| path.is_file())
}

/// A sidecar whose wall clock is moved by what stands in a file, and which may live in another boot.
struct Liar<'s> {
    stage: &'s Stage,
    library: PathBuf,
}

impl<'s> Liar<'s> {
    /// None, and the test counted as skipped, where that can't be had.
    fn new(stage: &'s Stage) -> Option<Liar<'s>> {
        if !is_long() {
            tally::skip("clocks that jump under the real program: takes a minute, only in the long suite");
            return None;
        }
        let Some(library) = faketime() else {
            tally::skip("clocks that jump under the real program: libfaketime is not installed");
            return None;
        };
        let liar = Liar { stage, library };
        liar.set("+0");
        Some(liar)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.stage.work_dir().join(name)
    }

    /// Moves the wall clock, such as `+3650d`.
    fn set(&self, shift: &str) {
        let scratch = self.file("clock.new");
        fs::write(&scratch, format!("{shift}\n")).expect("written");
        fs::rename(&scratch, self.file("clock")).expect("in force");
        tally::add(tally::FAULTS, 1);
    }

    /// Starts a sidecar; with another boot id, if one is given.
    fn start(&self, boot: Option<&str>) {
        let socket = self.stage.socket().display().to_string();
        let plain = self.stage.command(&["run", "--tmux", &socket]);
        let mut command = match boot {
            None => plain,
            Some(id) => {
                let file = self.file("boot_id");
                fs::write(&file, format!("{id}\n")).expect("written");
                let script = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", script]).arg(file).arg(plain.get_program()).args(plain.get_args());
                Stage::make_own(&mut command);
                command
            }
        };
        let log = fs::OpenOptions::new().append(true).create(true).open(self.stage.log_file()).expect("a log");
        command.env("LD_PRELOAD", &self.library).env("FAKETIME_TIMESTAMP_FILE", self.file("clock"));
        // File times are the kernel's, and it does not lie.
        command.envs([("NO_FAKE_STAT", "1"), ("FAKETIME_NO_CACHE", "1")]);
        command.envs([("FAKETIME_DONT_FAKE_MONOTONIC", "1"), ("DONT_FAKE_MONOTONIC", "1")]);
        command.env("TASUKI_LOG", "debug").stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.stage.adopt(command.spawn().expect("the sidecar starts"));
        let pid = self.stage.sidecar_pid();
        let view = self.stage.home().join("view/sidecar.json");
        let beats = || {
            fs::read(&view)
                .is_ok_and(|bytes| serde_json::from_slice::<Value>(&bytes).is_ok_and(|view| view["pid"] == pid))
        };
        self.stage.until("the sidecar beats", beats);
    }

    /// `kill -9`, and another clock and another boot for the next one.
    fn restart(&self, shift: &str, boot: Option<&str>) {
        self.stage.end_sidecar(Signal::SIGKILL);
        self.set(shift);
        self.start(boot);
    }
}

/// A handoff whose agent never ends its turn, and when it began to write.
fn endless(stage: &Stage, agent: &str) -> (String, Instant) {
    stage.faults("never_stops");
    let id = stage.hand_off(agent);
    stage.until_step(&id, "writing");
    (id, Instant::now())
}

/// The limit of writing falls once, and not before its time. `since` is when it began at the latest.
fn falls_once(stage: &Stage, id: &str, since: Instant, not_before: Duration) {
    let view = stage.until_failed(id, "writing", "stop_never_came");
    let passed = since.elapsed();
    assert!(passed + Duration::from_secs(1) >= not_before, "after {passed:?}\n{}", stage.story());
    assert!(passed <= WRITING + LATE, "only after {passed:?}\n{}", stage.story());
    stage.check_failure(&view);
}

/// Ends the endless turn, and hands the handoff on to its end: nothing was broken by the lies.
fn goes_on(stage: &Stage, agent: &str, id: &str) {
    let pane = stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "Escape"]);
    stage.faults("");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    stage.check_done(&stage.until_step(id, "done"));
    assert_eq!(stage.errors_of(id).len(), 1, "{}", stage.story());
    tally::none_lost_none_twice("limits", &[], &[]);
}

/// Jumps by ten years to and fro, each while an agent writes without end: the limit of each falls once, in its time.
fn moves_no_limit(jump: impl Fn(&Liar<'_>, &str)) {
    let stage = stage();
    let Some(liar) = Liar::new(&stage) else { return };
    liar.start(None);
    let mut agent = stage.agent("dev");
    for shift in ["+3650d", "-3650d"] {
        let (id, since) = endless(&stage, &agent);
        jump(&liar, shift);
        falls_once(&stage, &id, since, WRITING);
        goes_on(&stage, &agent, &id);
        agent = stage.handoff_view(&id)["successor_id"].as_str().expect("an id").to_owned();
    }
}

#[test]
fn a_wall_clock_that_jumps_while_it_runs_moves_no_limit() {
    moves_no_limit(|liar, shift| liar.set(shift));
}

#[test]
fn a_wall_clock_that_jumps_across_a_restart_moves_no_limit() {
    moves_no_limit(|liar, shift| liar.restart(shift, None));
}

#[test]
fn another_boot_loses_no_limit_and_what_happened_before_counts() {
    let stage = stage();
    let Some(liar) = Liar::new(&stage) else { return };
    let may = Command::new("unshare").args(["--mount", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return tally::skip("another boot of the machine: needs root");
    }
    liar.start(None);
    let agent = stage.agent("dev");
    // By the wall clock the limit is long over, but the agent's Stop lies in the spool.
    stage.faults("slow_turn=1500");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    stage.end_sidecar(Signal::SIGKILL);
    stage.until("the agent ends its turn", || !stage.names("events").is_empty());
    stage.faults("");
    liar.set("+3650d");
    liar.start(Some("11111111-2222-4333-8444-555555555555"));
    let done = stage.until_step(&id, "done");
    stage.check_done(&done);
    // Set back by ten years: what is left is never more than the whole length.
    let agent = done["successor_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&agent);
    let (id, _) = endless(&stage, &agent);
    liar.restart("-3650d", Some("66666666-7777-4888-8999-aaaaaaaaaaaa"));
    let since = Instant::now();
    falls_once(&stage, &id, since, Duration::ZERO);
    goes_on(&stage, &agent, &id);
}

#[test]
fn a_limit_that_passes_while_the_sidecar_stands_still_falls_once_when_it_goes_on() {
    let stage = Stage::with_config("[limits]\nwriting = \"4s\"\n");
    let agent = stage.agent("dev");
    let (id, since) = endless(&stage, &agent);
    stage.signal(Signal::SIGSTOP);
    let still = if is_long() { Duration::from_secs(60) } else { Duration::from_secs(5) };
    std::thread::sleep(still);
    assert_eq!(stage.handoff_view(&id)["step"], "writing");
    stage.signal(Signal::SIGCONT);
    let view = stage.until_failed(&id, "writing", "stop_never_came");
    assert!(since.elapsed() >= still);
    stage.check_failure(&view);
    goes_on(&stage, &agent, &id);
    tally::add(tally::FAULTS, 1);
}

#[test]
fn a_minute_of_standing_still_loses_no_event_to_a_limit() {
    if !is_long() {
        return tally::skip(
            "a sidecar that stands still for a minute: only in the long suite; five seconds are tried always",
        );
    }
    let stage = stage();
    stage.start_sidecar();
    let agent = stage.agent("dev");
    stage.faults("slow_turn=2000");
    let id = stage.hand_off(&agent);
    stage.until_step(&id, "writing");
    stage.faults("");
    stage.signal(Signal::SIGSTOP);
    let began = Instant::now();
    stage.until("the agent ends its turn", || !stage.names("events").is_empty());
    std::thread::sleep(PATIENCE.saturating_sub(began.elapsed()));
    stage.signal(Signal::SIGCONT);
    stage.check_done(&stage.until_step(&id, "done"));
    assert!(stage.errors().is_empty());
    tally::add(tally::FAULTS, 1);
}

/// The clock that goes on while the machine sleeps is the one that counts: in a namespace where it alone is ahead, the
/// hook's event is named by it.
#[test]
fn time_counts_by_the_clock_that_runs_on_while_the_machine_sleeps() {
    let stage = stage();
    stage.start_sidecar();
    stage.end_sidecar(Signal::SIGKILL);
    let drop_in = |offsets: &[&str]| -> Option<u64> {
        let hook = stage.command(&["hook", "demo"]);
        let mut command = Command::new("unshare");
        command.arg("--time").args(offsets).arg(hook.get_program()).args(hook.get_args());
        Stage::make_own(&mut command);
        let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        let events = stage.spool("events");
        let name = fs::read_dir(&events).expect("a lane").flatten().next()?.file_name().into_string().ok()?;
        fs::remove_file(Path::new(&events).join(&name)).expect("removed");
        status.success().then(|| name.split('-').nth(1).and_then(|ns| ns.parse().ok()).expect("nanoseconds"))
    };
    let Some(plain) = drop_in(&[]) else {
        return tally::skip("the clocks of a time namespace: needs root and Linux");
    };
    let ahead = 1_000_000;
    let seconds = ahead.to_string();
    let slept = drop_in(&["--boottime", &seconds]).expect("as before");
    assert!(slept / 1_000_000_000 >= plain / 1_000_000_000 + ahead, "{plain} {slept}");
    let monotonic = drop_in(&["--monotonic", &seconds]).expect("as before");
    assert!(monotonic / 1_000_000_000 < plain / 1_000_000_000 + ahead, "{plain} {monotonic}");
    tally::add(tally::FAULTS, 2);
}

/// Not a test: writes down what the sidecar's clock says, in milliseconds since the boot.
#[test]
fn clock_program() {
    let Some(file) = std::env::var_os("TASUKI_TEST_CLOCK") else { return };
    fs::write(file, tasuki::clock::Clock::new().now().boot_ms.to_string()).expect("written");
}

/// The same of the sidecar's own clock.
#[test]
fn limits_count_by_the_clock_that_runs_on_while_the_machine_sleeps() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("clock");
    let clock = |offsets: &[&str]| -> Option<u64> {
        let mut command = Command::new("unshare");
        command.arg("--time").args(offsets).arg(std::env::current_exe().expect("our own path"));
        command.args(["time_lies::clock_program", "--exact"]).env("TASUKI_TEST_CLOCK", &file);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        status.success().then(|| fs::read_to_string(&file).expect("written").parse().expect("milliseconds"))
    };
    let Some(plain) = clock(&[]) else {
        return tally::skip("the clocks of a time namespace: needs root and Linux");
    };
    let ahead_ms = 1_000_000_000;
    let slept = clock(&["--boottime", "1000000"]).expect("as before");
    assert!(slept >= plain + ahead_ms, "{plain} {slept}");
    let monotonic = clock(&["--monotonic", "1000000"]).expect("as before");
    assert!(monotonic < plain + ahead_ms, "{plain} {monotonic}");
    tally::add(tally::FAULTS, 2);
}
