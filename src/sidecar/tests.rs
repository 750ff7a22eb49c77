//! The loop when the disk fails under it: cycles are run one by one, without waiting for time to pass.

use super::parts::Sidecar;
use super::start::{self, SidecarOptions};
use super::wait::Sources;
use super::watches::SeenGone;
use crate::config::Home;
use crate::core::decision::{Decision, ErrorRow};
use crate::core::effect::{Effect, EffectKey, Outcome};
use crate::core::event::Event;
use crate::core::id::{AgentId, ErrorId};
use crate::core::rows::agent::{Agent, WatchState};
use crate::core::rows::outbox::{Pending, Waiter};
use crate::core::time::{Deadline, Now};
use crate::runner::SettledEffect;
use crate::spool::OutputFile;
use crate::store::Batch;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

pub(super) struct Ground {
    pub(super) dir: tempfile::TempDir,
    pub(super) sidecar: Sidecar,
    pub(super) sources: Sources,
}

impl Ground {
    /// A sidecar on a new home, without a tmux server. Requests do not wait for one.
    pub(super) async fn new() -> Ground {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (sidecar, sources) = open(&dir).await;
        Ground { dir, sidecar, sources }
    }

    /// The same home, after the sidecar has ended without notice.
    pub(super) async fn restarted(self) -> Ground {
        let Ground { dir, sidecar, sources } = self;
        drop((sidecar, sources));
        let (sidecar, sources) = open(&dir).await;
        Ground { dir, sidecar, sources }
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join("home").join(below)
    }

    pub(super) fn ask(&self, name: &str, text: &str) {
        std::fs::write(self.path("spool/requests").join(name), text).expect("a request");
    }

    pub(super) fn count(&self, below: &str) -> usize {
        std::fs::read_dir(self.path(below)).expect("a folder").count()
    }

    pub(super) fn answer(&self, id: &str) -> serde_json::Value {
        let text = std::fs::read_to_string(self.path("spool/results").join(format!("{id}.json"))).expect("an answer");
        serde_json::from_str(&text).expect("JSON")
    }

    pub(super) fn drop_again(&mut self, room: &str, name: &str, text: &str) {
        std::fs::write(self.path("spool").join(room).join(name), text).expect("a file");
        self.sidecar.intake.files = true;
        self.settle();
    }

    /// One cycle, as if the loop woke now.
    pub(super) fn cycle(&mut self) {
        let now = self.sidecar.clock.now();
        self.sidecar.cycle(&now);
    }

    pub(super) fn checkpoint(&mut self) {
        let now = self.sidecar.clock.now();
        self.sidecar.begin_checkpoint();
        self.sidecar.confirm_checkpoint(&now, Duration::from_secs(60));
    }

    /// Runs cycles until nothing is left to do at once. Fails if that never happens.
    pub(super) fn settle(&mut self) {
        for _ in 0..50 {
            self.cycle();
            if !self.sidecar.sleep().is_zero() {
                return;
            }
        }
        panic!("the loop never comes to rest");
    }

    /// As if the pause after a failure were over.
    pub(super) fn store_is_due(&mut self) {
        let now = self.sidecar.clock.now();
        assert!(self.sidecar.health.again.is_some(), "the store has not failed");
        self.sidecar.health.again = Some(Deadline::after(&now, 0));
    }
}

pub(super) async fn open(dir: &tempfile::TempDir) -> (Sidecar, Sources) {
    let home = Home::at(&dir.path().join("home")).expect("a home");
    let tmux = Some(dir.path().join("no-server").display().to_string());
    let options = SidecarOptions { home, tmux, json: false };
    let Ok((mut sidecar, sources)) = start::open(&options).await else { panic!("the sidecar starts") };
    sidecar.timers.tmux_unknown = None;
    (sidecar, sources)
}

pub(super) const NOTHING: &str =
    r#"{"v":1,"kind":"agent_send","agent_id":"00000000-0000-4000-8000-000000000000","text":"t"}"#;

#[tokio::test]
async fn a_lane_that_cannot_be_read_is_not_empty() {
    let mut ground = Ground::new().await;
    let events = ground.path("spool/events");
    let mode = |mode| std::fs::set_permissions(&events, std::fs::Permissions::from_mode(mode)).expect("a mode");
    mode(0o755);
    let gone =
        SeenGone { agent_id: AgentId(uuid::Uuid::new_v4()), how: crate::core::event::Exit::Dead, events_listing: 0 };
    ground.sidecar.watches.gone.push(gone);
    ground.settle();
    assert!(!ground.sidecar.intake.drained && ground.sidecar.watches.gone.len() == 1, "nothing was judged");
    assert!(ground.sidecar.intake.problem.is_some());
    mode(0o700);
    ground.sidecar.intake.files = true;
    ground.settle();
    assert!(ground.sidecar.intake.drained && ground.sidecar.watches.gone.is_empty());
    assert!(ground.sidecar.intake.problem.is_none());
}

