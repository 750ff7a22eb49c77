//! The part of a profile that says how the limits of the CLI show.

use super::condition::{Pattern, Pointer, When};
use crate::contract::LimitKind;
use schemars::JsonSchema;
use serde::Deserialize;

/// How a limit shows: in what the CLI's own event says, in a line of the transcript, or on the screen. tasuki itself
/// finds in the text when the limit ends (`resets 3:24pm`, `try again in 2 hours`, seconds since 1970 …).
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsSection {
    /// The lines of the transcript that report a failed turn.
    pub lines: Vec<LimitLine>,
    /// Which text means which limit; the first that fits counts.
    pub texts: Vec<LimitText>,
    /// The same for the last 20 lines of the screen that are not blank, joined. It is looked at where neither event nor
    /// transcript shows a limit.
    pub screen: Vec<LimitText>,
}

impl LimitsSection {
    /// The first fault that serde can't find: the key, and what is wrong with it.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let has_condition = self.screen.iter().any(|rule| !rule.when.is_empty());
        has_condition.then(|| ("limits.screen", "`when` is not allowed here: a screen has no fields".into()))
    }
}

/// A line of the transcript that reports a failed turn.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitLine {
    /// All of these must fit the line.
    pub when: Vec<When>,
    /// Where the CLI's words are.
    pub text: Pointer,
    /// Where the end of the limit is, as seconds or milliseconds since 1970 or as a date; the first that is there
    /// counts.
    #[serde(default)]
    pub until: Vec<Pointer>,
}

/// A text that means a limit.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitText {
    /// Which limit.
    pub kind: LimitKind,
    /// What the text must match.
    pub pattern: Pattern,
    /// What else must be true of the transcript's line. A rule with this fits no event. Not allowed in `screen`.
    #[serde(default)]
    pub when: Vec<When>,
}
