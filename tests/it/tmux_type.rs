//! Typing into real panes: what arrives, what is refused, and that nothing arrives twice.

use crate::support::tmux::{ComposerPane, Server, TestEye, plan, wait_until};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tasuki::core::id::DeliveryId;
use tasuki::core::pane::{Activity, PaneRef, Refusal, Typed, View};
use tasuki::tmux::{Capture, Eye, Input, Tmux, TypePlan};
use tokio_util::sync::CancellationToken;

const SUBMITTED: Typed = Typed::Submitted { proven: false };

async fn type_it(tmux: &Tmux, plan: &TypePlan) -> Typed {
    tmux.type_text(plan, &TestEye, &CancellationToken::new()).await
}

fn refused(reason: Refusal) -> Typed {
    Typed::Refused { reason }
}

fn unknown(reason: &str) -> Typed {
    Typed::Unknown { reason: reason.into() }
}

fn mark(server: &Server, pane: &PaneRef) -> String {
    server.tmux(&["display-message", "-p", "-t", &pane.to_string(), "#{@tasuki_mark_00c0ffee}"])
}

fn typed_in_pieces(chars: usize) -> Input {
    Input::Pieces { chars, gap: Duration::from_millis(5), settle: Duration::from_millis(20) }
}

#[tokio::test]
async fn a_text_arrives_as_it_was_written_and_is_submitted_once() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let text = "First line; \"quoted\" 'single' $HOME ${X} $(id) `id`\n\t#{pid} #(id) \\n \\ ~ ~root {a} %if -l --\n日本 🧑‍🚀 end;";
    assert_eq!(type_it(&tmux, &plan(pane, 1, text)).await, SUBMITTED);
    assert_eq!(composer.submits(), [text]);
    assert_eq!(mark(&server, &pane), "000000000001.E");
    assert_eq!(type_it(&tmux, &plan(pane, 2, "Second.")).await, SUBMITTED);
    assert_eq!(composer.submits(), [text, "Second."]);
}

#[tokio::test]
async fn pieces_arrive_unbracketed_and_in_order() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let text: String = (0..120).map(|n| format!("Line {n} of a long instruction, with words.\n")).collect();
    let text = format!("{text}(tasuki delivery 000000000001.)");
    let plan = TypePlan { input: typed_in_pieces(100), ..plan(pane, 1, &text) };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    assert_eq!(composer.submits(), [text.as_str()]);
    assert!(!composer.bytes().contains(&0x1b), "no paste brackets");
}

#[tokio::test]
async fn sixty_four_kibibytes_arrive_whole() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let mut text: String = (0..1400).map(|n| format!("{n:05} the quick brown fox jumps \"over\" $x\n")).collect();
    text.truncate(64 * 1024 - 40);
    text.push_str("\n(tasuki delivery 000000000001.)");
    assert_eq!(type_it(&tmux, &plan(pane, 1, &text)).await, SUBMITTED);
    assert!(composer.submits() == [text], "the long text arrived changed");
}

#[tokio::test]
async fn the_same_delivery_again_types_nothing() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    for resumed in [false, true, true] {
        let plan = TypePlan { resumed, ..plan(pane, 7, "Only once.") };
        assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    }
    drop(tmux);
    let tmux = server.connect().await;
    assert_eq!(type_it(&tmux, &TypePlan { resumed: true, ..plan(pane, 7, "Only once.") }).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Only once."]);
}

#[tokio::test]
async fn two_callers_with_one_delivery_type_it_once() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let plan = plan(pane, 7, "Only once.");
    let _ = tokio::join!(type_it(&tmux, &plan), type_it(&tmux, &plan), type_it(&tmux, &plan));
    wait_until("it is submitted", || !composer.submits().is_empty());
    assert_eq!(composer.submits(), ["Only once."]);
}

#[tokio::test]
async fn two_adapters_of_one_home_type_it_once() {
    let server = Server::start();
    let (one, two) = (server.connect().await, server.connect().await);
    let composer = server.composer(&[]);
    let pane = composer.pane(&two).await;
    let plan = plan(pane, 7, "Only once.");
    let _ = tokio::join!(type_it(&one, &plan), type_it(&two, &plan));
    drop(two);
    let _ = type_it(&one, &TypePlan { resumed: true, ..plan }).await;
    wait_until("it is submitted", || !composer.submits().is_empty());
    assert_eq!(composer.submits(), ["Only once."]);
}

