//! What a person can choose on the screen: a list, a row, a mode of the keys, and the request that follows.

use crate::cli::handoff_words::AssumeArg;

/// One of the lists that can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tab {
    #[default]
    Agents,
    Handoffs,
    /// Work items that are not done.
    Work,
    Errors,
    Lineage,
}

impl Tab {
    /// All lists, in the order of their tabs.
    pub const ALL: [Tab; 5] = [Tab::Agents, Tab::Handoffs, Tab::Work, Tab::Errors, Tab::Lineage];

    /// The index of its tab.
    #[must_use]
    pub fn place(self) -> usize {
        Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }

    /// The text of its tab.
    #[must_use]
    pub fn title(self) -> &'static str {
        ["Agents", "Handoffs", "Work", "Errors", "Lineage"][self.place()]
    }
}

/// What a row represents, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Agent(String),
    Handoff(String),
    Failure(String),
    Work(String),
    /// The document and the facts of a handoff. They are shown as a page; no list has such a row.
    Document(String),
}

/// The mode that decides what the keys do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeyMode {
    #[default]
    Browse,
    /// The details of one row, from this row of the screen on.
    Details {
        row: Row,
        from: usize,
    },
    Help {
        from: usize,
    },
    Input {
        /// The agent that is to be handed off.
        agent: String,
        /// The reason, once it is entered. From then on the input line is for the focus.
        reason: Option<String>,
        text: String,
    },
    Confirm {
        question: String,
        then: TopRequest,
    },
    /// Nobody knows whether the handoff's last text arrived: a retry waits for the person's answer.
    Doubt {
        handoff: String,
    },
}

/// A request to the sidecar that a key leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TopRequest {
    HandOff {
        agent: String,
        reason: String,
        focus: Option<String>,
    },
    Cancel(String),
    /// Continues a failed handoff.
    Retry {
        handoff: String,
        /// Whether the text in doubt has arrived.
        assume: Option<AssumeArg>,
    },
    /// Accepts the document as it is.
    Accept(String),
    Dismiss(String),
}

/// What the loop must do after a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopAction {
    Quit,
    Ask(TopRequest),
    Jump(String),
}
