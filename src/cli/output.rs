//! Standard output and standard error: colour only if the terminal takes it, JSON on demand, and no panic when the
//! reader closes the output.

use super::error::CliError;
use super::{home_option, view};
use crate::core::text::{normalise, plain_json, sanitise};
use crate::demo::terminal;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// The escape sequences for colours. [`harmless`] lets no others through.
const GOOD: &str = "\x1b[32m";
const BAD: &str = "\x1b[31m";
const CARE: &str = "\x1b[33m";
const FAINT: &str = "\x1b[2m";
const STRONG: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// What a piece of text means; the colours follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
    Care,
    Faint,
    Strong,
}

/// Where a command prints, and in which form.
#[derive(Debug, Clone)]
pub struct Out {
    json: bool,
    colour: bool,
    live: bool,
    unicode: bool,
}

/// The parts of the environment that decide about colour.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub terminal: bool,
    /// `NO_COLOR` is set and not empty.
    pub no_colour: bool,
    /// `CLICOLOR_FORCE` is set and not `0`.
    pub force: bool,
    /// `TERM` is `dumb`.
    pub dumb: bool,
    pub unicode: bool,
}

impl Surroundings {
    /// Reads them from this process: its environment and standard output.
    #[must_use]
    pub fn read() -> Self {
        let var = |name: &str| std::env::var(name).unwrap_or_default();
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(var).into_iter().find(|value| !value.is_empty());
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        Surroundings {
            terminal: io::stdout().is_terminal(),
            no_colour: !var("NO_COLOR").is_empty(),
            force: !matches!(var("CLICOLOR_FORCE").as_str(), "" | "0"),
            dumb: var("TERM") == "dumb",
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
        }
    }

    /// Colour: never with `NO_COLOR`; always with `CLICOLOR_FORCE`; else on a terminal that is not dumb.
    #[must_use]
    pub fn colour(&self) -> bool {
        !self.no_colour && (self.force || (self.terminal && !self.dumb))
    }
}

impl Out {
    /// An output for this process's standard output and environment.
    #[must_use]
    pub fn new(json: bool) -> Self {
        Self::with(json, &Surroundings::read())
    }

    /// An output for the given surroundings, which tests choose.
    #[must_use]
    pub fn with(json: bool, around: &Surroundings) -> Self {
        Out {
            json,
            colour: around.colour() && !json,
            live: around.terminal && !around.dumb && !json,
            unicode: around.unicode && around.terminal,
        }
    }

    /// Whether `--json` was given.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether texts are coloured.
    #[must_use]
    pub fn has_colour(&self) -> bool {
        self.colour
    }

    /// A time of the contract, for a list. A terminal shows how long ago it was; a file or a pipe gets date and
    /// seconds, which stay true.
    #[must_use]
    pub fn when(&self, at: &str) -> String {
        if self.live { view::ago(at, chrono::Utc::now()) } else { view::clock(at) }
    }

    /// Whether a line may be redrawn in its place: on a terminal, without `--json`.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Whether signs beyond ASCII will be shown as they are meant.
    #[must_use]
    pub fn is_unicode(&self) -> bool {
        self.unicode
    }

    /// The text in the tone's colour, or as it is where no colour is wanted.
    #[must_use]
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => GOOD,
            Tone::Bad => BAD,
            Tone::Care => CARE,
            Tone::Faint => FAINT,
            Tone::Strong => STRONG,
        };
        if self.colour { format!("{code}{text}{PLAIN}") } else { text.to_owned() }
    }

    /// One line on standard output.
    ///
    /// # Errors
    /// When the output is closed or can't be written.
    pub fn line(&self, text: &str) -> Result<(), CliError> {
        self.raw(&format!("{}\n", harmless(text)))
    }

    /// Text as it is, on standard output, at once.
    ///
    /// # Errors
    /// When the output is closed or can't be written.
    pub fn raw(&self, text: &str) -> Result<(), CliError> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::closed_pipe(),
            _ => CliError::output(&error),
        })
    }

    /// One JSON document, indented.
    ///
    /// # Errors
    /// When the output is closed or can't be written.
    pub fn document(&self, value: &Value) -> Result<(), CliError> {
        self.line(&plain_json(&format!("{value:#}")))
    }

    /// One JSON document on one line.
    ///
    /// # Errors
    /// When the output is closed or can't be written.
    pub fn record(&self, value: &Value) -> Result<(), CliError> {
        self.line(&plain_json(&value.to_string()))
    }

    /// One line of tasuki's own on standard error; nothing under `--json`.
    pub fn note(&self, text: &str) {
        if !self.json {
            eprint_quietly(&home_option::fit(text));
        }
    }

    /// Rows under headings, each column as wide as its widest cell.
    ///
    /// # Errors
    /// When the output is closed or can't be written.
    pub fn table(&self, headings: &[&str], rows: &[Vec<String>]) -> Result<(), CliError> {
        self.toned(headings, rows, &[])
    }

    /// As [`Out::table`], each row in its tone. On a terminal, lines are cut to the terminal's width: a line that wraps
    /// looks like two.
    ///
    /// # Errors
    /// When the output is closed or can't be written.
    pub fn toned(&self, headings: &[&str], rows: &[Vec<String>], tones: &[Tone]) -> Result<(), CliError> {
        let width = if self.live { usize::from(terminal::size().0) } else { usize::MAX };
        let mut lines = columns(headings, rows).into_iter().map(|line| short_text(&line, width));
        let headings = lines.next().map(|first| self.paint(Tone::Strong, &first));
        let tones = tones.iter().copied().chain(std::iter::repeat(Tone::Plain));
        let painted = lines.zip(tones).map(|(line, tone)| self.paint(tone, &line));
        // One write for the whole table: a fleet has thousands of rows, and a write for each of them would take most of
        // the time.
        let whole: String = headings.into_iter().chain(painted).map(|line| harmless(&line) + "\n").collect();
        self.raw(&whole)
    }
}

