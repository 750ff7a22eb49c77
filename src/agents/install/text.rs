//! JSON as text: the position of each value, so that a person's own file can be changed at single places and stays as
//! it is everywhere else. Values are interpreted only as far as that needs.

use serde_json::Value;
use std::ops::Range;

/// How deeply values may be nested.
const MAX_DEPTH: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// JSON as RFC 8259 has it.
    Json,
    /// JSON with `//` and `/* */` comments and commas behind the last element.
    Jsonc,
}

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in characters, from 1.
    pub(super) column: usize,
    pub(super) message: String,
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// From its first byte to behind its last.
    pub(super) span: Range<usize>,
    pub(super) kind: ValueKind,
}

#[derive(Debug, Clone)]
pub(super) enum ValueKind {
    Object(Vec<JsonMember>),
    Array(Vec<Node>),
    Scalar(Value),
}

#[derive(Debug, Clone)]
pub(super) struct JsonMember {
    pub(super) key: String,
    /// The position of the key's quotation mark.
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Node {
    /// The value for comparison. Of a repeated key the last value counts, as in every parser that the CLIs use.
    pub(super) fn value(&self) -> Value {
        match &self.kind {
            ValueKind::Object(members) => members
                .iter()
                .map(|member| (member.key.clone(), member.value.value()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            ValueKind::Array(items) => items.iter().map(Node::value).collect::<Vec<_>>().into(),
            ValueKind::Scalar(value) => value.clone(),
        }
    }

    /// The member of that name, if this is an object that has one.
    pub(super) fn member(&self, key: &str) -> Option<&JsonMember> {
        match &self.kind {
            ValueKind::Object(members) => members.iter().rfind(|member| member.key == key),
            ValueKind::Array(_) | ValueKind::Scalar(_) => None,
        }
    }

    /// The positions of its elements; for an object, key included.
    pub(super) fn elements(&self) -> Vec<Range<usize>> {
        match &self.kind {
            ValueKind::Object(members) => members.iter().map(|member| member.start..member.value.span.end).collect(),
            ValueKind::Array(items) => items.iter().map(|item| item.span.clone()).collect(),
            ValueKind::Scalar(_) => Vec::new(),
        }
    }

    /// The name of its kind in a message.
    pub(super) fn as_str(&self) -> &'static str {
        match &self.kind {
            ValueKind::Object(_) => "an object",
            ValueKind::Array(_) => "a list",
            ValueKind::Scalar(Value::String(_)) => "a string",
            ValueKind::Scalar(Value::Number(_)) => "a number",
            ValueKind::Scalar(Value::Bool(_)) => "a boolean",
            ValueKind::Scalar(_) => "null",
        }
    }
}

/// Reads one JSON value that fills the whole text.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub(super) fn parse(text: &str, notation: Notation) -> Result<Node, SyntaxError> {
    let mut parser = Parser { text, at: 0, notation };
    if text.starts_with('\u{FEFF}') {
        // Editors don't show it, so the position alone would not help a person.
        return Err(parser.fault("the text begins with a byte order mark; save the file as UTF-8 without it"));
    }
    parser.skip()?;
    let node = parser.value(0)?;
    parser.skip()?;
    if parser.at < text.len() { Err(parser.fault("more text follows after the end of the value")) } else { Ok(node) }
}

/// The line and the column of a byte, both from 1.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at.min(text.len())];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The first place at or after `at` that is neither white space nor comment.
pub(super) fn skip_trivia(text: &str, at: usize, notation: Notation) -> usize {
    let mut parser = Parser { text, at, notation };
    // In a text that was parsed before, no comment is left open.
    let _ = parser.skip();
    parser.at
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    notation: Notation,
}

impl Parser<'_> {
    fn fault(&self, message: impl Into<String>) -> SyntaxError {
        self.fault_at(self.at, message)
    }

