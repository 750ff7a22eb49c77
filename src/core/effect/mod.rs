//! What the core wants done. Every effect is a row of the outbox until it is settled, and every one may be run again
//! after a crash: typing and starting are compare-and-swap lines inside the tmux server, what is published is looked for by
//! its mark first, the rest only reads or writes the same thing twice. So no effect needs a second recovery path.

mod outcome;
mod publish;

use super::id::{AgentId, DeliveryId, ErrorId, HandoffId, Slug};
use super::pane::{PaneRef, Process, ServerId};
use serde::{Deserialize, Serialize};

pub use outcome::{Composed, DocumentRead, Measured, Outcome, PersonaTexts, Place, Readiness, Round, Started};
pub use publish::{CopyPlan, Posted, PublishFault, PublishPlan};

/// The outbox key: rises by one, is never used again, and fences late answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectKey(pub u64);

/// How a text goes in.
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

/// A text too long for a pane: it lies in a file that the typed text names (SPEC 5.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The persona in whose `texts/` folder it lies.
    pub persona: Slug,
    pub file_name: String,
    pub body: String,
}

/// A text for a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeText {
    pub agent_id: AgentId,
    pub pane: PaneRef,
    /// The agent's own process, which the pane outlives where it was started from a shell.
    #[serde(default)]
    pub process: Option<Process>,
    pub profile: String,
    /// The mark by which it is typed at most once.
    pub delivery_id: DeliveryId,
    /// Sanitised, with our first and last line where it is a prompt. Empty for [`How::Command`]: the profile's own.
    pub text: String,
    pub how: How,
    /// Written before the text is typed.
    pub attachment: Option<Attachment>,
    /// Type although a turn is running: the operator asked for it.
    pub allow_busy: bool,
}

/// From what tasuki makes a document that the agent does not write itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From the agent's answer to our instruction.
    Reply {
        profile: String,
        /// Its transcript, where that is known.
        transcript: Option<String>,
        delivery_id: Option<DeliveryId>,
        /// The last text of the answer, as the end of the turn told it.
        last_text: Option<String>,
    },
    /// From the tail of its transcript.
    Transcript {
        profile: String,
        transcript: String,
        /// What is put before it.
        head: String,
    },
    Text(String),
}

/// A new agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAgent {
    /// Its id, which is also the creation mark.
    pub agent_id: AgentId,
    pub persona: Slug,
    pub profile: String,
    /// Where it works; the home folder of the user if not known.
    pub cwd: Option<String>,
    /// The session for its window.
    pub session: String,
    /// Columns and rows, for a session that must be made.
    pub size: (u16, u16),
    pub previous: Option<AgentId>,
    /// The life of the tmux server in which it is to be started. In another life it can't be known whether it was
    /// started before, so it is not started there.
    pub server: Option<ServerId>,
}

/// What a person is to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The failure that it is about; none for a mere notice.
    pub error_id: Option<ErrorId>,
    pub text: String,
    /// What a configured command gets on standard input, as one JSON object.
    pub json: serde_json::Value,
}

/// A message of a handoff that is told to the operator, or given to a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyPlan {
    pub handoff_id: HandoffId,
    pub number: u32,
    /// Program and arguments, no shell; none for the operator's own channels.
    pub command: Option<Vec<String>>,
    pub notice: Notice,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Make the persona's handoff folder.
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
    /// Write the document, unless something lies in its place already.
    ComposeDocument {
        persona: Slug,
        file_name: String,
        source: Source,
    },
    /// Say whether the document is still the recorded one.
    CompareDocument {
        persona: Slug,
        file_name: String,
        /// The recorded hash, hexadecimal.
        sha256: String,
    },
    /// Read the persona's skill and experience.
    ReadPersona {
        persona: Slug,
    },
    /// Wait until the agent's screen has been idle for a while.
    AwaitIdle {
        agent_id: AgentId,
        pane: PaneRef,
        profile: String,
        /// Only look whether it is idle now.
        #[serde(default)]
        brief: bool,
    },
    /// Wait until a process is dead.
    AwaitDeath {
        process: Process,
    },
    /// Keep the session alive for the successor.
    HoldPlace {
        pane: PaneRef,
        tag: String,
    },
    DropPlace {
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
    },
    /// Read from its transcript how full an agent's context is.
    ReadGauge {
        agent_id: AgentId,
        profile: String,
        path: String,
    },
    /// Wait until a prompt stands in its agent's transcript.
    AwaitPrompt {
        agent_id: AgentId,
        profile: String,
        path: String,
        delivery_id: DeliveryId,
    },
    /// Look at what decides whether a handoff may begin by itself.
    LookRound {
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
    Tell(Notice),
    /// Tell a handoff's orchestrator or escalation target, and say whether that worked.
    Notify(NotifyPlan),
}

/// Effects of one lane are run one after the other; different lanes side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// All that is done to one agent's pane; what only looks at it, or kills it, waits for nothing.
    Agent(AgentId),
    /// All that concerns one placeholder window.
    Place(u128),
    Free(EffectKey),
}

impl Effect {
    /// The lane that it runs in.
    #[must_use]
    pub fn lane(&self, key: EffectKey) -> Lane {
        match self {
            Effect::Type(TypeText { agent_id, .. }) | Effect::Start(StartAgent { agent_id, .. }) => {
                Lane::Agent(*agent_id)
            }
            Effect::HoldPlace { tag, .. } | Effect::DropPlace { tag } => {
                u128::from_str_radix(tag, 16).map_or(Lane::Free(key), Lane::Place)
            }
            Effect::PrepareFolder { .. }
            | Effect::ReadDocument { .. }
            | Effect::ComposeDocument { .. }
            | Effect::CompareDocument { .. }
            | Effect::ReadPersona { .. }
            | Effect::AwaitIdle { .. }
            | Effect::AwaitReady { .. }
            | Effect::AwaitDeath { .. }
            | Effect::KillPane { .. }
            | Effect::Identify { .. }
            | Effect::ReadGauge { .. }
            | Effect::AwaitPrompt { .. }
            | Effect::LookRound { .. }
            | Effect::KeepCopy(_)
            | Effect::Publish(_)
            | Effect::Tell(_)
            | Effect::Notify(_) => Lane::Free(key),
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
            Effect::CompareDocument { .. } => "compare_document",
            Effect::ReadPersona { .. } => "read_persona",
            Effect::AwaitIdle { .. } => "await_idle",
            Effect::AwaitDeath { .. } => "await_death",
            Effect::HoldPlace { .. } => "hold_place",
            Effect::DropPlace { .. } => "drop_place",
            Effect::Start(_) => "start",
            Effect::AwaitReady { .. } => "await_ready",
            Effect::Identify { .. } => "identify",
            Effect::ReadGauge { .. } => "read_gauge",
            Effect::AwaitPrompt { .. } => "await_prompt",
            Effect::LookRound { .. } => "look_round",
            Effect::KillPane { .. } => "kill_pane",
            Effect::KeepCopy(_) => "keep_copy",
            Effect::Publish(_) => "publish",
            Effect::Tell(_) => "tell",
            Effect::Notify(_) => "notify",
        }
    }
}
