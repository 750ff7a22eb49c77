//! Putting a profile's hooks into the CLI's own configuration, and taking them out again, for agents that people start
//! themselves. A person's file is changed at single places only (`merge`); what was put in is recorded
//! (`record`), so that taking it out leaves the very bytes of before.
//!
//! First everything is looked at and a [`Change`] is planned; nothing is written until [`Change::apply`].

mod installed;
mod merge;
mod place;
mod record;
mod style;
mod text;

use super::format::{InstallFormat, InstallSection, ProfileFile};
use super::launch::{self, TEXT, first_unknown};
use super::profile::Profile;
use crate::files::Unfit;
pub use installed::{HookCommand, Installed, Presence};
use merge::{ANY, Template};
pub use place::Environment;
use place::Found;
use record::{Record, Shelf, hash};
use std::io;
use std::path::{Path, PathBuf};
use text::{Fault, Notation};

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The profile has no `install` section.
    #[error("the profile {profile} does not say what to install")]
    NoInstall {
        /// Which.
        profile: String,
    },
    /// None of the profile's places can be told.
    #[error("where {profile} keeps its configuration can't be told: HOME is not set")]
    NoPlace {
        /// Which.
        profile: String,
    },
    /// The file is not one that is changed.
    #[error("{path} was left as it is: {why}", path = path.display())]
    Unfit {
        /// Which.
        path: PathBuf,
        /// The rule that it breaks.
        why: Unfit,
    },
    /// A link that leads nowhere.
    #[error("{path} is a link that leads nowhere; nothing was written", path = path.display())]
    DanglingLink {
        /// Which.
        path: PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{path} was left as it is: it is not UTF-8", path = path.display())]
    NotText {
        /// Which.
        path: PathBuf,
    },
    /// The file can't be read as what it should be.
    #[error("{path} was left as it is: line {line}, column {column}: {message}", path = path.display())]
    Wrong {
        /// Which.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// A whole file of ours would go where something else lies.
    #[error("{path} was left as it is: it is not what tasuki put there", path = path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
    },
    /// Somebody wrote the file meanwhile.
    #[error("{path} was changed by somebody else just now; nothing was written", path = path.display())]
    Changed {
        /// Which.
        path: PathBuf,
    },
    /// The record of an installation can't be read.
    #[error("the record {path} can't be read, and so nothing was changed: {message}", path = path.display())]
    Record {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The system would not let us.
    #[error("can't {doing} {path}: {source}", path = path.display())]
    Io {
        /// Read or write.
        doing: &'static str,
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What an installation is told.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The path of the tasuki program.
    pub program: &'a Path,
    /// tasuki's home.
    pub home: &'a Path,
    /// The environment, for the CLI's own variables.
    pub env: Environment<'a>,
}

/// A change that was planned.
#[derive(Debug)]
pub struct Change {
    found: Found,
    after: Option<String>,
    record: Option<Record>,
    old: Option<Record>,
    shelf: Shelf,
}

/// What `hooks show` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Where it goes.
    pub file: PathBuf,
    /// What goes in.
    pub text: String,
    /// Whether it is the whole file.
    pub is_whole: bool,
}

impl Profile {
    /// What a person puts into the CLI's own configuration, and into which file; `None` if the profile does not say.
    ///
    /// # Errors
    /// [`InstallError::NoPlace`].
    pub fn shown(&self, context: &Context<'_>) -> Result<Option<Shown>, InstallError> {
        let Some(section) = &self.file.install else { return Ok(None) };
        let text = self.filled(section, context);
        let file = self.place_of(section, context)?;
        Ok(Some(Shown { file, text, is_whole: section.format == InstallFormat::File }))
    }

    /// Plans to put this profile's hooks in.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is changed.
    pub fn plan_install(&self, context: &Context<'_>) -> Result<Change, InstallError> {
        let (section, found, shelf, old) = self.look(context)?;
        let filled = self.filled(section, context);
        let made_file = old.as_ref().map_or(found.text.is_none(), |old| old.made_file);
        let mut record = Record {
            v: 1,
            profile: self.name.clone(),
            target: found.target.clone(),
            made_file,
            made_folders: old.as_ref().map(|old| old.made_folders.clone()).unwrap_or_default(),
            pieces: Vec::new(),
            set: Vec::new(),
            sha256: None,
        };
        let Some(notation) = notation(section.format) else {
            let ours =
                found.text.as_deref().is_none_or(|text| self.is_ours(section, text, old.as_ref()) || text == filled);
            if !ours {
                return Err(InstallError::Foreign { path: found.path });
            }
            record.sha256 = Some(hash(filled.as_bytes()));
            return Ok(Change { found, after: Some(filled), record: Some(record), old, shelf });
        };
        let wrong = |fault: Fault| wrong(&found.path, fault);
        let template = self.template(section, &filled, notation)?;
        let text = found.text.clone().unwrap_or_default();
        if template.is_whole(&text).map_err(wrong)? {
            return Ok(Change { after: found.text.clone(), record: old.clone(), found, old, shelf });
        }
        let (pieces, set) = old.as_ref().map_or((&[][..], &[][..]), |old| (&old.pieces, &old.set));
        let base = template.take_out(&text, pieces, set).map_err(wrong)?;
        let merged = template.put_in(&base).map_err(wrong)?;
        if merged.text.len() as u64 > place::MAX_BYTES {
            let why = Unfit::TooLarge { size: merged.text.len() as u64, limit: place::MAX_BYTES };
            return Err(InstallError::Unfit { path: found.path, why });
        }
        record.pieces = merged.pieces;
        record.set = merged.set;
        Ok(Change { found, after: Some(merged.text), record: Some(record), old, shelf })
    }

    /// Plans to take this profile's hooks out.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is changed.
    pub fn plan_uninstall(&self, context: &Context<'_>) -> Result<Change, InstallError> {
        let (section, found, shelf, old) = self.look(context)?;
        let Some(text) = found.text.clone() else {
            return Ok(Change { found, after: None, record: None, old, shelf });
        };
        let Some(notation) = notation(section.format) else {
            if !self.is_ours(section, &text, old.as_ref()) {
                return Err(InstallError::Foreign { path: found.path });
            }
            return Ok(Change { found, after: None, record: None, old, shelf });
        };
        let template = self.template(section, &self.filled(section, context), notation)?;
        let (pieces, set) = old.as_ref().map_or((&[][..], &[][..]), |old| (&old.pieces, &old.set));
        let rest = template.take_out(&text, pieces, set).map_err(|fault| wrong(&found.path, fault))?;
        let made = old.as_ref().is_some_and(|old| old.made_file);
        let is_empty = rest.trim().is_empty() || rest.split_whitespace().collect::<String>() == "{}";
        let after = if made && is_empty { None } else { Some(rest) };
        Ok(Change { found, after, record: None, old, shelf })
    }

    fn look(&self, context: &Context<'_>) -> Result<(&InstallSection, Found, Shelf, Option<Record>), InstallError> {
        let section =
            self.file.install.as_ref().ok_or_else(|| InstallError::NoInstall { profile: self.name.clone() })?;
        let found = Found::look(&self.place_of(section, context)?)?;
        let shelf = Shelf::new(context.home, &self.name, &found.target);
        let old = shelf.read()?;
        Ok((section, found, shelf, old))
    }

    fn place_of(&self, section: &InstallSection, context: &Context<'_>) -> Result<PathBuf, InstallError> {
        place::choose(&section.file.0, context.env).ok_or_else(|| InstallError::NoPlace { profile: self.name.clone() })
    }

    fn filled(&self, section: &InstallSection, context: &Context<'_>) -> String {
        let paths = |path: &Path| path.display().to_string();
        fill(&self.name, &self.file, section, [&paths(context.program), &paths(context.home)])
    }

    fn template(&self, section: &InstallSection, filled: &str, notation: Notation) -> Result<Template, InstallError> {
        let path = PathBuf::from(format!("the profile {}, install.text", self.name));
        Template::new(filled, &shape(&self.name, &self.file, section), notation).map_err(|fault| wrong(&path, fault))
    }

    /// Whether a whole file is one that was installed, by this or by another home.
    fn is_ours(&self, section: &InstallSection, text: &str, old: Option<&Record>) -> bool {
        old.is_some_and(|old| old.sha256.as_deref() == Some(&hash(text.as_bytes())))
            || merge::fits(text, &shape(&self.name, &self.file, section))
    }
}

impl Change {
    /// The file, as people name it.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.found.path
    }

    /// Where the file lies really, if its name is a link or goes over one.
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        Some(self.found.target.as_path()).filter(|target| *target != self.found.path)
    }

    /// What the file holds, and what it will hold; `None` where there is none.
    #[must_use]
    pub fn texts(&self) -> (Option<&str>, Option<&str>) {
        (self.found.text.as_deref(), self.after.as_deref())
    }

    /// Whether the file stays as it is.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.found.text == self.after
    }

    /// Carries it out: keeps a copy of the file, writes the record, then the file. Gives the copy's path.
    ///
    /// # Errors
    /// See [`InstallError`]; the file is as it was then.
    pub fn apply(self, wall_ms: i64) -> Result<Option<PathBuf>, InstallError> {
        // Of two installations at once, the second must not take back what the first has just recorded.
        let _held = self.found.hold()?;
        if self.shelf.read()? != self.old {
            return Err(InstallError::Changed { path: self.found.path });
        }
        if self.is_nothing() {
            if self.record.is_none() && self.old.is_some() {
                self.shelf.write(None)?;
            }
            return Ok(None);
        }
        let copy = self.found.text.as_deref().map(|text| self.shelf.keep(&self.found.target, text, wall_ms));
        let copy = copy.transpose()?;
        // The record goes first: of an installation that was cut off before its end, every piece can be told.
        if let Some(record) = &self.record {
            self.shelf.write(Some(record))?;
        }
        let made = match self.found.replace(self.after.as_deref()) {
            Ok(made) => made,
            Err(why) => {
                self.shelf.write(self.old.as_ref())?;
                return Err(why);
            }
        };
        match self.record {
            Some(record) if !made.is_empty() => self.shelf.write(Some(&Record { made_folders: made, ..record }))?,
            Some(_) => {}
            None => {
                if self.after.is_none()
                    && let Some(old) = &self.old
                {
                    place::remove_folders(&old.made_folders);
                }
                self.shelf.write(None)?;
            }
        }
        Ok(copy)
    }
}

