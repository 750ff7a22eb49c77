//! The settings of `config.toml`, and the values in it that have rules of their own.

use crate::core::request::is_host;
use crate::core::settings::{AckTimes, ContextLimits, Limits, PublishLimits, Target};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::{Deserialize, Deserializer, de};
use std::time::Duration;

/// The shortest and the longest limit that makes sense.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// All that can be set, with defaults for what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The limits of the steps.
    pub limits: Limits,
    /// How long an acknowledgement may take.
    pub ack: AckTimes,
    /// What follows from a full context.
    pub context: ContextLimits,
    /// The operator's own command for notices (arguments, no shell); empty if there is none.
    pub notify_command: Vec<String>,
    /// Who is notified when an acknowledgement is missing.
    pub escalation_target: Target,
    /// Who is asked when a successor needs clarification.
    pub orchestrator: Target,
    pub publish: PublishLimits,
    /// By which program: a name or a path.
    pub gh: String,
    /// The tmux server: a name as for `tmux -L`, or a path if it has a slash; none for the user's default.
    pub tmux_socket: Option<String>,
    /// A tmux server is started where none runs.
    pub tmux_start: bool,
    /// The sidecar writes a line about the agents to tmux's option `@tasuki_status`.
    pub tmux_status: bool,
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

/// `config.toml`: what can be set. Every key has a default; a wrong key or value is an error that names file, key and line.
/// Durations are written as people do: "90s", "10m", "1h 30m"; at least "100ms", at most "7days".
#[derive(Deserialize, Default, JsonSchema)]
#[schemars(rename = "config.toml")]
#[serde(deny_unknown_fields, default)]
pub(super) struct Raw {
    /// How long each step of a handoff may take.
    limits: RawLimits,
    /// How long a successor may take to acknowledge, by urgency.
    ack: RawAck,
    /// How failures are reported.
    notify: RawNotify,
    /// Who is notified about acknowledgements and urgent handoffs.
    escalation: RawEscalation,
    /// How documents are published, where a handoff asks for that.
    publish: RawPublish,
    /// What follows when an agent's context fills up.
    context: RawContext,
    /// The tmux server.
    tmux: RawTmux,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawLimits {
    /// For the agent's running turn to end; "10m" unless set.
    #[schemars(with = "Option<String>")]
    waiting: Option<Span>,
    /// For proof that the instruction arrived; "60s" unless set.
    #[schemars(with = "Option<String>")]
    instructing: Option<Span>,
    /// For the document; "15m" unless set.
    #[schemars(with = "Option<String>")]
    writing: Option<Span>,
    /// For the agent to end; "60s" unless set.
    #[schemars(with = "Option<String>")]
    ending: Option<Span>,
    /// For the successor to be ready; "2m" unless set.
    #[schemars(with = "Option<String>")]
    starting: Option<Span>,
    /// For the successor to have read its skill; "5m" unless set.
    #[schemars(with = "Option<String>")]
    priming: Option<Span>,
    /// For proof that the briefing arrived; "60s" unless set.
    #[schemars(with = "Option<String>")]
    briefing: Option<Span>,
    /// For the turn in which the successor reads its document: if it still runs then, the handoff continues; "2m"
    /// unless set.
    #[schemars(with = "Option<String>")]
    reading: Option<Span>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawAck {
    /// Of an urgent handoff; "5m" unless set.
    #[schemars(with = "Option<String>")]
    immediate: Option<Span>,
    /// Of a handoff with high priority; "15m" unless set.
    #[schemars(with = "Option<String>")]
    prepare: Option<Span>,
    /// Of a handoff with normal priority; "30m" unless set.
    #[schemars(with = "Option<String>")]
    when_available: Option<Span>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawNotify {
    /// Run for each failure, with the error as JSON on standard input: program and arguments, no shell.
    #[schemars(with = "Option<Vec<String>>")]
    command: Option<Argv>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
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
#[serde(deny_unknown_fields, default)]
struct RawPublish {
    /// The program: a name that is looked up in `PATH`, or a path; "gh" unless set.
    #[schemars(with = "Option<String>")]
    gh: Option<Program>,
    /// For one call of it; "60s" unless set.
    #[schemars(with = "Option<String>")]
    timeout: Option<Span>,
    /// The pauses before further tries after failures of the network; ["10s", "30s", "2m", "10m"] unless set, none if empty.
    #[schemars(with = "Option<Vec<String>>", length(max = 20))]
    retry_after: Option<Pauses>,
    /// The hosts that an issue's address may lead to; ["github.com"] unless set. An issue without a host goes where gh goes.
    #[schemars(with = "Option<Vec<String>>", length(max = 32))]
    hosts: Option<Hosts>,
    /// Expressions for what looks like a credential and is none, so that it does not hold publishing; none unless set.
    #[schemars(with = "Option<Vec<String>>", length(max = 32))]
    allow: Option<Expressions>,
}

fn target_form(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]})
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawContext {
    /// Notify the operator, once in a session, at this percentage of the context window; never unless set.
    #[schemars(with = "Option<u8>", range(min = 1, max = 100))]
    suggest_at: Option<Percent>,
    /// Begin a handoff at this percentage, when the agent is idle and no client is attached to its window; never unless
    /// set.
    #[schemars(with = "Option<u8>", range(min = 1, max = 100))]
    auto_at: Option<Percent>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct RawTmux {
    /// A name as for `tmux -L`, or a path if it has a slash; without it the user's default server.
    #[schemars(with = "Option<String>")]
    socket: Option<Socket>,
    /// Start a tmux server where none runs.
    start: bool,
    /// Write a line about the agents to the server's option `@tasuki_status`; true unless set.
    status: Option<bool>,
}

impl Raw {
    pub(super) fn into_config(self) -> Config {
        let or = |given: Option<Span>, default: u64| given.map_or(default, |span| span.0);
        let (limits, ack, publish) = (Limits::default(), AckTimes::default(), PublishLimits::default());
        Config {
            limits: Limits {
                waiting_ms: or(self.limits.waiting, limits.waiting_ms),
                instructing_ms: or(self.limits.instructing, limits.instructing_ms),
                writing_ms: or(self.limits.writing, limits.writing_ms),
                ending_ms: or(self.limits.ending, limits.ending_ms),
                starting_ms: or(self.limits.starting, limits.starting_ms),
                priming_ms: or(self.limits.priming, limits.priming_ms),
                briefing_ms: or(self.limits.briefing, limits.briefing_ms),
                reading_ms: or(self.limits.reading, limits.reading_ms),
            },
            ack: AckTimes {
                immediate_ms: or(self.ack.immediate, ack.immediate_ms),
                prepare_ms: or(self.ack.prepare, ack.prepare_ms),
                when_available_ms: or(self.ack.when_available, ack.when_available_ms),
            },
            context: ContextLimits {
                suggest_at: self.context.suggest_at.map(|percent| percent.0),
                auto_at: self.context.auto_at.map(|percent| percent.0),
            },
            notify_command: self.notify.command.map(|command| command.0).unwrap_or_default(),
            escalation_target: self.escalation.target,
            orchestrator: self.escalation.orchestrator,
            publish: PublishLimits {
                timeout_ms: or(self.publish.timeout, publish.timeout_ms),
                retry_after_ms: self.publish.retry_after.map_or(publish.retry_after_ms, |pauses| pauses.0),
                hosts: self.publish.hosts.map_or(publish.hosts, |hosts| hosts.0),
                allow: self.publish.allow.map_or(publish.allow, |allow| allow.0),
            },
            gh: self.publish.gh.map_or_else(|| "gh".to_owned(), |program| program.0),
            tmux_socket: self.tmux.socket.map(|socket| socket.0),
            tmux_start: self.tmux.start,
            tmux_status: self.tmux.status.unwrap_or(true),
        }
    }
}

/// A duration such as "90s", in milliseconds.
struct Span(u64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let example = "a duration such as \"90s\", \"10m\" or \"1h 30m\"";
        let span = humantime::parse_duration(&text)
            .map_err(|error| de::Error::custom(format!("{text:?} is not {example}: {error}")))?;
        if span < SHORTEST || span > LONGEST {
            let message = format!("{text:?} is out of bounds: it must be at least \"100ms\" and at most \"7days\"");
            return Err(de::Error::custom(message));
        }
        Ok(Span(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// Most hosts that documents may go to.
const MOST_HOSTS: usize = 32;
const MOST_EXPRESSIONS: usize = 32;
const MOST_PAUSES: usize = 20;

struct Pauses(Vec<u64>);

impl<'de> Deserialize<'de> for Pauses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spans: Vec<Span> = Vec::deserialize(deserializer)?;
        if spans.len() > MOST_PAUSES {
            return Err(de::Error::custom(format!(
                "{} pauses are too many: at most {MOST_PAUSES} are allowed",
                spans.len()
            )));
        }
        Ok(Pauses(spans.into_iter().map(|span| span.0).collect()))
    }
}

struct Hosts(Vec<String>);

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names: Vec<String> = Vec::deserialize(deserializer)?;
        if names.len() > MOST_HOSTS {
            return Err(de::Error::custom(format!(
                "{} hosts are too many: at most {MOST_HOSTS} are allowed",
                names.len()
            )));
        }
        match names.iter().find(|name| !is_host(name)) {
            Some(bad) => Err(de::Error::custom(format!("{bad:?} is not a host name such as \"github.com\""))),
            None => Ok(Hosts(names.iter().map(|name| name.to_ascii_lowercase()).collect())),
        }
    }
}

/// Regular expressions that compile.
struct Expressions(Vec<String>);

impl<'de> Deserialize<'de> for Expressions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expressions: Vec<String> = Vec::deserialize(deserializer)?;
        if expressions.len() > MOST_EXPRESSIONS {
            let count = expressions.len();
            return Err(de::Error::custom(format!(
                "{count} expressions are too many: at most {MOST_EXPRESSIONS} are allowed"
            )));
        }
        match expressions.iter().find_map(|expression| regex::Regex::new(expression).err()) {
            Some(error) => Err(de::Error::custom(error)),
            None => Ok(Expressions(expressions)),
        }
    }
}

