//! Signals, on a thread of their own: a sidecar whose loop hangs can still be ended, by force if it has not ended in
//! time. Nothing is lost, because whatever was begun is in the store and is continued at the next start.

use super::log;
use crate::exit;
use anyhow::Context;
use nix::libc;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

/// How long an end in good order may take. The time limits of its parts add up to less; see `wait`. A service manager
/// waits longer than this.
pub(super) const END_WITHIN: Duration = Duration::from_secs(18);

pub(super) struct Signals {
    pub(super) stop: Arc<Notify>,
    pub(super) reload: Arc<Notify>,
}

/// Listens for the signals that end or reload. A hang-up ends a sidecar that was started in a terminal. In any other
/// sidecar, and under `nohup`, it reloads the configuration.
pub(super) fn listen() -> anyhow::Result<Signals> {
    let signals = Signals { stop: Arc::new(Notify::new()), reload: Arc::new(Notify::new()) };
    let (stop, reload) = (Arc::clone(&signals.stop), Arc::clone(&signals.reload));
    let hang_up_ends = is_in_terminal() && !ignores_hang_ups();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let open = |kind| signal(kind).context("could not listen for signals");
    let (mut terminate, mut interrupt) = (open(SignalKind::terminate())?, open(SignalKind::interrupt())?);
    let mut hang_up = open(SignalKind::hangup())?;
    drop(inside);
    let take = async move {
        loop {
            let kind = tokio::select! {
                Some(()) = terminate.recv() => SignalKind::terminate(),
                Some(()) = interrupt.recv() => SignalKind::interrupt(),
                Some(()) = hang_up.recv() => SignalKind::hangup(),
                else => return,
            };
            let ends = kind != SignalKind::hangup() || hang_up_ends;
            tracing::info!(signal = kind.as_raw_value(), ends, "received a signal");
            if ends {
                stop.notify_one();
                tokio::time::sleep(END_WITHIN).await;
                end_by_force();
            }
            reload.notify_one();
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || runtime.block_on(take))?;
    Ok(signals)
}

fn end_by_force() -> ! {
    let seconds = END_WITHIN.as_secs();
    log::say(&format!(
        "tasuki: the sidecar was told to end {seconds} s ago and hangs, so it ends by force; nothing is lost, and the \
         next start continues"
    ));
    log::finish();
    std::process::exit(i32::from(exit::TRY_AGAIN));
}

/// A sidecar whose log goes to a file still belongs to its terminal: it ends with the pane.
fn is_in_terminal() -> bool {
    std::io::stdin().is_terminal() || std::io::stdout().is_terminal() || std::io::stderr().is_terminal()
}

/// Whether our parent wants us to outlive the terminal, as `nohup` does.
#[allow(unsafe_code)]
#[must_use]
pub fn ignores_hang_ups() -> bool {
    let mut before = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call sets nothing. It only writes the present action to our memory, whole.
    let asked = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), before.as_mut_ptr()) };
    // SAFETY: the call has filled it.
    asked == 0 && unsafe { before.assume_init() }.sa_sigaction == libc::SIG_IGN
}
