//! Where a document is to be published, as a request says it and as the store keeps it.

use super::request_body::{Needs, PersonaOf, RequestBody, not_empty};
use crate::contract::publishing::Destination;
use crate::core::reply::Refused;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Longest name of an owner or a repository, in bytes.
const MAX_NAME: usize = 100;
/// Longest name of a host, in bytes.
const MAX_HOST: usize = 253;

/// Where the document is published besides its folder: exactly one of `issue` and `gist`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "PublishAsked")]
pub struct PublishRequest {
    /// As a comment on this issue: `owner/repo#42`, or the issue's `https` address.
    pub issue: Option<String>,
    /// `true`: as a secret gist, which everybody who has its link can read.
    pub gist: Option<bool>,
    /// With `issue`: what to do if the document is too long for a comment, or if the server refuses the comment.
    pub fallback: Option<Fallback>,
}

/// What a request for a handoff says about publishing; without it, the persona's default holds, or that of config.toml.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishChoice {
    /// `false`: the document is not published, whatever the default is.
    No,
    /// To this issue or gist.
    To(PublishRequest),
}

impl<'de> Deserialize<'de> for PublishChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PublishChoiceVisitor)
    }
}

struct PublishChoiceVisitor;

impl<'de> Visitor<'de> for PublishChoiceVisitor {
    type Value = PublishChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with issue or gist, or false")
    }

    fn visit_bool<E: Error>(self, wanted: bool) -> Result<Self::Value, E> {
        if wanted {
            Err(E::custom("true names no target; give an object with issue or gist"))
        } else {
            Ok(PublishChoice::No)
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        PublishRequest::deserialize(MapAccessDeserializer::new(map)).map(PublishChoice::To)
    }
}

impl JsonSchema for PublishChoice {
    fn schema_name() -> Cow<'static, str> {
        "PublishChoice".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let target = generator.subschema_for::<PublishRequest>();
        json_schema!({
            "description": "Where to publish the document, or false: not at all.",
            "anyOf": [target, {"const": false}],
        })
    }
}

/// What to do if a comment can't be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// A secret gist.
    Gist,
}

/// What the operator knows of an upload whose outcome is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AssumePublished {
    /// The document is published.
    Published,
    /// The document is not published: publish it again.
    NotPublished,
}

/// How a document is published that holds what looks like a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PublishAs {
    /// With `[REDACTED:<kind>]` in place of each credential.
    Redacted,
    /// As it was recorded, credentials included; the journal says so.
    AsIs,
}

impl PublishAs {
    /// The wire name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            PublishAs::Redacted => "redacted",
            PublishAs::AsIs => "as_is",
        }
    }
}

/// `publish`: publish a recorded document now, or try again after a failure or before the next try is due.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishNow {
    /// Which handoff.
    pub handoff_id: String,
    /// Where; absent: where it was published or tried before, or else where the persona or config.toml says.
    pub to: Option<PublishRequest>,
    /// What became of an upload whose outcome is in doubt.
    pub assume: Option<AssumePublished>,
    /// For publishing that is `held`: how the document is published.
    #[serde(rename = "as")]
    pub publish_as: Option<PublishAs>,
}

impl RequestBody for PublishNow {
    fn check(&self) -> Result<(), Refused> {
        not_empty("handoff_id", &self.handoff_id, 128)?;
        let Some(to) = &self.to else { return Ok(()) };
        if self.assume.is_some() {
            return Err(Refused::bad("assume", "is allowed only without to"));
        }
        publish_target("to", to).map(|_| ())
    }

    fn needs(&self) -> Needs<'_> {
        Needs { persona: Some(PersonaOf::Handoff(&self.handoff_id)), ..Needs::handoff(&self.handoff_id) }
    }
}

/// An issue or a pull request of GitHub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The host, if it was named; otherwise `gh` uses its own default.
    pub host: Option<String>,
    pub owner: String,
    pub repo: String,
    pub number: u64,
}

impl Issue {
    /// Reads `owner/repo#42` or `https://host/owner/repo/issues/42`.
    #[must_use]
    pub fn read(text: &str) -> Option<Issue> {
        let (host, rest) = match text.strip_prefix("https://") {
            Some(address) => {
                let (host, rest) = address.split_once('/')?;
                (Some(host), rest)
            }
            None => (None, text),
        };
        let (names, number) = match host {
            Some(_) => rest.split_once("/issues/").or_else(|| rest.split_once("/pull/"))?,
            None => rest.split_once('#')?,
        };
        let (owner, repo) = names.split_once('/')?;
        let number = number.parse().ok().filter(|known: &u64| (1..=999_999_999).contains(known) && is_plain(number))?;
        let is_good = is_name(owner) && is_name(repo) && host.is_none_or(is_host);
        is_good.then(|| Issue {
            host: host.map(str::to_ascii_lowercase),
            owner: owner.to_owned(),
            repo: repo.to_owned(),
            number,
        })
    }

