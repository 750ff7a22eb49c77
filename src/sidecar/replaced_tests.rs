//! The loop after its state file was replaced, by a new one or by an older copy, and after commits that failed.

use super::short_tests::without_descriptors;
use super::tests::Ground;
use crate::core::decision::{Decision, ErrorRow};
use crate::core::id::{AgentId, ErrorId};
use crate::core::rows::agent::Agent;
use crate::spool::OutputFile;
use crate::store::Batch;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

const WORK: &str = r#"{"v":1,"kind":"work_create","type":"task","title":"t"}"#;

impl Ground {
    fn journal(&self) -> Vec<Value> {
        let text = String::from_utf8(self.read("spool/journal.jsonl")).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// An agent that has ended long ago, with a failure that nobody has dismissed, as they are after a commit.
    fn failed_agent(&mut self) -> (AgentId, ErrorId) {
        let now = self.sidecar.clock.now();
        let mut agent = Agent::new(AgentId(Uuid::new_v4()), "demo".to_owned(), String::new());
        agent.ended_at = Some("2020-01-01T00:00:00.000Z".to_owned());
        let row = ErrorRow {
            error_id: ErrorId(Uuid::new_v4()),
            at: "2020-01-01T00:00:00.000Z".to_owned(),
            code: "agent_died".to_owned(),
            message: "It has died.".to_owned(),
            hint: "Look.".to_owned(),
            handoff_id: None,
            agent_id: Some(agent.agent_id),
            step: None,
        };
        let ids = (agent.agent_id, row.error_id);
        let decision = Decision {
            next_seq: self.sidecar.state.next_seq,
            agents: [(agent.agent_id, agent)].into(),
            errors: vec![row],
            ..Decision::default()
        };
        self.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
        self.sidecar.projection.show(&self.sidecar.spool, &now, &decision, &self.sidecar.state.settings);
        ids
    }

    /// Drops more requests than one batch takes, and fails the commit of the first batch. Returns their number.
    fn fail_a_batch(&mut self) -> usize {
        let many = super::intake::BATCH + 44;
        for number in 0..many {
            self.ask(&format!("r-{number:03}.json"), WORK);
        }
        self.sidecar.intake.files = true;
        self.without_state();
        self.cycle();
        assert!(self.sidecar.health.failures > 0, "the commit has failed");
        many
    }

    /// That so many requests, `r-000` and those after it, were decided in the order of their numbers.
    fn assert_decided_in_order(&self, many: usize) {
        let asked = |line: &Value| line["item_id"].as_str().map(str::to_owned).filter(|_| line["action"] == "created");
        let created: Vec<_> = self.journal().iter().filter_map(asked).map(Some).collect();
        let answered =
            |number: usize| self.answer(&format!("r-{number:03}"))["result"]["item_id"].as_str().map(str::to_owned);
        assert_eq!(created, (0..many).map(answered).collect::<Vec<_>>());
    }

    /// How many errors tell the operator that the state file was replaced.
    fn replacements_told(&self) -> usize {
        let files = std::fs::read_dir(self.path("spool/errors")).expect("a folder");
        let texts = files.map(|file| std::fs::read_to_string(file.expect("a file").path()).unwrap_or_default());
        texts.filter(|text| text.contains("\"state_replaced\"") && text.contains("tasuki agent register")).count()
    }

    fn has(&self, file: &OutputFile) -> bool {
        self.sidecar.spool.exists(file).expect("a look")
    }
}

#[tokio::test]
async fn requests_are_decided_in_their_order_after_a_commit_that_failed() {
    let mut ground = Ground::new().await;
    ground.settle();
    let many = ground.fail_a_batch();
    ground.with_state_again();
    ground.assert_decided_in_order(many);
}

/// A copy of before the commit has nothing of it, so the whole batch is decided once more.
#[tokio::test]
async fn requests_are_decided_in_their_order_after_a_commit_that_was_lost() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.checkpoint();
    let (state, copy) = (ground.path("state/tasuki.redb"), ground.path("state/copy"));
    std::fs::copy(&state, &copy).expect("copied");
    let many = ground.fail_a_batch();
    std::fs::rename(&copy, &state).expect("put in its place");
    let until = Instant::now() + Duration::from_secs(60);
    while ground.sidecar.health.again.is_some() {
        assert!(Instant::now() < until, "the copy is never taken");
        ground.store_is_due();
        ground.cycle();
    }
    ground.settle();
    ground.assert_decided_in_order(many);
}

