//! Homes that share a server take turns: while one connects or disconnects, no other one changes anything there.
//!
//! Before 3.7, tmux crashes if it notifies a control client that is only half attached: the client has announced itself
//! as a control client, but the server does not yet treat it as one. tmux notifies control clients when another client
//! ends, when a session begins, ends or gets another name or another current window, when another pane becomes active,
//! and when a buffer changes.
//!
//! One home has only one connection at a time. Several homes keep out of each other's way by a lock on the folder of
//! the server's socket.

use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long to wait for others. A home that connects holds the lock for milliseconds, for a second where the machine is
/// busy, and never longer than its own deadlines. A home that holds it longer hangs, and must not delay others for
/// ever.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a home that disconnects waits for the lock. Its sidecar should end soon, but if it disconnects while
/// another home connects, the user's server can crash, with every agent in it.
pub(super) const LEAVES_WITHIN: Duration = Duration::from_secs(8);
const TRY_EVERY: Duration = Duration::from_millis(5);

/// A lock on the folder in which the server's socket really is, whatever links lead there. The system releases it when
/// the process ends.
#[derive(Debug)]
pub(super) struct ServerLock(Option<Flock<File>>);

impl ServerLock {
    /// For a home that has waited long enough: it continues without the lock.
    pub(super) const NONE: ServerLock = ServerLock(None);

    /// Whether this home really has the lock.
    pub(super) fn is_held(&self) -> bool {
        self.0.is_some()
    }

    /// The exclusive lock, for a home that connects or disconnects. After `patience` it returns without the lock: a
    /// small danger is better than no connection.
    pub(super) fn exclusive(socket: &Path, patience: Duration) -> ServerLock {
        Self::within(socket, FlockArg::LockExclusiveNonblock, patience)
    }

    /// Lets others change something, but not connect or disconnect. False if this home may hold no lock any more: the
    /// system releases the old lock before it gives the new one, and within `patience` another home has had it
    /// meanwhile. Then this home must not change anything.
    #[must_use]
    pub(super) fn share(&self, patience: Duration) -> bool {
        self.relock(FlockArg::LockSharedNonblock, patience)
    }

    /// Makes the lock exclusive again, for a home that gives up its connection. After `patience` this returns without
    /// the exclusive lock.
    pub(super) fn unshare(&self, patience: Duration) {
        self.relock(FlockArg::LockExclusiveNonblock, patience);
    }

    /// True at once if there is no lock to change.
    fn relock(&self, how: FlockArg, patience: Duration) -> bool {
        let (Some(lock), until) = (&self.0, Instant::now() + patience) else { return true };
        while lock.relock(how).is_err() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(TRY_EVERY);
        }
        true
    }

    /// The shared lock, for a home that changes something. Several homes may hold it.
    pub(super) async fn shared(socket: &str) -> ServerLock {
        let until = Instant::now() + PATIENCE;
        loop {
            match Self::shared_now(socket) {
                Some(lock) => return lock,
                None if Instant::now() >= until => return no_lock(),
                None => tokio::time::sleep(TRY_EVERY).await,
            }
        }
    }

    /// The shared lock, if it is free at this moment.
    pub(super) fn shared_now(socket: &str) -> Option<ServerLock> {
        Self::attempt(Path::new(socket), FlockArg::LockSharedNonblock)
    }

    /// The shared lock, for the connection's own thread. `None` after `patience`, or once the home `leaves`, because
    /// another thread of the home then holds the exclusive lock.
    pub(super) fn shared_unless(socket: &Path, patience: Duration, leaves: impl Fn() -> bool) -> Option<ServerLock> {
        Self::while_wanted(socket, FlockArg::LockSharedNonblock, patience, || !leaves())
    }

    fn within(socket: &Path, how: FlockArg, patience: Duration) -> ServerLock {
        Self::while_wanted(socket, how, patience, || true).unwrap_or_else(no_lock)
    }

    /// The exclusive lock, for a home that has lost its connection. `None` after `patience`, or once the home `closes`,
    /// because another thread of the home then holds the lock.
    pub(super) fn unless(socket: &Path, patience: Duration, closes: impl Fn() -> bool) -> Option<ServerLock> {
        Self::while_wanted(socket, FlockArg::LockExclusiveNonblock, patience, || !closes())
    }

    fn while_wanted(socket: &Path, how: FlockArg, patience: Duration, wanted: impl Fn() -> bool) -> Option<ServerLock> {
        let until = Instant::now() + patience;
        while wanted() {
            match Self::attempt(socket, how) {
                Some(lock) => return Some(lock),
                None if Instant::now() >= until => return None,
                None => std::thread::sleep(TRY_EVERY),
            }
        }
        None
    }

    /// `None` while the lock is held elsewhere. If the folder can't be opened or locked, the result is a `ServerLock`
    /// that holds nothing.
    fn attempt(socket: &Path, how: FlockArg) -> Option<ServerLock> {
        let socket = std::fs::canonicalize(socket).unwrap_or_else(|_| socket.to_owned());
        let Some(Ok(folder)) = socket.parent().map(File::open) else { return Some(ServerLock(None)) };
        match Flock::lock(folder, how) {
            Ok(held) => Some(ServerLock(Some(held))),
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => None,
            Err(_) => Some(ServerLock(None)),
        }
    }
}

