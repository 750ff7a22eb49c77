//! A chapter as blocks and pieces of text. Supports only what the chapters use: headings, paragraphs, lists, code,
//! tables, and within a line code, emphasis and links.

use super::chapters::CHAPTERS;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// The style of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextStyle {
    Plain,
    Strong,
    Code,
}

/// A text of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextSpan {
    pub(super) style: TextStyle,
    pub(super) text: String,
}

/// A line, or a paragraph with its lines joined by spaces.
pub(super) type Line = Vec<TextSpan>;

/// A part of a chapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TextBlock {
    /// A heading; the chapter's title has level 1.
    Heading(usize, Line),
    Paragraph(Line),
    /// Lines that are not joined.
    Code(String),
    /// The items of a list, with the number of the first item if they are numbered.
    List(Option<u64>, Vec<Vec<TextBlock>>),
    /// Headings of the columns, and the rows.
    Table(Vec<Line>, Vec<Vec<Line>>),
}

impl TextBlock {
    /// The same block, with backticks around code in sentences.
    pub(super) fn with_backticks(&self) -> TextBlock {
        let row = |row: &Vec<Line>| row.iter().map(with_backticks).collect();
        match self {
            TextBlock::Heading(level, line) => TextBlock::Heading(*level, with_backticks(line)),
            TextBlock::Paragraph(line) => TextBlock::Paragraph(with_backticks(line)),
            TextBlock::Code(text) => TextBlock::Code(text.clone()),
            TextBlock::List(first, items) => {
                let item = |item: &Vec<TextBlock>| item.iter().map(TextBlock::with_backticks).collect();
                TextBlock::List(*first, items.iter().map(item).collect())
            }
            TextBlock::Table(head, rows) => TextBlock::Table(row(head), rows.iter().map(row).collect()),
        }
    }
}

fn with_backticks(line: &Line) -> Line {
    let quoted = |span: &TextSpan| match span.style {
        TextStyle::Code => TextSpan { text: format!("`{}`", span.text), ..span.clone() },
        TextStyle::Plain | TextStyle::Strong => span.clone(),
    };
    line.iter().map(quoted).collect()
}

/// Parses a chapter.
pub(super) fn parse(text: &str) -> Vec<TextBlock> {
    let mut reader = Reader { events: Parser::new_ext(text, Options::ENABLE_TABLES) };
    reader.blocks()
}

struct Reader<'t> {
    events: Parser<'t>,
}

impl Reader<'_> {
    /// Blocks up to the end of the element around them. In a list without blank lines, the parser puts no paragraph
    /// around the text of an item: such text is collected in `loose` and becomes a paragraph too.
    fn blocks(&mut self) -> Vec<TextBlock> {
        let mut blocks = Vec::new();
        let mut loose = Line::new();
        while let Some(event) = self.events.next() {
            let block = match event {
                Event::Start(Tag::Paragraph) => TextBlock::Paragraph(self.line()),
                Event::Start(Tag::Heading { level, .. }) => TextBlock::Heading(level as usize, self.line()),
                Event::Start(Tag::CodeBlock(_)) => TextBlock::Code(self.code()),
                Event::Start(Tag::List(first)) => TextBlock::List(first, self.items()),
                Event::Start(Tag::Table(_)) => self.table(),
                Event::Start(Tag::Item | Tag::BlockQuote(_) | Tag::HtmlBlock) => {
                    blocks.extend(self.blocks());
                    continue;
                }
                Event::End(TagEnd::Item | TagEnd::BlockQuote(_) | TagEnd::HtmlBlock | TagEnd::List(_)) => break,
                other => {
                    self.piece(other, &mut loose);
                    continue;
                }
            };
            flush(&mut blocks, &mut loose);
            blocks.push(block);
        }
        flush(&mut blocks, &mut loose);
        blocks
    }

    fn items(&mut self) -> Vec<Vec<TextBlock>> {
        let mut items = Vec::new();
        while let Some(Event::Start(Tag::Item)) = self.events.next() {
            items.push(self.blocks());
        }
        items
    }

    /// The text up to the end of the element around it.
    fn line(&mut self) -> Line {
        let mut line = Line::new();
        while let Some(event) = self.events.next() {
            if let Event::End(TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::TableCell) = event {
                break;
            }
            self.piece(event, &mut line);
        }
        line
    }

    /// Adds a piece of text to the line; for emphasis and links, all pieces up to their end.
    fn piece(&mut self, event: Event<'_>, line: &mut Line) {
        match event {
            Event::Text(text) => push(line, TextStyle::Plain, &text),
            Event::Code(text) => push(line, TextStyle::Code, &text),
            Event::SoftBreak | Event::HardBreak => push(line, TextStyle::Plain, " "),
            Event::Start(Tag::Strong | Tag::Emphasis) => {
                let inner = self.inner();
                push(line, TextStyle::Strong, &inner);
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                let inner = self.inner();
                push(line, TextStyle::Plain, &inner);
                push(line, TextStyle::Plain, &target(&dest_url, &inner));
            }
            _ => {}
        }
    }

    fn inner(&mut self) -> String {
        let mut text = String::new();
        for event in self.events.by_ref() {
            match event {
                Event::Text(part) | Event::Code(part) => text.push_str(&part),
                Event::SoftBreak | Event::HardBreak => text.push(' '),
                Event::End(_) => break,
                _ => {}
            }
        }
        text
    }

    fn code(&mut self) -> String {
        let mut text = String::new();
        while let Some(Event::Text(part)) = self.events.next() {
            text.push_str(&part);
        }
        text
    }

    fn table(&mut self) -> TextBlock {
        let (mut head, mut rows) = (Vec::new(), Vec::new());
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead) => head = self.cells(),
                Event::Start(Tag::TableRow) => rows.push(self.cells()),
                Event::End(TagEnd::Table) => break,
                _ => {}
            }
        }
        TextBlock::Table(head, rows)
    }

    fn cells(&mut self) -> Vec<Line> {
        let mut cells = Vec::new();
        while let Some(Event::Start(Tag::TableCell)) = self.events.next() {
            cells.push(self.line());
        }
        cells
    }
}

fn push(line: &mut Line, style: TextStyle, text: &str) {
    match line.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ if text.is_empty() => {}
        _ => line.push(TextSpan { style, text: text.to_owned() }),
    }
}

fn flush(blocks: &mut Vec<TextBlock>, loose: &mut Line) {
    if !loose.is_empty() {
        blocks.push(TextBlock::Paragraph(std::mem::take(loose)));
    }
}

/// The target of a link, as a reader without a browser can use it: another chapter, or an address.
fn target(url: &str, shown: &str) -> String {
    let chapter = url.split('#').next().and_then(|file| file.strip_suffix(".md"));
    match chapter.and_then(|topic| CHAPTERS.iter().find(|chapter| chapter.topic == topic)) {
        Some(chapter) => format!(" (tasuki help {})", chapter.topic),
        None if url.starts_with("http") && url != shown => format!(" ({url})"),
        None => String::new(),
    }
}
