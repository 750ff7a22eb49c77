//! Carrying out what was ordered, on a thread of its own: requests by the spool, as every command makes them, and the way to
//! a pane by tmux.

use super::choice::{Asked, Order};
use super::jump;
use super::ui::Outcome;
use super::wake::Waker;
use crate::cli::error::CliError;
use crate::cli::handoff::Assume;
use crate::cli::view::{Seen, shown};
use crate::cli::{ANSWER_SOON, Session, errors, handoff, view};
use crate::contract::reply::HandoffReply;
use serde_json::{Map, Value};
use std::sync::mpsc::Sender;

/// Carries an order out and sends what it came to.
///
/// # Errors
/// When no thread can be started.
pub(super) fn spawn(session: &Session, order: Order, to: Sender<Outcome>, waker: Waker) -> std::io::Result<()> {
    let session = Session { home: session.home.clone(), out: session.out.clone(), timeout: session.timeout };
    let carry_out = move || {
        let outcome = match order {
            Order::Ask(asked) => {
                // Whatever happens there has to be an answer, for until it comes nothing else can be asked.
                let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask(&session, &asked)));
                let said = said
                    .unwrap_or_else(|_| Err(CliError::refused("bug", "Asking has failed by a mistake of top's own")));
                Outcome { said, asked: Some(asked), leaves: false }
            }
            Order::Jump(pane) => {
                let said = jump::jump(&session.home, &pane);
                let leaves = said.is_ok() && jump::is_popup();
                Outcome { said, asked: None, leaves }
            }
            Order::Quit => return,
        };
        // Nobody listens any more when the screen has been left.
        if to.send(outcome).is_ok() {
            waker.ring();
        }
    };
    std::thread::Builder::new().name("asking".to_owned()).spawn(carry_out).map(|_| ())
}

fn ask(session: &Session, asked: &Asked) -> Result<String, CliError> {
    let fields = |pairs: &[(&str, Option<&str>)]| -> Map<String, Value> {
        let given = pairs.iter().filter_map(|(key, value)| Some(((*key).to_owned(), Value::from((*value)?))));
        given.collect()
    };
    let of = |handoff: &str| fields(&[("handoff_id", Some(handoff))]);
    match asked {
        Asked::HandOff { agent, reason, focus } => {
            let fields = fields(&[("agent_id", Some(agent)), ("reason", Some(reason)), ("focus", focus.as_deref())]);
            let answer: Seen<HandoffReply> = session.ask("handoff", fields, ANSWER_SOON)?;
            Ok(format!("handoff {} has begun", shown(answer.handoff_id.as_str())))
        }
        Asked::Cancel(handoff) => {
            session.ask::<HandoffReply>("handoff_cancel", of(handoff), ANSWER_SOON)?;
            Ok(format!("handoff {handoff} is cancelled"))
        }
        Asked::Retry { handoff, assume } => {
            let assume = assume.map(Assume::word);
            go_on(session, "handoff_retry", handoff, fields(&[("handoff_id", Some(handoff)), ("assume", assume)]))
        }
        Asked::Accept(handoff) => go_on(session, "handoff_accept", handoff, of(handoff)),
        Asked::Dismiss(error) => {
            errors::dismiss_one(session, error)?;
            Ok("the error is dismissed".to_owned())
        }
    }
}

fn go_on(session: &Session, kind: &str, id: &str, fields: Map<String, Value>) -> Result<String, CliError> {
    let before = view::handoff(&session.home, id)?;
    let answer: Seen<HandoffReply> = session.ask(kind, fields, ANSWER_SOON)?;
    Ok(handoff::goes_on(id, &before.as_deref().cloned().unwrap_or_default(), &answer))
}
