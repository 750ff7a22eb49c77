//! Turns the changes of a handoff's view into news, step by step. Pure: snapshots of the view go in, news come
//! out.

use super::error::CliError;
use super::examined;
use super::view::{millis_between, said};
use crate::contract::handoff::Read;
use crate::contract::{HandoffView, Step, StepError, StepView, Word};
use crate::core::text::sanitise;

/// How a handoff ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    Done,
    /// It stopped at a step and waits for a person.
    Failed,
    Cancelled,
}

impl FlowEnd {
    /// The outcome's wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            FlowEnd::Done => "done",
            FlowEnd::Failed => "failed",
            FlowEnd::Cancelled => "cancelled",
        }
    }

    /// The outcome that a step stands for, if it is an end.
    pub(super) fn of(step: &Word<Step>) -> Option<Self> {
        match step.known()? {
            Step::Done => Some(FlowEnd::Done),
            Step::Failed => Some(FlowEnd::Failed),
            Step::Cancelled => Some(FlowEnd::Cancelled),
            _ => None,
        }
    }
}

/// A change in a handoff's view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Entered {
        step: String,
    },
    /// The document has grown or shrunk while it is being written.
    Grew {
        bytes: u64,
    },
    /// The agent was asked to fix its document.
    Reworked {
        /// How often so far.
        times: u64,
        /// How many faults the document has.
        faults: usize,
    },
    /// The handoff waits for a person to accept its document.
    Held {
        handoff_id: String,
        since: String,
        faults: usize,
        /// An agent has written it, and can be asked to repair it.
        has_writer: bool,
    },
    /// A dialog in an agent's pane waits for a person.
    Blocked {
        agent_id: String,
        pane: String,
    },
    /// The handoff left this step.
    Passed {
        step: String,
        /// How long it took, in milliseconds.
        took_ms: Option<u64>,
        /// The verdict on the text that it typed.
        verdict: Option<String>,
    },
    Stopped {
        step: String,
        /// How long it had been there, in milliseconds.
        took_ms: Option<u64>,
    },
    Ended(FlowEnd),
}

/// Compares a handoff's view with what was already printed.
#[derive(Debug, Default)]
pub struct Follower {
    /// How many entries of the view's list of steps were looked at when they began.
    entered: usize,
    /// How many of these entries are over.
    left: usize,
    /// Views with fewer steps than this are ignored: they are older than the request.
    ignore_until: usize,
    bytes: Option<u64>,
    reworks: u64,
    held: Option<String>,
    ended: bool,
}

impl Follower {
    /// Follows a handoff from its first step.
    #[must_use]
    pub fn new() -> Self {
        Follower::default()
    }

    /// Follows a handoff that continues after `before`, its view from before the request: steps of that view are not
    /// printed again, and its old end does not count as a new end.
    #[must_use]
    pub fn after(before: &HandoffView) -> Self {
        let steps = before.steps.len();
        match FlowEnd::of(&before.step) {
            Some(_) => Follower { entered: steps, left: steps, ignore_until: steps + 1, ..Follower::default() },
            // The person has just decided about this rework or wait, so it is not news.
            None => Follower { reworks: before.reworks, held: before.held_since.clone(), ..Follower::default() },
        }
    }

