//! The line of the running step on a terminal, redrawn until the step is over.

use super::error::CliError;
use super::follow::{self, Progress};
use super::output::{Out, Tone, short_text};
use crate::contract::{Step, Word};
use crate::demo::terminal;
use std::time::{Duration, Instant};

/// The pause between two lines about a growing document, if no line is redrawn.
const GROWTH_EVERY: Duration = Duration::from_secs(10);

pub(super) struct LiveLine<'a> {
    out: &'a Out,
    step: Option<(String, Instant)>,
    about: String,
    grew: Option<Instant>,
    frame: usize,
    shown: bool,
}

impl<'a> LiveLine<'a> {
    const SIGNS: [&'static str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
    const PLAIN_SIGNS: [&'static str; 4] = ["-", "\\", "|", "/"];

    pub(super) fn new(out: &'a Out) -> Self {
        LiveLine { out, step: None, about: String::new(), grew: None, frame: 0, shown: false }
    }

    pub(super) fn note(&mut self, news: &Progress) {
        match news {
            Progress::Entered { step } => {
                self.step = Some((step.clone(), Instant::now()));
                about(step).clone_into(&mut self.about);
            }
            Progress::Grew { .. } | Progress::Reworked { .. } | Progress::Held { .. } | Progress::Blocked { .. } => {
                self.about = follow::about(news).unwrap_or_default();
            }
            Progress::Passed { .. } | Progress::Stopped { .. } | Progress::Ended(_) => self.step = None,
        }
    }

    /// Whether news gets a line that stays. A line that is redrawn shows the growth of a document. Without such a line,
    /// growth is printed at first and then every 10 s at most.
    pub(super) fn wants_line(&mut self, news: &Progress) -> bool {
        let Progress::Grew { .. } = news else { return true };
        if self.out.is_live() || self.grew.is_some_and(|grew| grew.elapsed() < GROWTH_EVERY) {
            return false;
        }
        self.grew = Some(Instant::now());
        true
    }

    pub(super) fn draw(&mut self) -> Result<(), CliError> {
        let Some((step, since)) = self.step.as_ref().filter(|_| self.out.is_live()) else { return Ok(()) };
        let signs = if self.out.is_unicode() { &Self::SIGNS[..] } else { &Self::PLAIN_SIGNS[..] };
        self.frame += 1;
        let sign = signs[self.frame / 2 % signs.len()];
        let took = follow::span(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.shown = true;
        // A line that wraps leaves a row behind each time it is drawn.
        let (head, rest) = cut(&format!("{sign} {step:<13} "), &format!("{took:>10}  {}", self.about), width());
        self.out.raw(&format!("\r\x1b[K{head}{}", self.out.paint(Tone::Faint, &rest)))
    }

    pub(super) fn clear(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.shown) { self.out.raw("\r\x1b[K") } else { Ok(()) }
    }
}

/// The columns that a line may have, so that the cursor behind it stays in its row.
fn width() -> usize {
    usize::from(terminal::size().0).saturating_sub(1)
}

/// The two parts of a line, cut so that both together fit into so many columns.
fn cut(head: &str, rest: &str, columns: usize) -> (String, String) {
    let line = short_text(&format!("{head}{rest}"), columns);
    let at = line.char_indices().nth(head.chars().count()).map_or(line.len(), |(at, _)| at);
    let (head, rest) = line.split_at(at);
    (head.to_owned(), rest.to_owned())
}

/// What a step waits for, in a few words.
pub(super) fn about(step: &str) -> &'static str {
    Word::<Step>::from(step).known().map_or("", Step::waits_for)
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_line_is_cut_to_its_columns_in_whichever_part_they_end() {
        let parts = |columns| cut("⠋ waiting ", "1.0 s  for the agent", columns);
        let both = |head: &str, rest: &str| (head.to_owned(), rest.to_owned());
        assert_eq!(parts(80), both("⠋ waiting ", "1.0 s  for the agent"));
        assert_eq!(parts(20), both("⠋ waiting ", "1.0 s  fo…"));
        assert_eq!(parts(5), both("⠋ wa…", ""));
        assert_eq!(parts(0), both("…", ""));
    }
}