    /// The repository as `gh` takes it: `[host/]owner/repo`.
    #[must_use]
    pub fn repository(&self) -> String {
        let host = self.host.as_ref().map_or_else(String::new, |host| format!("{host}/"));
        format!("{host}{}/{}", self.owner, self.repo)
    }
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Some(host) => write!(f, "https://{host}/{}/{}/issues/{}", self.owner, self.repo, self.number),
            None => write!(f, "{}/{}#{}", self.owner, self.repo, self.number),
        }
    }
}

/// Whether a number has neither sign nor leading zeros; `parse` would accept both.
fn is_plain(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0')
}

/// Whether an owner's or a repository's name is safe in a command line: it can't be taken for an option or a path.
fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with(['-', '.']) && name.bytes().all(is_good)
}

/// Whether a host's name is safe in a command line: it can't be taken for an option or a path.
pub(crate) fn is_host(host: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    !host.is_empty() && host.len() <= MAX_HOST && !host.starts_with(['-', '.']) && host.bytes().all(is_good)
}

/// Where a document is published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishTarget {
    Issue(Issue),
    /// A secret gist of the account on this host; `None`: on the default host of `gh`.
    Gist {
        host: Option<String>,
    },
}

impl PublishTarget {
    /// Reads the target that a default names: `owner/repo#42`, or `gist`. Only a request names a host.
    #[must_use]
    pub fn read_default(text: &str) -> Option<PublishTarget> {
        match text {
            "gist" => Some(PublishTarget::Gist { host: None }),
            text => Issue::read(text).filter(|issue| issue.host.is_none()).map(PublishTarget::Issue),
        }
    }

    /// Onto an issue, or into a gist.
    #[must_use]
    pub fn way(&self) -> Destination {
        match self {
            PublishTarget::Issue(_) => Destination::Issue,
            PublishTarget::Gist { .. } => Destination::Gist,
        }
    }
}

impl fmt::Display for PublishTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PublishTarget::Issue(issue) => issue.fmt(f),
            PublishTarget::Gist { .. } => f.write_str("a secret gist"),
        }
    }
}

/// The target that a request names, if the request is valid. `field`: the name of the request's field.
///
/// # Errors
/// 400 that names the field.
pub fn publish_target(field: &str, asked: &PublishRequest) -> Result<PublishTarget, Refused> {
    let bad = |part: &str, what: &str| Err(Refused::bad(&format!("{field}.{part}"), what));
    match (&asked.issue, asked.gist) {
        (Some(_), Some(_)) | (None, None) => Err(Refused::bad(field, "must hold either issue or gist")),
        (None, Some(false)) => bad("gist", "must be true"),
        (None, Some(true)) if asked.fallback.is_some() => {
            bad("fallback", &format!("is allowed only with {field}.issue"))
        }
        (None, Some(true)) => Ok(PublishTarget::Gist { host: None }),
        (Some(text), None) => match Issue::read(text) {
            Some(issue) => Ok(PublishTarget::Issue(issue)),
            None => bad("issue", "must be owner/repo#42, or https://host/owner/repo/issues/42"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issue_is_named_in_two_forms_and_in_no_other() {
        let issue = Issue::read("o-1/r.s_t#42").expect("short");
        assert_eq!((issue.repository(), issue.number), ("o-1/r.s_t".to_owned(), 42));
        assert_eq!(issue.to_string(), "o-1/r.s_t#42");
        for address in ["https://GitHub.com/o/r/issues/7", "https://github.com/o/r/pull/7"] {
            let issue = Issue::read(address).expect("an address");
            assert_eq!((issue.repository(), issue.number), ("github.com/o/r".to_owned(), 7));
            assert_eq!(issue.to_string(), "https://github.com/o/r/issues/7");
        }
        for bad in [
            "",
            "42",
            "#42",
            "o#42",
            "o/r",
            "o/r#",
            "o/r#0",
            "o/r#-1",
            "o/r#+1",
            "o/r#07",
            "o/r#1x",
            "o/r#99999999999",
            "-o/r#1",
            "o/-r#1",
            "o/../r#1",
            "o/..#1",
            "o/r s#1",
            "o/r;id#1",
            "h/o/r#1",
            "http://github.com/o/r/issues/1",
            "https://github.com/o/r/issues/1#issuecomment-2",
            "https://github.com/o/r/issues/1/",
            "https://u@github.com/o/r/issues/1",
            "https://github.com:1/o/r/issues/1",
            "https://-x/o/r/issues/1",
            "https:///o/r/issues/1",
        ] {
            assert_eq!(Issue::read(bad), None, "{bad}");
        }
    }
}
