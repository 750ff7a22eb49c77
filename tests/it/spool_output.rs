//! What tasuki writes for others, and the half of the spool that commands use.

use crate::support::home::TestHome;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tasuki::core::id::{AgentId, ErrorId, RequestId};
use tasuki::spool::client::{self, Grade, SidecarPresence};
use tasuki::spool::{ErrorKind, Lane, OutputFile, ProjectionFolder, event_name};
use uuid::Uuid;

fn request(id: &str) -> RequestId {
    id.parse().expect("a legal id")
}

#[test]
fn results_and_views_are_replaced_whole() {
    let home = TestHome::new();
    let agent = AgentId(Uuid::from_u128(7));
    for place in [
        OutputFile::Result(request("a.b")),
        OutputFile::Reused(request("a.b")),
        OutputFile::Sidecar,
        OutputFile::Agent(agent),
    ] {
        assert!(!home.spool.exists(&place).expect("looked"));
        for text in [&b"{\"n\":1}"[..], b"{\"number\":2}"] {
            home.spool.put(&place, text).expect("written");
            assert_eq!(fs::read(home.spool.path_of(&place)).expect("there"), text);
            assert!(home.spool.holds(&place, text) && !home.spool.holds(&place, b"{}"));
        }
        let mode = fs::metadata(home.spool.path_of(&place)).expect("there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
    }
    assert_eq!(home.names("spool/results"), ["a.b.json", "a.b.reused.json"]);
    assert_eq!(home.spool.ids(ProjectionFolder::Agents).expect("listed"), [agent.0]);
    assert!(home.spool.remove(&OutputFile::Agent(agent)).expect("removed"));
    assert!(!home.spool.remove(&OutputFile::Agent(agent)).expect("gone already"));
    home.spool.syncer().and_then(tasuki::spool::Syncer::sync).expect("a checkpoint");
}

#[test]
fn an_error_file_is_written_once() {
    let home = TestHome::new();
    let id = ErrorId(Uuid::from_u128(1));
    assert!(home.spool.put_error(&id, b"{\"n\":1}").expect("written"));
    assert!(!home.spool.put_error(&id, b"{\"n\":2}").expect("left"));
    assert_eq!(home.spool.get(&OutputFile::Error(id)).expect("read").as_deref(), Some(&b"{\"n\":1}"[..]));
    assert_eq!(home.names("spool/errors").len(), 1);
}

#[test]
fn what_a_crash_left_half_written_does_no_harm() {
    let home = TestHome::new();
    home.put("view/.tasuki-new", b"{\"half");
    home.spool.put(&OutputFile::Sidecar, b"{}").expect("written");
    let left: Vec<String> = home.names("view").into_iter().filter(|name| name.contains("tasuki")).collect();
    assert!(left.is_empty());
}

#[test]
fn a_dropped_request_is_found_and_its_id_is_taken_until_then() {
    let mut home = TestHome::new();
    let root = home.spool.home().to_owned();
    let longest = request(&"x".repeat(128));
    client::submit_request(&root, &longest, b"{\"v\":1}").expect("dropped");
    let again = client::submit_request(&root, &longest, b"{}").expect_err("taken");
    assert_eq!(again.kind(), ErrorKind::Taken);
    assert!(home.names("spool/tmp").is_empty());
    let found = home.only();
    assert_eq!(found.request_id(), Some(longest.clone()));
    home.spool.finish(&found).expect("moved");
    assert_eq!(client::read_result(&root, &longest).expect("none yet"), None);
    home.spool.put(&OutputFile::Result(longest.clone()), b"{\"status\":200}").expect("written");
    assert_eq!(client::read_result(&root, &longest).expect("read").as_deref(), Some(&b"{\"status\":200}"[..]));
}

#[test]
fn a_dropped_event_is_found() {
    let mut home = TestHome::new();
    let name = event_name("0123abcd", 5, 6);
    client::submit_event(home.spool.home(), &name, b"{\"v\":1}", Grade::Fast).expect("dropped");
    assert_eq!(home.scan(Lane::Events).found.len(), 1);
    assert!(client::submit_event(home.spool.home(), "../requests/x.json", b"{}", Grade::Fast).is_err());
}

#[test]
fn nothing_is_dropped_where_no_spool_is_or_others_could_read_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let none = client::submit_request(dir.path(), &request("a"), b"{}").expect_err("no spool");
    assert_eq!(none.kind(), ErrorKind::NoSpool);
    let home = TestHome::new();
    fs::set_permissions(home.path("spool"), Permissions::from_mode(0o750)).expect("opened");
    let open = client::submit_request(home.spool.home(), &request("a"), b"{}").expect_err("open to others");
    assert_eq!(open.kind(), ErrorKind::NotAllowed);
}

#[test]
fn a_sidecar_is_alive_while_its_heart_beats() {
    let mut home = TestHome::new();
    let root = home.spool.home().to_owned();
    assert_eq!(client::sidecar_alive(&root, &home.now), SidecarPresence::None);
    let json = format!("{{\"pid\":42,\"heartbeat\":\"{}\",\"other\":1}}", home.now.rfc3339());
    home.spool.put(&OutputFile::Sidecar, json.as_bytes()).expect("written");
    home.pass(15_000);
    let heartbeat_ms = home.now.wall_ms - 15_000;
    assert_eq!(client::sidecar_alive(&root, &home.now), SidecarPresence::Alive { pid: 42, heartbeat_ms });
    home.pass(1);
    assert_eq!(
        client::sidecar_alive(&root, &home.now),
        SidecarPresence::Stale { pid: 42, age_ms: 15_001, heartbeat_ms }
    );
    home.now.wall_ms -= 100_000;
    assert!(matches!(client::sidecar_alive(&root, &home.now), SidecarPresence::Stale { .. }));
}

#[test]
fn a_sidecar_is_alive_while_it_replaces_its_view() {
    let home = TestHome::new();
    let (root, now) = (home.spool.home().to_owned(), home.now);
    let json = format!("{{\"pid\":42,\"heartbeat\":\"{}\"}}", now.rfc3339());
    home.spool.put(&OutputFile::Sidecar, json.as_bytes()).expect("written");
    let alive = SidecarPresence::Alive { pid: 42, heartbeat_ms: now.wall_ms };
    let is_over = AtomicBool::new(false);
    let (mut replaced, mut wrong) = (0, Vec::new());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let seen = (0..20_000).map(|_| client::sidecar_alive(&root, &now)).filter(|seen| *seen != alive);
            let seen: Vec<SidecarPresence> = seen.collect();
            is_over.store(true, Ordering::Release);
            seen
        });
        while !is_over.load(Ordering::Acquire) {
            home.spool.put(&OutputFile::Sidecar, json.as_bytes()).expect("replaced");
            replaced += 1;
            // Far more often than a sidecar does.
            std::thread::sleep(Duration::from_micros(500));
        }
        wrong = reader.join().expect("it ends");
    });
    assert!(replaced > 20, "{replaced}");
    assert_eq!(wrong, [], "{replaced} times replaced");
}
