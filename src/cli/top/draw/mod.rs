//! Draws the model and the person's choices into cells. Pure: the same in a terminal and in a test.
//!
//! From 80 × 24 on everything is shown. A smaller window drops columns and sections, down to 40 × 10. A larger one
//! shows the selected row's details at the right, and more sections below.

mod columns;
mod details;
mod frame;
mod lists;
mod palette;
mod scene;
mod sections;

pub use details::detail_rows;
pub use palette::TerminalStyle;
pub use scene::Scene;

use super::choice::{KeyMode, Tab};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Smallest window, in columns and rows.
pub const SMALLEST: (u16, u16) = (40, 10);
/// From this many columns on the details are beside the list.
const WIDE: u16 = 110;
/// How much of a wide screen the list takes, in percent.
const LIST_SHARE: u16 = 62;

/// Whether a window of so many columns shows details beside the list.
#[must_use]
pub fn has_side(columns: u16) -> bool {
    columns >= WIDE
}

/// Draws the whole screen into the buffer.
pub fn draw(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) {
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (columns, rows) = SMALLEST;
        let text = format!("This window is too small: top needs {columns} columns and {rows} rows.");
        columns::lines(buffer, area, &super::plain::wrap(&text, area.width.into(), area.height.into()));
        return;
    }
    let foot = frame::foot(scene, area, buffer);
    frame::head(scene, area, buffer);
    let body = Rect { y: area.y + 2, height: area.height.saturating_sub(2 + foot), ..area };
    match &scene.ui.mode {
        KeyMode::Details { from, .. } => details::page(scene, body, *from, buffer),
        KeyMode::Help { from } => details::help(scene, body, *from, buffer),
        KeyMode::Browse | KeyMode::Input { .. } | KeyMode::Confirm { .. } | KeyMode::Doubt { .. } => {
            lists_and_side(scene, body, buffer)
        }
    }
}

fn lists_and_side(scene: Scene<'_>, body: Rect, buffer: &mut Buffer) {
    let mut list = body;
    if has_side(body.width) {
        list.width = body.width * LIST_SHARE / 100;
        let side = Rect { x: body.x + list.width + 1, width: body.width - list.width - 1, ..body };
        details::side(scene, side, buffer);
        list.width = list.width.saturating_sub(1);
    }
    let below = match scene.ui.tab {
        Tab::Agents => sections::below(scene, list, buffer),
        // Only if the details are not beside the list.
        Tab::Errors if list.width == body.width => sections::fix(scene, list, buffer),
        Tab::Errors | Tab::Handoffs | Tab::Work | Tab::Lineage => 0,
    };
    lists::list(scene, Rect { height: list.height.saturating_sub(below), ..list }, buffer);
}
