//! Reads `config.toml`.

use super::ConfigError;
use super::values::{Config, Raw};
use crate::core::text::{line_of, quotable, quotable_key};
use crate::files::{self, Meta};
use std::io::Read;
use std::path::Path;

/// The most that `config.toml` may hold, in bytes.
const MAX_CONFIG_BYTES: u64 = 1024 * 1024;

/// How many characters of a key, and of what is wrong with it, a message quotes at most.
const MAX_QUOTED: usize = 400;

impl Config {
    /// Reads `config.toml`. If there is none, all settings have their defaults.
    ///
    /// # Errors
    /// The file can't be read, or must not be used ([`ConfigError::NotAllowed`], [`ConfigError::Unfit`]). Or a key or
    /// value is wrong: the error names file, key and line.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let read = |source| ConfigError::Read { path: path.to_owned(), source };
        let mut options = std::fs::OpenOptions::new();
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            options.read(true),
            nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY,
        );
        let file = match options.open(path) {
            Ok(file) => file,
            // A link that leads nowhere is not a missing file: without its settings tasuki would do something else.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_taken(path) => {
                return Ok(Config::default());
            }
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
            key: quotable_key(&key, MAX_QUOTED),
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

/// Whether the name is taken, be it by a link that leads nowhere.
pub(super) fn is_taken(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn check(path: &Path, meta: &Meta) -> Result<(), ConfigError> {
    let refuse =
        |what: String, fix: &str| Err(ConfigError::NotAllowed { path: path.to_owned(), what, fix: fix.to_owned() });
    let unfit = |what: String, fix: &str| Err(ConfigError::Unfit { path: path.to_owned(), what, fix: fix.to_owned() });
    if !meta.is_file() {
        return unfit("is not a regular file".to_owned(), "Put a regular file in its place, or remove it");
    }
    if !meta.is_ours() && meta.uid != 0 {
        let fix = "Check what it says, and put a copy that belongs to you in its place";
        return refuse(format!("belongs to user {}", meta.uid), fix);
    }
    if meta.mode & 0o022 != 0 {
        let fix = format!("Run: chmod go-w '{}'", path.display());
        return refuse(format!("can be written by other users (mode {:04o})", meta.mode), &fix);
    }
    if meta.file_stamp.size > MAX_CONFIG_BYTES {
        let what = format!("has {} bytes, more than {MAX_CONFIG_BYTES}", meta.file_stamp.size);
        return unfit(what, "Shorten the file");
    }
    Ok(())
}
