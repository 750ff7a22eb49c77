//! What tasuki knows of a persona from its folder.

use super::reply::Refused;
use super::request::PublishTarget;
use crate::contract::document::DocumentCheck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub use super::rows::choice::ProfileChoice;

/// Longest name of a model, in bytes.
const MAX_MODEL: usize = 128;
/// The largest number of fallbacks that a persona may name.
pub const MAX_FALLBACKS: usize = 16;

/// Checks the name of a model, which becomes an argument of a launch line.
///
/// # Errors
/// 400 with this field, if the name is empty or too long, has a blank or a control character, or begins like an option.
pub fn check_model(field: &str, model: &str) -> Result<(), Refused> {
    let is_name = |c: char| !c.is_whitespace() && !c.is_control();
    let fits = !model.is_empty() && model.len() <= MAX_MODEL && model.chars().all(is_name) && !model.starts_with('-');
    let rule = "must be 1 to 128 bytes without blanks and control characters, and must not begin with -";
    if fits { Ok(()) } else { Err(Refused::bad(field, rule)) }
}

/// What the disk says of a persona, read by the intake when a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PersonaFacts {
    pub exists: bool,
    pub has_skill: bool,
    /// Why its `persona.toml` or its `skill.md` can't be used, if so.
    pub broken: Option<String>,
    pub profile: Option<String>,
    pub cwd: Option<String>,
    pub session: Option<String>,
    /// What is done about faults of its documents, if `persona.toml` says so.
    #[serde(default)]
    pub check: Option<DocumentCheck>,
    /// The CLIs and models on which its agents' work continues after a usage limit of their CLI, best first.
    #[serde(default)]
    pub fallbacks: Vec<ProfileChoice>,
    /// Where its documents are published, if `persona.toml` says so.
    #[serde(default)]
    pub publish: Option<PublishDefault>,
    /// The names in its `handoffs/` folder.
    pub handoff_files: BTreeSet<String>,
    pub handoffs_dir: String,
}

/// Where the documents of a persona are published, unless a request for a handoff says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "DefaultForm", into = "DefaultForm")]
#[schemars(with = "DefaultForm")]
pub enum PublishDefault {
    /// Nowhere, whatever config.toml says.
    No,
    /// To this gist or issue.
    To(PublishTarget),
}

/// `false`, `"gist"`, or an issue such as `"owner/repo#42"`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "it must be \"owner/repo#42\", \"gist\" or false")]
enum DefaultForm {
    No(bool),
    To(String),
}

impl TryFrom<DefaultForm> for PublishDefault {
    type Error = &'static str;

    fn try_from(form: DefaultForm) -> Result<Self, Self::Error> {
        let target = match form {
            DefaultForm::No(false) => return Ok(PublishDefault::No),
            DefaultForm::No(true) => None,
            DefaultForm::To(text) => PublishTarget::read_default(&text),
        };
        target.map(PublishDefault::To).ok_or("it must be \"owner/repo#42\", \"gist\" or false")
    }
}

impl From<PublishDefault> for DefaultForm {
    fn from(default: PublishDefault) -> Self {
        match default {
            PublishDefault::No => DefaultForm::No(false),
            PublishDefault::To(PublishTarget::Gist { .. }) => DefaultForm::To("gist".to_owned()),
            PublishDefault::To(PublishTarget::Issue(issue)) => DefaultForm::To(issue.to_string()),
        }
    }
}
