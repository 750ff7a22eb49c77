//! `top` before 200 agents at rest: how much of a core it takes, and how much memory it holds.

use crate::Length;
use crate::drops::register;
use crate::idle;
use crate::place::{Place, TASUKI, Worker, wait_until};
use crate::rows;
use crate::sample::share_of_a_core;
use crate::table::Row;
use nix::unistd::Pid;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const AGENTS: usize = 200;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("top");
    let sidecar = Worker::tasuki(place, &home);
    register(&home, AGENTS, |number| {
        format!(
            r#"{{"v":1,"event":"session_start","profile":"claude","session_id":"session-{number}","cwd":"/home/kai/src/app-{number}"}}"#
        )
    });
    let pid = open(place, &home);
    // What has just been written is looked at once more when it has settled.
    std::thread::sleep(Duration::from_secs(length.pick(6, 3)));
    let watched = Duration::from_secs(length.pick(30, 10));
    let share = share_of_a_core(pid, watched);
    let resident = idle::resident(pid);
    // Its terminal goes, and so does it.
    let closed = place.tmux(&["kill-window", "-t", "user:top"]).status();
    assert!(closed.is_ok_and(|status| status.success()), "the window is there");
    wait_until("top has ended", Duration::from_millis(50), || !Path::new(&format!("/proc/{pid}")).exists());
    drop(sidecar);
    place.remove(&home);
    vec![
        Row::alone(rows::TOP_SHARE, format!("{share:.2} %"), share < 1.0),
        Row::alone(rows::TOP_MEMORY, format!("{resident:.1} MiB"), resident < 20.0),
    ]
}

/// Opens it in a window; gives its process when it shows the agents.
fn open(place: &Place, home: &Path) -> Pid {
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
    Pid::from_raw(pid.trim().parse().expect("a process id"))
}
