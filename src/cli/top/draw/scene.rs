//! What is drawn, and with which colours.

use super::palette::TerminalStyle;
use crate::cli::top::model::Model;
use crate::cli::top::ui::Ui;

/// The model and the person's choices.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub model: &'a Model,
    pub ui: &'a Ui,
    pub look: TerminalStyle,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    pub columns: u16,
}