    /// The news in this snapshot; none after the handoff's end.
    pub fn observe(&mut self, view: &HandoffView) -> Vec<Progress> {
        let steps = &view.steps;
        if self.ended || steps.len() < self.ignore_until {
            return Vec::new();
        }
        let outcome = FlowEnd::of(&view.step);
        let mut news = Vec::new();
        while let Some(entry) = steps.get(self.left) {
            let name = sanitise(said(entry.step.as_str()).unwrap_or("?"));
            if self.entered <= self.left {
                self.entered = self.left + 1;
                if !ends(entry) {
                    news.push(Progress::Entered { step: name.clone() });
                }
            }
            let last = self.left + 1 == steps.len() || steps.get(self.left + 1).is_some_and(ends);
            let left_at = said(entry.left_at.as_deref());
            if left_at.is_none() && outcome.is_none() {
                break;
            }
            self.left += 1;
            if ends(entry) {
                continue;
            }
            let took_ms = left_at.and_then(|left_at| millis_between(&entry.entered_at, left_at));
            let stopped = last && matches!(outcome, Some(FlowEnd::Failed | FlowEnd::Cancelled));
            news.push(match stopped {
                true => Progress::Stopped { step: name, took_ms },
                false => Progress::Passed { verdict: verdict(view, &entry.step), step: name, took_ms },
            });
        }
        let bytes = view.document.as_ref().map(|document| document.bytes);
        if view.step == Step::Writing && bytes != self.bytes {
            self.bytes = bytes;
            news.extend(bytes.map(|bytes| Progress::Grew { bytes }));
        }
        if view.step == Step::Checking {
            news.extend(self.checking(view));
        }
        if let Some(outcome) = outcome {
            self.ended = true;
            news.push(Progress::Ended(outcome));
        }
        news
    }

    /// News about the document while it is checked.
    fn checking(&mut self, view: &HandoffView) -> Option<Progress> {
        let faults = view.faults.len();
        if let Some(since) = said(view.held_since.as_deref()) {
            self.reworks = view.reworks;
            let is_news = self.held.as_deref() != Some(since);
            self.held = Some(since.to_owned());
            let handoff_id = sanitise(&view.handoff_id);
            let has_writer = view.has_writer();
            return is_news.then(|| Progress::Held { handoff_id, since: sanitise(since), faults, has_writer });
        }
        let is_news = view.reworks > self.reworks;
        self.reworks = view.reworks;
        is_news.then_some(Progress::Reworked { times: view.reworks, faults })
    }
}

fn ends(entry: &StepView) -> bool {
    FlowEnd::of(&entry.step).is_some()
}

/// Whether the handoff has continued although tasuki has not seen the successor finish reading its document.
#[must_use]
pub fn is_unread(view: &HandoffView) -> bool {
    view.read.as_ref().is_some_and(|read| *read == Read::Unseen)
}

/// The verdict on the text that a step types. For the step `reading`: `unseen` if the end of the reading was not seen.
fn verdict(view: &HandoffView, step: &Word<Step>) -> Option<String> {
    let verdict = match step.known()? {
        Step::Reading => return view.read.as_ref().filter(|_| is_unread(view)).map(|read| sanitise(read.as_str())),
        Step::Instructing => &view.verdicts.instruction,
        Step::Priming => &view.verdicts.priming,
        Step::Briefing => &view.verdicts.briefing,
        _ => return None,
    };
    said(verdict.as_ref()?.verdict.as_str()).map(sanitise)
}

/// A length of time as text: seconds with tenths, or minutes and seconds.
#[must_use]
pub fn span(ms: u64) -> String {
    if ms < 60_000 {
        format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
    } else {
        format!("{} min {:02} s", ms / 60_000, ms / 1_000 % 60)
    }
}

/// A number of bytes as people read it.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        _ => format!("{} KiB", bytes / 1024),
    }
}

/// What the running step waits for after this news, in a few words; `None` if the news does not say that.
#[must_use]
pub fn about(news: &Progress) -> Option<String> {
    match news {
        Progress::Grew { bytes } => Some(format!("{} so far", size(*bytes))),
        Progress::Reworked { faults: 0, .. } => Some("the agent was asked to change it".to_owned()),
        Progress::Reworked { faults, .. } => Some(format!("the agent was asked to fix {}", examined::count(*faults))),
        Progress::Held { .. } => Some("waits for you".to_owned()),
        Progress::Blocked { .. } => Some("waiting for a person".to_owned()),
        Progress::Entered { .. } | Progress::Passed { .. } | Progress::Stopped { .. } | Progress::Ended(_) => None,
    }
}

