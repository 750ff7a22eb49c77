//! The children that a completion asks for. Each is checked by itself, so that a partial completion can make the good
//! ones.

use crate::core::reply::Fault;
use crate::core::request::body::in_words;
use crate::core::request::work::{ChildRequest, MAX_DESCRIPTION, MAX_METADATA, MAX_TITLE, size};
use crate::core::rules::Rule;
use serde_json::Value;
use serde_path_to_error::{Path, Segment};

/// A requested child: its position in the list, what was asked for, and the child as it can be made, or its faults.
pub(crate) struct CheckedChild {
    pub(crate) index: usize,
    pub(crate) asked: Value,
    pub(crate) child: Result<ChildRequest, Vec<Fault>>,
}

/// Judges every member of the list by the parent's rule.
pub(crate) fn judge(rule: &Rule, asked: &[(usize, Value)]) -> Vec<CheckedChild> {
    let judged = |(index, asked): &(usize, Value)| CheckedChild {
        index: *index,
        asked: asked.clone(),
        child: one(rule, asked).map_err(|faults| {
            let place =
                |(pointer, message): (String, String)| Fault::new(format!("/children/{index}{pointer}"), message);
            faults.into_iter().map(place).collect()
        }),
    };
    asked.iter().map(judged).collect()
}

fn one(rule: &Rule, asked: &Value) -> Result<ChildRequest, Vec<(String, String)>> {
    let child = serde_path_to_error::deserialize::<_, ChildRequest>(asked)
        .map_err(|error| vec![(pointer_to(error.path()), in_words(&error.inner().to_string()))])?;
    let mut faults = Vec::new();
    let mut wrong = |pointer: &str, message: String| faults.push((pointer.to_owned(), message));
    if !rule.creates.contains(&child.kind) {
        wrong("/type", not_created(rule, &child.kind));
    }
    if child.title.trim().is_empty() {
        wrong("/title", "must not be empty".to_owned());
    }
    if child.title.len() > MAX_TITLE {
        wrong("/title", format!("is longer than {MAX_TITLE} bytes"));
    }
    if child.description.as_ref().is_some_and(|text| text.len() > MAX_DESCRIPTION) {
        wrong("/description", format!("is longer than {MAX_DESCRIPTION} bytes"));
    }
    if child.metadata.as_ref().is_some_and(|fields| size(fields) > MAX_METADATA) {
        wrong("/metadata", format!("is longer than {MAX_METADATA} bytes"));
    }
    if faults.is_empty() { Ok(child) } else { Err(faults) }
}

/// The JSON pointer of a path that serde has noted.
pub(super) fn pointer_to(path: &Path) -> String {
    let place = |segment: &Segment| match segment {
        Segment::Map { key } | Segment::Enum { variant: key } => Some(format!("/{}", escaped(key))),
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Unknown => None,
    };
    path.iter().filter_map(place).collect()
}

/// A field's name as JSON pointers have it (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The message that a parent with this rule can't create this type of child.
pub(crate) fn not_created(rule: &Rule, kind: &str) -> String {
    match rule.creates.as_slice() {
        [] => format!("{kind} can't be created here: the rule lets the item create nothing"),
        several => format!("{kind} can't be created here: the rule lets the item create only {}", several.join(" or ")),
    }
}

/// A field of a requested child, if it is a string: an answer names failed children by such fields.
pub(crate) fn named(asked: &Value, field: &str) -> Option<String> {
    asked.get(field).and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rules::Rules;
    use serde_json::json;

    #[test]
    fn each_member_is_judged_by_itself() {
        let rule = Rules::default().types["prd"].clone();
        let asked = [
            json!({"type": "story", "title": "one"}),
            json!({"type": "bug", "title": " "}),
            json!({"title": "no type"}),
            json!({"type": "story", "title": "x", "colour": "red"}),
            json!("story"),
            json!({"type": "story", "title": "two", "metadata": {"points": 3}}),
        ];
        let asked: Vec<(usize, Value)> = asked.into_iter().enumerate().collect();
        let found: Vec<Vec<String>> = judge(&rule, &asked)
            .into_iter()
            .map(|judged| judged.child.err().unwrap_or_default().into_iter().map(|fault| fault.pointer).collect())
            .collect();
        assert!(found[0].is_empty() && found[5].is_empty());
        assert_eq!(found[1], ["/children/1/type", "/children/1/title"]);
        assert_eq!((found[2].len(), found[3].len(), found[4].len()), (1, 1, 1));
        assert!(found.iter().enumerate().all(|(index, faults)| {
            faults.iter().all(|pointer| pointer.starts_with(&format!("/children/{index}")))
        }));
    }
}
