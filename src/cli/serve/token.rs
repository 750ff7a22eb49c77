//! The token that every caller must know: `HOME/state/serve.token`, readable for this user alone. Each start makes a
//! new one, so an old one is worth nothing. Only a server that starts beside another one of its home takes the token of
//! that one: there is one file, and its readers can then talk to both.
//!
//! A browser writes every address that it opens to its history, so no address contains the token. Instead the server
//! prints a code that works once and for a short while, and the page exchanges it for the token. Before the page sends
//! the code or the token, it lets the server prove that it knows the same secret. Otherwise the page could give the
//! secret to another program that has taken the port after the server's end.

use crate::cli::error::CliError;
use crate::config::Home;
use crate::core::text::hex;
use crate::exit;
use crate::files::{self, Grade};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The file's name in `state/`.
const NAME: &str = "serve.token";
/// The longest token file, in bytes.
const LARGEST: u64 = 4_096;
/// How many characters a token has.
const TOKEN_LENGTH: usize = 64;
/// How long a start waits for another one, which writes its token.
const LOCK_WITHIN: Duration = Duration::from_secs(5);
/// How long the printed code is good.
const CODE_LIVES: Duration = Duration::from_secs(10 * 60);
/// The block size of SHA-256, in bytes.
const BLOCK: usize = 64;

/// The token, where it is kept, and the code that is exchanged for it.
pub(super) struct Token {
    text: String,
    path: PathBuf,
    /// A shared lock on `state/`, which says that a server of this home lives. The system releases it when the process
    /// ends. None if the file system has no locks.
    _lock: Option<Flock<OwnedFd>>,
    is_shared: bool,
    code: Mutex<Option<(String, Instant)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secret {
    Token,
    Code,
}

impl Token {
    /// Makes a new token, and checks whether its file may be replaced. It does not write the file yet, so that a start
    /// that fails later changes nothing.
    ///
    /// # Errors
    /// Exit code 77 for a file that others could read or that is not ours; it is not replaced.
    pub(super) fn prepare(home: &Home) -> Result<Token, CliError> {
        let path = home.state().join(NAME);
        let failed = |error: std::io::Error| CliError::file("Can't open", &path, &error);
        let state = files::open_dir(&home.state()).map_err(failed)?;
        if let Some(meta) = files::meta_at(&state, NAME).map_err(failed)? {
            files::check_readable(&meta, LARGEST).map_err(|unfit| {
                not_allowed(&path, &format!("can't be used: {unfit}"))
                    .hint("Look at the file. If you delete it, the next start creates a new one.")
            })?;
            if meta.mode & 0o077 != 0 {
                return Err(not_allowed(&path, &format!("is accessible to other users (mode {:04o})", meta.mode))
                    .hint(format!("Run: chmod 600 '{}', or delete the file, then start again.", path.display())));
            }
        }
        let text = format!("{}{}", random(), random());
        Ok(Token { text, path, _lock: None, is_shared: false, code: Mutex::new(None) })
    }

    /// Writes the token to its file, in the place of the last start's token. If another server of this home lives, this
    /// takes that one's token instead. The file is written only while no server has the lock, and each server reads it
    /// once it has the lock, so all have the same token, whatever the order in which they start.
    ///
    /// # Errors
    /// The system's; the file is as it was.
    pub(super) fn publish(&mut self) -> Result<(), CliError> {
        let path = self.path.clone();
        let failed = |error: std::io::Error| CliError::file("Can't write", &path, &error);
        let folder = || files::open_dir(path.parent().unwrap_or(&path));
        match Flock::lock(folder().map_err(failed)?, FlockArg::LockExclusiveNonblock) {
            Err((_, Errno::EWOULDBLOCK)) => {}
            // Alone, or on a file system that has no locks.
            _alone => self.write().map_err(failed)?,
        }
        self._lock = shared(folder().map_err(failed)?).map_err(failed)?;
        let found = files::read_at(folder().map_err(failed)?, OsStr::new(NAME), LARGEST).ok();
        match found.and_then(|(bytes, _)| String::from_utf8(bytes).ok()).as_deref().map(str::trim_end) {
            Some(found) if is_token(found) => {
                self.is_shared = found != self.text;
                found.clone_into(&mut self.text);
            }
            // Somebody has deleted the file of the server that lives.
            _ => self.write().map_err(failed)?,
        }
        Ok(())
    }

