//! What the core wants done. Every effect is a row of the outbox until it is settled, and every one may be run again
//! after a crash: typing and starting are compare-and-swap lines inside the tmux server, the rest only reads or writes
//! the same thing twice. So no effect needs a second recovery path.

use super::id::{AgentId, DeliveryId, ErrorId, HandoffId, Slug};
use super::pane::{PaneFacts, PaneRef, Process, ServerId, Typed};
use serde::{Deserialize, Serialize};

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
    /// A command of the CLI such as `/exit`.
    Command,
}

/// A text too long for a pane: it lies in a file that the typed text names (SPEC 5.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// The persona in whose `texts/` folder it lies.
    pub persona: Slug,
    /// The file's name there.
    pub file_name: String,
    /// Its content.
    pub body: String,
}

/// A text for a pane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeText {
    /// Whose pane.
    pub agent_id: AgentId,
    /// Which pane, in full.
    pub pane: PaneRef,
    /// The agent's own process, which the pane outlives where it was started from a shell.
    #[serde(default)]
    pub process: Option<Process>,
    /// Its agent's profile.
    pub profile: String,
    /// The mark by which it is typed at most once.
    pub delivery_id: DeliveryId,
    /// Sanitised, with our first and last line where it is a prompt. Empty for [`How::Command`]: the profile's own.
    pub text: String,
    /// How it goes in.
    pub how: How,
    /// Written before the text is typed.
    pub attachment: Option<Attachment>,
    /// Type although a turn is running: the operator asked for it.
    pub allow_busy: bool,
}

/// A new agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartAgent {
    /// Its id, which is also the creation mark.
    pub agent_id: AgentId,
    /// Its persona.
    pub persona: Slug,
    /// Its profile.
    pub profile: String,
    /// Where it works; the home folder of the user if not known.
    pub cwd: Option<String>,
    /// The session for its window.
    pub session: String,
    /// Columns and rows, for a session that must be made.
    pub size: (u16, u16),
    /// Its predecessor.
    pub previous: Option<AgentId>,
    /// The life of the tmux server in which it is to be started. In another life it can't be known whether it was
    /// started before, so it is not started there.
    pub server: Option<ServerId>,
}

/// The place that a successor will get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Session name.
    pub session: String,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Where the outgoing agent works.
    pub cwd: Option<String>,
}

/// What a person is to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The failure that it is about; none for a mere notice.
    pub error_id: Option<ErrorId>,
    /// One line.
    pub text: String,
    /// What a configured command gets on standard input, as one JSON object.
    pub json: serde_json::Value,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Make the persona's handoff folder.
    PrepareFolder {
        /// Whose.
        persona: Slug,
    },
    /// Type a text.
    Type(TypeText),
    /// Read the document once it has stopped changing.
    ReadDocument {
        /// For which handoff.
        handoff_id: HandoffId,
        /// In whose folder.
        persona: Slug,
        /// The file's name there.
        file_name: String,
    },
    /// Say whether the document is still the recorded one.
    CompareDocument {
        /// In whose folder.
        persona: Slug,
        /// The file's name there.
        file_name: String,
        /// The recorded hash, hexadecimal.
        sha256: String,
    },
    /// Read the persona's skill and experience.
    ReadPersona {
        /// Whose.
        persona: Slug,
    },
    /// Wait until the agent's screen has been idle for a while.
    AwaitIdle {
        /// Whose screen.
        agent_id: AgentId,
        /// Its pane.
        pane: PaneRef,
        /// Its profile.
        profile: String,
    },
    /// Wait until a process is dead.
    AwaitDeath {
        /// Which.
        process: Process,
    },
    /// Keep the session alive for the successor.
    HoldPlace {
        /// The outgoing pane.
        pane: PaneRef,
        /// Names the placeholder.
        tag: String,
    },
    /// Remove the placeholder.
    DropPlace {
        /// Names the placeholder.
        tag: String,
    },
    /// Start an agent.
    Start(StartAgent),
    /// Wait until a started agent takes input.
    AwaitReady {
        /// Which.
        agent_id: AgentId,
        /// Its pane.
        pane: PaneRef,
        /// Its profile.
        profile: String,
    },
    /// Find out what runs in a pane.
    Identify {
        /// The number behind `%`.
        pane: u32,
    },
    /// Kill the pane of an agent that tasuki started.
    KillPane {
        /// Whose.
        agent_id: AgentId,
        /// Which.
        pane: PaneRef,
    },
    /// Tell the operator by every configured channel.
    Tell(Notice),
}

