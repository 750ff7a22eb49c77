//! What waits for a person, as `tasuki status --json` and `GET /api/needs` list it.

use super::words::{Word, without_defaults, words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    listed
    /// Why something waits for a person, the most urgent first.
    NeedKind {
        /// tasuki can't do all of its work, or can't read all files from which this list is made.
        Degraded = "degraded",
        /// A dialog is open in an agent's pane.
        Dialog = "dialog",
        /// A successor has asked, and waits for answers.
        Question = "question",
        /// It is not known whether something has happened, and only a person can say it.
        InDoubt = "in_doubt",
        /// Something has failed, and nobody has dismissed the failure.
        Failed = "failed",
        /// A document waits to be accepted, or to be published.
        Held = "held",
        /// An agent has reached a limit of its CLI or its account.
        Limited = "limited",
        /// A work item was given to a person.
        Escalated = "escalated",
        /// An agent runs without the skill of its persona.
        Unprimed = "unprimed",
        /// An agent's context is so full that tasuki suggests a handoff.
        Suggestion = "suggestion",
    }
}

/// One thing that waits for a person. It is about one agent, handoff or work item, and only the id of that one is set.
/// A failure also has its `error_id`; if it is about none of the three, it has nothing else. An entry about tasuki
/// itself has no id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct NeedView {
    /// Why it waits.
    pub what: Word<NeedKind>,
    /// The agent that it is about.
    pub agent_id: Option<String>,
    /// The handoff that it is about.
    pub handoff_id: Option<String>,
    /// The work item that it is about.
    pub item_id: Option<String>,
    /// The name of its file in `spool/errors/`; null if it is not a failure.
    pub error_id: Option<String>,
    /// The persona of the agent or the handoff, if there is one.
    pub persona_slug: Option<String>,
    /// Since when: UTC, milliseconds, `Z`; null if that is not known.
    pub since: Option<String>,
    /// What waits, in one line of at most 400 characters.
    pub said: String,
    /// What to do before the command, in one line; null if the command is enough.
    pub hint: Option<String>,
    /// The command that settles it. `…` stands for what only a person can say.
    pub command: String,
}
