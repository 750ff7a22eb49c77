//! Single corrupt rows that are found while the sidecar runs: requests and events that name them are refused, and the
//! rest continues.

use super::tests::{Ground, NOTHING, open};
use crate::core::decision::Decision;
use crate::core::id::AgentId;
use crate::core::rows::agent::{Agent, AgentState};
use crate::store::Batch;
use serde_json::json;
use std::borrow::Borrow;

type Rows<K> = redb::TableDefinition<'static, K, &'static [u8]>;

impl Ground {
    /// The same home after a restart, with a row that is not JSON.
    async fn spoilt<'k, K: redb::Key + 'static>(self, table: Rows<K>, key: impl Borrow<K::SelfType<'k>>) -> Ground {
        let Ground { dir, sidecar, sources } = self;
        drop((sidecar, sources));
        {
            let database = redb::Database::open(dir.path().join("home/state/tasuki.redb")).expect("a redb file");
            let write = database.begin_write().expect("a transaction");
            write.open_table(table).expect("a table").insert(key, b"{".as_slice()).expect("a row");
            write.commit().expect("a commit");
        }
        let (sidecar, sources) = open(&dir).await;
        let mut ground = Ground { dir, sidecar, sources };
        ground.settle();
        ground
    }

    /// Another request is answered, and the state has no problem.
    fn assert_other_requests_work(&mut self, id: &str) {
        self.drop_again("requests", &format!("{id}.json"), NOTHING);
        assert_eq!(self.answer(id)["error"]["code"], "no_agent");
        assert!(self.sidecar.health.problem.is_none() && self.sidecar.health.failures == 0);
    }
}

#[tokio::test]
async fn a_corrupt_ledger_row_refuses_its_own_request_and_no_other() {
    let mut ground = Ground::new().await;
    ground.drop_again("requests", "r1.json", NOTHING);
    let first = ground.answer("r1");
    let mut ground = ground.spoilt(Rows::<&str>::new("ledger"), "r1").await;
    ground.drop_again("requests", "r1.json", NOTHING);
    assert_eq!(ground.answer("r1"), first, "the one answer stays");
    assert_eq!(ground.count("spool/rejected"), 2, "the file and the reason");
    ground.assert_other_requests_work("r2");
    // The answer is gone too, so tasuki says that it does not know it.
    std::fs::remove_file(ground.path("spool/results/r1.json")).expect("removed");
    ground.drop_again("requests", "r1.json", NOTHING);
    let answer = ground.answer("r1");
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(500), &json!("state_damaged")), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("ledger")), "{answer}");
    ground.assert_other_requests_work("r3");
}

#[tokio::test]
async fn a_corrupt_row_of_history_refuses_only_requests_that_name_it() {
    let mut ground = Ground::new().await;
    ground.settle();
    let mut agent = Agent::new(AgentId(uuid::Uuid::new_v4()), "demo".to_owned(), "then".to_owned());
    agent.state = AgentState::Ended;
    let now = ground.sidecar.clock.now();
    let decision = Decision { agents: [(agent.agent_id, agent.clone())].into(), ..Decision::default() };
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    let mut ground = ground.spoilt(Rows::<u128>::new("agents_past"), agent.agent_id.0.as_u128()).await;
    let id = agent.agent_id;
    let kinds = [
        json!({"v": 1, "kind": "agent_send", "agent_id": id, "text": "t"}),
        json!({"v": 1, "kind": "handoff", "agent_id": id, "reason": "r"}),
    ];
    for (number, request) in kinds.iter().enumerate() {
        ground.drop_again("requests", &format!("h{number}.json"), &request.to_string());
        let answer = ground.answer(&format!("h{number}"));
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(500), &json!("state_damaged")), "{answer}");
    }
    // An event is taken all the same.
    let start = json!({"v": 1, "event": "session_start", "agent_id": id, "session_id": "s"});
    ground.drop_again("events", "e1.json", &start.to_string());
    assert_eq!(ground.count("spool/events"), 0);
    ground.assert_other_requests_work("r1");
}

#[tokio::test]
async fn an_event_whose_row_is_corrupt_is_rejected_whole() {
    let mut ground = Ground::new().await;
    let event = json!({"v": 1, "event": "notification", "payload": {}}).to_string();
    ground.drop_again("events", "e1.json", &event);
    let mut ground = ground.spoilt(Rows::<&str>::new("seen_events"), "e1.json").await;
    ground.drop_again("events", "e1.json", &event);
    assert_eq!((ground.count("spool/events"), ground.count("spool/rejected")), (0, 2));
    let why = std::fs::read_dir(ground.path("spool/rejected")).expect("a folder").map(|entry| entry.expect("a file"));
    let why = why.map(|entry| entry.path()).find(|path| path.to_string_lossy().ends_with(".why.json"));
    let why = std::fs::read_to_string(why.expect("the reason")).expect("a text");
    assert!(why.contains("if it was not, put it into events/ again under another name"), "{why}");
    ground.drop_again("events", "e2.json", &event);
    assert_eq!((ground.count("spool/events"), ground.count("spool/rejected")), (0, 2));
    ground.assert_other_requests_work("r1");
}
