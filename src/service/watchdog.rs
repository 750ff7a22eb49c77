//! Tells systemd that the sidecar is ready, that its loop runs, and that it ends. Without systemd it does nothing.
//!
//! Only cycles of the loop feed the watchdog, because a loop that hangs must not appear alive. But the loop never waits
//! for a service manager that hangs: a thread sends the messages, and frequent ones are dropped when many are waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender, SyncSender};
use std::time::Duration;

/// When this many messages are waiting, frequent ones are dropped.
const CROWD: usize = 8;
/// How long an ending sidecar waits until its last message is sent.
const LAST_WITHIN: Duration = Duration::from_secs(1);
/// How often a start that takes long reports that it still runs.
const STILL_STARTING: Duration = Duration::from_secs(20);
/// By how much each such report extends the time that systemd gives the start.
#[cfg(target_os = "linux")]
const MORE_TIME: Duration = Duration::from_secs(60);
/// The most such reports: half an hour's.
const MOST_MESSAGES: usize = 90;

/// As long as this value exists, a thread reports that the start still runs. systemd allows a start 90 s, but a large
/// state file that was not closed properly is read whole first.
#[derive(Debug)]
pub struct StartReporter {
    _over: Option<Sender<()>>,
}

impl StartReporter {
    /// Tells the service manager that the start takes longer, until the returned value is dropped.
    #[must_use]
    pub fn begin() -> StartReporter {
        if std::env::var_os("NOTIFY_SOCKET").is_none() {
            return StartReporter { _over: None };
        }
        let (over, waits) = mpsc::channel::<()>();
        let tell_it = move || {
            for _ in 0..MOST_MESSAGES {
                match waits.recv_timeout(STILL_STARTING) {
                    Err(RecvTimeoutError::Timeout) => tell(&Message::Starting),
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        match std::thread::Builder::new().name("starting".to_owned()).spawn(tell_it) {
            Ok(_) => StartReporter { _over: Some(over) },
            Err(error) => {
                tracing::warn!(%error, "can't tell the service manager that the start takes long");
                StartReporter { _over: None }
            }
        }
    }
}

/// Sends messages to the service manager that started the sidecar, if one did.
#[derive(Debug)]
pub struct Watchdog {
    /// How often a sign of life is sent; `None` if systemd's watchdog is off.
    every: Option<Duration>,
    /// When the last sign of life was sent, by the clock that keeps running while the machine sleeps, in milliseconds.
    told_ms: Option<u64>,
    /// The last line for `systemctl status`.
    status: String,
    /// The thread that sends the messages; `None` without a service manager.
    speaker: Option<Speaker>,
}

impl Watchdog {
    /// Reads from the environment whether a service manager listens.
    #[must_use]
    pub fn from_env() -> Self {
        let speaker = std::env::var_os("NOTIFY_SOCKET").and_then(|_| match Speaker::start(tell) {
            Ok(speaker) => Some(speaker),
            Err(error) => {
                tracing::warn!(%error, "can't start the thread that talks to the service manager");
                None
            }
        });
        // Half of the limit is what systemd advises; a third leaves room for a cycle that takes long.
        Watchdog { every: limit().map(|limit| limit / 3), told_ms: None, status: String::new(), speaker }
    }

    /// The sidecar has taken over: requests are served from here on.
    pub fn ready(&self) {
        self.say(Message::Ready);
    }

    /// Notes that the loop has finished a cycle.
    pub fn cycled(&mut self, boot_ms: u64) {
        let Some(every) = self.every else { return };
        let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        if self.told_ms.is_none_or(|told| boot_ms.saturating_sub(told) >= every) {
            self.say(Message::Alive);
            self.told_ms = Some(boot_ms);
        }
    }

    /// How long the loop may sleep at most, so that the next cycle comes in time.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        self.every
    }

    /// One line for `systemctl status`, sent when it has changed. It holds counts, and no text of an agent's or a
    /// person's.
    pub fn status(&mut self, line: String) {
        if self.status != line && self.say(Message::Status(line.clone())) {
            self.status = line;
        }
    }

    /// Tells the service manager that the configuration is being read again.
    pub fn reloading(&self) {
        self.say(Message::Reloading);
    }

    /// The sidecar is ending. This waits a moment until the message is sent, because messages that still wait are lost
    /// when the process ends.
    pub fn stopping(&self) {
        let Some(speaker) = &self.speaker else { return };
        let (said, is_said) = mpsc::sync_channel(1);
        speaker.put(Message::Stopping(said));
        let _ = is_said.recv_timeout(LAST_WITHIN);
    }

    /// Returns false if the message was dropped.
    fn say(&self, message: Message) -> bool {
        self.speaker.as_ref().is_none_or(|speaker| speaker.put(message))
    }
}

#[derive(Debug)]
enum Message {
    Starting,
    Ready,
    Alive,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only systemd is told of it"))]
    Status(String),
    Reloading,
    /// With a channel that confirms it.
    Stopping(SyncSender<()>),
}

/// The thread that sends messages, and how many are waiting.
#[derive(Debug)]
struct Speaker {
    messages: Sender<Message>,
    waiting: Arc<AtomicUsize>,
}

impl Speaker {
    fn start(tell: impl Fn(&Message) + Send + 'static) -> std::io::Result<Speaker> {
        let (messages, told) = mpsc::channel::<Message>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&waiting);
        let speak = move || {
            for message in told {
                tell(&message);
                left.fetch_sub(1, Ordering::Relaxed);
                if let Message::Stopping(said) = message {
                    let _ = said.try_send(());
                }
            }
        };
        std::thread::Builder::new().name("manager".to_owned()).spawn(speak)?;
        Ok(Speaker { messages, waiting })
    }

    /// Never waits. Signs of life and counts may be dropped, because the next ones follow soon. The other messages are
    /// few, and none of them may be lost. Returns false if the message was dropped.
    fn put(&self, message: Message) -> bool {
        let is_told_often = matches!(message, Message::Alive | Message::Status(_));
        if is_told_often && self.waiting.load(Ordering::Relaxed) >= CROWD {
            return false;
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        if self.messages.send(message).is_err() {
            tracing::warn!("the thread that talks to the service manager has ended");
        }
        true
    }
}

#[cfg(target_os = "linux")]
fn limit() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

#[cfg(target_os = "linux")]
fn tell(message: &Message) {
    use sd_notify::NotifyState as State;
    let state = match message {
        Message::Starting => State::ExtendTimeoutUsec(u32::try_from(MORE_TIME.as_micros()).unwrap_or(u32::MAX)),
        Message::Ready => State::Ready,
        Message::Alive => State::Watchdog,
        Message::Status(line) => State::Status(line),
        Message::Reloading => State::Reloading,
        Message::Stopping(_) => State::Stopping,
    };
    // A missing service manager is not a reason to stop.
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "could not notify the service manager");
    }
}

