//! Old files and rows are removed, however many there are.

use super::tests::{Ground, NOTHING};
use crate::core::decision::Decision;
use crate::core::effect::{Attachment, Effect, EffectKey, How, TypeText};
use crate::core::id::{AgentId, HandoffId};
use crate::core::pane::{PaneRef, ServerId};
use crate::core::rows::agent::{Agent, AgentState};
use crate::core::rows::handoff::Handoff;
use crate::core::rows::outbox::{Pending, Waiter};
use crate::core::time::Now;
use crate::spool::age::MOST_VIEWS;
use crate::store::{Batch, SeenEvent};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

const TICK_MS: u64 = super::timers::TICK_MS;
const DAY_MS: i64 = 24 * 3_600_000;

/// Runs this many ticks after `from`, and returns the time of the last one.
fn ticks(ground: &mut Ground, from: Now, count: u64) -> Now {
    let mut now = from;
    for _ in 0..count {
        now.boot_ms += TICK_MS;
        now.wall_ms += i64::try_from(TICK_MS).expect("small");
        ground.sidecar.cycle(&now);
    }
    now
}

/// The problem that the sidecar's view shows.
fn problem(ground: &Ground) -> String {
    let view: Value =
        serde_json::from_slice(&std::fs::read(ground.path("view/sidecar.json")).expect("a view")).expect("JSON");
    view["problem"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn more_old_results_than_can_be_remembered_are_removed() {
    let mut ground = Ground::new().await;
    for number in 0..12_000 {
        std::fs::write(ground.path("spool/results").join(format!("{number}.json")), "{}").expect("a result");
    }
    let mut now = ground.sidecar.clock.now();
    now = ticks(&mut ground, now, 150);
    assert_eq!(ground.count("spool/results"), 12_000, "none is old");
    now.wall_ms += 8 * DAY_MS;
    ticks(&mut ground, now, 300);
    assert_eq!(ground.count("spool/results"), 0, "after 25 minutes");
}

fn event(number: usize) -> SeenEvent {
    SeenEvent { name: format!("{number}.json"), ino: 1, ctime_ns: 1, mtime_ns: None, sha256: "00".to_owned() }
}

#[tokio::test]
async fn more_events_than_are_remembered_are_forgotten_soon() {
    let mut ground = Ground::new().await;
    let seen: Vec<SeenEvent> = (0..60_000).map(event).collect();
    let now = ground.sidecar.clock.now();
    ground.sidecar.store.commit(&Batch { decision: &Decision::default(), now, seen: &seen }).expect("a commit");
    ticks(&mut ground, now, 30);
    let is_known = |number: usize| ground.sidecar.store.was_seen(&event(number)).expect("a look");
    assert!(!is_known(0) && !is_known(39_999), "the oldest 40,000 are forgotten within minutes");
    assert!(is_known(40_000) && is_known(59_999), "the last 20,000 are remembered");
}

#[tokio::test]
async fn a_full_rejected_folder_is_reported_as_long_as_it_is_full() {
    let mut ground = Ground::new().await;
    for number in 0..1_000 {
        std::fs::write(ground.path("spool/rejected").join(format!("{number}-x")), "x").expect("a file");
    }
    ground.settle();
    std::fs::write(ground.path("spool/requests/bad name.json"), NOTHING).expect("a bad file");
    let mut now = ground.sidecar.clock.now();
    for _ in 0..130 {
        now = ticks(&mut ground, now, 1);
        if problem(&ground).contains("rejected/ is full") {
            break;
        }
    }
    for _ in 0..125 {
        now = ticks(&mut ground, now, 1);
        assert!(problem(&ground).contains("rejected/ is full"), "{}", problem(&ground));
    }
    // What lies in the lanes is not forgotten: after the next start it would be carried out.
    let seen: Vec<SeenEvent> = (0..60_000).map(event).collect();
    ground.sidecar.store.commit(&Batch { decision: &Decision::default(), now, seen: &seen }).expect("a commit");
    ticks(&mut ground, now, 30);
    assert!(ground.sidecar.store.was_seen(&event(0)).expect("a look"), "it was forgotten");
}

/// Enough ticks for a clock that jumped to be believed, and for every file to be checked.
const BELIEVED: u64 = 400;

/// Stores the row of an agent that has ended.
fn ended_agent(ground: &mut Ground, number: u128) -> AgentId {
    let id = AgentId(uuid::Uuid::from_u128(number));
    let mut agent = Agent::new(id, "demo".to_owned(), "2026-01-01T00:00:00.000Z".to_owned());
    agent.state = AgentState::Ended;
    agent.ended_at = Some("2026-01-01T01:00:00.000Z".to_owned());
    let now = ground.sidecar.clock.now();
    let decision = Decision { agents: [(id, agent)].into(), ..Decision::default() };
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    ground.sidecar.projection.show(&ground.sidecar.spool, &now, &decision, &ground.sidecar.state.settings);
    id
}

#[tokio::test]
async fn views_of_history_are_removed_after_a_week_and_come_back_on_request() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (past, lives) = (ended_agent(&mut ground, 5), ended_agent(&mut ground, 6));
    let mut agent = ground.sidecar.store.past_agent(&lives).expect("readable").expect("a row");
    agent.state = AgentState::Idle;
    ground.sidecar.state.agents.insert(lives, agent);
    let view = |id: AgentId| format!("view/agents/{id}.json");
    let shown = ground.read(&view(past));
    let begin = ground.sidecar.clock.now();
    let mut now = ticks(&mut ground, begin, BELIEVED);
    assert_eq!(ground.count("view/agents"), 2, "none is old");
    now.wall_ms += 8 * DAY_MS;
    now = ticks(&mut ground, now, BELIEVED);
    assert!(!ground.path(&view(past)).exists(), "the view of an agent that ended a week ago");
    assert!(ground.path(&view(lives)).exists(), "the view of a live agent");
    let marker = |id: AgentId| ground.path(&format!("view/.wanted-{id}"));
    let (wanted, unknown) = (marker(past), marker(AgentId(uuid::Uuid::from_u128(7))));
    for file in [&wanted, &unknown] {
        std::fs::write(file, "").expect("written");
    }
    ticks(&mut ground, now, 1);
    assert_eq!(ground.read(&view(past)), shown, "it is written again");
    assert!(!wanted.exists() && !unknown.exists(), "and both files are gone");
    assert_eq!(ground.count("view/agents"), 2);
}

/// The row of a handoff that failed long ago, after its record. Nobody has dismissed or listed an error of it.
pub(super) fn failed_handoff(number: u128) -> Handoff {
    let (id, at) = (Uuid::from_u128(number), "2026-01-01T01:00:00.000Z");
    let row = json!({
        "handoff_id": id, "agent_id": id, "persona_slug": "dev", "reason": "r", "focus": null, "tasks": [], "now": false,
        "author": "agent_file", "successor": "new", "created_at": at, "file_path": "/d.md", "file_name": "d.md",
        "step": "failed", "steps": [{"step": "failed", "entered_at": at, "left_at": null}], "deadline": null,
        "wait_until": null, "effect": null, "reading": null, "verdicts": {}, "document": null, "record": null,
        "error": {"error_id": id, "step": "ending", "code": "did_not_exit", "message": "m", "hint": "h"},
        "successor_id": null, "former_successors": [], "place": null, "warnings": [],
    });
    serde_json::from_value(row).expect("a row")
}

/// Until somebody retries or abandons these handoffs, they hold up a living agent, a successor that was not briefed,
/// and a work item. Those commands need the view, even after the failure was dismissed.
#[tokio::test]
async fn the_views_of_handoffs_that_hold_up_something_stay_and_come_back() {
    let mut ground = Ground::new().await;
    ground.settle();
    let task = r#"{"v":1,"kind":"work_create","type":"task","title":"t"}"#;
    ground.drop_again("requests", "r1.json", task);
    let handoffs = [21, 22, 23, 24].map(failed_handoff);
    let [of_agent, of_heir, of_item, of_nobody] = handoffs.each_ref().map(|handoff| handoff.handoff_id);
    let agent = |number: u128, state: AgentState| {
        let mut agent = Agent::new(AgentId(Uuid::from_u128(number)), "demo".to_owned(), String::new());
        agent.state = state;
        agent
    };
    let recorded = Agent { recorded_in: Some(of_agent), ..agent(5, AgentState::Idle) };
    let gone = Agent { recorded_in: Some(of_heir), ..agent(6, AgentState::Ended) };
    let heir = Agent { previous_agent_id: Some(gone.agent_id), ..agent(7, AgentState::Idle) };
    let mut item = ground.sidecar.state.items.values().next().expect("an item").clone();
    item.held_by = Some(of_item);
    let now = ground.sidecar.clock.now();
    let decision = Decision {
        agents: [recorded, gone, heir].map(|agent| (agent.agent_id, agent)).into(),
        handoffs: handoffs.map(|handoff| (handoff.handoff_id, handoff)).into(),
        items: [(item.item_id, item)].into(),
        next_effect: ground.sidecar.state.next_effect,
        next_seq: ground.sidecar.state.next_seq,
        ..Decision::default()
    };
    let sidecar = &mut ground.sidecar;
    sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    sidecar.state.apply(&decision);
    sidecar.state.evict_past(&decision);
    sidecar.projection.show(&sidecar.spool, &now, &decision, &sidecar.state.settings);
    assert_eq!(ground.count("view/handoffs"), 4);
    let has = |ground: &Ground, id: HandoffId| ground.path(&format!("view/handoffs/{id}.json")).exists();
    let mut now = ticks(&mut ground, now, BELIEVED);
    now.wall_ms += 8 * DAY_MS;
    ticks(&mut ground, now, BELIEVED);
    assert!(!has(&ground, of_nobody));
    assert!([of_agent, of_heir, of_item].iter().all(|id| has(&ground, *id)), "{}", ground.count("view/handoffs"));
    std::fs::remove_dir_all(ground.path("view/handoffs")).expect("removed");
    let ground = ground.restarted().await;
    assert!([of_agent, of_heir, of_item].iter().all(|id| has(&ground, *id)), "{}", ground.count("view/handoffs"));
    assert!(!has(&ground, of_nobody));
}

/// Waits until a file that is written now, `probe`, counts as newer than `file`. Views that changed in the same tick of
/// the kernel's clock are kept or removed together, and in memory these are hundreds.
fn until_the_clock_has_ticked(file: &Path, probe: &Path) {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).expect("a time");
    let (end, last) = (Instant::now() + Duration::from_secs(60), changed(file));
    let is_newer = || {
        std::fs::write(probe, "").expect("a file");
        changed(probe).duration_since(last).is_ok_and(|later| later >= Duration::from_millis(2))
    };
    while !is_newer() {
        assert!(Instant::now() < end, "the clock stands still");
    }
}

