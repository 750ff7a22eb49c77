//! The request kinds of agents.

use super::request_body::{Needs, PersonaOf, RequestBody, not_empty, optional};
use crate::core::id::Slug;
use crate::core::persona::check_model;
use crate::core::reply::Refused;
use crate::core::text;
use schemars::JsonSchema;
use serde::Deserialize;

/// Longest text that `agent_send` takes, in bytes.
const MAX_SEND: usize = 512 * 1024;
/// How the names of tasuki's own tmux sessions begin, in which its connections to tmux are. An agent's session with
/// such a name would be taken for one of them.
pub(crate) const PRIVATE_SESSIONS: &str = "_tasuki-";

/// `agent_create`: start an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CreateAsked")]
pub struct CreateRequest {
    /// Its persona.
    #[schemars(with = "String")]
    pub persona_slug: Slug,
    /// Its profile; without it the persona's own.
    pub profile: Option<String>,
    /// Its model, as its CLI's own option takes it; without it the CLI chooses.
    pub model: Option<String>,
    /// Where it works.
    pub cwd: Option<String>,
    /// Its predecessor.
    pub previous_agent_id: Option<String>,
    /// The tmux session for its window; without it a detached session `tasuki-<slug>`.
    pub session: Option<String>,
}

impl RequestBody for CreateRequest {
    fn check(&self) -> Result<(), Refused> {
        optional("profile", self.profile.as_deref(), 64)?;
        self.model.as_deref().map_or(Ok(()), |model| check_model("model", model))?;
        optional("cwd", self.cwd.as_deref(), 4096)?;
        if self.cwd.as_ref().is_some_and(|cwd| !cwd.starts_with('/')) {
            return Err(Refused::bad(
                "cwd",
                "must be an absolute path: a relative one would start in the sidecar's own folder",
            ));
        }
        optional("previous_agent_id", self.previous_agent_id.as_deref(), 128)?;
        session_name(self.session.as_deref())
    }

    fn needs(&self) -> Needs<'_> {
        Needs {
            agents: self.previous_agent_id.as_deref().into_iter().collect(),
            persona: Some(PersonaOf::Named(&self.persona_slug)),
            cwd: self.cwd.as_deref(),
            ..Needs::default()
        }
    }
}

/// tmux replaces `.` and `:` in session names, so a name with them could not be found again.
fn session_name(name: Option<&str>) -> Result<(), Refused> {
    match name {
        Some(name) if !is_session_name(name) => Err(Refused::bad(
            "session",
            "must be 1 to 128 letters, digits, spaces or - _ / + @, and must not begin with a space, - or _tasuki-",
        )),
        _ => Ok(()),
    }
}

/// Whether an agent's session may have this name: tmux keeps the name as it is, and it is not reserved for tasuki's own
/// sessions.
pub(crate) fn is_session_name(name: &str) -> bool {
    let ok = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ' | '/' | '+' | '@');
    !name.is_empty()
        && name.len() <= 128
        && name.chars().all(ok)
        && !name.starts_with(['-', '=', ' '])
        && !name.starts_with(PRIVATE_SESSIONS)
}

/// `agent_register`: adopt a pane that runs already.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RegisterAsked")]
pub struct RegisterRequest {
    /// `%3`.
    pub pane: String,
    /// The value of `$TMUX` there.
    pub tmux: Option<String>,
    /// Its persona; without it the agent is anonymous.
    #[schemars(with = "Option<String>")]
    pub persona_slug: Option<Slug>,
    /// Its profile; without it the persona's own, or what its command line shows.
    pub profile: Option<String>,
}

impl RequestBody for RegisterRequest {
    fn check(&self) -> Result<(), Refused> {
        pane_number(&self.pane).ok_or_else(|| Refused::bad("pane", "must be a pane id such as %3"))?;
        optional("profile", self.profile.as_deref(), 64)
    }

    fn needs(&self) -> Needs<'_> {
        Needs { persona: self.persona_slug.as_ref().map(PersonaOf::Named), ..Needs::default() }
    }
}

/// The number of a pane id such as `%3`.
#[must_use]
pub fn pane_number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('%')?;
    let plain = !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// `agent_shutdown`: end an agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShutdownAsked")]
pub struct ShutdownRequest {
    /// Which.
    pub agent_id: String,
    /// Kill the pane, if tasuki started it.
    #[serde(default)]
    pub force: bool,
}

impl RequestBody for ShutdownRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("agent_id", &self.agent_id, 128)
    }

    fn needs(&self) -> Needs<'_> {
        Needs::agent(&self.agent_id)
    }
}

/// `agent_forget`: count an agent whose process does not run as ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForgetAsked")]
pub struct ForgetRequest {
    /// Which.
    pub agent_id: String,
}

impl RequestBody for ForgetRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("agent_id", &self.agent_id, 128)
    }

    fn needs(&self) -> Needs<'_> {
        Needs { runs: Some(&self.agent_id), ..Needs::agent(&self.agent_id) }
    }
}

/// `agent_send`: type a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SendAsked")]
pub struct SendRequest {
    /// To whom.
    pub agent_id: String,
    /// What.
    pub text: String,
}

impl RequestBody for SendRequest {
    fn check(&self) -> Result<(), Refused> {
        not_empty("agent_id", &self.agent_id, 128)?;
        not_empty("text", &self.text, MAX_SEND)?;
        if text::begins_like_a_command(&self.text) {
            return Err(Refused::bad(
                "text",
                "must not begin with / ! # or @: the agent's CLI would take it as a command",
            ));
        }
        Ok(())
    }

    fn needs(&self) -> Needs<'_> {
        Needs::agent(&self.agent_id)
    }
}
