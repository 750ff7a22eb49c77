//! The shape of `data/rules.toml`, and the checks that its values must pass.

use super::rule::{FailureRule, HUMAN, Rule, Rules, RulesError, ValueType, error_at};
use crate::core::id::Slug;
use crate::core::rows::item::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

const MAX_TYPES: usize = 1_000;
/// The longest time that makes sense, in milliseconds: a year.
const LONGEST_MS: u64 = 366 * 24 * 3_600_000;

/// `data/rules.toml`: who processes which type of work item, what its output must hold, and what comes after. It adds
/// types to the built-in rules, or replaces built-in types as a whole. A wrong key or value is an error that names line
/// and column.
#[derive(Deserialize, Default, JsonSchema)]
#[schemars(rename = "rules.toml")]
#[serde(deny_unknown_fields, default)]
pub struct RulesFile {
    /// Take the built-in types too; `true` unless set.
    #[schemars(with = "Option<bool>")]
    built_in: Option<Spanned<bool>>,
    /// Personas by role, beside those whose `persona.toml` names the role.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    roles: BTreeMap<Name, Vec<Persona>>,
    /// The rule of each type, by its name.
    #[schemars(with = "BTreeMap<String, RuleForm>")]
    types: BTreeMap<Name, RuleForm>,
}

/// The rule of one type.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RuleForm {
    /// Roles that may claim it; `human` is the operator. Agents of all these roles are told.
    #[schemars(with = "Vec<String>")]
    processed_by: Spanned<Vec<Name>>,
    /// What its output is called; its own type unless set.
    output: Option<String>,
    /// Types of the children that its completion may make.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    creates: Vec<Spanned<Name>>,
    /// What its output must hold.
    #[serde(default)]
    require: Require,
    /// The status after its completion: `done` unless set, `ready` for another round, `escalated` for a person.
    #[schemars(with = "Option<String>", extend("enum" = ["done", "ready", "escalated", null]))]
    next_status: Option<Next>,
    /// Tell the operator of its completion.
    #[serde(default)]
    ask_human: bool,
    /// How long its children may wait for somebody before that counts as `timed_out`, such as "4h".
    #[schemars(with = "Option<String>")]
    taken_within: Option<Span>,
    /// What undoes its completion, as long as nobody has a child: `timed_out`, `gone` (an agent that had taken a child
    /// has ended), `refused` (an agent has given a child back).
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    rollback_on: Vec<Spanned<Reason>>,
}

/// What an output must hold, by JSON pointers into it; `""` is the whole output. A place holds something unless it is
/// missing, null, false, blank or empty.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Require {
    /// Each must be there, and not null.
    #[schemars(with = "Vec<String>")]
    all: Vec<Pointer>,
    /// One of them must hold something.
    #[schemars(with = "Vec<String>")]
    any: Vec<Pointer>,
    /// Each must hold something.
    #[schemars(with = "Vec<String>")]
    non_empty: Vec<Pointer>,
    /// A value that is there must be of this type: `string`, `number`, `integer`, `boolean`, `array` or `object`.
    #[schemars(with = "BTreeMap<String, String>")]
    values: BTreeMap<Pointer, Kind>,
}

/// Reads rules. `base`: the rules that they add to, or whose types they replace.
pub(super) fn parse(text: &str, base: Option<Rules>) -> Result<Rules, RulesError> {
    let syntax = |error: &toml::de::Error| error_at(text, error.span(), error.message());
    let deserializer = toml::Deserializer::parse(text).map_err(|error| syntax(&error))?;
    let file: RulesFile = serde_path_to_error::deserialize(deserializer).map_err(|error| {
        // A value with its place in the text is a struct to serde.
        let path = error.path().to_string().replace(".$__serde_spanned_private_value", "");
        let message = format!("{path}: {}", error.inner().message());
        error_at(text, error.inner().span(), &message)
    })?;
    let alone = file.built_in.as_ref().is_some_and(|keep| !keep.get_ref());
    let empty = Rules { types: BTreeMap::new(), roles: BTreeMap::new() };
    let mut rules = base.filter(|_| !alone).unwrap_or(empty);
    for (role, personas) in file.roles {
        rules.roles.entry(role.0).or_default().extend(personas.into_iter().map(|persona| persona.0));
    }
    let mut created: Vec<(String, Range<usize>, String)> = Vec::new();
    for (Name(name), form) in file.types {
        created.extend(form.creates.iter().map(|child| (name.clone(), child.span(), child.get_ref().0.clone())));
        let rule = rule(&name, form).map_err(|(span, message)| error_at(text, Some(span), &message))?;
        rules.types.insert(name, rule);
    }
    for (name, span, child) in created {
        if !rules.types.contains_key(&child) {
            let message = format!("types.{name}.creates: there is no rule for the type \"{child}\"");
            return Err(error_at(text, Some(span), &message));
        }
    }
    if rules.types.is_empty() || rules.types.len() > MAX_TYPES {
        let message = format!("types: there must be from 1 to {MAX_TYPES} types");
        return Err(error_at(text, file.built_in.map(|keep| keep.span()), &message));
    }
    Ok(rules)
}