fn no_lock() -> ServerLock {
    tracing::warn!(
        "another tasuki home has been busy with this tmux server for seconds; this one continues without waiting for it"
    );
    ServerLock(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_server_lock_is_exclusive_and_nobody_waits_for_it_for_ever() {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("s");
        let word = socket.to_str().expect("a text");
        let soon = Duration::from_millis(20);
        let acting = (ServerLock::shared(word).await, ServerLock::shared(word).await);
        assert!(acting.0.0.is_some() && acting.1.0.is_some());
        assert!(ServerLock::exclusive(&socket, soon).0.is_none());
        drop(acting);
        let alone = ServerLock::exclusive(&socket, soon);
        assert!(alone.0.is_some() && ServerLock::attempt(&socket, FlockArg::LockSharedNonblock).is_none());
        assert!(alone.share(soon));
        assert!(ServerLock::attempt(&socket, FlockArg::LockSharedNonblock).is_some_and(|lock| lock.0.is_some()));
        assert!(ServerLock::exclusive(&socket, soon).0.is_none());
        alone.unshare(soon);
        assert!(ServerLock::attempt(&socket, FlockArg::LockSharedNonblock).is_none());
        drop(alone);
        assert!(ServerLock::shared(word).await.0.is_some());
        assert!(ServerLock::exclusive(Path::new("/nowhere/s"), PATIENCE).0.is_none());
        let elsewhere = tempfile::tempdir().expect("a folder");
        std::fs::write(&socket, "").expect("written");
        std::os::unix::fs::symlink(&socket, elsewhere.path().join("s")).expect("a link");
        let behind_link = ServerLock::exclusive(&elsewhere.path().join("s"), soon);
        assert!(behind_link.0.is_some() && ServerLock::exclusive(&socket, soon).0.is_none(), "one server, one lock");
    }

    /// While the system makes an exclusive lock a shared one, nobody holds it for a moment.
    #[test]
    fn a_home_that_loses_the_lock_while_it_shares_it_learns_of_that() {
        let dir = tempfile::tempdir().expect("a folder");
        let (socket, soon) = (dir.path().join("s"), Duration::from_millis(20));
        let loser = ServerLock::exclusive(&socket, soon);
        // This copy is the same lock for the system, which releases it here.
        let copy = loser.0.as_ref().expect("held").try_clone().expect("a copy");
        drop(Flock::lock(copy, FlockArg::LockExclusiveNonblock).expect("held"));
        let other = ServerLock::exclusive(&socket, soon);
        assert!(other.0.is_some() && !loser.share(soon));
        drop(other);
        assert!(loser.share(soon) && ServerLock::exclusive(&socket, soon).0.is_none());
    }
}
