//! Answers of this host to others: where they are found, and the kinds that the bridge answers itself.

use super::folder::FleetFolder;
use super::out::FleetRefused;
use crate::cli::error::CliError;
use crate::cli::view;
use crate::config::Home;
use crate::contract::{self, ResultFile};
use crate::core::id::RequestId;
use crate::core::text::sha256;
use crate::core::time::Now;
use crate::files::Grade;
use crate::spool::client;
use serde::Deserialize;
use serde_json::{Value, json};

/// The most views of a kind that one answer has.
const MOST_VIEWS: usize = 200;

/// The answer that a request from another host has already: this bridge's own, or the sidecar's; none if it has none.
///
/// # Errors
/// It is there and can't be read.
pub(super) fn given(folder: &FleetFolder, home: &Home, rid: &RequestId) -> Result<Option<Vec<u8>>, CliError> {
    if let Some(told) = folder.read("told", &format!("{rid}.json"))? {
        return Ok(Some(told));
    }
    Ok(client::read_result(home.root(), rid)?)
}

/// The answer that is sent: the one that was given, or a refusal if that was given to another request of the same id.
pub(super) fn for_request(given: Vec<u8>, rid: &RequestId, request: &[u8], now: &Now) -> Vec<u8> {
    let read: Option<ResultFile> = contract::read(&given).ok().flatten();
    let is_other = read.is_some_and(|result| result.request_sha256 != sha256(request));
    if !is_other {
        return given;
    }
    let refused = FleetRefused::new(409, "id_reused", "Another request of this id was answered here before.");
    contract::text(&refused.result(rid.as_str(), None, request, &now.rfc3339())).into_bytes()
}

/// Writes down what the bridge itself answers, before it is told.
///
/// # Errors
/// The system's; then it must not be told.
pub(super) fn tell(folder: &FleetFolder, rid: &RequestId, result: &ResultFile) -> Result<Vec<u8>, CliError> {
    let bytes = contract::text(result).into_bytes();
    folder.write("told", &format!("{rid}.json"), &bytes, Grade::Durable)?;
    Ok(bytes)
}

/// Puts a request from another host into this home's spool. A request that waits there already is the same, or gets the
/// sidecar's answer first.
///
/// # Errors
/// The spool does not take it.
pub(super) fn drop_request(home: &Home, rid: &RequestId, request: &[u8]) -> Result<(), CliError> {
    match client::submit_request(home.root(), rid, request) {
        Ok(()) | Err(crate::spool::Error::Taken { .. }) => Ok(()),
        Err(error) => Err(error.into()),
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
        Ok(result) => ResultFile {
            v: 1,
            request_id: rid.to_string(),
            kind: Some(crate::fleet::rights::VIEW.to_owned()),
            status: 200,
            ok: true,
            result: Some(result),
            error: None,
            at: now.rfc3339(),
            request_sha256: sha256(request),
        },
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
        let views = view::latest::<Value>(&folder, MOST_VIEWS).map_err(|error| bad(error.message))?;
        return Ok(json!({"views": views.iter().map(view::ViewFile::json).collect::<Vec<_>>()}));
    };
    let missing = || FleetRefused::new(404, "not_found", format!("There is no such view among {}.", asked.of));
    let id: uuid::Uuid = id.parse().map_err(|_| missing())?;
    let found = view::read::<Value>(&folder.join(format!("{id}.json"))).map_err(|error| bad(error.message))?;
    found.map(|view| json!({"view": view.json()})).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Now;

    const NOW: Now = Now { wall_ms: 1_790_000_000_000, boot: 1, boot_ms: 1 };

    fn home() -> (tempfile::TempDir, Home, FleetFolder) {
        let dir = tempfile::tempdir().expect("a folder");
        let home = Home::at(dir.path()).expect("a home");
        let folder = FleetFolder::open(&home).expect("it is made");
        (dir, home, folder)
    }

    #[test]
    fn another_request_of_the_same_id_does_not_get_the_first_one_s_answer() {
        let (_dir, home, folder) = home();
        let rid: RequestId = "fleet.a.x".parse().expect("an id");
        assert_eq!(given(&folder, &home, &rid).expect("readable"), None);
        let refused = FleetRefused::new(403, "not_accepted", "No.");
        let told = tell(&folder, &rid, &refused.result(rid.as_str(), None, b"one", &NOW.rfc3339())).expect("written");
        assert_eq!(given(&folder, &home, &rid).expect("readable"), Some(told.clone()));
        assert_eq!(for_request(told.clone(), &rid, b"one", &NOW), told);
        let other = for_request(told, &rid, b"other", &NOW);
        assert!(String::from_utf8_lossy(&other).contains("id_reused"));
    }

    #[test]
    fn a_view_is_answered_from_its_file_and_from_nowhere_else() {
        let (_dir, home, _folder) = home();
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
