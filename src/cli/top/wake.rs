//! What wakes the loop besides the terminal: signals, changes of files, answers. Each sets a flag and writes one byte
//! into a pipe that the loop polls; if the pipe is full, the loop wakes anyway.

use crate::cli::interrupts;
use crate::files::watcher::FolderWatcher;
use nix::sys::signal::Signal;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::SignalKind;

/// After these signals everything is redrawn: the size has changed, or the program was stopped and continues. After the
/// other signals in [`TAKEN`] the program ends.
const DRAWING: [Signal; 2] = [Signal::SIGWINCH, Signal::SIGCONT];
const TAKEN: [Signal; 6] =
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT, Signal::SIGWINCH, Signal::SIGCONT];

/// What has happened since the last look.
#[derive(Debug, Default)]
struct Flags {
    ended: AtomicBool,
    redraw: AtomicBool,
    changed: AtomicBool,
}

#[derive(Debug, Clone)]
pub(super) struct SleepWaker {
    flags: Arc<Flags>,
    bell: Arc<UnixStream>,
}

impl SleepWaker {
    pub(super) fn ring(&self) {
        // A full pipe wakes the loop as well.
        let _ = (&*self.bell).write(&[1]);
    }

    fn set(&self, flag: &AtomicBool) {
        flag.store(true, Ordering::SeqCst);
        self.ring();
    }
}

#[derive(Debug)]
pub(super) struct Wake {
    waker: SleepWaker,
    ear: UnixStream,
    watcher: Option<FolderWatcher>,
    watched: Vec<PathBuf>,
}

impl Wake {
    /// Listens for signals from here on.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn new() -> io::Result<Self> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        let waker = SleepWaker { flags: Arc::new(Flags::default()), bell: Arc::new(bell) };
        let signalled = waker.clone();
        interrupts::take(&TAKEN.map(|taken| SignalKind::from_raw(taken as i32)), move |kind| {
            let draws = DRAWING.iter().any(|drawing| kind == SignalKind::from_raw(*drawing as i32));
            signalled.set(if draws { &signalled.flags.redraw } else { &signalled.flags.ended });
        })?;
        let hinted = waker.clone();
        // Without watches the loop checks at intervals.
        let watcher = FolderWatcher::new(move |_| hinted.set(&hinted.flags.changed)).ok();
        Ok(Wake { waker, ear, watcher, watched: Vec::new() })
    }

    pub(super) fn waker(&self) -> SleepWaker {
        self.waker.clone()
    }

    /// Watches these folders for changes, if they exist. Call it again from time to time, because a folder may be made
    /// later.
    pub(super) fn watch(&mut self, folders: &[PathBuf]) {
        let is_new = |folder: &&PathBuf| !self.watched.contains(folder) && folder.is_dir();
        let new: Vec<&PathBuf> = folders.iter().filter(is_new).collect();
        for folder in new {
            if arm(self.watcher.as_mut(), folder) {
                self.watched.push(folder.clone());
            }
        }
    }

    /// Empties the pipe, so that the loop can sleep again.
    pub(super) fn calm(&mut self) {
        let mut bytes = [0; 256];
        while matches!(self.ear.read(&mut bytes), Ok(count) if count > 0) {}
    }

    pub(super) fn has_ended(&self) -> bool {
        self.waker.flags.ended.load(Ordering::SeqCst)
    }

    /// Whether everything must be redrawn; resets the flag.
    pub(super) fn wants_redraw(&self) -> bool {
        self.waker.flags.redraw.swap(false, Ordering::SeqCst)
    }

    /// Whether files may have changed; resets the flag.
    pub(super) fn has_changed(&self) -> bool {
        self.waker.flags.changed.swap(false, Ordering::SeqCst)
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ear.as_fd()
    }
}

fn arm(watcher: Option<&mut FolderWatcher>, folder: &Path) -> bool {
    watcher.is_some_and(|watcher| watcher.watch(folder).is_ok())
}
