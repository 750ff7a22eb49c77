//! What the sidecar writes, as types: only for `tasuki schema`, which dashboard authors read. Every field may be added
//! to; none is ever taken away within `v` 1.

use crate::core::hook::{ContextGauge, HookKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// `spool/results/<request_id>.json`: the one answer to a request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResultFile {
    /// The format's version: 1.
    pub v: u8,
    /// The name of the request's file, less `.json`.
    pub request_id: String,
    /// The request's kind; null where it could not be read.
    pub kind: Option<String>,
    /// The outcome, with HTTP's meaning.
    pub status: u16,
    /// True for every status from 200 to 299.
    pub ok: bool,
    /// What the kind answers; there when `ok` is true.
    pub result: Option<Value>,
    /// Why not; there when `ok` is false.
    pub error: Option<Refused>,
    /// When it was decided: UTC, milliseconds, `Z`.
    pub at: String,
    /// SHA-256 of the request file's bytes, in lower-case hexadecimal.
    pub request_sha256: Option<String>,
}

/// Why something was not done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refused {
    /// A short word for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// `spool/events/<any name>.json`: what an agent reports of itself. Any program may write one.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EventFile {
    /// The format's version: 1.
    pub v: u8,
    /// What happened.
    pub event: HookKind,
    /// The agent, if the reporter knows its id.
    pub agent_id: Option<String>,
    /// The tmux pane, such as `%3`.
    pub pane: Option<String>,
    /// The value of `$TMUX`.
    pub tmux: Option<String>,
    /// The profile that reports.
    pub profile: Option<String>,
    /// When: UTC, milliseconds, `Z`.
    pub at: Option<String>,
    /// The CLI's own hook JSON, as it came.
    pub payload: Option<Map<String, Value>>,
    /// The submitted prompt; wins over `payload`.
    pub text: Option<String>,
    /// The last text of the answer; wins over `payload`.
    pub last_text: Option<String>,
    /// The CLI's own session id; wins over `payload`.
    pub session_id: Option<String>,
    /// Where the CLI keeps its transcript; wins over `payload`.
    pub transcript_path: Option<String>,
    /// The persona of a session that begins; wins over `payload`.
    pub persona_slug: Option<String>,
}

/// `spool/errors/<error_id>.json`: one failure. Deleting the file dismisses it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorFile {
    /// The format's version: 1.
    pub v: u8,
    /// The failure's id.
    pub error_id: String,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// A short word for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The handoff that failed, if it was one.
    pub handoff_id: Option<String>,
    /// The agent that it was about.
    pub agent_id: Option<String>,
    /// The step at which the handoff stopped.
    pub step: Option<String>,
}

/// `spool/rejected/<seq>-<name>.why.json`: why a file could not be taken.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WhyFile {
    /// The format's version: 1.
    pub v: u8,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// A short word for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// The field that is wrong, if it is one.
    pub field: Option<String>,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The column, counted from 1.
    pub column: Option<u64>,
    /// The file's name as it was dropped, made safe to print.
    pub name: String,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// SHA-256 of its bytes, where it could be read.
    pub sha256: Option<String>,
}

/// One line of `spool/journal.jsonl`. A last line without its newline is to be ignored.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JournalLine {
    /// Rises by 1 from line to line, without gaps.
    pub seq: u64,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// `handoff.step`, `handoff.failed`, `agent.state`, `delivery`, `ack`, `reminder`, `escalation`, `publish`, `work` or
    /// `error`.
    pub r#type: String,
    /// The handoff that it is about.
    pub handoff_id: Option<String>,
    /// The agent that it is about.
    pub agent_id: Option<String>,
    /// What belongs to the type.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// `view/sidecar.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SidecarView {
    /// The sidecar's process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    /// When it started: UTC, milliseconds, `Z`.
    pub started_at: String,
    /// Its last sign of life, renewed every 5 s; older than 15 s means that nobody answers.
    pub heartbeat: String,
    /// The tmux server that it works in.
    pub tmux: Option<Value>,
}