fn rule(name: &str, form: RuleForm) -> Result<Rule, (Range<usize>, String)> {
    let span = form.processed_by.span();
    let processed_by: Vec<String> = form.processed_by.into_inner().into_iter().map(|role| role.0).collect();
    if processed_by.is_empty() {
        return Err((
            span,
            format!("types.{name}.processed_by: must name at least one role; \"{HUMAN}\" is the operator"),
        ));
    }
    let times_out = form.rollback_on.iter().find(|reason| reason.get_ref().0 == FailureRule::TimedOut);
    if let Some(reason) = times_out.filter(|_| form.taken_within.is_none()) {
        let message =
            format!("types.{name}.rollback_on: \"timed_out\" needs taken_within to be set, for example to \"4h\"");
        return Err((reason.span(), message));
    }
    let texts = |pointers: Vec<Pointer>| pointers.into_iter().map(|pointer| pointer.0).collect();
    Ok(Rule {
        processed_by,
        output: form.output.unwrap_or_else(|| name.to_owned()),
        creates: form.creates.into_iter().map(|child| child.into_inner().0).collect(),
        all: texts(form.require.all),
        any: texts(form.require.any),
        non_empty: texts(form.require.non_empty),
        values: form.require.values.into_iter().map(|(pointer, kind)| (pointer.0, kind.0)).collect(),
        next_status: form.next_status.map_or(Status::Done, |next| next.0),
        ask_human: form.ask_human,
        taken_within_ms: form.taken_within.map(|span| span.0),
        rollback_on: form.rollback_on.into_iter().map(|reason| reason.into_inner().0).collect(),
    })
}

/// Reads a string and checks it.
fn checked<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    check: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, D::Error> {
    let text = String::deserialize(deserializer)?;
    check(&text).map_err(|rule| de::Error::custom(format!("{text:?} {rule}")))
}

/// Whether a text can be the name of a type or a role.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    !text.is_empty() && text.len() <= 64 && text.bytes().all(legal)
}

/// The name of a type or a role.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            is_name(text)
                .then(|| Name(text.to_owned()))
                .ok_or_else(|| "is not a name: a name is 1 to 64 of a-z, 0-9, _ and -".to_owned())
        })
    }
}

struct Persona(Slug);

impl<'de> Deserialize<'de> for Persona {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            text.parse().map(Persona).map_err(|error: crate::core::id::InvalidId| error.to_string())
        })
    }
}

/// A JSON pointer (RFC 6901).
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Pointer(String);

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            let ok = text.is_empty() || (text.starts_with('/') && text.len() <= 256);
            ok.then(|| Pointer(text.to_owned())).ok_or_else(|| "is not a JSON pointer such as \"/prd\"".to_owned())
        })
    }
}

struct Kind(ValueType);

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            Ok(Kind(match text {
                "string" => ValueType::String,
                "number" => ValueType::Number,
                "integer" => ValueType::Integer,
                "boolean" => ValueType::Boolean,
                "array" => ValueType::Array,
                "object" => ValueType::Object,
                _ => return Err("must be one of string, number, integer, boolean, array, object".to_owned()),
            }))
        })
    }
}

struct Next(Status);

impl<'de> Deserialize<'de> for Next {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            Ok(Next(match text {
                "done" => Status::Done,
                "ready" => Status::Ready,
                "escalated" => Status::Escalated,
                _ => return Err("must be one of done, ready, escalated".to_owned()),
            }))
        })
    }
}

struct Reason(FailureRule);

impl<'de> Deserialize<'de> for Reason {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            Ok(Reason(match text {
                "timed_out" => FailureRule::TimedOut,
                "gone" => FailureRule::Gone,
                "refused" => FailureRule::Refused,
                _ => return Err("must be one of timed_out, gone, refused".to_owned()),
            }))
        })
    }
}

struct Span(u64);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        checked(deserializer, |text| {
            let span = humantime::parse_duration(text)
                .map_err(|error| format!("is not a duration such as \"4h\": {error}"))?;
            let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            if ms == 0 || ms > LONGEST_MS {
                return Err("is out of bounds: it must be more than zero and at most one year".to_owned());
            }
            Ok(Span(ms))
        })
    }
}
