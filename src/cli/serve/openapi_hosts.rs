//! The addresses of other hosts in the OpenAPI document.

use super::openapi_parts::{OF_BODIES, UNREADABLE, answer, limit, operation, reference, with_body};
use serde_json::{Map, Value, json};

/// Why nothing is known of a host.
const NO_HOST: (u16, &str) =
    (404, "This home has joined no fleet (`no_fleet`), or the fleet has no host of this name (`no_host`).");
/// The key of a request to another host is also the name of a file for the bridge.
const KEY: &str = "^[A-Za-z0-9_-]{1,64}$";

/// The addresses, each with its operations. `any_request`: the schema of a request of any kind.
pub(super) fn paths(any_request: &Value) -> Map<String, Value> {
    let entries = |name: &str, about: &str| {
        let granted = answer("The entries of the host's roster, and how old they are.", &reference(name));
        let refused = [(400, "The query is invalid."), NO_HOST, UNREADABLE];
        let mut get = operation(name, about, granted, &refused);
        get["parameters"] = json!([limit()]);
        json!({"parameters": [host()], "get": get})
    };
    let (agents, handoffs) =
        ("The agents of a host that live.", "The handoffs of a host: the open ones, and the last ended ones.");
    Map::from_iter([
        ("/api/hosts".to_owned(), all()),
        ("/api/hosts/{host}/agents".to_owned(), entries("host_agents", agents)),
        ("/api/hosts/{host}/handoffs".to_owned(), entries("host_handoffs", handoffs)),
        (
            "/api/hosts/{host}/errors".to_owned(),
            entries("host_errors", "The errors of a host that nobody has dismissed."),
        ),
        ("/api/hosts/{host}/requests".to_owned(), ask(any_request)),
        ("/api/hosts/{host}/requests/{id}".to_owned(), result()),
    ])
}

fn host() -> Value {
    json!({"name": "host", "in": "path", "required": true, "description": "The host's name.",
        "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,31}$"}})
}

fn all() -> Value {
    let hosts = json!({"type": "array", "items": reference("host_summary")});
    let about = "The hosts of the fleet by their names, this one among them, as this host's bridge has last read them.";
    let refused = [(400, "The query is invalid."), (404, "This home has joined no fleet (`no_fleet`)."), UNREADABLE];
    let mut get = operation("hosts", about, answer("All hosts.", &hosts), &refused);
    get["parameters"] = json!([limit()]);
    json!({"get": get})
}

fn ask(any_request: &Value) -> Value {
    let done = answer("Done; the whole result of the other host.", &reference("fleet_result"));
    let mut post = operation("ask_host", "Send any request to another host.", done, &OF_BODIES);
    let either = json!({"anyOf": [reference("fleet_result"), reference("problem")]});
    let statuses = [
        (207, "Partly done; `result` lists what failed."),
        (
            400,
            "The request is malformed, is not possible in the current state or from another host, or is to this host itself.",
        ),
        (
            403,
            "The other host does not accept this request from this one (`not_accepted`), or the Host or Origin header is wrong.",
        ),
        (
            404,
            "This home has joined no fleet, the fleet has no such host, or something that the request names does not exist.",
        ),
        (409, "The request conflicts with the current state, or the key was used for another request."),
        (410, "The request came too late, or the host was set up again. Nothing was done."),
        (422, "The answer lists everything that is invalid."),
        (
            429,
            "Too many requests to other hosts have no answer yet, or the other host keeps too many of this one. Nothing was done.",
        ),
        (500, "The request failed."),
        (
            503,
            "This host's bridge does not run or reaches no server (`no_bridge`), or the request was not sent in time. Nothing was done.",
        ),
        (504, "No answer in time. The request may still be carried out; ask for the answer later with `request_id`."),
    ];
    for (status, about) in statuses {
        post["responses"][status.to_string()] = answer(about, &either);
    }
    let mut path = with_body(post, any_request);
    path["parameters"] = json!([host()]);
    path["post"]["parameters"][0]["schema"]["pattern"] = KEY.into();
    path
}

fn result() -> Value {
    let granted = answer("The answer of the other host.", &reference("fleet_result"));
    let about = "The answer to an earlier request to another host, kept for 7 days.";
    let get = operation("host_request", about, granted, &[(404, "Not found, or not answered yet."), UNREADABLE]);
    let id = json!({"name": "id", "in": "path", "required": true,
        "description": "The request's id, or the Idempotency-Key that it was sent with.", "schema": {"type": "string", "pattern": KEY}});
    json!({"parameters": [host(), id], "get": get})
}