#[tokio::test]
async fn of_the_views_of_history_only_the_newest_are_kept() {
    let mut ground = Ground::new().await;
    ground.settle();
    let place = |number: u128| ground.path(&format!("view/handoffs/{}.json", uuid::Uuid::from_u128(number)));
    let write = |number| std::fs::write(place(number), "{}").expect("a view");
    (0..500).for_each(write);
    until_the_clock_has_ticked(&place(499), &ground.path("probe"));
    (500..500 + u128::try_from(MOST_VIEWS).expect("small")).for_each(write);
    let now = ground.sidecar.clock.now();
    ticks(&mut ground, now, BELIEVED);
    let left = ground.count("view/handoffs");
    assert!((MOST_VIEWS..MOST_VIEWS + 250).contains(&left), "{left} are left");
}

#[tokio::test]
async fn files_of_texts_are_removed_after_a_week_unless_they_are_still_typed() {
    let mut ground = Ground::new().await;
    ground.settle();
    let texts = ground.path("data/personas/dev/texts");
    std::fs::create_dir_all(&texts).expect("a folder");
    let (old, typed, notes) = ("5f2a9c81d0e3.md", "5f2a9c81d0e4.md", "notes.md");
    for name in [old, typed, notes] {
        std::fs::write(texts.join(name), "long").expect("a text");
    }
    let attachment =
        Attachment { persona: "dev".parse().expect("a slug"), file_name: typed.to_owned(), body: "long".to_owned() };
    let plan = TypeText {
        agent_id: AgentId(uuid::Uuid::from_u128(5)),
        pane: PaneRef { server: ServerId { pid: 7, start_time: 1 }, pane: 3, pid: 42 },
        process: None,
        profile: "demo".to_owned(),
        delivery_id: "5f2a9c81d0e4".to_owned().try_into().expect("an id"),
        text: "Read it.".to_owned(),
        how: How::Prompt,
        attachment: Some(attachment),
        allow_busy: false,
    };
    ground.sidecar.state.outbox.insert(EffectKey(900), Pending { waiter: Waiter::Nobody, effect: Effect::Type(plan) });
    let left = || {
        let mut names: Vec<String> = std::fs::read_dir(&texts)
            .expect("a folder")
            .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
            .collect();
        names.sort_unstable();
        names
    };
    let begin = ground.sidecar.clock.now();
    let mut now = ticks(&mut ground, begin, BELIEVED);
    assert_eq!(left(), [old, typed, notes], "none is old");
    now.wall_ms += 8 * DAY_MS;
    now = ticks(&mut ground, now, BELIEVED);
    assert_eq!(left(), [typed, notes], "a text that is being typed is kept, and so is a file that is not ours");
    ground.sidecar.state.outbox.clear();
    ticks(&mut ground, now, BELIEVED);
    assert_eq!(left(), [notes]);
}
