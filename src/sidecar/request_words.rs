//! Takes credentials out of what a request says about a handoff: why, what matters, questions and answers. These words
//! go into briefings, views, notices and the journal, so they are cleaned before the core sees them. A text that
//! `agent_send` types stays as it is: somebody wants exactly that text typed.

use crate::core::request::Request;
use crate::runner;
use crate::secrets::{self, Known};
use regex::Regex;

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

/// The words of a request that others will read. None for kinds that carry no such words, or whose words a person asked
/// to have typed.
fn words(request: &mut Request) -> Vec<&mut String> {
    match request {
        Request::Handoff(asked) => {
            [&mut asked.reason].into_iter().chain(&mut asked.focus).chain(&mut asked.tasks).collect()
        }
        // The briefing names it as a task.
        Request::WorkCreate(asked) => vec![&mut asked.title],
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
    fn a_text_to_type_stays_and_so_does_what_the_operator_allows() {
        let token = token();
        let send = format!(r#"{{"v":1,"kind":"agent_send","agent_id":"a","text":"{token}"}}"#);
        assert!(format!("{:?}", read_and_clean(&send, &[])).contains(&token));
        let reason = format!(r#"{{"v":1,"kind":"ack_override","handoff_id":"h","reason":"{token}"}}"#);
        assert!(format!("{:?}", read_and_clean(&reason, &["^ghp_".to_owned()])).contains(&token));
    }
}
