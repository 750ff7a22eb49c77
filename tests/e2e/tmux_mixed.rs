//! Typing into real panes: before Enter the text must stand in the composer, and nothing else.

use crate::support::tmux::{Server, TestScreenReader, plan};
use crate::support::typed::{type_it, typed_in_pieces, unknown};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tasuki::core::pane::{ComposerContent, ScreenReading};
use tasuki::tmux::{Capture, ScreenReader, TypePlan};
use tokio_util::sync::CancellationToken;

/// A person who types as soon as a text of ours stands in the composer.
struct Meddler<'s> {
    server: &'s Server,
    pane: String,
    keys: &'static str,
    done: AtomicBool,
}

impl ScreenReader for Meddler<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let view = TestScreenReader.look(capture);
        if matches!(view.composer, ComposerContent::Text(_)) && !self.done.swap(true, Ordering::Relaxed) {
            self.server.tmux(&["send-keys", "-t", &self.pane, "-l", self.keys]);
            crate::support::tmux::wait_until("their words are there", || {
                self.server.tmux(&["capture-pane", "-p", "-t", &self.pane]).contains(self.keys)
            });
        }
        view
    }
}

#[tokio::test]
async fn a_persons_words_behind_a_text_are_not_submitted_with_it() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let plan = TypePlan {
        enter_delay: Duration::from_millis(300),
        seen_within: Duration::from_secs(1),
        ..plan(pane, 1, "Ours.\n(tasuki delivery 000000000001.)")
    };
    let screen_reader =
        Meddler { server: &server, pane: pane.to_string(), keys: " and mine", done: AtomicBool::new(false) };
    assert_eq!(tmux.type_text(&plan, &screen_reader, &CancellationToken::new()).await, unknown("mixed_draft"));
    assert!(!composer.bytes().contains(&b'\r'), "Enter was pressed: {:?}", composer.submits());
}

/// A person whose Enter takes the first piece away, just before the second one goes in.
struct Submitter<'s> {
    server: &'s Server,
    pane: String,
    done: AtomicBool,
}

impl ScreenReader for Submitter<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let view = TestScreenReader.look(capture);
        if matches!(view.composer, ComposerContent::Text(_)) && !self.done.swap(true, Ordering::Relaxed) {
            self.server.tmux(&["send-keys", "-t", &self.pane, "Enter"]);
            crate::support::tmux::wait_until("it is taken", || {
                self.server.tmux(&["capture-pane", "-p", "-t", &self.pane]).contains("⟦⟧")
            });
        }
        view
    }
}

#[tokio::test]
async fn the_rest_of_a_text_whose_beginning_a_person_has_submitted_is_not_submitted() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[]);
    let pane = composer.pane(&tmux).await;
    let plan = TypePlan {
        input: typed_in_pieces(400),
        seen_within: Duration::from_millis(500),
        ..plan(pane, 1, "Please write all of it down.\n(tasuki delivery 000000000001.)")
    };
    let screen_reader = Submitter { server: &server, pane: pane.to_string(), done: AtomicBool::new(false) };
    assert_eq!(tmux.type_text(&plan, &screen_reader, &CancellationToken::new()).await, unknown("mixed_draft"));
    assert_eq!(composer.submits(), ["P"], "Enter was pressed on what was left");
}

/// In vim's NORMAL mode the first letters of a text are commands, until one of them begins to insert.
#[tokio::test]
async fn a_composer_that_takes_letters_for_commands_gets_one() {
    let server = Server::start();
    let tmux = server.connect().await;
    let composer = server.composer(&[("TASUKI_TEST_VIM", "1")]);
    let pane = composer.pane(&tmux).await;
    let plan = TypePlan {
        input: typed_in_pieces(400),
        seen_within: Duration::from_millis(500),
        ..plan(pane, 1, "Please write it down.\n(tasuki delivery 000000000001.)")
    };
    assert_eq!(type_it(&tmux, &plan).await, unknown("not_seen"));
    assert_eq!(composer.submits(), [""; 0]);
    assert_eq!(composer.bytes(), b"P");
}
