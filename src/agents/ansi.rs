//! A captured screen as cells. `capture-pane -e` prints one line for each row, with an SGR escape wherever colour or
//! attributes change; they stay in force across the end of a line.
//!
//! A cell here is one character, and not a column of the pane: a combining mark is a cell of its own. Nothing is cut at
//! the pane's width, because tmux prints no more than the pane has, and counts its columns by a table of its own.

use unicode_width::UnicodeWidthChar as _;

/// How a cell's foreground is coloured, as far as that tells ghost text from text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Colour {
    #[default]
    Plain,
    /// The parameters that chose it, joined by semicolons: `31`, `90`, `38;5;8`, `38;2;1;2;3`.
    Sgr(String),
}

/// The colours and attributes of a cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CellStyle {
    pub dim: bool,
    /// SGR 7: a cursor that the program draws itself.
    pub reverse: bool,
    pub colour: Colour,
}

/// One character of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub char: char,
    pub look: CellStyle,
}

/// Largest capture that is read, in bytes; a screen of 500 × 200 cells with an escape before each stays below it.
const MAX_BYTES: usize = 4 << 20;

/// The plain text of a capture, without trailing blanks.
#[must_use]
pub fn plain(screen: &str, height: u16) -> String {
    let text = |row: &Vec<Cell>| row.iter().map(|cell| cell.char).collect::<String>().trim_end().to_owned();
    cells(screen, height).iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Reads a capture into rows of cells: at most `height` rows. Trailing blanks stay.
#[must_use]
pub fn cells(screen: &str, height: u16) -> Vec<Vec<Cell>> {
    let mut end = screen.len().min(MAX_BYTES);
    while !screen.is_char_boundary(end) {
        end -= 1;
    }
    let mut reader = Reader::default();
    screen[..end].split('\n').take(usize::from(height)).map(|line| reader.line(line)).collect()
}

/// How many characters of a row begin before this column, with all marks that belong to the last of them. Terminals do
/// not agree on the columns of emoji, so each character counts with the fewest columns that any terminal gives it. The
/// result may include characters from behind the column, but misses none from before it.
pub(super) fn before_column(row: &[Cell], column: usize) -> usize {
    let mut used = 0;
    let mut is_joined = false;
    for (at, cell) in row.iter().enumerate() {
        let takes = if is_joined { 0 } else { least_columns(cell.char) };
        if takes > 0 && used >= column {
            return at;
        }
        used += takes;
        is_joined = cell.char == '\u{200d}';
    }
    row.len()
}

/// The fewest columns that any terminal gives this character.
pub(super) fn least_columns(c: char) -> usize {
    match c {
        // Skin tones, which change the emoji before them.
        '\u{1f3fb}'..='\u{1f3ff}' => 0,
        c => c.width().unwrap_or_default(),
    }
}

#[derive(Default)]
struct Reader {
    look: CellStyle,
    /// Between SO and SI letters mean line-drawing characters.
    drawing: bool,
}

impl Reader {
    fn line(&mut self, line: &str) -> Vec<Cell> {
        let mut row = Vec::new();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            match c {
                '\u{1b}' => self.escape(&mut chars),
                '\u{e}' => self.drawing = true,
                '\u{f}' => self.drawing = false,
                c if c.is_control() => {}
                c => row.push(Cell { char: if self.drawing { line_drawing(c) } else { c }, look: self.look.clone() }),
            }
        }
        row
    }

    fn escape(&mut self, chars: &mut std::str::Chars<'_>) {
        match chars.next() {
            Some('[') => {
                let mut parameters = String::new();
                for c in chars.by_ref() {
                    if ('@'..='~').contains(&c) {
                        if c == 'm' {
                            self.sgr(&parameters);
                        }
                        return;
                    }
                    parameters.push(c);
                }
            }
            // A hyperlink or another operating-system command: it ends with BEL or with ESC \.
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' {
                        return;
                    }
                    if c == '\u{1b}' {
                        chars.next();
                        return;
                    }
                }
            }
            Some('(' | ')') => {
                chars.next();
            }
            _ => {}
        }
    }

    fn sgr(&mut self, parameters: &str) {
        let mut words = parameters.split(';');
        while let Some(word) = words.next() {
            if let Some((first, rest)) = word.split_once(':') {
                self.with_colons(first, rest);
                continue;
            }
            match word.trim_start_matches('0') {
                "" => self.look = CellStyle::default(),
                "2" => self.look.dim = true,
                "22" => self.look.dim = false,
                "7" => self.look.reverse = true,
                "27" => self.look.reverse = false,
                "39" => self.look.colour = Colour::Plain,
                "38" => self.look.colour = extended(&mut words),
                // The parameters of a background or an underline colour must not be read as looks of their own.
                "48" | "58" => drop(extended(&mut words)),
                simple => {
                    if simple.parse().is_ok_and(|n: u16| (30..38).contains(&n) || (90..98).contains(&n)) {
                        self.look.colour = Colour::Sgr(simple.to_owned());
                    }
                }
            }
        }
    }

    /// `38:5:8` and `38:2::1:2:3`, the newer way to write colours; `4:3` is an underline and says nothing here.
    fn with_colons(&mut self, first: &str, rest: &str) {
        if first == "38" {
            let mut words = rest.split(':').filter(|word| !word.is_empty());
            self.look.colour = extended(&mut words);
        }
    }
}

