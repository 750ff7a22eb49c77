//! Merges a template into a person's JSON file and removes it again. Only single places change, so everything else
//! stays byte for byte as it was.
//!
//! A template is an object. Objects in it are merged by key; each element of a list, and each other value, is one
//! *unit* that is inserted after what is there. The inserted text is recorded in pieces, so removing it restores the
//! original bytes, even if other parts of the file were changed in between. If a piece is no longer found as it was
//! (somebody rewrote the file), the units are found by their content.

use super::shape::Shape;
use super::style::Style;
use super::text::{Node, Notation, SyntaxError, ValueKind, parse, place, skip_trivia};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Range;

/// The largest number of units that are looked for in one file.
const MAX_UNITS: usize = 10_000;

/// One piece of text that was put in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    /// Where it begins in the text as it was then, in bytes.
    pub(super) at: usize,
    pub(super) text: String,
}

/// The place of a unit of ours: the keys that lead there, and the index in a list.
type Place = (Vec<String>, Option<usize>);

#[derive(Debug, Clone)]
pub(super) struct Merged {
    pub(super) text: String,
    pub(super) pieces: Vec<Piece>,
    /// The keys of single values that were put in: unlike elements of lists, they can't be told from a person's own.
    pub(super) set: Vec<Vec<String>>,
}

/// What is put in: with this home's values, and with [`ANY`](super::shape::ANY) for them.
#[derive(Debug)]
pub(super) struct Template {
    text: String,
    root: Node,
    units: Vec<(Vec<String>, Unit)>,
    shapes: Vec<(Vec<String>, Shape)>,
    notation: Notation,
}

impl Template {
    /// Reads a profile's template. `shape` is the same text with [`ANY`](super::shape::ANY) for what may differ.
    ///
    /// # Errors
    /// When the text is not a JSON object.
    pub(super) fn new(profile: &str, [text, shape]: [&str; 2], notation: Notation) -> Result<Self, SyntaxError> {
        let (root, any) = (parse(text, Notation::Json)?, parse(shape, Notation::Json)?);
        let ValueKind::Object(_) = root.kind else {
            return Err(SyntaxError { line: 1, column: 1, message: "a JSON object is expected here".into() });
        };
        let mut units = Vec::new();
        collect(&root, &mut Vec::new(), &mut units);
        let mut shapes = Vec::new();
        collect(&any, &mut Vec::new(), &mut shapes);
        // Only the values of the two texts differ, so both have the same units in the same order.
        let pairs = units.iter().zip(shapes).filter(|((_, unit), _)| unit.is_element);
        let shape = |own: &Unit, any: Unit| Shape::new(own.value.clone(), any.value, profile);
        let shapes = pairs.map(|((path, own), (_, any))| (path.clone(), shape(own, any))).collect();
        Ok(Template { text: text.to_owned(), root, units, shapes, notation })
    }