#[tokio::test]
async fn a_sidecar_that_takes_no_requests_says_since_when() {
    let mut ground = Ground::new().await;
    ground.settle();
    let taken = ground.sidecar.answers.taken_at.clone();
    assert!(taken.is_some());
    ground.ask("r.json", NOTHING);
    let now = ground.sidecar.clock.now();
    ground.sidecar.health.again = Some(Deadline::after(&now, 60_000));
    (0..3).for_each(|_| ground.cycle());
    ground.sidecar.heartbeat(&now);
    let view = std::fs::read_to_string(ground.path("view/sidecar.json")).expect("a view");
    let view: serde_json::Value = serde_json::from_str(&view).expect("JSON");
    assert_eq!(view["taken_at"].as_str(), taken.as_deref(), "{view}");
    assert_eq!(ground.count("spool/requests"), 1);
    ground.sidecar.health.again = None;
    ground.sidecar.intake.files = true;
    ground.settle();
    assert!(ground.sidecar.answers.taken_at >= taken && ground.count("spool/requests") == 0);
}

pub(super) fn view(ground: &Ground) -> serde_json::Value {
    let view = std::fs::read_to_string(ground.path("view/sidecar.json")).expect("a view");
    serde_json::from_str(&view).expect("JSON")
}

/// Nothing but the missing answers shows why the requests are not taken.
#[tokio::test]
async fn a_loop_that_answers_no_requests_reports_it_and_stops_the_heartbeat() {
    let mut ground = Ground::new().await;
    ground.settle();
    // Time counts from the last cycle, until which everything was answered, however long this machine takes.
    let mut now = ground.sidecar.timers.last_cycle.expect("it has run a cycle");
    ground.sidecar.answers.begin(&now);
    ground.ask("r.json", NOTHING);
    ground.sidecar.timers.tmux_unknown = Some(Deadline::after(&now, 3_600_000));
    let tick = |ground: &mut Ground, now: &mut Now| {
        (now.boot_ms, now.wall_ms) = (now.boot_ms + 5_000, now.wall_ms + 5_000);
        ground.sidecar.cycle(now);
        view(ground)
    };
    for _ in 0..2 {
        let view = tick(&mut ground, &mut now);
        assert_eq!((&view["heartbeat"], &view["problem"]), (&now.rfc3339().into(), &serde_json::Value::Null), "{view}");
    }
    // Fifteen seconds, and the moments that the test has taken.
    tick(&mut ground, &mut now);
    let last = view(&ground)["heartbeat"].clone();
    for _ in 0..3 {
        let view = tick(&mut ground, &mut now);
        assert_eq!((&view["heartbeat"], &view["state"]), (&last, &"degraded".into()), "{view}");
        let problem = view["problem"].as_str().unwrap_or_default();
        assert!(problem.starts_with("tasuki has answered no request for ") && problem.ends_with(" s"), "{view}");
        assert!(ground.sidecar.is_silent(), "and the watchdog is not fed");
    }
    ground.sidecar.timers.tmux_unknown = None;
    tick(&mut ground, &mut now);
    assert_eq!(ground.count("spool/requests"), 0);
    let view = tick(&mut ground, &mut now);
    assert_eq!((&view["heartbeat"], &view["problem"]), (&now.rfc3339().into(), &serde_json::Value::Null), "{view}");
}

#[tokio::test]
async fn deaths_are_judged_only_after_the_start_is_over() {
    let mut ground = Ground::new().await;
    let now = ground.sidecar.clock.now();
    ground.sidecar.timers.tmux_unknown = Some(Deadline::after(&now, 60_000));
    ground.sidecar.left.has_work = true;
    let gone =
        SeenGone { agent_id: AgentId(uuid::Uuid::new_v4()), how: crate::core::event::Exit::Dead, events_listing: 0 };
    ground.sidecar.watches.gone.push(gone);
    ground.settle();
    assert_eq!(ground.sidecar.watches.gone.len(), 1, "tmux is not known yet");
    ground.sidecar.timers.tmux_unknown = None;
    ground.settle();
    assert!(ground.sidecar.watches.gone.is_empty());
    assert!(ground.sidecar.timers.grace.is_some_and(|grace| !grace.is_due(&now)), "deadlines have a grace");
}

