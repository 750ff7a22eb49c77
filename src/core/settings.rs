//! What the core is told at start and at a reload: limits and the facts of each profile. Not durable.

use super::handoff::prompts::Prompts;
use super::work::rules::Rules;
use std::collections::BTreeMap;

/// The time limit of each step of the flow, in milliseconds (SPEC 4.3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// For the agent's running turn to end.
    pub waiting_ms: u64,
    /// For the instruction's receipt.
    pub instructing_ms: u64,
    /// For the document, that is for the Stop after the receipt.
    pub writing_ms: u64,
    /// For the agent to end after its exit command.
    pub ending_ms: u64,
    /// For the successor to register and to be ready.
    pub starting_ms: u64,
    /// For the priming's receipt and its Stop.
    pub priming_ms: u64,
    /// For the briefing's receipt.
    pub briefing_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE: u64 = 60_000;
        Limits {
            waiting_ms: 10 * MINUTE,
            instructing_ms: MINUTE,
            writing_ms: 15 * MINUTE,
            ending_ms: MINUTE,
            starting_ms: 2 * MINUTE,
            priming_ms: 5 * MINUTE,
            briefing_ms: MINUTE,
        }
    }
}

/// What the flow must know of a profile; how a pane is driven is the adapters' business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFacts {
    /// The profile's name.
    pub name: String,
    /// tasuki can start it.
    pub launchable: bool,
    /// The CLI reports each submitted prompt with its text.
    pub reports_prompts: bool,
    /// The screen alone proves that a prompt was taken.
    pub screen_proof: bool,
    /// The CLI reports a session start at launch; otherwise only with its first prompt.
    pub starts_at_launch: bool,
    /// Events carry turn ids.
    pub turn_ids: bool,
    /// A new session can be begun in the same pane, and how it shows.
    pub new_session: Option<NewSession>,
    /// The end of a turn tells the last text of the answer.
    pub tells_answers: bool,
    /// Its transcript can be read.
    pub has_transcript: bool,
    /// Its transcript tells how full its context is.
    pub tells_context: bool,
}

/// How a new session in the same process shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewSession {
    /// The CLI reports it.
    Reported,
    /// The CLI reports it only with its first prompt: until then an empty composer is the only sign.
    Lazy,
}

/// When something follows from a full context, in percent of the window; none: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextLimits {
    /// The operator is told, once in a session.
    pub suggest_at: Option<u64>,
    /// A handoff begins by itself.
    pub auto_at: Option<u64>,
}

/// All that the core is told.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Step limits.
    pub limits: Limits,
    /// What follows from a full context.
    pub context: ContextLimits,
    /// By name.
    pub profiles: BTreeMap<String, ProfileFacts>,
    /// The rules for work items.
    pub rules: Rules,
    /// The templates of our own texts.
    pub prompts: Prompts,
    /// Absolute path of the folder in which the personas lie: a text that is too long for a pane is named by its path.
    pub personas_dir: String,
}
