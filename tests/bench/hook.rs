//! `tasuki hook` as a whole process, against the least that a shell can do: `cat` into a file and `mv`.

use crate::Length;
use crate::place::{Place, TASUKI};
use crate::rows;
use crate::sample::rounds;
use crate::table::Row;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What Claude Code gives its hooks at the end of a turn, about as long.
const PAYLOAD: &[u8] = br#"{"session_id":"5d0c0a52-1f0e-4d5b-9a57-2f64c1f6f0aa","transcript_path":"/home/kai/.claude/projects/-home-kai-src-app/5d0c0a52-1f0e-4d5b-9a57-2f64c1f6f0aa.jsonl","cwd":"/home/kai/src/app","permission_mode":"default","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"The checkout test waits for a queue that the fixture drains in the background. I made the fixture wait for it, ran the test two hundred times, and it passed each time. Two other tests use the same fixture; they pass too."}"#;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("hook");
    let (draft, file) = (home.join("spool/tmp/draft"), home.join("spool/events/sh.json"));
    let (mut ours, mut shell) = (Vec::new(), Vec::new());
    for round in rounds(length.pick(600, 200), Duration::from_secs(length.pick(30, 8))) {
        let tasuki = || report(TASUKI, &home);
        let sh = || {
            let mut command = Command::new("sh");
            command.arg("-c").arg(format!("cat >{} && mv {} {}", draft.display(), draft.display(), file.display()));
            run(command)
        };
        // Now one first, now the other.
        if round % 2 == 0 {
            ours.push(tasuki());
            shell.push(sh());
        } else {
            shell.push(sh());
            ours.push(tasuki());
        }
    }
    let left = fs::read_dir(home.join("spool/events")).expect("a folder").count();
    assert_eq!(left, ours.len() + 1, "each hook has left its event");
    place.remove(&home);
    vec![Row::times(rows::HOOK, &ours, &shell, 0.5, 2.0)]
}

/// One report of a program's hook.
pub(crate) fn report(program: &str, home: &Path) -> Duration {
    let mut command = Command::new(program);
    command.args(["hook", "claude"]).env("TASUKI_HOME", home).env("TMUX_PANE", "%1");
    run(command)
}

/// Both are started in the same way (`posix_spawn`), and given the same on standard input.
fn run(mut command: Command) -> Duration {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(PAYLOAD).expect("taken");
    drop(input);
    let status = child.wait().expect("ends");
    let took = began.elapsed();
    assert!(status.success());
    took
}
