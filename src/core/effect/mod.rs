//! What the core wants done. Every effect is a row of the outbox until it is settled, and every effect may run again
//! after a crash: typing and starting are compare-and-swap lines inside the tmux server, an upload is searched for by
//! its mark first, and the others only read, or do something that is harmless to repeat. So recovery needs no code of
//! its own.

mod examine;
mod outcome;
mod publish;

use super::id::{AgentId, DeliveryId, ErrorId, HandoffId, Slug};
use super::pane::{PaneRef, Process, ServerId};
use serde::{Deserialize, Serialize};

pub use examine::{Drift, EnvironmentSearch, ExaminePlan};
pub use outcome::{
    AutoHandoffCheck, ComparedDocument, Composed, DocumentRead, Examination, LimitFound, Measured, Outcome,
    PersonaTexts, Readiness, Started, SuccessorWindow,
};
pub use publish::{CopyPlan, Posted, PublishFault, PublishPlan, SecretFound};

/// The key of an effect in the outbox. It rises by one and is never used again, so a late outcome of an earlier effect
/// is not taken for the outcome of a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectKey(pub u64);

/// What kind of text is typed, which decides how it is put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// A prompt, as the profile's input rules say.
    Prompt,
    /// The profile's command that ends the CLI, such as `/exit`.
    Command,
    /// The profile's command that begins a new session in the same process, such as `/clear`.
    NewSession,
}

/// A text too long for a pane: it is written to a file that the typed text names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    pub persona: Slug,
    pub file_name: String,
    pub body: String,
}

/// A text that is to be typed into an agent's pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeText {
    pub agent_id: AgentId,
    pub pane: PaneRef,
    /// The agent's own process. If it was started from a shell, its pane outlives it.
    #[serde(default)]
    pub process: Option<Process>,
    pub profile: String,
    /// The delivery id, which is also the mark that keeps the text from being typed twice.
    pub delivery_id: DeliveryId,
    /// Sanitised; for a prompt with tasuki's first and last line. Empty for a command, whose text the profile has.
    pub text: String,
    pub how: How,
    /// Written before the text is typed.
    pub attachment: Option<Attachment>,
    /// Type although a turn is running: the operator asked for it.
    pub allow_busy: bool,
}

/// What tasuki makes a document from if the agent does not write it itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentSource {
    /// The agent's answer to our instruction.
    Reply {
        profile: String,
        transcript: Option<String>,
        delivery_id: Option<DeliveryId>,
        /// The last text of the answer, as the event at the end of the turn reported it.
        last_text: Option<String>,
    },
    Transcript {
        profile: String,
        transcript: String,
        head: String,
    },
    Text(String),
    /// The document as it was before the agent was asked to repair it. It is written only if the file is empty or
    /// missing.
    Before(String),
}

/// The start of a new agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAgent {
    /// Its id, which is also the creation mark.
    pub agent_id: AgentId,
    pub persona: Slug,
    pub profile: String,
    /// Where it works; the home folder of the user if not known.
    pub cwd: Option<String>,
    pub session: String,
    /// The session's number in the server's life `server`. It counts before the name, which people may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_number: Option<u32>,
    /// The pane whose session it goes into, whatever that session is named by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<PaneRef>,
    /// Columns and rows, for a session that must be made.
    pub size: (u16, u16),
    pub previous: Option<AgentId>,
    /// The model that it is told to use; none: its CLI chooses.
    #[serde(default)]
    pub model: Option<String>,
    /// The life of the tmux server in which the agent is started. In another life nobody knows whether it was started
    /// before, so it is not started there.
    pub server: Option<ServerId>,
    /// The session of the CLI that is opened again, instead of a new one.
    #[serde(default)]
    pub reopens: Option<String>,
}

/// What a person is notified of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The failure that it reports, if it reports one.
    pub error_id: Option<ErrorId>,
    pub text: String,
    /// What a configured command gets on standard input, as one JSON object.
    pub json: serde_json::Value,
}

