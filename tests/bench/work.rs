//! Work items in a home that holds 100,000: a claim and a completion from the rename of the request to its result,
//! against the bare program; and a list of the 1,000 that are not done.

use crate::Length;
use crate::drops::{Arrivals, drop_event, round_trip, round_trip_of};
use crate::place::{Place, TASUKI, Worker, wait_until};
use crate::rows;
use crate::sample::{ms, percentile, rounds};
use crate::table::Row;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tasuki::core::decision::Decision;
use tasuki::core::rows::item::Item;
use tasuki::core::time::Now;
use tasuki::core::view;
use tasuki::store::{Batch, Checkpoint, Store};
use uuid::Uuid;

const OPEN: usize = 1_000;
const IN_ONE_COMMIT: usize = 1_000;
const AGENT: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9b001";
/// Between two requests, so that each meets a program at rest.
const REST: Duration = Duration::from_millis(4);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let (home, bare_home) = (place.home("work"), place.home("work-bare"));
    let all = length.pick(100_000, 20_000);
    let open = fill(&home, all);
    // So many new files are still on their way to the disk, and every sync would wait for some of them.
    let folder = std::fs::File::open(&home).expect("a folder");
    nix::unistd::syncfs(&folder).expect("synced");
    let persona = home.join("data/personas/dev");
    std::fs::create_dir_all(&persona).expect("a folder");
    std::fs::write(persona.join("persona.toml"), "role = \"developer\"\n").expect("a persona");
    std::fs::write(persona.join("skill.md"), "# Skill\n").expect("a skill");
    let (sidecar, bare) = (Worker::tasuki(place, &home), Worker::bare(&bare_home));
    wait_until("the bare program is ready", REST, || bare_home.join("ready").exists());
    wait_until("every mark is there", REST, || {
        std::fs::read_dir(home.join("view/work/open")).is_ok_and(|names| names.count() == OPEN)
    });
    let event = json!({"v": 1, "event": "session_start", "agent_id": AGENT, "persona_slug": "dev", "session_id": "s"});
    drop_event(&home, "start", &event.to_string());
    wait_until("the agent is known", REST, || home.join(format!("view/agents/{AGENT}.json")).exists());
    let listing = list(&home, length);
    let results = Arrivals::into_folder(&home.join("spool/results"));
    let bare_results = Arrivals::into_folder(&bare_home.join("spool/results"));
    let (mut claims, mut completions, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for round in rounds(length.pick(800, 200).min(open.len()), Duration::from_secs(length.pick(40, 12))) {
        let id = &open[round];
        let claim = json!({"v": 1, "kind": "work_claim", "item_id": id, "agent_id": AGENT});
        let complete = json!({"v": 1, "kind": "work_complete", "item_id": id, "agent_id": AGENT,
            "output": {"completed": true, "pr_url": "https://example.org/pull/1"}});
        floor.push(round_trip(&bare_home, &bare_results, &format!("bare-{round:06}")));
        std::thread::sleep(REST);
        claims.push(round_trip_of(&home, &results, &format!("claim-{round:06}"), claim.to_string().as_bytes()));
        std::thread::sleep(REST);
        completions.push(round_trip_of(&home, &results, &format!("done-{round:06}"), complete.to_string().as_bytes()));
        std::thread::sleep(REST);
    }
    drop((sidecar, bare));
    place.remove(&home);
    place.remove(&bare_home);
    vec![
        Row::times(rows::WORK_CLAIM, &claims, &floor, 0.5, 1.5),
        Row::times(rows::WORK_DONE, &completions, &floor, 0.5, 1.5),
        Row::alone(rows::WORK_LIST, ms(listing), listing < Duration::from_millis(50)),
    ]
}

/// The median of some listings.
fn list(home: &Path, length: Length) -> Duration {
    let mut took = Vec::new();
    for _ in rounds(length.pick(30, 10), Duration::from_secs(10)) {
        let mut command = Command::new(TASUKI);
        command.arg("--home").arg(home).args(["work", "list", "--json"]).stdin(Stdio::null());
        let began = Instant::now();
        let output = command.output().expect("it runs");
        took.push(began.elapsed());
        let listed: Vec<Value> = serde_json::from_slice(&output.stdout).expect("a list");
        assert_eq!(listed.len(), OPEN);
    }
    percentile(&took, 0.5)
}

/// Fills a home's store and views; gives the ids of the items that are ready.
fn fill(home: &Path, all: usize) -> Vec<Uuid> {
    let mut store = Store::open(&home.join("state")).expect("a new store");
    let mut open = Vec::new();
    for first in (0..all).step_by(IN_ONE_COMMIT) {
        let mut decision = Decision::default();
        for number in first..all.min(first + IN_ONE_COMMIT) {
            let id = Uuid::new_v4();
            let is_open = number % (all / OPEN) == 0;
            let item = item(id, number, is_open);
            let path = home.join(format!("view/work/{id}.json"));
            std::fs::write(path, tasuki::contract::text(&view::item(&item))).expect("a view");
            if is_open {
                open.push(id);
            }
            decision.items.insert(item.item_id, item);
        }
        let now = Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 1 };
        store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("committed");
        let views = decision.items.keys().map(|id| format!("work/{id}")).collect();
        store.checkpoint(&Checkpoint { views, ..Checkpoint::default() }).expect("confirmed");
        // As the ticks of a running sidecar do.
        while store.pack().expect("packed") > 0 {}
    }
    std::fs::write(home.join("view/.built"), store.home_tag().expect("a tag")).expect("written");
    open
}

/// As a stored row.
fn item(id: Uuid, number: usize, open: bool) -> Item {
    let at = "2026-09-21T14:13:20.000Z";
    let line = |action: &str, from: Value, to: &str, owner: Value| {
        json!({"at": at, "action": action, "by": AGENT, "from": from, "to": to, "owner": owner, "after_ms": 1_000,
            "reason": null, "output_summary": null, "validation": null, "children": []})
    };
    let mut history = vec![line("created", Value::Null, "ready", Value::Null)];
    if !open {
        history.push(line("claimed", json!("ready"), "claimed", json!(AGENT)));
        history.push(line("completed", json!("claimed"), "done", Value::Null));
    }
    let output = if open { Value::Null } else { json!({"completed": true, "pr_url": "https://example.org/pull/1"}) };
    let row = json!({
        "item_id": id, "type": "story", "title": format!("As a customer, I want the till to open ({number})"),
        "description": "The till opens when the drawer is asked for, and only then. It says so on the display.",
        "status": if open { "ready" } else { "done" }, "since_ms": 1_790_000_000_000_i64, "project_id": id,
        "parent_id": null, "children": [], "priority": "normal", "order": number, "claimed_by": null, "held_by": null,
        "output": output, "parent_output": {"stories": ["as a customer", "as a clerk", "as an owner"]},
        "metadata": {"points": 3}, "failed_children": [], "comments": [], "history": history, "created_at": at,
        "created_by": "human", "completed_at": if open { Value::Null } else { json!(at) },
        "completed_by": if open { Value::Null } else { json!(AGENT) }, "escalated_at": null, "escalation_reason": null,
        "escalated_by": [], "completion": null, "watch": null, "offered_to": null, "told": [],
    });
    serde_json::from_value(row).expect("a row")
}
