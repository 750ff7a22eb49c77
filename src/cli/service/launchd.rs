//! What launchd says of a service: whether it is loaded, whether it runs, and whether it is disabled.

use super::call::{Call, ToolOutput, run_within};
use super::manager::{ManagedService, domain};
use crate::cli::error::CliError;
use std::time::Duration;

/// The exit code of `launchctl print` for a service that launchd does not know.
const NOT_FOUND: i32 = 113;

/// What launchd says of a service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LaunchdState {
    pub(crate) is_loaded: bool,
    pub(crate) pid: Option<u64>,
    /// In launchd's own words.
    pub(crate) state: Option<String>,
    pub(crate) last_exit: Option<String>,
    /// Somebody has disabled the service, so launchd does not load it.
    pub(crate) is_disabled: bool,
}

impl ManagedService {
    /// What launchd says of the service.
    ///
    /// # Errors
    /// `launchctl` does not run, gives no answer in time, or fails with another exit code than [`NOT_FOUND`].
    pub(crate) fn launchd_within(self, patience: Duration) -> Result<LaunchdState, CliError> {
        let printed = run_within(&Call::new(&["launchctl", "print", &self.target()]), patience)?;
        if !printed.ok && printed.code != Some(NOT_FOUND) {
            let why = printed.err.lines().next().unwrap_or("no reason given").to_owned();
            return Err(CliError::refused("service_manager", format!("launchd does not report on the service: {why}")));
        }
        let disabled = run_within(&Call::new(&["launchctl", "print-disabled", &domain()]), patience)?;
        Ok(LaunchdState { is_disabled: is_disabled(&disabled.out, self.service.label), ..read(&printed) })
    }
}

/// Reads what `launchctl print` has printed of a service.
pub(super) fn read(printed: &ToolOutput) -> LaunchdState {
    let word = |key: &str| {
        let mut lines = printed.out.lines().map(str::trim);
        lines.find_map(|line| {
            line.strip_prefix(key)?.trim_start().strip_prefix('=').map(|value| value.trim().to_owned())
        })
    };
    LaunchdState {
        is_loaded: printed.ok,
        pid: word("pid").and_then(|pid| pid.parse().ok()),
        state: word("state"),
        last_exit: word("last exit code"),
        is_disabled: false,
    }
}

/// Whether `launchctl print-disabled` lists a service as disabled. Older systems print `true` instead of the word.
fn is_disabled(printed: &str, label: &str) -> bool {
    let value = |line: &str| -> Option<bool> {
        let rest = line.trim().strip_prefix('"')?.strip_prefix(label)?.strip_prefix('"')?;
        Some(matches!(rest.trim_start().strip_prefix("=>")?.trim(), "disabled" | "true"))
    };
    printed.lines().find_map(value).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_launchd_are_read() {
        let out = "gui/501/dev.tasuki.sidecar = {\n\tactive count = 1\n\tpath = /Users/ada/a = b\n\tstate = running\n\n\t\
                   pid = 4711\n\tlast exit code = (never exited)\n}\n";
        let said = |ok, code, out: &str| ToolOutput { ok, code, out: out.to_owned(), err: String::new() };
        let state = read(&said(true, Some(0), out));
        assert_eq!((state.is_loaded, state.pid, state.state.as_deref()), (true, Some(4711), Some("running")));
        assert_eq!(state.last_exit.as_deref(), Some("(never exited)"));
        assert_eq!(read(&said(false, Some(NOT_FOUND), "")), LaunchdState::default());
    }

    #[test]
    fn a_service_is_disabled_by_its_whole_label_in_the_words_of_old_and_new_systems() {
        let printed = |value: &str| format!("\tdisabled services = {{\n\t\t\"dev.tasuki.sidecar\" => {value}\n\t}}\n");
        for (value, expected) in [("disabled", true), ("enabled", false), ("true", true), ("false", false)] {
            assert_eq!(is_disabled(&printed(value), "dev.tasuki.sidecar"), expected, "{value}");
            assert!(!is_disabled(&printed(value), "dev.tasuki"), "{value}");
        }
        assert!(!is_disabled("", "dev.tasuki.sidecar"));
    }
}
