//! The watcher lies: its queue overflows, it can't be had, its folders are moved, made anew, replaced and covered, and
//! its events are lost, doubled and invented. Only latency changes; what can't be used is refused, and told.

use crate::support::stage::Stage;
use crate::support::stage_files::make_folder;
use crate::support::stage_hostile::is_root;
use crate::support::tally;
use nix::sys::signal::Signal;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many requests are dropped into a lane at a time.
const DROPS: usize = 500;

fn drop_many(stage: &Stage, count: usize) -> Vec<String> {
    (0..count).map(|_| stage.send_cheap()).collect()
}

/// Runs a command that must succeed.
fn run(program: &str, arguments: &[&str]) {
    let out = Command::new(program).args(arguments).output().expect("it runs");
    assert!(out.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Fills the queue of whoever watches that folder, with events that say nothing, and more than it can hold.
fn flood(folder: &Path) {
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("Linux tells");
    let limit: usize = limit.trim().parse().expect("a number");
    let path = folder.join(".flood");
    // Each turn is an open and a close: two events that are not alike, so that they are not merged.
    for _ in 0..=limit.min(100_000) / 2 {
        drop(OpenOptions::new().write(true).create(true).truncate(false).open(&path).expect("opened"));
    }
}

#[test]
fn an_overflow_of_the_queue_loses_nothing() {
    let stage = Stage::new();
    stage.signal(Signal::SIGSTOP);
    flood(&stage.spool("requests"));
    let ids = drop_many(&stage, DROPS);
    stage.signal(Signal::SIGCONT);
    stage.all_answered(&ids);
    tally::add(tally::FAULTS, 1);
}

/// Puts a value back when it is dropped.
struct Restored(&'static str, String);

impl Restored {
    fn set(path: &'static str, value: &str) -> Restored {
        let before = fs::read_to_string(path).expect("read");
        fs::write(path, value).expect("set");
        Restored(path, before)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        let _ = fs::write(self.0, &self.1);
    }
}

#[test]
fn a_queue_of_64_events_loses_nothing() {
    if !tally::is_long() {
        return tally::skip("a queue of 64 events is set for the whole machine, so only with --long");
    }
    if !is_root("a queue of 64 events") {
        return;
    }
    let stage = Stage::without_sidecar("");
    {
        // The length is taken over when the watcher is made; other programs that start in this moment lose nothing
        // but speed either.
        let _restored = Restored::set("/proc/sys/fs/inotify/max_queued_events", "64");
        stage.start_sidecar();
    }
    for _ in 0..20 {
        stage.signal(Signal::SIGSTOP);
        let ids = drop_many(&stage, DROPS);
        stage.signal(Signal::SIGCONT);
        stage.all_answered(&ids);
        tally::add(tally::FAULTS, 1);
    }
}

/// In a user namespace of its own a process can be left without watches, and nobody else is.
fn start_with(stage: &Stage, limit: &str, value: &str) {
    let script = format!("echo {value} > /proc/sys/user/{limit} && exec \"$0\" \"$@\"");
    stage.spawn_sidecar_by(&["unshare", "-Ur", "sh", "-c", &script], "debug");
    stage.until_beating();
}

#[test]
fn without_watches_a_whole_handoff_is_only_slower() {
    if !is_root("a sidecar without watches") {
        return;
    }
    for (limit, value) in [("max_inotify_instances", "0"), ("max_inotify_watches", "2")] {
        let stage = Stage::without_sidecar("");
        start_with(&stage, limit, value);
        stage.until("it looks every second", || stage.sidecar_view()["watch"] == "poll");
        stage.all_answered(&drop_many(&stage, 20));
        if limit == "max_inotify_instances" {
            let agent = stage.agent("kai");
            let handoff = stage.hand_off(&agent);
            let view = stage.until_step(&handoff, "done");
            stage.check_done(&view);
            tally::add(tally::TEXTS, stage.recorded().len() as u64);
        }
        let raise = format!("echo 1000 > /proc/sys/user/{limit}");
        let pid = stage.sidecar_pid().to_string();
        run("nsenter", &["-U", "--preserve-credentials", "-t", &pid, "sh", "-c", &raise]);
        stage.until("it watches again", || stage.sidecar_view()["watch"] == "armed");
        stage.all_answered(&drop_many(&stage, 20));
        tally::add(tally::FAULTS, 1);
    }
}

#[test]
fn folders_that_are_moved_and_made_anew_are_found_again() {
    let stage = Stage::new();
    stage.all_answered(&drop_many(&stage, 3));
    // A lane is moved away and made anew by somebody else.
    fs::rename(stage.spool("requests"), stage.spool("old")).expect("moved");
    make_folder(&stage.spool("requests"));
    let first = drop_many(&stage, 3);
    stage.all_answered(&first);
    // The whole spool is moved away; tasuki makes another. What lay in the old one is taken when it comes back.
    stage.signal(Signal::SIGSTOP);
    let kept = drop_many(&stage, 3);
    fs::rename(stage.home().join("spool"), stage.home().join("spool.old")).expect("moved");
    stage.signal(Signal::SIGCONT);
    stage.until("there is a spool again", || stage.spool("requests").is_dir() && stage.spool("tmp").is_dir());
    let old = stage.home().join("spool.old");
    for id in &kept {
        // Either the folder that was held was read once more, or the file still lies there.
        let file = format!("requests/{id}.json");
        if old.join(&file).exists() {
            fs::rename(old.join(&file), stage.spool(&file)).expect("brought back");
        } else {
            stage.until("it was answered", || {
                stage.spool(&format!("results/{id}.json")).exists() || old.join(format!("results/{id}.json")).exists()
            });
        }
    }
    stage.all_answered(&drop_many(&stage, 3));
    stage.until("what came back is answered", || stage.names("requests").is_empty());
    for id in &kept {
        let name = format!("results/{id}.json");
        assert!(stage.spool(&name).exists() || old.join(&name).exists(), "{id} has no result\n{}", stage.story());
    }
    tally::add(tally::FAULTS, 2);
}

#[test]
fn a_folder_that_became_a_link_is_refused_and_told() {
    let stage = Stage::new();
    stage.all_answered(&drop_many(&stage, 1));
    for (below, leads_back) in [("spool/requests", true), ("spool/requests", false), ("spool", true)] {
        let (place, away) = (stage.home().join(below), stage.home().join("away"));
        fs::rename(&place, &away).expect("moved");
        let other = stage.home().join("other");
        make_folder(&other);
        // A link to the very folder that was moved looks the same to whoever only follows it.
        symlink(if leads_back { &away } else { &other }, &place).expect("linked");
        let name = place.display().to_string();
        stage.until_degraded(&[&name, "link"]);
        let ids = drop_many(&stage, 3);
        // Time enough for two looks, by a watcher that has lost its folder.
        let beat = || stage.sidecar_view()["heartbeat"].clone();
        for _ in 0..if leads_back && below != "spool" { 2 } else { 1 } {
            let before = beat();
            stage.until("it beats", || beat() != before);
        }
        for id in &ids {
            assert!(!stage.spool(&format!("results/{id}.json")).exists(), "taken through a link\n{}", stage.story());
        }
        let came_by_link: Vec<_> = fs::read_dir(&other).expect("a folder").flatten().collect();
        fs::remove_file(&place).expect("the link goes");
        fs::rename(&away, &place).expect("moved back");
        for entry in came_by_link {
            fs::rename(entry.path(), stage.spool("requests").join(entry.file_name())).expect("brought along");
        }
        stage.until_well();
        stage.all_answered(&ids);
        tally::add(tally::FAULTS, 1);
    }
}

#[test]
fn a_folder_that_is_covered_by_another_file_system_is_refused_and_told() {
    if !is_root("a covered folder") {
        return;
    }
    let stage = Stage::without_sidecar("");
    stage.spawn_sidecar_by(&["unshare", "-m", "--propagation", "private"], "debug");
    stage.until_beating();
    let (pid, lane) = (stage.sidecar_pid().to_string(), stage.spool("requests").display().to_string());
    stage.all_answered(&drop_many(&stage, 3));
    let inside = |arguments: &[&str]| run("nsenter", &[&["-m", "-t", &pid], arguments].concat());
    inside(&["mount", "-t", "tmpfs", "-o", "mode=0700", "none", &lane]);
    stage.until_degraded(&[&lane, "file system"]);
    let ids = drop_many(&stage, 3);
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!stage.spool(&format!("results/{}.json", ids[0])).exists(), "{}", stage.story());
    inside(&["umount", "-l", &lane]);
    stage.until_well();
    stage.all_answered(&ids);
    tally::add(tally::FAULTS, 1);
}

/// Events without end that mean nothing, and several for each file, which is there and gone and there again meanwhile.
#[test]
fn invented_and_doubled_events_change_nothing() {
    let stage = Stage::new();
    let agent = stage.agent("kai");
    let (lanes, over) = ([stage.spool("requests"), stage.spool("events")], AtomicBool::new(false));
    std::thread::scope(|scope| {
        for lane in &lanes {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let (a, b) = (lane.join(".a"), lane.join(".b"));
                    fs::write(&a, b"{").and_then(|()| fs::rename(&a, &b)).expect("nobody takes it");
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let ids: Vec<String> = (0..100)
            .map(|_| {
                let id = stage.send_cheap();
                let (there, away) = (lanes[0].join(format!("{id}.json")), lanes[0].join(format!(".{id}")));
                for _ in 0..3 {
                    if fs::rename(&there, &away).is_ok() {
                        fs::rename(&away, &there).expect("put back");
                    }
                }
                id
            })
            .collect();
        stage.all_answered(&ids);
        let handoff = stage.hand_off(&agent);
        stage.check_done(&stage.until_step(&handoff, "done"));
        over.store(true, Ordering::Relaxed);
    });
    tally::add(tally::FAULTS, 1);
    tally::add(tally::TEXTS, stage.recorded().len() as u64);
}

/// While events pour in, a request is answered soon, and memory stays where it was.
#[test]
fn a_flood_of_events_delays_no_request() {
    let stage = Stage::new();
    let event = br#"{"v":1,"event":"notification","agent_id":"6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa","message":"x"}"#;
    stage.all_answered(&drop_many(&stage, 5));
    // A writer may be faster than whoever reads: the flood has an end, and requests are asked until it is taken.
    let each: u64 = if tally::is_long() { 40_000 } else { 5_000 };
    let (mut slowest, mut asked, deadline) = (Duration::ZERO, 0, Instant::now() + Duration::from_secs(300));
    let home = stage.home();
    let write = |writer: u64| {
        for count in 0..each {
            let name = format!("{writer}-{count}.json");
            let scratch = home.join("spool/tmp").join(&name);
            fs::write(&scratch, event).expect("written");
            fs::rename(&scratch, home.join("spool/events").join(&name)).expect("dropped");
        }
    };
    std::thread::scope(|scope| {
        let write = &write;
        let writers = [0, 1].map(|writer| scope.spawn(move || write(writer)));
        while !writers.iter().all(|writer| writer.is_finished()) || !stage.names("events").is_empty() {
            assert!(Instant::now() < deadline, "{} events are left", stage.names("events").len());
            let began = Instant::now();
            stage.all_answered(&[stage.send_cheap()]);
            slowest = slowest.max(began.elapsed());
            asked += 1;
        }
    });
    let dropped = 2 * each;
    println!("{dropped} events, {asked} requests, slowest {slowest:?}, {} KiB", stage.peak_memory());
    assert!(slowest < Duration::from_secs(3), "a request took {slowest:?} beside {dropped} events");
    assert!(stage.peak_memory() < 128 * 1024, "{} KiB", stage.peak_memory());
    assert!(asked > 10, "only {asked} requests beside {dropped} events");
    assert!(stage.names("rejected").is_empty());
    tally::add(tally::INPUTS, dropped);
}
