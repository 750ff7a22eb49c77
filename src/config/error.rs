//! Why the home can't be found, or what is set in it can't be used.

use std::path::PathBuf;

/// Why the configuration can't be used. tasuki does not start on a guess.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// There is no home folder to be found.
    #[error("this user has no home folder; name one with --home or TASUKI_HOME")]
    NoHome,
    /// A variable that names the home counts from the present folder.
    #[error("{name} is {path}, which counts from the present folder; nothing was made. Set it to a path from the root", path = crate::core::text::sanitise(&path.to_string_lossy()))]
    NotFromTheRoot { name: &'static str, path: PathBuf },
    #[error("{path}: can't be read: {source}", path = .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// Others could write it, and it names commands that are run.
    #[error("{path}: {what}; it names commands that are run. Nothing was read. Run: chmod go-w '{path}'", path = .path.display())]
    NotAllowed {
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A key or a value is wrong.
    #[error("{path}, line {line}: {key}: {message}", path = .path.display())]
    Wrong {
        path: PathBuf,
        /// Which key, with its table: `limits.waiting`.
        key: String,
        /// In which line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}
