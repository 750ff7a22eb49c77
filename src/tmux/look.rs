//! Reads a pane: what the profile's screen reader makes of it, and when the result is stable.

use super::pane::{Capture, PaneRow};
use super::{Error, Tmux, pty};
use crate::core::pane::{Activity, ComposerContent, PaneRef, Refusal, ScreenReading};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Programs that would run a text as commands.
const SHELLS: [&str; 14] =
    ["sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "mksh", "tcsh", "csh", "nu", "xonsh", "elvish", "pwsh"];

/// Reads screens by the rules of one profile, and knows whether their agent still runs.
pub trait ScreenReader: Send + Sync {
    /// Reads what a screen shows, by the profile's rules.
    fn look(&self, capture: &Capture) -> ScreenReading;

    /// A hash of whatever must stay the same, besides the reading, before a screen counts as calm. Some programs show
    /// no sign of work while an answer comes in, although the rest of the screen changes.
    fn fingerprint(&self, _capture: &Capture) -> u64 {
        0
    }

    /// Whether the agent's own process still runs, as far as that is known. If the agent was started from a shell, the
    /// pane outlives it and may still show its last screen.
    fn lives(&self) -> bool {
        true
    }
}

/// How to wait until a pane takes input.
#[derive(Debug, Clone)]
pub struct ReadyPlan {
    pub within: Duration,
    /// The screen's reading and fingerprint must stay the same for this long.
    pub calm: Duration,
    pub every: Duration,
    /// If set, the wait also ends when each look has shown a running turn for this long.
    pub at_work: Option<Duration>,
}

/// The result of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ready {
    Ready(ScreenReading),
    /// A dialog waits for a person, and stays.
    Blocked(ScreenReading),
    /// A turn runs: see [`ReadyPlan::at_work`].
    AtWork(ScreenReading),
    /// The time is over. Holds what was seen last.
    NotReady(Option<ScreenReading>),
    /// The pane is gone, or runs another process.
    Gone(Refusal),
    NoTmux,
    Stopped,
}

impl Tmux {
    /// Waits until the pane's program is ready and stays so for `plan.calm`.
    pub async fn wait_ready(
        &self,
        pane: &PaneRef,
        plan: &ReadyPlan,
        screen_reader: &dyn ScreenReader,
        stop: &CancellationToken,
    ) -> Ready {
        let until = Instant::now() + plan.within;
        let mut last: Option<((ScreenReading, u64), Instant)> = None;
        let mut busy_since: Option<Instant> = None;
        loop {
            match self.capture(pane).await {
                Ok(capture) => {
                    let seen = (screen_reader.look(&capture), screen_reader.fingerprint(&capture));
                    let since = match last {
                        Some((ref before, since)) if *before == seen => since,
                        _ => Instant::now(),
                    };
                    let (view, fingerprint) = seen;
                    let is_busy = view.activity == Activity::Busy;
                    busy_since = is_busy.then(|| busy_since.unwrap_or_else(Instant::now));
                    if busy_since.zip(plan.at_work).is_some_and(|(since, least)| since.elapsed() >= least) {
                        return Ready::AtWork(view);
                    }
                    if since.elapsed() >= plan.calm {
                        match view.activity {
                            Activity::Ready if view.composer != ComposerContent::Unreadable => {
                                return Ready::Ready(view);
                            }
                            Activity::Blocked => return Ready::Blocked(view),
                            _ => {}
                        }
                    }
                    last = Some(((view, fingerprint), since));
                }
                Err(Error::Pane { reason, .. }) => return Ready::Gone(reason),
                Err(Error::NoServer(_)) => return Ready::NoTmux,
                Err(_) => (last, busy_since) = (None, None),
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
    /// How many clients show the window of exactly this pane; tasuki's own client has a window of its own. `None` if
    /// tmux does not say.
    ///
    /// # Errors
    /// [`Error::Pane`] when the pane is gone or runs another process; else when no server answers.
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

pub(super) struct Stopped;

/// Sleeps for `length`, or until `stop` is cancelled.
pub(super) async fn pause(length: Duration, stop: &CancellationToken) -> Result<(), Stopped> {
    // A timer counts whole milliseconds, so even a pause of zero would last one.
    if length.is_zero() {
        return if stop.is_cancelled() { Err(Stopped) } else { Ok(()) };
    }
    tokio::select! {
        biased;
        () = stop.cancelled() => Err(Stopped),
        () = sleep(length) => Ok(()),
    }
}

/// What a screen says about typing into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Invitation {
    Open,
    No(Refusal),
    /// Not now; it may change in a moment.
    Wait(Refusal),
}

/// Judges a screen before the first piece.
pub(super) fn invitation(view: &ScreenReading, allow_busy: bool) -> Invitation {
    match (view.activity, &view.composer) {
        (Activity::Blocked, _) => Invitation::No(Refusal::Dialog),
        // A CLI looks busy for a moment longer, after its hook has reported the end of the turn.
        (Activity::Busy, _) if !allow_busy => Invitation::Wait(Refusal::Busy),
        (Activity::Unknown, _) | (_, ComposerContent::Unreadable) => Invitation::Wait(Refusal::NotReady),
        (_, ComposerContent::Text(_) | ComposerContent::Tail(_) | ComposerContent::Collapsed { .. }) => {
            Invitation::Wait(Refusal::Draft)
        }
        (Activity::Ready | Activity::Busy, ComposerContent::Empty) => Invitation::Open,
    }
}

/// Whether the program of that name would run a text as commands.
#[must_use]
pub fn is_shell(command: &str) -> bool {
    SHELLS.contains(&command.trim_start_matches('-'))
}

/// Why nothing may be typed into a pane now, apart from what its screen shows. `front`: the program that must be in the
/// foreground; if `None`, any program except a shell may be.
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
    match pty::is_canonical(&row.tty) {
        Ok(false) => None,
        Ok(true) => Some(Invitation::Wait(Refusal::CookedMode)),
        Err(_) => Some(Invitation::Wait(Refusal::NotReady)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_empty_composer_invites() {
        let view = |activity, composer| ScreenReading { activity, composer };
        let draft = || ComposerContent::Text("x".to_owned());
        let cases = [
            (view(Activity::Ready, ComposerContent::Empty), false, Invitation::Open),
            (view(Activity::Busy, ComposerContent::Empty), false, Invitation::Wait(Refusal::Busy)),
            (view(Activity::Busy, ComposerContent::Empty), true, Invitation::Open),
            (view(Activity::Busy, draft()), true, Invitation::Wait(Refusal::Draft)),
            (view(Activity::Ready, draft()), false, Invitation::Wait(Refusal::Draft)),
            (view(Activity::Ready, ComposerContent::Collapsed { size: None }), false, Invitation::Wait(Refusal::Draft)),
            (view(Activity::Ready, ComposerContent::Unreadable), false, Invitation::Wait(Refusal::NotReady)),
            (view(Activity::Unknown, ComposerContent::Empty), true, Invitation::Wait(Refusal::NotReady)),
            (view(Activity::Blocked, ComposerContent::Empty), true, Invitation::No(Refusal::Dialog)),
        ];
        for (view, allow_busy, expected) in cases {
            assert_eq!(invitation(&view, allow_busy), expected, "{view:?}");
        }
    }
}
