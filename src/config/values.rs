//! The settings of `config.toml`.

use super::kinds::{
    Commands, DefaultTarget, Expressions, GhProgram, Hosts, OperatorCommand, Pauses, Percent, ResumeText, Size,
    SocketName, Suggestion, TimeSpan,
};
use crate::contract::document::DocumentCheck;
use crate::core::settings::{
    AckTimes, ContextLimits, DocumentRules, Limits, NotifyLimits, OnUsageLimit, PublishLimits, RESUME_TEXT,
    StartSuccessor, Target,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::Deserialize;
use std::time::Duration;

/// How long one question to git may take, unless the configuration says otherwise.
const GIT_TIMEOUT: Duration = Duration::from_secs(2);

/// All settings. A setting that is not in `config.toml` has its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The limits of the steps.
    pub limits: Limits,
    /// What follows from a usage limit of an agent's CLI.
    pub on_usage_limit: OnUsageLimit,
    /// When the successor of a handoff is started.
    pub starting: StartSuccessor,
    /// What an agent is told after the end of a usage limit.
    pub resume_text: String,
    /// How long an acknowledgement may take.
    pub ack: AckTimes,
    /// What follows from a full context.
    pub context: ContextLimits,
    /// What tells the operator of notices, in addition to tmux.
    pub notify_command: OperatorCommand,
    /// When the operator is told of a dialog that stays open.
    pub notify: NotifyLimits,
    /// Who is notified when an acknowledgement is missing, and when a successor has begun.
    pub escalation_target: Target,
    /// Who is notified of each urgent handoff, and of what its successor says and asks.
    pub orchestrator: Target,
    pub publish: PublishLimits,
    /// What a document is held to.
    pub document: DocumentRules,
    /// How tasuki looks at an agent's work itself.
    pub facts: FactsConfig,
    /// The program that publishes, `gh`: a name or a path.
    pub gh: String,
    /// The tmux server: a name as for `tmux -L`, or a path if it has a slash; none for the user's default.
    pub tmux_socket: Option<String>,
    /// A tmux server is started where none runs.
    pub tmux_start: bool,
    /// The sidecar writes a line about the agents to tmux's option `@tasuki_status`.
    pub tmux_status: bool,
}

/// How tasuki looks at an agent's work itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactsConfig {
    /// Ask git about the repository.
    pub git: bool,
    /// Read the transcript.
    pub transcript: bool,
    /// How long one question to git may take.
    pub timeout: Duration,
    /// How the command lines of tests begin; empty for those of the common tools.
    pub tests: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Raw::default().into_config()
    }
}

/// The JSON Schema of `config.toml`, with a description of every key.
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Raw)
}

