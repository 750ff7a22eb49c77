//! The line about us in tmux's `@tasuki_status`: what it says of a state. When it changes is `tmux_status`'s.

use crate::support::ack_world::{AckWorld, HEIR, MINUTE};
use serde_json::json;
use tasuki::core::id::{AgentId, HandoffId};
use tasuki::core::rows::agent::AgentState;
use tasuki::core::rows::handoff::Step;
use tasuki::core::status_line;

#[test]
fn the_line_counts_agents_handoffs_and_errors() {
    let empty = AckWorld::new();
    let mut none = empty.state.clone();
    none.agents.clear();
    assert_eq!(status_line::line(&none, 0, &empty.now), "");
    assert_eq!(status_line::line(&none, 2, &empty.now), "2 errors");
    let mut world = AckWorld::briefed("immediate");
    assert_eq!(status_line::line(&world.state, 0, &world.now), "1 agent · 1 handoff: acknowledging 0:00");
    world.now.wall_ms += 70_000;
    assert_eq!(status_line::line(&world.state, 1, &world.now), "1 agent · 1 handoff: acknowledging 1:10 · 1 error");
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
        more.state = if number < 7 { AgentState::Blocked } else { AgentState::Busy };
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
    assert!(line.starts_with("1001 agents · 7 blocked · 1991 handoffs: "), "{line}");
    assert!(line.ends_with(" 0:00, … · 999999 errors") && line.chars().count() <= 160, "{line}");
}

#[test]
fn the_line_tells_of_questions() {
    let mut world = AckWorld::briefed("immediate");
    world.ack(&json!({"questions": ["Which branch is it?", "Which port?"], "status": "needs_clarification"}));
    let line = status_line::line(&world.state, 0, &world.now);
    assert!(line.ends_with("acknowledging 0:00 · 2 questions"), "{line}");
}
