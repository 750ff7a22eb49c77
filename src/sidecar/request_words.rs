//! Takes credentials out of what a request says about a handoff or a work item: reasons, focus, tasks, titles,
//! descriptions, comments, questions and answers. These texts go into briefings, views, notices and the journal, so
//! they are cleaned before the core sees them. Two kinds of content stay as they are: a text that `agent_send` types,
//! because somebody wants exactly that text typed; and the output and the further fields of a work item, because they
//! are data, which rules check and programs read.

use crate::core::request::Request;
use crate::runner;
use crate::secrets::{self, Known};
use regex::Regex;
use serde_json::Value;

/// `allow`: expressions by the operator; text that fits one of them does not count as a credential.
pub(super) fn without_credentials(request: &mut Request, allow: &[String]) {
    let said = words(request);
    if said.is_empty() {
        return;
    }
    let allowed: Vec<Regex> = allow.iter().filter_map(|expression| Regex::new(expression).ok()).collect();
    let environment = secrets::without_words(runner::known_values(None));
    let known = Known { environment: &environment, allowed: &allowed };
    for text in said {
        *text = secrets::without(text, &known);
    }
}

/// The sentences of a request that others will read. None for kinds without such sentences, and for texts that a person
/// asked to have typed.
fn words(request: &mut Request) -> Vec<&mut String> {
    match request {
        Request::Handoff(asked) => {
            [&mut asked.reason].into_iter().chain(&mut asked.focus).chain(&mut asked.tasks).collect()
        }
        // Briefings and notices name an item by its title, and notices show how its description begins.
        Request::WorkCreate(asked) => [&mut asked.title].into_iter().chain(&mut asked.description).collect(),
        Request::WorkComplete(asked) => asked.children.iter_mut().flat_map(child).collect(),
        Request::WorkRetryChildren(asked) => asked.children.iter_mut().flatten().flat_map(child).collect(),
        Request::WorkImport(asked) => asked.items.iter_mut().flat_map(imported).collect(),
        Request::WorkComment(asked) => vec![&mut asked.text],
        Request::WorkRelease(asked) => asked.reason.iter_mut().collect(),
        Request::WorkEscalate(asked) => vec![&mut asked.reason],
        Request::WorkRollback(asked) => vec![&mut asked.reason],
        Request::HandoffRework(asked) => vec![&mut asked.note],
        Request::AckOverride(asked) => vec![&mut asked.reason],
        Request::Ack(asked) => {
            [&mut asked.understanding, &mut asked.starting_from].into_iter().chain(&mut asked.questions).collect()
        }
        // The questions are cleaned as they were when the successor asked them, so that they still fit together.
        Request::Clarify(asked) => {
            asked.clarifications.iter_mut().flat_map(|one| [&mut one.question, &mut one.answer]).collect()
        }
        _ => Vec::new(),
    }
}

/// A member that is a text.
fn member<'v>(value: &'v mut Value, name: &str) -> Option<&'v mut String> {
    match value.get_mut(name)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The title and the description of a child.
fn child(value: &mut Value) -> Vec<&mut String> {
    let members = value.as_object_mut().into_iter().flatten();
    let said = members.filter_map(|(name, value)| match (name.as_str(), value) {
        ("title" | "description", Value::String(text)) => Some(text),
        _ => None,
    });
    said.collect()
}

