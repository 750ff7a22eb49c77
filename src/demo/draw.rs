//! Draws the demo agent's state: plain ANSI on the normal screen. What was said scrolls up as ordinary output; the
//! block below it (spinner, composer or dialog, status) is repainted.

use super::composer::Rows;
use super::width;

const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The narrowest terminal in which a composer is drawn.
const MIN_WIDTH: usize = 8;

/// What the block at the bottom of the screen shows.
#[derive(Debug, Clone)]
pub enum BlockContent<'a> {
    /// The agent is starting: there is no composer.
    Starting,
    /// A permission dialog takes the composer's place.
    Dialog { question: &'a str },
    /// The composer, and a spinner above it while a turn runs.
    Composer {
        /// The draft; `None` when it is empty and ghost text is shown.
        draft: Option<Rows>,
        /// The number of the spinner's frame, and the seconds since the turn began.
        busy: Option<(usize, u64)>,
        /// Ghost text is drawn in an odd way.
        odd_ghost: bool,
        status: &'a str,
    },
}

/// The block as lines. None is wider than the terminal, and there are at most as many as it has rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnBlock {
    pub lines: Vec<String>,
    /// The cursor's row in the block and its column.
    pub cursor: (usize, usize),
}

/// How many columns a draft has in a terminal of that width.
#[must_use]
pub fn draft_columns(width: u16) -> usize {
    usize::from(width).max(MIN_WIDTH) - 6
}

/// Draws the block for a terminal of that size.
#[must_use]
pub fn block(scene: &BlockContent<'_>, width: u16, height: u16) -> DrawnBlock {
    let (columns, rows) = (usize::from(width).max(1), usize::from(height).max(1));
    let plain = |lines: Vec<String>| {
        let lines: Vec<String> = lines.iter().take(rows).map(|line| width::cut(line, columns).to_owned()).collect();
        let cursor = (lines.len() - 1, 0);
        DrawnBlock { lines, cursor }
    };
    match scene {
        BlockContent::Starting => plain(vec!["Starting the demo agent…".into()]),
        BlockContent::Dialog { question } => {
            let menu = ["❯ 1. Yes".into(), "  2. No".into(), "  Enter to choose".into()];
            let head = [format!("Permission needed: {question}")];
            let lines: Vec<String> =
                if rows > menu.len() { head.into_iter().chain(menu).collect() } else { menu.into() };
            plain(lines)
        }
        BlockContent::Composer { busy: Some(busy), .. } if rows < 4 || columns < MIN_WIDTH => {
            plain(vec![spinner(*busy)])
        }
        BlockContent::Composer { .. } if rows < 3 || columns < MIN_WIDTH => plain(vec![">".into()]),
        BlockContent::Composer { draft, busy, odd_ghost, status } => {
            let mut lines: Vec<String> =
                busy.iter().map(|busy| width::cut(&spinner(*busy), columns).to_owned()).collect();
            let above = lines.len();
            let with_status = rows >= above + 4;
            let most = (rows - above - 2 - usize::from(with_status)).max(1);
            let (body, (row, column)) = match draft {
                Some(draft) => boxed(draft, columns, most),
                None => (vec![ghost_line(columns, *odd_ghost)], (0, 0)),
            };
            lines.push(format!("╭{}╮", "─".repeat(columns - 2)));
            lines.extend(body);
            lines.push(format!("╰{}╯", "─".repeat(columns - 2)));
            if with_status {
                lines.push(format!("\u{1b}[2m{}\u{1b}[0m", width::cut(status, columns)));
            }
            DrawnBlock { lines, cursor: (above + 1 + row, 4 + column) }
        }
    }
}

fn spinner((picture, seconds): (usize, u64)) -> String {
    format!("{} Working… ({seconds}s · esc to interrupt)", SPINNER[picture % SPINNER.len()])
}

/// The draft's rows between borders, at most `most` of them: those around the cursor.
fn boxed(draft: &Rows, columns: usize, most: usize) -> (Vec<String>, (usize, usize)) {
    let first = (draft.row + 1).saturating_sub(most).min(draft.rows.len().saturating_sub(1));
    let shown = draft.rows.iter().enumerate().skip(first).take(most);
    let lines = shown.map(|(at, row)| {
        let sign = match at {
            0 => '>',
            at if at == first => '⋮',
            _ => ' ',
        };
        let inside = columns - 6;
        let row = width::cut(row, inside);
        format!("│ {sign} {row}{} │", " ".repeat(inside - width::of(row)))
    });
    (lines.collect(), (draft.row - first, draft.column))
}

fn ghost_line(columns: usize, odd: bool) -> String {
    let inside = columns - 6;
    let text = width::cut("Ask for a change, or /exit", inside);
    let pad = " ".repeat(inside - width::of(text));
    match text.chars().next().filter(|_| odd) {
        Some(first) => {
            let rest = &text[first.len_utf8()..];
            format!("│ > \u{1b}[7m{first}\u{1b}[0;38;5;8m{rest}\u{1b}[0m{pad} │")
        }
        None => format!("│ > \u{1b}[2m{text}\u{1b}[0m{pad} │"),
    }
}

