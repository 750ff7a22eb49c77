//! Enter: when it is pressed, and whether the agent took it.

use super::{BrokenOff, CONFIRM, Delivery, Looks, StepResult, unknown, wire_name};
use crate::core::pane::{Activity, Typed};
use crate::tmux::composer_match::ComposerMatch;
use crate::tmux::guard::DeliveryStage;
use crate::tmux::look::{Invitation, obstacle, pause};
use crate::tmux::pane::{PaneRow, same};
use crate::tmux::plan::Input;
use crate::tmux::supervisor::LiveClient;
use std::time::Duration;
use tokio::time::Instant;

/// The shortest pause before Enter after a paste that may have lost its brackets. Codex takes an Enter within 100 ms of
/// such a paste for a new line.
const RAW_ENTER_DELAY: Duration = Duration::from_millis(150);

impl Delivery<'_> {
    /// Waits until the composer shows the text and nothing else, waits a little more, looks again, and presses Enter.
    pub(super) async fn submit(&mut self, live: &LiveClient, stage: DeliveryStage, row: &PaneRow) -> StepResult {
        if let Some(end) = self.check_obstacle(row).await? {
            return Ok(end);
        }
        if let Input::Pieces { settle, .. } = self.plan.input {
            pause(settle, self.stop).await?;
        }
        let mark = stage.mark(&self.plan.delivery);
        let delay = self.enter_delay(row);
        let until = Instant::now() + self.plan.seen_within;
        let (mut seen, mut looks) = (false, Looks::new());
        loop {
            let Ok(view) = self.view().await? else { return Ok(None) };
            if view.activity == Activity::Blocked {
                return Ok(Some(unknown("dialog")));
            }
            match self.matched(&view.composer) {
                ComposerMatch::Shown if seen => {
                    self.recognise(&row.command, view.activity);
                    break;
                }
                ComposerMatch::Shown => seen = true,
                // Another process may continue the same delivery.
                _ if self.mark_changed(live, &mark).await? => return Ok(None),
                // A person may still remove their own words.
                ComposerMatch::Mixed if Instant::now() >= until => return Ok(Some(unknown("mixed_draft"))),
                _ if Instant::now() >= until => return Ok(Some(unknown("not_seen"))),
                _ => seen = false,
            }
            pause(if seen { delay } else { looks.next_pause() }, self.stop).await?;
        }
        self.press(live, &mark, 1).await
    }

    /// The pause between seeing the text and Enter. In copy mode a paste loses its brackets. A program that recognises
    /// a paste by its speed would then take an Enter right after it for a new line.
    fn enter_delay(&self, row: &PaneRow) -> Duration {
        if row.in_mode { self.plan.enter_delay.max(RAW_ENTER_DELAY) } else { self.plan.enter_delay }
    }

    pub(super) async fn press(&mut self, live: &LiveClient, before: &str, number: u32) -> StepResult {
        let Some(_lock) = self.take_turn(live).await? else { return Ok(None) };
        if let Some(end) = self.agent_dead() {
            return Ok(Some(end));
        }
        let stages = (DeliveryStage::EnterBegun(number), DeliveryStage::Entered(number));
        let line = self.line(live, before, stages, "\r", "paste-buffer -r", false);
        // Set before the answer comes, because the program may have got the Enter even if the answer is lost.
        self.entered = true;
        self.send(live, line).await?;
        Ok(None)
    }

    /// Watches whether the text leaves the composer, and presses Enter again if it clearly does not. After the last
    /// Enter it watches for longer: a CLI may have taken the text and still show it until its session is made.
    pub(super) async fn verify(
        &mut self,
        live: &LiveClient,
        stage: DeliveryStage,
        number: u32,
        row: &PaneRow,
    ) -> StepResult {
        let until = Instant::now() + self.plan.enter_retry_after;
        let patience = until + self.plan.seen_within;
        let (mut absent, mut looks) = (false, Looks::new());
        loop {
            let Ok(view) = self.view().await? else { return Ok(None) };
            let matched = self.matched(&view.composer);
            let blocked = view.activity == Activity::Blocked;
            if matched == ComposerMatch::Absent && !blocked {
                if absent {
                    return Ok(Some(Typed::Submitted {
                        proven: self.plan.screen_proof && view.activity != Activity::Unknown,
                    }));
                }
                absent = true;
            } else {
                absent = false;
            }
            if Instant::now() >= until && !absent {
                return match matched {
                    _ if blocked => Ok(Some(unknown("dialog"))),
                    // The screen shows nothing; the receipt will tell whether the text was taken.
                    ComposerMatch::Absent | ComposerMatch::Hidden => Ok(Some(Typed::Submitted { proven: false })),
                    ComposerMatch::Shown if number <= self.plan.enter_retries => {
                        self.recognise(&row.command, view.activity);
                        self.press_again(live, stage, number + 1).await
                    }
                    ComposerMatch::Shown if Instant::now() < patience => {
                        pause(looks.next_pause(), self.stop).await?;
                        continue;
                    }
                    ComposerMatch::Shown | ComposerMatch::Mixed => Ok(Some(unknown("not_submitted"))),
                };
            }
            // The text may seem to be gone because the look fell between two parts of one redraw.
            pause(if absent { CONFIRM } else { looks.next_pause() }, self.stop).await?;
        }
    }

    /// Presses Enter once more, unless the pane forbids it by now: the agent may have quit and left its last screen
    /// behind, with a shell in the foreground.
    async fn press_again(&mut self, live: &LiveClient, stage: DeliveryStage, number: u32) -> StepResult {
        let noted = self.tmux.noted(live, self.plan.pane.pane).await.map_err(|_| BrokenOff::Lost)?;
        let Ok(row) = same(&self.plan.pane, noted.map(|noted| noted.row)) else { return Ok(None) };
        if let Some(Invitation::No(reason) | Invitation::Wait(reason)) = obstacle(&row, self.front()) {
            let end = self.agent_dead();
            return Ok(Some(end.unwrap_or_else(|| self.pane_gone(&wire_name(reason), reason))));
        }
        self.press(live, &stage.mark(&self.plan.delivery), number).await
    }
}
