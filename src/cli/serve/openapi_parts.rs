//! The parts that all operations of the OpenAPI document share.

use super::query::{MOST, USUAL};
use serde_json::{Map, Value, json};

/// One operation, with its own answers and those of the guard.
pub(super) fn operation(name: &str, about: &str, granted: Value, refused: &[(u16, &str)]) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), granted)]);
    let always = [(401, "The token is missing or wrong."), (403, "The Host or Origin header is wrong.")];
    for (status, why) in always.iter().chain(refused) {
        responses.insert(status.to_string(), answer(why, &reference("problem")));
    }
    json!({"operationId": name, "summary": about, "responses": responses})
}

/// An answer in JSON.
pub(super) fn answer(about: &str, schema: &Value) -> Value {
    json!({"description": about, "content": {"application/json": {"schema": schema}}})
}

/// A reference to a schema of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The answer if the files can't be read.
pub(super) const UNREADABLE: (u16, &str) = (500, "The view can't be read.");

/// The parameter of a list that says how long it may be.
pub(super) fn limit() -> Value {
    json!({
        "name": "limit", "in": "query", "description": "The maximum number of entries.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
    })
}

/// The operation that lists views.
pub(super) fn list(name: &str, about: &str, of: &str, with_all: bool) -> Value {
    let granted = answer("All entries, as in the views.", &json!({"type": "array", "items": reference(of)}));
    let mut get = operation(name, about, granted, &[(400, "The query is invalid."), UNREADABLE]);
    let mut parameters = vec![limit()];
    if with_all {
        let about = "Include ended or finished entries.";
        let schema = json!({"type": "boolean", "default": false});
        parameters.push(json!({"name": "all", "in": "query", "description": about, "schema": schema}));
    }
    get["parameters"] = Value::Array(parameters);
    json!({"get": get})
}

/// The operation that shows one view.
pub(super) fn one(name: &str, about: &str, of: &str) -> Value {
    let granted = answer("The entry, as in the views.", &reference(of));
    json!({"get": operation(name, about, granted, &[(404, "Not found."), UNREADABLE])})
}

/// The statuses of a request that is refused before the sidecar sees it, or that gets no answer.
pub(super) const OF_BODIES: [(u16, &str); 7] = [
    (400, "The request is malformed."),
    (408, "The body did not arrive in time."),
    (413, "The body is larger than 1 MiB."),
    (415, "The Content-Type is not JSON."),
    (500, "The spool can't be used."),
    (503, "No sidecar answers. Nothing was done."),
    (504, "No answer in time. The request may still be carried out; ask for the answer later with `request_id`."),
];

/// An operation that takes a body, and a key that names the request.
pub(super) fn with_body(mut post: Value, schema: &Value) -> Value {
    post["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    post["parameters"] = json!([{
        "name": "Idempotency-Key", "in": "header",
        "description": "Names the request: the same key with the same bytes gets the same answer, and nothing happens twice.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"},
    }]);
    json!({"post": post})
}