#[tokio::test]
async fn with_a_new_state_file_failures_stay_and_views_of_what_nobody_knows_go() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.drop_again("requests", "r-1.json", WORK);
    let (agent, error) = ground.failed_agent();
    let (view, file) = (OutputFile::Agent(agent), OutputFile::Error(error));
    assert!(ground.has(&view) && ground.has(&file));
    ground.checkpoint();
    std::fs::rename(ground.path("state/tasuki.redb"), ground.path("state/away")).expect("moved away");
    for start in ["the first", "the second"] {
        ground = ground.restarted().await;
        ground.settle();
        ground.checkpoint();
        assert!(ground.has(&file), "{start} start has removed a failure that nobody has dismissed");
        assert!(!ground.has(&view), "{start} start shows an agent that it does not know");
        assert_eq!(ground.replacements_told(), 1, "after {start} start");
    }
    let dismiss = format!(r#"{{"v":1,"kind":"error_dismiss","error_id":"{error}"}}"#);
    ground.drop_again("requests", "d-1.json", &dismiss);
    assert!(!ground.has(&file), "{}", ground.answer("d-1"));
}

#[tokio::test]
async fn failures_that_a_new_state_file_can_not_take_stay_at_every_start() {
    let mut ground = Ground::new().await;
    ground.settle();
    let [(_, later), (_, spoilt)] = [ground.failed_agent(), ground.failed_agent()];
    let [later, spoilt] = [later, spoilt].map(|id| (OutputFile::Error(id), id));
    let text = format!(r#"{{"v":2,"error_id":"{}","code":"agent_died","hint":["one","two"]}}"#, later.1);
    std::fs::write(ground.sidecar.spool.path_of(&later.0), text).expect("as a later version writes it");
    std::fs::write(ground.sidecar.spool.path_of(&spoilt.0), "no JSON").expect("as a damaged disk has it");
    ground.checkpoint();
    std::fs::rename(ground.path("state/tasuki.redb"), ground.path("state/away")).expect("moved away");
    for start in ["the first", "the second", "the third"] {
        ground = ground.restarted().await;
        ground.settle();
        ground.checkpoint();
        for (file, _) in [&later, &spoilt] {
            assert!(ground.has(file), "{start} start has removed a failure that nobody has dismissed");
        }
    }
    assert!(ground.sidecar.store.has_error(&later.1).expect("readable"), "it can be read in part");
}

#[tokio::test]
async fn failures_that_could_not_be_listed_stay_at_the_next_start() {
    let mut ground = Ground::new().await;
    ground.drop_again("requests", "r-1.json", WORK);
    let (_, error) = ground.failed_agent();
    ground.checkpoint();
    // The state file is an older copy: it does not know the failure, and its next line has a number of the journal.
    ground.sidecar.store.forget_errors(&[error]).expect("a commit");
    let (now, loaded) = (ground.sidecar.clock.now(), ground.sidecar.store.load().expect("readable"));
    let next_seq = std::mem::replace(&mut ground.sidecar.state.next_seq, 1);
    let Some(done) = without_descriptors(|| ground.sidecar.reproject_all(loaded, &now)) else { return };
    done.expect("the store can be written");
    assert!(ground.sidecar.state.next_seq >= next_seq);
    let ground = ground.restarted().await;
    assert!(ground.has(&OutputFile::Error(error)), "a failure that nobody has dismissed was removed");
    assert!(ground.sidecar.store.has_error(&error).expect("readable"));
}

#[tokio::test]
async fn views_are_not_marked_as_complete_while_the_past_can_not_be_read() {
    let mut ground = Ground::new().await;
    ground.settle();
    std::fs::write(ground.path("view/.built"), "another").expect("another home's mark");
    let (now, loaded) = (ground.sidecar.clock.now(), ground.sidecar.store.load().expect("readable"));
    ground.without_state();
    assert!(ground.sidecar.store.reopen().is_err(), "it is closed");
    ground.sidecar.reproject_all(loaded, &now).expect("it goes without");
    assert!(!ground.has(&OutputFile::ViewsTag));
}

#[tokio::test]
async fn with_an_older_copy_of_the_state_file_failures_stay_and_the_journal_continues() {
    let mut ground = Ground::new().await;
    ground.drop_again("requests", "r-1.json", WORK);
    ground.checkpoint();
    let (state, copy) = (ground.path("state/tasuki.redb"), ground.path("state/copy"));
    let put_by = |from: &Path, to: &Path| std::fs::copy(from, to).map(drop).expect("copied");
    ground = ground.restarted().await;
    ground.settle();
    put_by(&state, &copy);
    ground.drop_again("requests", "r-2.json", WORK);
    let (_, error) = ground.failed_agent();
    ground.checkpoint();
    let last = ground.journal().last().expect("a line")["seq"].as_u64().expect("a number");
    drop((ground.sidecar, ground.sources));
    put_by(&copy, &state);
    let (sidecar, sources) = super::tests::open(&ground.dir).await;
    let mut ground = Ground { dir: ground.dir, sidecar, sources };
    ground.drop_again("requests", "r-3.json", WORK);
    assert!(ground.has(&OutputFile::Error(error)), "a failure that nobody has dismissed was removed");
    let seqs: Vec<u64> = ground.journal().iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "{seqs:?}");
    assert!(seqs.len() as u64 > last, "what happened since has no line");
    assert_eq!(ground.replacements_told(), 1);
}

