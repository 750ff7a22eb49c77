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
    NotFromTheRoot {
        /// Which variable.
        name: &'static str,
        /// What it says.
        path: PathBuf,
    },
    /// It can't be read.
    #[error("{path}: can't be read: {source}", path = .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Others could write it, and it names commands that are run.
    #[error("{path}: {what}; it names commands that are run. Nothing was read. Run: chmod go-w '{path}'", path = .path.display())]
    NotAllowed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A key or a value is wrong.
    #[error("{path}, line {line}: {key}: {message}", path = .path.display())]
    Wrong {
        /// Which file.
        path: PathBuf,
        /// Which key, with its table: `limits.waiting`.
        key: String,
        /// In which line, from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
}
