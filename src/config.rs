//! Where everything lies ([`Home`]) and what the operator has set ([`Config`]): SPEC section 2.

pub use crate::core::settings::{AckTimes, Target};
use crate::core::settings::{ContextLimits, Limits, PublishLimits};
use crate::core::text::quotable;
use crate::files::{self, Meta};
use schemars::{Schema, schema_for};
use std::io::Read;
use std::path::{Path, PathBuf};

mod home;
pub mod rules;
mod values;

pub use home::Home;
use values::{Raw, line_of};

/// The most that `config.toml` may hold, in bytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// Most characters of a key, and of what is wrong with it, that a message quotes.
const MAX_QUOTED: usize = 400;

/// The example with every key and its default, as it lies in the repository's `data/`.
pub const EXAMPLE: &str = include_str!("../data/config.toml");

/// The JSON Schema of `config.toml`, with a description of every key.
#[must_use]
pub fn schema() -> Schema {
    schema_for!(Raw)
}

/// All that can be set, with defaults for what is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The limits of the steps.
    pub limits: Limits,
    /// How long an acknowledgement may take.
    pub ack: AckTimes,
    /// What follows from a full context.
    pub context: ContextLimits,
    /// The operator's own command for notices (arguments, no shell); empty if there is none.
    pub notify_command: Vec<String>,
    /// Whom an acknowledgement that never came is told to.
    pub escalation_target: Target,
    /// Who is asked when a successor needs clarification.
    pub orchestrator: Target,
    /// How documents are published.
    pub publish: PublishLimits,
    /// By which program: a name or a path.
    pub gh: String,
    /// The tmux server: a name as for `tmux -L`, or a path if it has a slash; none for the user's default.
    pub tmux_socket: Option<String>,
    /// A tmux server is started where none runs.
    pub tmux_start: bool,
    /// A line about us stands in tmux's option `@tasuki_status`.
    pub tmux_status: bool,
}

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

impl Default for Config {
    fn default() -> Self {
        Raw::default().into_config()
    }
}

impl Config {
    /// Reads `config.toml`; without one, all is as by default.
    ///
    /// # Errors
    /// It can't be read, others can write it, or a key or value is wrong: then file, key and line are named.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let read = |source| ConfigError::Read { path: path.to_owned(), source };
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            options.read(true),
            nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY,
        );
        let file = match options.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Config::default()),
            Err(error) => return Err(read(error)),
        };
        check(path, &files::meta(&file).map_err(read)?)?;
        let mut text = String::new();
        file.take(MAX_CONFIG_BYTES).read_to_string(&mut text).map_err(read)?;
        Config::parse(path, &text)
    }

    /// Reads a configuration from its text; `path` is for messages.
    ///
    /// # Errors
    /// A key or value is wrong.
    pub fn parse(path: &Path, text: &str) -> Result<Config, ConfigError> {
        let wrong = |key: String, span: Option<std::ops::Range<usize>>, message: &str| ConfigError::Wrong {
            path: path.to_owned(),
            key: quotable(&key, MAX_QUOTED),
            line: line_of(text, span),
            message: quotable(message.trim(), MAX_QUOTED),
        };
        let parsed = toml::Deserializer::parse(text);
        let deserializer = parsed.map_err(|error| wrong("syntax".to_owned(), error.span(), error.message()))?;
        match serde_path_to_error::deserialize::<_, Raw>(deserializer) {
            Ok(raw) => Ok(raw.into_config()),
            Err(error) => Err(wrong(error.path().to_string(), error.inner().span(), error.inner().message())),
        }
    }
}

fn check(path: &Path, meta: &Meta) -> Result<(), ConfigError> {
    let refuse = |what: String| Err(ConfigError::NotAllowed { path: path.to_owned(), what });
    if !meta.is_file() {
        return refuse("is not a regular file".to_owned());
    }
    if !meta.is_ours() && meta.uid != 0 {
        return refuse(format!("belongs to user {}", meta.uid));
    }
    if meta.mode & 0o022 != 0 {
        return refuse(format!("can be written by other users (mode {:04o})", meta.mode));
    }
    if meta.stamp.size > MAX_CONFIG_BYTES {
        return refuse(format!("has {} bytes, more than {MAX_CONFIG_BYTES}", meta.stamp.size));
    }
    Ok(())
}
