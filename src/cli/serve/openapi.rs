//! The description of all this as OpenAPI 3.1, made from the very types that `tasuki schema` describes.

use super::problem::Problem;
use super::views::{MOST, USUAL};
use crate::cli::schema::{self, Format};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// What `POST /api/agents/{id}/handoff` answers when the handoff has begun.
#[derive(Debug, Serialize, JsonSchema)]
struct Initiated {
    /// Always `initiated`.
    #[schemars(extend("const" = "initiated"))]
    status: String,
    /// The handoff: `GET /api/handoffs/{id}` follows it.
    handoff_id: String,
    /// Where its document will be, absolute.
    file_path: String,
}

/// What stands under `components/schemas` beside the requests.
const WRITTEN: [&str; 7] = ["result", "error", "journal", "sidecar_view", "agent_view", "handoff_view", "work_view"];

/// The whole document.
#[must_use]
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tasuki serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Hands a coding agent's work to its successor, in tmux. Every address under /api wants the token that lies in HOME/state/serve.token; the Host must be the loopback address that it listens on.",
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}, "code": {"type": "http", "scheme": "Code"}},
            "schemas": schemas(),
        },
    })
}

fn paths() -> Value {
    let id = |what: &str| json!([{"name": "id", "in": "path", "required": true, "description": what, "schema": {"type": "string", "minLength": 1}}]);
    let with = |mut path: Value, id: Value| {
        path["parameters"] = id;
        path
    };
    json!({
        "/api/agents": list("agents", "The agents that live; with `all`, those that have ended too.", "agent_view", true),
        "/api/agents/{id}": with(one("agent", "One agent.", "agent_view"), id("The agent's id.")),
        "/api/agents/{id}/handoff": with(hand_off(), id("The outgoing agent's id.")),
        "/api/handoffs": list("handoffs", "The handoffs that changed last, the newest first.", "handoff_view", false),
        "/api/handoffs/{id}": with(one("handoff", "One handoff.", "handoff_view"), id("The handoff's id.")),
        "/api/work": list("work", "The work items that are not done; with `all`, the others too.", "work_view", true),
        "/api/work/{id}": with(one("work_item", "One work item.", "work_view"), id("The item's id.")),
        "/api/errors": list("errors", "The failures that nobody has dismissed, the newest first.", "error", false),
        "/api/sidecar": one("sidecar", "The sidecar that answers requests.", "sidecar_view"),
        "/api/events": events(),
        "/api/requests": requests(),
        "/api/requests/{id}": with(
            one("request", "The answer to a request that was dropped before, for 7 days.", "result"),
            id("The request's id, or the Idempotency-Key that it was sent with."),
        ),
        "/api/proof": proof(),
        "/api/session": session(),
        "/api/openapi.json": {"get": operation("openapi", "This document.", answer("It.", &json!({"type": "object"})), &[])},
    })
}

/// Asked without the token, before it is said.
fn proof() -> Value {
    let schema = json!({"type": "object", "required": ["proof"], "properties": {"proof": {"type": "string"}}});
    let about = "That this is the server of whoever has the token: HMAC-SHA256(token, \"tasuki serve\\n<Host>\\n<nonce>\"), in hexadecimal.";
    let refused = [(400, "The query is wrong."), (401, "There is no such code any more.")];
    let mut get = operation("proof", about, answer("The proof.", &schema), &refused);
    get["security"] = json!([]);
    get["parameters"] = json!([
        {"name": "nonce", "in": "query", "required": true, "description": "Letters and digits that were never asked before.",
         "schema": {"type": "string", "minLength": 16, "maxLength": 128, "pattern": "^[A-Za-z0-9]+$"}},
        {"name": "of", "in": "query", "description": "What the asker knows.",
         "schema": {"type": "string", "enum": ["token", "code"], "default": "token"}},
    ]);
    json!({"get": get})
}

