//! Prints the findings: as text in sections, or as one JSON object.

use super::check::{Check, CheckState, why_not};
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::home_option;
use crate::cli::output::Tone;
use crate::core::text::sanitise;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What `tasuki doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Report {
    /// The format's version: 1.
    pub v: u8,
    /// No check has failed.
    pub ok: bool,
    /// The result of every check.
    pub checks: Vec<Line>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Its name, which never changes: `group.check`.
    pub id: String,
    /// The group.
    pub group: String,
    /// `ok`; `warn`, worth a look; `fail`, it does not work; `skipped`, there is nothing to check, or it follows from
    /// another failure.
    #[schemars(extend("enum" = ["ok", "warn", "fail", "skipped"]))]
    pub status: String,
    /// What the check has found.
    pub said: String,
    /// What to do; null if nothing is to be done.
    pub fix: Option<String>,
    /// What `--fix` has done; null if it has done nothing.
    pub fixed: Option<String>,
}

/// What `tasuki doctor delivery --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeliveryReport {
    /// The format's version: 1.
    v: u8,
    /// The result of every check, in the order in which a delivery needs them.
    checks: Vec<DeliveryLine>,
}

/// The result of one check of a delivery.
#[derive(Debug, Serialize, JsonSchema)]
struct DeliveryLine {
    /// Its name, which never changes: `group.check`.
    check: String,
    /// `ok`; `warn`, worth a look; `fail`, it does not work; `skipped`, there is nothing to check, or it follows from
    /// another failure.
    #[schemars(extend("enum" = ["ok", "warn", "fail", "skipped"]))]
    state: String,
    /// What the check has found.
    said: String,
    /// What to do; null if nothing is to be done.
    fix: Option<String>,
}

/// Prints all results.
///
/// # Errors
/// When the output is closed.
pub(super) fn everything(session: &CliSession, checks: &[Check], fix: bool) -> Result<(), CliError> {
    if session.out.is_json() {
        let report = json!(Report {
            v: 1,
            ok: checks.iter().all(|check| check.state != CheckState::Fail),
            checks: checks.iter().map(line).collect(),
        });
        return session.out.document(&report);
    }
    let mut group = "";
    for check in checks {
        if check.group() != group {
            if !group.is_empty() {
                session.out.line("")?;
            }
            group = check.group();
            session.out.line(&session.out.paint(Tone::Strong, group))?;
        }
        show(session, check, 12, fix)?;
    }
    let count = |state: CheckState| checks.iter().filter(|check| check.state == state).count();
    let counts = [CheckState::Ok, CheckState::Warn, CheckState::Fail, CheckState::Skipped]
        .map(|state| format!("{} {}", count(state), state.as_str()));
    session.out.line("")?;
    session.out.line(&counts.join(", "))
}

fn line(check: &Check) -> Line {
    Line {
        id: check.id.clone(),
        group: check.group().to_owned(),
        status: check.state.as_str().to_owned(),
        said: sanitise(&check.said),
        fix: check.fix.as_deref().map(sanitise),
        fixed: check.fixed.as_deref().map(sanitise),
    }
}

/// A result in one line, with what to do indented below it. `wide`: the width of the checks' names.
fn show(session: &CliSession, check: &Check, wide: usize, fix: bool) -> Result<(), CliError> {
    let one_line = |text: &str| sanitise(text).replace('\n', " ");
    let word = session.out.paint(tone(check.state), &format!("{:<7}", check.state.as_str()));
    session.out.line(&format!("  {word}  {:<wide$}  {}", check.what(), one_line(&check.said)))?;
    let indent = " ".repeat(wide + 13);
    let below = |name: &str, text: &str| session.out.line(&format!("{indent}{name}: {}", one_line(text)));
    if let Some(fixed) = &check.fixed {
        below("fixed", fixed)?;
    }
    let is_bad = matches!(check.state, CheckState::Warn | CheckState::Fail);
    if let Some(text) = check.fix.as_ref().filter(|_| is_bad) {
        below("fix", &home_option::fit(text))?;
    }
    if is_bad && fix && check.repair.is_none() {
        below("left alone", why_not(check))?;
    }
    Ok(())
}

fn tone(state: CheckState) -> Tone {
    match state {
        CheckState::Ok => Tone::Good,
        CheckState::Warn => Tone::Care,
        CheckState::Fail => Tone::Bad,
        CheckState::Skipped => Tone::Faint,
    }
}

/// Prints the results of `doctor delivery`.
///
/// # Errors
/// When the output is closed.
pub(super) fn delivery(session: &CliSession, checks: &[Check]) -> Result<(), CliError> {
    if session.out.is_json() {
        let one = |check: &Check| DeliveryLine {
            check: check.id.clone(),
            state: check.state.as_str().to_owned(),
            said: check.said.clone(),
            fix: check.fix.clone(),
        };
        let report = DeliveryReport { v: 1, checks: checks.iter().map(one).collect() };
        return session.out.document(&json!(report));
    }
    let wide = checks.iter().map(|check| check.what().len()).max().unwrap_or_default();
    checks.iter().try_for_each(|check| show(session, check, wide, false))
}
