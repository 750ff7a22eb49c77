//! Answers of this host to others: finds the answer to a request, puts requests into the spool and takes them back, and
//! answers requests for views.

use super::folder::FleetFolder;
use super::out::granted;
use super::refused::{FleetRefused, MAIN_PART};
use crate::cli::error::CliError;
use crate::cli::view;
use crate::config::Home;
use crate::contract::{self, ResultFile};
use crate::core::id::RequestId;
use crate::core::text::sha256;
use crate::core::time::Now;
use crate::files::{self, Grade};
use crate::spool::client;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ffi::OsStr;

/// The most views in one answer.
const MOST_VIEWS: usize = 200;

/// The answer to a request from another host, given by this bridge or by the sidecar; none if there is none yet.
///
/// # Errors
/// The answer is there and can't be read.
pub(super) fn given(folder: &FleetFolder, home: &Home, rid: &RequestId) -> Result<Option<Vec<u8>>, CliError> {
    if let Some(told) = folder.read("told", &format!("{rid}.json"))? {
        return Ok(Some(told));
    }
    Ok(client::read_result(home.root(), rid)?)
}

/// What is known of a request before its letter is judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KnownRequest {
    /// Its answer, if there is one.
    pub(super) given: Option<Vec<u8>>,
    /// The bytes that were put into the spool under its id, or were about to be.
    pub(super) dropped: Option<Vec<u8>>,
}

impl KnownRequest {
    /// Whether another request came under this id before: its answer or its bytes are known, and do not match.
    pub(super) fn is_another(&self, request: &[u8]) -> bool {
        let answered: Option<ResultFile> = self.given.as_ref().and_then(|given| contract::read(given).ok().flatten());
        let is_other_answer = answered.is_some_and(|result| result.request_sha256 != sha256(request));
        is_other_answer || self.dropped.as_ref().is_some_and(|dropped| dropped != request)
    }
}

/// Reads what is known of a request.
///
/// # Errors
/// A file of it is there and can't be read.
pub(super) fn known(folder: &FleetFolder, home: &Home, rid: &RequestId) -> Result<KnownRequest, CliError> {
    let dropped = folder.read(&format!("in/{rid}"), MAIN_PART)?;
    Ok(KnownRequest { given: given(folder, home, rid)?, dropped })
}

/// Takes a request out of the spool, if it is still there.
///
/// # Errors
/// The system's.
pub(super) fn take_back(home: &Home, rid: &RequestId) -> std::io::Result<()> {
    let dir = files::open_dir(&home.requests())?;
    files::remove_at(&dir, OsStr::new(&format!("{rid}.json"))).map(drop)
}

/// Writes down an answer that the bridge itself gives, before it is sent. Returns its bytes.
///
/// # Errors
/// The system's; then the answer must not be sent.
pub(super) fn tell(folder: &FleetFolder, rid: &RequestId, result: &ResultFile) -> Result<Vec<u8>, CliError> {
    let bytes = contract::text(result).into_bytes();
    folder.write("told", &format!("{rid}.json"), &bytes, Grade::Durable)?;
    Ok(bytes)
}

