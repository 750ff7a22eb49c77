//! The sidecar's log: ids and kinds, never the text of a prompt or a document. It is written for people on a terminal,
//! as JSON lines on demand, and with separate fields where systemd's journal reads standard error.

#[cfg(target_os = "linux")]
mod journal;
mod writer;

use crate::core::decision::Decision;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;
use writer::{Door, Lines};

/// The writer that all of the log goes through.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Begins to log.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn start(json: bool) -> io::Result<()> {
    let filter = EnvFilter::try_from_env("TASUKI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    #[cfg(target_os = "linux")]
    if !json
        && stderr_is_journal()
        // A journal that has no socket takes what standard error gives it.
        && let Ok(send) = journal::sender()
    {
        use tracing_subscriber::layer::SubscriberExt;
        use tracing_subscriber::util::SubscriberInitExt;
        let lines = keep(Lines::start(by_journal(send), report_dropped)?);
        let _ = tracing_subscriber::registry().with(filter).with(journal::ToJournal(lines)).try_init();
        return Ok(());
    }
    let lines = keep(Lines::start(|_, line| writer::to_stderr(line), report_dropped)?);
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_target(false);
    // What this library can't write it complains of on standard error, and panics where that is closed.
    let builder = builder.log_internal_errors(false).with_writer(move || Line(lines));
    let _ = if json { builder.json().try_init() } else { builder.with_ansi(io::stderr().is_terminal()).try_init() };
    Ok(())
}

#[cfg(target_os = "linux")]
fn by_journal(send: impl Fn(&[u8]) -> io::Result<()>) -> impl Fn(Door, &[u8]) -> io::Result<()> {
    move |door, line| if door == Door::Journal { send(line) } else { writer::to_stderr(line) }
}

fn report_dropped(lines: usize) {
    tracing::warn!(lines, "lines of the log were dropped here, because no program read standard error or the journal");
}

fn keep(lines: Lines) -> &'static Lines {
    LINES.get_or_init(|| lines)
}

/// Writes one line to standard error outside the log: why the program ends.
pub(super) fn say(text: &str) {
    if let Some(lines) = LINES.get() {
        lines.put(Door::Stderr, format!("{text}\n").as_bytes());
    }
}

/// Sees that what was said is written, as far as somebody reads it.
pub(super) fn finish() {
    if let Some(lines) = LINES.get() {
        lines.finish();
    }
}

/// Takes one whole line at a time, as they are written.
struct Line(&'static Lines);

impl io::Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(Door::Stderr, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says what was decided: one line for each step, verdict and failure, with its ids and kinds.
pub(super) fn decided(decision: &Decision) {
    for (seq, line) in &decision.journal {
        let word = |name: &str| line[name].as_str();
        let (handoff, agent, step) = (word("handoff_id"), word("agent_id"), word("step"));
        match word("type").unwrap_or_default() {
            "handoff.step" if line["document_bytes"].is_null() => {
                tracing::info!(seq, handoff, step, agent, successor = word("successor_id"), "handoff");
            }
            "handoff.failed" => tracing::warn!(seq, handoff, step, code = word("code"), "a handoff has failed"),
            "error" => {
                tracing::warn!(seq, error_id = word("error_id"), code = word("code"), handoff, agent, "a failure")
            }
            "delivery" => {
                let (delivery, purpose, verdict) = (word("delivery_id"), word("purpose"), word("verdict"));
                tracing::info!(seq, delivery, purpose, verdict, agent, handoff, "text");
            }
            kind => {
                tracing::debug!(seq, kind, agent, handoff, state = word("state"), "told")
            }
        }
    }
}

/// Whether standard error is the very stream that systemd says it has given us: the variable is inherited by programs
/// whose output goes elsewhere.
#[cfg(target_os = "linux")]
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stat) = nix::sys::stat::fstat(std::io::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}
