//! An idle sidecar with 1,000 agents and a tmux server: how much memory it holds, and how often it wakes up.

use crate::Length;
use crate::drops::register;
use crate::place::{Place, Worker};
use crate::rows;
use crate::table::Row;
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const AGENTS: usize = 1_000;
/// Switches that come closer together than this are one wake-up.
const ONE_WAKE: Duration = Duration::from_millis(400);
/// How often the counters are read.
const LOOK: Duration = Duration::from_millis(20);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("idle");
    let sidecar = Worker::tasuki(place, &home);
    register_all(&home, AGENTS);
    // What has just been written is confirmed and tidied up at the next two ticks.
    std::thread::sleep(Duration::from_secs(length.pick(14, 12)));
    let watched = Duration::from_secs(length.pick(41, 16));
    let wakes = wakes(sidecar.pid(), watched);
    let resident = resident(sidecar.pid());
    drop(sidecar);
    place.remove(&home);
    // A timer is never early; what is counted is when we looked.
    let rare = closest(&wakes, watched) + 2 * LOOK >= Duration::from_secs(5);
    let counted = wakes_in_words(&wakes, watched);
    vec![
        Row::alone(rows::IDLE_MEMORY, format!("{resident:.1} MiB"), resident < 20.0),
        Row::alone(rows::IDLE_WAKES, counted, rare),
    ]
}

/// Registers so many agents of Claude Code.
pub(crate) fn register_all(home: &Path, agents: usize) {
    register(home, agents, |number| {
        format!(
            r#"{{"v":1,"event":"session_start","profile":"claude","session_id":"session-{number}","cwd":"/home/kai/src/app-{number}","transcript_path":"/home/kai/.claude/projects/app/{number}.jsonl"}}"#
        )
    });
}

/// The time between the two wake-ups that are closest to each other.
fn closest(wakes: &[Duration], watched: Duration) -> Duration {
    wakes.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(watched)
}

/// Wake-ups, for people.
pub(crate) fn wakes_in_words(wakes: &[Duration], watched: Duration) -> String {
    let apart = closest(wakes, watched).as_secs_f64();
    format!("{} in {} s, the closest {apart:.1} s apart", wakes.len(), watched.as_secs())
}

/// When the process woke up, whichever of its threads it was.
pub(crate) fn wakes(pid: Pid, watched: Duration) -> Vec<Duration> {
    let began = Instant::now();
    let mut last = switches(pid);
    let mut wakes: Vec<Duration> = Vec::new();
    let mut latest: Option<Duration> = None;
    while began.elapsed() < watched {
        std::thread::sleep(LOOK);
        let (now, count) = (began.elapsed(), switches(pid));
        if count != last {
            if latest.is_none_or(|latest| now - latest > ONE_WAKE) {
                wakes.push(now);
            }
            latest = Some(now);
            last = count;
        }
    }
    wakes
}

/// Voluntary context switches of all threads: each is the end of a wake-up.
fn switches(pid: Pid) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let status = |task: fs::DirEntry| fs::read_to_string(task.path().join("status")).unwrap_or_default();
    tasks.flatten().map(|task| field(&status(task), "voluntary_ctxt_switches:")).sum()
}

/// Mebibytes in memory.
pub(crate) fn resident(pid: Pid) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    field(&status, "VmRSS:") as f64 / 1024.0
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}
