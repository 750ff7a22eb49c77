//! How an effect ends: what the runner tells of it.

use crate::core::hook::ContextGauge;
use crate::core::pane::{PaneFacts, PaneRef, Process, Typed};
use crate::core::persona::PersonaFacts;
use serde::{Deserialize, Serialize};

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
        text: String,
        /// SHA-256 of its bytes, hexadecimal.
        sha256: String,
    },
}

/// What became of a document that tasuki writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Composed {
    /// It lies in its place, or something did before.
    Written,
    /// There is nothing of which it could be made.
    Nothing,
    /// It could not be made.
    Failed { why: String },
}

/// What became of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Started {
    Running {
        pane: PaneRef,
        process: Option<Process>,
    },
    /// It was started and its pane is gone again.
    Died,
    Failed {
        why: String,
    },
    /// No tmux server answers, so it can't be known.
    NoTmux,
    /// It can't be known whether it runs.
    Unknown {
        why: String,
    },
}

/// What was seen of an agent that is to become ready or idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Readiness {
    /// Stable, as the profile asks.
    Ready,
    /// A dialog is open; with the last lines of the screen, sanitised.
    Blocked { screen: String },
    /// Neither, until the time was up; with the last lines of the screen, sanitised.
    NotReady { screen: String },
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
    Done,
    /// It could not be done.
    Failed {
        why: String,
    },
    Typed(Typed),
    Document(DocumentRead),
    Composed(Composed),
    /// Of comparing the document: still the same? What could not be read is `Failed`.
    Compared(bool),
    /// Of reading the persona; none if there is no skill. What could not be read is `Failed`.
    Persona(Option<PersonaTexts>),
    /// Of holding a place; none if the pane is gone.
    Place(Option<Place>),
    Started(Started),
    /// Of waiting for a screen.
    Readiness(Readiness),
    /// Of identifying a pane; none if there is no such pane.
    Pane(Option<PaneFacts>),
    /// Of reading a gauge; none where the transcript tells nothing.
    Gauge(Option<Measured>),
    Copied {
        file_name: String,
    },
    Posted(super::publish::Posted),
    Round(Box<Round>),
}

/// How full a context is, as its transcript tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    pub gauge: ContextGauge,
    /// The window's size is a guess by the model's name.
    pub guessed: bool,
}

/// What decides whether a handoff may begin by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// How many clients look at the agent's window; none where that can't be known.
    pub viewers: Option<u64>,
    /// What the disk says of its persona.
    pub persona: PersonaFacts,
}

/// The texts of a persona.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonaTexts {
    /// `skill.md`.
    pub skill: String,
    /// `experience.md`.
    pub experience: Option<String>,
}

/// The place that a successor will get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub session: String,
    /// Columns and rows.
    pub size: (u16, u16),
    /// Where the outgoing agent works.
    pub cwd: Option<String>,
}
