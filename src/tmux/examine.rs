//! A look at a tmux server from outside, for a person who wants to know what is wrong: one short-lived process, nothing
//! changed, no server started, and an answer within three seconds and one more also from a server that stands still.

use super::Socket;
use super::owner;
use super::probe::{self, Found, Version};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long one question may take.
const LIMIT: Duration = Duration::from_secs(3);
/// No client of ours is looked for.
const NOBODY: &str = "";

/// What was seen of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Missing,
    /// It is there, and is no tmux or does not end.
    Broken(String),
    /// It says its version: as it says it, and as it is compared.
    There(String, Version),
}

/// What was seen of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    Answers {
        pid: u32,
        /// Its version, which may be older than the program's.
        version: Version,
    },
    /// It answers, and its user has redefined a command that tasuki's lines are made of.
    Redefined(String),
    /// None runs, and what lies under the socket's name, if anything does, is left over.
    None {
        /// A socket file is there.
        is_left_over: bool,
    },
    /// A server may be there, but does not answer.
    Silent,
    /// What listens there may be somebody else's, so it was not asked.
    Foreign {
        path: PathBuf,
        /// What is the matter with which folder or socket.
        said: String,
        /// What the user can do.
        fix: String,
    },
    /// It could not be known.
    Unclear(String),
}

/// Asks the program for its version.
#[must_use]
pub fn program(path: Option<&Path>) -> Program {
    let Some(path) = path else { return Program::Missing };
    let mut command = Command::new(path);
    probe::strip(command.arg("-V"));
    match probe::run(&mut command, LIMIT) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            Program::Broken("it did not say its version in time".to_owned())
        }
        Err(error) => Program::Broken(format!("it can't be run: {error}")),
        Ok(answer) => {
            let said = answer.out.lines().next().unwrap_or_default().trim().chars().take(100).collect::<String>();
            match said.strip_prefix("tmux ") {
                Some(version) if answer.ok => Program::There(version.to_owned(), Version::parse(version)),
                _ => Program::Broken(format!("it does not say a version of tmux, but: {said:?}")),
            }
        }
    }
}

/// Where a server's socket lies, for a process with that `TMUX_TMPDIR`.
#[must_use]
pub fn socket_path(socket: &Socket, tmpdir: Option<OsString>) -> PathBuf {
    probe::socket_path_in(socket, tmpdir)
}

/// Asks the server.
#[must_use]
pub fn server(program: &Path, socket: &Path) -> Server {
    match ask(program, socket) {
        // It was just about to end, or to begin.
        Server::Unclear(_) => ask(program, socket),
        server => server,
    }
}

fn ask(program: &Path, socket: &Path) -> Server {
    match probe::probe_within(program, socket, NOBODY, LIMIT) {
        Found::Server { id, version, .. } => Server::Answers { pid: id.pid, version },
        Found::Redefined { command } => Server::Redefined(command),
        Found::NoServer { .. } => Server::None { is_left_over: std::fs::symlink_metadata(socket).is_ok() },
        Found::Foreign(foreign) => Server::Foreign { said: foreign.to_string(), path: foreign.path, fix: foreign.fix },
        Found::Unclear { reason } if reason == probe::SILENT => Server::Silent,
        Found::Unclear { reason } => Server::Unclear(reason),
    }
}

/// Whether a socket, and what listens there, is the user's own: nobody else is to be spoken to.
///
/// # Errors
/// What is the matter with which folder or socket, and what the user can do.
pub fn check_owner(socket: &Path) -> Result<(), (String, String)> {
    owner::check(socket).map_err(|foreign| (foreign.to_string(), foreign.fix))
}

/// The `PATH` that new windows of the server have, and in which agents' programs are looked for.
#[must_use]
pub fn path_of_windows(program: &Path, socket: &Path) -> Option<String> {
    owner::check(socket).ok()?;
    let mut command = probe::tmux(program, socket);
    let answer = probe::run(command.args(["show-environment", "-g", "PATH"]), LIMIT).ok()?;
    let line = answer.out.lines().next()?.strip_prefix("PATH=")?.to_owned();
    answer.ok.then_some(line)
}
