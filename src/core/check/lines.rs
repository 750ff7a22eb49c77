//! Reads a document line by line, and says what each line is: front matter, heading, fence, code, text.

use super::front_matter::front_matter_lines;

/// The largest number of lines that are read, so that the work is bounded. No real document has so many.
const MOST_LINES: usize = 20_000;
/// Longest heading that is only bold or underlined, in bytes. A longer one is a sentence.
const MAX_HEADING: usize = 100;
/// The level of a heading that is only bold: below all others.
pub(super) const BOLD: u8 = 7;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    FrontMatter,
    /// With its level: 1 to 6, or [`BOLD`] for a line that is only bold.
    Heading(u8),
    /// The first or the last line of a fenced block.
    Fence,
    /// Inside a fenced or an indented block.
    Code,
    /// Not shown to a reader: inside an HTML comment, or the line of `===` or `---` under a heading.
    Unseen,
    Blank,
    Text,
}

/// One line of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct DocumentLine<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
    /// The same with ASCII letters in lower case.
    pub(super) lower: &'a str,
    pub(super) kind: LineKind,
}

impl DocumentLine<'_> {
    pub(super) fn level(&self) -> Option<u8> {
        if let LineKind::Heading(level) = self.kind { Some(level) } else { None }
    }

    /// Whether the line is content, not structure.
    pub(super) fn is_body(&self) -> bool {
        matches!(self.kind, LineKind::Text | LineKind::Code)
    }
}

/// A document as its lines.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) lines: Vec<DocumentLine<'a>>,
    /// The line with a fence that never closes.
    pub(super) open_fence: Option<usize>,
    /// The document has more lines than were read.
    pub(super) is_cut: bool,
}

/// Reads a document. `lower` is the same text with ASCII letters in lower case.
pub(super) fn read<'a>(text: &'a str, lower: &'a str) -> Document<'a> {
    let (text, lower) = match (text.strip_prefix('\u{feff}'), lower.strip_prefix('\u{feff}')) {
        (Some(text), Some(lower)) => (text, lower),
        _ => (text, lower),
    };
    let mut both = text.lines().zip(lower.lines()).enumerate();
    let line = |(at, (text, lower))| DocumentLine { number: at + 1, text, lower, kind: LineKind::Text };
    let mut lines: Vec<DocumentLine<'a>> = both.by_ref().take(MOST_LINES).map(line).collect();
    let front = front_matter_lines(text);
    lines[..front].iter_mut().for_each(|line| line.kind = LineKind::FrontMatter);
    let is_cut = both.next().is_some();
    let open_fence = classify(&mut lines[front..]).filter(|_| !is_cut);
    Document { lines, open_fence, is_cut }
}

/// Finds out what each line is. Returns the line with a fence that never closes.
fn classify(lines: &mut [DocumentLine<'_>]) -> Option<usize> {
    let mut fences = Fences::default();
    let mut comments = Comments::default();
    let mut is_list = false;
    for at in 0..lines.len() {
        let line = lines[at];
        if at < comments.end {
            lines[at].kind = LineKind::Unseen;
            continue;
        }
        let found = fence(line.text).filter(|fence| fence.indent < 4 || is_list || fences.open.is_some());
        if fences.takes(line.number, line.text, found.as_ref()) {
            let is_mark = found.is_some() && fences.is_at_edge;
            lines[at].kind = if is_mark { LineKind::Fence } else { LineKind::Code };
            continue;
        }
        if comments.begin(lines, at) {
            lines[at].kind = LineKind::Unseen;
            continue;
        }
        is_list = if line.text.trim().is_empty() { is_list } else { is_list_item(line.text, is_list) };
        let is_in_block = at == 0 || matches!(lines[at - 1].kind, LineKind::Blank | LineKind::Code);
        let is_indented = indent(line.text) >= 4 && is_in_block && !is_list;
        lines[at].kind = if is_indented && !line.text.trim().is_empty() { LineKind::Code } else { kind(line.text) };
        if underline_level(line.text).is_some() && at > 0 && is_setext(&lines[at - 1]) {
            lines[at - 1].kind = LineKind::Heading(underline_level(line.text).unwrap_or(2));
            lines[at].kind = LineKind::Unseen;
        }
    }
    fences.never_closed()
}

fn kind(text: &str) -> LineKind {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return LineKind::Blank;
    }
    let marks = trimmed.bytes().take_while(|byte| *byte == b'#').count();
    let is_atx = (1..=6).contains(&marks) && trimmed[marks..].chars().next().is_none_or(char::is_whitespace);
    if is_atx && indent(text) < 4 {
        return LineKind::Heading(u8::try_from(marks).unwrap_or(6));
    }
    if is_bold(trimmed) { LineKind::Heading(BOLD) } else { LineKind::Text }
}

/// Whether the whole line is one bold text, such as `**Next steps:**`.
fn is_bold(trimmed: &str) -> bool {
    let inside = |mark: &str| {
        let rest = trimmed.strip_prefix(mark)?;
        let inside = rest.strip_suffix(':').unwrap_or(rest).strip_suffix(mark)?;
        (!inside.trim().is_empty() && !inside.contains(mark) && trimmed.len() < MAX_HEADING).then_some(())
    };
    inside("**").or_else(|| inside("__")).is_some()
}

/// If a line can underline a heading, with `===` or `---`: the level of that heading.
fn underline_level(text: &str) -> Option<u8> {
    let trimmed = text.trim();
    let is_line_of = |mark: u8| trimmed.len() >= 3 && trimmed.bytes().all(|byte| byte == mark);
    if indent(text) > 3 {
        return None;
    }
    is_line_of(b'=').then_some(1).or_else(|| is_line_of(b'-').then_some(2))
}

