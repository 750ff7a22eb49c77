//! What the sidecar says while it runs: ids and kinds, never the text of a prompt or a document. On a terminal for
//! people, as JSON lines on demand, and with fields of its own where systemd's journal reads standard error.

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
