//! The rival: the same commands for each piece, by a tmux process each, and the same look at what has come of them.

use super::{PATIENCE, PIECE, PIECES, Progress, TAIL, Watcher};
use crate::place::Place;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tasuki::agents::Profiles;
use tasuki::core::pane::{ComposerContent, PaneRef, ScreenReading};
use tasuki::tmux::{Capture, ScreenReader};

/// Pieces for each second over all panes; as many panes at a time as there are cores.
pub(super) fn typed(place: &Place, panes: &[PaneRef], eyes: &Arc<Profiles>) -> f64 {
    let progress = Arc::new(Mutex::new(Progress::default()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(panes.len());
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let progress = &progress;
            scope.spawn(move || {
                for pane in panes.iter().skip(worker).step_by(workers) {
                    let writer = Writer {
                        place,
                        target: pane.to_string(),
                        buffer: format!("rival-{worker}"),
                        screen_reader: Watcher::new(eyes, progress),
                    };
                    writer.type_text();
                }
            });
        }
    });
    let progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    progress.rate()
}

struct Writer<'a> {
    place: &'a Place,
    target: String,
    buffer: String,
    screen_reader: Watcher,
}

impl Writer<'_> {
    fn type_text(&self) {
        self.wait_for(|view| view.composer == ComposerContent::Empty);
        for piece in 1..=PIECES {
            self.put(PIECE);
            self.wait_for(|view| super::pieces_in(view) == piece);
        }
        self.put(TAIL);
        self.put("\r");
        self.wait_for(|view| view.composer == ComposerContent::Empty);
    }

    fn put(&self, text: &str) {
        // Whether it is still the pane that is meant.
        self.said(&["display-message", "-p", "-t", &self.target, "#{pane_pid} #{pane_dead} #{pane_current_command}"]);
        self.said(&["set-buffer", "-b", &self.buffer, "--", text]);
        self.said(&["paste-buffer", "-r", "-b", &self.buffer, "-t", &self.target]);
        self.said(&["delete-buffer", "-b", &self.buffer]);
    }

    fn wait_for(&self, is_so: impl Fn(&ScreenReading) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_so(&self.screen_reader.look(&self.capture())) {
            assert!(Instant::now() < until, "the composer of {} shows what was typed", self.target);
        }
    }

    fn capture(&self) -> Capture {
        let format = "#{cursor_x} #{cursor_y} #{pane_width} #{pane_height}";
        let numbers = self.said(&["display-message", "-p", "-t", &self.target, format]);
        let mut numbers = numbers.split_whitespace().map(|number| number.parse().expect("a number"));
        let mut next = || numbers.next().expect("four numbers");
        let (cursor_x, cursor_y, width, height) = (next(), next(), next(), next());
        let screen = self.said(&["capture-pane", "-p", "-e", "-t", &self.target]);
        Capture { lines: screen.lines().map(str::to_owned).collect(), cursor_x, cursor_y, width, height }
    }

    fn said(&self, args: &[&str]) -> String {
        let output = self.place.tmux(args).stdout(Stdio::piped()).output().expect("tmux runs");
        assert!(output.status.success(), "{args:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
