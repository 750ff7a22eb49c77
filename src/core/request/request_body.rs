//! What every request body provides: its checks, and what must be loaded before it is decided.

use crate::core::id::Slug;
use crate::core::reply::Refused;
use schemars::JsonSchema;
use serde::Deserialize;

/// The largest document that a request may bring, in bytes.
const MAX_DOCUMENT: usize = 1024 * 1024;

/// The fields of one kind of request.
pub trait RequestBody {
    /// Every check that needs no state.
    ///
    /// # Errors
    /// What is wrong, with the field.
    fn check(&self) -> Result<(), Refused>;

    /// What must be loaded or checked before the request is decided.
    fn needs(&self) -> Needs<'_> {
        Needs::default()
    }
}

/// What must be loaded or checked before a request is decided; ids are as the request has them.
#[derive(Debug, Default)]
pub struct Needs<'a> {
    /// Agents, which may be history.
    pub agents: Vec<&'a str>,
    /// A handoff, which may be history, with its agents.
    pub handoff: Option<&'a str>,
    /// The handoff that has a record of this agent, and the one that has a record of its predecessor.
    pub record_of: Option<&'a str>,
    /// Work items, which may be history.
    pub items: Vec<&'a str>,
    /// What the disk says of a persona.
    pub persona: Option<PersonaOf<'a>>,
    /// A document, which is read when it is asked for.
    pub document: Option<&'a DocumentRequest>,
    /// How many messages the transcript of an agent holds.
    pub messages_of: Option<&'a str>,
    /// Whether there is such a folder.
    pub cwd: Option<&'a str>,
    /// Whether an agent's process runs.
    pub runs: Option<&'a str>,
    /// Whether there is such an error.
    pub error: Option<&'a str>,
    /// Whether the rules for work items have changed.
    pub rules: bool,
    /// Whether the role of an agent's persona has changed.
    pub role_of: Option<&'a str>,
    /// Whether the role of a handoff's persona has changed.
    pub role_in: Option<&'a str>,
}

/// Whose persona must be loaded.
#[derive(Debug)]
pub enum PersonaOf<'a> {
    Agent(&'a str),
    Handoff(&'a str),
    Named(&'a Slug),
}

impl<'a> Needs<'a> {
    /// One agent.
    pub(super) fn agent(id: &'a str) -> Self {
        Needs { agents: vec![id], ..Needs::default() }
    }

    /// One handoff.
    pub(super) fn handoff(id: &'a str) -> Self {
        Needs { handoff: Some(id), ..Needs::default() }
    }
}

/// The document of an author `provided`: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DocumentAsked")]
pub struct DocumentRequest {
    /// The document itself.
    pub text: Option<String>,
    /// A file inside HOME, absolute or relative to it.
    pub path: Option<String>,
}

impl DocumentRequest {
    pub(super) fn check(&self) -> Result<(), Refused> {
        match (&self.text, &self.path) {
            (Some(text), None) => not_empty("document.text", text, MAX_DOCUMENT),
            (None, Some(path)) => not_empty("document.path", path, 4096),
            _ => Err(Refused::bad("document", "must hold either text or path")),
        }
    }
}

pub(super) fn not_empty(field: &str, text: &str, max: usize) -> Result<(), Refused> {
    if text.trim().is_empty() {
        return Err(Refused::bad(field, "must not be empty"));
    }
    if text.len() > max {
        return Err(Refused::bad(field, &format!("is longer than {max} bytes")));
    }
    Ok(())
}

pub(super) fn optional(field: &str, text: Option<&str>, max: usize) -> Result<(), Refused> {
    text.map_or(Ok(()), |text| not_empty(field, text, max))
}