#[tokio::test]
async fn the_view_of_an_agent_stays_while_an_error_names_it() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (agent, error) = ground.failed_agent();
    ground.sidecar.state.agents.remove(&agent);
    // Ages are counted by a clock that believes a jump only after a while.
    let mut far = crate::core::time::Now { wall_ms: 4_000_000_000_000, ..ground.sidecar.clock.now() };
    let mut clean = |ground: &mut Ground| {
        for _ in 0..240 {
            far.boot_ms += 60_000;
            ground.sidecar.tidy.ticked();
            let (state, store) = (&ground.sidecar.state, &ground.sidecar.store);
            ground.sidecar.tidy.clean_spool(&mut ground.sidecar.spool, (state, store), &far);
        }
    };
    clean(&mut ground);
    assert!(ground.has(&OutputFile::Agent(agent)), "the error's hint asks for commands about it");
    ground.sidecar.store.forget_errors(&[error]).expect("dismissed");
    clean(&mut ground);
    assert!(!ground.has(&OutputFile::Agent(agent)));
}

/// What becomes of an effect that is being carried out would be taken for the outcome of another one.
#[tokio::test]
async fn with_an_older_copy_of_the_state_file_no_effect_gets_the_number_of_a_running_effect() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.checkpoint();
    ground.sidecar.state.next_effect = ground.sidecar.state.next_effect.max(7_000);
    let now = ground.sidecar.clock.now();
    let until = Instant::now() + Duration::from_secs(60);
    while !ground.sidecar.reload_state(&now).expect("it can be read") {
        assert!(Instant::now() < until, "it is never read again");
    }
    assert!(ground.sidecar.state.next_effect >= 7_000, "{:?}", ground.sidecar.state.next_effect);
}
