//! What is to be typed, and how: the plan of one delivery and the pieces that it goes in.

use super::Tmux;
use super::look::Eye;
use super::typing::Delivery;
use crate::core::id::DeliveryId;
use crate::core::pane::{PaneRef, Refusal, Typed};
use crate::core::text::MAX_TYPED_BYTES;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Characters in the first of several pieces. A composer in a mode in which keys are commands, such as vim's, does not
/// show it, and gets no more of the text than that.
const FIRST_PIECE: usize = 1;

/// How the text is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// One bracketed paste.
    Bracketed,
    /// Unbracketed pieces, as if typed. Tabs become blanks, for a typed tab is the Tab key.
    Pieces {
        /// Characters in a piece.
        chars: usize,
        /// Pause between two pieces.
        gap: Duration,
        /// Pause after the last one.
        settle: Duration,
    },
    /// One unbracketed piece such as `/exit`; the process may end at once.
    Command,
}

/// One text for one pane.
#[derive(Debug, Clone)]
pub struct TypePlan {
    /// Where to.
    pub pane: PaneRef,
    /// Which text: the same id is never typed twice.
    pub delivery: DeliveryId,
    /// Sanitised already.
    pub text: String,
    /// How it is put in.
    pub input: Input,
    /// What `pane_current_command` must be. Without it a shell in front is refused, and what is in front when the agent
    /// is recognised on the screen must stay there.
    pub foreground: Option<String>,
    /// Between seeing the text and Enter.
    pub enter_delay: Duration,
    /// After this long, if the text still stands in the composer, Enter is pressed again.
    pub enter_retry_after: Duration,
    /// How often at most. After that it is looked for `seen_within` longer whether the text has left.
    pub enter_retries: u32,
    /// How long to wait for a clean composer.
    pub hold: Duration,
    /// How long the text may take to be seen.
    pub seen_within: Duration,
    /// A former process may have begun this very delivery.
    pub resumed: bool,
    /// Typing into a busy agent is allowed.
    pub allow_busy: bool,
    /// The profile trusts the screen: an empty composer after Enter proves that the prompt was taken.
    pub screen_proof: bool,
    /// What must be seen in the composer before Enter, white space aside: the last line. Empty: the whole text.
    pub seen_tail: String,
}

impl TypePlan {
    /// Whether the text does harm where it comes in as keys: a typed tab completes, queues or switches.
    pub(super) fn needs_brackets(&self) -> bool {
        self.input == Input::Bracketed && self.text.contains('\t')
    }
}

impl Tmux {
    /// Types a text and submits it, or says why not. Call it again with the same plan and `resumed` after a crash: it
    /// goes on where the pane's mark says. It is over after the sum of the plan's times and a minute at the latest.
    pub async fn type_text(&self, plan: &TypePlan, eye: &dyn Eye, stop: &CancellationToken) -> Typed {
        let Some(pieces) = pieces(plan) else { return Typed::Refused { reason: Refusal::BadText } };
        let due = Instant::now() + longest(plan, pieces.len());
        Delivery::new(self, plan, eye, stop, pieces, due).run().await
    }
}

fn longest(plan: &TypePlan, pieces: usize) -> Duration {
    let enters = plan.enter_delay + plan.enter_retry_after * (plan.enter_retries + 1);
    let typing = match plan.input {
        Input::Pieces { gap, settle, .. } => gap * u32::try_from(pieces).unwrap_or(u32::MAX) + settle,
        Input::Bracketed | Input::Command => Duration::ZERO,
    };
    plan.hold + plan.seen_within * 2 + enters + typing + Duration::from_secs(60)
}

/// The text in the pieces in which it goes in; `None` when it can't be typed.
fn pieces(plan: &TypePlan) -> Option<Vec<String>> {
    let text = &plan.text;
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    let foreground = plan.foreground.as_deref().unwrap_or_default();
    if text.is_empty() || text.len() > MAX_TYPED_BYTES || text.contains(control) || foreground.contains('\0') {
        return None;
    }
    match plan.input {
        Input::Bracketed => Some(vec![text.clone()]),
        Input::Command => (!text.contains(['\n', '\t'])).then(|| vec![text.clone()]),
        Input::Pieces { chars, .. } => {
            let typed: Vec<char> = text.replace('\t', "    ").chars().collect();
            let (first, rest) = typed.split_at(FIRST_PIECE.min(typed.len()));
            let pieces = [first].into_iter().chain(rest.chunks(chars.max(1)));
            Some(pieces.map(|piece| piece.iter().collect()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::pane::ServerId;

    fn plan(text: &str, input: Input) -> TypePlan {
        TypePlan {
            pane: PaneRef { server: ServerId { pid: 1, start_time: 1 }, pane: 1, pid: 1 },
            delivery: DeliveryId::from_bits(1),
            text: text.to_owned(),
            input,
            foreground: None,
            enter_delay: Duration::ZERO,
            enter_retry_after: Duration::ZERO,
            enter_retries: 0,
            hold: Duration::ZERO,
            seen_within: Duration::ZERO,
            resumed: false,
            allow_busy: false,
            screen_proof: false,
            seen_tail: String::new(),
        }
    }

    fn typed(chars: usize) -> Input {
        Input::Pieces { chars, gap: Duration::ZERO, settle: Duration::ZERO }
    }

    #[test]
    fn what_drives_a_terminal_is_refused_whole() {
        for bad in ["", "a\0", "a\u{1b}[201~", "a\rb", "a\u{9b}", "a\u{7f}", &"a".repeat(MAX_TYPED_BYTES + 1)] {
            assert_eq!(pieces(&plan(bad, Input::Bracketed)), None, "{:?}", bad.get(..8));
        }
        assert!(pieces(&plan("a\n\tb", Input::Bracketed)).is_some());
        assert_eq!(pieces(&plan("/exit\n", Input::Command)), None);
    }

    #[test]
    fn pieces_are_whole_characters_and_hold_no_tab() {
        let pieces = pieces(&plan("äöü\tß🦀x", typed(3))).expect("typable");
        assert_eq!(pieces, ["ä", "öü ", "   ", "ß🦀x"]);
    }

    #[test]
    fn a_piece_of_nothing_does_not_hang() {
        assert_eq!(pieces(&plan("ab", typed(0))).expect("typable"), ["a", "b"]);
    }
}
