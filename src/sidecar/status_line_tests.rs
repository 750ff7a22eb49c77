//! The count of what waits for a person follows decisions and, for history, the files.

use super::*;
use crate::core::decision::ErrorRow;
use crate::core::rows::agent::AgentState;
use crate::core::settings::Settings;
use crate::sidecar::tests::Ground;
use serde_json::json;

const AT: &str = "2026-11-25T08:00:00.000Z";

const HANDOFF: HandoffId = HandoffId(Uuid::from_u128(2));
const ERROR: ErrorId = ErrorId(Uuid::from_u128(3));

/// The view of a handoff in this step, which has failed at some time.
fn view(step: &str) -> String {
    let error = json!({"error_id": ERROR, "step": "writing", "code": "document_missing"});
    json!({"handoff_id": HANDOFF, "step": step, "error": error}).to_string()
}

fn agent(state: AgentState) -> Decision {
    let mut agent = Agent::new(AgentId(Uuid::from_u128(1)), "demo".to_owned(), AT.to_owned());
    agent.persona_slug = "kai".parse().ok();
    agent.state = state;
    Decision { agents: BTreeMap::from([(agent.agent_id, agent)]), ..Decision::default() }
}

#[tokio::test]
async fn a_dialog_counts_until_it_is_answered_and_a_failure_until_it_is_dismissed() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (spool, line) = (&ground.sidecar.spool, &mut ground.sidecar.status_line);
    let counted = |line: &mut StatusLine, decision: &Decision| {
        line.judge(spool, decision, &Settings::default());
        line.count
    };
    assert_eq!(counted(line, &agent(AgentState::Blocked)), 1);
    let (handoff_id, error_id) = (HANDOFF, ERROR);
    let row = ErrorRow {
        error_id,
        at: AT.to_owned(),
        code: "document_missing".to_owned(),
        message: "There is no document.".to_owned(),
        hint: String::new(),
        handoff_id: Some(handoff_id),
        agent_id: None,
        step: Some("writing".to_owned()),
    };
    spool.put(&OutputFile::Handoff(handoff_id), view("failed").as_bytes()).expect("a view");
    spool.put_error(&error_id, contract::text(&row.file()).as_bytes()).expect("an error file");
    assert_eq!(counted(line, &Decision { errors: vec![row], ..Decision::default() }), 2);
    assert_eq!(counted(line, &agent(AgentState::Busy)), 1);
    assert_eq!(counted(line, &agent(AgentState::Blocked)), 2);
    assert_eq!(counted(line, &agent(AgentState::Ended)), 1);
    // Somebody deletes the file, and no decision tells of it.
    spool.remove(&OutputFile::Error(error_id)).expect("dismissed");
    line.judge_all(spool, &State::default());
    assert_eq!((line.count, line.needs.handoffs.len(), line.needs.failures.len()), (0, 0, 0));
}

#[tokio::test]
async fn an_agent_that_has_died_counts_until_a_successor_continues_its_work() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (spool, line) = (&ground.sidecar.spool, &mut ground.sidecar.status_line);
    let agent_id = AgentId(Uuid::from_u128(1));
    let file = json!({"error_id": ERROR, "agent_id": agent_id, "code": "agent_died"});
    spool.put_error(&ERROR, file.to_string().as_bytes()).expect("an error file");
    let mut died = agent(AgentState::Ended);
    line.judge_all(spool, &State::default());
    line.judge(spool, &died, &Settings::default());
    assert_eq!(line.count, 1);
    died.agents.get_mut(&agent_id).expect("it is there").successor_id = Some(AgentId(Uuid::from_u128(9)));
    line.judge(spool, &died, &Settings::default());
    assert_eq!(line.count, 0);
    // After a start, the agent is history: only its view tells of it.
    let view = json!({"agent_id": agent_id, "state": "ended", "ended_at": AT, "successor_id": ERROR});
    spool.put(&OutputFile::Agent(agent_id), view.to_string().as_bytes()).expect("a view");
    line.judge_all(spool, &State::default());
    assert_eq!((line.count, line.needs.agents.len()), (0, 1));
    spool.remove(&OutputFile::Error(ERROR)).expect("dismissed");
    line.judge_all(spool, &State::default());
    assert_eq!((line.count, line.needs.agents.len()), (0, 0));
}

#[tokio::test]
async fn after_a_start_a_failure_counts_unless_its_handoff_has_ended_well() {
    for (step, expected) in [("failed", 1), ("done", 0), ("cancelled", 0)] {
        let mut ground = Ground::new().await;
        ground.settle();
        let (handoff_id, error_id) = (HANDOFF, ERROR);
        let file =
            json!({"error_id": error_id, "handoff_id": handoff_id, "step": "writing", "code": "document_missing"});
        let (spool, line) = (&ground.sidecar.spool, &mut ground.sidecar.status_line);
        spool.put(&OutputFile::Handoff(handoff_id), view(step).as_bytes()).expect("a view");
        spool.put_error(&error_id, file.to_string().as_bytes()).expect("an error file");
        line.judge_all(spool, &State::default());
        assert_eq!(line.count, expected, "{step}");
    }
}

#[tokio::test]
async fn a_sidecar_that_can_not_do_all_of_its_work_counts_itself() {
    let mut ground = Ground::new().await;
    ground.settle();
    let now = ground.sidecar.clock.now();
    ground.sidecar.intake.problem = Some("the spool can't be read".to_owned());
    ground.sidecar.heartbeat(&now);
    assert_eq!(ground.sidecar.status_line.count, 1);
    ground.sidecar.intake.problem = None;
    ground.sidecar.heartbeat(&now);
    assert_eq!(ground.sidecar.status_line.count, 0);
}