/// Checks an `install` section when its profile is loaded. Gives the key that is wrong, and why.
pub(super) fn check(profile: &str, file: &ProfileFile) -> Result<(), (&'static str, String)> {
    let Some(section) = &file.install else { return Ok(()) };
    if let Some(wrong) = section.file.0.iter().find(|place| !place::is_place(place)) {
        let rule = "is no place such as \"~/.mycli/settings.json\" or \"$MYCLI_HOME/settings.json\"";
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
        return Err(("install.text", format!("no placeholder here is called {{{name}}}")));
    }
    if let Some(notation) = notation(section.format) {
        let shape = shape(profile, file, section);
        let said = |fault: Fault| ("install.text", format!("line {} of it: {}", fault.line, fault.message));
        Template::new(&shape, &shape, notation).map_err(said)?;
    }
    Ok(())
}

fn notation(format: InstallFormat) -> Option<Notation> {
    match format {
        InstallFormat::Json => Some(Notation::Json),
        InstallFormat::Jsonc => Some(Notation::Jsonc),
        InstallFormat::File => None,
    }
}

/// The text with [`ANY`] in the place of paths.
fn shape(profile: &str, file: &ProfileFile, section: &InstallSection) -> String {
    fill(profile, file, section, [&ANY.to_string(), &ANY.to_string()])
}

/// The text with its placeholders replaced by the program, the home, and what the profile itself has.
fn fill(profile: &str, file: &ProfileFile, section: &InstallSection, [program, home]: [&str; 2]) -> String {
    let plain = |name: &str| match name {
        "program" => program.to_owned(),
        "home" => home.to_owned(),
        _ => profile.to_owned(),
    };
    launch::fill(&section.text, |name| {
        let own = name.strip_prefix(TEXT).and_then(|own| file.launch.as_ref()?.text(own));
        own.map_or_else(|| plain(name), |text| launch::fill(text, plain))
    })
}

fn wrong(path: &Path, fault: Fault) -> InstallError {
    InstallError::Wrong { path: path.to_owned(), line: fault.line, column: fault.column, message: fault.message }
}

#[cfg(test)]
mod any_tests;
#[cfg(test)]
mod tests;
