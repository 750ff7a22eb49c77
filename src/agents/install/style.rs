//! Detects the indentation and line ends of a person's file, so that inserted text looks like the rest of it.

use super::text::{JsonMember, Node, ValueKind};

/// Line ends and indentation of a file.
#[derive(Debug)]
pub(super) struct Style {
    pub(super) newline: &'static str,
    unit: String,
}

impl Style {
    /// Detects the style of a text: two blanks if the text does not show it.
    pub(super) fn of(text: &str) -> Style {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indents = text.lines().skip(1).filter(|line| !line.trim().is_empty());
        let first = indents.map(indent_of).find(|indent| !indent.is_empty());
        let unit = first.filter(|indent| indent.len() <= 8).unwrap_or("  ").to_owned();
        Style { newline, unit }
    }

    /// The pieces that put elements behind those of a container, each with the place where it goes.
    pub(super) fn append(
        &self,
        text: &str,
        into: &Node,
        source: &str,
        elements: &[(Option<&str>, &Node)],
    ) -> Vec<(usize, String)> {
        let outer = indent_of(&text[line_start(text, into.span.start)..]);
        let elements_there = into.elements();
        let (place, lead, tail) = match elements_there.last() {
            Some(last) => {
                let line = &text[line_start(text, last.start)..last.start];
                let begins_line = line.len() == indent_of(line).len() && last.start > line.len();
                (last.end, if begins_line { format!("{}{line}", self.newline) } else { " ".to_owned() }, String::new())
            }
            None => {
                let inside = &text[into.span.start + 1..into.span.end - 1];
                let tail = if inside.contains('\n') { String::new() } else { format!("{}{outer}", self.newline) };
                (into.span.start + 1, format!("{}{outer}{}", self.newline, self.unit), tail)
            }
        };
        let indent = lead.strip_prefix(self.newline);
        let mut pieces: Vec<(usize, String)> = Vec::new();
        for (key, node) in elements {
            let comma = if elements_there.is_empty() && pieces.is_empty() { "" } else { "," };
            let key = key.map(written_key).unwrap_or_default();
            let value = self.write(source, node, indent.unwrap_or_default(), indent.is_some());
            pieces.push((place, format!("{comma}{lead}{key}{value}")));
        }
        if let Some((_, last)) = pieces.last_mut() {
            last.push_str(&tail);
        }
        pieces
    }

    /// A value as text: over several lines, as the CLIs' own writers do it, or on one.
    pub(super) fn write(&self, source: &str, node: &Node, indent: &str, lines: bool) -> String {
        let deeper = format!("{indent}{}", self.unit);
        let (open, close, parts): (_, _, Vec<String>) = match &node.kind {
            ValueKind::Object(members) => {
                let part = |one: &JsonMember| written_key(&one.key) + &self.write(source, &one.value, &deeper, lines);
                ('{', '}', members.iter().map(part).collect())
            }
            ValueKind::Array(items) => {
                ('[', ']', items.iter().map(|item| self.write(source, item, &deeper, lines)).collect())
            }
            ValueKind::Scalar(_) => return source[node.span.clone()].to_owned(),
        };
        if parts.is_empty() {
            format!("{open}{close}")
        } else if lines {
            let between = format!(",{}{deeper}", self.newline);
            format!("{open}{0}{deeper}{1}{0}{indent}{close}", self.newline, parts.join(&between))
        } else {
            format!("{open}{}{close}", parts.join(", "))
        }
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// A key as it is written, with its colon.
fn written_key(key: &str) -> String {
    format!("{}: ", serde_json::Value::from(key))
}

/// The blanks and tabs with which a line begins.
fn indent_of(line: &str) -> &str {
    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[..blank]
}
