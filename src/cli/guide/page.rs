//! A chapter as a page of the manual, section 7.

use super::blocks::{Line, TextBlock, TextStyle, parse};
use super::chapters::Chapter;
use clap_mangen::roff::{Inline, Roff, bold, roman};

/// `tasuki-TOPIC(7)`.
#[must_use]
pub fn page(chapter: &Chapter) -> Vec<u8> {
    let mut page = Roff::new();
    let name = format!("tasuki-{}", chapter.topic);
    page.control("TH", [name.as_str(), "7", "", concat!("tasuki ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {}", chapter.title()))]);
    page.control("SH", ["DESCRIPTION"]);
    // The title is the page's name already.
    draw(&mut page, &parse(chapter.text)[1..]);
    page.control("SH", ["SEE ALSO"]);
    page.text([bold("tasuki"), roman("(1)")]);
    let mut text = Vec::new();
    // Writing into memory can't fail.
    let _ = page.to_writer(&mut text);
    text
}

fn draw(page: &mut Roff, blocks: &[TextBlock]) {
    for block in blocks {
        match block {
            TextBlock::Heading(level, line) => {
                page.control(if *level <= 2 { "SH" } else { "SS" }, [plain(line).as_str()]);
            }
            TextBlock::Paragraph(line) => {
                page.control("PP", []);
                page.text(pieces(line));
            }
            TextBlock::Code(text) => {
                for (control, arguments) in [("PP", vec![]), ("RS", vec!["4"]), ("nf", vec![])] {
                    page.control(control, arguments);
                }
                text.lines().for_each(|line| {
                    page.text([roman(line)]);
                });
                page.control("fi", []);
                page.control("RE", []);
            }
            TextBlock::List(first, items) => items.iter().zip(0..).for_each(|(item, at)| {
                let sign = first.map_or_else(|| "\u{2022}".to_owned(), |first| format!("{}.", first + at));
                page.control("IP", [sign.as_str(), "4"]);
                draw_item(page, item);
            }),
            TextBlock::Table(head, rows) => table(page, head, rows),
        }
    }
}

/// The first paragraph is on the line of the item's sign.
fn draw_item(page: &mut Roff, item: &[TextBlock]) {
    let Some((TextBlock::Paragraph(line), rest)) = item.split_first() else { return draw(page, item) };
    page.text(pieces(line));
    if !rest.is_empty() {
        page.control("RS", ["4"]);
        draw(page, rest);
        page.control("RE", []);
    }
}

/// A row becomes a term and its description, because a page is read in terminals of any width.
fn table(page: &mut Roff, head: &[Line], rows: &[Vec<Line>]) {
    for row in rows {
        let Some((first, others)) = row.split_first() else { continue };
        page.control("TP", []);
        page.text([bold(plain(first))]);
        for (at, (cell, title)) in
            others.iter().zip(head.iter().skip(1)).enumerate().filter(|(_, (cell, _))| !cell.is_empty())
        {
            if at > 0 {
                page.control("br", []);
            }
            let title = plain(title);
            let named = others.len() > 1 && !title.is_empty();
            let mut line = if named { vec![roman(format!("{title}: "))] } else { Vec::new() };
            line.extend(pieces(cell));
            page.text(line);
        }
    }
}

fn plain(line: &Line) -> String {
    line.iter().map(|span| span.text.as_str()).collect()
}

fn pieces(line: &Line) -> Vec<Inline> {
    line.iter()
        .map(|span| match span.style {
            TextStyle::Plain => roman(&span.text),
            TextStyle::Strong | TextStyle::Code => bold(&span.text),
        })
        .collect()
}
