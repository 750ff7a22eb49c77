//! `publish`: publishes a recorded document now. Also the options of a handoff that concern publishing.

use super::CliSession;
use super::client::Pulse;
use super::error::CliError;
use super::view::{ViewFile, said};
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
    /// Handoff id, the beginning of it, or a persona (its latest handoff).
    pub handoff: String,
    /// Publish the document there: as a comment on `owner/repo#42`, or as a secret `gist` [default: where the
    /// handoff or the configuration says].
    #[arg(long, value_name = "WHERE", conflicts_with = "assume")]
    pub to: Option<String>,
    /// With --to: what to publish if the comment is refused: `gist`, which anyone who has its link can read.
    #[arg(long, value_name = "HOW", requires = "to")]
    pub fallback: Option<String>,
    /// For publishing that is `in_doubt`: whether you see the document at its target.
    #[arg(long, value_enum)]
    pub assume: Option<AssumePublishedArg>,
    /// For publishing that is `held`: publish the document with `[REDACTED:…]` in place of each credential.
    #[arg(long, conflicts_with_all = ["as_is", "assume"])]
    pub redacted: bool,
    /// For publishing that is `held`: publish the document as it is. Look at the lines first.
    #[arg(long, conflicts_with = "assume")]
    pub as_is: bool,
    /// Exit only when the document is published, or publishing has failed, is held or is in doubt.
    #[arg(long)]
    pub wait: bool,
}

/// For an upload in doubt: whether a person sees the document at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AssumePublishedArg {
    /// The document is there.
    Published,
    /// The document is not there: publish it again.
    #[value(alias = "not_published")]
    NotPublished,
}

/// Asks the sidecar to publish the document. With `--wait`, waits until the publishing has ended.
///
/// # Errors
/// What the sidecar refused, or, with `--wait`, why the document was not published.
pub fn command(session: &CliSession, args: &PublishArgs) -> Result<(), CliError> {
    let id = names::handoff(&session.home, &args.handoff)?;
    let mut fields = Map::from_iter([("handoff_id".to_owned(), Value::from(id.clone()))]);
    if let Some(to) = target(args.to.as_deref(), args.fallback.as_deref())? {
        fields.insert("to".to_owned(), to);
    }
    if let Some(assume) = args.assume {
        let word = match assume {
            AssumePublishedArg::Published => "published",
            AssumePublishedArg::NotPublished => "not_published",
        };
        fields.insert("assume".to_owned(), word.into());
    }
    if let Some(publish_as) = args.redacted.then_some("redacted").or(args.as_is.then_some("as_is")) {
        fields.insert("as".to_owned(), publish_as.into());
    }
    let answer: ViewFile<HandoffReply> = session.ask("publish", fields, super::ANSWER_SOON)?;
    let is_there = answer.status == PublishState::Published.as_str();
    if is_there || !args.wait {
        let line = match is_there {
            true => published(&id, answer.url.as_ref().and_then(Option::as_deref)),
            false => format!("handoff {id} is being published"),
        };
        return session.report(&answer.json(), &line);
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
    let url = said(url).map_or_else(|| "at an unknown address".to_owned(), sanitise);
    format!("handoff {id} is published: {url}")
}

/// Waits until the publishing has ended, is held or is in doubt, and returns the handoff's view.
fn until_ended(session: &CliSession, id: &str) -> Result<ViewFile<HandoffView>, CliError> {
    let (start, patience) = (Instant::now(), session.timeout.unwrap_or(LONGEST));
    let mut pulse = Pulse::new(&session.home);
    loop {
        let has_ended = |publish: &PublishView| {
            use PublishState::{Failed, Held, InDoubt, Published};
            matches!(publish.state.known(), Some(Published | Failed | Held | InDoubt))
        };
        let seen = view::handoff(&session.home, id)?;
        if let Some(seen) = seen.filter(|seen| seen.publish.as_ref().is_some_and(has_ended)) {
            return Ok(seen);
        }
        pulse.keep(PULSE_EVERY)?;
        if start.elapsed() >= patience {
            let message = format!(
                "The document was not published within {}; publishing continues.",
                humantime::format_duration(patience)
            );
            return Err(CliError::new(exit::TRY_AGAIN, "still_running", message));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Whether and where the document of a handoff is published.
#[derive(Debug, Args)]
pub struct PublishOptions {
    /// Publish the document with your own `gh`: as a comment on `owner/repo#42`, or as a secret `gist`.
    #[arg(long, value_name = "WHERE")]
    pub publish: Option<String>,
    /// What to publish if the comment is refused: `gist`, which anyone who has its link can read.
    #[arg(long, value_name = "HOW", requires = "publish")]
    pub fallback: Option<String>,
    /// Do not publish the document, although `persona.toml` or the configuration says so.
    #[arg(long, conflicts_with = "publish")]
    pub no_publish: bool,
}

impl PublishOptions {
    /// The field `publish` of the request.
    ///
    /// # Errors
    /// `--fallback` without an issue.
    pub fn field(&self) -> Result<Option<Value>, CliError> {
        if self.no_publish {
            return Ok(Some(false.into()));
        }
        target(self.publish.as_deref(), self.fallback.as_deref())
    }
}

fn target(target: Option<&str>, fallback: Option<&str>) -> Result<Option<Value>, CliError> {
    let mut option = match target {
        None if fallback.is_some() => return Err(CliError::usage("--fallback needs an issue: owner/repo#42.")),
        None => return Ok(None),
        Some("gist") => json!({"gist": true}),
        Some(issue) => json!({"issue": issue}),
    };
    if let Some(fallback) = fallback {
        option["fallback"] = fallback.into();
    }
    Ok(Some(option))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_make_the_publish_option() {
        assert_eq!(target(Some("gist"), None).expect("a legal option"), Some(json!({"gist": true})));
        let both = target(Some("o/r#1"), Some("gist")).expect("a legal option");
        assert_eq!(both, Some(json!({"issue": "o/r#1", "fallback": "gist"})));
        assert!(target(None, Some("gist")).is_err());
        let none = PublishOptions { publish: None, fallback: None, no_publish: false };
        assert_eq!(none.field().expect("nothing is asked"), None);
        let no = PublishOptions { no_publish: true, ..none };
        assert_eq!(no.field().expect("a legal option"), Some(json!(false)));
    }
}
