//! What every command works with: the home, where it prints, and how it asks the sidecar.

use super::client;
use super::error::CliError;
use super::output::{Out, Tone};
use super::remote::request::{self, RemoteRequest};
use super::view::ViewFile;
use crate::config::Home;
use crate::core::host::HostName;
use crate::exit;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long an answer may take that needs only a decision.
pub const ANSWER_SOON: Duration = Duration::from_secs(60);

/// How long an answer may take that waits for an agent: to start, to take a text, to end.
pub const ANSWER_LATE: Duration = Duration::from_secs(30 * 60);

/// What every command works with: the home, the output and `--timeout`.
#[derive(Debug)]
pub struct CliSession {
    pub home: Home,
    pub out: Out,
    /// `--timeout`.
    pub timeout: Option<Duration>,
}

impl CliSession {
    /// Drops a request and waits for its answer, for `patience` unless `--timeout` was given.
    ///
    /// # Errors
    /// As [`client::ask`].
    pub fn ask<T: DeserializeOwned + Default>(
        &self,
        kind: &str,
        fields: Map<String, Value>,
        patience: Duration,
    ) -> Result<ViewFile<T>, CliError> {
        let patience = self.timeout.unwrap_or(patience);
        client::ask(&self.home, &client::SentRequest { kind, fields, patience })
    }

    /// The same for a request to another host, if one is given.
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
        let Some(host) = host else { return self.ask(kind, fields, patience) };
        let patience = self.timeout.unwrap_or(patience);
        request::ask(&self.home, &RemoteRequest { host, kind, fields, patience, ttl: self.timeout, parts: Vec::new() })
    }

    /// Prints an answer: the whole of it under `--json`, else one line.
    ///
    /// # Errors
    /// When the output is closed.
    pub fn report(&self, answer: &Value, line: &str) -> Result<(), CliError> {
        if self.out.is_json() { self.out.document(answer) } else { self.out.line(line) }
    }

    /// Refuses when no sidecar ever wrote a view here (69), or when this user may not read what it wrote (77). Says so
    /// when what will be shown may be old.
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
        self.out.note(&self.out.paint(Tone::Faint, &format!("{} You see the last known state.", none.message)));
        Ok(())
    }
}
