//! Keys → what they mean. Pure. The table of keys is what the help and the README show.

use super::choice::{Mode, Tab};
use crate::demo::keys::Key;

/// The keys, and what each does, for people. The README has the same table, and a test holds it to this one.
pub const KEYS: [(&str, &str); 14] = [
    ("1 … 5, Tab", "agents, handoffs, work, errors, lineage"),
    ("↑ ↓, j k", "the row before or after; Page Up, Page Down, Home and End go farther"),
    ("Enter", "all that is known of the row; Esc goes back"),
    ("h", "hand off the agent: asks for a reason and a focus, Esc aborts"),
    ("c", "cancel the handoff"),
    ("r", "retry the failed handoff; asks what you have seen when it is in doubt"),
    ("a", "accept the document as it is"),
    ("d", "dismiss the error"),
    ("g", "go to the agent's pane"),
    ("y, n", "answer a question"),
    ("Enter, Esc", "in an input line: take it, or abort"),
    ("Ctrl-U", "in an input line: empty it"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
];

/// What a person wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    Quit,
    /// To see other rows.
    Show(Tab),
    /// The list to the right, or to the left.
    Turn(bool),
    /// To select another row: so many down, or up.
    Move(isize),
    /// To see all of a row.
    Open,
    Back,
    Help,
    /// To do something to the row.
    Do(Deed),
    Answer(bool),
    /// The text in doubt is there, or is not.
    Assume(bool),
    Insert(String),
    /// To delete a character.
    Erase,
    Clear,
    /// To take what was written.
    Submit,
}

/// What can be done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    HandOff,
    Cancel,
    Retry,
    Accept,
    Dismiss,
    Jump,
}

/// What a key means; most keys mean nothing most of the time.
#[must_use]
pub fn intent(key: &Key, mode: &Mode) -> Option<Intent> {
    // Whatever is shown, C-c ends it.
    if *key == Key::Interrupt {
        return Some(Intent::Quit);
    }
    match mode {
        Mode::Browse => browsing(key),
        Mode::Details { .. } | Mode::Help { .. } => reading(key),
        Mode::Input { .. } => writing(key),
        Mode::Confirm { .. } => match key {
            Key::Char('y' | 'Y') => Some(Intent::Answer(true)),
            Key::Char('n' | 'N' | 'q') | Key::Escape => Some(Intent::Answer(false)),
            _ => None,
        },
        Mode::Doubt { .. } => match key {
            Key::Char('d') => Some(Intent::Assume(true)),
            Key::Char('n') => Some(Intent::Assume(false)),
            Key::Char('q') | Key::Escape => Some(Intent::Back),
            _ => None,
        },
    }
}

fn browsing(key: &Key) -> Option<Intent> {
    let deed = |deed| Some(Intent::Do(deed));
    match key {
        Key::Char('q') | Key::EndOfInput => Some(Intent::Quit),
        Key::Char('?') => Some(Intent::Help),
        Key::Char('h') => deed(Deed::HandOff),
        Key::Char('c') => deed(Deed::Cancel),
        Key::Char('r') => deed(Deed::Retry),
        Key::Char('a') => deed(Deed::Accept),
        Key::Char('d') => deed(Deed::Dismiss),
        Key::Char('g') => deed(Deed::Jump),
        Key::Char('\t') | Key::Right => Some(Intent::Turn(true)),
        Key::BackTab | Key::Left => Some(Intent::Turn(false)),
        Key::Enter => Some(Intent::Open),
        Key::Escape => Some(Intent::Back),
        Key::Char(digit @ '1'..='5') => {
            let place = usize::try_from(u32::from(*digit) - u32::from('1')).ok()?;
            Tab::ALL.get(place).copied().map(Intent::Show)
        }
        _ => moving(key),
    }
}

fn reading(key: &Key) -> Option<Intent> {
    match key {
        Key::Char('q' | '?') | Key::Escape | Key::Enter | Key::Left => Some(Intent::Back),
        Key::Char(' ') => Some(Intent::Move(PAGE)),
        _ => moving(key),
    }
}

/// A page of any screen that there is.
const PAGE: isize = 10;
/// Farther than any list is long.
const FAR: isize = 1 << 30;

fn moving(key: &Key) -> Option<Intent> {
    Some(Intent::Move(match key {
        Key::Char('j') | Key::Down => 1,
        Key::Char('k') | Key::Up => -1,
        Key::PageDown => PAGE,
        Key::PageUp => -PAGE,
        Key::Home => -FAR,
        Key::End => FAR,
        _ => return None,
    }))
}

fn writing(key: &Key) -> Option<Intent> {
    Some(match key {
        Key::Char('\t') => Intent::Insert(" ".to_owned()),
        Key::Char(c) => Intent::Insert(c.to_string()),
        Key::Paste(text) => Intent::Insert(text.clone()),
        Key::Backspace => Intent::Erase,
        Key::KillLine => Intent::Clear,
        Key::Enter => Intent::Submit,
        Key::Escape => Intent::Back,
        _ => return None,
    })
}
