//! What every command works with: the home, where it prints, and how it asks the sidecar.

use super::client;
use super::error::CliError;
use super::interrupts::Interrupts;
use super::output::{Out, Tone, eprint_quietly};
use super::remote::request::{self, RemoteRequest};
use super::unread::Unread;
use super::view::ViewFile;
use crate::config::Home;
use crate::core::host::HostName;
use crate::exit;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long to wait for an answer that needs only a decision.
pub const ANSWER_SOON: Duration = Duration::from_secs(60);

/// How long to wait for an answer that depends on an agent: that it starts, takes a text or ends.
pub(super) const ANSWER_LATE: Duration = Duration::from_secs(30 * 60);

/// What every command works with: the home, the output and `--timeout`.
#[derive(Debug)]
pub struct CliSession {
    pub home: Home,
    pub out: Out,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

impl CliSession {
    /// Submits a request and waits for its answer: for the time of `--timeout`, else for `patience`.
    ///
    /// # Errors
    /// As [`client::ask`].
    pub fn ask<T: DeserializeOwned + Default>(
        &self,
        kind: &str,
        fields: Map<String, Value>,
        patience: Duration,
    ) -> Result<ViewFile<T>, CliError> {
        self.ask_on(None, kind, fields, patience)
    }

    /// As [`CliSession::ask`], but asks another host if one is given.
    ///
    /// # Errors
    /// As [`CliSession::ask`] and [`request::ask`].
    pub fn ask_on<T: DeserializeOwned + Default>(
        &self,
        host: Option<&HostName>,
        kind: &str,
        fields: Map<String, Value>,
        patience: Duration,
    ) -> Result<ViewFile<T>, CliError> {
        self.ask_meanwhile(host, kind, fields, patience, &mut || Ok(()))
    }

    /// As [`CliSession::ask_on`], but calls `meanwhile` repeatedly while it waits.
    ///
    /// # Errors
    /// As [`CliSession::ask_on`]; the error of `meanwhile`, which ends the wait.
    pub(super) fn ask_meanwhile<T: DeserializeOwned + Default>(
        &self,
        host: Option<&HostName>,
        kind: &str,
        fields: Map<String, Value>,
        patience: Duration,
        meanwhile: &mut client::Meanwhile<'_>,
    ) -> Result<ViewFile<T>, CliError> {
        let patience = self.timeout.unwrap_or(patience);
        let Some(host) = host else {
            return client::ask(&self.home, &client::NewRequest { kind, fields, patience }, meanwhile);
        };
        let asked = RemoteRequest { host, kind, fields, patience, ttl: self.timeout, parts: Vec::new() };
        request::ask_meanwhile(&self.home, &asked, meanwhile)
    }

    /// Asks this host or another one for something that depends on an agent: that it starts, takes a text or ends. That
    /// can take long, so a person may break off the wait.
    ///
    /// # Errors
    /// As [`CliSession::ask_on`]; `interrupted`, exit code 130, after Ctrl-C and the like. All of them say whether the
    /// request was withdrawn.
    pub fn ask_about_agent<T: DeserializeOwned + Default>(
        &self,
        host: Option<&HostName>,
        kind: &str,
        fields: Map<String, Value>,
    ) -> Result<ViewFile<T>, CliError> {
        let interrupts = Interrupts::while_asking()?;
        self.ask_meanwhile(host, kind, fields, ANSWER_LATE, &mut || interrupts.check())
    }

    /// Prints an answer: the whole of it under `--json`, else one line.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn report(&self, answer: &Value, line: &str) -> Result<(), CliError> {
        if self.out.is_json() { self.out.document(answer) } else { self.out.line(line) }
    }

    /// Says on standard error, also under `--json`, that a list lacks files that can't be read.
    pub fn warn(&self, unread: &Unread) {
        if let Some(warning) = unread.warning() {
            eprint_quietly(&format!("tasuki: {warning}"));
        }
    }

    /// Refuses when no sidecar ever wrote a view here (exit code 69), or when this user may not read the views (77). If
    /// no sidecar runs, a note on standard error says that the views may be old, also under `--json`.
    ///
    /// # Errors
    /// `no_sidecar`, `not_allowed`.
    pub fn require_views(&self) -> Result<(), CliError> {
        let seen = client::Pulse::new(&self.home).check();
        if matches!(seen, client::SidecarPresence::Alive { .. }) {
            return Ok(());
        }
        let none = client::no_sidecar(&self.home, &seen);
        if none.exit != exit::UNAVAILABLE || !self.home.view().is_dir() {
            return Err(none);
        }
        let note = format!("{} You see the last known state.", none.message);
        match self.out.is_json() {
            true => eprint_quietly(&format!("tasuki: {note}")),
            false => self.out.note(&self.out.paint(Tone::Faint, &note)),
        }
        Ok(())
    }
}
