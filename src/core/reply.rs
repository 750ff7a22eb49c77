//! Answers to requests, which a dashboard finds in `results/`.

use super::id::{AgentId, RequestId};
use super::text::{quotable, sentence};
use super::time::Now;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::contract::Fault;

/// The largest number of characters of a message and of a field's name, because both may quote the request.
const MAX_MESSAGE: usize = 500;
const MAX_FIELD: usize = 100;

impl Fault {
    /// A fault at a JSON pointer. Pointer and message may quote the request, so both are sanitised and cut.
    #[must_use]
    pub fn new(pointer: impl AsRef<str>, message: impl AsRef<str>) -> Self {
        Fault { pointer: quotable(pointer.as_ref(), MAX_MESSAGE), message: quotable(message.as_ref(), MAX_MESSAGE) }
    }
}

/// A refusal or failure, as an answer shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub status: u16,
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
    /// Which field of the request is wrong, if it is a single field. With code `refused`: the reason, see
    /// [`Refused::reason`].
    pub field: Option<String>,
    pub line: Option<u64>,
    pub column: Option<u64>,
    /// Everything that is wrong, where that may be more than one thing.
    #[serde(default)]
    pub errors: Vec<Fault>,
}

/// What to do without a tmux server. tasuki looks for one about once a second.
const NO_SERVER_HINT: &str = "nothing was done; start tmux, or check --tmux; if a server has just started, ask again";

impl Refused {
    /// A refusal with its code and message.
    #[must_use]
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Refused {
            status,
            code: code.to_owned(),
            message: quotable(&message.into(), MAX_MESSAGE),
            hint: None,
            field: None,
            line: None,
            column: None,
            errors: Vec::new(),
        }
    }

    /// 409 for an id that was used for other bytes before.
    #[must_use]
    pub fn id_reused() -> Self {
        Refused::new(409, "id_reused", "This request id was already used for a request with other bytes")
            .hint("nothing was done; send the request again under an id that was never used")
    }

    /// 409 for an id that differs from that of an earlier request by upper and lower case alone.
    #[must_use]
    pub fn id_differs_by_case() -> Self {
        let message = "This request id differs from that of an earlier request by upper and lower case alone";
        Refused::new(409, "id_reused", message)
            .hint("nothing was done; send the request again under an id that differs by more than that")
    }

    /// 503: no tmux server answers, or, for a known reason, tasuki can't use tmux.
    #[must_use]
    pub fn no_tmux(problem: Option<&str>) -> Self {
        let (message, hint) = match problem {
            None => ("No tmux server answers".to_owned(), NO_SERVER_HINT),
            Some(problem) => {
                let hint = "nothing was done; remove the cause, then ask again; tasuki doctor says more";
                (format!("tasuki can't use tmux: {problem}"), hint)
            }
        };
        Refused::new(503, "no_tmux", message).hint(hint)
    }

    /// 503: tasuki is connected to another tmux server than the one that this agent runs in.
    #[must_use]
    pub fn other_server(agent_id: &AgentId) -> Self {
        let message =
            format!("Agent {} runs in another tmux server than the one that tasuki is connected to", agent_id.short());
        Refused::new(503, "no_tmux", message).hint(
            "nothing was done; restart the sidecar with --tmux and the name of the agent's server; if that server has \
             ended, tasuki notices it in a moment",
        )
    }

    /// 400: the request names a model, but this profile has no launch option that selects one.
    #[must_use]
    pub fn no_model_option(profile: &str) -> Self {
        Refused::new(400, "no_model_option", format!("Profile {profile} has no option for a model"))
            .field("model")
            .hint("ask without a model, or add launch.model to the profile")
    }

    /// 400 `bad_request` for one field.
    #[must_use]
    pub fn bad(field: &str, what: &str) -> Self {
        Refused::new(400, "bad_request", format!("{field} {what}")).field(field)
    }

    /// Adds a hint that says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        debug_assert!(![" HANDOFF", " ITEM", " AGENT"].iter().any(|word| hint.contains(word)), "whose? {hint}");
        self.hint = Some(sentence(&hint));
        self
    }

    /// Adds the name of the field that is wrong.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(quotable(&field.into(), MAX_FIELD));
        self
    }

    /// Adds why nothing was typed, as a wire name such as `busy`. The wire form has no member of its own for a reason:
    /// it is in `field`.
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.field(reason)
    }

    /// Adds the field if it is known.
    #[must_use]
    pub fn maybe_field(self, field: Option<String>) -> Self {
        match field {
            Some(field) => self.field(field),
            None => self,
        }
    }

    /// Adds all faults of an input that has several.
    #[must_use]
    pub fn faults(mut self, errors: Vec<Fault>) -> Self {
        self.errors = errors;
        self
    }

    /// Adds the line and the column of the fault.
    #[must_use]
    pub fn at(mut self, line: u64, column: u64) -> Self {
        self.line = Some(line);
        self.column = Some(column);
        self
    }
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// 200 with the result of this kind of request.
    Ok(Value),
    /// 207 with the result of this kind of request: only a part was done, and the result says which.
    Partial(Value),
    /// Anything that is not 2xx.
    Refused(Refused),
}

impl Reply {
    /// 200 with this result.
    #[must_use]
    pub fn ok(result: &impl Serialize) -> Self {
        Reply::Ok(json!(result))
    }
}

/// One result file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub request_id: RequestId,
    /// The kind of the request; `None` if it can't be read.
    pub kind: Option<String>,
    /// SHA-256 of the request's bytes, hexadecimal.
    pub request_sha256: String,
    pub reply: Reply,
}

impl Answer {
    /// The result file's content.
    #[must_use]
    pub fn to_json(&self, now: &Now) -> Value {
        let mut body = json!({
            "v": 1,
            "request_id": self.request_id.as_str(),
            "kind": self.kind,
            "at": now.rfc3339(),
            "request_sha256": self.request_sha256,
        });
        match &self.reply {
            Reply::Ok(result) | Reply::Partial(result) => {
                body["status"] = json!(if matches!(self.reply, Reply::Ok(_)) { 200 } else { 207 });
                body["ok"] = json!(true);
                body["result"] = result.clone();
            }
            Reply::Refused(refused) => {
                body["status"] = json!(refused.status);
                body["ok"] = json!(false);
                body["error"] = error_json(refused);
            }
        }
        body
    }
}

fn error_json(refused: &Refused) -> Value {
    let mut error = json!({ "code": refused.code, "message": refused.message, "hint": refused.hint });
    if let Some(field) = &refused.field {
        error["field"] = json!(field);
    }
    if let Some(line) = refused.line {
        error["line"] = json!(line);
        error["column"] = json!(refused.column);
    }
    if !refused.errors.is_empty() {
        error["errors"] = json!(refused.errors);
    }
    error
}
