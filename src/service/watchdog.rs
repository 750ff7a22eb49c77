//! What systemd is told: that the sidecar is ready, that its loop turns, that it ends. Everywhere else nothing is said.
//!
//! The watchdog is fed by turns of the loop and by nothing else: a loop that hangs must not be said to be alive.

use std::time::Duration;

/// Speaks to the manager that started us, if one did.
#[derive(Debug)]
pub struct Watchdog {
    /// How often systemd wants to hear of us; none if it does not watch.
    every: Option<Duration>,
    /// When it last did, by the clock that goes on while the machine sleeps, in milliseconds.
    told_ms: Option<u64>,
    is_ready: bool,
}

impl Watchdog {
    /// Reads from the environment whether anybody listens.
    #[must_use]
    pub fn from_env() -> Self {
        // Half of the limit is what systemd advises; a third leaves room for a turn that takes long.
        Watchdog { every: limit().map(|limit| limit / 3), told_ms: None, is_ready: false }
    }

    /// The sidecar has taken over: requests are served from here on.
    pub fn ready(&mut self) {
        tell(&Word::Ready);
        self.is_ready = true;
    }

    /// The loop has done a turn.
    pub fn turned(&mut self, boot_ms: u64) {
        let Some(every) = self.every else { return };
        let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        if self.told_ms.is_none_or(|told| boot_ms.saturating_sub(told) >= every) {
            tell(&Word::Alive);
            self.told_ms = Some(boot_ms);
        }
    }

    /// How long the loop may sleep at most, so that the next turn comes in time.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        self.every
    }

    /// One line for `systemctl status`: counts, and never a text.
    pub fn status(&self, line: &str) {
        if self.is_ready {
            tell(&Word::Status(line));
        }
    }

    /// The configuration is being read again.
    pub fn reloading(&self) {
        tell(&Word::Reloading);
    }

    /// The end has begun.
    pub fn stopping(&self) {
        tell(&Word::Stopping);
    }
}

enum Word<'a> {
    Ready,
    Alive,
    Status(&'a str),
    Reloading,
    Stopping,
}

#[cfg(target_os = "linux")]
fn limit() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

#[cfg(target_os = "linux")]
fn tell(word: &Word<'_>) {
    use sd_notify::NotifyState as State;
    let state = match word {
        Word::Ready => State::Ready,
        Word::Alive => State::Watchdog,
        Word::Status(line) => State::Status(line),
        Word::Reloading => State::Reloading,
        Word::Stopping => State::Stopping,
    };
    // Nobody may listen; and that a manager which went away hears nothing is no reason to stop.
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager was not told");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit() -> Option<Duration> {
    None
}

#[cfg(not(target_os = "linux"))]
fn tell(_word: &Word<'_>) {}
