//! A handoff as it passes, step by step. Pure: snapshots of its view go in, what is new comes out.

use super::error::CliError;
use super::view::{millis_between, text};
use crate::core::text::sanitise;
use serde_json::Value;

/// How a handoff ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The successor has its briefing.
    Done,
    /// It stopped at a step and waits for a person.
    Failed,
    /// An operator called it off.
    Cancelled,
}

impl Outcome {
    /// The contract's word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }

    /// The end that a step's word stands for, if it is one.
    pub(super) fn of(step: Option<&str>) -> Option<Self> {
        match step? {
            "done" => Some(Outcome::Done),
            "failed" => Some(Outcome::Failed),
            "cancelled" => Some(Outcome::Cancelled),
            _ => None,
        }
    }
}

/// Something new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A step has begun.
    Entered {
        /// Its name.
        step: String,
    },
    /// The document that is being written has another size.
    Grew {
        /// Its size in bytes.
        bytes: u64,
    },
    /// A dialog in an agent's pane waits for a person.
    Blocked {
        /// The agent.
        agent_id: String,
        /// Its pane.
        pane: String,
    },
    /// A step is behind us.
    Passed {
        /// Its name.
        step: String,
        /// How long it took, in milliseconds.
        took_ms: Option<u64>,
        /// What became of the text that it typed.
        verdict: Option<String>,
    },
    /// The handoff stopped at this step.
    Stopped {
        /// Its name.
        step: String,
        /// How long it had been there, in milliseconds.
        took_ms: Option<u64>,
    },
    /// The handoff has ended.
    Ended(Outcome),
}

/// Remembers what was told already.
#[derive(Debug, Default)]
pub struct Follower {
    entered: usize,
    left: usize,
    ignore_until: usize,
    bytes: Option<u64>,
    ended: bool,
}

impl Follower {
    /// Follows a handoff from its first step.
    #[must_use]
    pub fn new() -> Self {
        Follower::default()
    }

    /// Follows a handoff that goes on after `before`, its view from before it was asked to: steps told there are not
    /// told again, and its old end is not taken for a new one.
    #[must_use]
    pub fn after(before: &Value) -> Self {
        let steps = steps(before).len();
        match Outcome::of(text(before, "step")) {
            Some(_) => Follower { entered: steps, left: steps, ignore_until: steps + 1, ..Follower::default() },
            None => Follower::default(),
        }
    }

    /// What is new in this snapshot. After the end nothing is.
    pub fn observe(&mut self, view: &Value) -> Vec<Progress> {
        let steps = steps(view);
        if self.ended || steps.len() < self.ignore_until {
            return Vec::new();
        }
        let outcome = Outcome::of(text(view, "step"));
        let mut news = Vec::new();
        while let Some(entry) = steps.get(self.left) {
            let name = sanitise(text(entry, "step").unwrap_or("?"));
            let is_end = Outcome::of(Some(&name)).is_some();
            if self.entered <= self.left {
                self.entered = self.left + 1;
                if !is_end {
                    news.push(Progress::Entered { step: name.clone() });
                }
            }
            let last = self.left + 1 == steps.len() || steps.get(self.left + 1).is_some_and(ends);
            let left_at = text(entry, "left_at");
            if left_at.is_none() && outcome.is_none() {
                break;
            }
            self.left += 1;
            if is_end {
                continue;
            }
            let took_ms = text(entry, "entered_at").zip(left_at).and_then(|(from, to)| millis_between(from, to));
            let stopped = last && matches!(outcome, Some(Outcome::Failed | Outcome::Cancelled));
            news.push(match stopped {
                true => Progress::Stopped { step: name, took_ms },
                false => Progress::Passed { verdict: verdict(view, &name), step: name, took_ms },
            });
        }
        let bytes = view.get("document").and_then(|document| document.get("bytes")?.as_u64());
        if text(view, "step") == Some("writing") && bytes != self.bytes {
            self.bytes = bytes;
            news.extend(bytes.map(|bytes| Progress::Grew { bytes }));
        }
        if let Some(outcome) = outcome {
            self.ended = true;
            news.push(Progress::Ended(outcome));
        }
        news
    }
}

fn ends(entry: &Value) -> bool {
    Outcome::of(text(entry, "step")).is_some()
}

