//! The details of one row, on a separate page or at the right; and the list of keys.

use super::Scene;
use super::columns::{lines, put};
use crate::cli::top::keys::KEYS;
use crate::cli::top::plain::{width, wrap};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The largest number of lines into which one line is broken.
const MOST_PARTS: usize = 20;

/// How many rows the details take as a separate page.
#[must_use]
pub fn detail_rows(details: &[String], area: Rect) -> usize {
    broken(details, area).count()
}

/// The details as a separate page, from a row on.
pub(super) fn page(scene: Scene<'_>, area: Rect, from: usize, buffer: &mut Buffer) {
    lines(buffer, inner(area), &text(&scene.ui.details, area, from));
}

/// The details of the selected row, at the right of the list.
pub(super) fn side(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) {
    for y in area.y..area.y + area.height {
        put(
            buffer,
            Rect { x: area.x.saturating_sub(1), y, width: 1, height: 1 },
            scene.look.post(),
            scene.look.faint(),
        );
    }
    page(scene, area, 0, buffer);
}

/// The keys, and beside them what they do.
pub(super) fn help(scene: Scene<'_>, area: Rect, from: usize, buffer: &mut Buffer) {
    let widest = KEYS.iter().map(|(keys, _)| width(keys)).max().unwrap_or(0);
    let room = usize::from(inner(area).width).saturating_sub(widest + 2);
    let parts = |(keys, what): &(&str, &str)| -> Vec<String> {
        let keys = if scene.look.unicode { (*keys).to_owned() } else { ascii(keys) };
        let part = |(place, row): (usize, &String)| {
            let keys = if place == 0 { keys.as_str() } else { "" };
            format!("{keys}{}  {row}", " ".repeat(widest.saturating_sub(width(keys))))
        };
        wrap(what, room, MOST_PARTS).iter().enumerate().map(part).collect()
    };
    let all: Vec<String> = KEYS.iter().skip(from).flat_map(parts).collect();
    lines(buffer, inner(area), &all);
}

fn ascii(keys: &str) -> String {
    keys.replace('…', "-").replace("↑ ↓", "Up Down")
}

fn inner(area: Rect) -> Rect {
    Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
}

fn text(all: &[String], area: Rect, from: usize) -> Vec<String> {
    broken(all, area).skip(from).take(area.height.into()).collect()
}

fn broken(all: &[String], area: Rect) -> impl Iterator<Item = String> {
    all.iter().flat_map(move |line| wrap(line, inner(area).width.into(), MOST_PARTS))
}
