//! The error of a command: error code, message, hint and exit code.

use crate::contract::ResultFile;
use crate::contract::answer::RefusedView as Refusal;
use crate::core::text::{sanitise, sentence};
use crate::files::Unfit;
use crate::{agents, config, exit, personas, spool};
use serde_json::{Value, json};

/// The exit code that a shell reports for a program that wrote to a closed pipe (128 + SIGPIPE).
pub const CLOSED_PIPE: u8 = 141;

/// Why a command failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    pub exit: u8,
    /// The error code, which never changes, such as `no_agent`.
    pub code: String,
    /// What happened, to which file or agent, and what was left untouched.
    pub message: String,
    pub hint: Option<String>,
    /// The field of the request that is wrong, as the sidecar named it. It is not printed.
    pub field: Option<String>,
}

impl CliError {
    /// An error with its exit code.
    pub fn new(exit: u8, code: impl Into<String>, message: impl Into<String>) -> Self {
        CliError { exit, code: code.into(), message: message.into(), hint: None, field: None }
    }

    /// Exit code 1: the request was refused or failed.
    pub fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(exit::REFUSED, code, message)
    }

    /// The command line is wrong: exit code 2.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(exit::USAGE, "usage", message)
    }

    /// The configuration or the folder can't be used: exit code 78.
    pub fn config(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(exit::CONFIG, code, message)
    }

    /// Says in addition that what was to be sent was not sent.
    #[must_use]
    pub(super) fn nothing_sent(self) -> Self {
        CliError { message: format!("{} Nothing was sent.", self.message), ..self }
    }

    /// A file that could not be read or written.
    #[must_use]
    pub fn file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::PermissionDenied { exit::NOT_ALLOWED } else { exit::REFUSED };
        Self::new(code, "file", format!("{what} {}: {error}", path.display()))
    }

    /// The reader of our output has closed it. Nothing is printed about that.
    #[must_use]
    pub fn closed_pipe() -> Self {
        Self::new(CLOSED_PIPE, "closed_pipe", "The output was closed.")
    }

    /// Standard output can't be written.
    pub(super) fn output(error: &std::io::Error) -> Self {
        Self::refused("output", format!("The output can't be written: {error}"))
    }

    /// Adds a hint that says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(sentence(&hint.into()));
        self
    }

    /// The error of a view, as the sidecar wrote it; an empty string means that the field is missing.
    #[must_use]
    pub fn told(code: &str, message: &str, hint: &str) -> Self {
        let text = |text: &str| Some(sanitise(text)).filter(|text| !text.is_empty());
        CliError {
            exit: exit::REFUSED,
            code: text(code).unwrap_or_else(|| "failed".to_owned()),
            message: text(message).unwrap_or_else(|| "The sidecar refused and gave no reason.".to_owned()),
            hint: text(hint).map(|hint| sentence(&hint)),
            field: None,
        }
    }

    /// The error of a result file.
    #[must_use]
    pub fn from_answer(answer: &ResultFile) -> Self {
        let Refusal { code, message, hint, errors, field, .. } = answer.error.clone().unwrap_or_default();
        let told = Self::told(&code, &message, &hint.unwrap_or_default());
        // A message that ends with `…` had no room for all errors, so the hint lists them.
        let listed = errors.unwrap_or_default().into_iter().filter(|_| message.ends_with('…'));
        let listed = listed.map(|fault| format!("{}: {}", sanitise(&fault.pointer), sanitise(&fault.message)));
        let hint: Vec<String> = told.hint.into_iter().chain(listed).collect();
        let hint = Some(hint.join("\n  ")).filter(|hint| !hint.is_empty());
        CliError { exit: exit_for(answer.status), hint, field, ..told }
    }

    /// The error as JSON, for standard error under `--json`.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({"error": {"code": self.code, "message": self.message, "hint": self.hint}})
    }

    /// The error as text: message, code and hint.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("tasuki: {} ({})", self.message, self.code);
        if let Some(hint) = &self.hint {
            text.push_str("\n  ");
            text.push_str(hint);
        }
        text
    }

    /// Whether the error is printed at all.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.exit == CLOSED_PIPE
    }
}

impl From<config::ConfigError> for CliError {
    fn from(error: config::ConfigError) -> Self {
        let (exit, code) = match &error {
            config::ConfigError::NoHome => (exit::CONFIG, "no_home"),
            error if error.is_about_rights() => (exit::NOT_ALLOWED, "not_allowed"),
            _ => (exit::CONFIG, "config"),
        };
        CliError::new(exit, code, format!("{}.", sanitise(&error.to_string())))
    }
}

