//! Reads an agent's screen: what the program is doing, and what its composer holds. Where a screen is ambiguous, the
//! reading that keeps tasuki from typing wins.

use super::ansi::{self, Cell, Colour};
use super::composer_format::{Anchor, ComposerSection, GhostLook};
use super::condition::Pattern;
use super::format::ScreenSection;
use super::profile::Profile;
use crate::core::pane::{Activity, ComposerContent, ScreenReading};
use std::ops::Range;

/// A screen's rows, with their plain text beside the cells.
struct Rows {
    cells: Vec<Vec<Cell>>,
    text: Vec<String>,
}

/// The position of the composer: its text in the rows `text`, the whole of it in the rows `whole`.
struct Place {
    text: Range<usize>,
    whole: Range<usize>,
    /// Its beginning is, or may be, out of sight.
    is_cut: bool,
    /// Its bottom is out of sight, and so may be the end of its text.
    is_clipped: bool,
    /// How many columns, from the left, belong to the composer.
    width: usize,
}

/// A composer with at least this many rows may have scrolled, if the profile doesn't say how that looks.
const TALL: usize = 5;

impl Profile {
    /// Reads a screen of `height` rows as `capture-pane -e -p` prints it. `cursor` is column and row, both from 0.
    #[must_use]
    pub fn read_screen(&self, screen: &str, height: u16, cursor: (u16, u16)) -> ScreenReading {
        let section = &self.file.screen;
        let rows = Rows::read(screen, height);
        let place = rows.find_composer(section, cursor);
        let composer = match &place {
            Some(place) => rows.composer(&section.composer, place),
            None => ComposerContent::Unreadable,
        };
        let activity = if rows.is_blocked(section, place.as_ref()) {
            Activity::Blocked
        } else if rows.is_busy(section, place.as_ref()) {
            Activity::Busy
        } else if place.is_some() && rows.is_ready(section) {
            Activity::Ready
        } else {
            Activity::Unknown
        };
        ScreenReading { activity, composer }
    }

    /// How many rows of a screen are above the composer; all of them if it shows none. Below the composer, some CLIs
    /// show a line of the user's own that may change every second.
    pub fn rows_above_composer(&self, screen: &str, height: u16, cursor: (u16, u16)) -> usize {
        let rows = Rows::read(screen, height);
        let place = rows.find_composer(&self.file.screen, cursor);
        place.map_or(rows.text.len(), |place| place.whole.start)
    }
}

impl Rows {
    fn read(screen: &str, height: u16) -> Self {
        let cells = ansi::cells(screen, height);
        let text = cells
            .iter()
            .map(|row| row.iter().map(|cell| cell.char).collect::<String>().trim_end_matches(' ').to_owned())
            .collect();
        Rows { cells, text }
    }

    fn find_composer(&self, screen: &ScreenSection, cursor: (u16, u16)) -> Option<Place> {
        let section = &screen.composer;
        let cursor_row = usize::from(cursor.1);
        // Below a `top` on the screen's last row there is no further row.
        let is = |pattern: &Pattern, row: usize| self.text.get(row).is_some_and(|line| pattern.regex().is_match(line));
        let all = 0..self.text.len();
        let places = |top: usize, bottom: usize| {
            let first = if section.top_is_text { top } else { top + 1 };
            let scrolled = |row: usize| section.scrolled.as_ref().is_some_and(|scrolled| is(scrolled, row));
            let is_scrolled = scrolled(top) || scrolled(first);
            let begins_right = is_scrolled || section.first.as_ref().is_none_or(|first_line| is(first_line, first));
            let end = self.without_last(section, first..bottom);
            let cursor_right = !section.cursor_inside || (first..end).contains(&cursor_row);
            let is_cut = is_scrolled || (section.scrolled.is_none() && self.is_tall(first..end));
            let wide = !section.top_as_wide_as_bottom || self.columns(top) == self.columns(bottom);
            (first < end && begins_right && cursor_right && wide).then(|| Place {
                text: first..end,
                whole: top..(bottom + 1).min(self.text.len()),
                is_cut,
                is_clipped: false,
                width: self.width(section, bottom),
            })
        };
        match section.anchor {
            Anchor::Bottom => {
                // With the cursor inside, a line above the cursor is text that looks like the bottom.
                let may_end = |row: usize| !section.cursor_inside || row > cursor_row;
                let bottom = all.clone().rev().find(|row| may_end(*row) && is(&section.bottom, *row));
                let whole = bottom.and_then(|bottom| {
                    let mut tops = (0..bottom).rev().filter(|row| is(&section.top, *row));
                    tops.find_map(|top| places(top, bottom)).or_else(|| self.outgrown(screen, bottom, cursor_row))
                });
                whole.or_else(|| {
                    let may_fill = section.fills_screen && !self.is_blocked(screen, None);
                    let top = all.clone().rev().filter(|_| may_fill).find(|row| is(&section.top, *row))?;
                    let place = Place { is_clipped: true, ..places(top, all.end)? };
                    let is_right = if section.cursor_inside { top < all.end / 2 } else { self.ends_at(cursor, &place) };
                    is_right.then_some(place)
                })
            }
            Anchor::Top => {
                let top = all.clone().rev().find(|row| is(&section.top, *row))?;
                let bottom = (top + 1..all.end).find(|row| is(&section.bottom, *row));
                // A dialog takes the composer's place; the line that looks like the composer's top is an earlier
                // prompt.
                let is_dialog = bottom.is_none() && self.is_blocked(screen, None);
                places(top, bottom.unwrap_or(all.end)).filter(|_| !is_dialog)
            }
        }
    }

