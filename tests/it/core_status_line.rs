//! The line about us in tmux's `@tasuki_status`: what it says of a state. When it changes is `tmux_status`'s.

use crate::support::ack_world::{AckWorld, HEIR, MINUTE};
use serde_json::json;
use tasuki::contract::NeedView;
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::needs::{self, AgentNeeds, HandoffNeeds};
use tasuki::core::rows::agent::AgentState;
use tasuki::core::rows::handoff::Step;
use tasuki::core::{status_line, view};

#[test]
fn the_line_counts_agents_handoffs_and_what_waits_for_a_person() {
    let empty = AckWorld::new();
    let mut none = empty.state.clone();
    none.agents.clear();
    assert_eq!(status_line::line(&none, 0, &empty.now), "");
    assert_eq!(status_line::line(&none, 2, &empty.now), "needs you: 2");
    assert_eq!(status_line::counts(&none, 2), "no agents, needs you: 2");
    let mut world = AckWorld::briefed("immediate");
    assert_eq!(status_line::line(&world.state, 0, &world.now), "1 agent · 1 handoff: acknowledging 0:00");
    assert_eq!(status_line::counts(&world.state, 0), "1 agent, 1 handoff");
    world.now.wall_ms += 70_000;
    assert_eq!(
        status_line::line(&world.state, 1, &world.now),
        "1 agent · 1 handoff: acknowledging 1:10 · needs you: 1"
    );
    world.now.wall_ms -= 10 * i64::try_from(MINUTE).expect("a minute");
    assert!(
        status_line::line(&world.state, 0, &world.now).ends_with(" 0:00"),
        "a clock that was set back counts nothing"
    );
    world.now.wall_ms += 3 * 3_600_000;
    assert!(status_line::line(&world.state, 0, &world.now).ends_with("acknowledging 2h51"));
    world.now.wall_ms += 400 * 3_600_000;
    assert!(status_line::line(&world.state, 0, &world.now).ends_with("acknowledging 16d"));
}

#[test]
fn the_line_is_short_however_much_there_is() {
    let mut world = AckWorld::briefed("immediate");
    let heir: AgentId = HEIR.parse().expect("an id");
    let (agent, handoff) = (world.state.agents[&heir].clone(), world.handoff().clone());
    for number in 0..2_000_u128 {
        let mut more = agent.clone();
        more.agent_id = AgentId(uuid::Uuid::from_u128(number));
        more.state = AgentState::Busy;
        if number >= 1_000 {
            // Anonymous ones are left alone, and not told of.
            more.persona_slug = None;
        }
        world.state.agents.insert(more.agent_id, more);
        let mut more = handoff.clone();
        more.handoff_id = HandoffId(uuid::Uuid::from_u128(number));
        more.step = if number < 10 { Step::Failed } else { Step::Instructing };
        world.state.handoffs.insert(more.handoff_id, more);
    }
    let line = status_line::line(&world.state, 999_999, &world.now);
    assert!(line.starts_with("1001 agents · 1991 handoffs: "), "{line}");
    assert!(line.ends_with(" 0:00, … · needs you: 999999") && line.chars().count() <= 160, "{line}");
}

/// The views of these rows, judged as commands judge them.
fn listed(world: &AckWorld) -> Vec<NeedView> {
    let agents: Vec<AgentNeeds> =
        world.state.agents.values().map(|agent| AgentNeeds::of(&view::agent(agent, &world.state.settings))).collect();
    let handoffs =
        world.state.handoffs.values().map(|handoff| HandoffNeeds::of(&view::handoff(handoff, &world.state.settings)));
    needs::list(&agents, &handoffs.collect::<Vec<_>>(), &[], &[])
}

#[test]
fn rows_that_wait_for_a_person_are_listed_by_their_views() {
    let mut world = AckWorld::briefed("immediate");
    assert_eq!(listed(&world), []);
    world.ack(&json!({"questions": ["Which branch is it?", "Which port?"], "status": "needs_clarification"}));
    let now = world.now.rfc3339();
    let heir = world.state.agents.get_mut(&HEIR.parse::<AgentId>().expect("an id")).expect("the successor");
    (heir.state, heir.state_since) = (AgentState::Blocked, Some(now));
    let needs = listed(&world);
    let what: Vec<&str> = needs.iter().map(|need| need.what.as_str()).collect();
    assert_eq!(what, ["dialog", "question"]);
    assert!(needs.iter().all(|need| need.since.is_some() && need.persona_slug.is_some()), "{needs:#?}");
    assert_eq!(needs[1].said, "The successor asks: Which branch is it? / Which port?");
    assert!(needs[1].command.ends_with(" --answer … --answer …"), "{}", needs[1].command);
}
