//! Reads event files on the sidecar's side. Any program may write one, so every field is checked, cut to size and
//! cleaned before the core sees it.

use super::profile::{Profile, Profiles};
use super::prune::tail;
use super::rules::Extract;
use crate::core::hook::{ContextUsage, HookEvent, HookKind, SessionReason};
use crate::core::id::{AgentId, Slug};
use crate::core::pane::TmuxVariable;
use crate::core::text::{quotable, sanitise};
use crate::secrets::{self, Known};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Why an event file can't be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EventError {
    /// The error code: `bad_json`, `unsupported_version`, `unknown_event`, `unknown_field`, `bad_field`.
    pub code: &'static str,
    pub message: String,
    pub field: Option<String>,
}

impl EventError {
    fn field(code: &'static str, field: &str, message: impl Into<String>) -> Self {
        EventError { field: Some(quotable(field, 64)), ..EventError::whole(code, message) }
    }

    fn whole(code: &'static str, message: impl Into<String>) -> Self {
        EventError { code, message: quotable(&message.into(), MAX_MESSAGE), field: None }
    }
}

/// One file in `spool/events/`. Only `v` and `event` are required, and one of `agent_id`, `pane` and `session_id` to
/// say whose event it is. These fields take precedence over what the profile finds in `payload`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// The format's version: 1.
    pub v: u32,
    /// What happened.
    pub event: HookKind,
    /// `TASUKI_AGENT_ID` of the process that reports.
    #[schemars(with = "Option<String>")]
    pub agent_id: Option<AgentId>,
    /// The tmux pane: `%3`.
    pub pane: Option<String>,
    /// The value of `$TMUX`.
    pub tmux: Option<String>,
    /// The profile by whose rules `payload` is read.
    pub profile: Option<String>,
    /// When it happened: UTC, RFC 3339.
    pub at: Option<String>,
    /// The CLI's own hook JSON.
    pub payload: Option<Value>,
    /// The submitted prompt; of one over 64 KiB the last 64 KiB.
    pub text: Option<String>,
    /// The last text of the answer; of one over 256 KiB the last 256 KiB.
    pub last_text: Option<String>,
    /// The CLI's session id.
    pub session_id: Option<String>,
    /// The CLI's turn id.
    pub turn_id: Option<String>,
    /// Where the transcript is.
    pub transcript_path: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The persona that the reporter names.
    #[schemars(with = "Option<String>")]
    pub persona_slug: Option<Slug>,
    /// For session starts and ends: `process`, `replaced` (another session in the same process) or `same`. For an end
    /// also `killed`: the process was told to end from outside, as by the end of its pane.
    #[schemars(with = "Option<String>")]
    pub reason: Option<SessionReason>,
    /// For a stop: the turn only pauses.
    pub paused: Option<bool>,
    /// The CLI's message to its user.
    pub message: Option<String>,
    /// How full the context is.
    pub context: Option<ContextUsage>,
    /// Process ids from the reporter's parent upwards.
    pub ancestors: Option<Vec<u32>>,
}

/// Longest prompt and longest last text of an answer, in bytes. Of a longer one only its end is reported and read.
pub(super) const MAX_TEXT: usize = crate::core::text::MAX_TYPED_BYTES;
pub(super) const MAX_LAST_TEXT: usize = 256 * 1024;
/// Longest id, path and message that are taken over, in characters; longer ones are cut.
const MAX_ID: usize = 200;
const MAX_PATH: usize = 4096;
const MAX_MESSAGE: usize = 500;
const MAX_ANCESTORS: usize = 8;

/// Reads an event file.
///
/// # Errors
/// When it is not JSON, not an object, has a field that the contract does not know, or a value of the wrong kind.
pub fn read_event(bytes: &[u8], profiles: &Profiles) -> Result<HookEvent, EventError> {
    let mut map: Map<String, Value> = super::json::read(bytes)
        .map_err(|why| EventError::whole("bad_json", format!("is not a JSON object: {why}")))?;
    check_envelope(&map)?;
    // The hook of an earlier build wrote this field, and its events may still lie in the spool after an update.
    map.remove("text_digest");
    let file: EventFile = serde_path_to_error::deserialize(Value::Object(map)).map_err(|why| {
        let field = why.path().to_string();
        let code = if why.inner().to_string().starts_with("unknown field") { "unknown_field" } else { "bad_field" };
        EventError::field(code, &field, format!("field `{field}`: {}", why.inner()))
    })?;
    let profile = file.profile.as_deref().and_then(|name| profiles.get(name));
    let payload = file.payload.clone().unwrap_or(Value::Null);
    let found = profile.map(|profile| profile.file.hooks.extract_kind(file.event, &payload)).unwrap_or_default();
    build(file, found, profile)
}