    /// Where the text in these rows ends: before the composer's last line, if that is not text.
    fn without_last(&self, section: &ComposerSection, rows: Range<usize>) -> usize {
        let Some(last) = &section.last else { return rows.end };
        let width = self.width(section, rows.end);
        let is_blank = |row: &usize| self.kept(section, *row, width).trim().is_empty();
        let (mut begin, mut before) = (rows.end.saturating_sub(1), rows.start..rows.end);
        if section.last_wraps {
            // A blank row always parts it from the text. Without one, nothing tells the two apart.
            let Some(end) = before.rfind(|row| !is_blank(row)) else { return rows.end };
            let Some(blank) = (rows.start..end).rfind(is_blank) else { return rows.end };
            begin = blank + 1;
        }
        let mut seen = (begin..rows.end).filter(|row| last.regex().is_match(&self.text[*row]));
        let is_last = begin > rows.start && seen.next() == Some(begin) && seen.next().is_none();
        if is_last { begin } else { rows.end }
    }

    /// A composer that has grown over the whole screen.
    fn outgrown(&self, screen: &ScreenSection, bottom: usize, cursor_row: usize) -> Option<Place> {
        let is_text = |row: usize| self.text[row].is_empty() || self.strip(&screen.composer, row).contains(&true);
        let holds_cursor = screen.composer.outgrows_screen && (0..bottom).contains(&cursor_row);
        let is_whole = holds_cursor && (0..bottom).all(is_text) && !self.is_blocked(screen, None);
        let width = self.width(&screen.composer, bottom);
        is_whole.then(|| Place { text: 0..bottom, whole: 0..bottom + 1, is_cut: true, is_clipped: false, width })
    }

    /// Whether the last text of a composer ends where the cursor stands. If rows below it were out of sight, the cursor
    /// would be in one of them.
    fn ends_at(&self, cursor: (u16, u16), place: &Place) -> bool {
        // The text may end with some blanks, which the screen does not show.
        const BLANKS: usize = 4;
        let (column, row) = (usize::from(cursor.0), usize::from(cursor.1));
        let ends_right = |end: usize| (end..=end + BLANKS).contains(&column);
        place.text.contains(&row)
            && self.columns(row).is_some_and(ends_right)
            && self.lines(row + 1..place.text.end).next().is_none()
    }

    /// How many columns belong to the composer whose bottom is in this row.
    fn width(&self, section: &ComposerSection, bottom: usize) -> usize {
        let found = self.text.get(bottom).filter(|_| section.as_wide_as_bottom);
        let edge = found.and_then(|line| Some(&line[..section.bottom.regex().find(line)?.end()]));
        edge.map_or(usize::MAX, |edge| edge.chars().map(ansi::least_columns).sum())
    }

    /// How many columns the text of this row takes.
    fn columns(&self, row: usize) -> Option<usize> {
        self.text.get(row).map(|line| line.chars().map(ansi::least_columns).sum())
    }

    /// Whether a text in these rows is so long that more of it may be above them, out of sight.
    fn is_tall(&self, rows: Range<usize>) -> bool {
        self.lines(rows).count() >= TALL
    }

