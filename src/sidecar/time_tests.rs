//! Deadlines across a reboot and a suspend of the machine.

use super::tests::Ground;
use crate::core::decision::Decision;
use crate::core::id::AgentId;
use crate::core::rows::agent::{Agent, AgentState, Primed};
use crate::core::rows::item::RollbackWatch;
use crate::core::state::State;
use crate::core::time::{Deadline, Now};
use crate::store::Batch;

const TEN_YEARS_MS: i64 = 315_000_000_000;
const LENGTH_MS: u64 = 60_000;

/// An agent whose priming has this deadline.
fn primed_until(deadline: Deadline) -> Agent {
    let mut agent = Agent::new(AgentId(uuid::Uuid::new_v4()), "demo".to_owned(), "then".to_owned());
    agent.persona_slug = Some("dev".parse().expect("a slug"));
    agent.state = AgentState::Idle;
    agent.primed = Primed::Begun;
    agent.priming_deadline = Some(deadline);
    agent
}

fn put(ground: &mut Ground, agents: &[&Agent]) {
    let agents = agents.iter().map(|agent| (agent.agent_id, (*agent).clone())).collect();
    let decision = Decision { agents, ..Decision::default() };
    let now = ground.sidecar.clock.now();
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
}

fn left(ground: &Ground, agent: &Agent, now: &Now) -> u64 {
    let row = &ground.sidecar.state.agents[&agent.agent_id];
    row.priming_deadline.expect("it runs").remaining_ms(now)
}

/// Ends the grace period, so that deadlines are judged.
fn without_grace(ground: &mut Ground) {
    let now = ground.sidecar.clock.now();
    ground.sidecar.timers.grace = Some(Deadline::after(&now, 0));
    ground.settle();
}

#[tokio::test]
async fn deadlines_of_another_boot_are_neither_lost_nor_doubled_nor_early() {
    let mut ground = Ground::new().await;
    ground.settle();
    let now = ground.sidecar.clock.now();
    let then = |shift_ms: i64| Now { wall_ms: now.wall_ms + shift_ms, boot: !now.boot, boot_ms: 77_777_777 };
    let right = primed_until(Deadline::after(&then(0), LENGTH_MS));
    let set_back = primed_until(Deadline::after(&then(TEN_YEARS_MS), LENGTH_MS));
    let set_ahead = primed_until(Deadline::after(&then(-TEN_YEARS_MS), LENGTH_MS));
    put(&mut ground, &[&right, &set_back, &set_ahead]);
    let mut ground = ground.restarted().await;
    let now = ground.sidecar.clock.now();
    let soon = LENGTH_MS - 20_000..=LENGTH_MS;
    assert!(soon.contains(&left(&ground, &right, &now)), "{}", left(&ground, &right, &now));
    assert!(soon.contains(&left(&ground, &set_back, &now)), "never more than its length");
    assert_eq!(left(&ground, &set_ahead, &now), 0, "it is over, and not lost");
    // From now on they are counted in this boot: a wall clock that is set right again moves none of them.
    for shift_ms in [TEN_YEARS_MS, -TEN_YEARS_MS] {
        let jumped = Now { wall_ms: now.wall_ms + shift_ms, ..now };
        assert_eq!(left(&ground, &right, &jumped), left(&ground, &right, &now));
        assert_eq!(left(&ground, &set_back, &jumped), left(&ground, &set_back, &now));
    }
    ground.settle();
    assert_eq!(ground.count("spool/errors"), 0, "at the start there is a grace: what happened comes first");
    without_grace(&mut ground);
    assert_eq!(ground.count("spool/errors"), 1, "the deadline that has passed is judged");
    let before = left(&ground, &right, &ground.sidecar.clock.now());
    let mut ground = ground.restarted().await;
    without_grace(&mut ground);
    assert_eq!(ground.count("spool/errors"), 1, "and only once");
    assert!(left(&ground, &right, &ground.sidecar.clock.now()) <= before, "a restart gives no time");
}

