//! Typing into real panes: what is refused, what is waited for, and what becomes of a pane on the way.

use crate::support::tmux::{ComposerPane, Server, TestScreenReader, plan, wait_until};
use crate::support::typed::{SUBMITTED, refused, type_it, typed_in_pieces, unknown};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tasuki::core::pane::{Activity, Refusal, ScreenReading};
use tasuki::tmux::{Capture, Input, ScreenReader, TypePlan};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn what_is_not_seen_is_not_submitted() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let plan = TypePlan {
        seen_tail: "something else".into(),
        seen_within: Duration::from_millis(300),
        ..plan(pane, 1, "Not seen.")
    };
    assert_eq!(type_it(&tmux, &plan).await, unknown("not_seen"));
    assert!(!composer.bytes().contains(&b'\r'));
}

#[tokio::test]
async fn dialogs_drafts_busy_and_unknown_screens_are_refused() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let cases = [
        ("dialog", Activity::Blocked, Refusal::Dialog),
        ("busy", Activity::Busy, Refusal::Busy),
        ("splash", Activity::Unknown, Refusal::NotReady),
    ];
    for (mode, activity, reason) in cases {
        composer.set_mode(mode);
        composer.shows(&tmux, activity).await;
        assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(reason), "{mode}");
    }
    assert!(composer.bytes().is_empty());
    composer.set_mode("ready");
    composer.shows(&tmux, Activity::Ready).await;
    server.tmux(&["send-keys", "-t", &pane.to_string(), "-l", "half a thought"]);
    wait_until("the draft is there", || !composer.bytes().is_empty());
    assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(Refusal::Draft));
    assert_eq!(composer.bytes(), b"half a thought");
}

#[tokio::test]
async fn a_draft_that_its_author_sends_in_time_is_waited_for() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    server.tmux(&["send-keys", "-t", &pane.to_string(), "-l", "mine"]);
    wait_until("the draft is there", || !composer.bytes().is_empty());
    let plan = TypePlan { hold: Duration::from_secs(10), ..plan(pane, 1, "Ours.") };
    let send = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        server.tmux(&["send-keys", "-t", &pane.to_string(), "Enter"]);
    };
    let (typed, ()) = tokio::join!(type_it(&tmux, &plan), send);
    assert_eq!(typed, SUBMITTED);
    assert_eq!(composer.submits(), ["mine", "Ours."]);
}

/// Ends the turn that the screen shows once it was looked at that often.
struct EndsTheTurn<'c>(&'c ComposerPane, AtomicU32);

impl ScreenReader for EndsTheTurn<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let view = TestScreenReader.look(capture);
        if view.activity == Activity::Busy && self.1.fetch_add(1, Ordering::Relaxed) == 3 {
            self.0.set_mode("ready");
        }
        view
    }
}

#[tokio::test]
async fn a_turn_that_is_just_ending_is_waited_for() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    composer.set_mode("busy");
    composer.shows(&tmux, Activity::Busy).await;
    let plan = TypePlan { hold: Duration::from_secs(10), ..plan(pane, 1, "After its turn.") };
    let screen_reader = EndsTheTurn(&composer, AtomicU32::new(0));
    assert_eq!(tmux.type_text(&plan, &screen_reader, &CancellationToken::new()).await, SUBMITTED);
    assert_eq!(composer.submits(), ["After its turn."]);
}

#[tokio::test]
async fn copy_mode_and_synchronised_panes_are_no_obstacle() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let target = pane.to_string();
    server.tmux(&["split-window", "-d", "-t", &target, "exec cat"]);
    server.tmux(&["set-option", "-w", "-t", &target, "synchronize-panes", "on", ";", "copy-mode", "-t", &target]);
    assert_eq!(type_it(&tmux, &plan(pane, 1, "Through copy mode.")).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Through copy mode."]);
    assert_eq!(server.tmux(&["display-message", "-p", "-t", &target, "#{pane_in_mode}"]), "1", "the user's view stays");
}

/// In copy mode tmux sends the brackets of a paste only if that mode's own screen wants them, and it never does. Line
/// ends stay line ends all the same, and the text comes in once.
#[tokio::test]
async fn texts_without_tabs_come_in_once_and_whole_in_copy_mode() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    server.tmux(&["copy-mode", "-t", &pane.to_string()]);
    let texts = ["Of one line.", "Of two lines,\nand \"marks\" $HOME `id` ; #{pid}.", "Grüße\n\n  助け合い\n- a\n- b"];
    let mut sent = Vec::new();
    for (number, text) in (1..).zip(texts) {
        for (offset, input) in [(0, Input::Bracketed), (100, typed_in_pieces(7))] {
            let plan = TypePlan { input, ..plan(pane, number + offset, text) };
            assert_eq!(type_it(&tmux, &plan).await, SUBMITTED, "{text:?} {input:?}");
            sent.push(text);
            assert_eq!(composer.submits(), sent, "{input:?}");
        }
    }
    assert!(!composer.bytes().contains(&0x1b), "there were brackets: copy mode is no obstacle to tabs either");
    assert_eq!(server.tmux(&["display-message", "-p", "-t", &pane.to_string(), "#{pane_in_mode}"]), "1");
}