#[tokio::test]
async fn a_deadline_that_can_not_be_settled_does_not_keep_the_loop_awake() {
    let mut ground = Ground::new().await;
    ground.settle();
    let now = ground.sidecar.clock.now();
    let mut agent = Agent::new(AgentId(uuid::Uuid::new_v4()), "demo".to_owned(), String::new());
    // The agent has no pane to look at, and its process may still live, so nothing settles this deadline.
    agent.process = Some(crate::core::pane::Process { pid: 10, start_ticks: 11 });
    agent.idle_watch.silence = WatchState::Due(Deadline::after(&now, 0));
    let mut other = Agent::new(AgentId(uuid::Uuid::new_v4()), "demo".to_owned(), String::new());
    other.pending_exit =
        Some(crate::core::rows::agent::PendingExit { due: Deadline::after(&now, 0), pane_gone: false });
    let dead = other.agent_id;
    ground.sidecar.state.agents.extend([(agent.agent_id, agent), (dead, other)]);
    ground.cycle();
    assert!(!ground.sidecar.state.agents.contains_key(&dead), "what can be judged is judged, and written");
    assert_eq!(ground.sidecar.state.next_deadline_ms(&ground.sidecar.clock.now()), Some(0), "the other is still due");
    assert!(!ground.sidecar.sleep().is_zero(), "and the rest is left for a while");
}

#[tokio::test]
async fn a_store_that_cannot_be_reopened_is_tried_again_and_then_requests_are_answered() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (state, away) = (ground.path("state/tasuki.redb"), ground.path("state/away"));
    std::fs::rename(&state, &away).expect("moved away");
    assert!(ground.sidecar.store.reopen().is_err());
    ground.ask("r1.json", NOTHING);
    ground.sidecar.intake.files = true;
    ground.settle();
    ground.store_is_due();
    ground.settle();
    assert!(ground.sidecar.health.failures >= 2 && ground.sidecar.health.problem.is_some());
    assert!(ground.path("spool/requests/r1.json").exists(), "the request stays");
    let view = std::fs::read_to_string(ground.path("view/sidecar.json")).expect("a heartbeat");
    assert!(view.contains("degraded"), "{view}");
    std::fs::rename(&away, &state).expect("moved back");
    ground.store_is_due();
    ground.settle();
    assert!(ground.path("spool/results/r1.json").exists(), "and is answered");
    assert!(ground.sidecar.health.problem.is_none() && ground.sidecar.health.again.is_none());
}

/// If another file has replaced the state file, all of it is read before it is used. With a large file this takes
/// longer than the loop may pause.
#[tokio::test]
async fn the_loop_continues_while_a_whole_state_file_is_read() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (state, copy) = (ground.path("state/tasuki.redb"), ground.path("state/copy"));
    std::fs::copy(&state, &copy).expect("a copy");
    std::fs::rename(&copy, &state).expect("put in its place");
    ground.ask("r1.json", NOTHING);
    ground.sidecar.intake.files = true;
    ground.cycle();
    ground.store_is_due();
    ground.cycle();
    assert!(ground.sidecar.health.again.is_some(), "the loop has waited for it");
    assert!(ground.path("spool/requests/r1.json").exists() && ground.sidecar.health.problem.is_some());
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while !ground.path("spool/results/r1.json").exists() {
        assert!(std::time::Instant::now() < until, "it is never read");
        ground.store_is_due();
        ground.cycle();
        std::thread::yield_now();
    }
    assert!(ground.sidecar.health.problem.is_none());
}

#[tokio::test]
async fn effects_that_are_not_in_the_outbox_are_stopped_after_a_reload() {
    let mut ground = Ground::new().await;
    ground.settle();
    let process = crate::process::identify(std::process::id()).expect("this process");
    ground.sidecar.runner.submit(EffectKey(77), Effect::AwaitDeath { process }, false);
    let now = ground.sidecar.clock.now();
    ground.sidecar.reload_state(&now).expect("the store is well");
    let ended = tokio::time::timeout(Duration::from_secs(20), ground.sources.ended.recv()).await.expect("it stops");
    assert!(matches!(ended, Some(SettledEffect { key: EffectKey(77), outcome: Outcome::Failed { .. } })));
}