#[cfg(not(target_os = "linux"))]
fn limit() -> Option<Duration> {
    None
}

#[cfg(not(target_os = "linux"))]
fn tell(_word: &Message) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_that_hangs_delays_nobody_and_misses_no_message_that_is_sent_once() {
        let (release, wait) = mpsc::channel::<()>();
        let (heard, hears) = mpsc::channel();
        let tell = move |message: &Message| {
            // Hangs at its first message, until the sender is dropped.
            let _ = wait.recv();
            heard.send(format!("{message:?}")).expect("the test listens");
        };
        let speaker = Some(Speaker::start(tell).expect("a thread"));
        let mut watchdog =
            Watchdog { every: Some(Duration::from_millis(1)), told_ms: None, status: String::new(), speaker };
        watchdog.ready();
        for ms in 0..1000 {
            watchdog.cycled(ms * 10);
            watchdog.status(format!("{} agents", ms / 10));
        }
        watchdog.reloading();
        drop(release);
        watchdog.stopping();
        let messages: Vec<String> = hears.try_iter().collect();
        assert!(messages.len() < 2 * CROWD, "{messages:?}");
        assert_eq!((messages[0].as_str(), messages[messages.len() - 2].as_str()), ("Ready", "Reloading"));
        assert!(messages[messages.len() - 1].starts_with("Stopping"), "{messages:?}");
    }
}
