//! The box in which the next prompt is written. Pure.

use super::width;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Char(char),
    /// A collapsed paste: shown as a placeholder, submitted whole.
    Paste {
        shown: String,
        text: String,
    },
}

/// The largest number of items; what is typed beyond is dropped.
const MAX_ITEMS: usize = 1 << 20;

/// A draft and the place of the cursor in it.
#[derive(Debug, Clone, Default)]
pub struct Composer {
    items: Vec<Item>,
    cursor: usize,
    pastes: usize,
}

/// The composer's lines, wrapped to the terminal's width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// None is wider than the width that was asked for.
    pub rows: Vec<String>,
    pub row: usize,
    pub column: usize,
}

impl Composer {
    /// Whether the composer holds no draft.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Inserts one character at the cursor.
    pub fn insert(&mut self, c: char) {
        if self.items.len() < MAX_ITEMS {
            self.items.insert(self.cursor, Item::Char(c));
            self.cursor += 1;
        }
    }

    /// Inserts a paste. With `collapse`, a paste of 4 lines or more, or of more than 800 characters, is shown as a
    /// placeholder.
    pub fn paste(&mut self, text: &str, collapse: bool) {
        let lines = text.lines().count();
        if collapse && (lines >= 4 || text.chars().count() > 800) {
            self.pastes += 1;
            let shown = format!("[Pasted text #{} +{} lines]", self.pastes, lines);
            self.items.insert(self.cursor, Item::Paste { shown, text: text.to_owned() });
            self.cursor += 1;
            return;
        }
        let room = MAX_ITEMS.saturating_sub(self.items.len());
        let chars: Vec<Item> = text.chars().take(room).map(Item::Char).collect();
        let count = chars.len();
        self.items.splice(self.cursor..self.cursor, chars);
        self.cursor += count;
    }

    /// Deletes the item before the cursor.
    pub fn backspace(&mut self) {
        if self.cursor > 0 {
            self.cursor -= 1;
            self.items.remove(self.cursor);
        }
    }

    /// Deletes from the beginning of the cursor's line to the cursor; at the beginning of a line, the newline before it
    /// instead.
    pub fn kill_line(&mut self) {
        let start = self.line_start();
        let start = if start == self.cursor { start.saturating_sub(1) } else { start };
        self.items.drain(start..self.cursor);
        self.cursor = start;
    }

    fn line_start(&self) -> usize {
        self.items[..self.cursor].iter().rposition(|item| *item == Item::Char('\n')).map_or(0, |at| at + 1)
    }

    /// Moves the cursor one item back.
    pub fn left(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    /// Moves the cursor one item on.
    pub fn right(&mut self) {
        self.cursor = (self.cursor + 1).min(self.items.len());
    }

    /// Moves the cursor to the beginning of its line.
    pub fn home(&mut self) {
        self.cursor = self.line_start();
    }

    /// Moves the cursor to the end of its line.
    pub fn end(&mut self) {
        let rest = self.items[self.cursor..].iter().position(|item| *item == Item::Char('\n'));
        self.cursor = rest.map_or(self.items.len(), |count| self.cursor + count);
    }

    /// Takes the draft out, with collapsed pastes in full.
    pub fn take(&mut self) -> String {
        let items = std::mem::take(&mut self.items);
        self.cursor = 0;
        let mut text = String::with_capacity(items.len());
        for item in items {
            match item {
                Item::Char(c) => text.push(c),
                Item::Paste { text: paste, .. } => text.push_str(&paste),
            }
        }
        text
    }

    /// The draft in rows of at most `columns`.
    #[must_use]
    pub fn rows(&self, columns: usize) -> Rows {
        let (mut shown, mut before) = (String::new(), String::new());
        for (at, item) in self.items.iter().enumerate() {
            if at == self.cursor {
                before.clone_from(&shown);
            }
            match item {
                Item::Char('\t') => shown.push_str("    "),
                Item::Char(c) => shown.push(*c),
                Item::Paste { shown: placeholder, .. } => shown.push_str(placeholder),
            }
        }
        if self.cursor == self.items.len() {
            before.clone_from(&shown);
        }
        let to_cursor = width::wrap(&before, columns);
        let last = to_cursor.last().map_or("", String::as_str);
        let (row, column) = (to_cursor.len() - 1, width::of(last).min(columns.saturating_sub(1)));
        Rows { rows: width::wrap(&shown, columns), row, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str) -> Composer {
        let mut composer = Composer::default();
        composer.paste(text, false);
        composer
    }

    #[test]
    fn a_draft_is_edited_at_the_cursor() {
        let mut composer = with("helo\nworld");
        composer.home();
        composer.left();
        composer.left();
        composer.insert('l');
        composer.end();
        composer.insert('!');
        composer.right();
        composer.end();
        composer.backspace();
        assert_eq!(composer.take(), "hello!\nworl");
        assert!(composer.is_empty());
    }

    #[test]
    fn one_kill_takes_one_line() {
        let mut composer = with("one\ntwo");
        composer.kill_line();
        assert_eq!(composer.rows(20).rows, ["one", ""]);
        composer.kill_line();
        composer.kill_line();
        assert!(composer.is_empty());
        composer.kill_line();
    }

    #[test]
    fn a_long_paste_is_shown_short_and_submitted_whole() {
        let mut composer = Composer::default();
        composer.paste("a\nb\nc\nd", true);
        assert_eq!(composer.rows(60).rows, ["[Pasted text #1 +4 lines]"]);
        assert_eq!(composer.take(), "a\nb\nc\nd");
        composer.paste("a\nb\nc", true);
        assert_eq!(composer.rows(60).rows, ["a", "b", "c"]);
    }

    #[test]
    fn rows_are_wrapped_and_the_cursor_follows() {
        let composer = with("abcdef\nxy");
        assert_eq!(composer.rows(4), Rows { rows: vec!["abcd".into(), "ef".into(), "xy".into()], row: 2, column: 2 });
        assert_eq!(Composer::default().rows(4), Rows { rows: vec![String::new()], row: 0, column: 0 });
    }
}