/// A message of a handoff for the operator or for a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyPlan {
    pub handoff_id: HandoffId,
    pub number: u32,
    /// Program and arguments, no shell; none for the operator's own channels.
    pub command: Option<Vec<String>>,
    pub notice: Notice,
}

/// What the core can ask the runner to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    PrepareFolder {
        persona: Slug,
    },
    Type(TypeText),
    /// Read the document once it has stopped changing.
    ReadDocument {
        handoff_id: HandoffId,
        persona: Slug,
        file_name: String,
    },
    /// Write the document, unless its name is taken already.
    ComposeDocument {
        persona: Slug,
        file_name: String,
        source: DocumentSource,
        /// SHA-256 of the file that the new document replaces: the agent has answered once more.
        #[serde(default)]
        replaces: Option<String>,
    },
    /// Look at the agent's work and check the document against it.
    Examine(Box<ExaminePlan>),
    /// Say whether the document is still the recorded one. If its file is gone, write the recorded text again.
    CompareDocument {
        persona: Slug,
        file_name: String,
        /// The recorded hash, hexadecimal.
        sha256: String,
        /// The recorded text. The store has it already, so it is added only when the effect is handed to the runner.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// Also say what has changed in the repository since.
        #[serde(default)]
        drift: Option<Box<Drift>>,
    },
    ReadPersona {
        persona: Slug,
    },
    /// Wait until the agent's screen has been idle for a while.
    AwaitIdle {
        agent_id: AgentId,
        pane: PaneRef,
        profile: String,
        /// A brief watch: wait for a few seconds, not for a day. It also ends when it has seen a running turn.
        #[serde(default)]
        brief: bool,
    },
    /// Look whether a turn still runs in a pane, although an event has reported its end.
    LookAtTurn {
        pane: PaneRef,
        profile: String,
    },
    AwaitDeath {
        process: Process,
    },
    /// Keep the session alive for the successor, if the successor can be started at all.
    #[serde(rename = "hold_place")]
    HoldPlaceholder {
        pane: PaneRef,
        tag: String,
        /// The successor's profile. An effect of an earlier version names none, and nothing is checked.
        #[serde(default)]
        profile: String,
        /// The directory in which it is to work; if there is none, that of the pane.
        #[serde(default)]
        cwd: Option<String>,
    },
    #[serde(rename = "drop_place")]
    DropPlaceholder {
        tag: String,
    },
    Start(StartAgent),
    /// Wait until a started agent takes input.
    AwaitReady {
        agent_id: AgentId,
        pane: PaneRef,
        profile: String,
    },
    /// Find out what runs in a pane.
    Identify {
        /// The number behind `%`.
        pane: u32,
        /// The process id of the tmux server that has this pane; `None`: the server that tasuki watches.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        server_pid: Option<u32>,
    },
    /// Read from its transcript how full an agent's context is.
    #[serde(rename = "read_gauge")]
    ReadContextUsage {
        agent_id: AgentId,
        profile: String,
        path: String,
    },
    /// Look whether a limit stops an agent's CLI.
    ReadLimit {
        agent_id: AgentId,
        profile: String,
        /// What the CLI's own event said.
        said: Option<String>,
        /// The path of its transcript.
        path: Option<String>,
        pane: Option<PaneRef>,
        /// A dialog is open in the pane.
        #[serde(default)]
        is_blocked: bool,
    },
    /// Wait until a prompt is in its agent's transcript.
    AwaitPrompt {
        agent_id: AgentId,
        profile: String,
        path: String,
        delivery_id: DeliveryId,
    },
    /// Wait until an agent has read the document by a tool of its own.
    AwaitRead {
        agent_id: AgentId,
        profile: String,
        /// The path of its transcript.
        path: String,
        /// The document's absolute path.
        document: String,
    },
    /// Check the preconditions of an automatic handoff.
    #[serde(rename = "look_round")]
    CheckAutoHandoff {
        agent_id: AgentId,
        pane: PaneRef,
        persona: Slug,
    },
    /// Kill the pane of an agent that tasuki started, and its process where that lives on without a pane.
    KillPane {
        agent_id: AgentId,
        pane: PaneRef,
        /// Its own process, where it is known.
        #[serde(default)]
        process: Option<Process>,
    },
    /// Keep a copy of the recorded document, unless it is there already.
    KeepCopy(CopyPlan),
    /// Publish the copy, unless it is there already.
    Publish(PublishPlan),
    /// Tell the operator by every configured channel.
    #[serde(rename = "tell")]
    NotifyOperator(Notice),
    /// Notify a handoff's orchestrator or escalation target, and say whether that worked.
    Notify(NotifyPlan),
}

