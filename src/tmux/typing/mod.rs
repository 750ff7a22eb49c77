//! Types a text exactly once.
//!
//! The pane's own mark is the only truth about what was typed, because it changes in the same step in which the text
//! goes in. So typing has one rule: read the mark, do the next thing, read the mark again. A crash, a lost connection
//! and a guard that refused are then all the same case. Nothing is ever sent again because an answer was lost.

mod preconditions;
mod submit;

use super::composer_match::{ComposerMatch, holds_so_far, match_composer};
use super::guard::{DeliveryStage, is_mark};
use super::look::{ScreenReader, Stopped, pause};
use super::pane::{Noted, PaneRow, same};
use super::plan::{Input, TypePlan};
use super::server_lock::ServerLock;
use super::supervisor::LiveClient;
use super::{Error, Tmux};
use crate::core::pane::{Activity, ComposerContent, Refusal, ScreenReading, Typed};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The pause between two looks at an agent that is to be typed into: the second look confirms the first, which may have
/// fallen between two parts of one redraw.
const CONFIRM: Duration = Duration::from_millis(25);
/// How long to wait before the next look at an obstacle, or at a mark that another process may be moving.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The first and the longest pause between two looks at the screen while something is expected to appear. Most of what
/// an agent draws appears within milliseconds; the rest may take long.
const LOOKS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(40));
/// How long a user's own tmux hook may run between two commands of one of our lines.
const HOOK_PATIENCE: Duration = Duration::from_secs(2);
/// How long to wait until a lost connection is replaced.
const RECONNECT_PATIENCE: Duration = Duration::from_secs(20);
/// How many times, in the middle of a text, tasuki checks again whether an obstacle is gone before typing ends.
const MAX_OBSTACLES: u32 = 20;

fn refused(reason: Refusal) -> Typed {
    Typed::Refused { reason }
}

fn unknown(reason: &str) -> Typed {
    Typed::Unknown { reason: reason.to_owned() }
}

/// The wire name of a refusal.
fn wire_name(reason: Refusal) -> String {
    serde_json::to_value(reason).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The pauses between looks at a screen on which something is expected: each is twice as long as the one before it.
struct Looks(Duration);

impl Looks {
    fn new() -> Looks {
        Looks(LOOKS.0)
    }

    fn next_pause(&mut self) -> Duration {
        let now = self.0;
        self.0 = (now * 2).min(LOOKS.1);
        now
    }
}

/// Why a step ended without a result.
enum BrokenOff {
    Stopped,
    /// The connection was lost, or the line could not be sent.
    Lost,
}

impl From<Stopped> for BrokenOff {
    fn from(_: Stopped) -> BrokenOff {
        BrokenOff::Stopped
    }
}

/// One look at the screen, or why the pane can't be read, or why the step was broken off.
type Look = Result<Result<ScreenReading, Refusal>, BrokenOff>;

/// The result of a step: the outcome of the whole delivery, or `None` if the mark must be read again.
type StepResult = Result<Option<Typed>, BrokenOff>;

pub(super) struct Delivery<'a> {
    tmux: &'a Tmux,
    plan: &'a TypePlan,
    screen_reader: &'a dyn ScreenReader,
    stop: &'a CancellationToken,
    pieces: Vec<String>,
    due: Instant,
    /// A mark of this delivery was seen on the pane.
    seen_ours: bool,
    /// Something may have been typed, although no mark of this delivery was seen.
    doubt: bool,
    /// Number of the piece that was typed last over the present connection; 0 if none was.
    last_piece: usize,
    entered: bool,
    /// How often the pane would not take a further line.
    obstacles: u32,
    /// Another home has held the lock for too long: lines go out without it.
    lockless: bool,
    /// The program that was in the foreground when the agent was recognised on the screen. It counts if the plan names
    /// none.
    front: Option<String>,
}