fn extended<'w>(words: &mut impl Iterator<Item = &'w str>) -> Colour {
    let kind = words.next().unwrap_or_default();
    let count = if kind == "2" { 3 } else { 1 };
    let mut spec = format!("38;{kind}");
    for word in words.take(count) {
        spec.push(';');
        spec.push_str(word);
    }
    Colour::Sgr(spec)
}

fn line_drawing(c: char) -> char {
    match c {
        'j' => '┘',
        'k' => '┐',
        'l' => '┌',
        'm' => '└',
        'n' => '┼',
        'q' => '─',
        't' => '├',
        'u' => '┤',
        'v' => '┴',
        'w' => '┬',
        'x' => '│',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(line: &str) -> Vec<Cell> {
        cells(line, 24).remove(0)
    }

    fn dims(line: &str) -> String {
        row(line).iter().map(|cell| if cell.look.dim { 'd' } else { '.' }).collect()
    }

    #[test]
    fn faint_is_a_look_and_a_parameter_of_a_colour_is_not() {
        assert_eq!(dims("a\u{1b}[2mb\u{1b}[22mc\u{1b}[0;2md\u{1b}[me"), ".d.d.");
        assert_eq!(dims("\u{1b}[38;5;2ma\u{1b}[48;5;2mb\u{1b}[38;2;2;2;2mc\u{1b}[58;5;2md"), "....");
        assert_eq!(dims("\u{1b}[38:5:2ma\u{1b}[4:2mb\u{1b}[02mc"), "..d");
    }

    #[test]
    fn colours_are_kept_as_they_were_chosen() {
        let colour = |line: &str| row(line)[0].look.colour.clone();
        assert_eq!(colour("\u{1b}[90ma"), Colour::Sgr("90".into()));
        assert_eq!(colour("\u{1b}[1;38;5;8ma"), Colour::Sgr("38;5;8".into()));
        assert_eq!(colour("\u{1b}[38:2::1:2:3ma"), Colour::Sgr("38;2;1;2;3".into()));
        assert_eq!(colour("\u{1b}[31;39ma"), Colour::Plain);
    }

    #[test]
    fn a_look_continues_on_the_next_line_and_other_escapes_leave_no_trace() {
        let rows = cells("\u{1b}[2ma\nb\u{1b}]8;;http://x\u{1b}\\c\u{1b}]8;;\u{7}d\u{1b}[?25he\u{e}q\u{f}q", 24);
        assert!(rows[1].iter().all(|cell| cell.look.dim));
        assert_eq!(rows[1].iter().map(|cell| cell.char).collect::<String>(), "bcde─q");
    }

    #[test]
    fn nothing_below_the_last_row_is_read_and_cut_escapes_do_no_harm() {
        assert_eq!(cells("abc\ndef\nghi", 2).iter().map(Vec::len).collect::<Vec<_>>(), [3, 3]);
        for cut in ["\u{1b}", "\u{1b}[", "\u{1b}[38;5", "\u{1b}[38;5m", "\u{1b}]8;;"] {
            assert!(row(cut).is_empty(), "{cut:?}");
        }
    }

    #[test]
    fn a_row_holds_more_characters_than_the_pane_has_columns() {
        for (full, columns) in [("ที่นี่", 2), ("⚠️⚠️", 2), ("👨‍👩‍👧", 2), ("שָׁלוֹם", 4), ("नमस्ते", 4)]
        {
            assert_eq!(plain(&full.repeat(40), 1), full.repeat(40));
            let row = row(&format!("{full}{full}x"));
            assert_eq!(before_column(&row, 2 * columns), row.len() - 1, "{full}");
            assert_eq!(before_column(&row, columns), full.chars().count(), "{full}");
        }
        // Where terminals differ, nothing from before the column is missing.
        assert_eq!(before_column(&row("👍🏽👍🏽👍🏽👍🏽👍🏽👍🏽👍🏽👍🏽👍🏽👍🏽|sidebar"), 20), 20);
        assert_eq!(before_column(&row("日本|sidebar"), 4), 2);
        assert_eq!(before_column(&row("日本"), usize::MAX), 2);
    }
}
