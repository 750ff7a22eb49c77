//! Files that can't be moved or written for a while: the loop rests between its tries, and what waits does not pile up.

use super::parts::Sidecar;
use super::tests::{Ground, NOTHING, failure};
use super::watches::SeenGone;
use crate::core::decision::Decision;
use crate::core::event::Exit;
use crate::core::id::AgentId;
use crate::core::time::Deadline;
use crate::spool::{Lane, OutputFile};
use crate::store::Batch;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder that nothing can be moved over. It comes to its place with a file in it, because the trash is emptied at
/// any time, and an empty folder would be removed with it.
fn block(place: PathBuf) -> PathBuf {
    let made =
        tempfile::tempdir_in(place.parent().and_then(Path::parent).expect("two folders above")).expect("a folder");
    std::fs::write(made.path().join("x"), "").expect("a file in it");
    std::fs::rename(made.keep(), &place).expect("moved to its place");
    place
}

fn free(place: &Path) {
    std::fs::remove_dir_all(place).expect("removed");
}

impl Ground {
    fn settle_a_second_later(&mut self) {
        let now = self.sidecar.clock.now();
        let again = self.sidecar.intake.look_again.as_mut().expect("it looks again");
        assert!(again.remaining_ms(&now) <= 1_000);
        *again = Deadline::after(&now, 0);
        self.settle();
    }

    /// One cycle as if so many milliseconds had passed. Held files are tried again five seconds after the last try.
    fn settle_later(&mut self, ms: u64) {
        let again = self.sidecar.intake.look_again.expect("it looks again");
        let mut now = self.sidecar.clock.now();
        assert!(again.remaining_ms(&now) <= ms);
        now.boot_ms += ms;
        self.sidecar.intake.files = true;
        self.sidecar.cycle(&now);
        self.settle();
    }
}

/// Where a handled file goes.
fn place_in_trash(ground: &Ground, file: &str) -> PathBuf {
    let meta = std::fs::metadata(ground.path(file)).expect("a file");
    let ctime_ns = meta.ctime() * 1_000_000_000 + meta.ctime_nsec();
    ground.path(&format!("state/reap/{:x}-{:x}-{ctime_ns:x}", meta.dev(), meta.ino()))
}

#[tokio::test]
async fn a_bad_file_that_can_not_be_moved_to_rejected_does_not_keep_the_loop_awake() {
    let mut ground = Ground::new().await;
    ground.settle();
    let blocked = block(ground.path("spool/rejected/.tasuki-new"));
    ground.drop_again("events", "a.json", r#"{"v":1}"#);
    ground.settle_later(5_000);
    assert!(ground.path("spool/events/a.json").exists());
    ground.drop_again("requests", "r.json", NOTHING);
    assert_eq!(ground.answer("r")["error"]["code"], "no_agent", "others do not wait for it");
    free(&blocked);
    ground.settle_later(10_000);
    assert_eq!((ground.count("spool/events"), ground.count("spool/rejected")), (0, 2), "the file and the reason");
}

#[tokio::test]
async fn a_handled_file_that_can_not_be_moved_to_the_trash_does_not_keep_the_loop_awake() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.ask("r.json", NOTHING);
    let blocked = block(place_in_trash(&ground, "spool/requests/r.json"));
    ground.sidecar.intake.files = true;
    ground.settle();
    ground.settle_later(5_000);
    assert!(ground.path("spool/requests/r.json").exists());
    assert_eq!(ground.answer("r")["error"]["code"], "no_agent");
    free(&blocked);
    ground.settle_later(10_000);
    assert_eq!(ground.count("spool/requests"), 0);
}

