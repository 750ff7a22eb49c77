//! What keys and commands do to the demo agent.

use super::app::App;
use super::keys::Key;
use std::time::{Duration, Instant};

/// Two C-c within this time leave the program.
const TWICE: Duration = Duration::from_secs(1);

impl App {
    /// Acts on one key.
    pub fn key(&mut self, key: Key, now: Instant) {
        if self.starting_until.is_some() {
            return;
        }
        if self.dialog.is_some() {
            return self.answer_dialog(&key);
        }
        match key {
            Key::Char(c) => self.composer.insert(c),
            Key::Newline => self.composer.insert('\n'),
            Key::Paste(text) => {
                self.faults = self.source.read();
                if let Some(late) = self.faults.number("slow_paste") {
                    std::thread::sleep(Duration::from_millis(late));
                }
                self.composer.paste(&text, self.faults.has("collapse"));
            }
            Key::Backspace => self.composer.backspace(),
            Key::KillLine => self.composer.kill_line(),
            Key::Left => self.composer.left(),
            Key::Right => self.composer.right(),
            Key::Home => self.composer.home(),
            Key::End => self.composer.end(),
            Key::Enter => self.enter(now),
            Key::Escape => self.interrupt(now),
            Key::Interrupt => self.control_c(now),
            Key::EndOfInput if self.composer.is_empty() => self.leave("prompt_input_exit"),
            Key::EndOfInput | Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::BackTab => {}
        }
    }

    fn enter(&mut self, now: Instant) {
        self.faults = self.source.read();
        if self.swallowed < self.faults.number("swallow_enter").unwrap_or(0) {
            self.swallowed += 1;
            return;
        }
        let text = self.composer.take();
        let trimmed = text.trim();
        match trimmed {
            "" => {}
            "/exit" | "/quit" => self.exit(),
            "/clear" => self.clear(),
            _ if trimmed.starts_with('/') && !trimmed.contains('\n') => {
                self.say(&format!("Unknown command: {trimmed}"))
            }
            _ => self.submit(trimmed, now),
        }
    }

    fn exit(&mut self) {
        if self.faults.dies_at("exit") {
            self.die();
        }
        self.say("Goodbye!");
        if !self.faults.has("ignore_exit") {
            self.leave("prompt_input_exit");
        }
    }

    /// A dialog swallows a paste. Any other key answers it: Enter, `1` or `y` means yes, every other key means no.
    fn answer_dialog(&mut self, key: &Key) {
        if matches!(key, Key::Paste(_)) {
            return;
        }
        self.dialog = None;
        let yes = matches!(key, Key::Enter | Key::Char('1' | 'y'));
        self.recorder.event(if yes { "dialog_answered" } else { "dialog_refused" });
        if !yes && let Some(turn) = &mut self.turn {
            turn.refuse();
        }
    }

    /// Escape: the turn ends without any event, as in real CLIs.
    fn interrupt(&mut self, now: Instant) {
        if self.turn.take().is_some() {
            self.say("Interrupted.");
            self.next_in_queue(now);
        }
    }

    fn control_c(&mut self, now: Instant) {
        if !self.composer.is_empty() {
            self.composer.take();
        } else if self.interrupted.is_some_and(|before| now.duration_since(before) < TWICE) {
            self.leave("prompt_input_exit");
        } else {
            self.interrupted = Some(now);
            self.say("Press C-c again to exit.");
        }
    }
}
