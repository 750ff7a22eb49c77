//! What can be chosen: a list, a row, what the keys are for at the moment, and what is asked for then.

use crate::cli::handoff::Assume;

/// A list.
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
    /// All, in order.
    pub const ALL: [Tab; 5] = [Tab::Agents, Tab::Handoffs, Tab::Work, Tab::Errors, Tab::Lineage];

    /// Its place.
    #[must_use]
    pub fn place(self) -> usize {
        Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }

    /// Its name.
    #[must_use]
    pub fn title(self) -> &'static str {
        ["Agents", "Handoffs", "Work", "Errors", "Lineage"][self.place()]
    }
}

/// What a row stands for, by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    Agent(String),
    Handoff(String),
    Failure(String),
    Work(String),
}

/// What the keys are for at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Browse,
    /// All of one row, from this line on.
    Details {
        /// The row.
        row: Row,
        /// The first line that is shown.
        from: usize,
    },
    /// The keys, from this line on.
    Help {
        /// The first line that is shown.
        from: usize,
    },
    Input {
        /// The agent that is to be handed off.
        agent: String,
        /// The reason, once that is written: then the line is the focus.
        reason: Option<String>,
        text: String,
    },
    Confirm {
        question: String,
        /// What is done after yes.
        then: Asked,
    },
    Doubt {
        handoff: String,
    },
}

/// What is asked of the sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    HandOff {
        agent: String,
        reason: String,
        /// What the document should dwell on.
        focus: Option<String>,
    },
    /// To call a handoff off.
    Cancel(String),
    /// To go on with a failed one.
    Retry {
        handoff: String,
        /// What was seen of the text in doubt.
        assume: Option<Assume>,
    },
    /// To take the document as it is.
    Accept(String),
    Dismiss(String),
}

/// What the loop has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    Quit,
    Ask(Asked),
    /// Show this pane to the person.
    Jump(String),
}