/// Puts a request from another host into this home's spool. If a request of this id waits there already, that one
/// stays: it is the same request, or the sidecar answers it first.
///
/// # Errors
/// The spool does not take it.
pub(super) fn drop_request(home: &Home, rid: &RequestId, request: &[u8]) -> Result<(), CliError> {
    match client::submit_request(home.root(), rid, request) {
        Ok(()) | Err(crate::spool::Error::Taken { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes all requests of other hosts out of the spool that the sidecar has not read. They are known by `in/<rid>/`,
/// where each was written down before. A request of this user may have an id that begins with `fleet.` too, and stays.
pub(super) fn take_back_all(home: &Home, folder: &FleetFolder) {
    let Ok(dir) = files::open_dir(&home.requests()) else { return };
    let names = files::names(&dir, usize::MAX, |name| name.as_encoded_bytes().starts_with(b"fleet."));
    for name in names.map(|(names, _)| names).unwrap_or_default() {
        let rid = name.to_str().and_then(|name| name.strip_suffix(".json"));
        if rid.is_some_and(|rid| folder.changed_ms(&format!("in/{rid}"), MAIN_PART).is_some()) {
            let _ = files::remove_at(&dir, &name);
        }
    }
}

/// A request for whole views.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ViewRequest {
    v: u8,
    #[serde(rename = "kind")]
    _kind: String,
    of: String,
    #[serde(default)]
    id: Option<String>,
}

/// Answers a request for views: one by its id, or the last 200 that have changed.
pub(super) fn view(home: &Home, rid: &RequestId, request: &[u8], now: &Now) -> ResultFile {
    match viewed(home, request) {
        Ok(result) => granted(rid.as_str(), crate::fleet::rights::VIEW, request, result, &now.rfc3339()),
        Err(refused) => refused.result(rid.as_str(), Some(crate::fleet::rights::VIEW), request, &now.rfc3339()),
    }
}

fn viewed(home: &Home, request: &[u8]) -> Result<Value, FleetRefused> {
    let bad = |message: String| FleetRefused::new(400, "bad_request", message);
    let asked: ViewRequest = serde_json::from_slice(request).map_err(|error| bad(format!("{error}.")))?;
    let folder = match asked.of.as_str() {
        "agents" => home.agent_views(),
        "handoffs" => home.handoff_views(),
        "work" => home.work_views(),
        "errors" => home.errors(),
        _ => return Err(bad("of must be agents, handoffs, work or errors.".to_owned())),
    };
    if asked.v != 1 {
        return Err(bad("v must be 1.".to_owned()));
    }
    let Some(id) = asked.id else {
        let views = view::latest_readable::<Value>(&folder, MOST_VIEWS).map_err(|error| bad(error.message))?;
        return Ok(json!({"views": views.iter().map(view::ViewFile::json).collect::<Vec<_>>()}));
    };
    let missing = || FleetRefused::new(404, "not_found", format!("There is no such view among {}.", asked.of));
    let id: uuid::Uuid = id.parse().map_err(|_| missing())?;
    let found = view::read::<Value>(&folder.join(format!("{id}.json"))).map_err(|error| bad(error.message))?;
    found.map(|view| json!({"view": view.json()})).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;
    use crate::core::time::Now;

    const NOW: Now = Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 1 };

    #[test]
    fn another_request_of_the_same_id_is_recognised() {
        let (_dir, home, folder) = of_test();
        let rid: RequestId = "fleet.a.x".parse().expect("an id");
        assert_eq!(given(&folder, &home, &rid).expect("readable"), None);
        let refused = FleetRefused::new(403, "not_accepted", "No.");
        let told = tell(&folder, &rid, &refused.result(rid.as_str(), None, b"one", &NOW.rfc3339())).expect("written");
        assert_eq!(given(&folder, &home, &rid).expect("readable"), Some(told.clone()));
        let seen = known(&folder, &home, &rid).expect("readable");
        assert_eq!(seen, KnownRequest { given: Some(told), dropped: None });
        assert!(!seen.is_another(b"one") && seen.is_another(b"other"));
        let dropped = KnownRequest { given: None, dropped: Some(b"one".to_vec()) };
        assert!(!dropped.is_another(b"one") && dropped.is_another(b"other"));
        assert!(!KnownRequest::default().is_another(b"one"));
    }

    #[test]
    fn only_requests_that_the_bridge_has_put_into_the_spool_are_taken_back() {
        let (_dir, home, folder) = of_test();
        std::fs::create_dir_all(home.requests()).expect("a folder");
        folder.make("in", "fleet.a.x").expect("made");
        folder.write("in/fleet.a.x", MAIN_PART, b"{}", Grade::Fast).expect("written");
        for name in ["fleet.a.x.json", "fleet.nightly-7.json", "nightly.json"] {
            std::fs::write(home.requests().join(name), "{}").expect("written");
        }
        take_back_all(&home, &folder);
        let left = |name: &str| home.requests().join(name).exists();
        assert_eq!(
            ["fleet.a.x.json", "fleet.nightly-7.json", "nightly.json"].map(left),
            [false, true, true],
            "a request of this user's own may have such a name"
        );
    }

    #[test]
    fn a_view_is_answered_from_its_file_and_from_nowhere_else() {
        let (_dir, home, _folder) = of_test();
        std::fs::create_dir_all(home.agent_views()).expect("a folder");
        let id = uuid::Uuid::new_v4();
        std::fs::write(home.agent_views().join(format!("{id}.json")), r#"{"agent_id":"a"}"#).expect("a view");
        let rid: RequestId = "fleet.a.x".parse().expect("an id");
        let ask = |request: Value| view(&home, &rid, request.to_string().as_bytes(), &NOW);
        let one = ask(json!({"v": 1, "kind": "view", "of": "agents", "id": id.to_string()}));
        assert_eq!(one.result, Some(json!({"view": {"agent_id": "a"}})));
        let all = ask(json!({"v": 1, "kind": "view", "of": "agents"}));
        assert_eq!(all.result, Some(json!({"views": [{"agent_id": "a"}]})));
        for (request, status) in [
            (json!({"v": 1, "kind": "view", "of": "agents", "id": "../../state/tasuki"}), 404),
            (json!({"v": 1, "kind": "view", "of": "../state"}), 400),
            (json!({"v": 1, "kind": "view", "of": "agents", "more": 1}), 400),
            (json!({"v": 2, "kind": "view", "of": "agents"}), 400),
        ] {
            assert_eq!(ask(request.clone()).status, status, "{request}");
        }
    }
}
