//! What is drawn, and how.

use super::palette::Look;
use crate::cli::top::model::Model;
use crate::cli::top::ui::Ui;

/// What there is, and what was chosen.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// What there is.
    pub model: &'a Model,
    /// What was chosen.
    pub ui: &'a Ui,
    /// Colours and signs.
    pub look: Look,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
    /// The window's width.
    pub columns: u16,
}