fn steps(view: &Value) -> &[Value] {
    view.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The verdict on the text that a step types.
fn verdict(view: &Value, step: &str) -> Option<String> {
    let name = match step {
        "instructing" => "instruction",
        "priming" => "priming",
        "briefing" => "briefing",
        _ => return None,
    };
    text(view.get("verdicts")?.get(name)?, "verdict").map(sanitise)
}

/// A length of time for people: tenths of a second, and minutes where there are some.
#[must_use]
pub fn span(ms: u64) -> String {
    if ms < 60_000 {
        format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
    } else {
        format!("{} min {:02} s", ms / 60_000, ms / 1_000 % 60)
    }
}

/// A size for people.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        _ => format!("{} KiB", bytes / 1024),
    }
}

/// One line for each piece of news that deserves one; the second member says whether it went well.
#[must_use]
pub fn line(news: &Progress) -> Option<(String, bool)> {
    let took = |ms: &Option<u64>| ms.map(span).unwrap_or_default();
    match news {
        Progress::Entered { .. } | Progress::Ended(_) => None,
        Progress::Grew { bytes } => Some((format!("{:<13} {:>10}", "  document", size(*bytes)), true)),
        Progress::Blocked { agent_id, pane } => {
            let who: String = agent_id.chars().take(8).collect();
            Some((format!("agent {who} waits for you: look at its pane {pane} and answer its dialog"), false))
        }
        Progress::Passed { step, took_ms, verdict } => {
            let verdict = verdict.as_deref().unwrap_or_default();
            Some((format!("{step:<13} {:>10}  {verdict}", took(took_ms)).trim_end().to_owned(), true))
        }
        Progress::Stopped { step, took_ms } => {
            Some((format!("{step:<13} {:>10}  stopped here", took(took_ms)).trim_end().to_owned(), false))
        }
    }
}

/// The last lines: verdicts, document, successor, warnings.
#[must_use]
pub fn summary(view: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |name: &str, what: String| lines.push(format!("{name:<10} {}", sanitise(&what)));
    if let Some(path) = text(view, "file_path") {
        let bytes = view.get("bytes").and_then(Value::as_u64);
        let growing = view.get("document").and_then(|document| document.get("bytes")?.as_u64());
        let state = match (bytes, growing) {
            (Some(bytes), _) => format!("{path} ({bytes} bytes)"),
            (None, Some(bytes)) => format!("{path} ({bytes} bytes so far, not recorded)"),
            (None, None) if matches!(text(view, "step"), Some("waiting" | "instructing" | "writing")) => {
                format!("{path} (not there yet)")
            }
            (None, None) => path.to_owned(),
        };
        say("document", state);
    }
    if let Some(published) = super::publish::summary(view) {
        say("published", published);
    }
    if let Some(successor) = text(view, "successor_id") {
        say("successor", successor.to_owned());
    }
    let verdicts: Vec<String> = ["instruction", "priming", "briefing"]
        .iter()
        .filter_map(|name| {
            let verdict = view.get("verdicts")?.get(name)?;
            let reason = text(verdict, "reason").map(|reason| format!(" ({reason})")).unwrap_or_default();
            Some(format!("{name} {}{reason}", text(verdict, "verdict")?))
        })
        .collect();
    if !verdicts.is_empty() {
        say("verdicts", verdicts.join(", "));
    }
    let warnings = view.get("warnings").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for warning in warnings {
        say("warning", warning.as_str().map_or_else(|| warning.to_string(), str::to_owned));
    }
    lines
}

/// The error of a handoff that did not end well.
#[must_use]
pub fn failure(view: &Value, outcome: Outcome) -> Option<CliError> {
    match outcome {
        Outcome::Done => None,
        Outcome::Failed => {
            let mut error = CliError::from_answer(view.get("error").unwrap_or(&Value::Null), None);
            if error.hint.is_none() {
                let id = text(view, "handoff_id").unwrap_or("HANDOFF");
                error = error.hint(format!("When the cause is mended: tasuki retry {}", sanitise(id)));
            }
            Some(error)
        }
        Outcome::Cancelled => Some(CliError::refused("cancelled", "The handoff was cancelled.")),
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
