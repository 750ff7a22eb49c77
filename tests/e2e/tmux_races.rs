//! What changes between our last look at a pane and the line that acts on it: the server itself must refuse the line.
//! And what comes between two lines of one text.

use crate::support::tally;
use crate::support::tmux::{ComposerPane, Server, TAG, TestScreenReader, is_running, plan, wait_until};
use crate::support::typed::{SUBMITTED, refused, type_it, typed_in_pieces, unknown};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tasuki::core::pane::{Activity, ComposerContent, PaneRef, Refusal, ScreenReading, Typed};
use tasuki::tmux::{Capture, ScreenReader, SpawnOutcome, SpawnPlan, Tmux, TypePlan};
use tokio_util::sync::CancellationToken;

/// Does something right after the n-th look that is as `when` says, before anything can be made of that look.
struct After<'t> {
    when: &'t (dyn Fn(&ScreenReading) -> bool + Sync),
    looks: AtomicU32,
    then: &'t (dyn Fn() + Sync),
}

impl ScreenReader for After<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let view = TestScreenReader.look(capture);
        if (self.when)(&view) && self.looks.fetch_sub(1, Ordering::Relaxed) == 1 {
            (self.then)();
            tally::add(tally::FAULTS, 1);
        }
        view
    }
}

fn holds_text(view: &ScreenReading) -> bool {
    matches!(view.composer, ComposerContent::Text(_))
}

fn invites(view: &ScreenReading) -> bool {
    (view.activity, &view.composer) == (Activity::Ready, &ComposerContent::Empty)
}

async fn type_and_after(
    tmux: &Tmux,
    plan: &TypePlan,
    (when, looks): (&(dyn Fn(&ScreenReading) -> bool + Sync), u32),
    then: &(dyn Fn() + Sync),
) -> Typed {
    let screen_reader = After { when, looks: AtomicU32::new(looks), then };
    tmux.type_text(plan, &screen_reader, &CancellationToken::new()).await
}

/// A pane and a plan for it in pieces, and what takes that pane's mark away.
async fn in_pieces(server: &Server, tmux: &Tmux) -> (ComposerPane, TypePlan) {
    let composer = server.composer(&[]);
    let text = "A text that goes in by many pieces, each of them short.";
    let plan = TypePlan { input: typed_in_pieces(4), ..plan(composer.pane(tmux).await, 1, text) };
    (composer, plan)
}

fn set_mark(server: &Server, pane: &PaneRef, mark: &str) {
    server.tmux(&["set-option", "-p", "-t", &pane.to_string(), "@tasuki_mark_00c0ffee", mark]);
}

/// Does something when it is asked for the n-th time whether the agent lives: the last thing before a line goes out.
struct AtTheLine<'t>(AtomicU32, &'t (dyn Fn() + Sync));

impl ScreenReader for AtTheLine<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        TestScreenReader.look(capture)
    }

    fn lives(&self) -> bool {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            (self.1)();
            tally::add(tally::FAULTS, 1);
        }
        true
    }
}

/// The same program again, with the same name and the same invitation: only its process is another one.
#[tokio::test]
async fn a_pane_that_is_respawned_between_the_look_and_the_line_is_not_typed_into() {
    let server = Server::start();
    let tmux = server.connect().await;
    let (composer, next) = (server.composer(&[]), tempfile::tempdir().expect("a folder"));
    let pane = composer.pane(&tmux).await;
    let exe = std::env::current_exe().expect("our own path");
    let respawn = || {
        let variable = format!("TASUKI_TEST_COMPOSER={}", next.path().display());
        let target = pane.to_string();
        let program = [exe.to_str().expect("plain"), "support::tmux::composer_program", "--exact", "--nocapture"];
        server.tmux(&[&["respawn-pane", "-k", "-t", &target, "-e", &variable, "--"][..], &program].concat());
        wait_until("the next one shows itself", || next.path().join("up").exists());
    };
    // Once with each of the two looks that invite.
    let screen_reader = AtTheLine(AtomicU32::new(3), &respawn);
    let typed = tmux.type_text(&plan(pane, 1, "No."), &screen_reader, &CancellationToken::new()).await;
    assert_eq!(typed, unknown("pane_changed"));
    assert!(!next.path().join("bytes").exists() && composer.bytes().is_empty());
}

/// Somebody begins to write right after the look that invited.
#[tokio::test]
async fn a_screen_that_invites_at_one_look_only_is_not_typed_into() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let target = pane.to_string();
    let begin = || {
        server.tmux(&["send-keys", "-t", &target, "-l", "half a thought"]);
        wait_until("it stands there", || {
            server.tmux(&["capture-pane", "-p", "-t", &target]).contains("half a thought")
        });
    };
    let typed = type_and_after(&tmux, &plan(pane, 1, "No."), (&invites, 1), &begin).await;
    assert_eq!(typed, refused(Refusal::Draft));
    assert_eq!(composer.bytes(), b"half a thought");
}

/// The user's own hook answers our look at the pane by putting another program there.
#[tokio::test]
async fn a_pane_that_is_respawned_between_the_look_and_the_line_is_not_killed() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let hook = format!("set-hook -gu after-display-message ; respawn-pane -k -t {pane} 'exec cat'");
    server.tmux(&["set-hook", "-g", "after-display-message", &hook]);
    let _ = tmux.kill_pane(&pane).await.expect("an answer");
    let row = tmux.facts(pane.pane).await.expect("an answer").expect("the pane is there");
    assert_ne!(row.pane.pid, pane.pid, "the hook was not run");
    assert!(!row.dead && is_running(row.pane.pid), "what the user has put there was killed");
    tally::add(tally::FAULTS, 1);
}

