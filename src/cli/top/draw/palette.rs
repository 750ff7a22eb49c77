//! Colours of the user's own terminal, and line characters. A word or a character always says the same as a colour.

use crate::cli::output::Surroundings;
use ratatui::style::{Color, Modifier, Style};

/// Whether there are colours, and signs beyond ASCII.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// The terminal's sixteen colours may be used.
    pub colour: bool,
    pub unicode: bool,
}

impl TerminalStyle {
    /// Colours and line characters that fit the terminal.
    #[must_use]
    pub fn of(around: &Surroundings) -> Self {
        TerminalStyle { colour: around.colour(), unicode: around.unicode }
    }

    fn paint(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// Success, or idle.
    pub(super) fn good(self) -> Style {
        self.paint(Color::Green)
    }

    /// Failure, or waiting for a person.
    pub(super) fn bad(self) -> Style {
        self.paint(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) fn busy(self) -> Style {
        self.paint(Color::Yellow)
    }

    pub(super) fn fresh(self) -> Style {
        self.paint(Color::Cyan)
    }

    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The selected row: reversed as a whole, because colours of its cells would become backgrounds.
    pub(super) fn selected(self) -> Style {
        Style::reset().add_modifier(Modifier::REVERSED)
    }

    /// The style of a state or a step.
    pub(super) fn state(self, word: &str) -> Style {
        match word {
            "idle" | "done" | "ready" => self.good(),
            "busy" | "claimed" => self.busy(),
            "blocked" | "lost" | "failed" | "escalated" => self.bad(),
            "starting" => self.fresh(),
            "ended" | "cancelled" => self.faint(),
            _ => Style::new(),
        }
    }

    pub(super) fn more(self) -> &'static str {
        if self.unicode { "…" } else { "~" }
    }

    pub(super) fn rule(self) -> &'static str {
        if self.unicode { "─" } else { "-" }
    }

    pub(super) fn post(self) -> &'static str {
        if self.unicode { "│" } else { "|" }
    }

    pub(super) fn branch(self) -> &'static str {
        if self.unicode { "└─ " } else { "`- " }
    }

    pub(super) fn arrow(self) -> &'static str {
        if self.unicode { "→" } else { "->" }
    }
}
