//! What the core is configured with, at start and after a reload: limits, and what it must know of each profile. Not
//! durable.

use super::prompts::Prompts;
use super::request::{PublishTarget, Urgency};
use super::rules::Rules;
use crate::contract::document::DocumentCheck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The time limit of each step of a handoff, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// For the agent's running turn to end.
    pub waiting_ms: u64,
    pub instructing_ms: u64,
    /// For the turn in which the agent writes its document.
    pub writing_ms: u64,
    /// For the agent to repair its document.
    pub checking_ms: u64,
    /// For the agent to end after its exit command.
    pub ending_ms: u64,
    /// For the successor to register and to be ready.
    pub starting_ms: u64,
    /// For the priming to arrive, and for the turn that answers it.
    pub priming_ms: u64,
    pub briefing_ms: u64,
    /// For the turn in which the successor reads its document.
    pub reading_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE: u64 = 60_000;
        Limits {
            waiting_ms: 10 * MINUTE,
            instructing_ms: MINUTE,
            writing_ms: 15 * MINUTE,
            checking_ms: 10 * MINUTE,
            ending_ms: MINUTE,
            starting_ms: 2 * MINUTE,
            priming_ms: 5 * MINUTE,
            briefing_ms: MINUTE,
            reading_ms: 2 * MINUTE,
        }
    }
}

/// How long a successor has until the first reminder to acknowledge (the time T), for each urgency of a handoff, in
/// milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckTimes {
    /// Of `immediate`.
    pub immediate_ms: u64,
    /// Of `prepare`.
    pub prepare_ms: u64,
    /// Of `when_available`.
    pub when_available_ms: u64,
}

impl Default for AckTimes {
    fn default() -> Self {
        const MINUTE: u64 = 60_000;
        AckTimes { immediate_ms: 5 * MINUTE, prepare_ms: 15 * MINUTE, when_available_ms: 30 * MINUTE }
    }
}

impl AckTimes {
    /// The time T of one urgency, in milliseconds.
    #[must_use]
    pub fn of(&self, urgency: Urgency) -> u64 {
        match urgency {
            Urgency::Immediate => self.immediate_ms,
            Urgency::Prepare => self.prepare_ms,
            Urgency::WhenAvailable => self.when_available_ms,
        }
    }
}

/// The recipient of messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Target {
    /// The operator, by every configured channel.
    #[default]
    Operator,
    /// An agent, by id or persona slug, in its pane.
    Agent(String),
    /// A command (arguments, no shell), which gets the message as JSON on standard input.
    Command(Vec<String>),
}

impl Target {
    /// Its name in messages and views.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Target::Operator => "operator".to_owned(),
            Target::Agent(who) => format!("agent:{who}"),
            Target::Command(_) => "command".to_owned(),
        }
    }
}

/// What the core must know of a profile. How to drive a pane is known only to the adapters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFacts {
    pub name: String,
    pub launchable: bool,
    /// A new agent can be told which model to use.
    pub takes_model: bool,
    /// The profile says how the limits of the CLI are recognised.
    pub shows_limits: bool,
    /// The CLI reports a turn that ends in an error.
    pub reports_failures: bool,
    /// The CLI reports each submitted prompt with its text.
    pub reports_prompts: bool,
    /// The screen alone proves that a prompt was taken.
    pub screen_proof: bool,
    /// The CLI reports a session start at launch; otherwise only with its first prompt.
    pub starts_at_launch: bool,
    pub turn_ids: bool,
    /// How a new session in the same process shows, if the profile has a command that begins one.
    pub new_session: Option<NewSession>,
    /// The event at the end of a turn has the last text of the answer.
    pub reports_answers: bool,
    pub has_transcript: bool,
    /// Its transcript says how full its context is.
    pub reports_context: bool,
    /// The CLI writes each prompt that it takes into its transcript at once.
    pub proves_prompts: bool,
    /// Its transcript shows the calls of tools.
    pub reports_tools: bool,
    /// Program and arguments that open a session again, see [`super::resume`]; empty if there are none.
    pub resume: Vec<String>,
    /// The profile says how a dialog looks on the screen.
    pub shows_dialogs: bool,
}