/// What an imported item says: title, description, the reasons in its history, and comments.
fn imported(item: &mut Value) -> Vec<&mut String> {
    let mut found = Vec::new();
    for (name, value) in item.as_object_mut().into_iter().flatten() {
        match (name.as_str(), value) {
            ("title" | "description" | "escalation_reason", Value::String(text)) => found.push(text),
            ("history", Value::Array(entries)) => {
                found.extend(entries.iter_mut().filter_map(|entry| member(entry, "reason")));
            }
            ("comments", Value::Array(comments)) => {
                found.extend(comments.iter_mut().filter_map(|comment| member(comment, "text")));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::without_credentials;
    use crate::core::request::{Request, read};

    fn read_and_clean(json: &str, allow: &[String]) -> Request {
        let mut request = read(json.as_bytes()).request.expect("a request");
        without_credentials(&mut request, allow);
        request
    }

    /// Made here, so that no scanner takes this file for a leak.
    fn token() -> String {
        format!("ghp_{}", "x7Kq2Lm9Pz4Rt6Wv8Yb1Nc3Dd5Ff0Gg2Hh4J")
    }

    #[test]
    fn what_a_request_says_about_a_handoff_loses_its_credentials() {
        let token = token();
        for json in [
            format!(
                r#"{{"v":1,"kind":"handoff","agent_id":"a","reason":"use {token}","focus":"{token}","tasks":["{token} x"]}}"#
            ),
            format!(r#"{{"v":1,"kind":"handoff_rework","handoff_id":"h","note":"name {token} too"}}"#),
            format!(r#"{{"v":1,"kind":"ack_override","handoff_id":"h","reason":"{token}"}}"#),
            format!(
                r#"{{"v":1,"kind":"ack","handoff_id":"h","agent_id":"a","understanding":"{token}","starting_from":"{token}","questions":["{token}?"],"status":"needs_clarification"}}"#
            ),
            format!(
                r#"{{"v":1,"kind":"clarify","handoff_id":"h","clarifications":[{{"question":"{token}?","answer":"{token}"}}]}}"#
            ),
        ] {
            let cleaned = format!("{:?}", read_and_clean(&json, &[]));
            assert!(!cleaned.contains(&token) && cleaned.contains("[REDACTED:github-pat]"), "{cleaned}");
        }
    }

    #[test]
    fn what_a_request_says_about_work_loses_its_credentials() {
        let token = token();
        for json in [
            format!(r#"{{"v":1,"kind":"work_create","type":"bug","title":"{token}","description":"with {token}"}}"#),
            format!(
                r#"{{"v":1,"kind":"work_complete","item_id":"i","agent_id":"a","output":{{}},"children":[{{"type":"bug","title":"{token}","description":"{token}"}},7]}}"#
            ),
            format!(
                r#"{{"v":1,"kind":"work_retry_children","item_id":"i","agent_id":"a","children":[{{"title":"{token}","description":"{token}"}}]}}"#
            ),
            format!(
                r#"{{"v":1,"kind":"work_import","items":[{{"title":"{token}","description":"{token}","escalation_reason":"{token}","history":[{{"reason":"{token}"}}],"comments":[{{"text":"{token}"}}]}}]}}"#
            ),
            format!(r#"{{"v":1,"kind":"work_release","item_id":"i","reason":"{token}"}}"#),
            format!(r#"{{"v":1,"kind":"work_escalate","item_id":"i","agent_id":"a","reason":"{token}"}}"#),
            format!(r#"{{"v":1,"kind":"work_comment","item_id":"i","author":"human","text":"{token}"}}"#),
            format!(r#"{{"v":1,"kind":"work_rollback","item_id":"i","reason":"{token}"}}"#),
        ] {
            let cleaned = format!("{:?}", read_and_clean(&json, &[]));
            assert!(!cleaned.contains(&token) && cleaned.contains("[REDACTED:github-pat]"), "{cleaned}");
        }
    }

    #[test]
    fn a_text_to_type_stays_and_so_does_what_the_operator_allows() {
        let token = token();
        let send = format!(r#"{{"v":1,"kind":"agent_send","agent_id":"a","text":"{token}"}}"#);
        assert!(format!("{:?}", read_and_clean(&send, &[])).contains(&token));
        let reason = format!(r#"{{"v":1,"kind":"ack_override","handoff_id":"h","reason":"{token}"}}"#);
        assert!(format!("{:?}", read_and_clean(&reason, &["^ghp_".to_owned()])).contains(&token));
    }
}