impl From<agents::ProfileError> for CliError {
    fn from(error: agents::ProfileError) -> Self {
        let message = format!("{}.", sanitise(&error.to_string()));
        match error {
            agents::ProfileError::Read { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                CliError::new(exit::NOT_ALLOWED, "not_allowed", message)
                    .hint("Run the command as the user who owns the home, or name another home: --home DIR")
            }
            _ => CliError::config("bad_profile", message),
        }
    }
}

impl From<agents::InstallError> for CliError {
    fn from(error: agents::InstallError) -> Self {
        use agents::InstallError as Why;
        let denied = |source: &std::io::Error| source.kind() == std::io::ErrorKind::PermissionDenied;
        let (exit, code) = match &error {
            Why::NoInstall { .. } => (exit::REFUSED, "no_install"),
            Why::Foreign { .. } => (exit::REFUSED, "not_ours"),
            Why::Changed { .. } | Why::Unfit { why: Unfit::Changing, .. } => (exit::TRY_AGAIN, "changed"),
            Why::Unfit { why: Unfit::Foreign, .. } => (exit::NOT_ALLOWED, "not_allowed"),
            Why::Unfit { why: Unfit::Io(source), .. } | Why::Io { source, .. } | Why::Unrecorded { source, .. }
                if denied(source) =>
            {
                (exit::NOT_ALLOWED, "not_allowed")
            }
            Why::Io { .. } | Why::Unrecorded { .. } => (exit::REFUSED, "file"),
            Why::Record { .. } => (exit::CONFIG, "bad_record"),
            Why::NoPlace { .. } => (exit::CONFIG, "no_home"),
            Why::Unfit { .. } | Why::DanglingLink { .. } | Why::NotText { .. } | Why::Wrong { .. } => {
                (exit::CONFIG, "bad_configuration")
            }
        };
        CliError::new(exit, code, format!("{}.", capital(&sanitise(&error.to_string()))))
    }
}

/// The text with a capital at its beginning, unless it begins with a path.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

impl From<personas::Error> for CliError {
    fn from(error: personas::Error) -> Self {
        let code = match &error {
            personas::Error::Missing { .. } => "no_persona",
            personas::Error::Unfit { .. } | personas::Error::Wrong { .. } => "bad_persona",
            personas::Error::Taken { .. } => "persona_exists",
            personas::Error::Io { .. } => "file",
        };
        let denied = matches!(&error, personas::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied);
        let exit = if denied { exit::NOT_ALLOWED } else { exit::REFUSED };
        CliError::new(exit, code, format!("{}.", sanitise(&error.to_string())))
    }
}

impl From<spool::Error> for CliError {
    fn from(error: spool::Error) -> Self {
        let (exit, code) = match error.kind() {
            spool::ErrorKind::NotAllowed => (exit::NOT_ALLOWED, "not_allowed"),
            spool::ErrorKind::Layout => (exit::CONFIG, "layout"),
            spool::ErrorKind::NoSpool => (exit::UNAVAILABLE, "no_sidecar"),
            spool::ErrorKind::Taken => (exit::REFUSED, "taken"),
            spool::ErrorKind::Full => (exit::TRY_AGAIN, "disk_full"),
            spool::ErrorKind::Io => (exit::TRY_AGAIN, "file"),
        };
        CliError::new(exit, code, format!("{}.", sanitise(&error.to_string())))
    }
}

/// The exit code for the status of an answer. The statuses are those of HTTP.
fn exit_for(status: u16) -> u8 {
    match status {
        401 | 403 => exit::NOT_ALLOWED,
        429 | 503 | 504 => exit::TRY_AGAIN,
        _ => exit::REFUSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_an_answer_becomes_an_exit_code() {
        for (status, exit) in
            [(400, 1), (404, 1), (409, 1), (422, 1), (500, 1), (403, 77), (503, 75), (504, 75), (429, 75)]
        {
            let answer = ResultFile { status, error: Some(Refusal::default()), ..ResultFile::default() };
            assert_eq!(CliError::from_answer(&answer).exit, exit, "{status}");
        }
    }

    #[test]
    fn text_from_outside_cannot_control_the_terminal() {
        assert_eq!(CliError::told("x", "a\u{1b}[2Jb", "").text(), "tasuki: a[2Jb (x)");
    }

    #[test]
    fn programs_get_code_message_and_hint() {
        let error = CliError::refused("no_agent", "Agent not found").hint("look");
        assert_eq!(
            error.json().to_string(),
            r#"{"error":{"code":"no_agent","hint":"Look.","message":"Agent not found"}}"#
        );
    }
}