/// Effects of one lane run one after the other; different lanes run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectLane {
    /// Everything that changes one agent's pane. An effect that only looks at the pane, or kills it, waits for nothing.
    Agent(AgentId),
    /// All that concerns one placeholder window.
    Placeholder(u128),
    Free(EffectKey),
}

impl Effect {
    /// The lane that it runs in: the effects of one lane run one after the other.
    #[must_use]
    pub fn lane(&self, key: EffectKey) -> EffectLane {
        match self {
            Effect::Type(TypeText { agent_id, .. }) | Effect::Start(StartAgent { agent_id, .. }) => {
                EffectLane::Agent(*agent_id)
            }
            Effect::HoldPlaceholder { tag, .. } | Effect::DropPlaceholder { tag } => {
                u128::from_str_radix(tag, 16).map_or(EffectLane::Free(key), EffectLane::Placeholder)
            }
            Effect::PrepareFolder { .. }
            | Effect::ReadDocument { .. }
            | Effect::ComposeDocument { .. }
            | Effect::Examine(_)
            | Effect::CompareDocument { .. }
            | Effect::ReadPersona { .. }
            | Effect::AwaitIdle { .. }
            | Effect::LookAtTurn { .. }
            | Effect::AwaitReady { .. }
            | Effect::AwaitDeath { .. }
            | Effect::KillPane { .. }
            | Effect::Identify { .. }
            | Effect::ReadContextUsage { .. }
            | Effect::ReadLimit { .. }
            | Effect::AwaitPrompt { .. }
            | Effect::AwaitRead { .. }
            | Effect::CheckAutoHandoff { .. }
            | Effect::KeepCopy(_)
            | Effect::Publish(_)
            | Effect::NotifyOperator(_)
            | Effect::Notify(_) => EffectLane::Free(key),
        }
    }

    /// Its kind, for logs: never the text.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Effect::PrepareFolder { .. } => "prepare_folder",
            Effect::Type(_) => "type",
            Effect::ReadDocument { .. } => "read_document",
            Effect::ComposeDocument { .. } => "compose_document",
            Effect::Examine(_) => "examine",
            Effect::CompareDocument { .. } => "compare_document",
            Effect::ReadPersona { .. } => "read_persona",
            Effect::AwaitIdle { .. } => "await_idle",
            Effect::LookAtTurn { .. } => "look_at_turn",
            Effect::AwaitDeath { .. } => "await_death",
            Effect::HoldPlaceholder { .. } => "hold_place",
            Effect::DropPlaceholder { .. } => "drop_place",
            Effect::Start(_) => "start",
            Effect::AwaitReady { .. } => "await_ready",
            Effect::Identify { .. } => "identify",
            Effect::ReadContextUsage { .. } => "read_gauge",
            Effect::ReadLimit { .. } => "read_limit",
            Effect::AwaitPrompt { .. } => "await_prompt",
            Effect::AwaitRead { .. } => "await_read",
            Effect::CheckAutoHandoff { .. } => "look_round",
            Effect::KillPane { .. } => "kill_pane",
            Effect::KeepCopy(_) => "keep_copy",
            Effect::Publish(_) => "publish",
            Effect::NotifyOperator(_) => "tell",
            Effect::Notify(_) => "notify",
        }
    }
}
