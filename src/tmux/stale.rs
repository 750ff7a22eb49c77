//! Control clients that are in our private session before we connect. Clients that an ended sidecar of this home left
//! behind are ended. If the sidecar of such a client still runs, the client is left alone, and we do not connect: that
//! sidecar has our tag, so its home is ours, or one of the two homes is a copy of the other.

use super::client::PATIENCE;
use super::probe::ControlClient;
use super::started;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long it may stay unclear which sidecar started a client. Until then, the client or its parent may be just
/// starting or ending.
const SETTLES_WITHIN: Duration = Duration::from_secs(2);
/// How long a sidecar with our tag may be without a connection before we connect: it may be connecting again.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(30);

/// Why we don't connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InUse {
    /// A running sidecar, with this process id, works in this server with our tag.
    BySidecar(u32),
    /// It can't be found out whether a running sidecar started this client.
    Unseen {
        pid: u32,
        why: String,
        /// Whether this has lasted longer than a process takes to start or to end.
        lasts: bool,
    },
}

impl InUse {
    /// Whether the operator has to know of it.
    pub(super) fn is_problem(&self) -> bool {
        matches!(self, InUse::BySidecar(_) | InUse::Unseen { lasts: true, .. })
    }

    pub(super) fn reason(&self, socket: &Path) -> String {
        let socket = socket.display();
        match self {
            InUse::BySidecar(pid) => format!(
                "another sidecar (process {pid}) works in the tmux server on {socket} with the identity of this home, so \
                 one of the two homes is a copy of the other; tasuki did nothing in that server; end the sidecar of the \
                 copy, and use a new home in its place"
            ),
            InUse::Unseen { pid, why, .. } => format!(
                "a tmux client (process {pid}) has the identity of this home in the tmux server on {socket}, and tasuki \
                 can't find out whether a running sidecar started it ({why}); tasuki did nothing in that server; if it \
                 stays so, look for a sidecar of a copy of this home, also in containers, and end it"
            ),
        }
    }
}

/// Whose a client is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    /// An ended sidecar of this home left it behind, or we did.
    Nobodys,
    /// A running sidecar with this process id.
    Sidecars(u32),
    /// Not a sidecar's client, or a client that has ended.
    NotOurs,
    /// It can't be found out now, for this reason.
    Unseen(String),
}

/// What is known of other sidecars that worked in our session.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// The last sidecar with our tag that was seen to be connected.
    sidecar: Option<u32>,
    /// Since when that sidecar has no connection.
    away_since: Option<Instant>,
    /// Since when a client can't be looked at.
    unseen_since: Option<Instant>,
}

impl Others {
    /// Ends the clients that an ended sidecar of this home has left behind. Returns whether there were any.
    ///
    /// # Errors
    /// Another sidecar with our tag runs, or may run; none of its clients was ended.
    pub(super) fn clear(&mut self, clients: &[ControlClient], session: &str) -> Result<bool, InUse> {
        let mut whose = Vec::with_capacity(clients.len());
        for client in clients {
            whose.push((client.pid, look(client, session).unwrap_or_else(|error| Whose::Unseen(error.to_string()))));
        }
        let sidecar =
            whose.iter().find_map(|(_, whose)| if let Whose::Sidecars(pid) = whose { Some(*pid) } else { None });
        if let Some(sidecar) = sidecar {
            *self = Others { sidecar: Some(sidecar), ..Others::default() };
            return Err(InUse::BySidecar(sidecar));
        }
        for (pid, whose) in &whose {
            if let Whose::Unseen(why) = whose {
                let since = *self.unseen_since.get_or_insert_with(Instant::now);
                let lasts = since.elapsed() > SETTLES_WITHIN;
                return Err(InUse::Unseen { pid: *pid, why: why.clone(), lasts });
            }
        }
        self.unseen_since = None;
        self.may_come_back()?;
        let left = whose.iter().filter(|(_, whose)| *whose == Whose::Nobodys);
        Ok(left.filter(|(pid, _)| end(*pid, session)).count() > 0)
    }

