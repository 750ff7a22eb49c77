//! What goes on around a delivery: a sidecar that is killed, a busy agent, a person.

use super::part::Part;
use crate::cli::Cli;
use crate::random::Random;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing at all.
    None,
    /// `kill -9` of the sidecar on the way, and a new start; once or three times.
    Kill(u64),
    /// The agent is in a turn.
    Busy,
    /// The window gets other sizes.
    Resize,
    /// The pane is zoomed and shrunk.
    Zoom,
    /// Somebody looks back in the pane.
    CopyMode,
    /// The agent stands still for a while.
    Stopped,
    /// A dialog is open.
    Dialog,
    /// A person's half-typed words are in the composer.
    Draft,
    /// A person types a few letters; and Enter.
    Keys { enter: bool },
    /// A person sends a prompt, and another one.
    Prompts,
}

/// How often each comes, in a hundred.
const SHARES: [(Fault, u64); 13] = [
    (Fault::None, 30),
    (Fault::Kill(1), 13),
    (Fault::Kill(3), 5),
    (Fault::Busy, 10),
    (Fault::Resize, 7),
    (Fault::Zoom, 4),
    (Fault::CopyMode, 5),
    (Fault::Stopped, 6),
    (Fault::Dialog, 3),
    (Fault::Draft, 4),
    (Fault::Keys { enter: false }, 4),
    (Fault::Keys { enter: true }, 5),
    (Fault::Prompts, 4),
];

impl Fault {
    pub(super) fn pick(random: &mut Random, cli: Cli) -> Fault {
        let mut at = random.below(100);
        let fault = SHARES.iter().find(|(_, share)| {
            let here = at < *share;
            at = at.saturating_sub(*share);
            here
        });
        match fault.map_or(Fault::None, |(fault, _)| *fault) {
            // It asks for nothing.
            Fault::Dialog if cli == Cli::Pi => Fault::Busy,
            fault => fault,
        }
    }

    /// A person's keys go to the agent's pane.
    pub(super) fn is_a_person(self) -> bool {
        matches!(self, Fault::Draft | Fault::Keys { .. } | Fault::Prompts)
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Fault::None => "none",
            Fault::Kill(1) => "kill -9",
            Fault::Kill(_) => "kill -9, often",
            Fault::Busy => "busy",
            Fault::Resize => "resize",
            Fault::Zoom => "zoom",
            Fault::CopyMode => "copy mode",
            Fault::Stopped => "SIGSTOP",
            Fault::Dialog => "dialog",
            Fault::Draft => "draft",
            Fault::Keys { enter: false } => "keys",
            Fault::Keys { enter: true } => "keys, Enter",
            Fault::Prompts => "prompts",
        }
    }

    /// What happens before the text is sent; gives false if the CLI did not go along with it. `words`: the person's
    /// own, which are found again.
    pub(super) fn before(self, part: &Part, words: &str) -> bool {
        match self {
            Fault::Busy => {
                part.keys("Work on it. [[slow:3]]", true);
                part.until_state("busy", Duration::from_secs(8))
            }
            Fault::Draft => {
                part.keys(words, false);
                true
            }
            Fault::Dialog => {
                part.keys(&format!("Run it. [[run:touch {}]]", part.scratch().display()), true);
                part.until_state("blocked", Duration::from_secs(8))
            }
            _ => true,
        }
    }

    /// What happens while it is on its way.
    pub(super) fn meanwhile(self, part: &Part, random: &mut Random, words: &str) {
        let pause = |random: &mut Random, most: u64| sleep(Duration::from_millis(random.below(most)));
        match self {
            Fault::None | Fault::Busy | Fault::Draft => {}
            Fault::Kill(times) => {
                for _ in 0..times {
                    pause(random, 1_500);
                    part.scene.stage.crash_and_restart();
                }
            }
            Fault::Resize => {
                for size in [("80", "24"), ("160", "50"), ("100", "30"), ("120", "40")] {
                    pause(random, 500);
                    part.tmux(&["resize-window", "-t", &part.pane, "-x", size.0, "-y", size.1]);
                }
            }
            Fault::Zoom => {
                part.tmux(&["split-window", "-d", "-l", "10", "-t", &part.pane, "exec sleep 1000"]);
                for _ in 0..4 {
                    pause(random, 500);
                    part.tmux(&["resize-pane", "-Z", "-t", &part.pane]);
                }
                part.tmux(&["kill-pane", "-a", "-t", &part.pane]);
            }
            Fault::CopyMode => {
                pause(random, 800);
                part.tmux(&["copy-mode", "-t", &part.pane]);
                pause(random, 3_000);
                part.tmux(&["send-keys", "-X", "-t", &part.pane, "cancel"]);
            }
            Fault::Stopped => {
                pause(random, 800);
                part.signal(Signal::SIGSTOP);
                pause(random, 2_500);
                part.signal(Signal::SIGCONT);
            }
            Fault::Dialog => {
                sleep(Duration::from_millis(1_500));
                let due = Instant::now() + Duration::from_secs(20);
                while part.state() == "blocked" && Instant::now() < due {
                    part.tmux(&["send-keys", "-t", &part.pane, "Enter"]);
                    sleep(Duration::from_secs(1));
                }
            }
            Fault::Keys { enter } => {
                pause(random, 1_500);
                part.keys(words, false);
                if enter {
                    pause(random, 400);
                    part.tmux(&["send-keys", "-t", &part.pane, "Enter"]);
                }
            }
            Fault::Prompts => {
                for number in 0..2 {
                    pause(random, 1_200);
                    part.keys(&format!("{words}n{number}"), false);
                    pause(random, 300);
                    part.tmux(&["send-keys", "-t", &part.pane, "Enter"]);
                }
            }
        }
    }
}

/// Sends a signal to an agent and whatever runs beside it in its group.
pub(super) fn signal(pid: i32, signal: Signal) {
    if kill(Pid::from_raw(-pid), signal).is_err() {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}