/// Paints the block, and remembers where the terminal's cursor is in it.
#[derive(Debug, Default)]
pub struct Painter {
    row: usize,
}

impl Painter {
    /// Output that puts new lines above the block and paints the block again.
    pub fn paint(&mut self, said: &[String], block: &DrawnBlock) -> String {
        let mut out = String::from("\u{1b}[?25l\r");
        if self.row > 0 {
            out.push_str(&format!("\u{1b}[{}A", self.row));
        }
        out.push_str("\u{1b}[J");
        self.finish(out, said, block)
    }

    /// Output that clears the screen and paints what fits of `said` and the block: after a change of size nothing on
    /// the screen is where it was.
    pub fn repaint(&mut self, said: &[String], block: &DrawnBlock, height: u16) -> String {
        let room = usize::from(height).saturating_sub(block.lines.len());
        let last = &said[said.len().saturating_sub(room)..];
        self.finish("\u{1b}[?25l\u{1b}[H\u{1b}[2J".to_owned(), last, block)
    }

    /// Output that removes the block and leaves the cursor where the block began.
    pub fn leave(&mut self) -> String {
        let up = if self.row > 0 { format!("\u{1b}[{}A", self.row) } else { String::new() };
        self.row = 0;
        format!("\r{up}\u{1b}[J\u{1b}[?25h")
    }

    fn finish(&mut self, mut out: String, said: &[String], block: &DrawnBlock) -> String {
        for line in said {
            out.push_str(line);
            out.push_str("\r\n");
        }
        // With automatic wrapping off, a line that is too wide is cut, and does not move the lines below it.
        out.push_str("\u{1b}[?7l");
        out.push_str(&block.lines.join("\r\n"));
        out.push_str("\u{1b}[?7h\r");
        let up = block.lines.len() - 1 - block.cursor.0;
        if up > 0 {
            out.push_str(&format!("\u{1b}[{up}A"));
        }
        if block.cursor.1 > 0 {
            out.push_str(&format!("\u{1b}[{}C", block.cursor.1));
        }
        out.push_str("\u{1b}[?25h");
        self.row = block.cursor.0;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::composer::Composer;
    use super::*;

    fn scene(text: &str, width: u16, busy: bool) -> BlockContent<'static> {
        let mut composer = Composer::default();
        composer.paste(text, false);
        let draft = (!composer.is_empty()).then(|| composer.rows(draft_columns(width)));
        BlockContent::Composer { draft, busy: busy.then_some((0, 1)), odd_ghost: false, status: "demo · ready" }
    }

    fn plain(line: &str) -> String {
        let mut text = String::new();
        let mut chars = line.chars();
        while let Some(c) = chars.next() {
            if c == '\u{1b}' {
                chars.by_ref().find(char::is_ascii_alphabetic);
            } else {
                text.push(c);
            }
        }
        text
    }

    #[test]
    fn no_block_is_larger_than_its_terminal() {
        let text = "a long draft\nof several lines\n漢字 and more\n".repeat(20);
        for width in 1..40_u16 {
            for height in 1..12_u16 {
                let composer = [scene("", width, false), scene(&text, width, true), scene("x", width, false)];
                let others = [BlockContent::Starting, BlockContent::Dialog { question: "write a file" }];
                for scene in composer.iter().chain(&others) {
                    let block = block(scene, width, height);
                    assert!(block.lines.len() <= usize::from(height), "{width}x{height} {scene:?}");
                    assert!(block.lines.iter().all(|line| width::of(&plain(line)) <= usize::from(width)), "{block:?}");
                    assert!(block.cursor.0 < block.lines.len());
                }
            }
        }
    }

    #[test]
    fn a_long_draft_shows_the_rows_at_the_cursor() {
        let block = block(&scene("1\n2\n3\n4\n5", 20, false), 20, 5);
        let rows: Vec<String> = block.lines.iter().map(|line| plain(line)).collect();
        assert_eq!(rows[1], "│ ⋮ 4              │");
        assert_eq!(rows[2], "│   5              │");
        assert_eq!(block.cursor, (2, 5));
    }

    #[test]
    fn painting_again_goes_back_to_the_top_of_the_block() {
        let mut painter = Painter::default();
        let block = block(&scene("a\nb", 20, false), 20, 10);
        painter.paint(&[], &block);
        let out = painter.paint(&["said".into()], &block);
        assert!(out.starts_with("\u{1b}[?25l\r\u{1b}[2A\u{1b}[Jsaid\r\n"), "{out:?}");
        assert!(painter.repaint(&vec!["x".to_owned(); 50], &block, 10).matches("x\r\n").count() == 5);
    }
}