    /// The file's own tree; `None` for a text of white space alone.
    pub(super) fn read(&self, text: &str) -> Result<Option<Node>, SyntaxError> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let node = parse(text, self.notation)?;
        match node.kind {
            ValueKind::Object(_) => Ok(Some(node)),
            _ => Err(at(text, node.span.start, format!("an object is expected here, but this is {}", node.as_str()))),
        }
    }

    /// Whether every unit is there as it should be, without an older form of any.
    ///
    /// # Errors
    /// When the text can't be read.
    pub(super) fn is_whole(&self, text: &str) -> Result<bool, SyntaxError> {
        let Some(root) = self.read(text)? else { return Ok(false) };
        let is_there = |(path, unit): &(Vec<String>, Unit)| follow(&root, path).is_some_and(|node| unit.is_in(node));
        let elements = self.units.iter().filter(|(_, unit)| unit.is_element).count();
        Ok(self.units.iter().all(is_there) && self.ours(&root, &[]).len() == elements)
    }

    /// Inserts every unit; none of ours may be there.
    ///
    /// # Errors
    /// When the text can't be read, or holds another kind of value where ours would go.
    pub(super) fn put_in(&self, text: &str) -> Result<Merged, SyntaxError> {
        let style = Style::of(text);
        let mut filling = Filling { style: &style, text, source: &self.text, edits: Vec::new(), set: Vec::new() };
        match self.read(text)? {
            Some(root) => filling.fill(&root, &self.root, &mut Vec::new())?,
            None => {
                let piece = style.write(&self.text, &self.root, "", true) + style.newline;
                filling.edits.push((text.len(), piece));
            }
        }
        let Filling { edits, set, .. } = filling;
        let (text, pieces) = apply(text, edits);
        Ok(Merged { text, pieces, set })
    }

    /// Removes what `put_in` inserted: exactly those pieces if they can be found, otherwise every element that is ours,
    /// and every value in `set` that is still as we set it.
    ///
    /// # Errors
    /// When the text can't be read.
    pub(super) fn take_out(&self, text: &str, pieces: &[Piece], set: &[Vec<String>]) -> Result<String, SyntaxError> {
        self.read(text)?;
        let is_clean = |rest: &String| self.count(rest, pieces) == Ok(0);
        let exact = without(text, pieces).filter(is_clean);
        if let Some(rest) = exact.or_else(|| without_wherever(text, pieces).filter(is_clean)) {
            return Ok(rest);
        }
        let mut text = text.to_owned();
        for _ in 0..MAX_UNITS {
            let Some(root) = self.read(&text)? else { break };
            let values = set.iter().filter(|path| self.is_as_set(&root, path)).map(|path| (path.clone(), None));
            let Some(place) = self.ours(&root, pieces).into_iter().chain(values).last() else { break };
            text = self.take_one(&text, &root, &place);
        }
        Ok(text)
    }

    fn is_as_set(&self, root: &Node, path: &[String]) -> bool {
        let unit = self.units.iter().find(|(own, unit)| own == path && !unit.is_element);
        unit.zip(follow(root, path)).is_some_and(|((_, unit), node)| unit.is_in(node))
    }

    /// How many elements of ours are in a text, when these pieces are recorded.
    ///
    /// # Errors
    /// When the text can't be read.
    pub(super) fn count(&self, text: &str, recorded: &[Piece]) -> Result<usize, SyntaxError> {
        Ok(self.read(text)?.map_or(0, |root| self.ours(&root, recorded).len()))
    }

    /// The elements of lists that are ours: the keys, and the index in the list.
    fn ours(&self, root: &Node, recorded: &[Piece]) -> Vec<Place> {
        let mut found: Vec<Place> = Vec::new();
        let is_recorded = |json: &str| recorded.iter().any(|piece| piece.text.contains(json));
        for (path, shape) in &self.shapes {
            if let Some(ValueKind::Array(items)) = follow(root, path).map(|node| &node.kind) {
                let fits = items.iter().enumerate().filter(|(_, item)| shape.is_ours(&item.value(), is_recorded));
                found.extend(fits.map(|(number, _)| (path.clone(), Some(number))));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// Takes out one unit, and the containers that this leaves empty.
    fn take_one(&self, text: &str, root: &Node, (path, number): &Place) -> String {
        let mut path = path.clone();
        let mut number = *number;
        loop {
            let (holder, index) = match number {
                Some(index) => (follow(root, &path), Some(index)),
                None => {
                    let key = path.pop();
                    let holder = follow(root, &path);
                    let index = holder.zip(key).and_then(|(holder, key)| match &holder.kind {
                        ValueKind::Object(members) => members.iter().rposition(|member| member.key == key),
                        _ => None,
                    });
                    (holder, index)
                }
            };
            // Both are there: the path was found in this very tree.
            let (Some(holder), Some(index)) = (holder, index) else { return text.to_owned() };
            // A repeated key is left alone, because removing it would reveal the other value.
            if holder.elements().len() == 1 && is_only(root, &path) {
                number = None;
                continue;
            }
            return remove(text, holder, index, self.notation);
        }
    }
}

struct Filling<'t> {
    style: &'t Style,
    text: &'t str,
    source: &'t str,
    edits: Vec<(usize, String)>,
    set: Vec<Vec<String>>,
}

impl Filling<'_> {
    fn fill(&mut self, into: &Node, from: &Node, path: &mut Vec<String>) -> Result<(), SyntaxError> {
        let mut missing: Vec<(Option<&str>, &Node)> = Vec::new();
        match (&into.kind, &from.kind) {
            (ValueKind::Object(_), ValueKind::Object(members)) => {
                for member in members {
                    path.push(member.key.clone());
                    match into.member(&member.key) {
                        Some(mine) => self.fill(&mine.value, &member.value, path)?,
                        None => {
                            let mut units = Vec::new();
                            collect(&member.value, path, &mut units);
                            self.set
                                .extend(units.into_iter().filter(|(_, unit)| !unit.is_element).map(|(path, _)| path));
                            missing.push((Some(&member.key), &member.value));
                        }
                    }
                    path.pop();
                }
            }
            (ValueKind::Array(_), ValueKind::Array(items)) => missing.extend(items.iter().map(|item| (None, item))),
            (ValueKind::Scalar(mine), ValueKind::Scalar(value)) if mine == value => {}
            _ => {
                let wanted = from.as_str();
                let message = format!("`{}` must be {wanted} here, but it is {}", path.join("."), into.as_str());
                return Err(at(self.text, into.span.start, message));
            }
        }
        self.edits.extend(self.style.append(self.text, into, self.source, &missing));
        Ok(())
    }
}

/// One value of a template that is put in as a whole.
#[derive(Debug)]
struct Unit {
    value: Value,
    /// It is an element of a list; else a value under its own key.
    is_element: bool,
}