/// A program, by its name or by its path from the root.
struct Program(String);

impl<'de> Deserialize<'de> for Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_good = !text.is_empty() && (text.starts_with('/') || !text.contains('/')) && !text.contains('\0');
        if is_good { Ok(Program(text)) } else { Err(de::Error::custom("a program must be a name or an absolute path")) }
    }
}

/// A share of the context window.
struct Percent(u64);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let percent = u64::try_from(number).ok().filter(|percent| (1..=100).contains(percent));
        percent.map(Percent).ok_or_else(|| de::Error::custom(format!("{number} is not a percentage from 1 to 100")))
    }
}

/// A command as a list of arguments.
struct Argv(Vec<String>);

impl<'de> Deserialize<'de> for Argv {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        check_argv(Vec::deserialize(deserializer)?).map(Argv).map_err(de::Error::custom)
    }
}

fn check_argv(words: Vec<String>) -> Result<Vec<String>, &'static str> {
    if words.first().is_some_and(String::is_empty) {
        return Err("the first argument, the program, is empty");
    }
    if words.iter().any(|word| word.contains('\0')) {
        return Err("an argument holds a NUL character");
    }
    Ok(words)
}

/// A tmux server's name or path.
struct Socket(String);

impl<'de> Deserialize<'de> for Socket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(de::Error::custom("a socket must be a name, or a path with a slash"));
        }
        Ok(Socket(text))
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a target must be \"operator\", \"agent:<id or slug>\" or a list of arguments")]
        enum Form {
            Text(String),
            List(Vec<String>),
        }
        let rule = "a target must be \"operator\", \"agent:<id or slug>\" or a list of arguments";
        match Form::deserialize(deserializer)? {
            Form::Text(text) if text == "operator" => Ok(Target::Operator),
            Form::Text(text) => match text.strip_prefix("agent:") {
                Some(agent) if !agent.is_empty() && agent.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') => {
                    Ok(Target::Agent(agent.to_owned()))
                }
                _ => Err(de::Error::custom(format!("{text:?} is not a target; {rule}"))),
            },
            Form::List(words) if words.is_empty() => Err(de::Error::custom(format!("the list is empty; {rule}"))),
            Form::List(words) => check_argv(words).map(Target::Command).map_err(de::Error::custom),
        }
    }
}