#[cfg(test)]
impl ProfileFacts {
    /// A profile for tests, with most abilities.
    pub(crate) fn demo() -> Self {
        ProfileFacts {
            name: "demo".to_owned(),
            launchable: true,
            takes_model: true,
            shows_limits: true,
            reports_failures: true,
            reports_prompts: true,
            screen_proof: false,
            starts_at_launch: true,
            turn_ids: true,
            new_session: None,
            reports_answers: true,
            has_transcript: true,
            reports_context: true,
            proves_prompts: false,
            reports_tools: false,
            resume: vec!["demo".to_owned(), "--session".to_owned(), "{session_id}".to_owned()],
            shows_dialogs: true,
        }
    }
}

/// How a new session in the same process shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewSession {
    Reported,
    /// The CLI reports it only with its first prompt: until then an empty composer is the only sign.
    Lazy,
}

/// When the operator is notified of something that may resolve itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyLimits {
    /// How long an agent may wait at a dialog outside a handoff, in milliseconds.
    pub blocked_after_ms: u64,
}

impl Default for NotifyLimits {
    fn default() -> Self {
        NotifyLimits { blocked_after_ms: 120_000 }
    }
}

/// How full an agent's context must be before something follows, in percent of its window; `None`: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextLimits {
    /// The operator is notified, once in a session.
    pub suggest_at: Option<u64>,
    /// A handoff begins automatically.
    pub auto_at: Option<u64>,
}

impl Default for ContextLimits {
    fn default() -> Self {
        ContextLimits { suggest_at: Some(75), auto_at: None }
    }
}

/// How documents are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishLimits {
    /// How long one call of `gh` may take, in milliseconds.
    pub timeout_ms: u64,
    /// The pauses before further tries after failures of the network, in milliseconds.
    pub retry_after_ms: Vec<u64>,
    /// Where documents are published, unless the persona or the request says otherwise.
    pub to: Option<PublishTarget>,
    /// Hosts of the issues that may be named, in lower case.
    pub hosts: Vec<String>,
    /// Regular expressions for texts that look like credentials but are not.
    pub allow: Vec<String>,
}

impl Default for PublishLimits {
    fn default() -> Self {
        const SECOND: u64 = 1_000;
        let retry_after_ms = vec![10 * SECOND, 30 * SECOND, 120 * SECOND, 600 * SECOND];
        PublishLimits {
            timeout_ms: 60 * SECOND,
            retry_after_ms,
            to: None,
            hosts: vec!["github.com".to_owned()],
            allow: Vec::new(),
        }
    }
}

/// The rules that each document must keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentRules {
    /// What is done about faults, unless the persona or the request says otherwise.
    pub check: DocumentCheck,
    /// The fewest characters of its body.
    pub min_chars: usize,
    /// The most bytes.
    pub max_bytes: usize,
}

impl Default for DocumentRules {
    fn default() -> Self {
        DocumentRules { check: DocumentCheck::default(), min_chars: 400, max_bytes: 65_536 }
    }
}

/// What follows if an agent's CLI reaches a usage limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUsageLimit {
    /// The operator is told.
    #[default]
    Tell,
    /// After the end of the limit, the agent is told to continue.
    Wait,
    /// The agent's work goes to the next of its persona's fallbacks.
    HandOff,
}

/// When the successor of a handoff is started, if it is a new agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartSuccessor {
    /// After the end of the outgoing agent.
    #[default]
    Late,
    /// When the turn in which the outgoing agent writes its document is over. Both run for a moment.
    Early,
}

/// The default of [`Settings::resume_text`].
pub const RESUME_TEXT: &str =
    "The usage limit of your CLI has ended. Continue with your work where the limit stopped you.";

/// Everything that the core is configured with.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    pub limits: Limits,
    pub on_usage_limit: OnUsageLimit,
    pub starting: StartSuccessor,
    /// What an agent is told after the end of a usage limit.
    pub resume_text: String,
    pub notify: NotifyLimits,
    pub context: ContextLimits,
    pub ack: AckTimes,
    /// Who is notified of an acknowledgement that never came.
    pub escalation: Target,
    /// Who is asked when a successor needs clarification.
    pub orchestrator: Target,
    /// The command line with which an agent's shell reaches this home: this program and `--home`.
    pub command: String,
    /// Absolute path of the folder into which requests are dropped.
    pub requests_dir: String,
    pub publish: PublishLimits,
    pub document: DocumentRules,
    pub profiles: BTreeMap<String, ProfileFacts>,
    pub rules: Rules,
    /// The templates of our own texts.
    pub prompts: Prompts,
    /// Absolute path of the personas' folder. A text that is too long for a pane is written to a file there.
    pub personas_dir: String,
}