/// One line for each piece of news worth a line; the second value is whether it is good news.
#[must_use]
pub fn line(news: &Progress) -> Option<(String, bool)> {
    let took = |ms: &Option<u64>| ms.map(span).unwrap_or_default();
    match news {
        Progress::Entered { .. } | Progress::Ended(_) => None,
        Progress::Grew { bytes } => Some((format!("{:<13} {:>10}", "  document", size(*bytes)), true)),
        Progress::Reworked { .. } => about(news).map(|what| (format!("{:<13} {what}", "  document"), true)),
        Progress::Held { handoff_id, faults, has_writer, .. } => {
            let (found, choices) = (examined::count(*faults), examined::choices(handoff_id, *has_writer));
            Some((format!("the document waits for you ({found}): {choices}"), false))
        }
        Progress::Blocked { agent_id, pane } => {
            let who: String = agent_id.chars().take(8).collect();
            Some((format!("agent {who} is waiting for you: answer the dialog in its pane {pane}"), false))
        }
        Progress::Passed { step, took_ms, verdict } => {
            let verdict = verdict.as_deref().unwrap_or_default();
            let good = verdict != Read::Unseen.as_str();
            Some((format!("{step:<13} {:>10}  {verdict}", took(took_ms)).trim_end().to_owned(), good))
        }
        Progress::Stopped { step, took_ms } => {
            Some((format!("{step:<13} {:>10}  stopped here", took(took_ms)).trim_end().to_owned(), false))
        }
    }
}

/// The summary of a handoff: document, publishing, successor, verdicts, warnings.
#[must_use]
pub fn summary(view: &HandoffView) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |name: &str, what: &str| lines.push(format!("{name:<10} {}", sanitise(what)));
    if let Some(path) = said(view.file_path.as_str()) {
        let growing = view.document.as_ref().map(|document| document.bytes);
        let state = match (view.bytes, growing) {
            (Some(bytes), _) => format!("{path} ({bytes} bytes)"),
            (None, Some(bytes)) => format!("{path} ({bytes} bytes so far, not recorded yet)"),
            (None, None) if matches!(view.step.known(), Some(Step::Waiting | Step::Instructing | Step::Writing)) => {
                format!("{path} (not written yet)")
            }
            (None, None) if matches!(view.step.known(), Some(Step::Failed | Step::Cancelled)) => {
                format!("{path} (not recorded)")
            }
            (None, None) => path.to_owned(),
        };
        say("document", &state);
    }
    if let Some(published) = view.publish.as_ref().and_then(super::publishing::summary) {
        say("published", &published);
    }
    if let Some(successor) = said(view.successor_id.as_deref()) {
        let model = said(view.successor_model.as_deref()).map(|model| format!(", {model}")).unwrap_or_default();
        let runs = said(view.successor_profile.as_deref()).map(|profile| format!(" ({profile}{model})"));
        say("successor", &format!("{successor}{}", runs.unwrap_or_default()));
    }
    let typed = view.verdicts.typed().filter_map(|(name, verdict)| {
        let reason = said(verdict.reason.as_deref()).map(|reason| format!(" ({reason})")).unwrap_or_default();
        Some(format!("{name} {}{reason}", said(verdict.verdict.as_str())?))
    });
    let verdicts: Vec<String> = typed.collect();
    if !verdicts.is_empty() {
        say("verdicts", &verdicts.join(", "));
    }
    if is_unread(view) {
        say("read", "unseen: nobody has seen that the successor has read the document; look into its pane");
    }
    view.warnings.iter().for_each(|warning| say("warning", warning));
    lines
}

/// The error of a handoff that did not end well.
#[must_use]
pub fn failure(view: &HandoffView, outcome: FlowEnd) -> Option<CliError> {
    match outcome {
        FlowEnd::Done => None,
        FlowEnd::Failed => {
            let StepError { code, message, hint, .. } = view.error.clone().unwrap_or_default();
            let error = CliError::told(&code, &message, &hint);
            let id = said(view.handoff_id.as_str()).unwrap_or("HANDOFF");
            Some(match error.hint {
                None => error.hint(format!("Fix the cause, then: tasuki retry {}", sanitise(id))),
                Some(_) => error,
            })
        }
        FlowEnd::Cancelled => {
            let end = if view.is_abandoned() { "had failed, and was abandoned" } else { "was cancelled" };
            Some(CliError::refused("cancelled", format!("The handoff {end}.")))
        }
    }
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
