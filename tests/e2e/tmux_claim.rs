//! Two homes on one server: a pane is the agent of one of them.

use crate::support::stage::Stage;
use crate::support::tmux::{ComposerPane, Server, TAG, TestScreenReader, connect_home, plan, wait_until};
use crate::support::typed::{SUBMITTED, refused, type_it};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tasuki::core::pane::{PaneRef, Process, Refusal, ScreenReading};
use tasuki::process;
use tasuki::tmux::{Capture, ScreenReader, Tmux};
use tokio_util::sync::CancellationToken;

const OTHER: &str = "0badcafe";

async fn other_home(socket: &Path) -> Tmux {
    connect_home(socket, OTHER, Duration::from_secs(20)).await
}

fn agent(composer: &ComposerPane) -> Process {
    process::identify(composer.pid()).expect("it runs")
}

async fn claim(tmux: &Tmux, pane: &PaneRef, agent: Process) -> Option<String> {
    tmux.claim(pane, agent, process::is_alive).await.expect("an answer")
}

#[tokio::test]
async fn a_pane_of_another_living_home_is_neither_claimed_nor_typed_into() {
    let server = Server::start();
    let (ours, theirs) = (server.connect().await, other_home(&server.socket()).await);
    let composer = server.composer(&[]);
    let (pane, agent) = (composer.pane(&ours).await, agent(&composer));
    assert_eq!(claim(&ours, &pane, agent).await, None);
    assert_eq!(claim(&ours, &pane, agent).await, None, "a repeat does nothing");
    assert_eq!(claim(&theirs, &pane, agent).await.as_deref(), Some(TAG));
    assert_eq!(type_it(&theirs, &plan(pane, 1, "Theirs.")).await, refused(Refusal::PaneClaimed));
    assert_eq!(type_it(&ours, &plan(pane, 2, "Ours.")).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Ours."]);
}

#[tokio::test]
async fn of_homes_that_claim_at_once_one_gets_the_pane() {
    let server = Server::start();
    let (ours, theirs) = (server.connect().await, other_home(&server.socket()).await);
    let composer = server.composer(&[]);
    let (pane, agent) = (composer.pane(&ours).await, agent(&composer));
    for _ in 0..20 {
        let (one, two) = tokio::join!(claim(&ours, &pane, agent), claim(&theirs, &pane, agent));
        let owner = server.tmux(&["display-message", "-p", "-t", &pane.to_string(), "#{=8:@tasuki_claim}"]);
        let expected = if owner == TAG { (None, Some(TAG.to_owned())) } else { (Some(OTHER.to_owned()), None) };
        assert_eq!((one, two), expected);
        server.tmux(&["set-option", "-p", "-u", "-t", &pane.to_string(), "@tasuki_claim"]);
    }
}

#[tokio::test]
async fn a_claim_ends_with_its_agent_and_with_its_sidecar_and_keeps_the_former_one_out() {
    let server = Server::start();
    let (ours, theirs) = (server.connect().await, other_home(&server.socket()).await);
    let composer = server.composer(&[]);
    let (pane, agent) = (composer.pane(&ours).await, agent(&composer));
    let dead = Process { pid: agent.pid, start_ticks: agent.start_ticks + 1 };
    assert_eq!(claim(&theirs, &pane, dead).await, None);
    assert_eq!(claim(&ours, &pane, agent).await, None, "the agent of their claim is dead");
    assert_eq!(claim(&theirs, &pane, agent).await.as_deref(), Some(TAG));
    drop(ours);
    wait_until("our client is gone", || !server.tmux(&["list-clients", "-F", "#{client_session}"]).contains(TAG));
    assert_eq!(claim(&theirs, &pane, agent).await, None, "nobody is connected for our home");
    let back = server.connect().await;
    assert_eq!(type_it(&back, &plan(pane, 1, "Too late.")).await, refused(Refusal::PaneClaimed));
    assert_eq!(composer.bytes(), b"");
}

/// Gives the pane to another home once it was looked at twice: between the last look and the line.
struct Loses<'s>(&'s Server, String, AtomicBool);

impl ScreenReader for Loses<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        if self.2.swap(true, Ordering::Relaxed) {
            self.0.tmux(&["set-option", "-p", "-t", &self.1, "@tasuki_claim", &format!("{OTHER}.1.1")]);
        }
        TestScreenReader.look(capture)
    }
}

#[tokio::test]
async fn a_pane_that_is_lost_between_the_look_and_the_line_is_not_typed_into() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let screen_reader = Loses(&server, pane.to_string(), AtomicBool::new(false));
    let typed = tmux.type_text(&plan(pane, 1, "No."), &screen_reader, &CancellationToken::new()).await;
    assert!(!matches!(typed, tasuki::core::pane::Typed::Submitted { .. }), "{typed:?}");
    assert_eq!(composer.bytes(), b"");
}

#[test]
fn registering_the_pane_of_another_living_home_is_refused_by_name() {
    let stage = Stage::new();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let theirs = runtime.block_on(other_home(&stage.socket()));
    stage.persona("dev");
    let start = ["new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", "user:", "--"];
    let row = stage.tmux(&[&start[..], &[env!("CARGO_BIN_EXE_tasuki"), "demo-agent"]].concat());
    let (pane, pid) = row.trim().split_once(' ').expect("two words");
    let request = json!({"kind": "agent_register", "pane": pane, "persona_slug": "dev", "profile": "demo"});
    runtime.block_on(async {
        let number = pane.trim_start_matches('%').parse().expect("a number");
        let meant = theirs.facts(number).await.expect("an answer").expect("a pane").pane;
        let agent = process::identify(pid.parse().expect("a number")).expect("it runs");
        assert_eq!(claim(&theirs, &meant, agent).await, None);
    });
    let answer = stage.ask(&request);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(409), &json!("pane_claimed")), "{answer}");
    assert!(answer["error"]["message"].as_str().is_some_and(|message| message.contains(OTHER)), "{answer}");
    assert!(answer["error"]["hint"].is_string() && stage.views("agents").is_empty());
    drop(theirs);
    let is_there = || stage.tmux(&["list-clients", "-F", "#{session_name}"]).contains(OTHER);
    stage.until("their connection has gone", || !is_there());
    // Its sidecar does not come back: the pane is free for whoever asks.
    let taken = stage.granted(&request);
    assert_eq!(taken["status"], "registered");
}
