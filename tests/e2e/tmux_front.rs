//! Whoever is in front of a pane after its agent quit gets nothing of a text that was meant for the agent, although the
//! agent's last screen still stands there.

use crate::support::tmux::{ComposerPane, Server, TestScreenReader, is_running, plan};
use crate::support::typed::{SUBMITTED, refused, typed_in_pieces, unknown};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tasuki::core::pane::{Activity, ComposerContent, Refusal, ScreenReading, Typed};
use tasuki::tmux::{Capture, Input, ScreenReader, Tmux, TypePlan};
use tokio_util::sync::CancellationToken;

type When<'t> = &'t (dyn Fn(&ScreenReading) -> bool + Sync);

/// Kills the agent right after the first look that is as `when` says, before anything can be made of that look.
struct Quits<'t> {
    server: &'t Server,
    composer: &'t ComposerPane,
    when: When<'t>,
    /// Whether the agent's own process is known.
    tells: bool,
    done: AtomicBool,
}

impl ScreenReader for Quits<'_> {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let view = TestScreenReader.look(capture);
        if (self.when)(&view) && !self.done.swap(true, Ordering::Relaxed) {
            self.composer.quit(self.server);
        }
        view
    }

    fn lives(&self) -> bool {
        !self.tells || is_running(self.composer.pid())
    }
}

fn holds_text(view: &ScreenReading) -> bool {
    matches!(view.composer, ComposerContent::Text(_))
}

struct Stage {
    server: Server,
    tmux: Tmux,
}

impl Stage {
    async fn new() -> Stage {
        let server = Server::start();
        let tmux = server.connect().await;
        Stage { server, tmux }
    }

    async fn quit_when(&self, composer: &ComposerPane, plan: &TypePlan, tells: bool, when: When<'_>) -> Typed {
        let screen_reader = Quits { server: &self.server, composer, when, tells, done: AtomicBool::new(false) };
        self.tmux.type_text(plan, &screen_reader, &CancellationToken::new()).await
    }
}

/// With and without the agent's process: what the verdict then says.
const ENDS: [(bool, &str); 2] = [(true, "agent_ended"), (false, "bare_shell")];

#[tokio::test]
async fn the_rest_of_a_text_is_kept_back() {
    let stage = Stage::new().await;
    for (tells, reason) in ENDS {
        let composer = stage.server.composer_in_shell(&[]);
        let text = "A text that goes in by many pieces, each of them short.";
        let plan = TypePlan { input: typed_in_pieces(4), ..plan(composer.pane(&stage.tmux).await, 1, text) };
        assert_eq!(stage.quit_when(&composer, &plan, tells, &holds_text).await, unknown(reason));
        assert_eq!(composer.strays(), b"");
        assert!(text.as_bytes().starts_with(&composer.bytes()));
    }
}

#[tokio::test]
async fn enter_is_kept_back() {
    let stage = Stage::new().await;
    for (tells, reason) in ENDS {
        let composer = stage.server.composer_in_shell(&[]);
        let plan = plan(composer.pane(&stage.tmux).await, 1, "rm -rf nothing");
        assert_eq!(stage.quit_when(&composer, &plan, tells, &holds_text).await, unknown(reason));
        assert_eq!(composer.strays(), b"");
    }
}

#[tokio::test]
async fn the_second_enter_is_kept_back() {
    let stage = Stage::new().await;
    for (tells, reason) in ENDS {
        let composer = stage.server.composer_in_shell(&[("TASUKI_TEST_SWALLOW", "1")]);
        let plan = plan(composer.pane(&stage.tmux).await, 1, "rm -rf nothing");
        let plan = TypePlan { enter_retry_after: Duration::from_millis(300), ..plan };
        let swallowed = |_: &ScreenReading| composer.bytes().contains(&b'\r');
        let typed = stage.quit_when(&composer, &plan, tells, &swallowed).await;
        assert_eq!(typed, unknown(reason));
        assert_eq!(composer.strays(), b"");
    }
}

#[tokio::test]
async fn a_resumed_text_is_kept_back_too() {
    let stage = Stage::new().await;
    for (tells, reason) in ENDS {
        let composer = stage.server.composer_in_shell(&[]);
        let pane = composer.pane(&stage.tmux).await;
        let target = pane.to_string();
        stage.server.tmux(&["set-option", "-p", "-t", &target, "@tasuki_mark_00c0ffee", "000000000001.P"]);
        stage.server.tmux(&["send-keys", "-t", &target, "-l", "Pasted before."]);
        let plan = TypePlan { resumed: true, ..plan(pane, 1, "Pasted before.") };
        assert_eq!(stage.quit_when(&composer, &plan, tells, &holds_text).await, unknown(reason));
        assert_eq!(composer.strays(), b"");
    }
}

#[tokio::test]
async fn an_agent_that_is_gone_is_refused_although_its_screen_invites() {
    let stage = Stage::new().await;
    let composer = stage.server.composer_in_shell(&[]);
    let plan = plan(composer.pane(&stage.tmux).await, 1, "No.");
    assert_eq!(stage.quit_when(&composer, &plan, true, &|_| true).await, refused(Refusal::AgentEnded));
    assert_eq!(composer.strays(), b"");
}

/// The agent's last screen, which does not change any more, shows a turn.
struct GoneInTurn;

impl ScreenReader for GoneInTurn {
    fn look(&self, capture: &Capture) -> ScreenReading {
        ScreenReading { activity: Activity::Busy, ..TestScreenReader.look(capture) }
    }

    fn lives(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn an_agent_that_is_gone_in_a_turn_is_not_waited_for() {
    let stage = Stage::new().await;
    let composer = stage.server.composer_in_shell(&[]);
    let plan = plan(composer.pane(&stage.tmux).await, 1, "No.");
    let typed = stage.tmux.type_text(&plan, &GoneInTurn, &CancellationToken::new()).await;
    assert_eq!(typed, refused(Refusal::AgentEnded));
}

#[tokio::test]
async fn an_exit_command_may_end_the_agent() {
    let stage = Stage::new().await;
    for (tells, _) in ENDS {
        let composer = stage.server.composer_in_shell(&[]);
        let plan = plan(composer.pane(&stage.tmux).await, 1, "/exit");
        let plan = TypePlan { input: Input::Command, enter_retry_after: Duration::from_millis(300), ..plan };
        assert_eq!(stage.quit_when(&composer, &plan, tells, &|_| false).await, SUBMITTED);
        composer.wait_for_successor(&stage.server);
        assert_eq!(composer.bytes(), b"/exit\r");
        assert_eq!(composer.strays(), b"");
    }
}