/// In copy mode a paste loses its brackets, and a tab that comes in as a key completes, queues or switches.
#[tokio::test]
async fn a_text_with_tabs_waits_until_copy_mode_is_left() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let target = pane.to_string();
    let _reader = server.shown(&target);
    server.tmux(&["copy-mode", "-t", &target]);
    assert_eq!(type_it(&tmux, &plan(pane, 1, "A table:\n\ta\tb")).await, refused(Refusal::CopyMode));
    assert_eq!(composer.bytes(), b"");
    assert_eq!(server.tmux(&["display-message", "-p", "-t", &target, "#{pane_in_mode}"]), "1", "somebody reads there");
    server.tmux(&["send-keys", "-X", "-t", &target, "cancel"]);
    assert_eq!(type_it(&tmux, &plan(pane, 2, "A table:\n\ta\tb")).await, SUBMITTED);
    assert_eq!(composer.submits(), ["A table:\n\ta\tb"]);
}

/// A text that came in as keys would be incomplete: Codex reads the first 1,024 bytes of it, and the rest with the next
/// key.
#[tokio::test]
async fn copy_mode_that_nobody_sees_is_left_for_a_text_that_needs_its_brackets() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let target = pane.to_string();
    let mode = || server.tmux(&["display-message", "-p", "-t", &target, "#{pane_in_mode}"]);
    let long = "Words that are more than the program takes as keys.";
    let texts = [("A table:\n\ta\tb", None, "0"), (long, Some(long.len() - 1), "0"), (long, Some(long.len()), "1")];
    for (number, (text, raw_bytes, after)) in (1..).zip(texts) {
        server.tmux(&["copy-mode", "-t", &target]);
        let plan = TypePlan { raw_bytes, ..plan(pane, number, text) };
        assert_eq!(type_it(&tmux, &plan).await, SUBMITTED, "{text}");
        assert_eq!(mode(), after, "{text}: only what can't come in as keys ends the mode");
    }
    assert_eq!(composer.submits(), [texts[0].0, long, long]);
}

#[tokio::test]
async fn input_off_cooked_shell_and_wrong_front_are_refused() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let other = TypePlan { foreground: Some("claude".into()), ..plan(pane, 1, "No.") };
    assert_eq!(type_it(&tmux, &other).await, refused(Refusal::BareShell));
    server.tmux(&["select-pane", "-d", "-t", &pane.to_string()]);
    assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(Refusal::InputOff));
    assert!(composer.bytes().is_empty());
    let cooked = server.composer(&[("TASUKI_TEST_COOKED", "1")]);
    let pane = cooked.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(Refusal::CookedMode));
    let shell = server.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:", "--", "sh", "-i"]);
    let id = shell.trim_start_matches('%').parse().expect("a number");
    let pane = tmux.facts(id).await.expect("an answer").expect("a pane").pane;
    assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(Refusal::BareShell));
}

#[tokio::test]
async fn the_right_front_is_accepted_whatever_its_name() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let front = tmux.facts(composer.id).await.expect("an answer").expect("a pane").command;
    let plan = TypePlan { foreground: Some(front), ..plan(pane, 1, "Yes.") };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Yes."]);
}

#[tokio::test]
async fn a_dead_pane_is_refused_and_the_server_survives() {
    let server = Server::start();
    let tmux = server.connect().await;
    let pid = server.pid();
    let id = server.tmux(&[
        "new-window",
        "-d",
        "-P",
        "-F",
        "#{pane_id}",
        "-t",
        "main:",
        "exec cat",
        ";",
        "set-option",
        "-g",
        "remain-on-exit",
        "on",
    ]);
    let number = id.trim_start_matches('%').parse().expect("a number");
    let pane = tmux.facts(number).await.expect("an answer").expect("a pane").pane;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pane.pid as i32), nix::sys::signal::Signal::SIGKILL)
        .expect("killed");
    wait_until("the pane is dead", || server.tmux(&["display-message", "-p", "-t", &id, "#{pane_dead}"]) == "1");
    assert_eq!(type_it(&tmux, &plan(pane, 1, "No.")).await, refused(Refusal::PaneDead));
    assert_eq!(server.pid(), pid);
}

#[tokio::test]
async fn a_respawned_pane_is_another_one() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &plan(pane, 1, "Before.")).await, SUBMITTED);
    server.tmux(&["respawn-pane", "-k", "-t", &pane.to_string(), "exec cat"]);
    assert_eq!(type_it(&tmux, &plan(pane, 2, "After.")).await, refused(Refusal::PaneChanged));
    assert_eq!(type_it(&tmux, &TypePlan { resumed: true, ..plan(pane, 1, "Before.") }).await, unknown("pane_changed"));
}

#[tokio::test]
async fn a_pane_that_is_gone_is_refused_or_unknown() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[("TASUKI_TEST_SWALLOW", "99")]);
    let pane = composer.pane(&tmux).await;
    let started = plan(pane, 1, "Killed in the middle.");
    let kill = async {
        while composer.bytes().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.tmux(&["kill-pane", "-t", &pane.to_string()]);
    };
    let (typed, ()) = tokio::join!(type_it(&tmux, &started), kill);
    assert_eq!(typed, unknown("pane_lost"));
    assert_eq!(type_it(&tmux, &plan(pane, 2, "No.")).await, refused(Refusal::PaneGone));
    assert_eq!(type_it(&tmux, &TypePlan { resumed: true, ..plan(pane, 2, "No.") }).await, unknown("pane_lost"));
}

#[tokio::test]
async fn stopping_in_time_types_nothing() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let typed = tmux.type_text(&plan(pane, 1, "No."), &TestScreenReader, &stop).await;
    assert_eq!(typed, refused(Refusal::NotReady));
    let resumed = TypePlan { resumed: true, ..plan(pane, 1, "No.") };
    assert_eq!(tmux.type_text(&resumed, &TestScreenReader, &stop).await, unknown("stopped"));
    assert!(composer.bytes().is_empty());
}
