//! The demo agent's state: its session, what it says and what it shows. `turns` and `input` change it.

use super::composer::Composer;
use super::draw::{BlockContent, DrawnBlock, Painter, block, draft_columns};
use super::faults::{FaultSource, Faults};
use super::hooks::DemoHooks;
use super::model::Memory;
use super::record::Recorder;
use super::transcript::DemoTranscript;
use super::turn::Turn;
use serde_json::json;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The largest number of lines that are kept to be painted again after a change of size.
const MAX_SAID: usize = 500;
/// The largest number of lines of a prompt that are repeated on the screen.
const MAX_ECHO: usize = 6;

/// The demo agent: its screen, its session and the turn that it plays.
pub struct App {
    pub(super) source: FaultSource,
    pub(super) faults: Faults,
    pub(super) recorder: Recorder,
    pub(super) hooks: DemoHooks,
    pub(super) transcript: DemoTranscript,
    pub(super) memory: Memory,
    pub(super) turn: Option<Turn>,
    pub(super) late: Vec<Turn>,
    pub(super) queue: VecDeque<String>,
    pub(super) dialog: Option<String>,
    pub(super) session_reported: bool,
    /// The reason that the next report of a session start gives: `startup`, `clear` or `resume`.
    pub(super) unreported: &'static str,
    pub(super) composer: Composer,
    pub(super) starting_until: Option<Instant>,
    pub(super) swallowed: u64,
    pub(super) interrupted: Option<Instant>,
    leaving: Option<&'static str>,
    said: VecDeque<String>,
    fresh: Vec<String>,
    painter: Painter,
    began: Instant,
}