impl Unit {
    /// Whether it is in that list, or is that value.
    fn is_in(&self, node: &Node) -> bool {
        match &node.kind {
            ValueKind::Array(items) if self.is_element => items.iter().any(|item| item.value() == self.value),
            _ => !self.is_element && node.value() == self.value,
        }
    }
}

/// Objects are walked through; elements of lists and other values are units.
fn collect(node: &Node, path: &mut Vec<String>, units: &mut Vec<(Vec<String>, Unit)>) {
    match &node.kind {
        ValueKind::Object(members) => {
            for member in members {
                path.push(member.key.clone());
                collect(&member.value, path, units);
                path.pop();
            }
        }
        ValueKind::Array(items) => {
            units.extend(items.iter().map(|item| (path.clone(), Unit { value: item.value(), is_element: true })));
        }
        ValueKind::Scalar(value) => units.push((path.clone(), Unit { value: value.clone(), is_element: false })),
    }
}

fn follow<'n>(root: &'n Node, path: &[String]) -> Option<&'n Node> {
    path.iter().try_fold(root, |node, key| node.member(key).map(|member| &member.value))
}

/// Whether the last key of a path occurs once in its object; false for the root.
fn is_only(root: &Node, path: &[String]) -> bool {
    let Some((key, above)) = path.split_last() else { return false };
    match follow(root, above).map(|node| &node.kind) {
        Some(ValueKind::Object(members)) => members.iter().filter(|member| member.key == *key).count() == 1,
        _ => false,
    }
}

fn at(text: &str, byte: usize, message: String) -> SyntaxError {
    let (line, column) = place(text, byte);
    SyntaxError { line, column, message }
}

/// Puts the pieces in at their places in the text as it was; several at one place stay in order.
fn apply(text: &str, mut edits: Vec<(usize, String)>) -> (String, Vec<Piece>) {
    edits.sort_by_key(|(at, _)| *at);
    let (mut merged, mut pieces) = (String::with_capacity(text.len() + 1024), Vec::new());
    let mut from = 0;
    for (at, piece) in edits {
        merged.push_str(&text[from..at]);
        pieces.push(Piece { at: merged.len(), text: piece.clone() });
        merged.push_str(&piece);
        from = at;
    }
    merged.push_str(&text[from..]);
    (merged, pieces)
}

/// The text without the pieces, if they are where they were inserted.
fn without(text: &str, pieces: &[Piece]) -> Option<String> {
    let mut rest = text.to_owned();
    for piece in pieces.iter().rev() {
        if !rest.get(piece.at..)?.starts_with(&piece.text) {
            return None;
        }
        rest.replace_range(piece.at..piece.at + piece.text.len(), "");
    }
    (!pieces.is_empty()).then_some(rest)
}

/// The text without the pieces, wherever they are, if each occurs as often as it was inserted.
fn without_wherever(text: &str, pieces: &[Piece]) -> Option<String> {
    let mut texts: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
    // The longest first: a short piece may be a part of a long one.
    texts.sort_by_key(|text| (std::cmp::Reverse(text.len()), *text));
    let mut rest = text.to_owned();
    for same in texts.chunk_by(|a, b| a == b) {
        if rest.matches(same[0]).count() != same.len() {
            return None;
        }
        rest = rest.replace(same[0], "");
    }
    (!pieces.is_empty()).then_some(rest)
}

/// The text without one element. Comments around it stay.
fn remove(text: &str, holder: &Node, index: usize, notation: Notation) -> String {
    let elements = holder.elements();
    let own = elements[index].clone();
    let comma_after = |from: usize| {
        let comma = skip_trivia(text, from, notation);
        (text.as_bytes().get(comma) == Some(&b',')).then_some(comma)
    };
    let is_blank = |range: Range<usize>| text[range].chars().all(|c| c.is_whitespace() || c == ',');
    let mut cuts = vec![own.clone()];
    if index > 0 {
        let before = elements[index - 1].end;
        if is_blank(before..own.start) {
            cuts[0] = before..own.end;
        } else if let Some(comma) = comma_after(before) {
            cuts.push(comma..comma + 1);
        }
    } else if let Some(next) = elements.get(1) {
        let end = if is_blank(own.end..next.start) {
            next.start
        } else {
            comma_after(own.end).map_or(own.end, |comma| comma + 1)
        };
        cuts[0] = own.start..end;
    } else {
        let inside = holder.span.start + 1..holder.span.end - 1;
        if is_blank(inside.start..own.start) && is_blank(own.end..inside.end) {
            cuts[0] = inside;
        } else if let Some(comma) = comma_after(own.end) {
            cuts.push(comma..comma + 1);
        }
    }
    cuts.sort_by_key(|cut| std::cmp::Reverse(cut.start));
    let mut rest = text.to_owned();
    cuts.into_iter().for_each(|cut| rest.replace_range(cut, ""));
    rest
}
