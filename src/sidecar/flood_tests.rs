//! The loop while events come faster than it can take them, so that the lane is never empty.

use super::tests::{Ground, NOTHING};
use super::tidy::Tidy;
use super::time_tests::drop_many_events;
use super::watches::SeenGone;
use crate::core::event::Exit;
use crate::core::id::AgentId;
use crate::core::rows::agent::{Agent, PendingExit};
use crate::core::time::Deadline;
use std::time::{Duration, Instant};
use uuid::Uuid;

const EVENT: &str = r#"{"v":1,"event":"notification","agent_id":"6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa","message":"x"}"#;
/// Cycles within which every file that was there at the beginning must have been decided.
const CYCLES: usize = 6;

impl Ground {
    /// Runs cycles, each after another event has arrived.
    fn flood(&mut self) {
        for _ in 0..CYCLES {
            let name = format!("{}.json", Uuid::new_v4());
            std::fs::write(self.path("spool/events").join(name), EVENT).expect("an event");
            self.sidecar.intake.files = true;
            self.cycle();
        }
    }
}

#[tokio::test]
async fn requests_are_answered_although_events_never_stop_from_the_start_on() {
    let mut ground = Ground::new().await;
    ground.ask("r-1.json", NOTHING);
    ground.flood();
    assert_eq!(ground.count("spool/results"), 1, "it is answered");
    assert!(ground.sidecar.intake.drained, "unsettled effects are resumed");
}

#[tokio::test]
async fn deaths_and_deadlines_are_judged_although_events_never_stop() {
    let mut ground = Ground::new().await;
    ground.settle();
    let now = ground.sidecar.clock.now();
    let mut agent = Agent::new(AgentId(Uuid::new_v4()), "demo".to_owned(), String::new());
    agent.pending_exit = Some(PendingExit { due: Deadline::after(&now, 0), pane_gone: false });
    let dead = agent.agent_id;
    ground.sidecar.state.agents.insert(dead, agent);
    let events_listing = ground.sidecar.intake.events_listing;
    ground.sidecar.watches.gone.push(SeenGone { agent_id: AgentId(Uuid::new_v4()), how: Exit::Dead, events_listing });
    ground.flood();
    assert!(ground.sidecar.watches.gone.is_empty(), "a death was judged");
    assert!(!ground.sidecar.state.agents.contains_key(&dead), "a deadline was judged");
}

#[tokio::test]
async fn events_that_were_there_when_a_death_was_seen_are_decided_before_it() {
    let mut ground = Ground::new().await;
    ground.settle();
    let events_listing = ground.sidecar.intake.events_listing;
    drop_many_events(&ground);
    ground.sidecar.watches.gone.push(SeenGone { agent_id: AgentId(Uuid::new_v4()), how: Exit::Dead, events_listing });
    ground.cycle();
    assert_eq!((ground.count("spool/events"), ground.sidecar.watches.gone.len()), (1, 1), "one is left to be taken");
    ground.cycle();
    assert_eq!((ground.count("spool/events"), ground.sidecar.watches.gone.len()), (0, 0));
}

/// A listing that had begun by then may have passed over what lay there.
#[tokio::test]
async fn a_death_that_was_seen_in_the_middle_of_a_listing_waits_for_the_next() {
    let mut ground = Ground::new().await;
    ground.settle();
    drop_many_events(&ground);
    ground.sidecar.intake.files = true;
    ground.cycle();
    let events_listing = ground.sidecar.intake.events_listing;
    ground.sidecar.watches.gone.push(SeenGone { agent_id: AgentId(Uuid::new_v4()), how: Exit::Dead, events_listing });
    ground.cycle();
    assert_eq!((ground.count("spool/events"), ground.sidecar.watches.gone.len()), (0, 1), "the listing is taken");
    ground.cycle();
    assert!(ground.sidecar.watches.gone.is_empty(), "and so is the next");
}

#[tokio::test]
async fn files_in_the_trash_that_one_thread_leaves_are_deleted_by_the_next() {
    let ground = Ground::new().await;
    for number in 0..5 {
        std::fs::write(ground.path("state/reap").join(format!("f{number}")), "").expect("a file");
    }
    let mut tidy = Tidy::new();
    tidy.trash_at_tick = 2;
    let until = Instant::now() + Duration::from_secs(60);
    while ground.count("state/reap") > 0 {
        assert!(Instant::now() < until, "{} files stay until more is thrown away", ground.count("state/reap"));
        tidy.empty_trash(&ground.sidecar.spool).expect("a thread");
        std::thread::yield_now();
    }
}
