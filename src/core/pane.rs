//! What the core knows of tmux: which pane is meant, what was seen in it, and what happened to a text that was to be
//! typed there. Plain data; the tmux adapter fills it in.

use super::id::DeliveryId;
use super::text::wire_name;
use serde::{Deserialize, Serialize};
use std::fmt;

pub use crate::contract::Verdict;

/// One life of one tmux server. Pane ids start again after a restart, so they mean nothing without this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServerId {
    pub pid: u32,
    /// `#{start_time}`: seconds since 1970.
    pub start_time: u64,
}

/// The value of `$TMUX`: in which server, and in which session of it, a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TmuxVariable<'a> {
    /// The path of the server's socket.
    pub socket: &'a str,
    pub server_pid: u32,
    /// The number behind `$`.
    pub session: &'a str,
}

impl<'a> TmuxVariable<'a> {
    /// Reads `<socket>,<server pid>,<session>`; `None` if it is anything else. The socket's path may hold commas.
    #[must_use]
    pub fn read(value: &'a str) -> Option<Self> {
        let mut parts = value.rsplitn(3, ',');
        let (session, server_pid) = (parts.next()?, parts.next()?.parse().ok()?);
        let socket = parts.next().filter(|socket| !socket.is_empty())?;
        Some(TmuxVariable { socket, server_pid, session })
    }
}

/// A pane, identified by server, pane id and pid together: a restarted server gives out the same pane ids again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PaneRef {
    pub server: ServerId,
    /// The number behind `%`.
    pub pane: u32,
    /// The process with which the pane was created.
    pub pid: u32,
}

impl fmt::Display for PaneRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.pane)
    }
}

/// A process, identified by its id and its start time, because ids are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// On Linux field 22 of `/proc/<pid>/stat`: clock ticks since boot. On macOS microseconds since 1970. 0 where the
    /// system has no such thing.
    pub start_ticks: u64,
}

/// What the agent's program is doing, as far as its screen shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// The composer is shown and takes input.
    Ready,
    Busy,
    /// A dialog waits for a person: nothing may be typed.
    Blocked,
    /// Nothing that the profile knows: still starting, another program, or a screen never seen.
    Unknown,
}

/// The content of the composer (the box in which an agent's next prompt is written).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ComposerContent {
    Empty,
    /// Text, as far as the screen shows it, with white space and borders taken away.
    Text(String),
    /// The same, where the composer shows only the end of a longer text.
    Tail(String),
    /// Exactly one placeholder for a collapsed paste and nothing else; `size` is the number that it names, if any.
    Collapsed {
        /// Lines or characters, as the placeholder counts.
        size: Option<u64>,
    },
    Unreadable,
}

/// What the agent's profile reads on one screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenReading {
    pub activity: Activity,
    pub composer: ComposerContent,
}

/// Why nothing was typed. The wire names are part of the contract: they appear in `verdicts.*.reason`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The pane does not exist any more.
    PaneGone,
    /// The pane runs another process than the one registered.
    PaneChanged,
    /// The pane's process is dead and tmux keeps the pane.
    PaneDead,
    /// The pane belongs to another home on the same server.
    PaneClaimed,
    /// The agent's own process is dead; its pane may live on.
    AgentEnded,
    /// A shell is in front, not the agent.
    BareShell,
    /// A permission or trust dialog is open.
    Dialog,
    /// Somebody's half-typed draft is in the composer.
    Draft,
    /// The agent is in the middle of a turn.
    Busy,
    /// The screen does not look like the agent's.
    NotReady,
    /// Input to the pane is switched off (`select-pane -d`).
    InputOff,
    /// The pane is in tmux's copy mode, because a person scrolls back; there a paste with tabs would arrive as keys.
    CopyMode,
    /// The pane is in canonical mode, which drops long lines.
    CookedMode,
    NoTmux,
    /// The agent's hooks were never seen and its screen can't prove a delivery.
    HooksUnseen,
    /// The text holds characters that must not reach a pane.
    BadText,
    /// The text is long, and the file that the agent is to read it from could not be written.
    TextFile,
}

impl Refusal {
    /// A sentence about a text that was not typed: `what`, followed by the refusal's code and cause.
    #[must_use]
    pub fn told(self, what: &str) -> String {
        format!("{what} ({}): {}", wire_name(&self), self.cause())
    }

