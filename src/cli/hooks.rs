//! `hooks show`: what to put into an agent CLI's own configuration so that agents that tasuki did not start report too.

use super::Session;
use super::args::{HooksCommand, ProfileName};
use super::error::CliError;
use crate::agents::{Profile, Profiles};
use crate::core::text::sanitise;
use serde_json::json;

/// Prints a profile's hooks: the text alone on standard output, what to do with it on standard error.
///
/// # Errors
/// When there is no such profile, or one of the home's profiles is wrong.
pub fn command(session: &Session, command: &HooksCommand) -> Result<(), CliError> {
    let HooksCommand::Show(ProfileName { profile: name }) = command;
    let profiles = Profiles::load(Some(&session.home.profiles()))?;
    let profile = profiles.get(name).ok_or_else(|| unknown(name, &profiles))?;
    let program = std::env::current_exe()
        .map_err(|error| CliError::refused("program", format!("This program's own path is not known: {error}.")))?;
    let title = sanitise(&profile.file.title);
    match profile.install(&program, session.home.root()) {
        Some((file, text)) => {
            session.out.note(&format!("For {title}: put this into {}, beside what is there.", sanitise(&file)));
            let answer = json!({"profile": name, "title": title, "file": file, "configuration": text});
            session.tell(&answer, text.trim_end())
        }
        None => {
            let answer = json!({"profile": name, "title": title, "file": null, "configuration": null});
            session.tell(&answer, &format!("{title}: nothing is to be configured. {}", why_nothing(profile)))
        }
    }
}

fn why_nothing(profile: &Profile) -> &'static str {
    match profile.file.launch {
        Some(_) => "Agents that tasuki starts are told by their launch line what to report.",
        None => "The profile does not say how its CLI reports events.",
    }
}

fn unknown(name: &str, profiles: &Profiles) -> CliError {
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    CliError::refused("no_profile", format!("There is no profile {}.", sanitise(name)))
        .hint(format!("There are: {}. Your own lie in HOME/data/profiles/NAME.toml.", names.join(", ")))
}
