//! Handles signals on a separate thread: after Ctrl-C and the like a demo is still removed, `--wait` leaves the
//! terminal in order, and a command that waits for an answer says what becomes of its request.

use super::error::CliError;
use crate::exit;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

/// Catches these signals from now on: a thread calls `heard` for each signal that comes. It uses signal handlers, not a
/// signal mask, because child processes would inherit a mask.
///
/// # Errors
/// When the system refuses.
pub(super) fn take(kinds: &[SignalKind], heard: impl Fn(SignalKind) + Clone + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let open = kinds.iter().map(|kind| Ok((*kind, signal(*kind)?))).collect::<io::Result<Vec<_>>>()?;
    drop(inside);
    let listen = async move {
        let mut tasks = JoinSet::new();
        for (kind, mut signal) in open {
            let heard = heard.clone();
            tasks.spawn(async move {
                while signal.recv().await.is_some() {
                    heard(kind);
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(listen))?;
    Ok(())
}

/// The signals of Ctrl-C and Ctrl-\.
const TYPED: [SignalKind; 2] = [SignalKind::interrupt(), SignalKind::quit()];

/// The error when the system refuses to deliver signals.
pub(super) fn no_signals(error: &io::Error) -> CliError {
    CliError::refused("signals", format!("Can't listen for signals: {error}."))
}

/// Whether a signal has asked the program to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    seen: Arc<AtomicBool>,
    left: Arc<AtomicBool>,
}

impl Interrupts {
    /// Catches SIGINT, SIGQUIT, SIGTERM and SIGHUP from now on. A second signal changes nothing: the clean-up is
    /// bounded, and must not be cut short.
    pub(crate) fn watch() -> io::Result<Self> {
        Self::watch_for(&[TYPED[0], TYPED[1], SignalKind::terminate(), SignalKind::hangup()])
    }

    /// As [`Interrupts::watch`], without SIGHUP: a command under `nohup` waits longer than its terminal lives, and
    /// without `nohup` nobody is left who could read a last word.
    ///
    /// # Errors
    /// `signals`, when the system refuses.
    pub(super) fn while_asking() -> Result<Self, CliError> {
        Self::watch_for(&[TYPED[0], TYPED[1], SignalKind::terminate()]).map_err(|error| no_signals(&error))
    }

    fn watch_for(kinds: &[SignalKind]) -> io::Result<Self> {
        let interrupts = Interrupts::default();
        let Interrupts { seen, left } = interrupts.clone();
        let heard = move |kind| {
            if !TYPED.contains(&kind) || !left.load(Ordering::SeqCst) {
                seen.store(true, Ordering::SeqCst);
            }
        };
        take(kinds, heard)?;
        Ok(interrupts)
    }

    /// Ends a wait once a signal has come.
    ///
    /// # Errors
    /// `interrupted`, exit code 130.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if self.seen() { Err(CliError::new(exit::INTERRUPTED, "interrupted", "Interrupted.")) } else { Ok(()) }
    }

    /// With `true`: from now on SIGINT and SIGQUIT do not count, because Ctrl-C and Ctrl-\ are meant for another
    /// program on this terminal, such as an editor. With `false`: they count again.
    pub(super) fn leave_to_others(&self, are: bool) {
        self.left.store(are, Ordering::SeqCst);
    }

    /// Whether a signal has come.
    pub(crate) fn seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }
}
