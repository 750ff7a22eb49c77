//! `publish`: publishes a recorded document now, after a failure or before the next try is due.

use super::Session;
use super::client::Pulse;
use super::error::CliError;
use super::view::{Seen, said};
use super::wait::{LONGEST, LOOK_EVERY, PULSE_EVERY};
use super::{names, view};
use crate::contract::publishing::PublishErrorView;
use crate::contract::reply::HandoffReply;
use crate::contract::{HandoffView, PublishState, PublishView};
use crate::core::text::sanitise;
use crate::exit;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};
use std::time::Instant;

/// `publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// Handoff id or its beginning.
    pub handoff: String,
    /// Whether the document is there, as you have seen it, where the handoff's view says `in_doubt`.
    #[arg(long, value_enum)]
    pub assume: Option<AssumePublished>,
    /// Exit only when it is published, has failed or is in doubt.
    #[arg(long)]
    pub wait: bool,
}

/// What a person has seen of an upload in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AssumePublished {
    /// It is there.
    Published,
    /// It is not there: publish it anew.
    #[value(alias = "not_published")]
    NotPublished,
}

/// Asks for it, and waits for its end if that is wanted.
///
/// # Errors
/// What the sidecar refused, or, with `--wait`, why it was not published.
pub fn command(session: &Session, args: &PublishArgs) -> Result<(), CliError> {
    let id = names::handoff(&session.home, &args.handoff)?;
    let mut fields = Map::from_iter([("handoff_id".to_owned(), Value::from(id.clone()))]);
    if let Some(assume) = args.assume {
        let word = match assume {
            AssumePublished::Published => "published",
            AssumePublished::NotPublished => "not_published",
        };
        fields.insert("assume".to_owned(), word.into());
    }
    let answer: Seen<HandoffReply> = session.ask("publish", fields, super::ANSWER_SOON)?;
    let is_there = answer.status == PublishState::Published.word();
    if is_there || !args.wait {
        let line = match is_there {
            true => published(&id, answer.url.as_ref().and_then(Option::as_deref)),
            false => format!("handoff {id} is being published"),
        };
        return session.tell(&answer.json(), &line);
    }
    let ended = until_ended(session, &id)?;
    let publish = ended.publish.clone().unwrap_or_default();
    match publish.state.known() {
        Some(PublishState::Published) if session.out.is_json() => session.out.document(&json!(publish)),
        Some(PublishState::Published) => session.out.line(&published(&id, publish.url.as_deref())),
        _ => {
            let PublishErrorView { code, message, hint, .. } = publish.error.unwrap_or_default();
            Err(CliError::told(&code, &message, &hint))
        }
    }
}

fn published(id: &str, url: Option<&str>) -> String {
    let url = said(url).map_or_else(|| "at an address that is not known".to_owned(), sanitise);
    format!("handoff {id} is published: {url}")
}

/// The view when nothing follows of the publishing by itself any more.
fn until_ended(session: &Session, id: &str) -> Result<Seen<HandoffView>, CliError> {
    let (start, patience) = (Instant::now(), session.timeout.unwrap_or(LONGEST));
    let mut pulse = Pulse::new(&session.home);
    loop {
        let has_ended = |publish: &PublishView| {
            use PublishState::{Failed, InDoubt, Published};
            matches!(publish.state.known(), Some(Published | Failed | InDoubt))
        };
        let seen = view::handoff(&session.home, id)?;
        if let Some(seen) = seen.filter(|seen| seen.publish.as_ref().is_some_and(has_ended)) {
            return Ok(seen);
        }
        pulse.keep(PULSE_EVERY)?;
        if start.elapsed() >= patience {
            let message = format!("It is not published within {}; it goes on.", humantime::format_duration(patience));
            return Err(CliError::new(exit::TRY_AGAIN, "still_running", message));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The publishing dial of a handoff from its two flags.
///
/// # Errors
/// A fallback with nothing that it could be one of.
pub fn dial(target: Option<&str>, fallback: Option<&str>) -> Result<Option<Value>, CliError> {
    let mut dial = match target {
        None if fallback.is_some() => return Err(CliError::usage("--fallback goes with --publish owner/repo#42.")),
        None => return Ok(None),
        Some("gist") => json!({"gist": true}),
        Some(issue) => json!({"issue": issue}),
    };
    if let Some(fallback) = fallback {
        dial["fallback"] = fallback.into();
    }
    Ok(Some(dial))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_make_the_dial() {
        assert_eq!(dial(Some("gist"), None).expect("a dial"), Some(json!({"gist": true})));
        let both = dial(Some("o/r#1"), Some("gist")).expect("a dial");
        assert_eq!(both, Some(json!({"issue": "o/r#1", "fallback": "gist"})));
        assert!(dial(None, Some("gist")).is_err());
    }
}
