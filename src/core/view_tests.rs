//! Compares views and error files byte for byte, because other programs read them.

use super::*;
use crate::contract::text;
use crate::core::decision::ErrorRow;
use crate::core::id::{AgentId, ErrorId, HandoffId};
use crate::core::pane::{PaneRef, Process, ServerId};
use crate::core::rows::agent::{AgentState, Asker, Queued};
use crate::core::settings::ProfileFacts;
use crate::core::time::{Deadline, Now};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Settings with a profile that says how a session is opened again.
fn settings() -> Settings {
    let resume = ["claude", "--resume", "{session_id}"].map(str::to_owned).to_vec();
    let claude = ProfileFacts { name: "claude".to_owned(), resume, ..ProfileFacts::demo() };
    Settings { profiles: BTreeMap::from([("claude".to_owned(), claude)]), ..Settings::default() }
}

fn an_agent() -> Agent {
    let own = |text: &str| Some(text.to_owned());
    let agent_id = |number| AgentId(Uuid::from_u128(number));
    let mut agent = Agent::new(agent_id(1), "claude".to_owned(), "2026-11-23T08:00:00.000Z".to_owned());
    agent.persona_slug = Some("kai".to_owned().try_into().expect("a slug"));
    agent.pane = Some(PaneRef { server: ServerId { pid: 7, start_time: 8 }, pane: 3, pid: 9 });
    agent.process = Some(Process { pid: 10, start_ticks: 11 });
    (agent.tmux_session, agent.cwd) = (own("tasuki"), own("/srv/a \"b\"\n"));
    (agent.session.id, agent.transcript_path) = (own("s-1"), own("/t.jsonl"));
    agent.state = AgentState::Blocked;
    (agent.previous_agent_id, agent.successor_id) = (Some(agent_id(2)), Some(agent_id(3)));
    agent.handoff_id = Some(HandoffId(Uuid::from_u128(4)));
    agent.recorded_in = Some(HandoffId(Uuid::from_u128(7)));
    (agent.registered_at, agent.ended_at) = (own("2026-11-23T08:00:01.000Z"), own("2026-11-23T08:00:02.000Z"));
    (agent.ours, agent.hooks_seen, agent.primed) = (true, true, Primed::Done);
    agent.reopened_from = Some(agent_id(6));
    let deadline = Deadline::after(&Now { wall_ms: 0, boot: 1, boot_ms: 0 }, 5);
    let asker = Asker::Message(HandoffId(Uuid::from_u128(4)), 1);
    agent.queue = vec![Queued { asker, text: "hello".to_owned(), deadline }];
    agent.context = Some(ContextUsage { used: 90_000, window: Some(200_000) });
    agent.context_watch.guessed = true;
    agent
}

#[test]
fn an_agent_s_view_stays_as_it_is() {
    let mut agent = an_agent();
    assert_eq!(
        text(&super::agent(&agent, &settings())),
        concat!(
            r#"{"agent_id":"00000000-0000-0000-0000-000000000001","#,
            r#""context":{"percent":45,"used":90000,"window":200000,"window_is_guess":true},"#,
            r#""created_at":"2026-11-23T08:00:00.000Z","cwd":"/srv/a \"b\"\n","ended_at":"2026-11-23T08:00:02.000Z","#,
            r#""handoff_id":"00000000-0000-0000-0000-000000000004","handoff_suggested":false,"hooks":"seen","#,
            r#""limited":null,"model":null,"pane":"%3","persona_slug":"kai","pid":10,"#,
            r#""previous_agent_id":"00000000-0000-0000-0000-000000000002","primed":true,"profile":"claude","#,
            r#""recorded_in":"00000000-0000-0000-0000-000000000007","#,
            r#""registered_at":"2026-11-23T08:00:01.000Z","reopened":true,"#,
            r#""reopened_from":"00000000-0000-0000-0000-000000000006","resume_command":"claude --resume s-1","#,
            r#""session_id":"s-1","started_by_tasuki":true,"state":"blocked","#,
            r#""state_since":"2026-11-23T08:00:00.000Z","successor_id":"00000000-0000-0000-0000-000000000003","#,
            r#""tmux_session":"tasuki","transcript_path":"/t.jsonl","#,
            r#""v":1,"waiting_texts":1}"#,
        )
    );
    for state in ["starting", "idle", "busy", "blocked", "ended", "lost"] {
        agent.state = serde_json::from_value(state.into()).expect("a state");
        assert_eq!(super::agent(&agent, &settings()).state.as_str(), state);
    }
}

#[test]
fn unknown_fields_of_an_agent_are_null() {
    let agent = Agent::new(AgentId(Uuid::from_u128(1)), "codex".to_owned(), "2026-11-23T08:00:00.000Z".to_owned());
    assert_eq!(
        text(&super::agent(&agent, &settings())),
        concat!(
            r#"{"agent_id":"00000000-0000-0000-0000-000000000001","context":null,"created_at":"2026-11-23T08:00:00.000Z","#,
            r#""cwd":null,"ended_at":null,"handoff_id":null,"handoff_suggested":false,"hooks":"unseen","#,
            r#""limited":null,"model":null,"pane":null,"persona_slug":null,"pid":null,"#,
            r#""previous_agent_id":null,"primed":false,"profile":"codex","recorded_in":null,"registered_at":null,"reopened":false,"#,
            r#""reopened_from":null,"resume_command":null,"session_id":null,"#,
            r#""started_by_tasuki":false,"state":"starting","state_since":"2026-11-23T08:00:00.000Z","#,
            r#""successor_id":null,"tmux_session":null,"transcript_path":null,"v":1,"waiting_texts":0}"#,
        )
    );
}

#[test]
fn an_error_file_stays_as_it_is() {
    let (handoff_id, agent_id) = (HandoffId(Uuid::from_u128(4)), AgentId(Uuid::from_u128(1)));
    let row = ErrorRow {
        error_id: ErrorId(Uuid::from_u128(5)),
        at: "2026-11-23T08:00:00.000Z".to_owned(),
        code: "not_delivered".to_owned(),
        message: "It has not arrived.".to_owned(),
        hint: "Look.".to_owned(),
        handoff_id: Some(handoff_id),
        agent_id: Some(agent_id),
        step: Some("briefing".to_owned()),
    };
    assert_eq!(
        text(&row.file()),
        concat!(
            r#"{"agent_id":"00000000-0000-0000-0000-000000000001","at":"2026-11-23T08:00:00.000Z","code":"not_delivered","#,
            r#""error_id":"00000000-0000-0000-0000-000000000005","handoff_id":"00000000-0000-0000-0000-000000000004","#,
            r#""hint":"Look.","message":"It has not arrived.","step":"briefing","v":1}"#,
        )
    );
    let row = ErrorRow { handoff_id: None, agent_id: None, step: None, ..row };
    assert!(text(&row.file()).starts_with(r#"{"agent_id":null,"#) && text(&row.file()).contains(r#""step":null,"#));
}