/// `config.toml`: what can be set. Every key has a default; a wrong key or value is an error that names file, key and
/// line. Durations are written as people do: "90s", "10m", "1h 30m"; at least "100ms", at most "7days".
#[derive(Deserialize, Default, JsonSchema)]
#[schemars(rename = "config.toml")]
#[serde(deny_unknown_fields, default)]
pub(super) struct Raw {
    /// How long each step of a handoff may take.
    limits: RawLimits,
    /// How a handoff is done.
    handoff: RawHandoff,
    /// How long a successor may take to acknowledge, by urgency.
    ack: RawAck,
    /// How failures are reported.
    notify: RawNotify,
    /// Who is notified about acknowledgements and urgent handoffs.
    escalation: RawEscalation,
    /// How documents are published, where a handoff asks for that.
    publish: RawPublish,
    /// What a document is held to before it is recorded.
    document: RawDocument,
    /// How tasuki looks at an agent's work itself.
    facts: RawFacts,
    /// What follows when an agent's context fills up.
    context: RawContext,
    /// The tmux server.
    tmux: RawTmux,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawLimits {
    /// For the agent's running turn to end; "10m" unless set.
    #[schemars(with = "Option<String>")]
    waiting: Option<TimeSpan>,
    /// For proof that the instruction arrived; "60s" unless set.
    #[schemars(with = "Option<String>")]
    instructing: Option<TimeSpan>,
    /// For the document; "15m" unless set.
    #[schemars(with = "Option<String>")]
    writing: Option<TimeSpan>,
    /// For the agent to repair its document; "10m" unless set. A document that waits for a person has no limit.
    #[schemars(with = "Option<String>")]
    checking: Option<TimeSpan>,
    /// For the agent to end; "60s" unless set.
    #[schemars(with = "Option<String>")]
    ending: Option<TimeSpan>,
    /// For the successor to be ready; "2m" unless set.
    #[schemars(with = "Option<String>")]
    starting: Option<TimeSpan>,
    /// For the successor to have read its skill; "5m" unless set.
    #[schemars(with = "Option<String>")]
    priming: Option<TimeSpan>,
    /// For proof that the briefing arrived; "60s" unless set.
    #[schemars(with = "Option<String>")]
    briefing: Option<TimeSpan>,
    /// For the turn in which the successor reads its document: if it still runs then, the handoff continues; "2m"
    /// unless set.
    #[schemars(with = "Option<String>")]
    reading: Option<TimeSpan>,
    /// What follows if an agent's CLI reaches a usage limit: "tell" (the operator is told), "wait" (after the end of
    /// the limit, the agent is told to continue) or "hand_off" (its work goes to the next of its persona's fallbacks);
    /// "tell" unless set.
    on_usage_limit: OnUsageLimit,
    /// What an agent is told after the end of a usage limit.
    #[schemars(with = "Option<String>", length(max = 4096))]
    resume_text: Option<ResumeText>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawAck {
    /// Of an urgent handoff; "5m" unless set.
    #[schemars(with = "Option<String>")]
    immediate: Option<TimeSpan>,
    /// Of a handoff with high priority; "15m" unless set.
    #[schemars(with = "Option<String>")]
    prepare: Option<TimeSpan>,
    /// Of a handoff with normal priority; "30m" unless set.
    #[schemars(with = "Option<String>")]
    when_available: Option<TimeSpan>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawNotify {
    /// A command that tasuki runs for each notice and failure: program and arguments, no shell. It gets the notice as
    /// JSON on standard input. Or "desktop": show notices on the desktop.
    #[schemars(schema_with = "command_form")]
    command: OperatorCommand,
    /// Tell of a dialog outside a handoff that is open for this long; "2m" unless set.
    #[schemars(with = "Option<String>")]
    blocked_after: Option<TimeSpan>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawEscalation {
    /// Who is notified when an acknowledgement is missing, and when a successor has begun: "operator", `agent:<id or
    /// slug>`, or program and arguments.
    #[schemars(schema_with = "target_form")]
    target: Target,
    /// Who is notified of each urgent handoff, and of what its successor says and asks; written as `target`.
    #[schemars(schema_with = "target_form")]
    orchestrator: Target,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawPublish {
    /// Where every document is published: "owner/repo#42" or "gist"; nowhere unless set. `publish` in a persona's
    /// `persona.toml` and in a request take precedence.
    #[schemars(with = "Option<String>")]
    to: Option<DefaultTarget>,
    /// The program gh: a name that is looked up in `PATH`, or a path; "gh" unless set.
    #[schemars(with = "Option<String>")]
    gh: Option<GhProgram>,
    /// For one call of gh; "60s" unless set.
    #[schemars(with = "Option<String>")]
    timeout: Option<TimeSpan>,
    /// The pauses before further tries after failures of the network; ["10s", "30s", "2m", "10m"] unless set, none if
    /// empty.
    #[schemars(with = "Option<Vec<String>>", length(max = 20))]
    retry_after: Option<Pauses>,
    /// The hosts that an issue's address may lead to; ["github.com"] unless set. An issue without a host goes where gh
    /// goes.
    #[schemars(with = "Option<Vec<String>>", length(max = 32))]
    hosts: Option<Hosts>,
    /// Regular expressions for text that looks like a credential but may be published; none unless set.
    #[schemars(with = "Option<Vec<String>>", length(max = 32))]
    allow: Option<Expressions>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawHandoff {
    /// When the successor is started: "late" (after the end of the outgoing agent) or "early" (when the outgoing agent
    /// has written its document, so that both run for a moment); "late" unless set.
    starting: StartSuccessor,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawDocument {
    /// What is done about faults: "off", "warn", "fix" (the agent is asked once to repair them) or "hold" (the handoff
    /// waits for a person); "fix" unless set.
    check: Option<DocumentCheck>,
    /// The fewest characters of a document, without headings and blanks; 400 unless set.
    #[schemars(with = "Option<u32>", range(min = 0, max = 1_048_576))]
    min_chars: Option<Size>,
    /// The most bytes that a successor can be expected to read; 65536 unless set.
    #[schemars(with = "Option<u32>", range(min = 0, max = 1_048_576))]
    max_bytes: Option<Size>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawFacts {
    /// Ask git about the repository in which the agent works; true unless set.
    git: Option<bool>,
    /// Read what the agent did from its transcript; true unless set.
    transcript: Option<bool>,
    /// For one question to git; "2s" unless set.
    #[schemars(with = "Option<String>")]
    timeout: Option<TimeSpan>,
    /// How the command lines of tests begin, such as "cargo test"; those of the common tools unless set.
    #[schemars(with = "Option<Vec<String>>", length(max = 100))]
    tests: Option<Commands>,
}

fn target_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]})
}

fn command_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"const": "desktop"}, {"type": "array", "items": {"type": "string"}}]})
}