/// What reading the document gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentRead {
    /// There is no such file.
    Missing,
    /// It holds nothing but white space.
    Empty,
    /// It doesn't count: a link, no file, too large, not UTF-8, still changing.
    Unsafe {
        /// Which of these, for people.
        why: String,
    },
    /// It has stopped changing, and this is it.
    Whole {
        /// Its text.
        text: String,
        /// SHA-256 of its bytes, hexadecimal.
        sha256: String,
    },
}

/// What became of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Started {
    /// It runs.
    Running {
        /// Its pane.
        pane: PaneRef,
        /// Its process.
        process: Option<Process>,
    },
    /// It was started and its pane is gone again.
    Died,
    /// It was not started.
    Failed {
        /// Why.
        why: String,
    },
    /// No tmux server answers, so it can't be known.
    NoTmux,
}

/// What was seen of an agent that is to become ready or idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// Stable, as the profile asks.
    Ready,
    /// A dialog is open; with the last lines of the screen, sanitised.
    Blocked {
        /// What the screen shows.
        screen: String,
    },
    /// Neither, until the time was up; with the last lines of the screen, sanitised.
    NotReady {
        /// What the screen shows.
        screen: String,
    },
    /// The pane is gone or another; with what its screen showed last.
    Gone {
        /// The last lines that were seen, sanitised; empty if none were.
        screen: String,
    },
}

/// How an effect ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was done.
    Done,
    /// It could not be done.
    Failed {
        /// Why, for people.
        why: String,
    },
    /// Of a text.
    Typed(Typed),
    /// Of reading the document.
    Document(DocumentRead),
    /// Of comparing the document: still the same?
    Compared(bool),
    /// Of reading the persona; none if there is no skill.
    Persona(Option<PersonaTexts>),
    /// Of holding a place; none if the pane is gone.
    Place(Option<Place>),
    /// Of a start.
    Started(Started),
    /// Of waiting for a screen.
    Readiness(Readiness),
    /// Of identifying a pane; none if there is no such pane.
    Pane(Option<PaneFacts>),
}

/// The texts of a persona.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonaTexts {
    /// `skill.md`.
    pub skill: String,
    /// `experience.md`.
    pub experience: Option<String>,
}

/// Effects of one lane are run one after the other; different lanes side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// All that is done to one agent's pane; what only looks at it, or kills it, waits for nothing.
    Agent(AgentId),
    /// All that concerns one placeholder window.
    Place(u128),
    /// Each alone.
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
            | Effect::CompareDocument { .. }
            | Effect::ReadPersona { .. }
            | Effect::AwaitIdle { .. }
            | Effect::AwaitReady { .. }
            | Effect::AwaitDeath { .. }
            | Effect::KillPane { .. }
            | Effect::Identify { .. }
            | Effect::Tell(_) => Lane::Free(key),
        }
    }

    /// Its kind, for logs: never the text.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Effect::PrepareFolder { .. } => "prepare_folder",
            Effect::Type(_) => "type",
            Effect::ReadDocument { .. } => "read_document",
            Effect::CompareDocument { .. } => "compare_document",
            Effect::ReadPersona { .. } => "read_persona",
            Effect::AwaitIdle { .. } => "await_idle",
            Effect::AwaitDeath { .. } => "await_death",
            Effect::HoldPlace { .. } => "hold_place",
            Effect::DropPlace { .. } => "drop_place",
            Effect::Start(_) => "start",
            Effect::AwaitReady { .. } => "await_ready",
            Effect::Identify { .. } => "identify",
            Effect::KillPane { .. } => "kill_pane",
            Effect::Tell(_) => "tell",
        }
    }
}
