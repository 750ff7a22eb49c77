//! The word that every caller must know: `HOME/state/serve.token`, for this user's eyes alone.

use crate::cli::error::CliError;
use crate::config::Home;
use crate::exit;
use crate::files::{self, Grade, Unfit};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Its name in `state/`.
const NAME: &str = "serve.token";
/// The most that is read of it, in bytes.
const LARGEST: u64 = 4_096;
/// Fewer letters than these could be guessed.
const SHORTEST: usize = 32;

/// The token, and where it is kept.
pub(super) struct Token {
    text: String,
    path: PathBuf,
}

impl Token {
    /// Reads the token, making it where there is none. It lasts until its file is deleted and `serve` starts anew.
    ///
    /// # Errors
    /// 77 for a file that others could read or that is not ours, 78 for one that holds no token; none is replaced.
    pub(super) fn open(home: &Home) -> Result<Token, CliError> {
        let path = home.state().join(NAME);
        let failed = |error: std::io::Error| CliError::file("Can't open", &path, &error);
        let state = files::open_dir(&home.state()).map_err(failed)?;
        let name = OsStr::new(NAME);
        if files::meta_at(&state, name).map_err(failed)?.is_none() {
            let made = format!("{}{}\n", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
            let scratch = format!(".{NAME}-{}.tmp", std::process::id());
            // Where another `serve` was faster, its token is the one.
            files::create_at(&state, OsStr::new(&scratch), &state, name, made.as_bytes(), Grade::Durable)
                .map_err(failed)?;
        }
        let meta = files::meta_at(&state, name).map_err(failed)?;
        if let Some(open) = meta.filter(|meta| meta.is_file() && meta.mode & 0o077 != 0) {
            return Err(not_allowed(&path, &format!("is open to other users (mode {:04o})", open.mode))
                .hint(format!("Run: chmod 600 '{}', or delete it and start anew.", path.display())));
        }
        let (bytes, _) = files::read_at(&state, name, LARGEST).map_err(|unfit| match unfit {
            Unfit::Io(error) => failed(error),
            unfit => not_allowed(&path, &format!("is not used: {unfit}"))
                .hint("Look at what lies there; when it is deleted, the next start makes a new one."),
        })?;
        Token::parse(&bytes, path)
    }

    fn parse(bytes: &[u8], path: PathBuf) -> Result<Token, CliError> {
        let text = std::str::from_utf8(bytes).unwrap_or_default().trim_end();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if text.len() >= SHORTEST && text.bytes().all(is_plain) {
            return Ok(Token { text: text.to_owned(), path });
        }
        let message = format!("{} holds no token of at least {SHORTEST} letters and digits.", path.display());
        Err(CliError::config("bad_token", message).hint("Delete it; the next start makes a new one."))
    }

    /// The token itself.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Its file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody has said it. The time that this takes tells nothing about the token: what is compared are two
    /// digests, whole.
    pub(super) fn is(&self, said: &[u8]) -> bool {
        let (ours, theirs) = (Sha256::digest(self.text.as_bytes()), Sha256::digest(said));
        ours.iter().zip(theirs.iter()).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
    }
}

fn not_allowed(path: &Path, what: &str) -> CliError {
    CliError::new(exit::NOT_ALLOWED, "not_allowed", format!("{} {what}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("state")).expect("a folder");
        let home = Home::at(dir.path()).expect("a path");
        (dir, home)
    }

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let (_dir, home) = home();
        let made = Token::open(&home).expect("made");
        let mode = fs::metadata(made.path()).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode, made.text().len()), (0o600, 64));
        let again = Token::open(&home).expect("read");
        assert!(again.is(made.text().as_bytes()));
        assert!(!again.is(b"") && !again.is(&made.text().as_bytes()[..63]));
    }

    #[test]
    fn a_file_that_others_could_read_or_that_holds_no_token_is_refused_and_kept() {
        let (_dir, home) = home();
        let path = Token::open(&home).expect("made").path().to_owned();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("opened");
        let refused = |home: &Home| Token::open(home).err().map(|error| error.exit);
        assert_eq!(refused(&home), Some(crate::exit::NOT_ALLOWED));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
        fs::write(&path, "short\n").expect("written");
        assert_eq!(refused(&home), Some(crate::exit::CONFIG));
        assert_eq!(fs::read_to_string(&path).expect("kept"), "short\n");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
        assert_eq!(refused(&home), Some(crate::exit::NOT_ALLOWED));
    }
}
