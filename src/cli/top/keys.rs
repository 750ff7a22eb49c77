//! What each key means. Pure.

use super::choice::{KeyMode, Tab};
use crate::demo::keys::Key;

/// The keys, and what each does, as the help shows it. The guide has the same table, and a test compares the two.
pub const KEYS: [(&str, &str); 15] = [
    ("1 … 5, Tab", "agents, handoffs, work, errors, lineage"),
    ("↑ ↓, j k", "previous or next row; Page Up, Page Down, Home and End go farther"),
    ("Enter", "show all details of the row; Esc goes back"),
    ("v", "read the handoff's document, its faults and the facts; Esc goes back"),
    ("h", "hand off the agent: asks for a reason and a focus, Esc aborts"),
    ("c", "cancel the handoff"),
    ("r", "retry the failed handoff; if nobody knows whether the text arrived, asks you"),
    ("a", "accept the document as it is"),
    ("d", "dismiss the error"),
    ("g", "go to the agent's pane"),
    ("y, n", "confirm a cancel, an accept or a dismiss, or not"),
    ("Enter, Esc", "in an input line: confirm, or abort"),
    ("Ctrl-U", "in an input line: clear the line"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
];

/// What a key means on the screen that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyAction {
    Quit,
    Show(Tab),
    /// Shows the list to the right (true), or to the left.
    Turn(bool),
    /// Selects another row: so many rows down, or up if the number is negative.
    Move(isize),
    Open,
    /// The document of the handoff.
    Read,
    Back,
    Help,
    Do(RowAction),
    Answer(bool),
    /// Whether the text in doubt has arrived.
    Assume(bool),
    Insert(String),
    Erase,
    Clear,
    Submit,
}

/// What can be done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowAction {
    HandOff,
    Cancel,
    Retry,
    Accept,
    Dismiss,
    Jump,
}

/// What a key means; none for a key without a meaning in this mode.
#[must_use]
pub fn key_action(key: &Key, mode: &KeyMode) -> Option<KeyAction> {
    // C-c ends the program in every mode.
    if *key == Key::Interrupt {
        return Some(KeyAction::Quit);
    }
    match mode {
        KeyMode::Browse => browsing(key),
        KeyMode::Details { .. } if *key == Key::Char('v') => Some(KeyAction::Read),
        KeyMode::Details { .. } | KeyMode::Help { .. } => reading(key),
        KeyMode::Input { .. } => writing(key),
        KeyMode::Confirm { .. } => match key {
            Key::Char('y' | 'Y') => Some(KeyAction::Answer(true)),
            Key::Char('n' | 'N' | 'q') | Key::Escape => Some(KeyAction::Answer(false)),
            _ => None,
        },
        KeyMode::Doubt { .. } => match key {
            Key::Char('d') => Some(KeyAction::Assume(true)),
            Key::Char('n') => Some(KeyAction::Assume(false)),
            Key::Char('q') | Key::Escape => Some(KeyAction::Back),
            _ => None,
        },
    }
}

fn browsing(key: &Key) -> Option<KeyAction> {
    let action = |action| Some(KeyAction::Do(action));
    match key {
        Key::Char('q') | Key::EndOfInput => Some(KeyAction::Quit),
        Key::Char('?') => Some(KeyAction::Help),
        Key::Char('h') => action(RowAction::HandOff),
        Key::Char('c') => action(RowAction::Cancel),
        Key::Char('r') => action(RowAction::Retry),
        Key::Char('a') => action(RowAction::Accept),
        Key::Char('d') => action(RowAction::Dismiss),
        Key::Char('g') => action(RowAction::Jump),
        Key::Char('\t') | Key::Right => Some(KeyAction::Turn(true)),
        Key::BackTab | Key::Left => Some(KeyAction::Turn(false)),
        Key::Enter => Some(KeyAction::Open),
        Key::Char('v') => Some(KeyAction::Read),
        Key::Escape => Some(KeyAction::Back),
        Key::Char(digit @ '1'..='5') => {
            let place = usize::try_from(u32::from(*digit) - u32::from('1')).ok()?;
            Tab::ALL.get(place).copied().map(KeyAction::Show)
        }
        _ => move_key(key),
    }
}

fn reading(key: &Key) -> Option<KeyAction> {
    match key {
        Key::Char('q' | '?') | Key::Escape | Key::Enter | Key::Left => Some(KeyAction::Back),
        Key::Char(' ') => Some(KeyAction::Move(PAGE)),
        _ => move_key(key),
    }
}

/// The number of rows of a page.
const PAGE: isize = 10;
/// A step longer than any list, so that it ends at the first or the last row.
const FAR: isize = 1 << 30;

fn move_key(key: &Key) -> Option<KeyAction> {
    Some(KeyAction::Move(match key {
        Key::Char('j') | Key::Down => 1,
        Key::Char('k') | Key::Up => -1,
        Key::PageDown => PAGE,
        Key::PageUp => -PAGE,
        Key::Home => -FAR,
        Key::End => FAR,
        _ => return None,
    }))
}

fn writing(key: &Key) -> Option<KeyAction> {
    Some(match key {
        Key::Char('\t') => KeyAction::Insert(" ".to_owned()),
        Key::Char(c) => KeyAction::Insert(c.to_string()),
        Key::Paste(text) => KeyAction::Insert(text.clone()),
        Key::Backspace => KeyAction::Erase,
        Key::KillLine => KeyAction::Clear,
        Key::Enter => KeyAction::Submit,
        Key::Escape => KeyAction::Back,
        _ => return None,
    })
}
