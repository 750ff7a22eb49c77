//! Reads `data/rules.toml`: the user's rules for work items, on top of the built-in ones. `core::work` says what they
//! mean.

use crate::core::rules::{Rules, RulesError, RulesFile};
use crate::files::{self, Unfit, way};
use schemars::{Schema, schema_for};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The most that `rules.toml` may hold, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Why the rules in `rules.toml` can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesFileError {
    #[error("{path}: {why}", path = .path.display())]
    Unfit { path: PathBuf, why: String },
    /// A key or a value is wrong.
    #[error("{path}, {error}", path = .path.display())]
    Wrong { path: PathBuf, error: RulesError },
}

/// The JSON Schema of `rules.toml`.
#[must_use]
pub fn schema() -> Schema {
    schema_for!(RulesFile)
}

/// Reads the file; without one, the built-in rules.
///
/// # Errors
/// The file can't be read or its rules are invalid; the message names file, line and column.
pub fn load(path: &Path) -> Result<Rules, RulesFileError> {
    let unfit = |why: String| RulesFileError::Unfit { path: path.to_owned(), why };
    way::trust_if_there(path).map_err(|error| unfit(error.to_string()))?;
    let (folder, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or(OsStr::new("rules.toml")));
    let dir = match files::open_dir(folder) {
        Ok(dir) => dir,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Rules::default()),
        Err(error) => return Err(unfit(error.to_string())),
    };
    let bytes = match files::read_at(&dir, name, MAX_BYTES) {
        Ok((bytes, _)) => bytes,
        Err(Unfit::Missing) => return Ok(Rules::default()),
        Err(error) => return Err(unfit(error.to_string())),
    };
    let text = String::from_utf8(bytes).map_err(|_| unfit("it is not UTF-8".to_owned()))?;
    Rules::with(&text).map_err(|error| RulesFileError::Wrong { path: path.to_owned(), error })
}
