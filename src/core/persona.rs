//! What is known of a persona, as its folder was read.

use super::request::PublishTarget;
use crate::contract::document::DocumentCheck;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the disk says of a persona, read by the intake when a request names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PersonaFacts {
    pub exists: bool,
    pub has_skill: bool,
    /// Its `persona.toml` can't be read: why.
    pub broken: Option<String>,
    pub profile: Option<String>,
    pub cwd: Option<String>,
    pub session: Option<String>,
    /// What is done about faults of its documents, if it says so itself.
    #[serde(default)]
    pub check: Option<DocumentCheck>,
    /// Where its documents are published, if it says so itself.
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
    /// There.
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