#[tokio::test]
async fn an_effect_that_has_ended_and_is_not_decided_yet_is_not_run_again() {
    let mut ground = Ground::new().await;
    ground.settle();
    let process = crate::process::identify(std::process::id()).expect("this process");
    ground
        .sidecar
        .state
        .outbox
        .insert(EffectKey(78), Pending { waiter: Waiter::Nobody, effect: Effect::AwaitDeath { process } });
    ground.sidecar.events.push(Event::Settled { key: EffectKey(78), outcome: Outcome::Done });
    ground.sidecar.resume_outbox();
    assert!(!ground.sidecar.runner.has(EffectKey(78)));
}

#[tokio::test]
async fn a_bad_file_that_was_answered_before_it_was_moved_is_still_kept() {
    let mut ground = Ground::new().await;
    let bad = r#"{"v":1,"kind":"nonsense"}"#;
    ground.ask("r1.json", bad);
    ground.settle();
    assert_eq!(ground.count("spool/rejected"), 2, "the file and the reason");
    // As if the sidecar had ended after the commit, before it moved the file.
    ground.ask("r1.json", bad);
    let mut ground = ground.restarted().await;
    ground.settle();
    assert_eq!(ground.count("spool/rejected"), 4);
    let event = ground.path("spool/events/a.json");
    std::fs::write(&event, r#"{"v":1}"#).expect("an event");
    let aside = ground.path("spool/tmp/a.json");
    std::fs::hard_link(&event, &aside).expect("a second name");
    std::fs::remove_file(&aside).expect("removed");
    ground.sidecar.intake.files = true;
    let now = ground.sidecar.clock.now();
    let scan = ground.sidecar.spool.scan(crate::spool::Lane::Events, 10, 1_000_000, &now);
    let found = scan.expect("a scan").found.remove(0);
    let first = ground.sidecar.event_file(found.clone(), &now).expect("the store is well");
    assert!(first.why.is_some(), "it is not a valid event");
    let seen = [first.seen.expect("to be remembered")];
    ground.sidecar.store.commit(&Batch { decision: &Decision::default(), now, seen: &seen }).expect("a commit");
    let again = ground.sidecar.event_file(found, &now).expect("the store is well");
    assert!(again.seen.is_none() && again.why.is_some(), "known, and still bad");
}

pub(super) fn failure() -> ErrorRow {
    ErrorRow {
        error_id: ErrorId(uuid::Uuid::now_v7()),
        at: String::new(),
        code: "did_not_exit".to_owned(),
        message: String::new(),
        hint: String::new(),
        handoff_id: None,
        agent_id: None,
        step: None,
    }
}

#[tokio::test]
async fn dismissed_failures_stay_dismissed_after_a_restart() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (kept, deleted, unwritten, removed) = (failure(), failure(), failure(), failure());
    let now = ground.sidecar.clock.now();
    let decision = Decision { errors: vec![kept.clone(), deleted.clone()], ..Decision::default() };
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    ground.sidecar.projection.error_rows(&ground.sidecar.spool, decision.errors);
    ground.checkpoint();
    let decision = Decision { errors: vec![unwritten.clone()], ..Decision::default() };
    ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
    // Its dismissal was committed, and the sidecar ended before the file was removed.
    ground.sidecar.spool.put_error(&removed.error_id, b"{}").expect("a file");
    let file = |ground: &Ground, row: &ErrorRow| ground.sidecar.spool.path_of(&OutputFile::Error(row.error_id));
    std::fs::remove_file(file(&ground, &deleted)).expect("dismissed by hand");
    let ground = ground.restarted().await;
    assert!(file(&ground, &kept).exists() && file(&ground, &unwritten).exists());
    assert!(!file(&ground, &removed).exists() && !file(&ground, &deleted).exists());
    assert!(ground.sidecar.store.has_error(&kept.error_id).expect("a look"));
    assert!(!ground.sidecar.store.has_error(&deleted.error_id).expect("a look"));
}

/// The probe is there every few seconds: if it counted, memory of a busy time would never be given back.
#[tokio::test]
async fn a_probe_decides_nothing_and_a_request_does() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.sidecar.tidy.has_decided = false;
    (ground.sidecar.intake.files, ground.sidecar.intake.probe) = (true, true);
    ground.settle();
    assert!(!ground.sidecar.intake.probe, "it passed through");
    assert!(!ground.sidecar.tidy.has_decided);
    ground.drop_again("requests", "ask.json", r#"{"v":1,"kind":"persona_create","slug":"dev"}"#);
    assert!(ground.sidecar.tidy.has_decided);
}
