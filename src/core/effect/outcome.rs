//! How an effect ended, as the runner reports it.

use super::examine::EnvironmentSearch;
use crate::contract::{DocumentFault, Facts, LimitKind};
use crate::core::hook::ContextUsage;
use crate::core::pane::{PaneFacts, PaneRef, Process, Typed};
use crate::core::persona::PersonaFacts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The result of reading the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentRead {
    Missing,
    /// It holds nothing but white space.
    Empty,
    /// It doesn't count: a link, not a regular file, too large, not UTF-8, or still changing.
    Unsafe {
        why: String,
    },
    /// It no longer changes; this is its content.
    Whole {
        text: String,
        /// SHA-256 of its bytes, hexadecimal.
        sha256: String,
    },
}

/// What has become of the document since it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedDocument {
    Same,
    Changed,
    /// Its file was gone or empty, and holds the recorded text again.
    Restored,
}

/// The result of an examination, see [`super::ExaminePlan`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examination {
    /// The document as it was read for this.
    pub document: DocumentRead,
    pub facts: Box<Facts>,
    pub faults: Vec<DocumentFault>,
    /// The document without its credentials, if it holds some.
    pub redacted: Option<String>,
    /// Whether it holds values of the agent's environment.
    pub environment: EnvironmentSearch,
}

/// The result of writing a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composed {
    /// It was written, or its name was taken before.
    Written,
    /// There is nothing to make it from.
    Nothing,
    Failed {
        why: String,
    },
}

/// The result of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Started {
    Running {
        pane: PaneRef,
        process: Option<Process>,
    },
    /// It was started and its pane has disappeared again.
    Died,
    Failed {
        why: String,
    },
    /// No tmux server answers, so nobody knows.
    NoTmux,
    /// Nobody knows whether it runs.
    Unknown {
        why: String,
    },
}

/// What was seen of an agent that is to become ready or idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// The composer takes input, and the screen has been stable for as long as the profile asks.
    Ready,
    /// A dialog is open; with the last lines of the screen, sanitised.
    Blocked { screen: String },
    /// A turn runs, and no dialog is open; with the last lines of the screen, sanitised. Only a brief watch says so.
    AtWork { screen: String },
    /// None of these, until the time was up; with the last lines of the screen, sanitised.
    NotReady { screen: String },
    /// The pane is gone or another; with what its screen showed last.
    Gone {
        /// The last lines that were seen, sanitised; empty if none were.
        screen: String,
    },
}

/// The result of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed {
        why: String,
    },
    Typed(Typed),
    Document(DocumentRead),
    Composed(Composed),
    Examined(Box<Examination>),
    /// What has become of the document, and what has changed in the repository since. A document that could not be
    /// read, or is gone and could not be written again, is `Failed`.
    Compared {
        document: ComparedDocument,
        drift: Vec<String>,
    },
    /// The persona's texts; none if it has no skill. A persona that could not be read is `Failed`.
    Persona(Option<PersonaTexts>),
    /// Where the successor's window will be; `None` if the pane is gone.
    #[serde(rename = "place")]
    Placeholder(Option<SuccessorWindow>),
    /// No placeholder was made, because it is certain that the successor can't be started: its directory or its program
    /// is missing.
    CannotStart {
        why: String,
    },
    Started(Started),
    /// How a wait for a screen ended.
    Readiness(Readiness),
    /// What is in a pane; none if there is no such pane.
    Pane(Option<PaneFacts>),
    /// How full a context is; none if the transcript does not say.
    #[serde(rename = "gauge")]
    ContextUsage(Option<Measured>),
    /// The limit that stops a CLI; none if none was found.
    Limit(Option<LimitFound>),
    Copied {
        file_name: String,
        /// SHA-256 of the copy, if it is not the document's because credentials were taken out.
        #[serde(default)]
        redacted_sha256: Option<String>,
    },
    /// The document holds credentials, and nobody has said how to publish it: no copy was written.
    SecretsFound(Vec<super::publish::SecretFound>),
    /// The agent's environment can't be read, and the document was not searched for its values before: no copy
    /// was written. Holds the credentials that other rules found.
    EnvironmentLost(Vec<super::publish::SecretFound>),
    Posted(super::publish::Posted),
    #[serde(rename = "round")]
    AutoHandoffCheck(Box<AutoHandoffCheck>),
}

/// How full a context is, by its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    #[serde(rename = "gauge")]
    pub usage: ContextUsage,
    /// The window's size is a guess from the model's name.
    pub guessed: bool,
}

/// A limit, as a CLI shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitFound {
    pub kind: LimitKind,
    /// When it ends, if the CLI says so; wall clock, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// What the CLI says, at most 300 characters, without credentials and control characters.
    pub said: String,
    /// Only the screen shows it.
    #[serde(default)]
    pub on_screen: bool,
}

/// The preconditions of an automatic handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutoHandoffCheck {
    /// How many clients show the agent's window; none if that is unknown.
    pub viewers: Option<u64>,
    /// What the agent's persona folder says.
    pub persona: PersonaFacts,
    /// The profiles among the persona's fallbacks that can certainly not be started, each with the reason.
    #[serde(default)]
    pub unstartable: BTreeMap<String, String>,
}

impl AutoHandoffCheck {
    /// The preconditions as far as they don't depend on other CLIs: each fallback may be startable.
    pub fn new(viewers: Option<u64>, persona: PersonaFacts) -> AutoHandoffCheck {
        AutoHandoffCheck { viewers, persona, unstartable: BTreeMap::new() }
    }
}

/// The texts in a persona's folder that prime an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonaTexts {
    /// `skill.md`.
    pub skill: String,
    /// `experience.md`.
    pub experience: Option<String>,
}

/// The place that a successor will get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuccessorWindow {
    pub session: String,
    /// The session's number in this life of the tmux server: people may change its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_number: Option<u32>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Where the outgoing agent works.
    pub cwd: Option<String>,
}
