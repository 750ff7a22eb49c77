//! Examines a tmux server from outside, for a person who wants to know what is wrong. This runs a few short-lived
//! processes, changes nothing and starts no server. Even if the server is stopped, the answer comes within four
//! seconds.

use super::Socket;
use super::owner;
use super::probe::{self, ProbeResult};
use super::version::Version;
use crate::core::pane::TmuxVariable;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(3);
/// No session has this name. The probe reports the control clients of one session, and none are wanted here.
const NOBODY: &str = "";

/// What is known of the tmux program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    Missing,
    /// The file exists, but is not tmux or does not end.
    Broken(String),
    /// It prints a version: the text, and the numbers for comparisons.
    There(String, Version),
}

/// What is known of the tmux server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Server {
    Answers {
        pid: u32,
        /// Its version, which may be older than the program's.
        version: Version,
    },
    /// It answers, but its user has redefined a command that tasuki's lines use.
    Redefined(String),
    /// It answers, but would crash if a window were made.
    ManualSize,
    /// No server runs; a socket file may be left over.
    None {
        /// Whether a socket file exists.
        is_left_over: bool,
    },
    /// A server may be there, but does not answer.
    Silent,
    /// The process that listens there may be another user's, so it was not asked.
    Foreign {
        path: PathBuf,
        /// Which folder or socket is not safe, and why.
        said: String,
        fix: String,
    },
    Unclear(String),
}

/// Asks the program for its version.
#[must_use]
pub fn program(path: Option<&Path>) -> Program {
    let Some(path) = path else { return Program::Missing };
    let mut command = Command::new(path);
    probe::strip_environment(command.arg("-V"));
    match probe::run(&mut command, LIMIT) {
        Err(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            Program::Broken("it did not print its version in time".to_owned())
        }
        Err(error) => Program::Broken(format!("it can't be run: {error}")),
        Ok(answer) => {
            let said = answer.out.lines().next().unwrap_or_default().trim().chars().take(100).collect::<String>();
            match said.strip_prefix("tmux ") {
                Some(version) if answer.ok => Program::There(version.to_owned(), Version::parse(version)),
                _ => Program::Broken(format!("it does not print a tmux version, but {said:?}")),
            }
        }
    }
}

/// The path of a server's socket, for a process with that `TMUX_TMPDIR`.
#[must_use]
pub fn socket_path(socket: &Socket, tmpdir: Option<OsString>) -> PathBuf {
    probe::socket_path_in(socket, tmpdir)
}

/// The socket of the server whose pane this process runs in, as `TMUX` names it; `None` outside of tmux.
#[must_use]
pub fn socket_around() -> Option<PathBuf> {
    let value = std::env::var("TMUX").ok()?;
    TmuxVariable::read(&value).map(|tmux| PathBuf::from(tmux.socket))
}

/// Finds out whether a server runs at this socket and whose it is.
#[must_use]
pub fn server(program: &Path, socket: &Path) -> Server {
    match ask(program, socket) {
        // The server may have been just starting or ending.
        Server::Unclear(_) => ask(program, socket),
        server => server,
    }
}

fn ask(program: &Path, socket: &Path) -> Server {
    match probe::probe_within(program, socket, NOBODY, LIMIT) {
        ProbeResult::Server { id, version, .. } => Server::Answers { pid: id.pid, version },
        ProbeResult::Redefined { command } => Server::Redefined(command),
        ProbeResult::ManualSize => Server::ManualSize,
        ProbeResult::NoServer { .. } => Server::None { is_left_over: std::fs::symlink_metadata(socket).is_ok() },
        ProbeResult::Foreign(foreign) => {
            Server::Foreign { said: foreign.to_string(), path: foreign.path, fix: foreign.fix }
        }
        ProbeResult::Unclear { reason } if reason == probe::SILENT => Server::Silent,
        ProbeResult::Unclear { reason } | ProbeResult::NotRun { reason } => Server::Unclear(reason),
    }
}

/// Checks that a socket, and the process that listens there, are the user's own. tasuki speaks to no other server.
///
/// # Errors
/// Two texts. The first says which folder or socket is not safe and why, or why that can't be found out now; the
/// second, what the user can do.
pub fn check_owner(socket: &Path) -> Result<(), (String, String)> {
    owner::check(socket).map_err(|unasked| (unasked.to_string(), unasked.fix().to_owned()))
}

/// Whether the server ends when no client is attached any more (`exit-unattached`); `None` if it does not tell.
#[must_use]
pub fn ends_unattached(program: &Path, socket: &Path) -> Option<bool> {
    owner::check(socket).ok()?;
    let mut command = probe::tmux(program, socket);
    let answer = probe::run(command.args(["show-options", "-s", "-v", "exit-unattached"]), LIMIT).ok()?;
    answer.ok.then(|| answer.out.trim() == "on")
}

/// The `PATH` of the server's new windows, in which agents' programs are looked for; `None` if the server does not tell
/// it.
#[must_use]
pub fn path_of_windows(program: &Path, socket: &Path) -> Option<String> {
    owner::check(socket).ok()?;
    let mut command = probe::tmux(program, socket);
    let answer = probe::run(command.args(["show-environment", "-g", "PATH"]), LIMIT).ok()?;
    let line = answer.out.lines().next()?.strip_prefix("PATH=")?.to_owned();
    answer.ok.then_some(line)
}
