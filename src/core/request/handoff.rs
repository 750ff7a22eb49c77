//! The request kinds of a handoff.

use super::publish::{PublishChoice, publish_target};
use super::request_body::{DocumentRequest, Needs, PersonaOf, RequestBody, not_empty, optional};
use crate::contract::ack::Urgency;
use crate::contract::document::DocumentCheck;
use crate::contract::handoff::{Author, Successor};
use crate::core::id::AgentId;
use crate::core::persona::check_model;
use crate::core::reply::Refused;
use schemars::JsonSchema;
use serde::Deserialize;

/// Longest reason, focus or task text, in bytes.
const MAX_TEXT: usize = 16 * 1024;
/// The largest number of tasks that a handoff may name.
const MAX_TASKS: usize = 256;

/// `handoff`: hand an agent off.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "HandoffAsked")]
pub struct HandoffRequest {
    /// The outgoing agent.
    pub agent_id: String,
    /// Why.
    pub reason: String,
    /// What the document should dwell on.
    pub focus: Option<String>,
    /// Who writes the document.
    #[serde(default)]
    pub author: Author,
    /// For author `provided`: `{"text":…}` or `{"path":…}`.
    pub document: Option<DocumentRequest>,
    /// Who takes over.
    #[serde(default)]
    pub successor: Successor,
    /// The profile of a new successor; absent: its predecessor's.
    pub profile: Option<String>,
    /// The model of a new successor, as its CLI's own option takes it. Absent: its predecessor's, if it has the same
    /// profile; otherwise what the persona's `fallbacks` say; otherwise its CLI chooses.
    pub model: Option<String>,
    /// What the successor has to do, each in one line.
    #[serde(default)]
    pub tasks: Vec<String>,
    /// Absent: no acknowledgement wanted.
    pub urgency: Option<Urgency>,
    /// Where to publish the document; absent: where the persona's file says, or else config.toml.
    pub publish: Option<PublishChoice>,
    /// Do not wait for the end of a running turn.
    #[serde(default)]
    pub now: bool,
    /// What is done about faults of the document; absent: what the persona's file says, or else config.toml.
    pub check: Option<DocumentCheck>,
    /// The handoff waits until a person accepts the document. The person is told at once.
    #[serde(default)]
    pub review: bool,
}

impl HandoffRequest {
    /// A handoff with every option at its default.
    #[must_use]
    pub fn new(agent_id: &AgentId, reason: &str) -> Self {
        HandoffRequest {
            agent_id: agent_id.to_string(),
            reason: reason.to_owned(),
            focus: None,
            author: Author::default(),
            document: None,
            successor: Successor::default(),
            profile: None,
            model: None,
            tasks: Vec::new(),
            urgency: None,
            publish: None,
            now: false,
            check: None,
            review: false,
        }
    }
}

impl RequestBody for HandoffRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("agent_id", &self.agent_id, 128)?;
        not_empty("reason", &self.reason, MAX_TEXT)?;
        optional("focus", self.focus.as_deref(), MAX_TEXT)?;
        if self.tasks.len() > MAX_TASKS {
            return Err(Refused::bad("tasks", "may hold at most 256 entries"));
        }
        self.tasks.iter().try_for_each(|task| not_empty("tasks", task, MAX_TEXT))?;
        check_successor(&self.successor)?;
        check_choice(self.profile.as_deref(), self.model.as_deref(), &self.successor)?;
        if let Some(PublishChoice::To(asked)) = &self.publish {
            publish_target("publish", asked)?;
        }
        // A document goes with author `provided`, and holds exactly one of its two fields.
        match (self.author, &self.document) {
            (Author::Provided, None) => Err(Refused::bad("document", "is required with author \"provided\"")),
            (Author::Provided, Some(document)) => document.check(),
            (_, Some(_)) => Err(Refused::bad("document", "is allowed only with author \"provided\"")),
            (_, None) => Ok(()),
        }
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            agents: existing(&self.successor).into_iter().chain([self.agent_id.as_str()]).collect(),
            record_of: Some(&self.agent_id),
            persona: Some(PersonaOf::Agent(&self.agent_id)),
            document: self.document.as_ref(),
            messages_of: (self.author == Author::AgentReply).then_some(&*self.agent_id),
            ..Needs::default()
        }
    }
}

fn check_successor(successor: &Successor) -> Result<(), Refused> {
    existing(successor).map_or(Ok(()), |agent_id| not_empty("successor.agent_id", agent_id, 128))
}

/// Checks the profile and the model of a new successor.
fn check_choice(profile: Option<&str>, model: Option<&str>, successor: &Successor) -> Result<(), Refused> {
    optional("profile", profile, 64)?;
    model.map_or(Ok(()), |model| check_model("model", model))?;
    let field = if profile.is_some() { "profile" } else { "model" };
    match successor {
        Successor::SamePane | Successor::Existing { .. } if profile.or(model).is_some() => {
            Err(Refused::bad(field, "is only for a new successor"))
        }
        Successor::New | Successor::SamePane | Successor::Existing { .. } => Ok(()),
    }
}

/// The agent that runs already and is to take over.
fn existing(successor: &Successor) -> Option<&str> {
    match successor {
        Successor::New | Successor::SamePane => None,
        Successor::Existing { agent_id } => Some(agent_id),
    }
}

/// What the operator knows of a text whose delivery is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assume {
    /// It arrived: continue.
    Delivered,
    /// It did not arrive: type it again.
    NotDelivered,
}

/// `handoff_retry`: continue at the step that failed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RetryAsked")]
pub struct RetryRequest {
    /// Which.
    pub handoff_id: String,
    /// What became of a text whose delivery is in doubt.
    pub assume: Option<Assume>,
    /// Another successor, with the same record.
    pub successor: Option<Successor>,
    /// A new successor with this profile.
    pub profile: Option<String>,
    /// A new successor with this model.
    pub model: Option<String>,
}

impl RetryRequest {
    /// The other successor that is asked for; a profile or a model alone asks for a new one.
    #[must_use]
    pub fn other_successor(&self) -> Option<Successor> {
        let is_new = self.profile.is_some() || self.model.is_some();
        self.successor.clone().or_else(|| is_new.then_some(Successor::New))
    }
}

impl RequestBody for RetryRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)?;
        let successor = self.successor.clone().unwrap_or_default();
        check_successor(&successor)?;
        check_choice(self.profile.as_deref(), self.model.as_deref(), &successor)
    }

    fn needs(&self) -> Needs<'_> {
        let agents = self.successor.as_ref().and_then(existing).into_iter().collect();
        Needs { agents, ..Needs::handoff(&self.handoff_id) }
    }
}

/// `handoff_rework`: ask the agent once more to repair its document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReworkRequest {
    /// Which.
    pub handoff_id: String,
    /// The operator's words to the agent.
    pub note: String,
}

impl RequestBody for ReworkRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)?;
        not_empty("note", &self.note, MAX_TEXT)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::handoff(&self.handoff_id)
    }
}

/// A request that names a handoff and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoffNamed {
    /// Which.
    pub handoff_id: String,
}

impl RequestBody for HandoffNamed {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)
    }

    fn needs(&self) -> Needs<'_> {
        // If the handoff is over then, the operator is told of the items that its agent has left.
        Needs { role_in: Some(&self.handoff_id), ..Needs::handoff(&self.handoff_id) }
    }
}
