//! What the sidecar says while it runs: ids and kinds, never the text of a prompt or a document. On a terminal for
//! people, as JSON lines on demand, and with fields of its own where systemd's journal reads standard error.

use crate::core::decision::Decision;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Begins to log.
pub(super) fn start(json: bool) {
    let filter = EnvFilter::try_from_env("TASUKI_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // A subscriber that is there already (in a test) is as good.
    let Some(filter) = to_journal(json, filter) else { return };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(false);
    let _ =
        if json { builder.json().try_init() } else { builder.with_ansi(std::io::stderr().is_terminal()).try_init() };
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

/// Logs to the journal if it reads our standard error; else the filter comes back.
#[cfg(target_os = "linux")]
fn to_journal(json: bool, filter: EnvFilter) -> Option<EnvFilter> {
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    if json || !stderr_is_journal() {
        return Some(filter);
    }
    // A journal that has no socket takes what standard error gives it.
    let Ok(journal) = tracing_journald::layer() else { return Some(filter) };
    let journal = journal.with_field_prefix(Some("TASUKI".to_owned())).with_syslog_identifier("tasuki".to_owned());
    let _ = tracing_subscriber::registry().with(filter).with(journal).try_init();
    None
}

/// Whether standard error is the very stream that systemd says it has given us: the variable is inherited by programs
/// whose output goes elsewhere.
#[cfg(target_os = "linux")]
fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let Ok(stat) = nix::sys::stat::fstat(std::io::stderr()) else { return false };
    stream == format!("{}:{}", stat.st_dev, stat.st_ino)
}

#[cfg(not(target_os = "linux"))]
fn to_journal(_json: bool, filter: EnvFilter) -> Option<EnvFilter> {
    Some(filter)
}
