//! The values of `config.toml` that have rules of their own.

use crate::core::request::{PublishTarget, is_host};
use crate::core::settings::Target;
use crate::core::text;
use serde::{Deserialize, Deserializer, de};
use std::time::Duration;

/// The shortest and the longest limit that makes sense.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// A duration such as "90s", in milliseconds.
pub(super) struct TimeSpan(pub(super) u64);

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let example = "a duration such as \"90s\", \"10m\" or \"1h 30m\"";
        let span = humantime::parse_duration(&text)
            .map_err(|error| de::Error::custom(format!("{text:?} is not {example}: {error}")))?;
        if span < SHORTEST || span > LONGEST {
            let message = format!("{text:?} is out of bounds: it must be at least \"100ms\" and at most \"7days\"");
            return Err(de::Error::custom(message));
        }
        Ok(TimeSpan(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// How many hosts documents may go to at most.
const MOST_HOSTS: usize = 32;
const MOST_EXPRESSIONS: usize = 32;
const MOST_PAUSES: usize = 20;

/// Pauses between tries, in milliseconds.
pub(super) struct Pauses(pub(super) Vec<u64>);

impl<'de> Deserialize<'de> for Pauses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spans: Vec<TimeSpan> = Vec::deserialize(deserializer)?;
        if spans.len() > MOST_PAUSES {
            return Err(de::Error::custom(format!(
                "{} pauses are too many: at most {MOST_PAUSES} are allowed",
                spans.len()
            )));
        }
        Ok(Pauses(spans.into_iter().map(|span| span.0).collect()))
    }
}

pub(super) struct Hosts(pub(super) Vec<String>);

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

/// Where documents are published, unless a persona or a request says something else.
pub(super) struct DefaultTarget(pub(super) PublishTarget);

impl<'de> Deserialize<'de> for DefaultTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let rule = || de::Error::custom(format!("{text:?} is neither an issue such as \"owner/repo#42\" nor \"gist\""));
        PublishTarget::read_default(&text).map(DefaultTarget).ok_or_else(rule)
    }
}

/// Regular expressions that compile.
pub(super) struct Expressions(pub(super) Vec<String>);

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

/// A program, by its name or by its absolute path.
pub(super) struct GhProgram(pub(super) String);

impl<'de> Deserialize<'de> for GhProgram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_good = !text.is_empty() && (text.starts_with('/') || !text.contains('/')) && !text.contains('\0');
        if is_good {
            Ok(GhProgram(text))
        } else {
            Err(de::Error::custom("a program must be a name or an absolute path"))
        }
    }
}

/// The text that tasuki types to an agent after the end of a usage limit.
pub(super) struct ResumeText(pub(super) String);

/// The longest such text, in bytes.
const LONGEST_TEXT: usize = 4096;

impl<'de> Deserialize<'de> for ResumeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim().is_empty() || text.len() > LONGEST_TEXT {
            return Err(de::Error::custom(format!("a text must have 1 to {LONGEST_TEXT} bytes and not only blanks")));
        }
        if text::begins_like_a_command(&text) {
            return Err(de::Error::custom(
                "a text must not begin with / ! # or @: an agent's CLI would take it as a command",
            ));
        }
        Ok(ResumeText(text))
    }
}

/// A number of characters or bytes.
pub(super) struct Size(pub(super) usize);

/// No document is larger than this, in bytes.
const LARGEST: usize = 1 << 20;

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let size = usize::try_from(number).ok().filter(|size| *size <= LARGEST);
        size.map(Size).ok_or_else(|| de::Error::custom(format!("{number} is not a number from 0 to {LARGEST}")))
    }
}

/// The beginnings of command lines.
pub(super) struct Commands(pub(super) Vec<String>);

const MOST_COMMANDS: usize = 100;

impl<'de> Deserialize<'de> for Commands {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let commands: Vec<String> = Vec::deserialize(deserializer)?;
        if commands.len() > MOST_COMMANDS || commands.iter().any(|command| command.trim().is_empty()) {
            let rule = format!("it must be a list of at most {MOST_COMMANDS} command lines, none of them empty");
            return Err(de::Error::custom(rule));
        }
        Ok(Commands(commands))
    }
}

/// A share of the context window.
pub(super) struct Percent(pub(super) u64);

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let percent = u64::try_from(number).ok().filter(|percent| (1..=100).contains(percent));
        percent.map(Percent).ok_or_else(|| de::Error::custom(format!("{number} is not a percentage from 1 to 100")))
    }
}

/// When a handoff is suggested: at a percentage, or never.
pub(super) struct Suggestion(pub(super) Option<u64>);

impl<'de> Deserialize<'de> for Suggestion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "it must be a percentage from 1 to 100; 0 or \"off\" for never")]
        enum Form {
            Word(String),
            Number(i64),
        }
        match Form::deserialize(deserializer)? {
            Form::Word(word) if word == "off" => Ok(Suggestion(None)),
            Form::Number(0) => Ok(Suggestion(None)),
            Form::Number(number @ 1..=100) => Ok(Suggestion(u64::try_from(number).ok())),
            Form::Word(word) => {
                Err(de::Error::custom(format!("{word:?} is not a percentage from 1 to 100, and not \"off\"")))
            }
            Form::Number(number) => {
                Err(de::Error::custom(format!("{number} is not a percentage from 1 to 100, and not \"off\"")))
            }
        }
    }
}

/// What tells the operator of notices, in addition to tmux.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OperatorCommand {
    #[default]
    None,
    /// Notices are shown on the desktop of this machine, or by the terminals that are attached to tmux.
    Desktop,
    /// A command of the operator's own (arguments, no shell), which gets the notice as JSON on standard input.
    Command(Vec<String>),
}

impl<'de> Deserialize<'de> for OperatorCommand {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a command must be \"desktop\" or a list of program and arguments")]
        enum Form {
            Word(String),
            List(Vec<String>),
        }
        match Form::deserialize(deserializer)? {
            Form::Word(word) if word == "desktop" => Ok(OperatorCommand::Desktop),
            Form::Word(word) => Err(de::Error::custom(format!(
                "{word:?} is not a command; it must be \"desktop\" or a list of program and arguments"
            ))),
            Form::List(words) if words.is_empty() => Ok(OperatorCommand::None),
            Form::List(words) => check_argv(words).map(OperatorCommand::Command).map_err(de::Error::custom),
        }
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
pub(super) struct SocketName(pub(super) String);

impl<'de> Deserialize<'de> for SocketName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Err(de::Error::custom("a socket must be a name, or an absolute path"));
        }
        // A relative path would count from the folder in which the sidecar was started: another folder each time, and
        // not the user's if the sidecar is a service.
        if text.contains('/') && !text.starts_with('/') {
            return Err(de::Error::custom(format!("the socket {text:?} is a relative path; write an absolute one")));
        }
        Ok(SocketName(text))
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
