//! Sessions that outlive their last program, and the window that keeps them.

use super::support::stage::Stage;
use super::tmux_create::plan;
use crate::support::tmux::{Server, wait_until};
use crate::support::viewer::Viewer;
use serde_json::json;
use tasuki::core::pane::PaneRef;
use tasuki::tmux::{SpawnOutcome, SpawnPlan, Tmux};

/// A session `work` with that many windows, and their panes.
async fn session_of(server: &Server, tmux: &Tmux, windows: usize) -> Vec<PaneRef> {
    server.tmux(&["new-session", "-d", "-s", "work", "-x", "90", "-y", "25", "exec cat"]);
    (1..windows).for_each(|_| drop(server.tmux(&["new-window", "-d", "-t", "=work:", "exec cat"])));
    let rows = tmux.list_panes().await.expect("an answer");
    rows.into_iter().filter(|row| row.session_name == "work").map(|row| row.pane).collect()
}

/// The process of each pane in the session `work`; empty if there is no such session.
fn in_work(server: &Server) -> String {
    server.try_tmux(&["list-panes", "-s", "-t", "=work:", "-F", "#{?pane_pid,#{pane_pid},0}"]).unwrap_or_default()
}

#[tokio::test]
async fn a_held_place_outlives_its_last_program() {
    let server = Server::start();
    let tmux = server.connect().await;
    let pane = session_of(&server, &tmux, 1).await.remove(0);
    for _ in 0..3 {
        let place = tmux.hold_placeholder(&pane, "ab-1").await.expect("held");
        assert_eq!((place.session.as_str(), place.size, place.held), ("work", (90, 25), true));
    }
    assert_eq!(in_work(&server), format!("{}\n0", pane.pid), "one placeholder without a process");
    assert!(tmux.kill_pane(&pane).await.expect("an answer"));
    let successor = SpawnPlan { session: "work".into(), ..plan(&server, &["cat"]) };
    let outcome = tmux.spawn(&successor).await;
    let SpawnOutcome::Started(next) = outcome else { panic!("{outcome:?}") };
    for _ in 0..2 {
        tmux.drop_placeholder("ab-1").await.expect("dropped");
    }
    assert_eq!(in_work(&server), next.pid.to_string());
}

/// tmux lists a pane once for each session of a group, and a condition about a pane that is gone is expanded for our
/// own session.
#[tokio::test]
async fn a_session_of_a_group_gets_no_window_when_its_place_is_dropped() {
    let server = Server::start();
    let tmux = server.connect().await;
    let pane = session_of(&server, &tmux, 1).await.remove(0);
    server.tmux(&["new-session", "-d", "-t", "=work", "-s", "view"]);
    assert!(tmux.hold_placeholder(&pane, "ab").await.expect("held").held);
    assert!(tmux.kill_pane(&pane).await.expect("an answer"));
    let SpawnOutcome::Started(next) =
        tmux.spawn(&SpawnPlan { session: "work".into(), ..plan(&server, &["cat"]) }).await
    else {
        panic!("it starts")
    };
    tmux.drop_placeholder("ab").await.expect("dropped");
    assert_eq!(in_work(&server), next.pid.to_string());
}

#[tokio::test]
async fn a_place_with_company_needs_no_placeholder() {
    let server = Server::start();
    server.tmux(&["split-window", "-d", "-t", "main:", "exec cat"]);
    let tmux = server.connect().await;
    let pane = tmux.facts(0).await.expect("an answer").expect("a pane").pane;
    assert!(!tmux.hold_placeholder(&pane, "ab").await.expect("held").held);
    assert_eq!(tmux.list_panes().await.expect("an answer").len(), 2);
    assert!(tmux.hold_placeholder(&pane, "not a tag").await.is_err());
}

/// Two agents are all that a session has, and both are handed off at the same time.
#[tokio::test]
async fn who_is_about_to_end_is_no_company() {
    let server = Server::start();
    let tmux = server.connect().await;
    let panes = session_of(&server, &tmux, 2).await;
    assert!(!tmux.hold_placeholder(&panes[0], "a1").await.expect("held").held, "the other one stays");
    assert!(tmux.hold_placeholder(&panes[1], "b2").await.expect("held").held, "nobody stays");
    for pane in &panes {
        assert!(tmux.kill_pane(pane).await.expect("an answer"));
    }
    assert_eq!(in_work(&server), "0");
    tmux.drop_placeholder("a1").await.expect("there is none");
    assert_eq!(in_work(&server), "0", "another handoff's");
    tmux.drop_placeholder("b2").await.expect("dropped");
    assert_eq!(in_work(&server), "");
}

#[tokio::test]
async fn a_placeholder_is_known_whatever_its_window_is_called() {
    let server = Server::start();
    server.tmux(&["set-hook", "-g", "after-new-window", "rename-window mine"]);
    server.tmux(&["set-hook", "-g", "after-split-window", "rename-window theirs"]);
    let tmux = server.connect().await;
    let pane = session_of(&server, &tmux, 1).await.remove(0);
    for _ in 0..2 {
        assert!(tmux.hold_placeholder(&pane, "ab-1").await.expect("held").held);
    }
    assert_eq!(in_work(&server), format!("{}\n0", pane.pid), "one placeholder without a process");
    tmux.drop_placeholder("ab-1").await.expect("dropped");
    assert_eq!(in_work(&server), pane.pid.to_string());
}

/// The start of a successor has failed: whoever looks at the session must not be put out.
#[tokio::test]
async fn a_session_that_somebody_looks_at_outlives_its_placeholder() {
    let server = Server::start();
    let tmux = server.connect().await;
    let pane = session_of(&server, &tmux, 1).await.remove(0);
    let viewer = Viewer::attach(&server.socket(), "work");
    let attached = || server.try_tmux(&["display-message", "-p", "-t", "=work:", "#{session_attached}"]);
    wait_until("somebody is attached", || attached().as_deref() == Some("1"));
    assert!(tmux.hold_placeholder(&pane, "ab-1").await.expect("held").held);
    assert!(tmux.kill_pane(&pane).await.expect("an answer"));
    tmux.drop_placeholder("ab-1").await.expect("dropped");
    let left = in_work(&server);
    assert!(!left.is_empty() && left != "0" && left.lines().count() == 1, "one shell: {left:?}");
    assert_eq!(attached().as_deref(), Some("1"));
    viewer.detach();
}

#[test]
fn a_session_that_gets_another_name_while_its_agent_ends_gets_the_successor() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    let sessions = || stage.tmux(&["list-sessions", "-F", "#{session_id} #{session_name}"]);
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    let session = stage.tmux(&["display-message", "-p", "-t", &pane, "#{session_id} #{session_name}"]);
    let (number, name) = session.trim().split_once(' ').expect("two words");
    stage.tmux(&["set-hook", "-g", "pane-exited", &format!("rename-session -t {name} moved")]);
    let handoff = stage.hand_off_with(&agent, &json!({}));
    let view = stage.until_ended(&handoff);
    assert_eq!(view["step"], "done", "{view}");
    let after = sessions();
    assert!(after.lines().any(|row| row == format!("{number} moved")), "{after}");
    assert!(!after.contains(name), "{after}");
    let successor = stage.agent_view(view["successor_id"].as_str().expect("an id"));
    let window = successor["pane"].as_str().expect("a pane").to_owned();
    let row = stage.tmux(&["display-message", "-p", "-t", &window, "#{session_name} #{session_windows}"]);
    assert_eq!(row.trim(), "moved 1");
}