impl App {
    /// An agent as the environment describes it.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let source = FaultSource::from_env();
        let faults = source.read();
        let text = |name| std::env::var(name).unwrap_or_default();
        let mut hooks = DemoHooks::new();
        let transcript = DemoTranscript::new(&hooks.session_id);
        hooks.transcript_path = Some(transcript.path());
        let id = Some(text("TASUKI_AGENT_ID")).filter(|id| !id.is_empty()).unwrap_or_else(|| hooks.session_id.clone());
        let cwd = std::env::current_dir().map(|dir| dir.display().to_string()).unwrap_or_default();
        let start = Duration::from_millis(faults.number("start_slow").unwrap_or(60));
        App {
            memory: Memory { agent: id, persona: text("TASUKI_PERSONA"), cwd, ..Memory::default() },
            recorder: Recorder::from_env(),
            source,
            faults,
            hooks,
            transcript,
            turn: None,
            late: Vec::new(),
            queue: VecDeque::new(),
            dialog: None,
            session_reported: false,
            unreported: "startup",
            composer: Composer::default(),
            starting_until: Some(now + start),
            swallowed: 0,
            interrupted: None,
            leaving: None,
            said: VecDeque::new(),
            fresh: Vec::new(),
            painter: Painter::default(),
            began: now,
        }
    }

    /// What happens before the composer appears.
    pub fn start(&mut self) {
        if self.faults.dies_at("start") {
            self.die();
        }
        self.recorder.event("started");
        for name in std::mem::take(&mut self.faults.unknown) {
            self.say(&format!("unknown fault: {name}"));
        }
        if !self.faults.has("lazy_start") {
            self.report_session();
        }
        if let Some(draft) = self.faults.text("draft") {
            self.composer.paste(draft, false);
        }
        if self.faults.has("dialog") {
            self.open_dialog("trust this folder");
        }
    }

    /// Whether the agent switches bracketed paste on.
    #[must_use]
    pub fn is_bracketed(&self) -> bool {
        !self.faults.has("no_bracket")
    }

    /// Ends the phase of starting, which has no composer, when its time is over. Returns true only when it does so.
    pub fn end_starting(&mut self, now: Instant) -> bool {
        let come = self.starting_until.is_some_and(|until| now >= until);
        if come {
            self.starting_until = None;
        }
        come
    }

    /// Why the program is to end; none if it is to continue.
    #[must_use]
    pub fn leaving(&self) -> Option<&'static str> {
        self.leaving
    }

    /// Tells the loop to end the program; `reason` is for SessionEnd. Only the first reason counts.
    pub fn leave(&mut self, reason: &'static str) {
        self.leaving.get_or_insert(reason);
    }

    /// Ends the session: reports SessionEnd, and then waits if the fault `linger` says so.
    pub fn end(&mut self, reason: &str) {
        self.transcript.flush();
        self.hooks.finish();
        if self.session_reported {
            let quick = Faults::parse(if self.faults.has("hooks_off") { "hooks_off" } else { "" });
            self.hooks.fire("SessionEnd", json!({"reason": reason}), &quick);
        }
        self.recorder.event("exit");
        if let Some(linger) = self.faults.number("linger") {
            std::thread::sleep(Duration::from_millis(linger));
        }
    }

    /// Begins a new session in the same process.
    pub(super) fn clear(&mut self) {
        self.turn = None;
        self.late.clear();
        self.queue.clear();
        self.memory.forget();
        if self.faults.has("lazy_clear") {
            self.session_reported = false;
            self.new_session();
        } else {
            self.change_session();
        }
        self.say("(a new session)");
    }

    /// Reports SessionEnd and SessionStart with the reason `clear`, and changes the session's id between the two.
    pub(super) fn change_session(&mut self) {
        if self.session_reported {
            self.hooks.fire("SessionEnd", json!({"reason": "clear"}), &self.faults);
        }
        self.new_session();
        self.report_session();
    }

    fn new_session(&mut self) {
        self.unreported = "clear";
        self.change_id(&super::hooks::new_id());
    }

    /// Begins with the id of an earlier session instead of a new one.
    pub(super) fn open_session(&mut self, id: &str) {
        self.unreported = "resume";
        self.change_id(id);
    }

    fn change_id(&mut self, id: &str) {
        id.clone_into(&mut self.hooks.session_id);
        self.transcript.change_session(&self.hooks.session_id);
        self.hooks.transcript_path = Some(self.transcript.path());
    }

    pub(super) fn report_session(&mut self) {
        self.session_reported = true;
        self.hooks.fire("SessionStart", json!({"source": self.unreported, "model": "demo"}), &self.faults);
    }

    pub(super) fn open_dialog(&mut self, question: &str) {
        self.dialog = Some(question.to_owned());
        self.recorder.event("dialog_opened");
        let event = json!({"tool_name": "Write", "message": format!("Permission needed: {question}")});
        self.hooks.fire("PermissionRequest", event, &self.faults);
    }

    /// Dies by SIGKILL, so that nothing is reported.
    pub(super) fn die(&self) -> ! {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
        std::process::abort()
    }

    pub(super) fn say(&mut self, text: &str) {
        self.fresh.extend(text.lines().map(|line| line.replace('\t', "    ")));
    }

    pub(super) fn echo(&mut self, prompt: &str) {
        let lines: Vec<&str> = prompt.lines().collect();
        for line in lines.iter().take(MAX_ECHO) {
            self.say(&format!("» {line}"));
        }
        if lines.len() > MAX_ECHO {
            self.say(&format!("» … {} more lines", lines.len() - MAX_ECHO));
        }
    }

    /// The output that makes the terminal show the present state. With `resized`, it paints the whole screen.
    pub fn paint(&mut self, (width, height): (u16, u16), resized: bool, now: Instant) -> String {
        let block = self.block(width, height, now);
        let fresh = std::mem::take(&mut self.fresh);
        self.said.extend(fresh.iter().cloned());
        while self.said.len() > MAX_SAID {
            self.said.pop_front();
        }
        if resized {
            self.painter.repaint(self.said.make_contiguous(), &block, height)
        } else {
            self.painter.paint(&fresh, &block)
        }
    }

    /// The output that removes the block from the screen and prints the last lines.
    pub fn last_output(&mut self) -> String {
        let leave = self.painter.leave();
        self.fresh.drain(..).fold(leave, |out, line| out + &line + "\r\n")
    }

    fn block(&self, width: u16, height: u16, now: Instant) -> DrawnBlock {
        let turn = self.turn.as_ref();
        let picture = usize::try_from(now.duration_since(self.began).as_millis() / 100).unwrap_or(0);
        let queued = if self.queue.is_empty() { String::new() } else { format!(" · {} queued", self.queue.len()) };
        let session: String = self.hooks.session_id.chars().take(8).collect();
        let who = if self.memory.persona.is_empty() { "demo" } else { &self.memory.persona };
        let status = format!("  {who} · session {session}{queued}");
        let scene = if self.starting_until.is_some() {
            BlockContent::Starting
        } else if let Some(question) = &self.dialog {
            BlockContent::Dialog { question }
        } else {
            BlockContent::Composer {
                draft: (!self.composer.is_empty()).then(|| self.composer.rows(draft_columns(width))),
                busy: turn.map(|turn| (picture, turn.seconds(now))),
                odd_ghost: self.faults.has("ghost"),
                status: &status,
            }
        };
        block(&scene, width, height)
    }

    /// When the agent next has something to do without input.
    #[must_use]
    pub fn next_due(&self, now: Instant) -> Option<Instant> {
        let spinner = self.turn.as_ref().map(|_| now + Duration::from_millis(100));
        let turn = self.turn.as_ref().filter(|_| self.dialog.is_none()).and_then(Turn::due);
        [self.starting_until, spinner, turn, self.transcript.due()]
            .into_iter()
            .chain(self.late.iter().map(Turn::due))
            .flatten()
            .min()
    }
}
