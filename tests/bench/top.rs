//! `top` before 200 agents at rest: how much of a core it takes, and how much memory it holds.

use crate::Length;
use crate::idle;
use crate::place::{Place, TASUKI, Worker, wait_until};
use crate::table::Row;
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const AGENTS: usize = 200;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("top");
    let sidecar = Worker::tasuki(place, &home);
    for number in 0..AGENTS {
        let event = format!(
            r#"{{"v":1,"event":"session_start","profile":"claude","session_id":"session-{number}","cwd":"/home/kai/src/app-{number}"}}"#
        );
        let name = format!("agent-{number}.json");
        fs::write(home.join("spool/tmp").join(&name), event).expect("written");
        fs::rename(home.join("spool/tmp").join(&name), home.join("spool/events").join(&name)).expect("renamed");
    }
    let agents = home.join("view/agents");
    wait_until("all agents are registered", Duration::from_millis(50), || {
        fs::read_dir(&agents).map_or(0, Iterator::count) >= AGENTS
    });
    let pid = open(place, &home);
    // What has just been written is looked at once more when it has settled.
    std::thread::sleep(Duration::from_secs(length.pick(6, 3)));
    let watched = Duration::from_secs(length.pick(30, 10));
    let (began, before) = (Instant::now(), used(pid));
    std::thread::sleep(watched);
    let share = (used(pid) - before) / began.elapsed().as_secs_f64() * 100.0;
    let resident = idle::resident(Pid::from_raw(i32::try_from(pid).expect("process ids are positive")));
    // Its terminal goes, and so does it.
    let closed = place.tmux(&["kill-window", "-t", "user:top"]).status();
    assert!(closed.is_ok_and(|status| status.success()), "the window is there");
    wait_until("top has ended", Duration::from_millis(50), || !Path::new(&format!("/proc/{pid}")).exists());
    drop(sidecar);
    place.remove(&home);
    let row = |what: &str, ours: String, goal: &str, met| Row {
        figure: format!("`tasuki top`, {AGENTS} agents at rest: {what}"),
        ours,
        rival: String::new(),
        ratio: String::new(),
        goal: goal.to_owned(),
        met,
    };
    vec![
        row("share of a core", format!("{share:.2} %"), "< 1 %", share < 1.0),
        row("resident", format!("{resident:.1} MiB"), "< 20 MiB", resident < 20.0),
    ]
}

/// Opens it in a window; gives its process when it shows the agents.
fn open(place: &Place, home: &Path) -> u32 {
    let line = format!("exec {TASUKI} --home {} top", home.display());
    let said = |args: &[&str]| {
        let output = place.tmux(args).stdout(Stdio::piped()).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let pid = said(&["new-window", "-P", "-F", "#{pane_pid}", "-n", "top", "-t", "user:", &line]);
    let shown = format!("Agents {AGENTS}");
    wait_until("top shows the agents", Duration::from_millis(50), || {
        said(&["capture-pane", "-p", "-t", "user:top"]).contains(&shown)
    });
    pid.trim().parse().expect("a process id")
}

/// Seconds of processor time that all of its threads have used.
fn used(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or_default();
    (ticks(11) + ticks(12)) / per_second()
}

/// Ticks in a second.
fn per_second() -> f64 {
    let output = Command::new("getconf").arg("CLK_TCK").output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).trim().parse().unwrap_or(100.0)
}
