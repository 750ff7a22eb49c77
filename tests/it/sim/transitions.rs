//! Where handoffs go from each step, and what has happened then: a table that two thousand simulated lives have made,
//! for readers. Whoever changes the flow sees it change.

use super::golden::kept;
use std::collections::{BTreeMap, BTreeSet};
use tasuki::core::decision::Decision;
use tasuki::core::event::Event;
use tasuki::core::state::State;
use tasuki::core::text::wire_name;

/// By the step that was left and the one that was entered: what has happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transitions(BTreeMap<(String, String), BTreeSet<String>>);

impl Transitions {
    /// Notes what a decision has changed; `state` is that before it.
    pub(crate) fn note(&mut self, state: &State, what: &str, decision: &Decision) {
        let mut stands: BTreeMap<&str, String> = BTreeMap::new();
        for (_, line) in &decision.journal {
            let text = |name: &str| line[name].as_str().unwrap_or_default();
            let to = match text("type") {
                "handoff.step" if line["document_bytes"].is_null() => text("step").to_owned(),
                "handoff.failed" => format!("failed ({})", text("code")),
                _ => continue,
            };
            let id = text("handoff_id");
            let before = || {
                let handoff = id.parse().ok().and_then(|id| state.handoffs.get(&id));
                handoff.map_or_else(|| "asked".to_owned(), |handoff| handoff.step.as_str().to_owned())
            };
            let from = stands.get(id).cloned().unwrap_or_else(before);
            stands.insert(id, to.split(' ').next().unwrap_or_default().to_owned());
            self.0.entry((from, to)).or_default().insert(what.to_owned());
        }
    }

    pub(crate) fn absorb(&mut self, other: &Transitions) {
        for (step, causes) in &other.0 {
            self.0.entry(step.clone()).or_default().extend(causes.iter().cloned());
        }
    }

    /// Compares them with those that are kept.
    pub(crate) fn compare(&self) {
        let now: String = self.0.iter().map(line).collect();
        let kept = kept("transitions.txt", &now);
        assert!(
            now == kept,
            "handoffs go other ways than before:\n{}\nIf that is meant, run this test with TASUKI_WRITE_TRACE=1",
            similar::TextDiff::from_lines(&kept, &now).unified_diff()
        );
    }
}

fn line((step, causes): (&(String, String), &BTreeSet<String>)) -> String {
    let causes: Vec<&str> = causes.iter().map(String::as_str).collect();
    format!("{} -> {}: {}\n", step.0, step.1, causes.join(", "))
}

/// What has happened, in a few words.
pub(crate) fn cause(state: &State, event: &Event) -> String {
    match event {
        Event::Request(arrived) => arrived.read.kind.clone().unwrap_or_else(|| "request".to_owned()),
        Event::Hook(event) => format!("hook {}", wire_name(&event.kind)),
        Event::Settled { key, .. } => match state.outbox.get(key) {
            Some(effect) => format!("effect {}", effect.kind()),
            None => "late answer".to_owned(),
        },
        Event::AgentExit { .. } => "agent gone".to_owned(),
        Event::DocumentGrew { .. } => "document grew".to_owned(),
        Event::Server(_) => "tmux server".to_owned(),
        Event::Rules(_) => "rules".to_owned(),
        Event::Roles(_) => "roles".to_owned(),
        Event::Probe => "probe".to_owned(),
        Event::Deadlines => "limit".to_owned(),
    }
}
