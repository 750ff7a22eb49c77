//! Hooks installed into arbitrary files and uninstalled again.

use super::merge::Template;
use super::section::{fill, shape};
use super::text::Notation;
use crate::agents::Profile;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

fn claude() -> Profile {
    let text = include_str!("../../../data/profiles/claude.toml");
    Profile::parse("claude", Path::new("claude.toml"), text).expect("the built-in profile")
}

fn template(notation: Notation) -> (Template, String) {
    let profile = claude();
    let section = profile.file.install.as_ref().expect("it has one");
    let filled = fill("claude", &profile.file, section, ["/bin/tasuki", "/h"]);
    let shape = shape("claude", &profile.file, section);
    (Template::new("claude", [&filled, &shape], notation).expect("right"), filled)
}

/// Any JSON, in many ways of writing it.
fn any_json() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(vec!["", " ", "\n", "\n  ", "\t", "\r\n    "]);
    let key = prop::sample::select(vec!["hooks", "Stop", "permissions", "allow", "a", "b c", "ä\\n\\\"", "SessionEnd"]);
    let leaf = prop::sample::select(vec![
        "1",
        "-2.5e3",
        "true",
        "null",
        "\"\"",
        "\"x \\\" }\"",
        "\"é\"",
        "{}",
        "[]",
        "[ ]",
        "{\n}",
    ]);
    let value = leaf.prop_map(str::to_owned).prop_recursive(4, 24, 4, move |inner| {
        let member = (key.clone(), space(), space(), inner.clone())
            .prop_map(|(key, a, b, value)| format!("{a}\"{key}\"{b}:{b}{value}"));
        let item = (space(), inner).prop_map(|(a, value)| format!("{a}{value}"));
        prop_oneof![
            (prop::collection::vec(member, 0..4), space()).prop_map(|(all, end)| format!("{{{}{end}}}", all.join(","))),
            (prop::collection::vec(item, 0..4), space()).prop_map(|(all, end)| format!("[{}{end}]", all.join(","))),
        ]
    });
    (space(), value, space()).prop_map(|(a, value, b)| format!("{a}{value}{b}"))
}

/// A value with all of our units removed.
fn theirs(value: &Value, template: &Value) -> Value {
    match (value, template) {
        (Value::Object(map), Value::Object(own)) => {
            let left = map.iter().filter_map(|(key, value)| match own.get(key) {
                Some(template) => {
                    let left = theirs(value, template);
                    let is_empty = left.as_array().is_some_and(Vec::is_empty)
                        || left.as_object().is_some_and(serde_json::Map::is_empty);
                    (!is_empty).then(|| (key.clone(), left))
                }
                None => Some((key.clone(), value.clone())),
            });
            Value::Object(left.collect())
        }
        (Value::Array(items), Value::Array(own)) => {
            items.iter().filter(|item| !own.contains(item)).cloned().collect::<Vec<_>>().into()
        }
        (value, _) => value.clone(),
    }
}

proptest! {
    #[test]
    fn any_file_is_as_it_was_after_in_and_out(text in any_json()) {
        let (template, filled) = template(Notation::Json);
        let Ok(merged) = template.put_in(&text) else { return Ok(()) };
        prop_assert!(template.is_whole(&merged.text).expect("readable"), "{}", merged.text);
        prop_assert_eq!(template.take_out(&merged.text, &merged.pieces, &merged.set).expect("readable"), &text[..]);
        let before: Value = serde_json::from_str(&text).expect("JSON");
        let after: Value = serde_json::from_str(&merged.text).expect("JSON");
        let own: Value = serde_json::from_str(&filled).expect("JSON");
        prop_assert_eq!(theirs(&after, &own), theirs(&before, &own));
        // Without a record, by what the hooks say alone.
        let blind = template.take_out(&merged.text, &[], &merged.set).expect("readable");
        prop_assert_eq!(theirs(&serde_json::from_str(&blind).expect("JSON"), &own), theirs(&before, &own));
        prop_assert_eq!(template.count(&blind, &[]).expect("readable"), 0);
    }

    #[test]
    fn a_file_with_comments_keeps_them(a in "[ \n]{0,3}", b in "(// x\n|/\\* y \\*/|,)?", c in "(// z\n)?") {
        let (template, _) = template(Notation::Jsonc);
        let text = format!("{c}{{{a}\"hooks\": {{ \"Stop\": [{a}1{b}{a}] {c}}}{b}{a}}}{c}");
        let merged = template.put_in(&text).expect("it can be put in");
        prop_assert!(template.is_whole(&merged.text).expect("readable"), "{}", merged.text);
        prop_assert_eq!(template.take_out(&merged.text, &merged.pieces, &merged.set).expect("readable"), &text[..]);
        let blind = template.take_out(&merged.text, &[], &merged.set).expect("readable");
        for comment in ["// x", "/* y */", "// z"] {
            prop_assert_eq!(blind.matches(comment).count(), text.matches(comment).count(), "{}", blind);
        }
    }
}