    /// The token is not synced, because it is of no use after a power cut.
    fn write(&self) -> std::io::Result<()> {
        let state = files::open_dir(self.path.parent().unwrap_or(&self.path))?;
        let scratch = format!(".{NAME}-{}.tmp", std::process::id());
        let line = format!("{}\n", self.text);
        files::replace_at(&state, OsStr::new(&scratch), OsStr::new(NAME), line.as_bytes(), Grade::Fast)
    }

    /// Whether this is the token of another server of this home, which was there before.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is(&self, said: &[u8]) -> bool {
        is_same(self.text.as_bytes(), said)
    }

    /// A code that can be exchanged for the token once; earlier codes become invalid.
    pub(super) fn new_code(&self) -> String {
        let code = random();
        *self.code.lock().unwrap_or_else(PoisonError::into_inner) = Some((code.clone(), Instant::now() + CODE_LIVES));
        code
    }

    /// Whether this is the valid code. If it is, it becomes invalid.
    pub(super) fn redeem(&self, said: &[u8]) -> bool {
        let mut code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
        let is_good =
            code.as_ref().is_some_and(|(code, until)| is_same(code.as_bytes(), said) && Instant::now() < *until);
        if is_good {
            *code = None;
        }
        is_good
    }

    /// Proves that we know the secret, in a form that is useless elsewhere: it holds only for this address and this
    /// nonce. None if the secret no longer exists.
    pub(super) fn prove(&self, secret: Secret, host: &str, nonce: &str) -> Option<String> {
        let question = format!("tasuki serve\n{host}\n{nonce}");
        match secret {
            Secret::Token => Some(hex(&hmac(self.text.as_bytes(), question.as_bytes()))),
            Secret::Code => {
                let code = self.code.lock().unwrap_or_else(PoisonError::into_inner);
                let (code, _) = code.as_ref().filter(|(_, until)| Instant::now() < *until)?;
                Some(hex(&hmac(code.as_bytes(), question.as_bytes())))
            }
        }
    }
}