    /// The cause, to complete a sentence.
    #[must_use]
    pub fn cause(self) -> &'static str {
        match self {
            Refusal::PaneGone => "the agent's pane is closed",
            Refusal::PaneChanged => "the pane runs another process now",
            Refusal::PaneDead => "the pane's program has ended",
            Refusal::PaneClaimed => "the pane is registered with another tasuki home",
            Refusal::AgentEnded => "the agent has ended",
            Refusal::BareShell => "a shell is in the foreground of the pane instead of the agent",
            Refusal::Dialog => "a dialog is open in the pane",
            Refusal::Draft => "the composer holds a text that was not submitted: a draft, or what tasuki has pasted",
            Refusal::Busy => "the agent is in a turn",
            Refusal::NotReady => "the screen does not show that the agent waits for input",
            Refusal::InputOff => "input to the pane is switched off",
            Refusal::CopyMode => "the pane is in copy mode, in which this text can't be pasted in one piece",
            Refusal::CookedMode => "the program in the pane reads whole lines, not single keys",
            Refusal::NoTmux => "tasuki is not connected to the tmux server of the agent's pane",
            Refusal::HooksUnseen => {
                "the agent's hooks have reported nothing yet, so nothing could prove that the text has arrived"
            }
            Refusal::BadText => "the text holds characters that can't be typed into a terminal",
            Refusal::TextFile => "tasuki could not write the text to a file below data/personas",
        }
    }

    /// What the operator should do.
    #[must_use]
    pub fn hint(self) -> &'static str {
        match self {
            Refusal::PaneGone | Refusal::AgentEnded => {
                "to hand the agent off, name it by its id: tasuki handoff ID --author salvage; or start a new agent"
            }
            Refusal::PaneChanged => "if the process in the pane is an agent, register the pane again",
            Refusal::PaneDead => "close the pane",
            Refusal::PaneClaimed => "to use the pane with this home, register it here again",
            Refusal::BareShell => {
                "bring the agent back (fg) or close the pane; a script that starts the agent must use exec"
            }
            Refusal::Dialog => "answer the dialog in the pane, then retry",
            Refusal::Draft => "submit or clear the text in the composer, then retry",
            Refusal::Busy => "wait until the agent's turn ends, then retry",
            Refusal::NotReady => {
                "look at the pane, and enlarge it if it has few rows; retry when the agent waits for input"
            }
            Refusal::InputOff => "switch input to the pane on again (select-pane -e), then retry",
            Refusal::CopyMode => "leave copy mode in the pane (q), then retry",
            Refusal::CookedMode => "look at the pane; retry when the agent waits for input there",
            Refusal::NoTmux => "start the tmux server, or check --tmux; then retry",
            Refusal::HooksUnseen => {
                "submit any prompt in the agent's pane: if its hooks report it, retry; otherwise run tasuki hooks install \
                 PROFILE and restart the agent"
            }
            Refusal::BadText => "take these characters out of the text, then retry",
            Refusal::TextFile => "free disk space or fix the folder, then retry; the sidecar's log says what failed",
        }
    }
}

/// The result of typing one text. Proof of arrival is not here: that is a receipt, which comes as an event from the
/// agent's own hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Typed {
    /// The whole text was put in, was seen, and was submitted; `proven` when the profile's screen proof was seen too.
    Submitted {
        /// The profile has no submit hook, and the screen showed that the prompt was taken.
        proven: bool,
    },
    Refused {
        reason: Refusal,
    },
    /// Something may have been typed, and it can't be known how much of it arrived. tasuki never types the text again
    /// by itself.
    Unknown {
        /// A short code: `not_seen`, `mixed_draft`, `ambiguous_mark`, `server_lost`, `pane_lost`, `deadline`, `stopped`
        /// …
        reason: String,
    },
}

/// How one delivery ended, as views and results show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryVerdict {
    pub delivery_id: DeliveryId,
    pub verdict: Verdict,
    /// Why the text was not delivered, or may not have been; for `delivered`, a remark if there is one.
    pub reason: Option<String>,
    pub at: String,
}

/// What the lookup of a pane found, for registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaneFacts {
    pub pane: PaneRef,
    /// The session that its window is in.
    pub session_name: String,
    /// The directory that its front program works in.
    pub cwd: String,
    /// The agent's own process: the leader of the pane's foreground group, or the pane's process.
    pub agent: Option<Process>,
    /// Whether a bare shell is in front.
    pub bare_shell: bool,
    /// The profile whose `detect` pattern fits the front program's arguments.
    pub profile: Option<String>,
    /// The `TASUKI_AGENT_ID` in the pane process's environment, if there is one.
    pub agent_id: Option<super::id::AgentId>,
    /// The tag of another home that claims the pane and whose sidecar runs; `None` if there is none.
    #[serde(default)]
    pub claimed_by: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_of_tmux_is_read_from_its_end() {
        let read = |value| TmuxVariable::read(value).map(|tmux| (tmux.socket, tmux.server_pid, tmux.session));
        assert_eq!(read("/tmp/tmux-0/default,4711,3"), Some(("/tmp/tmux-0/default", 4711, "3")));
        assert_eq!(read("/tmp/a,b/s,4711,3"), Some(("/tmp/a,b/s", 4711, "3")));
        for value in ["", "/tmp/s", "/tmp/s,4711", ",4711,3", "/tmp/s,x,3"] {
            assert_eq!(read(value), None, "{value}");
        }
    }
}
