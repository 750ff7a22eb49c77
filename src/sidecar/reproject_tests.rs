//! What others see of a commit: nothing before it, everything after it, and no file before the files that it names.

use super::tests::{Ground, NOTHING};
use crate::core::decision::Decision;
use crate::core::effect::{Effect, EffectKey, Outcome};
use crate::core::event::Event;
use crate::core::id::AgentId;
use crate::core::rows::agent::Agent;
use crate::core::rows::outbox::{Pending, Waiter};
use crate::core::time::Deadline;
use crate::store::Batch;
#[cfg(target_os = "linux")]
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use serde_json::Value;

/// A request that makes a view, a mark, a journal line and a result.
const WORK: &str = r#"{"v":1,"kind":"work_create","type":"task","title":"t"}"#;
/// A session of an unknown agent: its pane must be looked up.
const UNKNOWN_SESSION: &str = r#"{"v":1,"event":"session_start","pane":"%7","session_id":"s","profile":"demo"}"#;

impl Ground {
    pub(super) fn read(&self, below: &str) -> Vec<u8> {
        std::fs::read(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"))
    }

    /// Moves the state file away while the store is open: it can be read, but no commit succeeds.
    pub(super) fn without_state(&self) {
        std::fs::rename(self.path("state/tasuki.redb"), self.path("state/away")).expect("moved away");
    }

    pub(super) fn with_state_again(&mut self) {
        std::fs::rename(self.path("state/away"), self.path("state/tasuki.redb")).expect("moved back");
        let results = self.count("spool/results");
        // The pause is short, and a loaded machine may have needed longer up to this point.
        let now = self.sidecar.clock.now();
        let again = self.sidecar.health.again.as_mut().expect("the store has failed");
        *again = Deadline::after(&now, 60_000);
        self.sidecar.cycle(&now);
        assert_eq!(self.count("spool/results"), results, "decided on what was never committed");
        self.store_is_due();
        self.settle();
    }
}

#[tokio::test]
async fn before_the_commit_no_request_is_answered_no_file_moved_and_no_effect_started() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.without_state();
    ground.ask("r1.json", WORK);
    std::fs::write(ground.path("spool/events/e1.json"), UNKNOWN_SESSION).expect("an event");
    ground.sidecar.intake.files = true;
    ground.cycle();
    assert!(ground.sidecar.health.failures > 0, "the commit has failed");
    assert_eq!(ground.sidecar.runner.running(), 0, "an effect was begun");
    for (room, count) in [("spool/results", 0), ("spool/requests", 1), ("spool/events", 1), ("view/work/open", 0)] {
        assert_eq!(ground.count(room), count, "{room}");
    }
    assert_eq!(ground.read("spool/journal.jsonl"), b"");
    ground.with_state_again();
    assert_eq!(ground.sidecar.runner.running(), 2, "and then they are: the look at the pane, and a notice");
    for (room, count) in [("spool/results", 1), ("spool/requests", 0), ("spool/events", 0), ("view/work/open", 1)] {
        assert_eq!(ground.count(room), count, "{room}");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_files_that_a_result_names_are_written_before_it() {
    let mut ground = Ground::new().await;
    ground.settle();
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).expect("a watch");
    let flags = AddWatchFlags::IN_MOVED_TO | AddWatchFlags::IN_MODIFY;
    let watch = |below: &str| inotify.add_watch(&ground.path(below), flags).expect("a folder of ours");
    let (views, spool, results) = (watch("view/work"), watch("spool"), watch("spool/results"));
    ground.ask("r1.json", WORK);
    ground.sidecar.intake.files = true;
    ground.settle();
    let events = inotify.read_events().expect("something was written");
    let is_whole = |name: &str| !name.starts_with('.');
    let first = |wd| {
        let of = |event: &nix::sys::inotify::InotifyEvent| {
            let name = event.name.as_ref().is_some_and(|name| name.to_str().is_some_and(is_whole));
            event.wd == wd && name && (wd == spool || event.mask.contains(AddWatchFlags::IN_MOVED_TO))
        };
        events.iter().position(of).unwrap_or_else(|| panic!("nothing came: {events:?}"))
    };
    assert!(first(views) < first(spool), "the view before the journal: {events:?}");
    assert!(first(spool) < first(results), "the journal before the result: {events:?}");
}

#[tokio::test]
async fn files_that_a_power_cut_has_spoilt_are_written_again_at_the_next_start() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.ask("r1.json", WORK);
    ground.sidecar.intake.files = true;
    ground.settle();
    let answer: Value = serde_json::from_slice(&ground.read("spool/results/r1.json")).expect("JSON");
    let id = answer["result"]["item_id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    let (view, mark) = (format!("view/work/{id}.json"), format!("view/work/open/{id}"));
    let below = ["spool/results/r1.json", "spool/journal.jsonl", &view, &mark];
    let before = below.map(|below| ground.read(below));
    // As after a power cut: one file is missing, one is cut off, one is all zeros.
    std::fs::remove_file(ground.path(below[0])).expect("removed");
    std::fs::write(ground.path(below[1]), &before[1][..before[1].len() / 2]).expect("cut");
    std::fs::write(ground.path(&view), vec![0; before[2].len()]).expect("zeros");
    std::fs::remove_file(ground.path(&mark)).expect("removed");
    let ground = ground.restarted().await;
    for (below, before) in below.iter().zip(before) {
        assert!(ground.read(below) == before, "{below}: {}", String::from_utf8_lossy(&ground.read(below)));
    }
}

#[tokio::test]
async fn a_checkpoint_does_not_count_a_file_that_could_not_be_written() {
    let mut ground = Ground::new().await;
    ground.settle();
    // Nothing can be moved over a folder.
    let place = ground.path("spool/results/r1.json");
    std::fs::create_dir(&place).expect("a folder in its place");
    ground.ask("r1.json", NOTHING);
    ground.sidecar.intake.files = true;
    ground.settle();
    ground.checkpoint();
    assert!(place.is_dir(), "it could not be written");
    std::fs::remove_dir(&place).expect("removed");
    let ground = ground.restarted().await;
    let answer: Value = serde_json::from_slice(&ground.read("spool/results/r1.json")).expect("JSON");
    assert_eq!(answer["error"]["code"], "no_agent", "{answer}");
}

#[tokio::test]
async fn an_effect_whose_outcome_can_not_be_committed_is_not_run_again() {
    let mut ground = Ground::new().await;
    ground.settle();
    let effect = Effect::DropPlaceholder { tag: "0".to_owned() };
    let (key, pending) = (EffectKey(78), Pending { waiter: Waiter::Nobody, effect });
    let decision = Decision { effects: vec![(key, pending.clone())], ..Decision::default() };
    let now = ground.sidecar.clock.now();
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    ground.sidecar.state.outbox.insert(key, pending);
    ground.without_state();
    assert!(ground.sidecar.store.reopen().is_err(), "it is closed");
    ground.sidecar.events.push(Event::Settled { key, outcome: Outcome::Done });
    ground.cycle();
    assert!(ground.sidecar.health.failures > 0, "the commit has failed");
    ground.with_state_again();
    assert!(!ground.sidecar.runner.has(key), "it is done a second time");
    assert!(ground.sidecar.state.outbox.is_empty());
}

#[tokio::test]
async fn a_state_file_that_disappears_is_reported_even_by_an_idle_sidecar() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.checkpoint();
    ground.without_state();
    ground.sidecar.timers.tick = None;
    ground.cycle();
    let view = String::from_utf8(ground.read("view/sidecar.json")).expect("text");
    assert!(view.contains("degraded") && view.contains("tasuki.redb was moved"), "{view}");
}