/// Checks the version and the event's name first, so that a file from a later tasuki is not taken for an invalid one.
fn check_envelope(map: &Map<String, Value>) -> Result<(), EventError> {
    match map.get("v") {
        Some(Value::Number(v)) if v.as_u64() == Some(1) => {}
        Some(Value::Number(v)) => {
            return Err(EventError::field(
                "unsupported_version",
                "v",
                format!("version {v} is not known; tasuki reads version 1"),
            ));
        }
        _ => return Err(EventError::field("bad_field", "v", "field `v` must be the number 1")),
    }
    let known = map.get("event").is_some_and(|event| serde_json::from_value::<HookKind>(event.clone()).is_ok());
    if known {
        return Ok(());
    }
    let names =
        "session_start, prompt_submit, stop, stop_failure, interrupted, blocked, notification, context, session_end";
    Err(EventError::field("unknown_event", "event", format!("field `event` must be one of {names}")))
}

fn build(file: EventFile, found: Extract, profile: Option<&Profile>) -> Result<HookEvent, EventError> {
    let pane = match file.pane.as_deref() {
        None => None,
        Some(text) => {
            let number = text.strip_prefix('%').and_then(|digits| digits.parse().ok());
            Some(number.ok_or_else(|| EventError::field("bad_field", "pane", "field `pane` must look like %3"))?)
        }
    };
    let unwrap = |text: String| sanitise(&profile.map_or_else(|| text.clone(), |profile| profile.unwrap_prompt(&text)));
    let end = |text: String, max: usize| tail(&text, max).to_owned();
    let id = |text: Option<String>| text.map(|text| one_line(&text, MAX_ID)).filter(|text| !text.is_empty());
    let path = |text: Option<String>| text.map(|text| one_line(&text, MAX_PATH)).filter(|text| !text.is_empty());
    let mut ancestors = file.ancestors.unwrap_or_default();
    ancestors.truncate(MAX_ANCESTORS);
    Ok(HookEvent {
        kind: file.event,
        agent_id: file.agent_id,
        pane,
        server_pid: file.tmux.as_deref().and_then(|tmux| Some(TmuxVariable::read(tmux)?.server_pid)),
        profile: id(file.profile),
        persona_slug: file.persona_slug,
        session_id: id(file.session_id.or(found.session_id)),
        turn_id: id(file.turn_id.or(found.turn_id)),
        text: file.text.or(found.text).map(unwrap).map(|text| end(text, MAX_TEXT)),
        last_text: file.last_text.or(found.last_text).map(|text| end(sanitise(&text), MAX_LAST_TEXT)),
        transcript_path: path(file.transcript_path.or(found.transcript_path)),
        cwd: path(file.cwd.or(found.cwd)),
        reason: file.reason.or(found.reason),
        paused: file.paused.unwrap_or(found.paused),
        message: file
            .message
            .or(found.message)
            .map(|text| one_line(&secrets::without(&text, &Known::default()), MAX_MESSAGE)),
        ancestors,
        clis: Vec::new(),
        context: file.context.or(found.context),
    })
}

impl Profile {
    /// Takes off what the CLI puts around a prompt. A prompt may hold several wrapped parts.
    #[must_use]
    pub fn unwrap_prompt(&self, text: &str) -> String {
        let replace = |text: String, wrapper: &super::condition::Pattern| {
            wrapper.regex().replace_all(&text, "${text}").into_owned()
        };
        self.file.hooks.wrappers.iter().fold(text.to_owned(), replace)
    }
}

