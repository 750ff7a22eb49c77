//! `hooks show`: what to put into an agent CLI's own configuration so that it reports its events.

use super::Session;
use super::args::{HooksCommand, ProfileName};
use super::error::CliError;
use super::home::Home;
use serde_json::json;

/// Prints a profile's hooks.
///
/// # Errors
/// When there is no such profile.
pub fn command(session: &Session, command: &HooksCommand) -> Result<(), CliError> {
    let HooksCommand::Show(ProfileName { profile }) = command;
    let text = configuration(profile, &session.home)?;
    session.tell(&json!({"profile": profile, "configuration": text}), &text)
}

/// What a profile's CLI must be told. The one place where the command line meets the profiles.
fn configuration(profile: &str, home: &Home) -> Result<String, CliError> {
    if profile == "demo" {
        let home = home.root().display();
        return Ok(format!("The demo agent reports its events by itself, to the home it was started with ({home})."));
    }
    let name = crate::core::text::sanitise(profile);
    Err(CliError::refused("no_profile", format!("There is no profile {name}.")).hint("The built-in profile is: demo."))
}
