//! The pieces in which a text is typed, and how long that may take.

use super::Tmux;
use super::look::ScreenReader;
use super::plan::{Input, TypePlan};
use super::typing::Delivery;
use crate::core::pane::{Refusal, Typed};
use crate::core::text::MAX_TYPED_BYTES;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Characters in the first of several pieces. If a composer is in a mode in which keys are commands, such as vim's, it
/// does not show the first piece, and gets no more of the text.
const FIRST_PIECE: usize = 1;

impl Tmux {
    /// Types a text and submits it, or says why not. After a crash, call it again with the same plan and `resumed`:
    /// typing continues where the pane's mark says. It ends at the latest one minute after the sum of the plan's times.
    pub async fn type_text(
        &self,
        plan: &TypePlan,
        screen_reader: &dyn ScreenReader,
        stop: &CancellationToken,
    ) -> Typed {
        let Some(pieces) = pieces(plan) else { return Typed::Refused { reason: Refusal::BadText } };
        let due = Instant::now() + longest(plan, pieces.len());
        Delivery::new(self, plan, screen_reader, stop, pieces, due).run().await
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

/// Cuts the text into the pieces that are typed; `None` when it can't be typed.
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
            Some([first.iter().collect()].into_iter().chain(chunks(rest, chars)).collect())
        }
    }
}

/// Cuts a text into parts of at most `most` UTF-16 units each, and of at least one character. Programs written in
/// JavaScript count these units, in which an emoji has two, when they tell a long paste from typing.
fn chunks(text: &[char], most: usize) -> Vec<String> {
    let (mut parts, mut units) = (Vec::<String>::new(), 0);
    for letter in text {
        units += letter.len_utf16();
        match parts.last_mut() {
            Some(part) if units <= most => part.push(*letter),
            _ => {
                units = letter.len_utf16();
                parts.push(letter.to_string());
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::id::DeliveryId;
    use crate::core::pane::{PaneRef, ServerId};

    fn plan(text: &str, input: Input) -> TypePlan {
        TypePlan {
            pane: PaneRef { server: ServerId { pid: 1, start_time: 1 }, pane: 1, pid: 1 },
            delivery: DeliveryId::from_bits(1),
            text: text.to_owned(),
            input,
            raw_bytes: None,
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
    fn a_text_with_control_characters_is_refused_whole() {
        for bad in ["", "a\0", "a\u{1b}[201~", "a\rb", "a\u{9b}", "a\u{7f}", &"a".repeat(MAX_TYPED_BYTES + 1)] {
            assert_eq!(pieces(&plan(bad, Input::Bracketed)), None, "{:?}", bad.get(..8));
        }
        assert!(pieces(&plan("a\n\tb", Input::Bracketed)).is_some());
        assert_eq!(pieces(&plan("/exit\n", Input::Command)), None);
    }

    #[test]
    fn pieces_are_whole_characters_and_hold_no_tab() {
        let pieces = pieces(&plan("äöü\tß🦀x", typed(3))).expect("typable");
        assert_eq!(pieces, ["ä", "öü ", "   ", "ß🦀", "x"]);
    }

    #[test]
    fn pieces_of_zero_characters_do_not_hang() {
        assert_eq!(pieces(&plan("ab", typed(0))).expect("typable"), ["a", "b"]);
    }
}
