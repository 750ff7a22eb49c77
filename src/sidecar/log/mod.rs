//! The sidecar's log: ids and kinds, never the text of a prompt or a document. It is plain text on a terminal, JSON
//! lines on demand, and separate fields if systemd's journal reads standard error.

#[cfg(target_os = "linux")]
mod journal;
mod writer;

use crate::core::decision::Decision;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;
use writer::{Lines, LogOutput};

/// The writer that all of the log goes through.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Starts the log.
///
/// # Errors
/// The system starts no thread.
pub(super) fn start(json: bool) -> io::Result<()> {
    let filter = EnvFilter::try_from_env("TASUKI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    #[cfg(target_os = "linux")]
    if !json
        && stderr_is_journal()
        // If the journal's socket does not answer, lines go to standard error, which the journal reads too.
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
    // The library reports its own write errors on standard error, and panics if that is closed.
    let builder = builder.log_internal_errors(false).with_writer(move || Line(lines));
    let _ = if json { builder.json().try_init() } else { builder.with_ansi(io::stderr().is_terminal()).try_init() };
    Ok(())
}

#[cfg(target_os = "linux")]
fn by_journal(send: impl Fn(&[u8]) -> io::Result<()>) -> impl Fn(LogOutput, &[u8]) -> io::Result<()> {
    move |to, line| if to == LogOutput::Journal { send(line) } else { writer::to_stderr(line) }
}

fn report_dropped(lines: usize) {
    tracing::warn!(
        lines,
        "lines of the log were dropped here, because no program read standard error or the journal, or because they \
         could not be written (a full disk)"
    );
}

fn keep(lines: Lines) -> &'static Lines {
    LINES.get_or_init(|| lines)
}

/// Writes one line to standard error outside the log: why the program ends.
pub(super) fn say(text: &str) {
    if let Some(lines) = LINES.get() {
        lines.put(LogOutput::Stderr, format!("{text}\n").as_bytes());
    }
}

/// Waits until the log's lines are written, if anything reads them.
pub(super) fn finish() {
    if let Some(lines) = LINES.get() {
        lines.finish();
    }
}

/// Takes the log's output, one whole line at each write.
struct Line(&'static Lines);

impl io::Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.put(LogOutput::Stderr, line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Logs a decision: one line for each step, verdict and failure, with its ids and kinds.
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

/// Whether standard error is the stream that systemd names in the variable: programs whose output goes elsewhere
/// inherit the variable too.
#[cfg(target_os = "linux")]
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stat) = nix::sys::stat::fstat(std::io::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}
