//! Typing into real panes: what arrives, that it arrives once, and how it goes on after a crash.

use crate::support::tmux::{Server, plan, wait_until};
use crate::support::typed::{SUBMITTED, mark, type_it, typed_in_pieces, unknown};
use std::time::Duration;
use tasuki::core::id::DeliveryId;
use tasuki::tmux::{Input, TypePlan};

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

/// A program that is busy reads what has come meanwhile at once, and may take two pieces for a paste.
#[tokio::test]
async fn a_piece_goes_in_only_when_the_one_before_it_was_seen() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[("TASUKI_TEST_DELAY", "150")]);
    let pane = composer.pane(&tmux).await;
    let text: String = (0..20).map(|n| format!("Line {n:02} of a long instruction, with words.\n")).collect();
    let text = format!("{text}(tasuki delivery 000000000001.)");
    let plan = TypePlan { input: typed_in_pieces(100), ..plan(pane, 1, &text) };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    assert_eq!(composer.submits(), [text.as_str()]);
    assert!(composer.reads().iter().all(|count| *count <= 100), "{:?}", composer.reads());
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

/// The label of a paste is a person's if our text was not pasted but typed.
#[tokio::test]
async fn the_label_of_a_paste_is_not_taken_for_a_typed_text() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[("TASUKI_TEST_COLLAPSE", "1")]);
    let pane = composer.pane(&tmux).await;
    let target = pane.to_string();
    // This delivery was begun by a former process, and a person has replaced the text by a paste of their own.
    server.tmux(&["set-option", "-p", "-t", &target, "@tasuki_mark_00c0ffee", "000000000001.P"]);
    server.tmux(&[
        "set-buffer",
        "-b",
        "mine",
        "a\nb\nc\nd\ne",
        ";",
        "paste-buffer",
        "-p",
        "-r",
        "-b",
        "mine",
        "-t",
        &target,
    ]);
    wait_until("it is collapsed", || server.tmux(&["capture-pane", "-p", "-t", &target]).contains("(pasted 5 lines)"));
    let (input, seen_within) = (typed_in_pieces(100), Duration::from_millis(500));
    let typed = TypePlan { input, seen_within, resumed: true, ..plan(pane, 1, "1\n2\n3\n4\n5") };
    assert_eq!(type_it(&tmux, &typed).await, unknown("not_seen"));
    assert_eq!(composer.submits(), [""; 0], "it was submitted");
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
    let one = server.connect().await;
    let composer = server.composer(&[]);
    // From here on, each of the two ends the other's connection.
    let pane = composer.pane(&one).await;
    let two = server.connect().await;
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
        "Hello wo",
        ";",
        "paste-buffer",
        "-r",
        "-d",
        "-b",
        "x",
        "-t",
        &pane.to_string(),
    ]);
    server.tmux(&["set-option", "-p", "-t", &pane.to_string(), "@tasuki_mark_00c0ffee", "000000000007.2"]);
    let plan = TypePlan { resumed: true, input: typed_in_pieces(7), ..plan(pane, 7, "Hello world of pieces.") };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Hello world of pieces."]);
}

#[tokio::test]
async fn a_swallowed_enter_is_pressed_again_and_no_more_often_than_allowed() {
    let server = Server::start();
    let tmux = server.connect().await;
    let once = server.composer(&[("TASUKI_TEST_SWALLOW", "1")]);
    let (retry, seen) = (Duration::from_millis(300), Duration::from_secs(1));
    let short = |plan: TypePlan| TypePlan { enter_retry_after: retry, seen_within: seen, ..plan };
    let pane = once.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &short(plan(pane, 1, "Again."))).await, SUBMITTED);
    assert_eq!(once.submits(), ["Again."]);
    assert_eq!(mark(&server, &pane), "000000000001.E2");
    let always = server.composer(&[("TASUKI_TEST_SWALLOW", "9")]);
    let pane = always.pane(&tmux).await;
    assert_eq!(type_it(&tmux, &short(plan(pane, 1, "Again."))).await, unknown("not_submitted"));
    assert_eq!(always.bytes().iter().filter(|byte| **byte == b'\r').count(), 2);
}

/// A program may take Enter and still show the text for a while, as opencode does until its session is made.
#[tokio::test]
async fn a_text_that_leaves_the_composer_late_is_waited_for() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[("TASUKI_TEST_SLOW_ENTER", "2000")]);
    let pane = composer.pane(&tmux).await;
    let plan = TypePlan { enter_retry_after: Duration::from_millis(300), ..plan(pane, 1, "Slowly.") };
    assert_eq!(type_it(&tmux, &plan).await, SUBMITTED);
    assert_eq!(composer.submits(), ["Slowly."]);
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
