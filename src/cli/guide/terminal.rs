//! A chapter on a terminal: wrapped at its width, in colour if the terminal takes it.

use super::super::output::{Out, Tone};
use super::blocks::{Line, TextBlock, TextSpan, TextStyle};
use crate::demo::terminal;
use std::io::{self, IsTerminal};
use unicode_width::UnicodeWidthStr;

/// The widest that lines are comfortable to read, in columns.
const WIDEST: usize = 100;
/// The width if it is unknown.
const USUAL: usize = 80;
/// The smallest width of a table's column.
const LEAST_COLUMN: usize = 8;
/// The gap between the columns of a table.
const GAP: usize = 2;

/// How wide a text for this process's standard output is, in columns.
pub(super) fn width() -> usize {
    if io::stdout().is_terminal() { usize::from(terminal::size().0).clamp(20, WIDEST) } else { USUAL }
}

/// The whole chapter. Without colour, code keeps its backticks, which tell a command from the sentence around it.
pub(super) fn draw(blocks: &[TextBlock], out: &Out, width: usize) -> String {
    let mut text = match out.has_colour() {
        true => lines(blocks, out, width),
        false => lines(&blocks.iter().map(TextBlock::with_backticks).collect::<Vec<_>>(), out, width),
    }
    .join("\n");
    text.push('\n');
    text
}

/// A text without styles, wrapped into lines.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let line = vec![TextSpan { style: TextStyle::Plain, text: text.to_owned() }];
    wrap(&line, width).iter().map(|row| row.iter().map(|span| span.text.as_str()).collect()).collect()
}

fn lines(blocks: &[TextBlock], out: &Out, width: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for block in blocks {
        if !all.is_empty() {
            all.push(String::new());
        }
        match block {
            TextBlock::Heading(level, line) => all.push(heading(*level, line, out)),
            TextBlock::Paragraph(line) => all.extend(wrap(line, width).iter().map(|row| painted(row, out))),
            TextBlock::Code(text) => all.extend(text.lines().map(|line| out.paint(Tone::Good, &format!("    {line}")))),
            TextBlock::List(first, items) => all.extend(list(*first, items, out, width)),
            TextBlock::Table(head, rows) => all.extend(table(head, rows, out, width)),
        }
    }
    all
}

fn heading(level: usize, line: &Line, out: &Out) -> String {
    let text: String = line.iter().map(|span| span.text.as_str()).collect();
    let text = if level == 1 { text.to_uppercase() } else { text };
    out.paint(Tone::Strong, &text)
}

fn list(first: Option<u64>, items: &[Vec<TextBlock>], out: &Out, width: usize) -> Vec<String> {
    let mut all = Vec::new();
    for (item, at) in items.iter().zip(0..) {
        let sign = first.map_or_else(|| "- ".to_owned(), |first| format!("{}. ", first + at));
        let indent = " ".repeat(sign.len() + 2);
        for (row, text) in lines(item, out, width.saturating_sub(indent.len())).iter().enumerate() {
            let before = if row == 0 { format!("  {sign}") } else { indent.clone() };
            all.push(format!("{before}{text}").trim_end().to_owned());
        }
    }
    all
}

/// Columns side by side, whose cells are wrapped.
fn table(head: &[Line], rows: &[Vec<Line>], out: &Out, width: usize) -> Vec<String> {
    let strong =
        |cell: &Line| cell.iter().map(|span| TextSpan { style: TextStyle::Strong, ..span.clone() }).collect::<Line>();
    let head: Vec<Line> = head.iter().map(strong).collect();
    let everything: Vec<&Vec<Line>> = std::iter::once(&head).chain(rows).collect();
    let widths = shares(&everything, width.saturating_sub(2));
    let mut all = Vec::new();
    for row in everything {
        let cells: Vec<Vec<Line>> = row.iter().zip(&widths).map(|(cell, wide)| wrap(cell, *wide)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        for at in 0..height {
            let mut line = String::from("  ");
            for (cell, wide) in cells.iter().zip(&widths) {
                let part = cell.get(at).map(Vec::as_slice).unwrap_or_default();
                line.push_str(&painted(part, out));
                line.push_str(&" ".repeat((wide + GAP).saturating_sub(columns_of(part))));
            }
            all.push(line.trim_end().to_owned());
        }
    }
    all
}

/// The width of each column: as much as it needs; if the line is too short, the widest columns shrink first.
fn shares(rows: &[&Vec<Line>], width: usize) -> Vec<usize> {
    let count = rows.iter().map(|row| row.len()).max().unwrap_or_default();
    let needs = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| columns_of(cell)).max();
    let mut widths: Vec<usize> = (0..count).map(|at| needs(at).unwrap_or_default()).collect();
    let room = width.saturating_sub(GAP * count.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max().filter(|wide| **wide > LEAST_COLUMN) else { break };
        *widest -= 1;
    }
    widths
}

