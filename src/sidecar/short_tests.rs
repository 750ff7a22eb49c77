//! The loop while no file can be opened: a request that could not be checked is neither refused nor lost, and an event
//! whose agent is unknown waits.

use super::tests::Ground;
use crate::spool::Lane;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Whether no other test runs in this process, so that its limits may be changed.
fn is_alone() -> bool {
    std::env::var("NEXTEST_EXECUTION_MODE").as_deref() == Ok("process-per-test")
}

/// Does `work` while this process may open no file. `None` if other tests run in the same process.
pub(super) fn without_descriptors<T>(work: impl FnOnce() -> T) -> Option<T> {
    if !is_alone() {
        return None;
    }
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 0, hard).expect("lowered");
    let done = work();
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("raised");
    Some(done)
}

/// The system's own text for `EMFILE`.
fn too_many_open_files() -> String {
    std::io::Error::from_raw_os_error(nix::errno::Errno::EMFILE as i32).to_string()
}

#[tokio::test]
async fn a_lack_of_descriptors_is_reported_even_when_none_is_left() {
    if !is_alone() {
        return;
    }
    let mut ground = Ground::new().await;
    ground.settle();
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, 128, hard).expect("lowered");
    let taken: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
    for _ in 0..2 {
        let now = ground.sidecar.clock.now();
        ground.sidecar.heartbeat(&now);
    }
    drop(taken);
    let view = super::tests::view(&ground);
    assert!(view["problem"].as_str().unwrap_or_default().contains("descriptor"), "{view}");
}

#[tokio::test]
async fn a_request_whose_persona_can_not_be_read_for_want_of_files_waits() {
    let mut ground = Ground::new().await;
    ground.settle();
    let folder = ground.path("data/personas/dev");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("skill.md"), "# Skill").expect("a skill");
    ground.ask("one.json", r#"{"v":1,"kind":"agent_create","persona_slug":"dev","profile":"demo"}"#);
    ground.ask("two.json", r#"{"v":1,"kind":"handoff_cancel","handoff_id":"nothing"}"#);
    let now = ground.sidecar.clock.now();
    let scan = ground.sidecar.spool.scan(Lane::Requests, 10, 1 << 20, &now).expect("readable");
    assert_eq!(scan.found.len(), 2);
    let mut files = Vec::new();
    let Some(judged) = without_descriptors(|| ground.sidecar.read_files(scan.found, &mut files, &now)) else { return };
    assert!(!judged.expect("the store can be read") && files.is_empty(), "nothing of it was judged");
    let told = ground.sidecar.intake.problem.clone().unwrap_or_default();
    assert!(told.contains(&too_many_open_files()), "{told}");
    ground.sidecar.intake.files = true;
    ground.settle();
    assert_eq!(ground.count("spool/results"), 2, "both are answered");
    let answer = std::fs::read_to_string(ground.path("spool/results/one.json")).expect("an answer");
    assert!(answer.contains("no_tmux"), "it is known by now that there is such a persona: {answer}");
}

/// Which agent an event belongs to depends on the programs above its hook. A program that can't be looked at now must
/// not be ignored.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_event_whose_program_can_not_be_looked_at_for_want_of_files_waits() {
    let mut ground = Ground::new().await;
    ground.settle();
    let event = |name: &str| {
        let ancestors = [std::process::id()];
        let event = serde_json::json!({"v": 1, "event": "session_start", "profile": "claude", "session_id": name,
            "ancestors": ancestors});
        std::fs::write(ground.path("spool/events").join(name), event.to_string()).expect("an event");
    };
    ["one.json", "two.json"].into_iter().for_each(event);
    let now = ground.sidecar.clock.now();
    let scan = ground.sidecar.spool.scan(Lane::Events, 10, 1 << 20, &now).expect("readable");
    assert_eq!(scan.found.len(), 2);
    let mut files = Vec::new();
    let Some(judged) = without_descriptors(|| ground.sidecar.read_files(scan.found, &mut files, &now)) else { return };
    assert!(!judged.expect("the store can be read") && files.is_empty(), "nothing of it was judged");
    assert!(!ground.sidecar.intake.took_events, "what waits for all events waits, too");
    let told = ground.sidecar.intake.problem.clone().unwrap_or_default();
    assert!(told.contains(&too_many_open_files()), "{told}");
    ground.sidecar.intake.files = true;
    ground.settle();
    assert_eq!(ground.count("spool/events"), 0, "both are taken");
    assert!(ground.sidecar.intake.took_events && ground.sidecar.intake.problem.is_none());
}
