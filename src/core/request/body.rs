//! Parses the fields of a request's JSON: an unknown field, a repeated field and a value of the wrong type are reported
//! by name.

use super::integers;
use crate::core::reply::Refused;
use crate::core::text;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// How deep a field may be nested. serde_json reads at most 128 levels, and a row holds the fields of a request a few
/// levels deeper than the request did. A field with more levels could be stored, but not read again.
const MAX_DEPTH: usize = 64;

/// Parses the fields of one kind. Removes the envelope's `v` and `kind` first: the kind must know every other field.
pub(super) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    let mut fields: Fields = parse(bytes)?;
    fields.0.remove("v");
    fields.0.remove("kind");
    if let Some((name, number)) = fields.0.iter().find_map(|(name, raw)| Some((name, integers::too_long(raw.get())?))) {
        let (name, number) = (seen(name), seen(number));
        let what = format!("{name}: {number} needs more than 64 bits and would be rounded; write it as a string");
        return Err(Refused::new(400, "bad_request", what).field(&name));
    }
    let too_deep = |raw: &RawValue| Some(integers::depth(raw.get())).filter(|depth| *depth > MAX_DEPTH);
    if let Some((name, depth)) = fields.0.iter().find_map(|(name, raw)| Some((name, too_deep(raw)?))) {
        let name = seen(name);
        let what = format!("{name}: it is nested {depth} levels deep; at most {MAX_DEPTH} are taken");
        return Err(Refused::new(400, "bad_request", what).field(&name));
    }
    let rest =
        serde_json::to_string(&fields.0).map_err(|_| Refused::new(400, "bad_request", "the request can't be read"))?;
    let mut deserializer = serde_json::Deserializer::from_str(&rest);
    serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let message = plain(error.inner());
        match path.as_str() {
            "." => Refused::new(400, "bad_request", message.clone()).maybe_field(named_field(&message)),
            path => {
                let path = seen(path);
                Refused::new(400, "bad_request", format!("{path}: {message}")).field(&path)
            }
        }
    })
}

/// A JSON object's fields, unparsed. A repeated field is refused, because nobody can know which value was meant.
struct Fields(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if fields.contains_key(&name) {
                return Err(serde::de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            fields.insert(name, value);
        }
        Ok(Fields(fields))
    }
}

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(bytes).map_err(|error| {
        let at = format!("{} (line {}, column {})", plain(&error), error.line(), error.column());
        Refused::new(400, "bad_request", at).at(error.line() as u64, error.column() as u64)
    })
}

/// The message without the position that serde_json appends, cut to a length that a terminal can show.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
    text::sanitise(&in_words(text)).chars().take(300).collect()
}

/// A message of serde about a value of the wrong type, without the words of Rust.
pub(crate) fn in_words(message: &str) -> String {
    if message.contains("untagged enum Successor") {
        return "must be \"new\", \"same_pane\" or {\"agent_id\": ID}".to_owned();
    }
    // serde also reads a list as an object, with the fields in their order.
    if message.starts_with("invalid length") && message.contains("expected struct") {
        return "must be an object, and is a list".to_owned();
    }
    let of_type = message.strip_prefix("invalid type: ").and_then(|types| types.split_once(", expected "));
    let Some((is, expected)) = of_type else { return message.to_owned() };
    let is = match is {
        "sequence" => "a list",
        "map" => "an object",
        other => other,
    };
    let expected = match expected {
        "a sequence" => "a list",
        "a map" => "an object",
        "a boolean" => "true or false",
        other if other.starts_with("struct ") => "an object",
        other => other,
    };
    format!("must be {expected}, and is {is}")
}

/// The field that a message of serde names: serde puts an unknown or missing field in backticks.
fn named_field(message: &str) -> Option<String> {
    message.split('`').nth(1).map(seen)
}

/// A field's name as a message shows it: in quotes if it is blank.
fn seen(name: &str) -> String {
    if name.trim().is_empty() { format!("\"{name}\"") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::request::HandoffRequest;

    #[test]
    fn a_value_of_the_wrong_type_is_told_in_words_of_json() {
        let said = |field: &str, value: serde_json::Value| {
            let mut request = serde_json::json!({"agent_id": "a", "reason": "r"});
            request[field] = value;
            body::<HandoffRequest>(request.to_string().as_bytes()).expect_err("it is refused").message
        };
        for (field, value, expected) in [
            ("agent_id", serde_json::json!([]), "agent_id: must be a string, and is a list"),
            ("agent_id", serde_json::json!({}), "agent_id: must be a string, and is an object"),
            ("agent_id", serde_json::json!(5), "agent_id: must be a string, and is integer `5`"),
            ("tasks", serde_json::json!({}), "tasks: must be a list, and is an object"),
            ("now", serde_json::json!("yes"), "now: must be true or false, and is string \"yes\""),
            ("document", serde_json::json!([]), "document: must be an object, and is a list"),
            ("successor", serde_json::json!([]), "successor: must be \"new\", \"same_pane\" or {\"agent_id\": ID}"),
        ] {
            assert_eq!(said(field, value), expected);
        }
    }
}