    fn composer(&self, section: &ComposerSection, place: &Place) -> ComposerContent {
        let (mut text, mut with_ghosts) = (String::new(), String::new());
        for row in place.text.clone() {
            let cells = &self.cells[row];
            let ghosts = ghosts(cells, section);
            let stripped = self.strip(section, row);
            for (at, cell) in cells.iter().enumerate().take(ansi::before_column(cells, place.width)) {
                if cell.char.is_whitespace() || stripped[at] {
                    continue;
                }
                with_ghosts.push(cell.char);
                if !ghosts[at] {
                    text.push(cell.char);
                }
            }
        }
        // Some CLIs draw a collapsed paste faint, so ghost text is searched too. Blanks are kept at first: without them
        // two numbers beside each other become one.
        let spaced = self.spaced(section, place);
        let readings = [&spaced, &text, &with_ghosts];
        let collapsed = section
            .collapsed
            .iter()
            .find_map(|pattern| readings.into_iter().find_map(|text| pattern.0.regex().captures(text)));
        if let Some(found) = collapsed {
            let size = found.name("size").and_then(|size| size.as_str().parse().ok());
            return ComposerContent::Collapsed { size };
        }
        // Blank rows may be the end of a text whose beginning is out of sight.
        let may_hide_text = place.is_cut || (section.scrolled.is_none() && place.text.len() >= TALL);
        let is_ghost = section.ghost_texts.iter().any(|ghost| ghost.regex().is_match(&spaced));
        if is_ghost || (text.is_empty() && !may_hide_text) {
            if place.is_clipped { ComposerContent::Unreadable } else { ComposerContent::Empty }
        } else if place.is_cut || text.is_empty() {
            ComposerContent::Tail(text)
        } else {
            ComposerContent::Text(text)
        }
    }

    /// The composer's text with its blanks, lines joined by single blanks: what `ghost_texts` are matched against.
    fn spaced(&self, section: &ComposerSection, place: &Place) -> String {
        let lines = place.text.clone().map(|row| self.kept(section, row, place.width).trim().to_owned());
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// The text of a row, with its blanks.
    fn kept(&self, section: &ComposerSection, row: usize, width: usize) -> String {
        let stripped = self.strip(section, row);
        let cells = &self.cells[row][..ansi::before_column(&self.cells[row], width)];
        cells.iter().zip(stripped).filter(|(_, stripped)| !stripped).map(|(cell, _)| cell.char).collect()
    }

    /// Which characters of a row are not text, but a border or a prompt sign.
    fn strip(&self, section: &ComposerSection, row: usize) -> Vec<bool> {
        let cells = &self.cells[row];
        let mut stripped = vec![false; cells.len()];
        for pattern in &section.strip {
            let kept: Vec<usize> = (0..cells.len()).filter(|at| !stripped[*at]).collect();
            let text: String = kept.iter().map(|at| cells[*at].char).collect();
            let Some(found) = pattern.regex().find(&text) else { continue };
            let first = text[..found.start()].chars().count();
            for at in &kept[first..first + found.as_str().chars().count()] {
                stripped[*at] = true;
            }
        }
        stripped
    }

    fn is_blocked(&self, section: &ScreenSection, place: Option<&Place>) -> bool {
        let from = place.map_or(0, |place| place.whole.end);
        let mut lines: Vec<&str> = self.lines(from..self.text.len()).rev().take(section.blocked_lines).collect();
        lines.reverse();
        let end = lines.join("\n");
        section.blocked.iter().any(|pattern| pattern.regex().is_match(&end))
    }

    fn is_busy(&self, section: &ScreenSection, place: Option<&Place>) -> bool {
        let all = self.text.len();
        let (above, below) = place.map_or((0..all, all..all), |place| (0..place.whole.start, place.whole.end..all));
        let mut near = self.lines(above).rev().take(section.busy_lines).chain(self.lines(below));
        near.any(|line| section.busy.iter().any(|pattern| pattern.regex().is_match(line)))
    }

    fn is_ready(&self, section: &ScreenSection) -> bool {
        let seen = |pattern: &Pattern| self.text.iter().any(|line| pattern.regex().is_match(line));
        section.ready.iter().all(seen) && !section.not_ready.iter().any(seen)
    }

    /// The lines of a range of rows that are not blank.
    fn lines(&self, rows: Range<usize>) -> impl DoubleEndedIterator<Item = &str> {
        self.text[rows].iter().map(String::as_str).filter(|line| !line.trim().is_empty())
    }
}

/// Which cells are ghost text. A cursor that the program draws itself covers the ghost's first character, so a
/// reversed cell right before ghost text is ghost text too.
fn ghosts(cells: &[Cell], section: &ComposerSection) -> Vec<bool> {
    let mut ghosts: Vec<bool> = cells.iter().map(|cell| is_ghost(cell, section)).collect();
    for at in 1..cells.len() {
        if ghosts[at] && !ghosts[at - 1] && cells[at - 1].look.reverse && cells[at].char != ' ' {
            ghosts[at - 1] = true;
        }
    }
    ghosts
}

fn is_ghost(cell: &Cell, section: &ComposerSection) -> bool {
    let by_look = section.ghost.iter().any(|look| match look {
        GhostLook::Dim => cell.look.dim,
        GhostLook::Grey8 => matches!(&cell.look.colour, Colour::Sgr(sgr) if sgr == "90" || sgr == "38;5;8"),
    });
    by_look || matches!(&cell.look.colour, Colour::Sgr(sgr) if section.ghost_colours.contains(sgr))
}
