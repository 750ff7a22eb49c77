//! Plans a change to a CLI's configuration, and carries it out.

use super::error::{InstallError, wrong};
use super::found_file::{self, Environment, FoundFile};
use super::merge::Template;
use super::record::{InstallRecord, RecordFolder};
use super::section::{fill, notation, shape, whole};
use super::shape::fits;
use super::text::{Notation, SyntaxError};
use crate::agents::format::{InstallFormat, InstallSection};
use crate::agents::profile::Profile;
use crate::core::text::sha256;
use crate::files::Unfit;
use std::path::{Path, PathBuf};

/// The paths that an installation needs.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub program: &'a Path,
    pub home: &'a Path,
    /// The environment, for the CLI's own variables.
    pub env: Environment<'a>,
}

/// A change to a file, planned and not yet written.
#[derive(Debug)]
pub struct Change {
    found: FoundFile,
    after: Option<String>,
    record: Option<InstallRecord>,
    old: Option<InstallRecord>,
    records: RecordFolder,
}

/// The text that `hooks show` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub file: PathBuf,
    pub text: String,
    pub is_whole: bool,
    /// The files that go in with it, and all of their text.
    pub files: Vec<(PathBuf, String)>,
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
        let files = section.files.iter().map(whole).map(|file| {
            let text = self.filled(&file, context);
            Ok((self.place_of(&file, context)?, text))
        });
        let files = files.collect::<Result<_, InstallError>>()?;
        Ok(Some(Shown { file, text, is_whole: section.format == InstallFormat::File, files }))
    }

    /// Plans to put this profile's hooks in.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is changed.
    pub fn plan_install(&self, context: &Context<'_>) -> Result<Change, InstallError> {
        self.plan_in(self.section()?, context)
    }

    /// Plans to take this profile's hooks out.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is changed.
    pub fn plan_uninstall(&self, context: &Context<'_>) -> Result<Change, InstallError> {
        self.plan_out(self.section()?, context)
    }

    pub(super) fn plan_in(&self, section: &InstallSection, context: &Context<'_>) -> Result<Change, InstallError> {
        let (found, records, old) = self.look(section, context)?;
        let filled = self.filled(section, context);
        let made_file = old.as_ref().map_or(found.text.is_none(), |old| old.made_file);
        let mut record = InstallRecord {
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
            record.sha256 = Some(sha256(filled.as_bytes()));
            return Ok(Change { found, after: Some(filled), record: Some(record), old, records });
        };
        let wrong = |fault: SyntaxError| wrong(&found.path, fault);
        let template = self.template(section, &filled, notation)?;
        let text = found.text.clone().unwrap_or_default();
        if template.is_whole(&text).map_err(wrong)? {
            return Ok(Change { after: found.text.clone(), record: old.clone(), found, old, records });
        }
        let (pieces, set) = old.as_ref().map_or((&[][..], &[][..]), |old| (&old.pieces, &old.set));
        let base = template.take_out(&text, pieces, set).map_err(wrong)?;
        let merged = template.put_in(&base).map_err(wrong)?;
        if merged.text.len() as u64 > found_file::MAX_BYTES {
            let why = Unfit::TooLarge { size: merged.text.len() as u64, limit: found_file::MAX_BYTES };
            return Err(InstallError::Unfit { path: found.path, why });
        }
        record.pieces = merged.pieces;
        record.set = merged.set;
        Ok(Change { found, after: Some(merged.text), record: Some(record), old, records })
    }

    pub(super) fn plan_out(&self, section: &InstallSection, context: &Context<'_>) -> Result<Change, InstallError> {
        let (found, records, old) = self.look(section, context)?;
        let Some(text) = found.text.clone() else {
            return Ok(Change { found, after: None, record: None, old, records });
        };
        let Some(notation) = notation(section.format) else {
            if !self.is_ours(section, &text, old.as_ref()) {
                return Err(InstallError::Foreign { path: found.path });
            }
            return Ok(Change { found, after: None, record: None, old, records });
        };
        let template = self.template(section, &self.filled(section, context), notation)?;
        let (pieces, set) = old.as_ref().map_or((&[][..], &[][..]), |old| (&old.pieces, &old.set));
        let rest = template.take_out(&text, pieces, set).map_err(|fault| wrong(&found.path, fault))?;
        let made = old.as_ref().is_some_and(|old| old.made_file);
        let is_empty = rest.trim().is_empty() || rest.split_whitespace().collect::<String>() == "{}";
        let after = if made && is_empty { None } else { Some(rest) };
        Ok(Change { found, after, record: None, old, records })
    }

    pub(super) fn section(&self) -> Result<&InstallSection, InstallError> {
        self.file.install.as_ref().ok_or_else(|| InstallError::NoInstall { profile: self.name.clone() })
    }

    pub(super) fn look(
        &self,
        section: &InstallSection,
        context: &Context<'_>,
    ) -> Result<(FoundFile, RecordFolder, Option<InstallRecord>), InstallError> {
        let found = FoundFile::look(&self.place_of(section, context)?)?;
        let records = RecordFolder::new(context.home, &self.name, &found.target);
        let old = records.read()?;
        Ok((found, records, old))
    }

    fn place_of(&self, section: &InstallSection, context: &Context<'_>) -> Result<PathBuf, InstallError> {
        found_file::choose(&section.file.0, context.env)
            .ok_or_else(|| InstallError::NoPlace { profile: self.name.clone() })
    }

    pub(super) fn filled(&self, section: &InstallSection, context: &Context<'_>) -> String {
        let paths = |path: &Path| path.display().to_string();
        fill(&self.name, &self.file, section, [&paths(context.program), &paths(context.home)])
    }

    pub(super) fn template(
        &self,
        section: &InstallSection,
        filled: &str,
        notation: Notation,
    ) -> Result<Template, InstallError> {
        let path = PathBuf::from(format!("the profile {}, install.text", self.name));
        let shape = shape(&self.name, &self.file, section);
        Template::new(&self.name, [filled, &shape], notation).map_err(|fault| wrong(&path, fault))
    }

    /// Whether a whole file was installed by tasuki, for this or another home.
    pub(super) fn is_ours(&self, section: &InstallSection, text: &str, old: Option<&InstallRecord>) -> bool {
        old.is_some_and(|old| old.sha256.as_deref() == Some(&sha256(text.as_bytes())))
            || fits(text, &shape(&self.name, &self.file, section))
    }
}