#[tokio::test]
async fn a_pasted_text_that_was_not_submitted_is_resumed_at_enter() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let (id, text) = (DeliveryId::from_bits(7), "Pasted before the crash.");
    server.tmux(&[
        "set-buffer",
        "-b",
        "x",
        text,
        ";",
        "paste-buffer",
        "-p",
        "-r",
        "-d",
        "-b",
        "x",
        "-t",
        &pane.to_string(),
    ]);
    let stage = format!("{id}.P");
    server.tmux(&["set-option", "-p", "-t", &pane.to_string(), "@tasuki_mark_00c0ffee", &stage]);
    assert_eq!(type_it(&tmux, &TypePlan { resumed: true, ..plan(pane, 7, text) }).await, SUBMITTED);
    assert_eq!(composer.submits(), [text]);
}

#[tokio::test]
async fn a_half_done_line_is_never_done_again_blindly() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let set = |mark: &str| server.tmux(&["set-option", "-p", "-t", &pane.to_string(), "@tasuki_mark_00c0ffee", mark]);
    set("000000000007.1b");
    let plan = TypePlan { resumed: true, ..plan(pane, 7, "Perhaps.") };
    assert_eq!(type_it(&tmux, &plan).await, unknown("ambiguous_mark"));
    set("000000000007.2");
    let pieces = TypePlan { input: typed_in_pieces(3), seen_within: Duration::from_millis(300), ..plan };
    assert_eq!(type_it(&tmux, &pieces).await, unknown("ambiguous"));
    assert!(composer.bytes().is_empty());
}

#[tokio::test]
async fn resumed_pieces_go_on_where_the_composer_ends() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    server.tmux(&[
        "set-buffer",
        "-b",
        "x",
        "Hello w",
        ";",
        "paste-buffer",
        "-r",
        "-d",
        "-b",
        "x",
        "-t",
        &pane.to_string(),
    ]);
    server.tmux(&["set-option", "-p", "-t", &pane.to_string(), "@tasuki_mark_00c0ffee", "000000000007.1"]);
    let plan = TypePlan { resumed: true, input: typed_in_pieces(7), ..plan(pane, 7, "Hello world of pieces.") };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Hello world of pieces."]);
}

#[tokio::test]
async fn a_swallowed_enter_is_pressed_again_and_no_more_often_than_allowed() {
    let server = Server::start();
    let tmux = server.connect().await;
    let once = server.composer(&[("TASUKI_TEST_SWALLOW", "1")]);
    let short = |plan: TypePlan| TypePlan { enter_retry_after: Duration::from_millis(300), ..plan };
    let pane = once.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &short(plan(pane, 1, "Again."))).await, SUBMITTED);
    assert_eq!(once.submits(), ["Again."]);
    assert_eq!(mark(&server, &pane), "000000000001.E2");
    let always = server.composer(&[("TASUKI_TEST_SWALLOW", "9")]);
    let pane = always.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &short(plan(pane, 1, "Again."))).await, unknown("not_submitted"));
    assert_eq!(always.bytes().iter().filter(|byte| **byte == b'\r').count(), 2);
}

#[tokio::test]
async fn a_collapsed_paste_counts_as_seen() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[("TASUKI_TEST_COLLAPSE", "1")]);
    let pane = composer.pane(&tmux).await;
    let text = "One.\nTwo.\nThree.\nFour.\n(tasuki delivery 000000000001.)";
    assert_eq!(type_it(&tmux, &plan(pane, 1, text)).await, SUBMITTED);
    assert_eq!(composer.submits(), [text]);
}

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

impl Eye for EndsTheTurn<'_> {
    fn look(&self, capture: &Capture) -> View {
        let view = TestEye.look(capture);
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
    let eye = EndsTheTurn(&composer, AtomicU32::new(0));
    assert_eq!(tmux.type_text(&plan, &eye, &CancellationToken::new()).await, SUBMITTED);
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
async fn an_exit_command_that_ends_the_process_is_submitted() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let plan = TypePlan { input: Input::Command, ..plan(pane, 1, "/exit") };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    wait_until("it has ended", || composer.submits() == ["/exit"]);
    assert_eq!(composer.bytes(), b"/exit\r");
}

#[tokio::test]
async fn stopping_in_time_types_nothing() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let typed = tmux.type_text(&plan(pane, 1, "No."), &TestEye, &stop).await;
    assert_eq!(typed, refused(Refusal::NotReady));
    let resumed = TypePlan { resumed: true, ..plan(pane, 1, "No.") };
    assert_eq!(tmux.type_text(&resumed, &TestEye, &stop).await, unknown("stopped"));
    assert!(composer.bytes().is_empty());
}

#[tokio::test]
async fn a_waiting_hook_of_the_users_does_not_double_a_text() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    server.tmux(&["set-hook", "-g", "after-paste-buffer", "run-shell 'sleep 0.3'"]);
    server.tmux(&["set-hook", "-g", "after-set-option", "run-shell 'sleep 0.1'"]);
    assert_eq!(type_it(&tmux, &plan(pane, 1, "Slowly.")).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Slowly."]);
}
