//! What a profile searches for: a pattern in a text, a place in JSON, and a condition on the value there.

use regex::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::OnceLock;

thread_local! {
    /// Whether this thread is reading a profile whose expressions are known to be right. serde gives a field's
    /// `Deserialize` nothing but the field, so its reader leaves here what it knows of the file.
    static ARE_KNOWN: Cell<bool> = const { Cell::new(false) };
}

/// Reads a profile by `read` without compiling its expressions to check them. Only for the built-in ones: a test checks
/// them, and compiling all of them takes longer than the rest of a start of the sidecar.
pub(super) fn with_known_patterns<T>(read: impl FnOnce() -> T) -> T {
    ARE_KNOWN.set(true);
    let profile = read();
    ARE_KNOWN.set(false);
    profile
}

/// A regular expression (Rust `regex` syntax). It is checked when a person's profile is loaded, and compiled for use
/// where it is first searched for: most profiles are never used, and their expressions would take megabytes.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    compiled: OnceLock<Regex>,
}

/// Largest compiled size of one expression, in bytes: a profile is a person's own file, but a slip must not eat memory.
const REGEX_LIMIT: usize = 1 << 20;

impl Pattern {
    /// Checks a pattern, unless it is one of a built-in profile; `^` and `$` match the ends of the text unless the
    /// pattern switches on `(?m)`.
    ///
    /// # Errors
    /// When the text is not a regular expression, or compiles to more than 1 MiB.
    pub fn checked(text: String) -> Result<Self, regex::Error> {
        if !ARE_KNOWN.get() {
            compile(&text)?;
        }
        Ok(Pattern { text, compiled: OnceLock::new() })
    }

    /// The expression, ready for use.
    pub fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| compile(&self.text).expect("it was checked"))
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(REGEX_LIMIT).build()
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Pattern::checked(text).map_err(|why| serde::de::Error::custom(format!("not a regular expression: {why}")))
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "regex", "description": "A regular expression in the syntax of Rust's regex crate."})
    }
}

/// A JSON pointer (RFC 6901) into a hook's or a transcript's JSON, with two additions. A negative number counts an
/// array's items from its end, so `/messages/-1/text` is the text of the last message. In the rules for tools, where a
/// pointer may name several places, `*` stands for all items of an array and all values of an object.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(transparent)]
pub struct Pointer(String);

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.starts_with('/') && text.len() <= 256 {
            Ok(Pointer(text))
        } else {
            Err(serde::de::Error::custom("a JSON pointer must begin with / and have at most 256 characters"))
        }
    }
}

impl Pointer {
    pub(super) fn constant(text: &'static str) -> Self {
        Pointer(text.to_owned())
    }

    /// The value in `value` that the pointer names.
    #[must_use]
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        self.0[1..].split('/').try_fold(value, |value, token| {
            let token = token.replace("~1", "/").replace("~0", "~");
            match value {
                Value::Object(map) => map.get(&token),
                Value::Array(items) => match token.strip_prefix('-') {
                    Some(back) => items.len().checked_sub(back.parse().ok()?).and_then(|at| items.get(at)),
                    None => items.get(token.parse::<usize>().ok()?),
                },
                _ => None,
            }
        })
    }

    /// All values in `value` that the pointer names, where `*` stands for every item of an array or object.
    #[must_use]
    pub fn find_all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let Some((before, after)) = self.0.split_once("/*") else { return self.find(value).into_iter().collect() };
        if !(after.is_empty() || after.starts_with('/')) {
            return self.find(value).into_iter().collect();
        }
        let here = if before.is_empty() { Some(value) } else { Pointer(before.to_owned()).find(value) };
        let inside: Vec<&Value> = match here {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(Value::Object(map)) => map.values().collect(),
            _ => Vec::new(),
        };
        if after.is_empty() {
            return inside;
        }
        let rest = Pointer(after.to_owned());
        inside.into_iter().flat_map(|value| rest.find_all(value)).collect()
    }

    /// The name of the field, if it is one field of the top level.
    #[must_use]
    pub fn top_level(&self) -> Option<&str> {
        self.0.strip_prefix('/').filter(|name| !name.contains(['/', '~']))
    }
}

/// A condition on one value.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Where the value is.
    pub at: Pointer,
    /// It must be one of these texts; a missing value fits none.
    #[serde(default)]
    pub is: Vec<String>,
    /// It must be none of these texts.
    #[serde(default)]
    pub is_not: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_star_stands_for_every_item() {
        let all = |pointer: &str, value: Value| {
            let pointer: Pointer = serde_json::from_value(json!(pointer)).expect("a pointer");
            pointer.find_all(&value).into_iter().cloned().collect::<Vec<_>>()
        };
        let changes = json!({"changes": {"/w/a": {"to": "/w/b"}, "/w/c": {"to": null}}, "edits": [{"p": 1}, {"p": 2}]});
        assert_eq!(all("/changes/*/to", changes.clone()), [json!("/w/b"), Value::Null]);
        assert_eq!(all("/edits/*/p", changes.clone()), [1, 2]);
        assert_eq!(all("/edits/-1/p", changes.clone()), [2]);
        assert_eq!(all("/*/0/p", changes.clone()), [1]);
        assert_eq!(all("/edits/0/*", changes.clone()), [1]);
        assert!(all("/none/*/p", changes.clone()).is_empty() && all("/*x", changes).is_empty());
        assert_eq!(all("/*x/y", json!({"*x": {"y": 3}})), [3]);
    }
}
