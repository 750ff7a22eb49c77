//! The review of a held handoff on a terminal: shows document, faults and facts, and asks what becomes of the handoff.

use super::error::CliError;
use super::interrupts::Interrupts;
use super::output::Out;
use super::view::ViewFile;
use super::{ANSWER_SOON, CliSession, documents, editor, examined, view};
use crate::contract::HandoffView;
use crate::contract::reply::HandoffReply;
use crate::core::text::sanitise;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{FlushArg, tcflush};
use serde_json::{Map, Value};
use std::io::IsTerminal;
use std::os::fd::AsFd;

const QUESTION: &str = "[a]ccept, [r]ework (with a note), [c]ancel, [l]ater: ";
/// The question about a document that no agent has written.
const QUESTION_WITHOUT_WRITER: &str = "[a]ccept, [c]ancel, [l]ater: ";
const NOTE: &str = "What should the agent change? ";
/// How often a question checks for a signal and for a decision of somebody else.
const LOOK_EVERY_MS: u16 = 250;
/// The longest line that is read, in bytes; the terminal itself takes no longer one.
const LONGEST_LINE: usize = 4096;

/// What the wait does after a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterReview {
    Continue,
    /// The person wants to decide later.
    Leave,
}

/// What a person has typed.
enum Typed {
    Line(String),
    /// The end of the input, or Ctrl-D.
    End,
    /// A signal has come, or the handoff does not wait any more for a decision about the document that was shown.
    Over,
}

/// Whether there is a person to ask.
pub(super) fn can_ask(out: &Out) -> bool {
    out.is_live() && std::io::stdin().is_terminal()
}

/// Shows document, faults and facts, asks the person, and carries out the decision.
///
/// # Errors
/// The output is closed, or the copy for the editor can't be written.
pub(super) fn review(
    session: &CliSession,
    interrupts: &Interrupts,
    seen: &HandoffView,
) -> Result<AfterReview, CliError> {
    let short: String = sanitise(&seen.handoff_id).chars().take(8).collect();
    // Ctrl-C in an editor is meant for the editor.
    let text = copy(session, seen);
    interrupts.leave_to_others(true);
    let shown = editor::show(&session.out, &format!("handoff-{short}.md"), &text);
    interrupts.leave_to_others(false);
    shown?;
    let asking = Asking {
        session,
        interrupts,
        handoff_id: &seen.handoff_id,
        held_since: seen.held_since.as_deref(),
        has_writer: seen.has_writer(),
    };
    // What was typed before the question does not answer it.
    let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
    let question = if asking.has_writer { QUESTION } else { QUESTION_WITHOUT_WRITER };
    loop {
        let Typed::Line(line) = asking.line(question)? else { return asking.unanswered() };
        let done = match line.trim().to_ascii_lowercase().as_str() {
            "a" | "accept" => asking.ask("handoff_accept", None)?,
            "c" | "cancel" => asking.ask("handoff_cancel", None)?,
            "r" | "rework" if asking.has_writer => match asking.line(NOTE)? {
                Typed::Line(note) if !note.trim().is_empty() => asking.ask("handoff_rework", Some(note.trim()))?,
                Typed::Line(_) => false,
                Typed::End | Typed::Over => return asking.unanswered(),
            },
            "l" | "later" => return asking.later(),
            _ => false,
        };
        if done {
            return Ok(AfterReview::Continue);
        }
    }
}

/// Asks a person about one held handoff.
struct Asking<'a> {
    session: &'a CliSession,
    interrupts: &'a Interrupts,
    handoff_id: &'a str,
    /// Since when the handoff has waited with the document that was shown.
    held_since: Option<&'a str>,
    /// An agent has written the document, and can be asked to repair it.
    has_writer: bool,
}

impl Asking<'_> {
    /// Sends the request, and prints a refusal. Returns whether the review is over: the sidecar has accepted the
    /// request, or the handoff no longer waits with the document that was shown.
    fn ask(&self, kind: &str, note: Option<&str>) -> Result<bool, CliError> {
        let mut fields = Map::from_iter([("handoff_id".to_owned(), Value::from(self.handoff_id))]);
        fields.extend(note.map(|note| ("note".to_owned(), Value::from(note))));
        let answer: Result<ViewFile<HandoffReply>, CliError> = self.session.ask(kind, fields, ANSWER_SOON);
        if let Err(error) = &answer {
            self.session.out.note(&error.text());
        }
        Ok(answer.is_ok() || !self.is_held())
    }

    /// Whether the handoff waits with the document that was shown. After a rework that somebody else has asked for, it
    /// waits again, with a document that this person has not seen.
    fn is_held(&self) -> bool {
        let is_same = |seen: &HandoffView| examined::is_held(seen) && seen.held_since.as_deref() == self.held_since;
        let seen = view::handoff(&self.session.home, self.handoff_id);
        // If the view can't be read, the question stays open.
        seen.map_or(true, |seen| seen.is_some_and(|seen| is_same(&seen)))
    }

    fn later(&self) -> Result<AfterReview, CliError> {
        let choices = examined::choices(self.handoff_id, self.has_writer);
        self.session.out.note(&format!("The handoff keeps waiting: {choices}."));
        Ok(AfterReview::Leave)
    }

    /// The end of the input means "later". After a signal, or if somebody else has decided, the wait knows what to do.
    fn unanswered(&self) -> Result<AfterReview, CliError> {
        self.session.out.raw("\n")?;
        if self.interrupts.seen() || !self.is_held() { Ok(AfterReview::Continue) } else { self.later() }
    }

    /// Asks a question and reads one line. A terminal gives one line at a time.
    fn line(&self, question: &str) -> Result<Typed, CliError> {
        self.session.out.raw(question)?;
        let stdin = std::io::stdin();
        loop {
            let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            let ready = poll(&mut fds, PollTimeout::from(LOOK_EVERY_MS)).unwrap_or(0) > 0;
            if self.interrupts.seen() || (!ready && !self.is_held()) {
                return Ok(Typed::Over);
            }
            if !ready {
                continue;
            }
            let mut bytes = vec![0; LONGEST_LINE];
            match nix::unistd::read(stdin.as_fd(), &mut bytes) {
                Ok(0) => return Ok(Typed::End),
                // Somebody else may have decided since the last check.
                Ok(_) if !self.is_held() => return Ok(Typed::Over),
                Ok(count) => return Ok(Typed::Line(String::from_utf8_lossy(&bytes[..count]).into_owned())),
                Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => {}
                Err(_) => return Ok(Typed::End),
            }
        }
    }
}

/// What the person reads before the question.
fn copy(session: &CliSession, seen: &HandoffView) -> String {
    let about = format!(
        "This is a copy for reading; what you change in it is not kept. Close it to decide about handoff {}.",
        seen.handoff_id
    );
    format!("{}\n\n{}", sanitise(&about), documents::whole(&session.home, seen))
}
