//! Reads `data/rules.toml`: the user's rules for work items, on top of the built-in ones. `core::work` says what the
//! rules mean.

use crate::core::rules::{Rules, RulesError, RulesFile};
use crate::files::{self, Unfit, way};
use crate::limits;
use schemars::{Schema, schema_for};
use std::path::{Path, PathBuf};

/// The most that `rules.toml` may hold, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why the rules in `rules.toml` can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesFileError {
    #[error("{path}: {why}", path = .path.display())]
    Unfit { path: PathBuf, why: String },
    /// Others could write the file; the text names it and says what to do.
    #[error("{0}. tasuki gives out work by these rules, so they were not read")]
    Exposed(String),
    /// A key or a value is wrong.
    #[error("{path}, {error}", path = .path.display())]
    Wrong { path: PathBuf, error: RulesError },
    /// The system could not read it.
    #[error("could not read {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: std::io::Error },
}

impl RulesFileError {
    /// Whether owner or permissions of a file are the reason.
    #[must_use]
    pub fn is_about_rights(&self) -> bool {
        match self {
            RulesFileError::Exposed(_) => true,
            RulesFileError::Read { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
            RulesFileError::Unfit { .. } | RulesFileError::Wrong { .. } => false,
        }
    }

    /// Whether the system could not read the file for a reason that says nothing about the file and may soon be over.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(self, RulesFileError::Read { source, .. } if limits::is_passing(source))
    }
}

/// The JSON Schema of `rules.toml`.
#[must_use]
pub fn schema() -> Schema {
    schema_for!(RulesFile)
}

/// Reads the file. If there is none, returns the built-in rules.
///
/// # Errors
/// The file can't be read or its rules are invalid; the message names file, line and column.
pub fn load(path: &Path) -> Result<Rules, RulesFileError> {
    Ok(read(path)?.unwrap_or_default())
}

/// Reads a file that a person has named, which must be there. A path without a folder is a file in the present folder.
///
/// # Errors
/// As for [`load`], and if there is no such file.
pub fn load_named(path: &Path) -> Result<Rules, RulesFileError> {
    let unfit = |why: String| RulesFileError::Unfit { path: path.to_owned(), why };
    let whole = std::path::absolute(path).map_err(|error| unfit(error.to_string()))?;
    read(&whole)?.ok_or_else(|| unfit(Unfit::Missing.to_string()))
}

/// The rules of a file; none if it does not exist.
fn read(path: &Path) -> Result<Option<Rules>, RulesFileError> {
    let unfit = |why: String| RulesFileError::Unfit { path: path.to_owned(), why };
    way::trust_if_there(path).map_err(|error| match error {
        way::Unsafe::Exposed { .. } => RulesFileError::Exposed(error.to_string()),
        way::Unsafe::Io { path, source } => RulesFileError::Read { path, source },
    })?;
    let Some((folder, name)) = path.parent().zip(path.file_name()) else {
        return Err(unfit(Unfit::NotRegular.to_string()));
    };
    let dir = match files::open_dir(folder) {
        Ok(dir) => dir,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RulesFileError::Read { path: folder.to_owned(), source }),
    };
    let bytes = match files::read_own_at(&dir, name, MAX_BYTES) {
        Ok((bytes, _)) => bytes,
        Err(Unfit::Missing) => return Ok(None),
        Err(Unfit::Io(source)) => return Err(RulesFileError::Read { path: path.to_owned(), source }),
        Err(error) => return Err(unfit(error.to_string())),
    };
    let text = String::from_utf8(bytes).map_err(|_| unfit("it is not UTF-8".to_owned()))?;
    Rules::with(&text).map(Some).map_err(|error| RulesFileError::Wrong { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn rules_that_this_user_may_not_read_are_about_rights_and_a_shortage_passes() {
        for (errno, is_about_rights, is_passing) in
            [(Errno::EACCES, true, false), (Errno::EMFILE, false, true), (Errno::ENOTDIR, false, false)]
        {
            let error = RulesFileError::Read { path: "rules.toml".into(), source: errno.into() };
            assert_eq!((error.is_about_rights(), error.is_passing()), (is_about_rights, is_passing), "{errno}");
        }
    }
}