    fn fault_at(&self, at: usize, message: impl Into<String>) -> SyntaxError {
        let (line, column) = place(self.text, at);
        SyntaxError { line, column, message: message.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips white space, and comments where the notation has them.
    fn skip(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(b'/') if self.rest().starts_with("//") || self.rest().starts_with("/*") => {
                    if self.notation == Notation::Json {
                        return Err(self.fault("comments are not allowed in this file's format"));
                    }
                    let line = self.rest().starts_with("//");
                    let end = if line { self.rest().find('\n') } else { self.rest().find("*/").map(|end| end + 2) };
                    self.at += match end {
                        Some(end) => end,
                        None if line => self.rest().len(),
                        None => return Err(self.fault("this comment is not closed")),
                    };
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.fault(format!("values are nested more than {MAX_DEPTH} levels deep")));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => ValueKind::Scalar(Value::String(self.string()?)),
            Some(_) => self.word()?,
            None => return Err(self.fault("the text ends where a value is expected")),
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<ValueKind, SyntaxError> {
        let mut members = Vec::new();
        self.at += 1;
        while self.more(b'}', members.is_empty())? {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.fault("a key in quotation marks is expected here"));
            }
            let key = self.string()?;
            self.skip()?;
            if self.peek() != Some(b':') {
                return Err(self.fault("a colon is expected here"));
            }
            self.at += 1;
            self.skip()?;
            members.push(JsonMember { key, start, value: self.value(depth + 1)? });
        }
        Ok(ValueKind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<ValueKind, SyntaxError> {
        let mut items = Vec::new();
        self.at += 1;
        while self.more(b']', items.is_empty())? {
            items.push(self.value(depth + 1)?);
        }
        Ok(ValueKind::Array(items))
    }

    /// Goes to the next element and returns `true`, or skips the closing bracket and returns `false`.
    fn more(&mut self, close: u8, first: bool) -> Result<bool, SyntaxError> {
        self.skip()?;
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(false);
        }
        if first {
            return Ok(true);
        }
        if self.peek() != Some(b',') {
            return Err(self.fault(format!("a comma or {} is expected here", char::from(close))));
        }
        let comma = self.at;
        self.at += 1;
        self.skip()?;
        if self.peek() != Some(close) {
            return Ok(true);
        }
        if self.notation == Notation::Json {
            return Err(self.fault_at(comma, "a comma is not allowed after the last element"));
        }
        self.at += 1;
        Ok(false)
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(0..0x20) => return Err(self.fault_at(end, "a control character must be escaped")),
                Some(_) => end += 1,
                None => return Err(self.fault("this string is not closed")),
            }
        }
        self.at = end + 1;
        serde_json::from_str(&self.text[start..self.at])
            .map_err(|_| self.fault_at(start, "this string holds a wrong escape"))
    }

    fn word(&mut self) -> Result<ValueKind, SyntaxError> {
        let length =
            self.rest().find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(self.rest().len());
        let word = &self.rest()[..length];
        let value = serde_json::from_str::<Value>(word).map_err(|_| self.fault("a value is expected here"))?;
        self.at += length;
        Ok(ValueKind::Scalar(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fault(text: &str) -> (usize, usize, String) {
        let fault = parse(text, Notation::Json).expect_err(text);
        (fault.line, fault.column, fault.message)
    }

    #[test]
    fn faults_have_their_line_and_column() {
        assert_eq!(fault("{\n  \"a\" 1}").0, 2);
        assert_eq!((fault("{\n  \"ä\" 1}").1, fault("[1,]").1, fault("").1), (7, 3, 1));
        assert!(fault("{ // mine\n}").2.contains("comment"));
        assert!(fault(&"[".repeat(200)).2.contains("128"));
        assert!(fault("{} {}").2.contains("more text"));
        assert!(fault("\u{FEFF}{}").2.contains("byte order mark"));
    }

    #[test]
    fn the_other_notation_has_comments_and_commas() {
        let text = "// a\n{\"b\": [1, /* c */ 2,], }\n// d";
        let node = parse(text, Notation::Jsonc).expect("it is right");
        assert_eq!(node.value(), serde_json::json!({"b": [1, 2]}));
        assert!(parse("{ /* open", Notation::Jsonc).is_err());
    }

    proptest! {
        #[test]
        fn the_parser_accepts_the_same_json_as_serde(text in r#"[\[\]{},:"0-9a\\nu. -]{0,24}"#) {
            let usual = serde_json::from_str::<Value>(&text);
            let ours = parse(&text, Notation::Json);
            prop_assert_eq!(ours.as_ref().map(Node::value).ok(), usual.ok());
        }

        #[test]
        fn the_parser_never_panics(text in ".{0,64}") {
            let _ = parse(&text, Notation::Json);
            let _ = parse(&text, Notation::Jsonc);
        }
    }
}
