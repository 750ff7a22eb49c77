//! Cuts a hook's JSON down to a size that the spool should carry, because prompts and conversations can be of any
//! length.

use serde_json::{Value, json};

/// A string of a payload that is too large is cut to this many bytes.
const SHORT: usize = 1024;
/// A list whose JSON is longer than this is left out of a payload that is too large.
const LONG_LIST: usize = 4 * 1024;

/// A payload whose JSON is at most `max` bytes: as it is if it fits; else with long strings cut and long lists left
/// out; else nothing but a note.
pub(super) fn prune(mut payload: Value, max: usize) -> Value {
    if payload.to_string().len() <= max {
        return payload;
    }
    shorten(&mut payload);
    if payload.to_string().len() <= max { payload } else { json!({"tasuki_pruned": true}) }
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > SHORT => *text = format!("{} … (cut by tasuki)", head(text, SHORT)),
        Value::Array(items) if Value::Array(items.clone()).to_string().len() > LONG_LIST => {
            *value = json!(format!("({} items left out by tasuki)", items.len()));
        }
        Value::Object(map) => map.values_mut().for_each(shorten),
        _ => {}
    }
}

fn head(text: &str, max: usize) -> &str {
    let end = (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

/// The last `max` bytes of a text, at a character's edge. The end is kept because it contains the delivery id.
pub(super) fn tail(text: &str, max: usize) -> &str {
    let from = text.len().saturating_sub(max);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_payload_is_left_as_it_is() {
        let payload = json!({"a": "x".repeat(5000), "b": [1, 2]});
        assert_eq!(prune(payload.clone(), 10_000), payload);
    }

    #[test]
    fn conversations_are_left_out_and_names_stay() {
        let pruned =
            prune(json!({"event":"agent_end","messages":vec!["m".repeat(1000); 1000],"one":"y".repeat(9000)}), 100_000);
        assert_eq!(pruned["event"], "agent_end");
        assert!(pruned.to_string().len() < 3000, "{pruned}");
    }

    #[test]
    fn a_payload_that_cannot_be_cut_is_only_noted() {
        let many: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("k{n}"), json!(n))).collect();
        assert_eq!(prune(Value::Object(many), 100_000), json!({"tasuki_pruned": true}));
    }

    #[test]
    fn the_end_of_a_long_prompt_is_kept() {
        let text = format!("{}\n(tasuki delivery 5f2a9c81d0e3.)", "ä ".repeat(70_000));
        assert!(tail(&text, 65_536).ends_with("5f2a9c81d0e3.)"));
        assert!(tail(&text, 65_536).len() <= 65_536);
    }
}
