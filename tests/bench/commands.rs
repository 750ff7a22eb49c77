//! Commands that only read views, as whole processes: what a person waits for who asks who is there.

use crate::Length;
use crate::place::{Place, TASUKI};
use crate::rows;
use crate::sample::{percentile, rounds};
use crate::table::Row;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

const AGENTS: usize = 200;
const HANDOFFS: usize = 2_000;
const ITEMS: usize = 2_000;
/// Every so many items one is not done.
const OPEN_EVERY: usize = 20;
const ERRORS: usize = 20;
/// Agents that came one from the other.
const IN_A_LINE: usize = 10;
/// What a person does not notice.
const GOAL: Duration = Duration::from_millis(10);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("commands");
    fill(&home);
    let last = id(IN_A_LINE - 1);
    let commands: [(rows::Figure, &[&str]); 5] = [
        (rows::AGENTS, &["agents"]),
        (rows::HANDOFFS, &["handoffs"]),
        (rows::ERRORS, &["errors"]),
        (rows::LINEAGE, &["lineage", &last]),
        (rows::WORK_LIST_SMALL, &["work", "list"]),
    ];
    let rows = commands.map(|(figure, args)| row(&home, figure, args, length)).into();
    place.remove(&home);
    rows
}

fn row(home: &Path, figure: rows::Figure, args: &[&str], length: Length) -> Row {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in rounds(length.pick(300, 60), Duration::from_secs(length.pick(15, 4))) {
        ours.push(run(TASUKI, home, args));
        floor.push(run(TASUKI, home, &["--version"]));
    }
    Row { met: percentile(&ours, 0.5) < GOAL, ..Row::times(figure, &ours, &floor, 0.5, f64::INFINITY) }
}

/// How long a command takes, as a whole process. It must succeed.
pub(crate) fn run(program: &str, home: &Path, args: &[&str]) -> Duration {
    let mut command = Command::new(program);
    command.args(args).env("TASUKI_HOME", home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().expect("it runs");
    let took = began.elapsed();
    assert!(status.success(), "{args:?}");
    took
}

/// A home as a sidecar leaves it that works on it.
fn fill(home: &Path) {
    let write = |below: &str, value: &Value| fs::write(home.join(below), value.to_string()).expect("a view");
    let beat = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    write("view/sidecar.json", &json!({"v": 1, "pid": std::process::id(), "version": "0", "heartbeat": beat}));
    for number in 0..AGENTS {
        write(&format!("view/agents/{}.json", id(number)), &agent(number));
    }
    for number in 0..HANDOFFS {
        let path = home.join(format!("view/handoffs/{}.json", id(100_000 + number)));
        fs::write(&path, handoff(number).to_string()).expect("a view");
        // As it changed last: a while after its successor has registered.
        let changed =
            SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at_ms(number)).expect("a time") + 20_000);
        fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(changed)).expect("ours");
    }
    for number in 0..ITEMS {
        let (id, is_open) = (id(200_000 + number), number.is_multiple_of(OPEN_EVERY));
        let item = json!({
            "v": 1, "item_id": id, "type": "story", "title": format!("As a customer ({number})"), "description": "x".repeat(200),
            "status": if is_open { "ready" } else { "done" }, "priority": "normal", "parent_id": null, "children": [],
            "claimed_by": null, "created_at": at(number),
        });
        write(&format!("view/work/{id}.json"), &item);
        if is_open {
            fs::write(home.join("view/work/open").join(&id), "").expect("a mark");
        }
    }
    for number in 0..ERRORS {
        let error = json!({"v": 1, "error_id": id(300_000 + number), "at": at(number), "code": "did_not_exit",
            "message": "The agent did not exit", "hint": "Look at its pane", "handoff_id": null, "agent_id": null, "step": null});
        write(&format!("spool/errors/{}.json", id(300_000 + number)), &error);
    }
}

/// A legal id that is the same in each run.
fn id(number: usize) -> String {
    format!("{number:08x}-3a0f-4a52-9df0-5cf0e7c9b001")
}

fn at_ms(number: usize) -> i64 {
    1_790_000_000_000 + i64::try_from(number).expect("small") * 60_000
}

fn at(number: usize) -> String {
    tasuki::core::time::rfc3339(at_ms(number))
}

fn agent(number: usize) -> Value {
    let is_first = number.is_multiple_of(IN_A_LINE);
    let is_last = (number + 1).is_multiple_of(IN_A_LINE);
    json!({
        "v": 1, "agent_id": id(number), "persona_slug": format!("p{number}"), "profile": "demo", "pane": format!("%{number}"),
        "pid": 1_000 + number, "tmux_session": "user", "cwd": "/home/kai/src/app", "session_id": id(number),
        "transcript_path": "/home/kai/transcript.jsonl", "state": "idle",
        "previous_agent_id": if is_first { Value::Null } else { json!(id(number - 1)) }, "successor_id": null,
        "handoff_id": null, "recorded_in": if is_last { Value::Null } else { json!(id(100_001 + number)) }, "created_at": at(number), "registered_at": at(number), "ended_at": null,
        "started_by_tasuki": true, "hooks": "seen", "primed": true, "waiting_texts": 0,
        "context": {"used": 20_000, "window": 200_000, "percent": 10, "window_is_guess": false},
    })
}

/// The one by which the agent of that number came, if there is one.
fn handoff(number: usize) -> Value {
    let steps = [
        "waiting",
        "instructing",
        "writing",
        "checking",
        "recording",
        "ending",
        "starting",
        "priming",
        "briefing",
        "reading",
        "done",
    ];
    let steps: Vec<Value> =
        steps.iter().map(|step| json!({"step": step, "entered_at": at(number), "left_at": at(number)})).collect();
    let verdict = json!({"delivery_id": "0123456789ab", "verdict": "delivered", "reason": null, "at": at(number)});
    json!({
        "v": 1, "handoff_id": id(100_000 + number), "agent_id": id(number.saturating_sub(1)), "successor_id": id(number),
        "persona_slug": "dev", "reason": "context is nearly full", "focus": "the flaky test", "step": "done", "steps": steps,
        "created_at": at(number), "file_path": "/home/kai/.local/share/tasuki/data/personas/dev/handoffs/x.md",
        "bytes": 900, "sha256": "0".repeat(64), "injection_prompt": "x".repeat(1_200),
        "verdicts": {"instruction": verdict, "priming": verdict, "briefing": verdict}, "error": null, "ack": null,
        "publish": null, "checklist": [], "warnings": [],
    })
}