/// The lock of a server that lives, on its `state/`; none if the file system has no locks.
fn shared(mut state: OwnedFd) -> std::io::Result<Option<Flock<OwnedFd>>> {
    let until = Instant::now() + LOCK_WITHIN;
    loop {
        state = match Flock::lock(state, FlockArg::LockSharedNonblock) {
            Ok(lock) => return Ok(Some(lock)),
            // Another server is writing the token that it has made.
            Err((state, Errno::EWOULDBLOCK)) if Instant::now() < until => state,
            Err((_, Errno::EWOULDBLOCK)) => return Err(std::io::ErrorKind::TimedOut.into()),
            Err(_) => return Ok(None),
        };
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_token(text: &str) -> bool {
    text.len() == TOKEN_LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn random() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Compares two whole digests, so that the time that it takes reveals nothing about our secret.
fn is_same(ours: &[u8], said: &[u8]) -> bool {
    let (ours, theirs) = (Sha256::digest(ours), Sha256::digest(said));
    ours.iter().zip(theirs.iter()).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

/// HMAC-SHA-256 (RFC 2104), which a browser has built in. The key has at most [`BLOCK`] bytes.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(pad(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize().into()
}

fn not_allowed(path: &Path, what: &str) -> CliError {
    CliError::new(exit::NOT_ALLOWED, "not_allowed", format!("{} {what}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().expect("a folder");
        fs::create_dir(dir.path().join("state")).expect("a folder");
        let home = Home::at(dir.path()).expect("a path");
        (dir, home)
    }

    #[test]
    fn each_start_has_a_token_of_its_own_and_for_its_owner_alone() {
        let (_dir, home) = home();
        let mut made = Token::prepare(&home).expect("made");
        assert!(!made.path().exists(), "a start that fails later has changed something");
        made.publish().expect("written");
        let mode = fs::metadata(made.path()).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode, made.text().len()), (0o600, 64));
        assert!(made.is(made.text().as_bytes()) && !made.is(b"") && !made.is(&made.text().as_bytes()[..63]));
        let old = made.text().to_owned();
        drop(made);
        let mut next = Token::prepare(&home).expect("made");
        next.publish().expect("written");
        assert!(!next.is(old.as_bytes()) && !next.is_shared());
        assert_eq!(fs::read_to_string(next.path()).expect("there").trim_end(), next.text());
    }

    #[test]
    fn a_server_beside_another_one_has_the_same_token() {
        let (_dir, home) = home();
        let started = || {
            let mut token = Token::prepare(&home).expect("made");
            token.publish().expect("written");
            token
        };
        let (first, second) = (started(), started());
        assert_eq!((first.text(), first.is_shared(), second.is_shared()), (second.text(), false, true));
        let old = first.text().to_owned();
        drop(first);
        assert_eq!(started().text(), old, "the second one lives");
        fs::remove_file(second.path()).expect("removed");
        let third = started();
        assert_eq!(fs::read_to_string(third.path()).expect("there").trim_end(), third.text());
        drop((second, third));
        assert_ne!(started().text(), old, "nobody lives");
        // Many that start at the same time.
        let tokens = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(started)).collect();
            all.into_iter().map(|one| one.join().expect("started")).collect::<Vec<Token>>()
        });
        assert!(tokens.iter().all(|token| token.text() == tokens[0].text()));
    }

    #[test]
    fn a_file_that_others_could_read_or_that_is_none_is_refused_and_kept() {
        let (_dir, home) = home();
        let path = Token::prepare(&home).expect("made").path().to_owned();
        fs::write(&path, "old\n").expect("written");
        let refused = |home: &Home| Token::prepare(home).err().map(|error| error.exit);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("opened");
        assert_eq!(refused(&home), Some(crate::exit::NOT_ALLOWED));
        assert_eq!(fs::read_to_string(&path).expect("kept"), "old\n");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/dev/null", &path).expect("a link");
        assert_eq!(refused(&home), Some(crate::exit::NOT_ALLOWED));
        fs::remove_file(&path).expect("removed");
        let mut private = fs::DirBuilder::new();
        private.mode(0o700).create(&path).expect("a folder");
        assert_eq!(refused(&home), Some(crate::exit::NOT_ALLOWED));
        assert!(path.is_dir(), "it is kept");
    }

    #[test]
    fn a_code_is_good_once_and_for_a_while() {
        let (_dir, home) = home();
        let token = Token::prepare(&home).expect("made");
        assert!(!token.redeem(b"") && token.prove(Secret::Code, "h", "n").is_none());
        let (first, code) = (token.new_code(), token.new_code());
        assert!(!token.redeem(first.as_bytes()), "the earlier code is still good");
        assert!(token.prove(Secret::Code, "h", "n").is_some());
        assert!(token.redeem(code.as_bytes()) && !token.redeem(code.as_bytes()));
        let late = token.new_code();
        *token.code.lock().expect("free") = Some((late.clone(), Instant::now()));
        assert!(!token.redeem(late.as_bytes()) && token.prove(Secret::Code, "h", "n").is_none());
    }

    /// RFC 4231, test case 2.
    #[test]
    fn the_proof_is_what_a_browser_computes() {
        let known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&hmac(b"Jefe", b"what do ya want for nothing?")), known);
    }
}
