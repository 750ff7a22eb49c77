//! `reopen`: reopens the session of an agent that was handed off, in a new window of its successor's tmux session.

use super::error::CliError;
use super::go_to::go_to;
use super::output::one_line;
use super::view::{ViewFile, shown};
use super::{CliSession, names};
use crate::contract::reply::HandoffReply;
use clap::Args;
use serde_json::{Map, Value};

/// `reopen`.
#[derive(Debug, Args)]
pub struct ReopenArgs {
    /// Handoff id, the beginning of it, or a persona (its latest handoff).
    pub handoff: String,
}

/// Asks the sidecar to reopen the session, and says in which pane it is.
///
/// # Errors
/// What the sidecar refused.
pub fn command(session: &CliSession, args: &ReopenArgs) -> Result<(), CliError> {
    let id = names::handoff(&session.home, &args.handoff)?;
    let fields = Map::from_iter([("handoff_id".to_owned(), Value::from(id))]);
    let answer: ViewFile<HandoffReply> = session.ask_about_agent(None, "handoff_reopen", fields)?;
    let (agent, pane) = (one_line(&shown(answer.agent_id.as_deref())), one_line(&shown(answer.pane.as_deref())));
    session.report(&answer.json(), &format!("the session is open again in pane {pane}, as agent {agent}"))?;
    session.out.note(&format!("tasuki types nothing to it. Go there with: {}", go_to(&session.home, &pane)));
    Ok(())
}
