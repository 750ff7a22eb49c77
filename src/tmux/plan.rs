//! The plan of one delivery: what is typed, where to, and how.

use crate::core::id::DeliveryId;
use crate::core::pane::PaneRef;
use std::time::Duration;

/// How a text is put into the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Bracketed,
    /// Unbracketed pieces, as if typed. Tabs become blanks, because a typed tab is the Tab key.
    Pieces {
        chars: usize,
        gap: Duration,
        settle: Duration,
    },
    /// One unbracketed piece such as `/exit`; the process may end at once.
    Command,
}

/// One text for one pane, and how it is typed.
#[derive(Debug, Clone)]
pub struct TypePlan {
    pub pane: PaneRef,
    /// Which text: the same id is never typed twice.
    pub delivery: DeliveryId,
    pub text: String,
    pub input: Input,
    /// What `pane_current_command` must be. Without it a shell in front is refused, and what is in front when the agent
    /// is recognised on the screen must stay there.
    pub foreground: Option<String>,
    /// Between seeing the text and Enter.
    pub enter_delay: Duration,
    /// After this long, if the text is still in the composer, Enter is pressed again.
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
