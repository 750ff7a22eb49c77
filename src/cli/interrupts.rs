//! Ctrl-C and its kin, so that the stage is cleared whatever ends the play, and a wait leaves its terminal in order.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{SignalKind, signal};

/// Whether somebody wants the program to end.
#[derive(Debug, Clone)]
pub(super) struct Interrupts {
    seen: Arc<AtomicBool>,
}

impl Interrupts {
    /// Takes SIGINT, SIGQUIT, SIGTERM and SIGHUP from here on. Handlers, unlike a mask, are not inherited by the programs that
    /// are started. A second signal changes nothing: clearing up is bounded, and must not be cut short.
    pub(super) fn watch() -> io::Result<Self> {
        let seen = Arc::new(AtomicBool::new(false));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (mut interrupt, mut quit, mut terminate, mut hang_up) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::interrupt())?,
                signal(SignalKind::quit())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            )
        };
        let flag = Arc::clone(&seen);
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async move {
                loop {
                    let open = tokio::select! {
                        got = interrupt.recv() => got.is_some(),
                        got = quit.recv() => got.is_some(),
                        got = terminate.recv() => got.is_some(),
                        got = hang_up.recv() => got.is_some(),
                    };
                    flag.store(true, Ordering::SeqCst);
                    if !open {
                        return;
                    }
                }
            });
        })?;
        Ok(Interrupts { seen })
    }

    /// Whether one came.
    pub(super) fn seen(&self) -> bool {
        self.seen.load(Ordering::SeqCst)
    }
}