#[tokio::test]
async fn a_mark_that_is_taken_away_under_a_text_is_no_proof_that_nothing_was_typed() {
    let server = Server::start();
    let tmux = server.connect().await;
    let (composer, plan) = in_pieces(&server, &tmux).await;
    let take = || set_mark(&server, &plan.pane, "");
    assert_eq!(type_and_after(&tmux, &plan, (&holds_text, 1), &take).await, unknown("mark_lost"));
    assert!(plan.text.as_bytes().starts_with(&composer.bytes()) && composer.submits().is_empty());
}

/// A mark that somebody else has written stands in the guard of the first line.
#[tokio::test]
async fn a_mark_that_is_none_of_ours_is_never_made_a_part_of_a_guard() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    for hostile in ["#{pane_id}", "x},}", "a b", "#(true)", "\u{e9}", &"a".repeat(65)] {
        set_mark(&server, &pane, hostile);
        assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(Refusal::NotReady), "{hostile}");
        tally::add(tally::INPUTS, 1);
    }
    assert!(composer.bytes().is_empty());
}

#[tokio::test]
async fn a_dialog_that_opens_under_a_text_gets_neither_the_rest_nor_enter() {
    let server = Server::start();
    let tmux = server.connect().await;
    let (composer, typed) = in_pieces(&server, &tmux).await;
    let open = |composer: &ComposerPane| {
        composer.set_mode("dialog");
        let target = format!("%{}", composer.id);
        let shown = || server.tmux(&["capture-pane", "-p", "-t", &target]).contains("MODE dialog");
        wait_until("the dialog shows", shown);
    };
    // At the third look some pieces are in, and the one after that is on its way.
    assert_eq!(type_and_after(&tmux, &typed, (&holds_text, 3), &|| open(&composer)).await, unknown("dialog"));
    let bytes = composer.bytes();
    assert!(bytes.len() < typed.text.len() / 2 && typed.text.as_bytes().starts_with(&bytes), "{bytes:?}");
    let composer = server.composer(&[]);
    let pasted = plan(composer.pane(&tmux).await, 2, "Pasted at once.");
    assert_eq!(type_and_after(&tmux, &pasted, (&holds_text, 1), &|| open(&composer)).await, unknown("dialog"));
    assert!(!composer.bytes().contains(&b'\r'), "Enter was pressed in a dialog");
}

/// A hook of the user's keeps our line waiting when the text is in and the mark does not say so yet; then we die.
#[tokio::test]
async fn a_line_that_is_cut_off_in_a_hook_of_the_users_is_gone_on_with() {
    let server = Server::start();
    let composer = server.composer(&[]);
    let first = server.connect().await;
    let plan = plan(composer.pane(&first).await, 1, "Cut off in the middle.");
    server.tmux(&["set-hook", "-g", "after-paste-buffer", "run-shell 'sleep 60'"]);
    let typing = {
        let (tmux, plan) = (first.clone(), plan.clone());
        tokio::spawn(async move { type_it(&tmux, &plan).await })
    };
    while composer.bytes().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    typing.abort();
    assert!(typing.await.is_err_and(|error| error.is_cancelled()), "it did not wait for the hook");
    drop(first);
    wait_until("our client is gone", || !server.tmux(&["list-clients", "-F", "#{client_session}"]).contains(TAG));
    server.tmux(&["set-hook", "-gu", "after-paste-buffer"]);
    let second = server.connect().await;
    assert_eq!(type_it(&second, &TypePlan { resumed: true, ..plan }).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Cut off in the middle."]);
    tally::add(tally::DEATHS, 1);
}

/// Another process of this home has taken the fence, and both have stayed connected.
#[tokio::test]
async fn a_fence_that_was_taken_is_taken_back_before_anything_is_changed() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let name = format!("@tasuki_fence_{TAG}");
    let fence = || server.tmux(&["show-options", "-s", "-v", &name]);
    let take = || drop(server.tmux(&["set-option", "-s", &name, "another"]));
    take();
    assert_eq!(type_it(&tmux, &plan(pane, 1, "Over a new connection.")).await, SUBMITTED);
    assert_ne!(fence(), "another");
    assert_eq!(composer.submits(), ["Over a new connection."]);
    take();
    let plan = SpawnPlan {
        creation: "c1".to_owned(),
        session: "main".to_owned(),
        own_session: false,
        window_name: "w".to_owned(),
        cwd: server.dir.path().to_owned(),
        env: vec![],
        argv: ["sleep", "600"].map(str::to_owned).to_vec(),
        size: (80, 24),
    };
    assert!(matches!(tmux.spawn(&plan).await, SpawnOutcome::Started(_)));
    assert_ne!(fence(), "another", "it was made over the connection that had lost the fence");
    tally::add(tally::FAULTS, 2);
}

/// The line is on its way when the server stops, and nobody ever says whether it was carried out.
#[tokio::test]
async fn a_server_that_dies_with_our_line_in_its_hands_leaves_doubt() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let pid = Pid::from_raw(i32::try_from(server.pid()).expect("small"));
    let stop = || {
        kill(pid, Signal::SIGSTOP).expect("a server of ours");
        std::thread::spawn(move || {
            // The line goes out right after this; its answer would be waited for much longer.
            std::thread::sleep(Duration::from_secs(2));
            kill(pid, Signal::SIGKILL).expect("a server of ours");
        });
    };
    let screen_reader = AtTheLine(AtomicU32::new(3), &stop);
    let typed = tmux.type_text(&plan(pane, 1, "Perhaps."), &screen_reader, &CancellationToken::new()).await;
    assert_eq!(typed, unknown("server_lost"));
}