/// An event that stays in its lane was decided once, is told as a problem, and does not hold up others.
#[tokio::test]
async fn handled_events_that_can_not_be_moved_away_are_not_read_again_and_are_told() {
    let mut ground = Ground::new().await;
    ground.settle();
    let event =
        |session: &str| format!(r#"{{"v":1,"event":"session_start","profile":"demo","session_id":"{session}"}}"#);
    let files = ["a.json", "b.json"].map(|name| {
        std::fs::write(ground.path("spool/events").join(name), event(name)).expect("an event");
        block(place_in_trash(&ground, &format!("spool/events/{name}")))
    });
    ground.sidecar.intake.files = true;
    ground.settle();
    assert_eq!(ground.count("spool/events"), 2, "they stay");
    let now = ground.sidecar.clock.now();
    let scan = |ground: &mut Ground| ground.sidecar.spool.scan(Lane::Events, 10, 1 << 20, &now).expect("readable");
    assert!(scan(&mut ground).found.is_empty(), "they are not read again");
    let other_mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(ground.path("spool/events/a.json"), other_mode).expect("a mode");
    assert!(scan(&mut ground).found.is_empty(), "nor if only their mode has changed");
    ground.sidecar.heartbeat(&now);
    let problem = super::tests::view(&ground)["problem"].as_str().unwrap_or_default().to_owned();
    assert!(problem.contains("move a handled file out of") && problem.contains("every 5 seconds"), "{problem}");
    ground.drop_again("events", "c.json", &event("c"));
    assert_eq!(ground.count("spool/events"), 2, "another one is taken at once");
    let mut ground = ground.restarted().await;
    ground.settle();
    assert!(scan(&mut ground).found.is_empty(), "the next start takes them for handled, too");
    files.iter().for_each(|place| free(place));
    ground.settle_later(5_000);
    assert_eq!((ground.count("spool/events"), ground.sidecar.spool.unmoved()), (0, None));
    ground.sidecar.heartbeat(&now);
    let problem = super::tests::view(&ground)["problem"].to_string();
    assert!(!problem.contains("handled"), "{problem}");
}

/// Not even between two looks at the folders of the spool, nor while files of the start are still to be taken.
#[tokio::test]
async fn a_lane_that_can_not_be_read_does_not_keep_the_loop_awake() {
    let mut ground = Ground::new().await;
    ground.settle();
    let mode = |mode| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(ground.path("spool/events"), mode(0o755)).expect("a mode");
    let intake = &mut ground.sidecar.intake;
    (intake.files, intake.drained, intake.took_events) = (true, false, false);
    ground.cycle();
    assert!(ground.sidecar.intake.problem.is_some() && !ground.sidecar.sleep().is_zero());
    std::fs::set_permissions(ground.path("spool/events"), mode(0o700)).expect("a mode");
    ground.settle_a_second_later();
    assert!(ground.sidecar.intake.problem.is_none() && ground.sidecar.intake.drained);
}

#[tokio::test]
async fn a_file_that_waits_for_a_look_up_does_not_keep_the_loop_awake() {
    for lane in [Lane::Events, Lane::Requests] {
        for is_drained in [true, false] {
            let mut ground = Ground::new().await;
            ground.settle();
            let gone = SeenGone { agent_id: AgentId(uuid::Uuid::new_v4()), how: Exit::Dead, events_listing: 0 };
            let Sidecar { intake, spool, watches, clock, .. } = &mut ground.sidecar;
            watches.gone.push(gone);
            intake.drained = is_drained;
            intake.defer(spool, lane, "no memory".to_owned(), &clock.now());
            let sleep = ground.sidecar.sleep();
            assert!(!sleep.is_zero() && sleep <= Duration::from_secs(1), "{lane:?} {is_drained}: {sleep:?}");
            ground.settle_a_second_later();
            assert!(ground.sidecar.intake.drained && ground.sidecar.watches.gone.is_empty(), "{lane:?} {is_drained}");
        }
    }
}

#[tokio::test]
async fn an_error_file_that_can_not_be_written_waits_once_however_often_the_store_is_read_again() {
    let mut ground = Ground::new().await;
    ground.settle();
    let (written, unwritten) = (failure(), failure());
    let now = ground.sidecar.clock.now();
    let mut blocked = None;
    for row in [&written, &unwritten] {
        let decision = Decision { errors: vec![row.clone()], ..Decision::default() };
        ground.sidecar.store.commit(&Batch { decision: &decision, now, seen: &[] }).expect("a commit");
        ground.sidecar.projection.error_rows(&ground.sidecar.spool, decision.errors);
        blocked.get_or_insert_with(|| block(ground.path("spool/errors/.tasuki-new")));
    }
    for _ in 0..3 {
        ground.sidecar.reload_state(&now).expect("the store is well");
    }
    assert_eq!(ground.sidecar.projection.pending_errors(), (1, 1), "one waits, one is written");
    let is_there = |id| ground.sidecar.spool.put_error(&id, b"{}").map(|is_new| !is_new);
    assert!(is_there(written.error_id).expect("it is there, so nothing need be written"));
    free(&blocked.expect("it was blocked"));
    ground.sidecar.projection.retry(&ground.sidecar.spool);
    assert_eq!(ground.sidecar.projection.pending_errors(), (0, 2));
    assert!(ground.sidecar.spool.path_of(&OutputFile::Error(unwritten.error_id)).exists());
}

#[tokio::test]
async fn while_one_file_can_not_be_written_the_next_checkpoint_has_the_others_once() {
    let mut ground = Ground::new().await;
    ground.settle();
    ground.checkpoint();
    let (shown, hidden) = (AgentId(uuid::Uuid::new_v4()), AgentId(uuid::Uuid::new_v4()));
    let place = block(ground.path(&format!("view/agents/{hidden}.json")));
    let Sidecar { projection, spool, .. } = &mut ground.sidecar;
    for _ in 0..1_000 {
        projection.view(spool, OutputFile::Agent(shown), "{}");
    }
    projection.view(spool, OutputFile::Agent(hidden), "{}");
    let checkpoint = projection.take_checkpoint(7);
    assert_eq!(checkpoint.views, [format!("agents/{shown}")]);
    assert_eq!(checkpoint.ledger_below, 0);
    free(&place);
    projection.retry(spool);
    let checkpoint = projection.take_checkpoint(7);
    assert_eq!(checkpoint.views, [format!("agents/{hidden}")]);
    assert_eq!(checkpoint.ledger_below, 7);
}