/// What the page does with the code of the address that `serve` prints.
fn session() -> Value {
    let schema = json!({"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}});
    let about = "The token for the code that `serve` has printed, once: Authorization: Code <code>.";
    let mut post = operation(
        "session",
        about,
        answer("The token.", &schema),
        &[(401, "The code is none, was used, or is too old.")],
    );
    post["security"] = json!([{"code": []}]);
    json!({"post": post})
}

/// One operation; beside its own answers it has those of the guard.
fn operation(name: &str, about: &str, granted: Value, refused: &[(u16, &str)]) -> Value {
    let mut responses = Map::from_iter([("200".to_owned(), granted)]);
    let always = [(401, "The token is missing or wrong."), (403, "Asked for under another host, or by another page.")];
    for (status, why) in always.iter().chain(refused) {
        responses.insert(status.to_string(), answer(why, &reference("problem")));
    }
    json!({"operationId": name, "summary": about, "responses": responses})
}

fn answer(about: &str, schema: &Value) -> Value {
    json!({"description": about, "content": {"application/json": {"schema": schema}}})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Reading can fail, too.
const UNREADABLE: (u16, &str) = (500, "What should be read can't be.");

fn list(name: &str, about: &str, of: &str, with_all: bool) -> Value {
    let granted = answer("All of them, as they are in the views.", &json!({"type": "array", "items": reference(of)}));
    let mut get = operation(name, about, granted, &[(400, "The query is wrong."), UNREADABLE]);
    let mut parameters = vec![json!({
        "name": "limit", "in": "query", "description": "How many at most.",
        "schema": {"type": "integer", "minimum": 1, "maximum": MOST, "default": USUAL},
    })];
    if with_all {
        let about = "Those too that are over.";
        let schema = json!({"type": "boolean", "default": false});
        parameters.push(json!({"name": "all", "in": "query", "description": about, "schema": schema}));
    }
    get["parameters"] = Value::Array(parameters);
    json!({"get": get})
}

fn one(name: &str, about: &str, of: &str) -> Value {
    let granted = answer("It, as it is in the views.", &reference(of));
    json!({"get": operation(name, about, granted, &[(404, "There is none."), UNREADABLE])})
}

fn events() -> Value {
    let about = "The journal as server-sent events: `id` is `seq`, `event` is `type`, `data` the line. Without Last-Event-ID from the present end.";
    let stream = json!({
        "description": "Lines as they come, and a comment every 15 seconds. `too_slow`, `stopping`, `unreadable` and `reset` are events of the stream itself, without an id.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    });
    let refused = [(400, "Last-Event-ID is no number."), (503, "Too many listen already.")];
    let mut get = operation("events", about, stream, &refused);
    get["parameters"] = json!([{
        "name": "Last-Event-ID", "in": "header", "description": "Go on after this `seq`.",
        "schema": {"type": "integer", "minimum": 0, "maximum": u64::MAX},
    }]);
    json!({"get": get})
}

/// What a body can be refused for before the sidecar sees it, and what becomes of a request that gets no answer.
const OF_BODIES: [(u16, &str); 7] = [
    (400, "The request is malformed."),
    (408, "The body did not come in time."),
    (413, "The body is larger than 1 MiB."),
    (415, "The body is not said to be JSON."),
    (500, "The spool can't be used."),
    (503, "No sidecar answers. Nothing was done."),
    (504, "No answer in time: `request_id` says what to ask for later. It may still be carried out."),
];

fn with_body(mut post: Value, schema: &Value) -> Value {
    post["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    post["parameters"] = json!([{
        "name": "Idempotency-Key", "in": "header",
        "description": "Names the request: the same key with the same bytes gets the same answer, and nothing happens twice.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"},
    }]);
    json!({"post": post})
}

fn hand_off() -> Value {
    let of_agents =
        [(404, "Agent not found."), (409, "Handoff already in progress, or the key was used for another body.")];
    let refused: Vec<(u16, &str)> = OF_BODIES.into_iter().chain(of_agents).collect();
    let post = operation(
        "hand_off",
        "Begin the handoff of an agent; it goes on by itself.",
        answer("It has begun.", &reference("initiated")),
        &refused,
    );
    with_body(post, &reference("handoff_body"))
}

fn requests() -> Value {
    let all: Vec<Format> = schema::requests();
    let one_of: Vec<Value> = all.iter().map(|format| reference(format.name)).collect();
    let mapping: Map<String, Value> = all
        .iter()
        .map(|format| (format.name.to_owned(), format!("#/components/schemas/{}", format.name).into()))
        .collect();
    let mut post = operation(
        "ask",
        "Ask for anything that can be asked for.",
        answer("Done; the whole result.", &reference("result")),
        &OF_BODIES,
    );
    let either = json!({"anyOf": [reference("result"), reference("problem")]});
    let statuses = [
        (207, "Done in part; `result` has what failed."),
        (400, "The request is malformed, or can't be granted as things are."),
        (403, "Not this caller's to ask, or asked for under another host."),
        (404, "What it names is not there."),
        (409, "It does not fit what is going on, or the key was used for another body."),
        (413, "The body is larger than 1 MiB."),
        (422, "The answer lists all that is wrong."),
        (500, "It has failed."),
        (503, "No sidecar answers, or it can't do this now. Nothing was done."),
        (504, "No answer in time. It may still be carried out."),
    ];
    for (status, about) in statuses {
        post["responses"][status.to_string()] = answer(about, &either);
    }
    with_body(post, &json!({"oneOf": one_of, "discriminator": {"propertyName": "kind", "mapping": mapping}}))
}

fn schemas() -> Value {
    let mut all = schema::requests();
    let handoff = all.iter().find(|format| format.name == "handoff").map(|format| body_of(&format.schema));
    all.extend(schema::all().into_iter().filter(|format| WRITTEN.contains(&format.name)));
    let named = all.into_iter().map(|format| (format.name, format.schema));
    let own = [("problem", written::<Problem>()), ("initiated", written::<Initiated>())];
    let handoff = handoff.map(|schema| ("handoff_body", schema));
    let embed = |(name, schema): (&str, Value)| (name.to_owned(), embedded(name, schema));
    named.chain(own).chain(handoff).map(embed).collect::<Map<String, Value>>().into()
}

fn written<T: JsonSchema>() -> Value {
    let schema: Schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.into()
}

/// A handoff's fields without those that the address says.
fn body_of(handoff: &Value) -> Value {
    let mut schema = handoff.clone();
    let known = |name: &Value| ["v", "kind", "agent_id"].iter().any(|known| name == known);
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.retain(|name, _| !known(&Value::from(name.as_str())));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !known(name));
    }
    schema["title"] = "HandoffBody".into();
    schema
}

