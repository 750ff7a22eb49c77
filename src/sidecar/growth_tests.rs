//! What is not wanted any more goes, however much of it there is.

use super::tests::{Ground, NOTHING};
use crate::core::decision::Decision;
use crate::core::time::Now;
use crate::store::{Batch, SeenEvent};
use serde_json::Value;

const TICK_MS: u64 = super::project::TICK_MS;
const DAY_MS: i64 = 24 * 3_600_000;

/// So many ticks, from then on; gives when the last of them was.
fn ticks(ground: &mut Ground, from: Now, count: u64) -> Now {
    let mut now = from;
    for _ in 0..count {
        now.boot_ms += TICK_MS;
        now.wall_ms += i64::try_from(TICK_MS).expect("small");
        ground.sidecar.turn(&now);
    }
    now
}

/// What the view says to be wrong.
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

#[tokio::test]
async fn more_events_than_are_remembered_are_forgotten_soon() {
    let mut ground = Ground::new().await;
    let event =
        |number: usize| SeenEvent { name: format!("{number}.json"), ino: 1, ctime_ns: 1, sha256: "00".to_owned() };
    let seen: Vec<SeenEvent> = (0..60_000).map(event).collect();
    let now = ground.sidecar.clock.now();
    ground.sidecar.store.commit(&Batch { decision: &Decision::default(), now, seen: &seen }).expect("a commit");
    ticks(&mut ground, now, 30);
    let is_known = |number: usize| ground.sidecar.store.was_seen(&event(number)).expect("a look");
    assert!(!is_known(0) && !is_known(39_999), "the oldest 40,000 are forgotten within minutes");
    assert!(is_known(40_000) && is_known(59_999), "the last 20,000 are remembered");
}

#[tokio::test]
async fn that_rejected_is_full_is_told_as_long_as_it_is_so() {
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
}