/// The first start of a boot notes in the store how much of a completion's limit is left. Without that, each later
/// start would compute it again, from whatever the wall clock says then.
#[tokio::test]
async fn the_limit_of_a_completion_is_converted_to_a_boot_only_once() {
    let mut ground = Ground::new().await;
    ground.drop_again("requests", "w.json", r#"{"v":1,"kind":"work_create","type":"task","title":"t"}"#);
    let now = ground.sidecar.clock.now();
    let then = Now { boot: !now.boot, boot_ms: 77_777_777, ..now };
    let mut item = ground.sidecar.state.items.values().next().expect("an item").clone();
    item.watch = Some(RollbackWatch { deadline: Some(Deadline::after(&then, LENGTH_MS)) });
    let id = item.item_id;
    let decision = Decision { items: [(id, item)].into(), ..Decision::default() };
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    let ground = ground.restarted().await;
    let limit = |state: &State| state.items.get(&id).and_then(|item| item.watch.as_ref()?.deadline).expect("it runs");
    let (here, stored) = (limit(&ground.sidecar.state), limit(&ground.sidecar.store.load().expect("rows").state));
    assert_eq!(stored, here);
    let ahead = Now { wall_ms: now.wall_ms + TEN_YEARS_MS, ..ground.sidecar.clock.now() };
    assert!(stored.rebased(&ahead).remaining_ms(&ahead) > 0, "a wall clock that jumps takes no time from it");
}

#[tokio::test]
async fn after_a_sleep_events_are_decided_before_deadlines() {
    let mut ground = Ground::new().await;
    ground.settle();
    let now = ground.sidecar.clock.now();
    let agent = primed_until(Deadline::after(&now, 0));
    put(&mut ground, &[&agent]);
    ground.sidecar.state.agents.insert(agent.agent_id, agent.clone());
    let asleep_ms = 20_000;
    let before = Now { boot_ms: now.boot_ms.saturating_sub(asleep_ms), ..now };
    ground.sidecar.timers.last_cycle = Some(before);
    ground.settle();
    assert_eq!(ground.count("spool/errors"), 0, "nothing is judged at once");
    assert!(ground.sidecar.timers.grace.is_some_and(|grace| !grace.is_due(&ground.sidecar.clock.now())));
    without_grace(&mut ground);
    assert_eq!(ground.count("spool/errors"), 1, "but it is judged");
}

/// A pause of the loop counts as a gap from five seconds on, but not if the loop meant to sleep that long: an idle loop
/// wakes every five seconds.
#[tokio::test]
async fn a_gap_of_five_seconds_gives_deadlines_a_grace_and_a_tick_does_not() {
    let mut ground = Ground::new().await;
    ground.settle();
    for (meant_ms, passed_ms, is_gap) in
        [(5_000, 6_000, true), (0, 5_100, true), (1_000, 6_000, true), (5_000, 5_200, false), (0, 4_900, false)]
    {
        let now = Now { boot_ms: 100_000, ..ground.sidecar.clock.now() };
        ground.sidecar.timers.grace = None;
        ground.sidecar.timers.meant_to_sleep_ms = meant_ms;
        ground.sidecar.timers.last_cycle = Some(Now { boot_ms: now.boot_ms - passed_ms, ..now });
        ground.sidecar.timers.mind_the_gap(&now);
        assert_eq!(ground.sidecar.timers.grace.is_some(), is_gap, "meant {meant_ms}, passed {passed_ms}");
    }
}

/// More events than one commit takes, of an agent that nobody knows.
pub(super) fn drop_many_events(ground: &Ground) {
    let event = r#"{"v":1,"event":"notification","agent_id":"00000000-0000-4000-8000-000000000000","message":"m"}"#;
    for number in 0..=super::intake::BATCH {
        std::fs::write(ground.path("spool/events").join(format!("e{number}.json")), event).expect("an event");
    }
}

#[tokio::test]
async fn at_the_start_every_event_comes_before_the_first_request() {
    let mut ground = Ground::new().await;
    drop_many_events(&ground);
    ground.ask("r1.json", super::tests::NOTHING);
    ground.cycle();
    assert_eq!((ground.count("spool/events"), ground.count("spool/results")), (1, 0));
    ground.settle();
    assert_eq!((ground.count("spool/events"), ground.count("spool/results")), (0, 1));
}

#[tokio::test]
async fn a_deadline_waits_until_every_event_is_taken() {
    let mut ground = Ground::new().await;
    ground.settle();
    let now = ground.sidecar.clock.now();
    let agent = primed_until(Deadline::after(&now, 0));
    ground.sidecar.state.agents.insert(agent.agent_id, agent.clone());
    drop_many_events(&ground);
    ground.cycle();
    let runs = |ground: &Ground| ground.sidecar.state.agents[&agent.agent_id].priming_deadline.is_some();
    assert!(ground.count("spool/events") == 1 && runs(&ground), "it was judged beside events that lay there");
    ground.settle();
    assert!(ground.count("spool/events") == 0 && !runs(&ground), "and then it falls");
}

/// A listing that had begun by then may have passed over what lay there.
#[tokio::test]
async fn a_deadline_that_falls_in_the_middle_of_a_listing_waits_for_the_next() {
    let mut ground = Ground::new().await;
    ground.settle();
    drop_many_events(&ground);
    ground.sidecar.intake.files = true;
    ground.cycle();
    let agent = primed_until(Deadline::after(&ground.sidecar.clock.now(), 0));
    ground.sidecar.state.agents.insert(agent.agent_id, agent.clone());
    let runs = |ground: &Ground| ground.sidecar.state.agents[&agent.agent_id].priming_deadline.is_some();
    ground.cycle();
    assert!(ground.count("spool/events") == 0 && runs(&ground), "the listing is taken");
    ground.cycle();
    assert!(!runs(&ground), "and so is the next");
}
