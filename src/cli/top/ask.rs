//! Carries out actions on a separate thread: requests through the spool, like every other command, and the jump to a
//! pane through tmux.

use super::choice::{LoopAction, TopRequest};
use super::jump;
use super::ui::ActionResult;
use super::wake::SleepWaker;
use crate::cli::error::CliError;
use crate::cli::handoff_words::AssumeArg;
use crate::cli::view::{ViewFile, shown};
use crate::cli::{ANSWER_SOON, CliSession, errors, handoff, view};
use crate::contract::reply::HandoffReply;
use serde_json::{Map, Value};
use std::sync::mpsc::Sender;

/// Carries out an action and sends its result.
///
/// # Errors
/// When no thread can be started.
pub(super) fn spawn(
    session: &CliSession,
    action: LoopAction,
    to: Sender<ActionResult>,
    waker: SleepWaker,
) -> std::io::Result<()> {
    let session = CliSession { home: session.home.clone(), out: session.out.clone(), timeout: session.timeout };
    let carry_out = move || {
        let outcome = match action {
            LoopAction::Ask(asked) => {
                // A panic must become a result too, because no other request is possible until the result comes.
                let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask(&session, &asked)));
                let said = said
                    .unwrap_or_else(|_| Err(CliError::refused("bug", "The request failed because of a bug in top")));
                ActionResult { said, asked: Some(asked), leaves: false }
            }
            LoopAction::Jump(pane) => {
                let said = jump::jump(&session.home, &pane);
                let leaves = said.is_ok() && jump::is_popup();
                ActionResult { said, asked: None, leaves }
            }
            LoopAction::Quit => return,
        };
        // Sending fails if the screen was left meanwhile.
        if to.send(outcome).is_ok() {
            waker.ring();
        }
    };
    std::thread::Builder::new().name("asking".to_owned()).spawn(carry_out).map(|_| ())
}

fn ask(session: &CliSession, asked: &TopRequest) -> Result<String, CliError> {
    let fields = |pairs: &[(&str, Option<&str>)]| -> Map<String, Value> {
        let given = pairs.iter().filter_map(|(key, value)| Some(((*key).to_owned(), Value::from((*value)?))));
        given.collect()
    };
    let of = |handoff: &str| fields(&[("handoff_id", Some(handoff))]);
    match asked {
        TopRequest::HandOff { agent, reason, focus } => {
            let fields = fields(&[("agent_id", Some(agent)), ("reason", Some(reason)), ("focus", focus.as_deref())]);
            let answer: ViewFile<HandoffReply> = session.ask("handoff", fields, ANSWER_SOON)?;
            Ok(format!("handoff {} has started", shown(answer.handoff_id.as_str())))
        }
        TopRequest::Cancel(handoff) => {
            session.ask::<HandoffReply>("handoff_cancel", of(handoff), ANSWER_SOON)?;
            Ok(format!("handoff {handoff} is cancelled"))
        }
        TopRequest::Retry { handoff, assume } => {
            let assume = assume.map(AssumeArg::as_str);
            continue_handoff(
                session,
                "handoff_retry",
                handoff,
                fields(&[("handoff_id", Some(handoff)), ("assume", assume)]),
            )
        }
        TopRequest::Accept(handoff) => continue_handoff(session, "handoff_accept", handoff, of(handoff)),
        TopRequest::Dismiss(error) => {
            errors::dismiss_one(session, error)?;
            Ok("the error is dismissed".to_owned())
        }
    }
}

fn continue_handoff(
    session: &CliSession,
    kind: &str,
    id: &str,
    fields: Map<String, Value>,
) -> Result<String, CliError> {
    let before = view::handoff(&session.home, id)?;
    let answer: ViewFile<HandoffReply> = session.ask(kind, fields, ANSWER_SOON)?;
    Ok(handoff::continues_line(id, &before.as_deref().cloned().unwrap_or_default(), &answer))
}
