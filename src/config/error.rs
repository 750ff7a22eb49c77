//! Why the home can't be found, or its configuration can't be used.

use std::path::PathBuf;

/// Why the configuration can't be used. tasuki does not start on a guess.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// This user has no home folder.
    #[error("this user has no home folder; name a folder for tasuki with --home or TASUKI_HOME")]
    NoHome,
    /// A variable that names the home holds a relative path.
    #[error("{name} is {path}, a relative path; nothing was created. Set {name} to an absolute path", path = crate::core::text::sanitise(&path.to_string_lossy()))]
    NotFromTheRoot { name: &'static str, path: PathBuf },
    #[error("could not read {path}: {source}", path = .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// The file names commands that tasuki runs. It was not read, because others could write it.
    #[error("{}: {what}; tasuki runs commands that this file names, so it was not read. {fix}", .path.display())]
    NotAllowed { path: PathBuf, what: String, fix: String },
    /// The file was not read, because it is not a regular file of a reasonable size.
    #[error("{}: {what}, so it was not read. {fix}", .path.display())]
    Unfit { path: PathBuf, what: String, fix: String },
    /// A key or a value is wrong.
    #[error("{path}, line {line}: {key}: {message}", path = .path.display())]
    Wrong {
        path: PathBuf,
        /// The key with its table, such as `limits.waiting`.
        key: String,
        /// The line, counted from 1.
        line: usize,
        message: String,
    },
}

impl ConfigError {
    /// Whether owner or permissions of a file are the reason.
    #[must_use]
    pub fn is_about_rights(&self) -> bool {
        match self {
            ConfigError::NotAllowed { .. } => true,
            ConfigError::Read { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
            ConfigError::NoHome
            | ConfigError::NotFromTheRoot { .. }
            | ConfigError::Unfit { .. }
            | ConfigError::Wrong { .. } => false,
        }
    }
}
