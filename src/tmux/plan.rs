//! The plan of one delivery: what is typed, where to, and how.

use crate::core::id::DeliveryId;
use crate::core::pane::PaneRef;
use std::time::Duration;

/// How a text is put into the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// One bracketed paste.
    Bracketed,
    /// Unbracketed pieces, as if typed. Tabs become blanks, because a typed tab is the Tab key.
    Pieces {
        /// The most UTF-16 units in a piece; the first piece has only one character.
        chars: usize,
        /// The pause between two pieces.
        gap: Duration,
        /// The pause after the last piece.
        settle: Duration,
    },
    /// One unbracketed piece such as `/exit`; the process may end at once.
    Command,
}

/// One text for one pane, and how it is typed.
#[derive(Debug, Clone)]
pub struct TypePlan {
    pub pane: PaneRef,
    /// The id of the text. No id is typed twice.
    pub delivery: DeliveryId,
    pub text: String,
    pub input: Input,
    /// The longest text, in bytes, that the program takes without brackets; `None` if there is no limit.
    pub raw_bytes: Option<usize>,
    /// What `pane_current_command` must be. If none is given, tasuki refuses a shell in the foreground, and the program
    /// that is there when the agent is recognised on the screen must stay there.
    pub foreground: Option<String>,
    /// The pause between seeing the text and Enter.
    pub enter_delay: Duration,
    /// After this long, if the text is still in the composer, Enter is pressed again.
    pub enter_retry_after: Duration,
    /// How often Enter is pressed again at most. After the last time, tasuki watches for `seen_within` longer whether
    /// the text leaves the composer.
    pub enter_retries: u32,
    /// How long to wait for an obstacle that may pass, such as a draft in the composer, before the text is refused.
    pub hold: Duration,
    /// How long the text may take to be seen.
    pub seen_within: Duration,
    /// An earlier process of tasuki may have begun this delivery.
    pub resumed: bool,
    /// Typing into a busy agent is allowed.
    pub allow_busy: bool,
    /// The profile trusts the screen: an empty composer after Enter proves that the prompt was taken.
    pub screen_proof: bool,
    /// The end of the text that must be visible in the composer before Enter, apart from white space. If empty, the
    /// whole text must be visible.
    pub seen_tail: String,
}

impl TypePlan {
    /// Whether the text must not be pasted without brackets, as if typed: a typed tab completes a word, queues the
    /// prompt or switches a mode, and some programs don't read the rest of a long text.
    pub(super) fn needs_brackets(&self) -> bool {
        let is_too_long = self.raw_bytes.is_some_and(|most| self.text.len() > most);
        self.input == Input::Bracketed && (is_too_long || self.text.contains('\t'))
    }
}
