//! A hundred handoffs that begin at once on a hundred panes, beside one alone: how long until the last successor is
//! briefed, what the sidecar needs for it, and how long another request waits meanwhile.

use crate::Length;
use crate::drops::{Arrivals, prepare, prepare_this, show};
use crate::handoff::persona;
use crate::place::{Place, Worker, wait_until};
use crate::rows;
use crate::sample::{ms, percentile, used, used_by_children};
use crate::table::Row;
use nix::unistd::Pid;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tasuki::contract::{AgentView, HandoffView, SidecarView};
use tasuki::core::time::millis;

/// How long between two looks at the views.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many are handed off one after the other first.
const ALONE: usize = 5;

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let crowd = length.pick(100, 20);
    let (home, folder) = (place.home("crowd"), place.path("crowd-place"));
    fs::create_dir_all(&folder).expect("a folder");
    for number in 0..crowd {
        persona(&home, &format!("p{number}"), &folder);
    }
    let sidecar = Worker::tasuki(place, &home);
    wait_until("tmux answers", LOOK_EVERY, || {
        let view = fs::read(home.join("view/sidecar.json")).unwrap_or_default();
        serde_json::from_slice::<SidecarView>(&view).is_ok_and(|view| view.tmux.is_some())
    });
    for number in 0..crowd {
        drop_request(
            &home,
            &format!("create-{number}"),
            &json!({"kind": "agent_create", "persona_slug": format!("p{number}")}),
        );
    }
    wait_until("all agents are idle", LOOK_EVERY, || idle(&home).len() == crowd);
    let alone: Vec<Duration> = (0..ALONE).map(|round| hand_off(&home, &format!("alone-{round}"), 1, crowd)).collect();
    let alone = percentile(&alone, 0.5);
    let (agents, ours) = (needed_by_agents(place), used(sidecar.pid()));
    let over = AtomicBool::new(false);
    let (took, waits) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_all_the_time(&home, &over));
        let took = hand_off(&home, "at-once", crowd, crowd);
        over.store(true, Ordering::SeqCst);
        (took, asking.join().expect("it asks"))
    });
    let (agents, ours) = (needed_by_agents(place) - agents, used(sidecar.pid()) - ours);
    drop(sidecar);
    place.remove(&home);
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let floor = alone + Duration::from_secs_f64(agents / cores);
    let ratio = took.as_secs_f64() / floor.as_secs_f64();
    let longest = percentile(&waits, 1.0);
    let share = format!("{:.0} %", ours / took.as_secs_f64() * 100.0);
    vec![
        Row { figure: rows::CROWD, ours: ms(took), rival: ms(floor), ratio: format!("{ratio:.2}"), met: ratio <= 1.5 },
        Row::alone(rows::CROWD_SHARE, share, true),
        Row::alone(rows::CROWD_WAIT, ms(longest), longest < Duration::from_millis(50)),
    ]
}

/// Hands `count` agents of so many off at once; how long it took from the first request until the last successor was
/// briefed.
fn hand_off(home: &Path, name: &str, count: usize, of: usize) -> Duration {
    let agents: Vec<String> = idle(home).into_iter().take(count).collect();
    let before = handoffs(home).len();
    for (number, agent) in agents.iter().enumerate() {
        let request = json!({"kind": "handoff", "agent_id": agent, "reason": "a trial"});
        drop_request(home, &format!("{name}-{number}"), &request);
    }
    wait_until("all are handed off", LOOK_EVERY, || {
        let ended = handoffs(home).iter().filter(|view| view.step.as_str() == "done").count();
        ended == before + count
    });
    wait_until("all agents are idle again", LOOK_EVERY, || idle(home).len() == of);
    let all = handoffs(home);
    let new: Vec<&HandoffView> = all.iter().filter(|view| agents.contains(&view.agent_id)).collect();
    let first = new.iter().map(|view| millis(&view.created_at).expect("a time")).min().expect("one");
    let last = new.iter().map(|view| briefed_ms(view)).max().expect("one");
    Duration::from_millis(u64::try_from(last - first).expect("time goes on"))
}

fn briefed_ms(view: &HandoffView) -> i64 {
    let read = view.steps.iter().find(|step| step.step.as_str() == "reading");
    millis(&read.expect("it was briefed").entered_at).expect("a time")
}

fn drop_request(home: &Path, id: &str, request: &serde_json::Value) {
    let mut request = request.clone();
    request["v"] = json!(1);
    prepare_this(home, id, request.to_string().as_bytes());
    show(home, id);
}

/// Asks for something that takes no time, again and again, until all is over; how long each answer took.
fn ask_all_the_time(home: &Path, over: &AtomicBool) -> Vec<Duration> {
    let results = Arrivals::into_folder(&home.join("spool/results"));
    let mut waits = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let id = format!("ask-{}", waits.len());
        prepare(home, &id);
        let answer = home.join(format!("spool/results/{id}.json"));
        let began = std::time::Instant::now();
        show(home, &id);
        while !answer.exists() {
            results.some(Duration::from_millis(20));
        }
        waits.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    waits
}

fn idle(home: &Path) -> Vec<String> {
    let views: Vec<AgentView> = views(&home.join("view/agents"));
    let idle = views.into_iter().filter(|view| view.state.as_str() == "idle" && view.primed);
    idle.map(|view| view.agent_id).collect()
}

fn handoffs(home: &Path) -> Vec<HandoffView> {
    views(&home.join("view/handoffs"))
}

fn views<T: serde::de::DeserializeOwned>(folder: &Path) -> Vec<T> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| serde_json::from_slice(&fs::read(file.path()).ok()?).ok()).collect()
}

/// Seconds of processor time that the agents have used, with their hooks: those that run, and those that have ended,
/// which their tmux server has counted.
fn needed_by_agents(place: &Place) -> f64 {
    let pid = |text: &str| Pid::from_raw(text.parse().expect("a number"));
    let panes = place.tmux_says(&["list-panes", "-a", "-F", "#{pane_pid}"]);
    let living: f64 = panes.lines().map(|line| used(pid(line)) + used_by_children(pid(line))).sum();
    living + used_by_children(pid(&place.tmux_says(&["display-message", "-p", "#{pid}"])))
}