    /// Fails while the last connected sidecar runs and may connect again: we must not take its agents meanwhile.
    fn may_come_back(&mut self) -> Result<(), InUse> {
        let Some(pid) = self.sidecar else { return Ok(()) };
        let runs = started::arguments(pid).map_or(true, |words| words.is_some_and(|words| is_sidecar(&words)));
        let away_since = *self.away_since.get_or_insert_with(Instant::now);
        if runs && away_since.elapsed() < COMES_BACK_WITHIN {
            return Err(InUse::BySidecar(pid));
        }
        *self = Others::default();
        Ok(())
    }
}

/// Whose a client is.
///
/// # Errors
/// A process could not be looked at, and that may pass.
fn look(client: &ControlClient, session: &str) -> io::Result<Whose> {
    if !started::is_our_client(client.pid, session)? {
        // If the client's flags say that a sidecar started it, either it has just ended, or its process id is from
        // another container.
        let unseen = || Whose::Unseen("the process of the client can't be looked at".to_owned());
        return Ok(if client.is_sidecars { unseen() } else { Whose::NotOurs });
    }
    let Some(parent) = started::parent(client.pid)? else { return Ok(Whose::NotOurs) };
    if parent == std::process::id() {
        return Ok(Whose::Nobodys);
    }
    Ok(match started::arguments(parent)? {
        Some(words) if is_sidecar(&words) => Whose::Sidecars(parent),
        // The client's sidecar has ended, and the system gave the client to this process, which may be another user's.
        // A sidecar that uses this server is never another user's.
        Some(_) => Whose::Nobodys,
        None if started::is_another_users(parent) => Whose::Nobodys,
        None => Whose::Unseen(format!("its parent, process {parent}, can't be looked at")),
    })
}

/// Whether a process with these arguments is a sidecar: its program is named as ours, and one argument is `run`.
fn is_sidecar(words: &[Vec<u8>]) -> bool {
    let name = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
    let Some((program, arguments)) = words.split_first() else { return false };
    let ours = std::env::args_os().next().map(|path| name(path.as_bytes()));
    let is_ours = name(program).starts_with(b"tasuki") || ours == Some(name(program));
    is_ours && arguments.iter().any(|word| word == b"run")
}

/// Ends a client, and waits until it has ended. Returns whether it was asked to end.
fn end(pid: u32, session: &str) -> bool {
    let Ok(raw) = i32::try_from(pid) else { return false };
    if kill(Pid::from_raw(raw), Signal::SIGTERM).is_err() {
        return false;
    }
    tracing::info!(pid, "ended the tmux control client of an earlier sidecar");
    let until = Instant::now() + PATIENCE;
    while started::is_our_client(pid, session).unwrap_or(true) && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sidecar_is_known_by_its_program_and_its_command() {
        let is_one = |line: &str| is_sidecar(&line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>());
        for line in ["tasuki run", "/opt/tasuki-0.2/bin/tasuki --home /h run --tmux /s", "./tasuki-new run"] {
            assert!(is_one(line), "{line}");
        }
        for line in ["/sbin/init", "tini -- tasuki run", "tasuki status", "sh -c exec tasuki run", ""] {
            assert!(!is_one(line), "{line}");
        }
    }

    /// Only a sidecar whose process still runs is given time to connect again.
    #[test]
    fn a_sidecar_that_has_ended_holds_nobody_up() {
        let mut others = Others { sidecar: Some(u32::MAX), ..Others::default() };
        assert_eq!(others.clear(&[], "_tasuki-00"), Ok(false));
        assert_eq!(others.sidecar, None);
    }

    #[test]
    fn a_client_that_only_the_server_sees_is_not_taken_for_an_ended_one() {
        let mut others = Others::default();
        let client = |is_sidecars| ControlClient { pid: u32::MAX, is_sidecars };
        let found = others.clear(&[client(true)], "_tasuki-00");
        assert!(matches!(found, Err(InUse::Unseen { pid: u32::MAX, lasts: false, .. })), "{found:?}");
        assert_eq!(others.clear(&[client(false)], "_tasuki-00"), Ok(false), "a user's own client holds nobody up");
    }
}