#[tokio::test]
async fn a_file_that_no_hint_has_reported_is_taken_at_the_tick() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.ask("r1.json", NOTHING);
    ground.settle();
    assert_eq!(ground.count("spool/results"), 0, "no hint has reported it");
    ground.sidecar.timers.tick = None;
    ground.settle();
    assert_eq!(ground.count("spool/results"), 1);
}

/// Views of an item and of an agent that do not change any more. Returns their files, and the mark of the item.
fn shown(ground: &mut Ground) -> [String; 3] {
    ground.drop_again("requests", "r1.json", WORK);
    let item = ground.answer("r1")["result"]["item_id"].as_str().expect("an id").to_owned();
    let agent = Agent::new(AgentId(uuid::Uuid::new_v4()), "demo".to_owned(), String::new());
    let agent_id = agent.agent_id;
    let decision = Decision { agents: [(agent_id, agent)].into(), ..Decision::default() };
    let now = ground.sidecar.clock.now();
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    ground.sidecar.state.apply(&decision);
    ground.sidecar.projection.show(&ground.sidecar.spool, &now, &decision, &ground.sidecar.state.settings);
    ground.checkpoint();
    [format!("view/work/{item}.json"), format!("view/work/open/{item}"), format!("view/agents/{agent_id}.json")]
}

#[tokio::test]
async fn views_come_back_after_their_folders_were_removed_or_replaced() {
    let mut ground = Ground::new().await;
    ground.settle();
    let below = shown(&mut ground);
    let before = below.clone().map(|below| ground.read(&below));
    let assert_shown = |ground: &Ground, how: &str| {
        for (below, before) in below.iter().zip(&before) {
            let now = std::fs::read(ground.path(below)).ok();
            assert!(now.as_ref() == Some(before), "{below}, {how}: {now:?}");
        }
    };
    assert_shown(&ground, "at first");
    for removed in ["view", "view/work", "view/work/open", "view/agents"] {
        std::fs::remove_dir_all(ground.path(removed)).expect("removed");
        ground.sidecar.timers.tick = None;
        ground.settle();
        assert_shown(&ground, removed);
        ground.checkpoint();
    }
    // As if an older copy were put in the folder's place.
    std::fs::rename(ground.path("view/agents"), ground.path("view/old")).expect("moved away");
    std::fs::create_dir(ground.path("view/agents")).expect("made");
    ground.sidecar.timers.tick = None;
    ground.settle();
    assert_shown(&ground, "replaced");
    ground.checkpoint();
    for removed in ["view/work", "view/agents"] {
        std::fs::remove_dir_all(ground.path(removed)).expect("removed");
        ground = ground.restarted().await;
        assert_shown(&ground, removed);
        ground.checkpoint();
    }
    let item = &below[0];
    std::fs::remove_file(ground.path(item)).expect("removed");
    ground = ground.restarted().await;
    assert_shown(&ground, "one file");
    ground.checkpoint();
    // Damaged, and asked for.
    std::fs::write(ground.path(item), "garbage").expect("written");
    let id = item.trim_start_matches("view/work/").trim_end_matches(".json");
    std::fs::write(ground.path(&format!("view/.wanted-{id}")), "").expect("written");
    ground.sidecar.timers.tick = None;
    ground.settle();
    assert_shown(&ground, "asked for");
}
