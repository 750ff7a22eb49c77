//! What can be chosen: a list, a row, what the keys are for at the moment, and what is asked for then.

use crate::cli::handoff::Assume;

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tab {
    /// Living agents.
    #[default]
    Agents,
    /// Handoffs.
    Handoffs,
    /// Work items that are not done.
    Work,
    /// Failures.
    Errors,
    /// Who came from whom.
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
    /// An agent.
    Agent(String),
    /// A handoff.
    Handoff(String),
    /// A failure.
    Failure(String),
    /// A work item.
    Work(String),
}

/// What the keys are for at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Mode {
    /// The lists.
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
    /// A line is written.
    Input {
        /// The agent that is to be handed off.
        agent: String,
        /// The reason, once that is written: then the line is the focus.
        reason: Option<String>,
        /// What is written.
        text: String,
    },
    /// Yes or no.
    Confirm {
        /// The question.
        question: String,
        /// What is done after yes.
        then: Asked,
    },
    /// Whether a text arrived.
    Doubt {
        /// The handoff.
        handoff: String,
    },
}

/// What is asked of the sidecar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A handoff.
    HandOff {
        /// The outgoing agent.
        agent: String,
        /// Why.
        reason: String,
        /// What the document should dwell on.
        focus: Option<String>,
    },
    /// To call a handoff off.
    Cancel(String),
    /// To go on with a failed one.
    Retry {
        /// The handoff.
        handoff: String,
        /// What was seen of the text in doubt.
        assume: Option<Assume>,
    },
    /// To take the document as it is.
    Accept(String),
    /// To dismiss a failure.
    Dismiss(String),
}

/// What the loop has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// End.
    Quit,
    /// Ask the sidecar.
    Ask(Asked),
    /// Show this pane to the person.
    Jump(String),
}
