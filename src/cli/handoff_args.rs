//! The arguments of the commands that are about handoffs.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The reason of a handoff for which none was given.
pub(super) const REASON: &str = "requested by the operator";

/// `handoff`.
#[derive(Debug, Args)]
pub struct HandoffArgs {
    /// Agent id, its beginning, its persona, or its pane such as `%3`; without it, or with `.`, the agent in whose pane
    /// this runs.
    pub agent: Option<String>,
    /// The agent in whose pane this runs: said aloud, for scripts.
    #[arg(long = "self", conflicts_with = "agent")]
    pub own: bool,
    /// Why.
    #[arg(long, default_value = REASON)]
    pub reason: String,
    /// What the document should dwell on.
    #[arg(long)]
    pub focus: Option<String>,
    /// Who writes the document.
    #[arg(long, value_enum)]
    pub author: Option<Author>,
    /// The document itself, for `--author provided`: a file, or `-` for standard input.
    #[arg(long, value_name = "FILE", required_if_eq("author", "provided"))]
    pub document: Option<PathBuf>,
    /// Who goes on: `new`, `same-pane`, or an agent that runs already.
    #[arg(long, value_name = "WHO")]
    pub successor: Option<String>,
    /// Ask the successor for an acknowledgement, this urgently; reminders and escalation follow.
    #[arg(long, value_enum)]
    pub urgency: Option<Urgency>,
    /// Publish the document by your own `gh`: as a comment on `owner/repo#42`, or as a secret `gist`.
    #[arg(long, value_name = "WHERE")]
    pub publish: Option<String>,
    /// What is done where a comment can't be made: `gist`, which is open to whoever has its link.
    #[arg(long, value_name = "HOW", requires = "publish")]
    pub fallback: Option<String>,
    /// A task for the successor; may be given several times.
    #[arg(long = "task", value_name = "TEXT")]
    pub tasks: Vec<String>,
    /// Do not wait for the agent's running turn to end.
    #[arg(long)]
    pub now: bool,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// Who writes the document (SPEC 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Author {
    /// The agent, with its own tools.
    #[value(alias = "agent_file")]
    AgentFile,
    /// The agent, as its answer.
    #[value(alias = "agent_reply")]
    AgentReply,
    /// tasuki, from the transcript; for agents that have died.
    Salvage,
    /// You.
    Provided,
}

/// How urgent the acknowledgement is (SPEC section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Urgency {
    /// Within 5 minutes.
    Immediate,
    /// Within 15 minutes.
    Prepare,
    /// Within 30 minutes.
    #[value(alias = "when_available")]
    WhenAvailable,
}

/// One handoff.
#[derive(Debug, Args)]
pub struct HandoffName {
    /// Handoff id or its beginning.
    pub handoff: String,
}

/// `retry`.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Handoff id or its beginning.
    pub handoff: String,
    /// Whether the text whose verdict is `unconfirmed` arrived, as you have seen it in the pane.
    #[arg(long, value_enum)]
    pub assume: Option<Assume>,
    /// Go on with another successor: `new`, `same-pane`, or an agent that runs already.
    #[arg(long, value_name = "WHO")]
    pub successor: Option<String>,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// What a person has seen of a text in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Assume {
    /// It is there: go on.
    Delivered,
    /// It is not there: type it anew.
    #[value(alias = "not_delivered")]
    NotDelivered,
}

impl Assume {
    /// Its word in a request.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Assume::Delivered => "delivered",
            Assume::NotDelivered => "not_delivered",
        }
    }
}

/// `accept`.
#[derive(Debug, Args)]
pub struct AcceptArgs {
    /// Handoff id or its beginning.
    pub handoff: String,
    /// Show each step as it passes, and exit only when the handoff has ended.
    #[arg(long)]
    pub wait: bool,
}

/// `handoffs`.
#[derive(Debug, Args)]
pub struct HandoffsArgs {
    /// The newest so many.
    #[arg(long, default_value_t = 20)]
    pub limit: usize,
    /// Show one instead.
    #[command(subcommand)]
    pub command: Option<HandoffsCommand>,
}

/// `handoffs …`.
#[derive(Debug, Subcommand)]
pub enum HandoffsCommand {
    /// Show one handoff with its steps.
    #[command(after_help = "Example:\n  tasuki handoffs show 5f2a")]
    Show(HandoffName),
    /// Look on at one, step by step, until it has ended; Ctrl-C leaves it alone.
    #[command(after_help = "Example:\n  tasuki handoffs follow 5f2a")]
    Follow(HandoffName),
}
