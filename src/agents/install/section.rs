//! The `install` section of a profile: checks it, and fills in its text.

use super::found_file;
use super::merge::Template;
use super::shape::ANY;
use super::text::{Notation, SyntaxError};
use crate::agents::format::{InstallFile, InstallFormat, InstallSection, ProfileFile};
use crate::agents::placeholder::{self, TEXT, first_unknown};

/// Checks an `install` section when its profile is loaded. Returns the invalid key, and why it is invalid.
pub(crate) fn check(profile: &str, file: &ProfileFile) -> Result<(), (&'static str, String)> {
    let Some(section) = &file.install else { return Ok(()) };
    check_one(profile, file, section)?;
    for more in &section.files {
        check_one(profile, file, &whole(more)).map_err(|(key, why)| match key {
            "install.file" => ("install.files.file", why),
            _ => ("install.files.text", why),
        })?;
    }
    Ok(())
}

fn check_one(profile: &str, file: &ProfileFile, section: &InstallSection) -> Result<(), (&'static str, String)> {
    if let Some(wrong) = section.file.0.iter().find(|place| !found_file::is_place(place)) {
        let rule = "is not a path such as \"~/.mycli/settings.json\" or \"$MYCLI_HOME/settings.json\"";
        return Err(("install.file", format!("`{wrong}` {rule}")));
    }
    if section.file.0.is_empty() {
        return Err(("install.file", "must name a file".into()));
    }
    let is_known = |name: &str| match name.strip_prefix(TEXT) {
        Some(own) => file.launch.as_ref().is_some_and(|launch| launch.text(own).is_some()),
        None => ["program", "home", "profile"].contains(&name),
    };
    if let Some(name) = first_unknown(&section.text, is_known) {
        return Err(("install.text", format!("there is no placeholder {{{name}}} here")));
    }
    if let Some(notation) = notation(section.format) {
        let shape = shape(profile, file, section);
        let said =
            |fault: SyntaxError| ("install.text", format!("line {} of this text: {}", fault.line, fault.message));
        Template::new(profile, [&shape, &shape], notation).map_err(said)?;
    }
    Ok(())
}

/// One of `install.files` as a section of its own: a whole file of ours.
pub(super) fn whole(file: &InstallFile) -> InstallSection {
    let (file, text) = (file.file.clone(), file.text.clone());
    InstallSection { file, format: InstallFormat::File, text, note: None, files: Vec::new() }
}

pub(super) fn notation(format: InstallFormat) -> Option<Notation> {
    match format {
        InstallFormat::Json => Some(Notation::Json),
        InstallFormat::Jsonc => Some(Notation::Jsonc),
        InstallFormat::File => None,
    }
}

/// The text with [`ANY`] in the place of paths.
pub(super) fn shape(profile: &str, file: &ProfileFile, section: &InstallSection) -> String {
    fill(profile, file, section, [&ANY.to_string(), &ANY.to_string()])
}

/// The text with its placeholders replaced by the program, the home, and what the profile itself has.
pub(super) fn fill(profile: &str, file: &ProfileFile, section: &InstallSection, [program, home]: [&str; 2]) -> String {
    let plain = |name: &str| match name {
        "program" => program.to_owned(),
        "home" => home.to_owned(),
        _ => profile.to_owned(),
    };
    placeholder::fill(&section.text, |name| {
        let own = name.strip_prefix(TEXT).and_then(|own| file.launch.as_ref()?.text(own));
        own.map_or_else(|| plain(name), |text| placeholder::fill(text, plain))
    })
}
