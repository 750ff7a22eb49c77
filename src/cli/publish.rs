//! `publish`: publishes a recorded document now, after a failure or before the next try is due.

use super::Session;
use super::args::{AssumePublished, PublishArgs};
use super::client::Pulse;
use super::error::CliError;
use super::wait::{LONGEST, LOOK_EVERY, PULSE_EVERY};
use super::{names, view};
use crate::core::text::sanitise;
use crate::exit;
use serde_json::{Map, Value, json};
use std::time::Instant;

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
    let answer = session.ask("publish", fields, super::ANSWER_SOON)?;
    let is_there = view::text(&answer, "status") == Some("published");
    if is_there || !args.wait {
        let line = if is_there { published(&id, &answer) } else { format!("handoff {id} is being published") };
        return session.tell(&answer, &line);
    }
    let ended = until_ended(session, &id)?;
    match view::text(&ended, "state") {
        Some("published") if session.out.is_json() => session.out.document(&ended),
        Some("published") => session.out.line(&published(&id, &ended)),
        _ => Err(CliError::from_answer(ended.get("error").unwrap_or(&Value::Null), None)),
    }
}

fn published(id: &str, with_url: &Value) -> String {
    let url = view::text(with_url, "url").map_or_else(|| "at an address that is not known".to_owned(), sanitise);
    format!("handoff {id} is published: {url}")
}

/// The publishing's part of the view when nothing follows by itself any more.
fn until_ended(session: &Session, id: &str) -> Result<Value, CliError> {
    let (start, patience) = (Instant::now(), session.timeout.unwrap_or(LONGEST));
    let mut pulse = Pulse::new(&session.home);
    loop {
        let seen = view::handoff(&session.home, id)?.and_then(|seen| seen.get("publish").cloned()).unwrap_or_default();
        if matches!(view::text(&seen, "state"), Some("published" | "failed" | "in_doubt")) {
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

/// The line of a handoff's publishing for people; none if that was not asked for.
#[must_use]
pub fn summary(handoff: &Value) -> Option<String> {
    let seen = handoff.get("publish").filter(|seen| seen.is_object())?;
    let state = view::text(seen, "state")?;
    let to = view::text(seen, "to").unwrap_or("?");
    let last = seen.get("attempts").and_then(Value::as_array).and_then(|attempts| attempts.last());
    let error = last.and_then(|last| last.get("error")).filter(|error| error.is_object()).unwrap_or(&Value::Null);
    let code = view::text(error, "code").map(|code| format!(" ({code})")).unwrap_or_default();
    Some(match (state, view::text(seen, "url")) {
        ("published", Some(url)) => url.to_owned(),
        ("published", None) => format!("{to}: published, at an address that is not known"),
        ("retrying", _) => {
            let at = view::text(seen, "next_try_at").map(view::clock).unwrap_or_default();
            format!("{to}: retrying at {at}{code}")
        }
        ("waiting", _) => format!("{to}: waits for the record"),
        ("running", _) => format!("{to}: running"),
        _ => format!("{to}: {}{code}", state.replace('_', " ")),
    })
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
    fn the_line_says_where_it_stands() {
        let of = |publish: Value| summary(&json!({"publish": publish}));
        assert_eq!(of(Value::Null), None);
        let url = "https://x/1";
        assert_eq!(of(json!({"state": "published", "to": "issue", "url": url})).as_deref(), Some(url));
        let failed = json!({"state": "in_doubt", "to": "gist", "attempts": [{"error": {"code": "gh_timeout"}}]});
        assert_eq!(of(failed).as_deref(), Some("gist: in doubt (gh_timeout)"));
    }

    #[test]
    fn the_flags_make_the_dial() {
        assert_eq!(dial(Some("gist"), None).expect("a dial"), Some(json!({"gist": true})));
        let both = dial(Some("o/r#1"), Some("gist")).expect("a dial");
        assert_eq!(both, Some(json!({"issue": "o/r#1", "fallback": "gist"})));
        assert!(dial(None, Some("gist")).is_err());
    }
}
