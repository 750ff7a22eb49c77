//! `doctor`: looks round and says what is wrong, one line for each thing, with what to do. It changes nothing.

mod delivery;

use super::Session;
use super::args::DoctorCommand;
use super::error::CliError;
use super::output::Tone;
use crate::core::text::sanitise;
use serde_json::{Value, json};

/// How a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As it should be.
    Ok,
    /// Worth a look; nothing fails by it alone.
    Warn,
    /// It does not work.
    Fail,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Ok => "ok",
            State::Warn => "warn",
            State::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    /// Its name, which stays the same.
    name: &'static str,
    state: State,
    /// What was seen.
    said: String,
    /// What to do.
    fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, said: impl Into<String>) -> Check {
        Check { name, state: State::Ok, said: said.into(), fix: None }
    }

    fn warn(name: &'static str, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, state: State::Warn, said: said.into(), fix: Some(fix.into()) }
    }

    fn fail(name: &'static str, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, state: State::Fail, said: said.into(), fix: Some(fix.into()) }
    }

    fn json(&self) -> Value {
        json!({"check": self.name, "state": self.state.word(), "said": self.said, "fix": self.fix})
    }
}

/// Looks and tells.
///
/// # Errors
/// Something does not work (exit code 1, nothing more is printed), or what was asked about does not exist.
pub fn command(session: &Session, command: &DoctorCommand) -> Result<(), CliError> {
    let checks = match command {
        DoctorCommand::Delivery(args) => delivery::look(session, args)?,
    };
    tell(session, &checks)?;
    let failed = checks.iter().filter(|check| check.state == State::Fail).count();
    if failed == 0 {
        return Ok(());
    }
    Err(CliError::refused("not_well", format!("{failed} of {} checks failed.", checks.len())))
}

fn tell(session: &Session, checks: &[Check]) -> Result<(), CliError> {
    if session.out.is_json() {
        let all: Vec<Value> = checks.iter().map(Check::json).collect();
        return session.out.document(&json!({"v": 1, "checks": all}));
    }
    for check in checks {
        let tone = match check.state {
            State::Ok => Tone::Good,
            State::Warn => Tone::Faint,
            State::Fail => Tone::Bad,
        };
        let word = session.out.paint(tone, &format!("{:<4}", check.state.word()));
        let fix = check.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
        let said = sanitise(&format!("{}{fix}", check.said)).replace('\n', " ");
        session.out.line(&format!("{word}  {:<14} {said}", check.name))?;
    }
    Ok(())
}
