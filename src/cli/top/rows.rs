//! One row each: an agent, a handoff, a failure, a work item. Pure: a view or an error file goes in as JSON, a bounded plain row
//! comes out, or none.

use super::plain::plain;
use crate::cli::follow::Outcome;
use crate::cli::view::{self, said, shown};
use crate::cli::work::read::Brief;
use crate::contract::{AgentView, ErrorFile};
use serde_json::Value;

/// What is known of the sidecar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heart {
    /// Its process id; `None` where none has ever run.
    pub pid: Option<u32>,
    /// Its heart beats.
    pub beats: bool,
    /// When the last beat was written, in milliseconds since 1970.
    pub beat_ms: Option<i64>,
    /// The process id of its tmux server.
    pub tmux: Option<u64>,
    /// What it can't do, or why it is not there, and what to do.
    pub problem: Option<String>,
}

/// One agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Its persona.
    pub persona: Option<String>,
    /// Its pane.
    pub pane: Option<String>,
    /// What it does.
    pub state: String,
    /// Tokens used, and percent of the window where that is known.
    pub context: Option<(u64, Option<u64>)>,
    /// It is so full that a handoff is suggested.
    pub suggested: bool,
    /// The handoff that it is in.
    pub handoff: Option<String>,
    /// The agent whose work it goes on with.
    pub previous: Option<String>,
    /// When it registered; compared, not shown.
    pub registered: String,
    /// The folder that it works in.
    pub cwd: String,
    /// Texts that wait for it.
    pub waiting: u64,
    /// It has not ended.
    pub living: bool,
}

/// One handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handoff {
    /// Its id.
    pub id: String,
    /// The outgoing agent.
    pub agent: String,
    /// The successor.
    pub successor: Option<String>,
    /// The persona.
    pub persona: String,
    /// Why it was asked for.
    pub reason: String,
    /// Where it stands.
    pub step: String,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// When it was asked for; compared, not shown.
    pub created: String,
    /// When this step began, in milliseconds since 1970.
    pub entered_ms: Option<i64>,
    /// When this step fails.
    pub deadline_ms: Option<i64>,
    /// Names of the steps that are passed.
    pub passed: Vec<String>,
    /// What became of each text, such as `instruction delivered`.
    pub verdicts: Vec<String>,
    /// Bytes of the document so far.
    pub bytes: Option<u64>,
    /// A dialog holds it up.
    pub blocked: bool,
    /// What its successor asks.
    pub questions: Vec<String>,
    /// Code, step and message of its failure.
    pub error: Option<Fault>,
}

/// Why a handoff failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of its file in `spool/errors/`.
    pub id: String,
    /// A short word.
    pub code: String,
    /// At which step.
    pub step: String,
}

/// One file of `spool/errors/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its id.
    pub id: String,
    /// When; compared, not shown.
    pub at: String,
    /// The same in milliseconds since 1970.
    pub at_ms: Option<i64>,
    /// A short word.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// The handoff that failed.
    pub handoff: Option<String>,
    /// The agent that it was about.
    pub agent: Option<String>,
}

/// One work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Its id.
    pub id: String,
    /// Its type.
    pub kind: String,
    /// Where it stands.
    pub status: String,
    /// How much it matters.
    pub priority: String,
    /// Who has it: an agent, or `human`.
    pub owner: Option<String>,
    /// In one line.
    pub title: String,
    pub(super) place: (u8, String, String),
}

fn words(view: &Value, key: &str) -> Option<String> {
    view::text(view, key).map(plain)
}

fn word(view: &Value, key: &str) -> String {
    words(view, key).unwrap_or_else(|| "-".to_owned())
}

/// An id, which is also the name of a file.
fn name<'a>(id: impl Into<Option<&'a str>>) -> Option<String> {
    said(id).map(plain).filter(|id| !id.starts_with('.') && !id.contains('/'))
}

/// The same of a field.
fn id(view: &Value, key: &str) -> Option<String> {
    name(view::text(view, key))
}

/// What its successor has asked and nobody has answered.
fn questions(seen: &Value) -> Vec<String> {
    let asked =
        seen.get("ack").filter(|_| crate::cli::handoffs::asks(seen)).and_then(|ack| ack["questions"].as_array());
    asked.into_iter().flatten().take(20).filter_map(Value::as_str).map(plain).collect()
}

fn ms(view: &Value, key: &str) -> Option<i64> {
    let at = chrono::DateTime::parse_from_rfc3339(view::text(view, key)?).ok()?;
    Some(at.timestamp_millis())
}

