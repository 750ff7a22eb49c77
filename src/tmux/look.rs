//! Looking at a pane: what the profile's eye makes of a screen, and how sure one may be of it.

use super::pane::{Capture, PaneRow};
use super::{Error, Tmux, pty};
use crate::core::pane::{Activity, Composer, PaneRef, Refusal, View};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Programs that would run a text as commands.
const SHELLS: [&str; 14] =
    ["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "tcsh", "csh", "nu", "xonsh", "elvish", "pwsh"];

/// Reads screens, as one profile knows them, and knows whose they are.
pub trait Eye: Send + Sync {
    /// What this screen shows.
    fn look(&self, capture: &Capture) -> View;

    /// What else must stay the same for a screen to be at rest. Some programs show no sign of their work while their
    /// answer comes in, but then the screen changes.
    fn print(&self, _capture: &Capture) -> u64 {
        0
    }

    /// Whether the agent's own process still runs, as far as that is known. Where the agent was started from a shell the
    /// pane outlives it, and its last screen may stand there still.
    fn lives(&self) -> bool {
        true
    }
}

/// How to wait until a pane takes input.
#[derive(Debug, Clone)]
pub struct ReadyPlan {
    /// Give up after this long.
    pub within: Duration,
    /// The view must stay the same for this long.
    pub calm: Duration,
    /// Pause between two looks.
    pub every: Duration,
}

/// How the wait ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    /// Ready, and stable.
    Ready(View),
    /// A dialog waits for a person, and stays.
    Blocked(View),
    /// Not within the time; what was seen last.
    NotReady(Option<View>),
    /// The pane is gone, or runs another process.
    Gone(Refusal),
    /// No server answers.
    NoTmux,
    /// It was asked to stop.
    Stopped,
}

impl Tmux {
    /// Waits until the pane's program is ready and stays so for `plan.calm`.
    pub async fn wait_ready(&self, pane: &PaneRef, plan: &ReadyPlan, eye: &dyn Eye, stop: &CancellationToken) -> Ready {
        let until = Instant::now() + plan.within;
        let mut last: Option<((View, u64), Instant)> = None;
        loop {
            match self.capture(pane).await {
                Ok(capture) => {
                    let seen = (eye.look(&capture), eye.print(&capture));
                    let since = match last {
                        Some((ref before, since)) if *before == seen => since,
                        _ => Instant::now(),
                    };
                    let (view, print) = seen;
                    if since.elapsed() >= plan.calm {
                        match view.activity {
                            Activity::Ready if view.composer != Composer::Unreadable => return Ready::Ready(view),
                            Activity::Blocked => return Ready::Blocked(view),
                            _ => {}
                        }
                    }
                    last = Some(((view, print), since));
                }
                Err(Error::Pane { reason, .. }) => return Ready::Gone(reason),
                Err(Error::NoServer(_)) => return Ready::NoTmux,
                Err(_) => last = None,
            }
            if Instant::now() >= until {
                return Ready::NotReady(last.map(|((view, _), _)| view));
            }
            if pause(plan.every, stop).await.is_err() {
                return Ready::Stopped;
            }
        }
    }
}

impl Tmux {
    /// How many clients show the window of exactly this pane; tasuki's own client has a window of its own. `None` where
    /// tmux does not tell it (before 3.1).
    ///
    /// # Errors
    /// [`Error::Pane`] when the pane is gone or another one; else when no server answers.
    pub async fn viewers(&self, pane: &PaneRef) -> Result<Option<u64>, Error> {
        let gone = || Error::Pane { pane: *pane, reason: Refusal::PaneGone };
        let ask = format!("display-message -p -t %{} \"#{{pane_pid}} #{{window_active_clients}}\"", pane.pane);
        let (live, reply) = self.read(&ask).await?;
        let row = reply.first().filter(|block| block.ok && live.info.id == pane.server).ok_or_else(gone)?.text();
        let (pid, viewers) = row.trim_end().split_once(' ').ok_or_else(gone)?;
        if pid.parse() != Ok(pane.pid) {
            return Err(gone());
        }
        Ok(viewers.parse().ok())
    }
}

/// It was asked to stop.
pub(super) struct Stopped;

/// Sleeps, unless it is asked to stop.
pub(super) async fn pause(length: Duration, stop: &CancellationToken) -> Result<(), Stopped> {
    // A timer knows milliseconds only: it would make of no pause one of a millisecond.
    if length.is_zero() {
        return if stop.is_cancelled() { Err(Stopped) } else { Ok(()) };
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Stopped),
        () = sleep(length) => Ok(()),
    }
}

/// A text without its white space: how a composer's content is compared, for programs wrap and indent.
pub(super) fn bare(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// What a composer says about a text of ours that should stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// It is there to its end.
    Shown,
    /// The composer can be read, and it is not there.
    Absent,
    /// Nothing can be said.
    Hidden,
}

/// Looks for the end of `text` (`tail`) in a composer, or for the one placeholder that stands for the whole of it.
pub(super) fn sight(composer: &Composer, text: &str, tail: &str) -> Sight {
    match composer {
        Composer::Text(shown) if bare(shown).contains(&bare(tail)) => Sight::Shown,
        Composer::Collapsed { size } if size.is_none_or(|size| is_size_of(size, text)) => Sight::Shown,
        Composer::Text(_) | Composer::Collapsed { .. } | Composer::Empty => Sight::Absent,
        Composer::Unreadable => Sight::Hidden,
    }
}