/// Whether the line can be a heading that the next line underlines: no long sentence, list item or table row.
fn is_setext(line: &DocumentLine<'_>) -> bool {
    let text = line.text.trim();
    let is_sentence = text.ends_with(['.', ';', ',', ':', '|', '`', ')']) || text.starts_with(['|', '>', '<']);
    line.kind == LineKind::Text && text.len() < MAX_HEADING && !is_sentence && !is_list_item(line.text, false)
}

/// Finds HTML comments.
#[derive(Debug, Default)]
struct Comments {
    /// The index after the last line of the last comment.
    end: usize,
    /// The index of the line at which the last search for `-->` ended, so that no line is searched twice.
    next: usize,
}

impl Comments {
    /// Whether a comment begins in this line. The comment must have an end, and no text before or after it.
    fn begin(&mut self, lines: &[DocumentLine<'_>], at: usize) -> bool {
        if !lines[at].text.trim_start().starts_with("<!--") {
            return false;
        }
        self.next = self.next.max(at);
        while lines.get(self.next).is_some_and(|line| !line.text.contains("-->")) {
            self.next += 1;
        }
        let is_alone = lines.get(self.next).is_some_and(|line| line.text.trim_end().ends_with("-->"));
        if is_alone {
            self.end = self.next + 1;
        }
        is_alone
    }
}

/// White space before the text, in columns.
fn indent(text: &str) -> usize {
    text.bytes().map_while(|byte| if byte == b' ' { Some(1) } else { (byte == b'\t').then_some(4) }).sum()
}

/// Whether a line begins a list item, or continues one.
fn is_list_item(text: &str, is_list: bool) -> bool {
    let trimmed = text.trim_start();
    list_marker(trimmed).is_some() || (is_list && trimmed.len() < text.len())
}

/// The text after the marker of a list item: `-`, `*`, `+`, `1.` or `1)`.
pub(super) fn list_marker(trimmed: &str) -> Option<&str> {
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).take(10).count();
    let rest =
        if digits == 0 { trimmed.strip_prefix(['-', '*', '+']) } else { trimmed[digits..].strip_prefix(['.', ')']) };
    rest.filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// A line that can begin or end a fenced block.
#[derive(Debug, Clone, Copy)]
struct Fence<'a> {
    mark: u8,
    length: usize,
    /// The text after the marks, such as `rust`.
    info: &'a str,
    indent: usize,
    is_quoted: bool,
    is_in_item: bool,
}

fn fence(text: &str) -> Option<Fence<'_>> {
    let mut rest = text.trim_start();
    // This quick look spares the rest for almost all lines.
    if !rest.starts_with(['`', '~', '>', '-', '*', '+']) && !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (mut is_quoted, mut is_in_item) = (false, false);
    for _ in 0..8 {
        if let Some(quoted) = rest.strip_prefix('>') {
            (rest, is_quoted) = (quoted.trim_start(), true);
        } else if let Some(item) = list_marker(rest) {
            (rest, is_in_item) = (item.trim_start(), true);
        }
    }
    let mark = rest.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = rest.bytes().take_while(|byte| *byte == mark).count();
    let info = rest[length..].trim();
    let is_fence = length >= 3 && !(mark == b'`' && info.contains('`'));
    is_fence.then(|| Fence { mark, length, info, indent: indent(text), is_quoted, is_in_item })
}

/// The fences of a document, read in two ways. In Markdown, each block ends at the first fence that can end it: `open`.
/// Authors who show a document inside a document often mean blocks that are nested: `nested`.
#[derive(Debug, Default)]
struct Fences {
    open: Option<OpenFence>,
    nested: Vec<OpenFence>,
    /// The last line given to [`Fences::takes`] began or ended a block.
    is_at_edge: bool,
}

#[derive(Debug, Clone, Copy)]
struct OpenFence {
    mark: u8,
    length: usize,
    line: usize,
    is_quoted: bool,
}

impl OpenFence {
    fn is_ended_by(&self, fence: &Fence<'_>) -> bool {
        fence.mark == self.mark && fence.length >= self.length && fence.info.is_empty() && !fence.is_in_item
    }
}

impl Fences {
    /// Takes the next line. Returns whether it belongs to a fenced block.
    fn takes(&mut self, number: usize, text: &str, found: Option<&Fence<'_>>) -> bool {
        self.is_at_edge = false;
        // The end of a quotation also ends a fenced block in it.
        if self.open.is_some_and(|open| open.is_quoted) && !text.trim_start().starts_with('>') {
            self.open = None;
            self.nested.retain(|open| !open.is_quoted);
        }
        let Some(fence) = found else { return self.open.is_some() };
        let begun = OpenFence { mark: fence.mark, length: fence.length, line: number, is_quoted: fence.is_quoted };
        if self.nested.last().is_some_and(|open| open.is_ended_by(fence)) {
            self.nested.pop();
        } else if self.nested.is_empty() || !fence.info.is_empty() {
            self.nested.push(begun);
        }
        match self.open {
            Some(open) if open.is_ended_by(fence) => (self.open, self.is_at_edge) = (None, true),
            Some(_) => {}
            None => (self.open, self.is_at_edge) = (Some(begun), true),
        }
        true
    }

    /// The line of the fence that is still open at the end, if one is open in both readings.
    fn never_closed(&self) -> Option<usize> {
        self.open.filter(|_| !self.nested.is_empty()).map(|open| open.line)
    }
}
