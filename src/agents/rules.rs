//! Applies a profile's rules to one hook's JSON: what the event means, and the values in it. The hook command writes
//! what it finds to the top level of the event file; what is missing at the top level, the sidecar takes from the
//! payload.

use super::condition::{Pointer, When};
use super::hook_format::{ContextRule, HookRule, HooksSection, Ignore, Meaning, ReasonRule};
use crate::core::hook::{ContextUsage, HookKind, SessionReason};
use serde_json::Value;

/// What a hook's JSON says, by the profile's rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extract {
    /// What happened; `None` when the profile wants it ignored.
    pub kind: Option<HookKind>,
    pub session_id: Option<String>,
    pub turn_id: Option<String>,
    /// The submitted prompt, still in the CLI's wrapper.
    pub text: Option<String>,
    pub last_text: Option<String>,
    pub transcript_path: Option<String>,
    pub cwd: Option<String>,
    pub reason: Option<SessionReason>,
    pub paused: bool,
    pub message: Option<String>,
    pub context: Option<ContextUsage>,
}

impl<W> HooksSection<W> {
    /// The name that the CLI gives its event.
    #[must_use]
    pub fn name_in(&self, payload: &Value) -> Option<String> {
        self.name.as_ref().and_then(|at| text_at(payload, at))
    }

    /// Applies the first rule that fits; `None` if there is none for that name.
    #[must_use]
    pub fn extract(&self, name: &str, payload: &Value) -> Option<Extract> {
        let rule = self.on.iter().find(|rule| rule.name == name && fits(rule.when.as_ref(), payload))?;
        Some(self.apply(rule, payload))
    }

    /// For an event file that names the event in the contract's words: applies a rule with this meaning, so that the
    /// payload's fields are found. It prefers the rule for the CLI's own name of the event, if the payload has that
    /// name.
    #[must_use]
    pub fn extract_kind(&self, kind: HookKind, payload: &Value) -> Extract {
        let name = self.name_in(payload);
        let fitting = |rule: &&HookRule| rule.event == Meaning::Event(kind) && fits(rule.when.as_ref(), payload);
        let by_name = self.on.iter().filter(fitting).find(|rule| name.as_ref().is_some_and(|name| *name == rule.name));
        match by_name.or_else(|| self.on.iter().find(fitting)) {
            Some(rule) => self.apply(rule, payload),
            None => Extract { kind: Some(kind), ..self.common(payload) },
        }
    }

    /// What every event of the CLI carries.
    #[must_use]
    pub fn common(&self, payload: &Value) -> Extract {
        let text = |at: &Option<Pointer>| at.as_ref().and_then(|at| text_at(payload, at));
        Extract {
            session_id: text(&self.session_id),
            turn_id: text(&self.turn_id),
            transcript_path: text(&self.transcript_path),
            cwd: text(&self.cwd),
            ..Extract::default()
        }
    }

    fn apply(&self, rule: &HookRule, payload: &Value) -> Extract {
        let text = |at: &Option<Pointer>| at.as_ref().and_then(|at| text_at(payload, at));
        Extract {
            kind: match rule.event {
                Meaning::Event(kind) => Some(kind),
                Meaning::Ignore(Ignore::Ignore) => None,
            },
            text: text(&rule.text),
            last_text: text(&rule.last_text),
            message: rule.message.iter().find_map(|at| text_at(payload, at)),
            reason: rule.reason.as_ref().map(|rule| reason(rule, payload)),
            paused: rule.paused.as_ref().and_then(|at| at.find(payload)).is_some_and(is_something),
            context: rule.context.as_ref().and_then(|rule| context(rule, payload)),
            ..self.common(payload)
        }
    }
}

pub(super) fn fits(when: Option<&When>, payload: &Value) -> bool {
    when.is_none_or(|when| {
        let value = text_at(payload, &when.at);
        let is = |texts: &[String]| value.as_ref().is_some_and(|value| texts.contains(value));
        (when.is.is_empty() || is(&when.is)) && !is(&when.is_not)
    })
}

/// Whether all of these conditions fit.
pub(super) fn all_fit(when: &[When], payload: &Value) -> bool {
    when.iter().all(|when| fits(Some(when), payload))
}

fn reason(rule: &ReasonRule, payload: &Value) -> SessionReason {
    let word = text_at(payload, &rule.at).unwrap_or_default();
    if rule.replaced.contains(&word) {
        SessionReason::Replaced
    } else if rule.same.contains(&word) {
        SessionReason::Same
    } else if rule.killed.contains(&word) {
        SessionReason::Killed
    } else {
        SessionReason::Process
    }
}

fn context(rule: &ContextRule, payload: &Value) -> Option<ContextUsage> {
    let numbers: Vec<u64> = rule.used.iter().filter_map(|at| at.find(payload)?.as_u64()).collect();
    let used = numbers.iter().fold(0_u64, |sum, number| sum.saturating_add(*number));
    let window = rule.window.as_ref().and_then(|at| at.find(payload)?.as_u64());
    (!numbers.is_empty()).then_some(ContextUsage { used, window })
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    }
}

