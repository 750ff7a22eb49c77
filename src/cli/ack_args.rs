//! The arguments of the commands that are about acknowledgements.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `ack`.
#[derive(Debug, Args)]
pub struct AckArgs {
    /// The whole acknowledgement as JSON instead of flags: a file, or `-` for standard input.
    #[arg(value_name = "FILE", conflicts_with_all = ["understanding", "starting_from", "questions", "status"])]
    pub file: Option<PathBuf>,
    /// Handoff id or its beginning [else the handoff that the agent in this pane was briefed with].
    #[arg(long, value_name = "ID")]
    pub handoff: Option<String>,
    /// The task in one line, in your own words.
    #[arg(long, value_name = "TEXT", required_unless_present = "file")]
    pub understanding: Option<String>,
    /// Where you go on: the checkpoint that the document names.
    #[arg(long, value_name = "TEXT", required_unless_present = "file")]
    pub starting_from: Option<String>,
    /// A question that must be answered first; may be given several times.
    #[arg(long = "question", value_name = "TEXT")]
    pub questions: Vec<String>,
    /// What you will do [else ready-to-proceed, with questions needs-clarification].
    #[arg(long, value_enum)]
    pub status: Option<AckStatus>,
}

/// What a successor says of its handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AckStatus {
    /// Understood; you begin.
    #[value(alias = "ready_to_proceed")]
    ReadyToProceed,
    /// You have questions and wait for the answers.
    #[value(alias = "needs_clarification")]
    NeedsClarification,
    /// You can't set up what you need.
    #[value(alias = "environment_issue")]
    EnvironmentIssue,
    /// You can't take the task.
    Rejected,
}

/// `clarify`.
#[derive(Debug, Args)]
pub struct ClarifyArgs {
    /// Handoff id or its beginning.
    pub handoff: String,
    /// An answer, in the order of the open questions; give one for each.
    #[arg(long = "answer", value_name = "TEXT", required_unless_present = "file")]
    pub answers: Vec<String>,
    /// The answers as JSON instead: a list of {"question","answer"} in a file, or `-` for standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "answers")]
    pub file: Option<PathBuf>,
    /// The handoff document, brought up to date: a file.
    #[arg(long, value_name = "FILE")]
    pub document: Option<PathBuf>,
}

/// `ack-override`.
#[derive(Debug, Args)]
pub struct OverrideArgs {
    /// Handoff id or its beginning.
    pub handoff: String,
    /// Why no acknowledgement is waited for any longer.
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}