/// A text in one line, without control characters.
#[must_use]
pub fn one_line(text: &str) -> String {
    normalise(&sanitise(text))
}

/// A text cut to so many columns; `…` stands for the part that is left out.
#[must_use]
pub fn short_text(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A percentage as a bar of five cells. From 1 % on, at least one cell is full; all five are full only from 100 % on.
#[must_use]
pub fn bar(percent: u64, unicode: bool) -> String {
    const CELLS: usize = 5;
    let full = usize::try_from(percent / 20).unwrap_or(CELLS).max(usize::from(percent > 0)).min(CELLS);
    let (on, off) = if unicode { ("█", "░") } else { ("#", "-") };
    on.repeat(full) + &off.repeat(CELLS - full)
}

/// The last filter before a terminal. It removes control characters, which may come from views, file names and system
/// errors, and keeps tasuki's own colours.
fn harmless(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut clean = sanitise(parts.next().unwrap_or_default());
    for part in parts {
        let own = [GOOD, BAD, CARE, FAINT, STRONG, PLAIN].into_iter().find(|code| part.starts_with(&code[1..]));
        clean.push_str(own.unwrap_or_default());
        clean.push_str(&sanitise(&part[own.map_or(0, |code| code.len() - 1)..]));
    }
    clean
}

/// Writes to standard error; a closed standard error is not a failure of the command.
pub fn eprint_quietly(text: &str) {
    let text = harmless(text);
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.write_all(b"\n"));
}

/// Headings and rows as aligned lines. Cells are sanitised: they may come from outside.
#[must_use]
pub fn columns(headings: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let clean = |cell: &String| {
        let clean = sanitise(cell);
        if clean.contains(['\n', '\t']) { clean.replace(['\n', '\t'], " ") } else { clean }
    };
    let mut all: Vec<Vec<String>> = vec![headings.iter().map(|heading| (*heading).to_owned()).collect()];
    all.extend(rows.iter().map(|row| row.iter().map(clean).collect()));
    let width = |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..headings.len()).map(|column| width(column).unwrap_or(0)).collect();
    all.iter()
        .map(|row| {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                // Writing to a String can't fail.
                let _ = write!(line, "{cell:<width$}  ");
            }
            line.truncate(line.trim_end().len());
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_obeys_the_usual_variables() {
        let terminal = Surroundings { terminal: true, ..Surroundings::default() };
        assert!(terminal.colour());
        assert!(!Surroundings::default().colour());
        assert!(Surroundings { force: true, ..Surroundings::default() }.colour());
        assert!(!Surroundings { no_colour: true, force: true, ..terminal }.colour());
        assert!(!Surroundings { terminal: true, dumb: true, ..Surroundings::default() }.colour());
    }

    #[test]
    fn json_is_never_coloured_and_never_drawn_twice() {
        let out = Out::with(true, &Surroundings { terminal: true, force: true, ..Surroundings::default() });
        assert_eq!(out.paint(Tone::Bad, "x"), "x");
        assert!(!out.is_live());
    }

    #[test]
    fn our_colours_are_all_that_a_terminal_is_given() {
        let out = Out::with(false, &Surroundings { force: true, ..Surroundings::default() });
        let red = out.paint(Tone::Bad, "a\x1b]0;t\x07\x1b[2Jb");
        assert_eq!(harmless(&red), "\x1b[31ma]0;t[2Jb\x1b[0m");
        assert_eq!(harmless("\u{9b}31m\x1b\x1b[31\u{202e}"), "31m[31");
    }

    #[test]
    fn a_text_is_cut_to_its_columns() {
        assert_eq!(["", "abcd", "abcde", "ab  ef"].map(|text| short_text(text, 4)), ["", "abcd", "abc…", "ab…"]);
    }

    #[test]
    fn columns_line_up_and_hold_no_control_characters() {
        let rows =
            vec![vec!["a\u{1b}[1m\nb".to_owned(), "x".to_owned()], vec!["longer cell".to_owned(), String::new()]];
        assert_eq!(columns(&["id", "state"], &rows), ["id           state", "a[1m b       x", "longer cell"]);
    }
}
