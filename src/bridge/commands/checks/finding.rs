//! Makes the result of one check, as `tasuki doctor` prints it.

use crate::cli::doctor::Line;
use crate::cli::error::CliError;

/// The fix that makes missing streams and consumers at the server, and writes the list of members again.
pub(super) const SETUP: &str = "on the machine that holds the fleet's key: tasuki fleet setup";
/// The fix that gives a host a new login, and makes it a member again.
pub(super) const ADMIT_AGAIN: &str =
    "have the owner of the fleet admit this host again: tasuki fleet key, then admit, then join";
/// The most names that one result lists.
const MOST_NAMES: usize = 5;

fn line(id: &str, status: &str, said: impl Into<String>, fix: Option<String>) -> Line {
    let group = id.split('.').next().unwrap_or(id).to_owned();
    Line { id: id.to_owned(), group, status: status.to_owned(), said: said.into(), fix, fixed: None }
}

/// A check that found nothing wrong.
pub(super) fn ok(id: &str, said: impl Into<String>) -> Line {
    line(id, "ok", said, None)
}

/// A warning: the thing works, but somebody should look at it.
pub(super) fn warn(id: &str, said: impl Into<String>, fix: impl Into<String>) -> Line {
    line(id, "warn", said, Some(fix.into()))
}

/// A failure.
pub(super) fn fail(id: &str, said: impl Into<String>, fix: impl Into<String>) -> Line {
    line(id, "fail", said, Some(fix.into()))
}

/// A check that was not made. `said`: why.
pub(super) fn skipped(id: &str, said: impl Into<String>) -> Line {
    line(id, "skipped", said, None)
}

/// A failure that the error explains. `fix` is used if the error has no hint.
pub(super) fn of_error(id: &str, error: CliError, fix: &str) -> Line {
    let CliError { message, hint, .. } = error;
    fail(id, message.trim_end_matches('.').to_owned(), hint.unwrap_or_else(|| fix.to_owned()))
}

/// Names in one line: the first 5, and how many more there are.
pub(super) fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_NAMES);
    let first = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// A length of time in words, in one unit. The sign is left out.
pub(super) fn span(ms: i64) -> String {
    match ms.saturating_abs() / 1_000 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}
