//! The `hooks` part of the profile format: what each of a CLI's own events means, and where in its JSON the values are.

use super::condition::{Pattern, Pointer, When};
use crate::core::hook::HookKind;
use schemars::JsonSchema;
use serde::Deserialize;

/// Which of the CLI's own events mean what, and where their JSON has the values.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "W: Deserialize<'de>"))]
pub struct HooksSection<W = Pattern> {
    /// Where the event's name is; `tasuki hook PROFILE --event NAME` takes precedence.
    pub name: Option<Pointer>,
    /// Where the session id is.
    pub session_id: Option<Pointer>,
    /// Where the id of the turn is.
    pub turn_id: Option<Pointer>,
    /// Where the transcript's path is.
    pub transcript_path: Option<Pointer>,
    /// Where the working directory is.
    pub cwd: Option<Pointer>,
    /// The CLI reports a session's start at launch. If this is not set, it does so only with the first prompt.
    #[serde(default)]
    pub starts_at_launch: bool,
    /// What the CLI puts around a prompt; the group `text` is what stays.
    #[serde(default)]
    pub wrappers: Vec<W>,
    /// One rule for each event; the first that fits is taken.
    #[serde(default)]
    pub on: Vec<HookRule>,
}

/// What one event of the CLI means.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookRule {
    /// The CLI's own name for it.
    pub name: String,
    /// The rule fits only where this is true of a value.
    pub when: Option<When>,
    /// What the CLI's event means.
    pub event: Meaning,
    /// Where the submitted prompt is.
    pub text: Option<Pointer>,
    /// Where the last text of the answer is.
    pub last_text: Option<Pointer>,
    /// Where the message to the user is; the first place that has one counts.
    #[serde(default)]
    pub message: Vec<Pointer>,
    /// Where the reason of a session's start or end is, and what its values mean.
    pub reason: Option<ReasonRule>,
    /// If there is a value here (neither null, false, empty nor 0), the turn only pauses.
    pub paused: Option<Pointer>,
    /// Where the numbers of the context usage are, in an event of any kind.
    pub context: Option<ContextRule>,
}

/// What an event means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    rename_all = "snake_case",
    untagged,
    expecting = "must be session_start, prompt_submit, stop, stop_failure, interrupted, blocked, notification, context, \
                 session_end or ignore"
)]
pub enum Meaning {
    /// One of the contract's events.
    Event(HookKind),
    /// Nothing: no event file is written.
    Ignore(Ignore),
}

/// The word `ignore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ignore {
    /// Nothing is reported.
    Ignore,
}

/// What the values of a session's reason mean. Any other value: the process starts, or is about to end.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReasonRule {
    /// Where the reason is.
    pub at: Pointer,
    /// The process continues with another session id: `clear`, `resume`.
    #[serde(default)]
    pub replaced: Vec<String>,
    /// The same session continues: `compact`.
    #[serde(default)]
    pub same: Vec<String>,
    /// The process is about to end because it was told to from outside, as by the end of its pane, and not by a person
    /// who has typed its exit command: the operator is told that the agent has died.
    #[serde(default)]
    pub killed: Vec<String>,
}

/// Where the numbers of the context usage are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextRule {
    /// The numbers whose sum is the tokens used; missing ones count as 0, but one must be there.
    pub used: Vec<Pointer>,
    /// The size of the window.
    pub window: Option<Pointer>,
}
