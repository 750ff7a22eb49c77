//! The words of the options of `handoff` and `retry`: who writes the document, what is done about its faults, how soon
//! the successor must acknowledge it, whether a text has arrived.

use clap::ValueEnum;

/// What is done about faults of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckArg {
    /// Do not check the document.
    Off,
    /// Report the faults as warnings.
    Warn,
    /// Ask the agent once to fix them.
    Fix,
    /// Wait for you if a fault should be repaired.
    Hold,
}

/// Who writes the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthorArg {
    /// The agent, with its own tools.
    #[value(alias = "agent_file")]
    AgentFile,
    /// The agent, as its reply.
    #[value(alias = "agent_reply")]
    AgentReply,
    /// tasuki, from the transcript; for agents that have died.
    Salvage,
    /// You, with --document.
    Provided,
}

/// How soon the successor must acknowledge the handoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UrgencyArg {
    /// Remind the successor after 5 minutes (`ack.immediate`).
    Immediate,
    /// Remind the successor after 15 minutes (`ack.prepare`).
    Prepare,
    /// Remind the successor after 30 minutes (`ack.when_available`).
    #[value(alias = "when_available")]
    WhenAvailable,
}

impl AuthorArg {
    /// Its wire name in a request.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            AuthorArg::AgentFile => "agent_file",
            AuthorArg::AgentReply => "agent_reply",
            AuthorArg::Salvage => "salvage",
            AuthorArg::Provided => "provided",
        }
    }
}

/// Whether a person has seen a text with the verdict `unconfirmed` in the pane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AssumeArg {
    /// The text is in the pane: continue.
    Delivered,
    /// The text is not in the pane: type it again.
    #[value(alias = "not_delivered")]
    NotDelivered,
}

impl AssumeArg {
    /// Its wire name in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AssumeArg::Delivered => "delivered",
            AssumeArg::NotDelivered => "not_delivered",
        }
    }
}

impl CheckArg {
    /// Its wire name in a request.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            CheckArg::Off => "off",
            CheckArg::Warn => "warn",
            CheckArg::Fix => "fix",
            CheckArg::Hold => "hold",
        }
    }
}

impl UrgencyArg {
    /// Its wire name in a request.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            UrgencyArg::Immediate => "immediate",
            UrgencyArg::Prepare => "prepare",
            UrgencyArg::WhenAvailable => "when_available",
        }
    }
}