impl<'a> Delivery<'a> {
    /// A delivery that this process has not begun yet.
    pub(super) fn new(
        tmux: &'a Tmux,
        plan: &'a TypePlan,
        screen_reader: &'a dyn ScreenReader,
        stop: &'a CancellationToken,
        pieces: Vec<String>,
        due: Instant,
    ) -> Self {
        let doubt = plan.resumed;
        let (seen_ours, last_piece, entered, obstacles, lockless, front) = (false, 0, false, 0, false, None);
        Delivery {
            tmux,
            plan,
            screen_reader,
            stop,
            pieces,
            due,
            seen_ours,
            doubt,
            last_piece,
            entered,
            obstacles,
            lockless,
            front,
        }
    }

    /// Types the text, submits it, and returns how far it came.
    pub(super) async fn run(mut self) -> Typed {
        loop {
            if self.stop.is_cancelled() {
                return self.end("stopped", Refusal::NotReady);
            }
            if Instant::now() >= self.due {
                return self.end("deadline", Refusal::NotReady);
            }
            match self.step().await {
                Ok(Some(typed)) => return typed,
                Ok(None) => {}
                Err(BrokenOff::Stopped) => return self.end("stopped", Refusal::NotReady),
                Err(BrokenOff::Lost) => self.last_piece = 0,
            }
        }
    }

    /// The outcome if typing can't continue: a refusal if it is certain that nothing was typed, else unknown.
    fn end(&self, reason: &str, refusal: Refusal) -> Typed {
        if self.seen_ours || self.doubt { unknown(reason) } else { refused(refusal) }
    }

    /// The outcome if the pane or its server is gone. If Enter was pressed after a command such as `/exit`, the command
    /// has done its work.
    fn pane_gone(&self, reason: &str, refusal: Refusal) -> Typed {
        if self.entered && self.plan.input == Input::Command {
            return Typed::Submitted { proven: false };
        }
        self.end(reason, refusal)
    }

    async fn step(&mut self) -> StepResult {
        let live = match self.connection().await? {
            Ok(live) => live,
            Err(typed) => return Ok(Some(typed)),
        };
        let asked = self.tmux.noted(&live, self.plan.pane.pane);
        // Between two pieces the screen is needed next, so both questions go out at once.
        let is_between = self.last_piece > 0 && self.last_piece < self.pieces.len();
        let (noted, screen) = match is_between {
            true => tokio::join!(asked, async { Some(self.view().await) }),
            false => (asked.await, None),
        };
        let noted = noted.map_err(|_| BrokenOff::Lost)?;
        let row = match same(&self.plan.pane, noted.as_ref().map(|noted| noted.row.clone())) {
            Ok(row) if row.dead => return Ok(Some(self.pane_gone("pane_lost", Refusal::PaneDead))),
            Ok(row) => row,
            Err(Refusal::PaneChanged) => return Ok(Some(self.pane_gone("pane_changed", Refusal::PaneChanged))),
            Err(reason) => return Ok(Some(self.pane_gone("pane_lost", reason))),
        };
        let Some(noted) = noted else { return Err(BrokenOff::Lost) };
        if noted.fence != live.fence {
            // The mark will show what the other process did.
            live.give_up();
            pause(LOOK_AGAIN, self.stop).await?;
            return Err(BrokenOff::Lost);
        }
        if self.tmux.inner.shared.names.is_foreign(&noted.claim) {
            return Ok(Some(self.end("pane_claimed", Refusal::PaneClaimed)));
        }
        let stage = DeliveryStage::read(&noted.mark, &self.plan.delivery);
        match stage {
            None if self.seen_ours => return Ok(Some(unknown("mark_lost"))),
            // The fence keeps lines of former connections out, so this is certain: nothing was typed.
            None => self.doubt = false,
            Some(stage) => {
                self.seen_ours = true;
                self.entered |= matches!(stage, DeliveryStage::EnterBegun(_) | DeliveryStage::Entered(_));
            }
        }
        match stage {
            None => self.begin(&live, &noted).await,
            Some(DeliveryStage::Begun(n)) => self.resolve_begun_piece(&live, n, &row).await,
            Some(DeliveryStage::Pieces(n)) => self.next_piece(&live, n, &row, screen).await,
            Some(DeliveryStage::Pasted) => self.submit(&live, DeliveryStage::Pasted, &row).await,
            Some(stage @ (DeliveryStage::EnterBegun(n) | DeliveryStage::Entered(n))) => {
                self.verify(&live, stage, n, &row).await
            }
        }
    }