/// Placeholders count lines or characters, with or without the first line or a last line end.
fn is_size_of(size: u64, text: &str) -> bool {
    let close = |count: usize| size.abs_diff(u64::try_from(count).unwrap_or(u64::MAX)) <= 1;
    close(text.lines().count()) || close(text.chars().count()) || close(text.len())
}

/// Whether a composer that may show only its last lines ends where `so_far` ends, so that the next piece fits on.
pub(super) fn ends_with(composer: &Composer, so_far: &str) -> bool {
    const ENOUGH: usize = 16;
    let Composer::Text(shown) = composer else { return false };
    let (shown, so_far) = (bare(shown), bare(so_far));
    so_far.ends_with(&shown) && shown.chars().count() >= so_far.chars().count().min(ENOUGH)
}

/// What a screen says about typing into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invitation {
    /// Type.
    Open,
    /// Never.
    No(Refusal),
    /// Not now; it may change in a moment.
    Wait(Refusal),
}

/// Judges a screen before the first piece.
pub(super) fn invitation(view: &View, allow_busy: bool) -> Invitation {
    match (view.activity, &view.composer) {
        (Activity::Blocked, _) => Invitation::No(Refusal::Dialog),
        // A CLI still shows its turn for a moment after the hook that told of its end.
        (Activity::Busy, _) if !allow_busy => Invitation::Wait(Refusal::Busy),
        (Activity::Unknown, _) | (_, Composer::Unreadable) => Invitation::Wait(Refusal::NotReady),
        (_, Composer::Text(_) | Composer::Collapsed { .. }) => Invitation::Wait(Refusal::Draft),
        (Activity::Ready | Activity::Busy, Composer::Empty) => Invitation::Open,
    }
}

/// Whether the program of that name would run a text as commands.
pub(super) fn is_shell(command: &str) -> bool {
    SHELLS.contains(&command.trim_start_matches('-'))
}

/// What about the pane itself, apart from its screen, forbids typing. `front` is what has to be in front; without it
/// only a shell may not be.
pub(super) fn obstacle(row: &PaneRow, front: Option<&str>) -> Option<Invitation> {
    if row.dead {
        return Some(Invitation::No(Refusal::PaneDead));
    }
    if row.input_off {
        return Some(Invitation::No(Refusal::InputOff));
    }
    if front.map_or_else(|| is_shell(&row.command), |name| name != row.command) {
        return Some(Invitation::Wait(Refusal::BareShell));
    }
    match pty::collects_lines(&row.tty) {
        Ok(false) => None,
        Ok(true) => Some(Invitation::Wait(Refusal::CookedMode)),
        Err(_) => Some(Invitation::Wait(Refusal::NotReady)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Composer {
        Composer::Text(text.to_owned())
    }

    #[test]
    fn a_text_is_seen_by_its_tail_however_it_is_wrapped() {
        assert_eq!(sight(&text("> wor\n  ld (tasuki\n  delivery 1.)"), "x", "(tasuki delivery 1.)"), Sight::Shown);
        assert_eq!(sight(&text("world (tasuki deliv"), "x", "(tasuki delivery 1.)"), Sight::Absent);
        assert_eq!(sight(&Composer::Empty, "x", "x"), Sight::Absent);
        assert_eq!(sight(&Composer::Unreadable, "x", "x"), Sight::Hidden);
    }

    #[test]
    fn a_placeholder_counts_only_with_the_right_size() {
        let five_lines = "a\nb\nc\nd\ne";
        for (size, sight_of_it) in
            [(None, Sight::Shown), (Some(4), Sight::Shown), (Some(5), Sight::Shown), (Some(40), Sight::Absent)]
        {
            assert_eq!(sight(&Composer::Collapsed { size }, five_lines, "e"), sight_of_it, "{size:?}");
        }
    }

    #[test]
    fn a_piece_fits_only_on_its_own_predecessor() {
        let so_far = "the first piece of a long text";
        assert!(ends_with(&text("piece of a\nlong text"), so_far));
        assert!(ends_with(&text(so_far), so_far));
        assert!(!ends_with(&text("text"), so_far), "too short to be sure");
        assert!(!ends_with(&text("piece of a long text!"), so_far));
        assert!(!ends_with(&text(""), so_far));
        assert!(!ends_with(&Composer::Empty, so_far));
        assert!(!ends_with(&Composer::Unreadable, so_far));
    }

    #[test]
    fn only_an_empty_composer_invites() {
        let view = |activity, composer| View { activity, composer };
        let cases = [
            (view(Activity::Ready, Composer::Empty), false, Invitation::Open),
            (view(Activity::Busy, Composer::Empty), false, Invitation::Wait(Refusal::Busy)),
            (view(Activity::Busy, Composer::Empty), true, Invitation::Open),
            (view(Activity::Busy, text("x")), true, Invitation::Wait(Refusal::Draft)),
            (view(Activity::Ready, text("x")), false, Invitation::Wait(Refusal::Draft)),
            (view(Activity::Ready, Composer::Collapsed { size: None }), false, Invitation::Wait(Refusal::Draft)),
            (view(Activity::Ready, Composer::Unreadable), false, Invitation::Wait(Refusal::NotReady)),
            (view(Activity::Unknown, Composer::Empty), true, Invitation::Wait(Refusal::NotReady)),
            (view(Activity::Blocked, Composer::Empty), true, Invitation::No(Refusal::Dialog)),
        ];
        for (view, allow_busy, expected) in cases {
            assert_eq!(invitation(&view, allow_busy), expected, "{view:?}");
        }
    }
}