/// At most `max` characters in one line, without anything that drives a terminal.
fn one_line(text: &str, max: usize) -> String {
    let clean = sanitise(text);
    clean.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).take(max).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value) -> Result<HookEvent, EventError> {
        read_event(value.to_string().as_bytes(), &Profiles::load(None).expect("built in"))
    }

    #[test]
    fn texts_of_many_lines_keep_nothing_that_drives_a_terminal() {
        let text = "one\n\u{1b}[31mtwo\u{7}\u{202e}";
        let event = json!({"v":1,"event":"stop","agent_id":AGENT,"text":text,"last_text":text});
        let event = read(&event).expect("an event");
        assert_eq!((event.text.as_deref(), event.last_text.as_deref()), (Some("one\n[31mtwo"), Some("one\n[31mtwo")));
    }

    #[test]
    fn of_a_long_prompt_and_a_long_answer_only_the_end_is_taken() {
        let text = format!("{} the end", "é".repeat(200_000));
        for place in [json!({"text":text,"last_text":text}), json!({"payload":{"prompt":text}})] {
            let mut event = json!({"v":1,"event":"prompt_submit","agent_id":AGENT,"profile":"claude"});
            event.as_object_mut().expect("an object").extend(place.as_object().cloned().expect("an object"));
            let event = read(&event).expect("an event");
            let found = event.text.expect("a prompt");
            assert!(found.len() <= MAX_TEXT && found.len() > MAX_TEXT - 2 && found.ends_with("é the end"));
            let last = event.last_text.unwrap_or_default();
            assert!(last.len() <= MAX_LAST_TEXT && text.ends_with(&last));
        }
    }

    const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

    #[test]
    fn any_program_may_report_with_three_fields() {
        let event = read(&json!({"v":1,"event":"stop","agent_id":AGENT})).expect("enough");
        assert_eq!(event, HookEvent { agent_id: AGENT.parse().ok(), ..HookEvent::new(HookKind::Stop) });
    }

    #[test]
    fn top_level_fields_take_precedence_over_the_payload() {
        let payload =
            json!({"hook_event_name":"UserPromptSubmit","prompt":"from the payload","session_id":"s1","prompt_id":"p"});
        let file = json!({"v":1,"event":"prompt_submit","profile":"claude","pane":"%7","tmux":"/tmp/a,b/default,4711,0",
            "text":"from the top","payload":payload});
        let event = read(&file).expect("right");
        assert_eq!(event.text.as_deref(), Some("from the top"));
        assert_eq!((event.session_id.as_deref(), event.turn_id.as_deref()), (Some("s1"), Some("p")));
        assert_eq!((event.pane, event.server_pid), (Some(7), Some(4711)));
    }

    #[test]
    fn unknown_fields_are_refused_by_name() {
        let error = read(&json!({"v":1,"event":"stop","agentid":AGENT})).expect_err("a typo");
        assert_eq!((error.code, error.field.as_deref()), ("unknown_field", Some("agentid")));
        assert!(error.message.contains("agentid"));
        let earlier = json!({"v":1,"event":"stop","agent_id":AGENT,"text_digest":{"bytes":1}});
        assert!(read(&earlier).is_ok(), "an earlier hook wrote this field");
    }

    #[test]
    fn wrong_values_are_refused_with_their_field() {
        for (file, code, field) in [
            (json!({"event":"stop"}), "bad_field", Some("v")),
            (json!({"v":2,"event":"stop","new":1}), "unsupported_version", Some("v")),
            (json!({"v":1,"event":"stopp"}), "unknown_event", Some("event")),
            (json!({"v":1,"event":"stop","agent_id":"x"}), "bad_field", Some("agent_id")),
            (json!({"v":1,"event":"stop","persona_slug":"../x"}), "bad_field", Some("persona_slug")),
            (json!({"v":1,"event":"stop","pane":"3"}), "bad_field", Some("pane")),
            (json!([1]), "bad_json", None),
        ] {
            let error = read(&file).expect_err("wrong");
            assert_eq!((error.code, error.field.as_deref()), (code, field), "{file}");
        }
    }

    #[test]
    fn the_clis_wrapper_is_taken_off_and_what_drives_a_terminal_too() {
        let prompt = "Please do:\n<pasted_content id=\"d675\">\none\ntwo\u{1b}[31m\n</pasted_content id=\"d675\">";
        let event = read(&json!({"v":1,"event":"prompt_submit","profile":"claude","text":prompt})).expect("right");
        assert_eq!(event.text.as_deref(), Some("Please do:\none\ntwo[31m"));
    }

    #[test]
    fn strings_are_cut_and_kept_to_one_line() {
        let event =
            read(&json!({"v":1,"event":"notification","message":"a\n\u{1b}b".repeat(400),"session_id":"s".repeat(500),
            "ancestors":(1..100).collect::<Vec<u32>>()}))
            .expect("right");
        let message = event.message.expect("there");
        assert!(message.len() <= 500 && !message.contains(['\n', '\u{1b}']));
        assert_eq!(event.session_id.map(|id| id.len()), Some(200));
        assert_eq!(event.ancestors.len(), 8);
    }

    #[test]
    fn a_credential_in_a_clis_message_goes_no_further() {
        let token = format!("ghp_{}", "q7Zk2Vx9Lm4TcR8wYb3NfJ6sHd5GpA1eUoXi");
        let message = format!("401 with {token}");
        let event = read(&json!({"v":1,"event":"stop_failure","message":message,"session_id":"s"})).expect("right");
        assert_eq!(event.message.as_deref(), Some("401 with [REDACTED:github-pat]"));
    }

    #[test]
    fn an_unknown_profile_does_no_harm() {
        let event = read(&json!({"v":1,"event":"stop","profile":"other","payload":{"session_id":"x"}})).expect("right");
        assert_eq!((event.profile.as_deref(), event.session_id), (Some("other"), None));
    }
}