/// A line in rows of at most `width` columns, which end between words; a longer word has a row of its own.
fn wrap(line: &Line, width: usize) -> Vec<Line> {
    let mut rows = vec![Line::new()];
    let mut used = 0;
    for word in words(line) {
        let wide = columns_of(&word);
        if used > 0 && used + 1 + wide > width {
            rows.push(Line::new());
            used = 0;
        }
        let Some(row) = rows.last_mut() else { continue };
        if used > 0 {
            add(row, TextStyle::Plain, " ");
            used += 1;
        }
        word.iter().for_each(|span| add(row, span.style, &span.text));
        used += wide;
    }
    rows
}

fn add(row: &mut Line, style: TextStyle, text: &str) {
    match row.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => row.push(TextSpan { style, text: text.to_owned() }),
    }
}

/// The words of a line. A word may have several styles, such as code and the full stop after it.
fn words(line: &Line) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    let mut begins = true;
    for span in line {
        for piece in span.text.split_inclusive(' ') {
            let text = piece.trim_end();
            if !text.is_empty() {
                if begins {
                    all.push(Line::new());
                }
                if let Some(word) = all.last_mut() {
                    add(word, span.style, text);
                }
                begins = false;
            }
            begins |= piece.ends_with(' ');
        }
    }
    all
}

fn columns_of(line: &[TextSpan]) -> usize {
    line.iter().map(|span| span.text.width()).sum()
}

fn painted(line: &[TextSpan], out: &Out) -> String {
    line.iter()
        .map(|span| match span.style {
            TextStyle::Plain => span.text.clone(),
            TextStyle::Strong => out.paint(Tone::Strong, &span.text),
            TextStyle::Code => out.paint(Tone::Good, &span.text),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::output::Surroundings;
    use super::super::blocks::parse;
    use super::super::chapters::CHAPTERS;
    use super::*;

    fn plain() -> Out {
        Out::with(false, &Surroundings::default())
    }

    #[test]
    fn a_chapter_is_drawn_with_its_tables_lists_and_code() {
        let text = "# One\n\nA `code` word, and **stress** over\ntwo lines.\n\n- first\n- second item that is long\n\n| a | b |\n|---|---|\n| x | `y` and more |\n\n```sh\n  kept  as it is\n```\n";
        let drawn = draw(&parse(text), &plain(), 24);
        let expected = "ONE\n\nA `code` word, and\nstress over two lines.\n\n  - first\n  - second item that is\n    long\n\n  a  b\n  x  `y` and more\n\n      kept  as it is\n";
        assert_eq!(drawn, expected);
        let coloured = Out::with(false, &Surroundings { force: true, ..Surroundings::default() });
        assert!(draw(&parse(text), &coloured, 24).contains("A \u{1b}[32mcode\u{1b}[0m word"));
    }

    #[test]
    fn no_line_of_several_words_is_wider_than_the_terminal() {
        for width in [60, 80, 100] {
            for chapter in &CHAPTERS {
                for block in parse(chapter.text).iter().filter(|block| matches!(block, TextBlock::Paragraph(_))) {
                    for line in lines(std::slice::from_ref(block), &plain(), width) {
                        assert!(line.width() <= width || !line.contains(' '), "{}: {line}", chapter.topic);
                    }
                }
            }
        }
    }
}