/// A schema at its place in the document: what it refers to inside itself is found from the document's root.
fn embedded(name: &str, mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("$schema");
    }
    let root = format!("#/components/schemas/{name}/");
    lead(&mut schema, &root);
    schema
}

fn lead(value: &mut Value, root: &str) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(place) if name == "$ref" => *place = place.replacen("#/", root, 1),
                    field => lead(field, root),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| lead(item, root)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with every reference of a document.
    fn references(value: &Value, check: &mut dyn FnMut(&str)) {
        match value {
            Value::Object(fields) => fields.iter().for_each(|(name, field)| match field {
                Value::String(place) if name == "$ref" => check(place),
                field => references(field, check),
            }),
            Value::Array(items) => items.iter().for_each(|item| references(item, check)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let mut count = 0;
        references(&document, &mut |place| {
            count += 1;
            let pointer = place.strip_prefix('#').unwrap_or_else(|| panic!("{place} leads elsewhere"));
            assert!(document.pointer(pointer).is_some(), "{place}");
        });
        assert!(count > 100, "{count}");
    }

    #[test]
    fn every_kind_of_request_is_described_and_a_handoff_wants_no_more_than_a_reason() {
        let document = document();
        let mapping = &document["paths"]["/api/requests"]["post"]["requestBody"]["content"]["application/json"]["schema"]
            ["discriminator"]["mapping"];
        let kinds: Vec<&str> = mapping.as_object().expect("kinds").keys().map(String::as_str).collect();
        let mut known = crate::core::request::KINDS.to_vec();
        known.sort_unstable();
        assert_eq!(kinds, known);
        let body = &document["components"]["schemas"]["handoff_body"];
        assert_eq!(body["required"], json!(["reason"]));
        assert!(body["properties"]["focus"].is_object() && body["properties"].get("agent_id").is_none());
    }
}