impl Agent {
    /// Reads a view.
    #[must_use]
    pub fn read(seen: &AgentView) -> Option<Self> {
        let text = |text: Option<&str>| said(text).map(plain);
        let registered = text(seen.registered_at.as_deref()).unwrap_or_else(|| plain(&seen.created_at));
        Some(Agent {
            id: name(seen.agent_id.as_str())?,
            persona: text(seen.persona_slug.as_deref()),
            pane: text(seen.pane.as_deref()),
            state: plain(&shown(seen.state.word())),
            context: seen.context.as_ref().map(|context| (context.used, context.percent)),
            suggested: seen.handoff_suggested,
            handoff: name(seen.handoff_id.as_deref()),
            previous: name(seen.previous_agent_id.as_deref()),
            registered,
            cwd: text(seen.cwd.as_deref()).unwrap_or_default(),
            waiting: seen.waiting_texts,
            living: seen.is_living(),
        })
    }
}

impl Handoff {
    /// Reads a view.
    #[must_use]
    pub fn read(seen: &Value) -> Option<Self> {
        let step = word(seen, "step");
        let steps = seen.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let last = steps.last();
        let verdict = |name: &str| {
            let verdict = words(seen.get("verdicts")?.get(name)?, "verdict")?;
            Some(format!("{name} {verdict}"))
        };
        let bytes = |value: Option<&Value>| value.and_then(|value| value.get("bytes")).and_then(Value::as_u64);
        let error = seen.get("error").filter(|error| error.is_object());
        Some(Handoff {
            id: id(seen, "handoff_id")?,
            agent: id(seen, "agent_id")?,
            successor: id(seen, "successor_id"),
            persona: word(seen, "persona_slug"),
            reason: word(seen, "reason"),
            outcome: Outcome::of(Some(&step)),
            step,
            created: words(seen, "created_at").unwrap_or_default(),
            entered_ms: last.and_then(|step| ms(step, "entered_at")),
            deadline_ms: ms(seen, "deadline"),
            passed: steps.iter().rev().skip(1).take(20).map(|step| word(step, "step")).collect(),
            verdicts: ["instruction", "priming", "briefing"].into_iter().filter_map(verdict).collect(),
            bytes: bytes(Some(seen)).or_else(|| bytes(seen.get("document"))),
            blocked: view::text(seen, "successor_blocked_at").is_some(),
            questions: questions(seen),
            error: error.map(|error| Fault {
                id: id(error, "error_id").unwrap_or_default(),
                code: word(error, "code"),
                step: word(error, "step"),
            }),
        })
    }

    /// Whether it goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.outcome.is_none()
    }

    /// Whether only a person can know what became of its last text, so that a retry must say it.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        let error = self.error.as_ref().map(|error| (error.code.as_str(), error.step.as_str()));
        matches!(error, Some(("unconfirmed", _) | ("priming_failed", "priming")))
    }

    /// Its place in a list: what runs, what failed, what is over.
    pub(super) fn rank(&self) -> u8 {
        match self.outcome {
            None => 0,
            Some(Outcome::Failed) => 1,
            Some(Outcome::Done | Outcome::Cancelled) => 2,
        }
    }
}

impl Failure {
    /// Reads an error file.
    #[must_use]
    pub fn read(seen: &ErrorFile) -> Option<Self> {
        Some(Failure {
            id: name(seen.error_id.as_str())?,
            at: plain(&seen.at),
            at_ms: chrono::DateTime::parse_from_rfc3339(&seen.at).ok().map(|at| at.timestamp_millis()),
            code: plain(&shown(seen.code.as_str())),
            message: plain(&shown(seen.message.as_str())),
            hint: plain(&seen.hint),
            handoff: name(seen.handoff_id.as_deref()),
            agent: name(seen.agent_id.as_deref()),
        })
    }
}

impl Work {
    /// Reads a view; of an item that is done there is nothing to show.
    #[must_use]
    pub fn read(seen: &Value) -> Option<Self> {
        let brief: Brief = serde_json::from_value(seen.clone()).ok()?;
        let shown = Work {
            id: plain(&brief.item_id),
            kind: plain(&brief.kind),
            status: plain(&brief.status),
            priority: plain(&brief.priority),
            owner: brief.claimed_by.as_deref().map(plain),
            title: plain(&brief.title),
            place: brief.place(),
        };
        brief.is_open().then_some(shown)
    }
}