    /// The connection to the pane's own server, or the outcome if there is none.
    async fn connection(&self) -> Result<Result<Arc<LiveClient>, Typed>, BrokenOff> {
        let patience = RECONNECT_PATIENCE.min(self.due.saturating_duration_since(Instant::now()));
        let live = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(BrokenOff::Stopped),
            live = self.tmux.live_within(patience) => live,
        };
        Ok(match live {
            Ok(live) if live.info.id == self.plan.pane.server => Ok(live),
            Ok(_) => Err(self.pane_gone("server_lost", Refusal::PaneGone)),
            Err(Error::NoServer(_)) => Err(self.pane_gone("server_lost", Refusal::NoTmux)),
            Err(_) => Err(self.end("deadline", Refusal::NoTmux)),
        })
    }

    async fn begin(&mut self, live: &LiveClient, noted: &Noted) -> StepResult {
        if !is_mark(&noted.mark) {
            return Ok(Some(refused(Refusal::NotReady)));
        }
        match self.invited(live).await? {
            Ok(()) => self.type_piece(live, &noted.mark, 1).await,
            Err(reason) => Ok(Some(refused(reason))),
        }
    }

    async fn type_piece(&mut self, live: &LiveClient, before: &str, number: usize) -> StepResult {
        let Some(_lock) = self.take_turn(live).await? else { return Ok(None) };
        if let Some(end) = self.agent_dead() {
            return Ok(Some(end));
        }
        let Some(text) = self.pieces.get(number - 1) else { return Ok(Some(unknown("ambiguous_mark"))) };
        let after = if number == self.pieces.len() { DeliveryStage::Pasted } else { DeliveryStage::Pieces(number) };
        let paste = if self.plan.input == Input::Bracketed { "paste-buffer -p -r" } else { "paste-buffer -r" };
        let stages = (DeliveryStage::Begun(number), after);
        let line = self.line(live, before, stages, text, paste, self.plan.needs_brackets());
        self.send(live, line).await?;
        self.last_piece = number;
        Ok(None)
    }

    /// One guarded line: it puts `text` in and moves the mark, or does nothing at all.
    fn line(
        &self,
        live: &LiveClient,
        before: &str,
        stages: (DeliveryStage, DeliveryStage),
        text: &str,
        paste: &str,
        needs_brackets: bool,
    ) -> Option<String> {
        let (names, plan) = (&self.tmux.inner.shared.names, self.plan);
        let mut guard = names.may_type(&live.fence, &plan.pane, before, self.front());
        if needs_brackets {
            guard = names.out_of_modes(&guard);
        }
        names.typing_line(&plan.pane, &plan.delivery, &guard, stages, text, paste).ok()
    }

    /// The lock between homes, which is held while a line goes out. If it is not free at once, this waits until it is,
    /// and returns `None`: meanwhile a dialog may have opened, or a person may have typed, so mark and screen must be
    /// read again.
    async fn take_turn(&mut self, live: &LiveClient) -> Result<Option<ServerLock>, BrokenOff> {
        let lock = ServerLock::shared_now(&live.info.socket_path).or(self.lockless.then_some(ServerLock::NONE));
        if lock.is_none() {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Err(BrokenOff::Stopped),
                () = tokio::time::sleep_until(self.due) => {}
                lock = ServerLock::shared(&live.info.socket_path) => self.lockless = !lock.is_held(),
            }
        }
        Ok(lock)
    }

    /// The caller has the lock between homes.
    async fn send(&mut self, live: &LiveClient, line: Option<String>) -> Result<(), BrokenOff> {
        let Some(line) = line else { return Err(BrokenOff::Stopped) };
        // An answer does not say whether the guard let the line through. Until the mark is read, both are possible.
        let before = std::mem::replace(&mut self.doubt, true);
        live.ask(line).await.map(drop).map_err(|lost| {
            self.doubt = before || lost.sent;
            BrokenOff::Lost
        })
    }

    /// Whether the pane's mark is no longer `mark`, or the pane is gone.
    async fn mark_changed(&self, live: &LiveClient, mark: &str) -> Result<bool, BrokenOff> {
        let noted = self.tmux.noted(live, self.plan.pane.pane).await.map_err(|_| BrokenOff::Lost)?;
        Ok(noted.is_none_or(|noted| noted.mark != mark))
    }

    /// Continues after a line that was carried out only in part: a user's tmux hook runs between its commands, or the
    /// server has dropped the rest of the line. If the mark does not change soon, the screen shows whether the piece
    /// has arrived.
    async fn resolve_begun_piece(&mut self, live: &LiveClient, number: usize, row: &PaneRow) -> StepResult {
        if let Some(end) = self.check_obstacle(row).await? {
            return Ok(end);
        }
        let mark = DeliveryStage::Begun(number).mark(&self.plan.delivery);
        let until = Instant::now() + HOOK_PATIENCE;
        while Instant::now() < until {
            pause(LOOK_AGAIN, self.stop).await?;
            if self.mark_changed(live, &mark).await? {
                return Ok(None);
            }
        }
        let Ok(view) = self.view().await? else { return Ok(None) };
        let whole = number == self.pieces.len();
        let arrived = match whole {
            true => self.matched(&view.composer) == ComposerMatch::Shown,
            false => holds_so_far(&view.composer, &self.pieces[..number.min(self.pieces.len())].concat()),
        };
        if arrived {
            self.recognise(&row.command, view.activity);
        }
        match (arrived && view.activity != Activity::Blocked, whole) {
            (false, _) => Ok(Some(unknown("ambiguous_mark"))),
            (true, true) => self.press(live, &mark, 1).await,
            (true, false) => self.type_piece(live, &mark, number + 1).await,
        }
    }

    /// Types the next piece. `screen`: a look at the screen that was taken after the mark was read.
    async fn next_piece(
        &mut self,
        live: &LiveClient,
        number: usize,
        row: &PaneRow,
        mut screen: Option<Look>,
    ) -> StepResult {
        if let Some(end) = self.check_obstacle(row).await? {
            return Ok(end);
        }
        let mark = DeliveryStage::Pieces(number).mark(&self.plan.delivery);
        let so_far = self.pieces[..number.min(self.pieces.len())].concat();
        let until = Instant::now() + self.plan.seen_within;
        let mut looks = Looks::new();
        loop {
            let look = if let Some(look) = screen.take() { look } else { self.view().await };
            let Ok(view) = look? else { return Ok(None) };
            if view.activity == Activity::Blocked {
                return Ok(Some(unknown("dialog")));
            }
            // Each piece must be seen before the next one goes in: a busy program later reads all waiting input at
            // once, and takes two pieces that it reads together for a paste.
            if holds_so_far(&view.composer, &so_far) {
                self.recognise(&row.command, view.activity);
                break;
            }
            if self.mark_changed(live, &mark).await? {
                return Ok(None);
            }
            if Instant::now() >= until {
                return Ok(Some(unknown(if self.last_piece == number { "not_seen" } else { "ambiguous" })));
            }
            pause(looks.next_pause(), self.stop).await?;
        }
        if let Input::Pieces { gap, .. } = self.plan.input {
            pause(gap, self.stop).await?;
        }
        self.type_piece(live, &mark, number + 1).await
    }

    /// What the composer shows of the whole text.
    fn matched(&self, composer: &ComposerContent) -> ComposerMatch {
        let TypePlan { text, seen_tail, input, .. } = self.plan;
        match_composer(composer, text, if seen_tail.trim().is_empty() { text } else { seen_tail }, *input)
    }
}