impl Change {
    /// The path of the file, as people name it.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.found.path
    }

    /// The real path of the file, if its name is a link or passes through one.
    #[must_use]
    pub fn target(&self) -> Option<&Path> {
        Some(self.found.target.as_path()).filter(|target| *target != self.found.path)
    }

    /// What the file holds, and what it will hold; `None` where there is no file.
    #[must_use]
    pub fn texts(&self) -> (Option<&str>, Option<&str>) {
        (self.found.text.as_deref(), self.after.as_deref())
    }

    /// Whether the file stays as it is.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.found.text == self.after
    }

    /// Carries out the change: keeps a copy of the file, writes the record, then the file. Returns the copy's path.
    ///
    /// # Errors
    /// See [`InstallError`]. The file is unchanged, except with [`InstallError::Unrecorded`].
    pub fn apply(self, wall_ms: i64) -> Result<Option<PathBuf>, InstallError> {
        // Of two installations at once, the second must not take back what the first has just recorded.
        let _held = self.found.hold()?;
        if self.records.read()? != self.old {
            return Err(InstallError::Changed { path: self.found.path });
        }
        if self.is_nothing() {
            if self.record.is_none() && self.old.is_some() {
                self.records.write(None)?;
            }
            return Ok(None);
        }
        let copy = self.found.text.as_deref().map(|text| self.records.keep(&self.found.target, text, wall_ms));
        let copy = copy.transpose()?;
        // The record is written first, so that every piece of an interrupted installation can be found.
        if let Some(record) = &self.record {
            self.records.write(Some(record))?;
        }
        let made = match self.found.replace(self.after.as_deref()) {
            Ok(made) => made,
            Err(why) => {
                self.records.write(self.old.as_ref())?;
                return Err(why);
            }
        };
        match &self.record {
            Some(record) if !made.is_empty() => {
                let with_folders = InstallRecord { made_folders: made.clone(), ..record.clone() };
                if let Err(why) = self.records.write(Some(&with_folders)) {
                    self.take_back(&made);
                    return Err(why);
                }
            }
            Some(_) => {}
            None => {
                if self.after.is_none()
                    && let Some(old) = &self.old
                {
                    found_file::remove_folders(&old.made_folders);
                }
                self.records.write(None).map_err(|why| unrecorded(&self.found.path, why))?;
            }
        }
        Ok(copy)
    }

    /// Removes a file that was just made, and the folders that were made for it.
    fn take_back(&self, made: &[PathBuf]) {
        let _ = std::fs::remove_file(&self.found.target);
        found_file::remove_folders(made);
        // This may fail too. Then the next installation or uninstallation replaces the record.
        let _ = self.records.write(self.old.as_ref());
    }
}

/// The error of a record that could not be removed after its file was changed.
fn unrecorded(path: &Path, why: InstallError) -> InstallError {
    match why {
        InstallError::Io { path: record, source, .. } => {
            InstallError::Unrecorded { path: path.to_owned(), record, source }
        }
        other => other,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
