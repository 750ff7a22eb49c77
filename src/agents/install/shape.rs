//! Tells which elements of a person's lists tasuki has put in, for this home or another one.

use serde_json::Value;

/// Stands for the parts of a template that differ between installations: paths.
pub(super) const ANY: char = '\u{E0FF}';

/// One element of a template's list.
#[derive(Debug)]
pub(super) struct Shape {
    /// With this home's values.
    filled: Value,
    /// With [`ANY`] for them.
    any: Value,
    /// It runs the hook of this profile, as nothing of a person's own does.
    runs_hook: bool,
}

impl Shape {
    pub(super) fn new(filled: Value, any: Value, profile: &str) -> Shape {
        let runs_hook = runs_hook(&any, profile);
        Shape { filled, any, runs_hook }
    }

    /// Whether an element is ours: it names this home, runs our hook, or was recorded. `is_recorded` says whether the
    /// element's JSON text was. A person may have an element that only looks like one of ours, such as a rule about a
    /// folder of the same name elsewhere.
    pub(super) fn is_ours(&self, item: &Value, is_recorded: impl Fn(&str) -> bool) -> bool {
        // Only a string's JSON is the same in the record; other values are indented there.
        let was_put_in = || item.is_string() && is_recorded(&item.to_string());
        *item == self.filled || looks_like(item, &self.any) && (self.runs_hook || was_put_in())
    }
}

/// Whether a command in it, as one text or as a list of words, is `… hook <profile> …`.
fn runs_hook(value: &Value, profile: &str) -> bool {
    match value {
        Value::String(text) => text.contains(&format!(" hook {profile}")),
        Value::Array(items) => {
            items.iter().any(|item| runs_hook(item, profile))
                || items.windows(2).any(|two| two[0] == "hook" && two[1] == profile)
        }
        Value::Object(map) => map.values().any(|value| runs_hook(value, profile)),
        _ => false,
    }
}

/// Whether a value matches a shape, in which [`ANY`] matches any text.
fn looks_like(value: &Value, shape: &Value) -> bool {
    match (value, shape) {
        (Value::String(text), Value::String(shape)) => fits(text, shape),
        (Value::Array(items), Value::Array(shapes)) => {
            items.len() == shapes.len() && items.iter().zip(shapes).all(|(item, shape)| looks_like(item, shape))
        }
        (Value::Object(map), Value::Object(shapes)) => {
            map.len() == shapes.len()
                && shapes.iter().all(|(key, shape)| map.get(key).is_some_and(|value| looks_like(value, shape)))
        }
        _ => value == shape,
    }
}

/// Whether a text matches a shape, in which [`ANY`] matches any text.
pub(super) fn fits(text: &str, shape: &str) -> bool {
    let mut parts = shape.split(ANY);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