/// `view/agents/<agent_id>.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentView {
    /// The agent's id: a random UUID.
    pub agent_id: String,
    /// Its persona; null for an anonymous agent, which is seen, and left alone.
    pub persona_slug: Option<String>,
    /// The profile that drives it.
    pub profile: Option<String>,
    /// Its tmux pane, such as `%3`.
    pub pane: Option<String>,
    /// The folder that it works in.
    pub cwd: Option<String>,
    /// The CLI's own session id, which changes on `/clear`.
    pub session_id: Option<String>,
    /// `starting`, `idle`, `busy`, `blocked`, `ended` or `lost`.
    pub state: String,
    /// The agent whose work it goes on with.
    pub previous_agent_id: Option<String>,
    /// The agent that goes on with its work.
    pub successor_id: Option<String>,
    /// The handoff that it is in.
    pub handoff_id: Option<String>,
    /// When it registered: UTC, milliseconds, `Z`.
    pub registered_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// How full its context is, where its CLI tells.
    pub context: Option<ContextGauge>,
}

/// `view/handoffs/<handoff_id>.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HandoffView {
    /// The handoff's id.
    pub handoff_id: String,
    /// The outgoing agent.
    pub agent_id: String,
    /// Its persona, and the successor's.
    pub persona_slug: Option<String>,
    /// Why it was asked for.
    pub reason: String,
    /// What the document should dwell on.
    pub focus: Option<String>,
    /// The document's absolute path.
    pub file_path: Option<String>,
    /// The document's size in bytes, once it is recorded.
    pub bytes: Option<u64>,
    /// SHA-256 of the document, once it is recorded.
    pub sha256: Option<String>,
    /// What the successor is briefed with, once the document is recorded.
    pub injection_prompt: Option<String>,
    /// When it was asked for: UTC, milliseconds, `Z`.
    pub created_at: Option<String>,
    /// The successor.
    pub successor_id: Option<String>,
    /// What a person should know, though nothing failed.
    pub warnings: Vec<Value>,
    /// `waiting`, `instructing`, `writing`, `recording`, `ending`, `starting`, `priming`, `briefing`, `acknowledging`,
    /// `done`, `failed` or `cancelled`.
    pub step: String,
    /// Every step so far; a retry adds to the list.
    pub steps: Vec<StepView>,
    /// When the step fails if nothing happens.
    pub deadline: Option<String>,
    /// What became of the three texts.
    pub verdicts: Verdicts,
    /// Where and why it failed; null when it has not.
    pub error: Option<StepError>,
    /// The acknowledgement, where one was asked for.
    pub ack: Option<Value>,
    /// The publishing, where it was asked for.
    pub publish: Option<Value>,
    /// The delivery checklist, each point with its time.
    pub checklist: Option<Value>,
}

/// One step of a handoff.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepView {
    /// Its name.
    pub step: String,
    /// When it began: UTC, milliseconds, `Z`.
    pub entered_at: String,
    /// When it was over; null while it runs.
    pub left_at: Option<String>,
}

/// What became of the three texts of a handoff; null where none was typed yet.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Verdicts {
    /// The text that asks for the document.
    pub instruction: Option<DeliveryView>,
    /// The persona's skill.
    pub priming: Option<DeliveryView>,
    /// The record's injection prompt.
    pub briefing: Option<DeliveryView>,
}

/// What became of one typed text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveryView {
    /// The id in the text's last line.
    pub delivery_id: String,
    /// `delivered`, `unconfirmed` or `not_delivered`.
    pub verdict: String,
    /// Why, where it is not plainly delivered.
    pub reason: Option<String>,
    /// When that was known: UTC, milliseconds, `Z`.
    pub at: String,
}

/// Where and why a handoff failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepError {
    /// The name of its file in `spool/errors/`.
    pub error_id: String,
    /// The step at which it stopped.
    pub step: String,
    /// A short word for programs.
    pub code: String,
    /// One sentence for people.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}