/// The text at a place: a string; a number or a truth value as it is written; of a list, its strings and the `text`
/// fields of its objects, joined by newlines, which is how several CLIs write messages.
pub(super) fn text_at(payload: &Value, at: &Pointer) -> Option<String> {
    match at.find(payload)? {
        Value::String(text) => Some(text.clone()),
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        Value::Array(items) => {
            let part = |item: &Value| item.as_str().or_else(|| item.get("text")?.as_str()).map(str::to_owned);
            let parts: Vec<String> = items.iter().filter_map(part).collect();
            (!parts.is_empty()).then(|| parts.join("\n"))
        }
        Value::Null | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::{Profile, Profiles};
    use super::*;
    use serde_json::json;

    fn extract(profile: &str, payload: &Value) -> Option<Extract> {
        let profiles = Profiles::load(None).expect("built in");
        let hooks = &profiles.get(profile).map(|p: &Profile| p.file.hooks.clone()).expect("a profile");
        hooks.extract(&hooks.name_in(payload).expect("the event's name"), payload)
    }

    #[test]
    fn a_submitted_prompt_carries_text_session_and_turn() {
        let payload = json!({"hook_event_name":"UserPromptSubmit","session_id":"s1","prompt_id":"p1","prompt":"hello","cwd":"/w"});
        let found = extract("claude", &payload).expect("mapped");
        assert_eq!(found.kind, Some(HookKind::PromptSubmit));
        assert_eq!(
            (found.text.as_deref(), found.session_id.as_deref(), found.turn_id.as_deref()),
            (Some("hello"), Some("s1"), Some("p1"))
        );
        assert_eq!(found.cwd.as_deref(), Some("/w"));
    }

    #[test]
    fn a_stop_with_work_in_the_background_is_a_pause() {
        let stop = |tasks: Value| {
            extract("claude", &json!({"hook_event_name":"Stop","background_tasks":tasks})).expect("mapped")
        };
        assert!(stop(json!([{"id":"b1"}])).paused);
        assert!(!stop(json!([])).paused && !stop(Value::Null).paused);
    }

    #[test]
    fn reasons_tell_an_end_from_a_change_of_session() {
        let end = |word: &str| {
            extract("claude", &json!({"hook_event_name":"SessionEnd","reason":word})).expect("mapped").reason
        };
        assert_eq!(end("clear"), Some(SessionReason::Replaced));
        for by_a_person in ["prompt_input_exit", "logout"] {
            assert_eq!(end(by_a_person), Some(SessionReason::Process));
        }
        assert_eq!(end("other"), Some(SessionReason::Killed), "its pane was closed, or it got SIGTERM");
        // Codex gives this reason whenever a person quits it, and reports nothing if its pane is closed.
        let quit = json!({"hook_event_name":"SessionEnd","reason":"other"});
        assert_eq!(extract("codex", &quit).expect("mapped").reason, Some(SessionReason::Process));
        let start = |word: &str| {
            extract("claude", &json!({"hook_event_name":"SessionStart","source":word})).expect("mapped").reason
        };
        assert_eq!(start("startup"), Some(SessionReason::Process));
        assert_eq!(start("compact"), Some(SessionReason::Same));
        assert_eq!(start("resume"), Some(SessionReason::Replaced));
    }

    #[test]
    fn one_event_can_mean_three_things_by_its_value() {
        let end = |word: &str| extract("pi", &json!({"event":"agent_end","stopReason":word})).expect("mapped").kind;
        assert_eq!(end("stop"), Some(HookKind::Stop));
        assert_eq!(end("aborted"), Some(HookKind::Interrupted));
        assert_eq!(end("error"), Some(HookKind::StopFailure));
    }

    #[test]
    fn an_event_without_a_rule_means_nothing() {
        assert_eq!(extract("claude", &json!({"hook_event_name":"SubagentStop"})).and_then(|found| found.kind), None);
        assert_eq!(extract("claude", &json!({"hook_event_name":"NewThing"})), None);
    }

    #[test]
    fn pointers_count_from_the_end_too() {
        let pointer = |text: &str| serde_json::from_value::<Pointer>(json!(text)).expect("a pointer");
        let value = json!({"m":[{"c":[{"type":"text","text":"a"},{"type":"tool"},{"text":"b"}]},{"a/b":7}]});
        assert_eq!(text_at(&value, &pointer("/m/-2/c")).as_deref(), Some("a\nb"));
        assert_eq!(text_at(&value, &pointer("/m/-1/a~1b")).as_deref(), Some("7"));
        assert_eq!(text_at(&value, &pointer("/m/-3")), None);
        assert!(serde_json::from_value::<Pointer>(json!("m")).is_err());
    }
}
