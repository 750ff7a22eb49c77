//! Checks whether the pane may be typed into at this moment. Before the first piece, pane and screen must allow it.
//! Before every further line, the check is only whether the agent still reads its input.
//!
//! An agent may quit in the middle of a text and leave its last screen behind, so the screen alone proves nothing. Two
//! other things do: the agent's own process, checked before each line, and the name of the program in front, which is
//! part of each line's guard, so that the server compares it in the same step in which it types.

use super::{BrokenOff, CONFIRM, Delivery, LOOK_AGAIN, MAX_OBSTACLES, wire_name};
use crate::core::pane::{Activity, Refusal, ScreenReading, Typed};
use crate::tmux::Error;
use crate::tmux::look::{Invitation, invitation, is_shell, obstacle, pause};
use crate::tmux::pane::{PaneRow, same};
use crate::tmux::supervisor::LiveClient;
use tokio::time::Instant;

impl Delivery<'_> {
    /// Waits until two looks in a row show that the pane may be typed into.
    pub(super) async fn invited(&mut self, live: &LiveClient) -> Result<Result<(), Refusal>, BrokenOff> {
        let until = Instant::now() + self.plan.hold.max(5 * LOOK_AGAIN);
        let mut before: Option<(ScreenReading, Invitation, String)> = None;
        self.front = None;
        loop {
            let noted = self.tmux.noted(live, self.plan.pane.pane).await.map_err(|_| BrokenOff::Lost)?;
            let command = noted.as_ref().map(|noted| noted.row.command.clone());
            let view = match self.view().await? {
                Ok(view) => view,
                Err(reason) => return Ok(Err(reason)),
            };
            let verdict = match same(&self.plan.pane, noted.map(|noted| noted.row)) {
                _ if !self.screen_reader.lives() => Invitation::No(Refusal::AgentEnded),
                Ok(row) => match obstacle(&row, self.front()) {
                    Some(obstacle) => obstacle,
                    // In copy mode tmux asks that mode's screen, and not the program's, whether it takes brackets.
                    None if row.in_mode && self.plan.needs_brackets() => {
                        self.leave_unseen_mode(live).await?;
                        Invitation::Wait(Refusal::CopyMode)
                    }
                    None => invitation(&view, self.plan.allow_busy),
                },
                Err(reason) => Invitation::No(reason),
            };
            // The command in front counts only with a ready screen, because `recognise` keeps no other.
            let command = command.filter(|_| view.activity == Activity::Ready).unwrap_or_default();
            let now = (view, verdict, command);
            match verdict {
                // An obstacle that does not pass needs no second look.
                Invitation::No(reason) => return Ok(Err(reason)),
                // This command was read between two looks that both showed the agent's screen.
                Invitation::Open if before.as_ref() == Some(&now) => {
                    self.recognise(&now.2, now.0.activity);
                    return Ok(Ok(()));
                }
                Invitation::Open if Instant::now() >= until => return Ok(Err(Refusal::NotReady)),
                Invitation::Wait(reason) if Instant::now() >= until => return Ok(Err(reason)),
                _ => before = Some(now),
            }
            pause(CONFIRM, self.stop).await?;
        }
    }

    /// Leaves the pane's copy mode if no client shows its window: then nobody loses the place where they were reading.
    /// If the server does not say how many clients show it, the pane stays in copy mode.
    async fn leave_unseen_mode(&self, live: &LiveClient) -> Result<(), BrokenOff> {
        let pane = &self.plan.pane;
        let same = self.tmux.inner.shared.names.same_pane(&live.fence, pane);
        let guard = format!("#{{&&:{same},#{{==:#{{window_active_clients}},0}}}}");
        let line = format!("if-shell -F -t %{id} \"{guard}\" \"copy-mode -q -t %{id}\"", id = pane.pane);
        self.tmux.change(live, line).await.map(drop).map_err(|_| BrokenOff::Lost)
    }

    /// One look at the screen, or why the pane can't be used any more.
    pub(super) async fn view(&self) -> Result<Result<ScreenReading, Refusal>, BrokenOff> {
        match self.tmux.capture(&self.plan.pane).await {
            Ok(capture) => Ok(Ok(self.screen_reader.look(&capture))),
            Err(Error::Pane { reason, .. }) => Ok(Err(reason)),
            Err(_) => Err(BrokenOff::Lost),
        }
    }

    /// The program that must be in the foreground of the pane when a line goes in, if it is known.
    pub(super) fn front(&self) -> Option<&str> {
        self.plan.foreground.as_deref().or(self.front.as_deref())
    }

    /// Remembers the program that was in the foreground while the agent was recognised on the screen. Only a program
    /// beside a ready screen is kept, because a child of the agent may come to the front during a turn. Only a plain
    /// name is kept, because others may look different inside the server.
    pub(super) fn recognise(&mut self, command: &str, activity: Activity) {
        let is_plain = !command.is_empty() && command.bytes().all(|byte| byte.is_ascii_graphic());
        if self.front.is_none() && is_plain && !is_shell(command) && activity == Activity::Ready {
            self.front = Some(command.to_owned());
        }
    }

    /// The outcome, if the agent's own process is dead.
    pub(super) fn agent_dead(&self) -> Option<Typed> {
        (!self.screen_reader.lives()).then(|| self.pane_gone("agent_ended", Refusal::AgentEnded))
    }

    /// Looks for an obstacle after the first piece. If there is one, the mark is read and this check is made again, at
    /// most [`MAX_OBSTACLES`] times in one delivery; then typing ends. Returns `None` if there is no obstacle,
    /// `Some(None)` if the mark must be read again, and else the outcome.
    pub(super) async fn check_obstacle(&mut self, row: &PaneRow) -> Result<Option<Option<Typed>>, BrokenOff> {
        let Some(Invitation::No(reason) | Invitation::Wait(reason)) = obstacle(row, self.front()) else {
            return Ok(None);
        };
        if let Some(end) = self.agent_dead() {
            return Ok(Some(Some(end)));
        }
        if self.obstacles >= MAX_OBSTACLES {
            return Ok(Some(Some(self.pane_gone(&wire_name(reason), reason))));
        }
        tracing::debug!(?reason, pane = %self.plan.pane, "the rest of a text can't be typed into the pane now; tasuki \
                                                          tries again");
        self.obstacles += 1;
        pause(LOOK_AGAIN, self.stop).await?;
        Ok(Some(None))
    }
}
