//! Rows of cells: each cell is as wide as its column.

use super::palette::TerminalStyle;
use crate::cli::top::plain::{cut, width};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A column: its heading, and how many columns of the screen it takes; 0 takes what the others leave.
pub(super) type Column = (&'static str, u16);

/// A text and how it is drawn.
#[derive(Debug, Clone)]
pub(super) struct ColumnText {
    pub(super) text: String,
    pub(super) style: Style,
}

impl From<String> for ColumnText {
    fn from(text: String) -> Self {
        ColumnText { text, style: Style::new() }
    }
}

impl From<&str> for ColumnText {
    fn from(text: &str) -> Self {
        ColumnText::from(text.to_owned())
    }
}

impl ColumnText {
    pub(super) fn new(text: impl Into<String>, style: Style) -> Self {
        ColumnText { text: text.into(), style }
    }
}

/// The index of the first shown row, if row `selected` of `len` rows is selected and `room` rows fit. The selected row
/// is in the middle where possible.
fn first(selected: usize, len: usize, room: usize) -> usize {
    selected.saturating_sub(room / 2).min(len.saturating_sub(room))
}

/// A list with headings; `row` returns the cells of one row.
pub(super) fn list(
    (look, buffer): (TerminalStyle, &mut Buffer),
    area: Rect,
    columns: &[Column],
    (selected, len): (usize, usize),
    row: impl Fn(usize) -> Vec<ColumnText>,
) {
    let widths = widths(area.width.saturating_sub(1), columns);
    let headings: Vec<ColumnText> = columns.iter().map(|(title, _)| ColumnText::new(*title, look.faint())).collect();
    cells(buffer, look, Rect { height: 1, ..area }, &widths, &headings);
    let room = usize::from(area.height.saturating_sub(1));
    let from = first(selected, len, room);
    for (place, y) in (from..len.min(from + room)).zip(area.y + 1..) {
        let line = Rect { y, height: 1, ..area };
        cells(buffer, look, line, &widths, &row(place));
        if place == selected {
            put(buffer, line, ">", Style::new());
            buffer.set_style(line, look.selected());
        }
    }
}

/// One row below a heading, with no selection.
pub(super) fn row(buffer: &mut Buffer, look: TerminalStyle, area: Rect, columns: &[Column], row: &[ColumnText]) {
    cells(buffer, look, area, &widths(area.width.saturating_sub(1), columns), row);
}

/// Draws the cells of one row. It leaves the first column of the area free for the sign of the selected row.
fn cells(buffer: &mut Buffer, look: TerminalStyle, area: Rect, widths: &[u16], row: &[ColumnText]) {
    let mut x = area.x + 1;
    for (cell, wide) in row.iter().zip(widths) {
        let text = cut(&cell.text, (*wide).into(), look.more());
        put(buffer, Rect { x, width: *wide, ..area }, &text, cell.style);
        x = x.saturating_add(wide + 1);
    }
}

/// Gives every column its width, and the remaining width to the column with width 0; columns that do not fit get
/// nothing.
fn widths(all: u16, columns: &[Column]) -> Vec<u16> {
    let gaps = u16::try_from(columns.len().saturating_sub(1)).unwrap_or(0);
    let fixed: u16 = columns.iter().map(|(_, width)| *width).sum();
    let rest = all.saturating_sub(fixed + gaps);
    let mut left = all;
    let mut take = |(_, wanted): &Column| {
        let width = if *wanted == 0 { rest } else { *wanted }.min(left);
        left = left.saturating_sub(width + 1);
        width
    };
    columns.iter().map(&mut take).collect()
}

/// Writes a text into an area's first line; what does not fit is left out.
pub(super) fn put(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let area = area.intersection(buffer.area);
    if !area.is_empty() {
        buffer.set_stringn(area.x, area.y, text, area.width.into(), style);
    }
}

/// Writes a text at the right end of an area's first line.
pub(super) fn put_right(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let wide = u16::try_from(width(text)).unwrap_or(u16::MAX).min(area.width);
    put(buffer, Rect { x: area.x + area.width - wide, width: wide, ..area }, text, style);
}

pub(super) fn lines(buffer: &mut Buffer, area: Rect, lines: &[String]) {
    for (line, y) in lines.iter().zip(area.y..area.y + area.height) {
        put(buffer, Rect { y, height: 1, ..area }, line, Style::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selected_row_is_always_among_those_that_are_shown() {
        for len in 0..30 {
            for room in 1..12 {
                for selected in 0..len {
                    let from = first(selected, len, room);
                    assert!((from..from + room).contains(&selected) && from + room.min(len) <= len.max(room));
                }
            }
        }
    }

    #[test]
    fn columns_share_what_there_is_and_no_more() {
        assert_eq!(widths(20, &[("A", 5), ("B", 0), ("C", 4)]), [5, 9, 4]);
        assert_eq!(widths(8, &[("A", 5), ("B", 0), ("C", 4)]), [5, 0, 1]);
        assert_eq!(widths(3, &[("A", 5), ("B", 4)]), [3, 0]);
    }
}