fn suggestion_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"const": "off"}, {"type": "integer", "minimum": 0, "maximum": 100}]})
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawContext {
    /// Notify the operator, once in a session, at this percentage of the context window; 75 unless set, never with 0 or
    /// "off".
    #[schemars(schema_with = "suggestion_form")]
    suggest_at: Option<Suggestion>,
    /// Begin a handoff at this percentage, when the agent is idle and no client is attached to its window; never unless
    /// set.
    #[schemars(with = "Option<u8>", range(min = 1, max = 100))]
    auto_at: Option<Percent>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
struct RawTmux {
    /// A name as for `tmux -L`, or a path if it has a slash; without it the user's default server.
    #[schemars(with = "Option<String>")]
    socket: Option<SocketName>,
    /// Start a tmux server where none runs.
    start: bool,
    /// Write a line about the agents to the server's option `@tasuki_status`; true unless set.
    status: Option<bool>,
}

impl Raw {
    pub(super) fn into_config(self) -> Config {
        let or = |given: Option<TimeSpan>, default: u64| given.map_or(default, |span| span.0);
        let (limits, ack, publish) = (Limits::default(), AckTimes::default(), PublishLimits::default());
        let (document, context) = (DocumentRules::default(), ContextLimits::default());
        let notify = NotifyLimits::default();
        Config {
            limits: Limits {
                waiting_ms: or(self.limits.waiting, limits.waiting_ms),
                instructing_ms: or(self.limits.instructing, limits.instructing_ms),
                writing_ms: or(self.limits.writing, limits.writing_ms),
                checking_ms: or(self.limits.checking, limits.checking_ms),
                ending_ms: or(self.limits.ending, limits.ending_ms),
                starting_ms: or(self.limits.starting, limits.starting_ms),
                priming_ms: or(self.limits.priming, limits.priming_ms),
                briefing_ms: or(self.limits.briefing, limits.briefing_ms),
                reading_ms: or(self.limits.reading, limits.reading_ms),
            },
            on_usage_limit: self.limits.on_usage_limit,
            starting: self.handoff.starting,
            resume_text: self.limits.resume_text.map_or_else(|| RESUME_TEXT.to_owned(), |text| text.0),
            ack: AckTimes {
                immediate_ms: or(self.ack.immediate, ack.immediate_ms),
                prepare_ms: or(self.ack.prepare, ack.prepare_ms),
                when_available_ms: or(self.ack.when_available, ack.when_available_ms),
            },
            context: ContextLimits {
                suggest_at: self.context.suggest_at.map_or(context.suggest_at, |suggestion| suggestion.0),
                auto_at: self.context.auto_at.map(|percent| percent.0),
            },
            notify_command: self.notify.command,
            notify: NotifyLimits { blocked_after_ms: or(self.notify.blocked_after, notify.blocked_after_ms) },
            escalation_target: self.escalation.target,
            orchestrator: self.escalation.orchestrator,
            publish: PublishLimits {
                to: self.publish.to.map(|to| to.0),
                timeout_ms: or(self.publish.timeout, publish.timeout_ms),
                retry_after_ms: self.publish.retry_after.map_or(publish.retry_after_ms, |pauses| pauses.0),
                hosts: self.publish.hosts.map_or(publish.hosts, |hosts| hosts.0),
                allow: self.publish.allow.map_or(publish.allow, |allow| allow.0),
            },
            document: DocumentRules {
                check: self.document.check.unwrap_or(document.check),
                min_chars: self.document.min_chars.map_or(document.min_chars, |size| size.0),
                max_bytes: self.document.max_bytes.map_or(document.max_bytes, |size| size.0),
            },
            facts: FactsConfig {
                git: self.facts.git.unwrap_or(true),
                transcript: self.facts.transcript.unwrap_or(true),
                timeout: self.facts.timeout.map_or(GIT_TIMEOUT, |span| Duration::from_millis(span.0)),
                tests: self.facts.tests.map(|commands| commands.0).unwrap_or_default(),
            },
            gh: self.publish.gh.map_or_else(|| "gh".to_owned(), |program| program.0),
            tmux_socket: self.tmux.socket.map(|socket| socket.0),
            tmux_start: self.tmux.start,
            tmux_status: self.tmux.status.unwrap_or(true),
        }
    }
}
