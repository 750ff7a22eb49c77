//! The sections below the agents, if there is room: what waits for a person, running handoffs, and work.

use super::columns::{Column, ColumnText, put, row};
use super::{Scene, lists};
use crate::cli::home_option;
use crate::cli::status::subject;
use crate::cli::top::plain::{plain, wrap};
use crate::contract::NeedView;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// How many lines the agents always keep.
const AGENTS: u16 = 6;
/// The largest number of rows into which one text is broken.
const MOST_PARTS: usize = 6;
/// From this many lines on, sections have more rows, and there is a section for work.
const TALL: u16 = 30;

/// The text below an error, instead of its hint, if nothing is left to do about it.
const OVER: &str = "Nothing is left to do about it by now. Press d to dismiss the error.";

struct Section<'a> {
    title: String,
    columns: &'a [Column],
    rows: Vec<Vec<ColumnText>>,
}

/// Draws the sections at the bottom of the area; returns the number of lines that they take.
pub(super) fn below(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) -> u16 {
    let mut left = area.height.saturating_sub(AGENTS);
    let mut chosen = Vec::new();
    for section in sections(scene, area) {
        let lines = u16::try_from(section.rows.len() + 1).unwrap_or(u16::MAX);
        // A title and at least one row.
        if lines >= 2 && left >= 2 {
            let taken = lines.min(left);
            left -= taken;
            chosen.push((section, taken));
        }
    }
    let all: u16 = chosen.iter().map(|(_, lines)| lines).sum();
    let mut y = area.y + area.height - all;
    for (section, lines) in chosen {
        draw(scene, &section, Rect { y, height: lines, ..area }, buffer);
        y += lines;
    }
    all
}

/// Draws the selected error below the list of errors: what happened, and what to do. Returns the number of
/// lines.
pub(super) fn fix(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) -> u16 {
    let selected = scene.ui.selected(scene.model);
    let Some(failure) = scene.model.failures.get(selected).filter(|_| area.height >= 2 * AGENTS) else { return 0 };
    let hint = if scene.model.is_over(failure) { OVER } else { failure.hint.as_str() };
    let hint = home_option::fit(hint);
    let texts = [(failure.message.as_str(), Style::new()), (&*hint, scene.look.strong())];
    let columns = usize::from(area.width).saturating_sub(2);
    let rows = texts.into_iter().flat_map(|(text, style)| {
        wrap(text, columns, MOST_PARTS).into_iter().map(move |part| vec![ColumnText::new(part, style)])
    });
    let section = Section { title: failure.code.clone(), columns: &[("", 0)], rows: rows.collect() };
    let lines = u16::try_from(section.rows.len() + 1).unwrap_or(u16::MAX).min(area.height - AGENTS);
    draw(scene, &section, Rect { y: area.y + area.height - lines, height: lines, ..area }, buffer);
    lines
}

fn sections(scene: Scene<'_>, area: Rect) -> Vec<Section<'static>> {
    let (model, wide) = (scene.model, area.width);
    let tall = area.height >= TALL;
    let (handoffs, needs, items) = if tall { (8, 5, 6) } else { (4, 3, 0) };
    let running = model.running().take(handoffs).map(|handoff| lists::handoff(scene, handoff, wide)).collect();
    let work = model.work.iter().take(items).map(|item| lists::work(scene, item, wide)).collect();
    vec![
        Section { title: format!("Needs you {}", model.needs.len()), columns: &[("", 0)], rows: waiting(scene, needs) },
        Section {
            title: format!("Running handoffs {}", model.running().count()),
            columns: lists::handoff_columns(model, wide),
            rows: running,
        },
        Section { title: format!("Work {}", model.work.len()), columns: lists::work_columns(wide), rows: work },
    ]
}

/// The first of the things that wait for a person, each with the command that settles it below it.
fn waiting(scene: Scene<'_>, most: usize) -> Vec<Vec<ColumnText>> {
    let (needs, look) = (&scene.model.needs, scene.look);
    let shown = |text: &str| match look.unicode {
        true => plain(text),
        false => plain(text).replace('…', "...").replace(['“', '”'], "\""),
    };
    let entry = |need: &NeedView| {
        let what = format!("{}: {}: {}", need.what.as_str().replace('_', " "), subject(need), need.said);
        let command = format!("  {}", shown(&need.command));
        [vec![ColumnText::new(shown(&what), look.bad())], vec![ColumnText::new(command, Style::new())]]
    };
    let mut rows: Vec<Vec<ColumnText>> = needs.iter().take(most).flat_map(entry).collect();
    if needs.len() > most {
        let more = format!("{} more: {}", needs.len() - most, home_option::fit("tasuki status"));
        rows.push(vec![ColumnText::new(more, look.faint())]);
    }
    rows
}

fn draw(scene: Scene<'_>, section: &Section<'_>, area: Rect, buffer: &mut Buffer) {
    let look = scene.look;
    let line = Rect { height: 1, ..area };
    put(buffer, line, &look.rule().repeat(area.width.into()), look.faint());
    put(
        buffer,
        Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..line },
        &format!(" {} ", section.title),
        look.strong(),
    );
    for (cells, y) in section.rows.iter().zip(area.y + 1..area.y + area.height) {
        row(buffer, look, Rect { y, ..line }, section.columns, cells);
    }
}
