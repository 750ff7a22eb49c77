//! The API as an OpenAPI 3.1 document, made from the same types as `tasuki schema`.

use super::health::HealthReport;
use super::hosts::{HostAgents, HostErrors, HostHandoffs, HostSummary};
use super::openapi_hosts;
use super::openapi_parts::{OF_BODIES, UNREADABLE, answer, list, one, operation, reference, with_body};
use super::problem::Problem;
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

/// The schemas in `components/schemas` besides those of the requests.
const WRITTEN: [&str; 9] =
    ["result", "error", "journal", "sidecar_view", "agent_view", "handoff_view", "work_view", "need", "fleet_result"];
/// The kinds of request with an address of their own: the schema of the body, the kind, its title, and the field that
/// the address determines.
const ADDRESSED: [(&str, &str, &str, &str); 2] = [
    ("handoff_body", "handoff", "HandoffBody", "agent_id"),
    ("rework_body", "handoff_rework", "ReworkBody", "handoff_id"),
];

/// The OpenAPI document of the server.
#[must_use]
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "tasuki serve",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Hands a coding agent's work to its successor, in tmux. Every address under /api needs the token in HOME/state/serve.token; the Host header must be the loopback address of the server.",
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
    let mut all = own_paths();
    if let Some(paths) = all.as_object_mut() {
        paths.extend(openapi_hosts::paths(&any_request()));
    }
    all
}

/// The addresses that concern this host only.
fn own_paths() -> Value {
    let id = |what: &str| json!([{"name": "id", "in": "path", "required": true, "description": what, "schema": {"type": "string", "minLength": 1}}]);
    let with = |mut path: Value, id: Value| {
        path["parameters"] = id;
        path
    };
    json!({
        "/api/agents": agents(),
        "/api/agents/{id}": with(one_of_any_age("agent", "One agent.", "agent_view"), id("The agent's id.")),
        "/api/agents/{id}/handoff": with(hand_off(), id("The outgoing agent's id.")),
        "/api/handoffs": list("handoffs", "The most recently changed handoffs, newest first.", "handoff_view", false),
        "/api/handoffs/{id}": with(one_of_any_age("handoff", "One handoff.", "handoff_view"), id("The handoff's id.")),
        "/api/handoffs/{id}/document": with(document_text(), id("The handoff's id.")),
        "/api/handoffs/{id}/facts": with(facts(), id("The handoff's id.")),
        "/api/handoffs/{id}/rework": with(rework(), id("The handoff's id.")),
        "/api/work": list("work", "The open work items; with `all`, the others too.", "work_view", true),
        "/api/work/{id}": with(one("work_item", "One work item.", "work_view"), id("The item's id.")),
        "/api/errors": list("errors", "The failures that nobody has dismissed, newest first.", "error", false),
        "/api/needs": list("needs", "What waits for a person, the most urgent first.", "need", false),
        "/api/health": health(),
        "/api/personas": list("personas", "The personas, by their slugs.", "persona", false),
        "/api/sidecar": one("sidecar", "The sidecar that answers requests.", "sidecar_view"),
        "/api/events": events(),
        "/api/requests": requests(),
        "/api/requests/{id}": with(
            one("request", "The answer to an earlier request, kept for 7 days.", "result"),
            id("The request's id, or the Idempotency-Key that it was sent with."),
        ),
        "/api/proof": proof(),
        "/api/session": session(),
        "/api/openapi.json": {"get": operation("openapi", "This document.", answer("The OpenAPI document.", &json!({"type": "object"})), &[])},
    })
}

/// The proof, which a client asks for before it sends the token.
fn proof() -> Value {
    let schema = json!({"type": "object", "required": ["proof"], "properties": {"proof": {"type": "string"}}});
    let about = "A proof that the server knows the token: HMAC-SHA256(token, \"tasuki serve\\n<Host>\\n<nonce>\"), in hexadecimal.";
    let refused = [(400, "The query is invalid."), (401, "The code no longer exists.")];
    let mut get = operation("proof", about, answer("The proof.", &schema), &refused);
    get["security"] = json!([]);
    get["parameters"] = json!([
        {"name": "nonce", "in": "query", "required": true, "description": "Letters and digits; use a new value for each request.",
         "schema": {"type": "string", "minLength": 16, "maxLength": 128, "pattern": "^[A-Za-z0-9]+$"}},
        {"name": "of", "in": "query", "description": "Which secret the client knows.",
         "schema": {"type": "string", "enum": ["token", "code"], "default": "token"}},
    ]);
    json!({"get": get})
}

/// The exchange of the code in the address that `serve` prints.
fn session() -> Value {
    let schema = json!({"type": "object", "required": ["token"], "properties": {"token": {"type": "string"}}});
    let about = "Exchanges the code that `serve` printed for the token, once: Authorization: Code <code>.";
    let mut post = operation(
        "session",
        about,
        answer("The token.", &schema),
        &[(401, "The code is unknown, already used or expired.")],
    );
    post["security"] = json!([{"code": []}]);
    json!({"post": post})
}

/// The list of agents, which a query can limit to a session or a pane.
fn agents() -> Value {
    let mut agents = list("agents", "The running agents; with `all`, ended agents too.", "agent_view", true);
    let place = |name: &str, about: &str| json!({"name": name, "in": "query", "description": about, "schema": {"type": "string"}});
    if let Some(parameters) = agents["get"]["parameters"].as_array_mut() {
        parameters.push(place("session", "Only agents in this tmux session."));
        parameters.push(place("pane", "Only the agent in this pane: its number, with or without `%`."));
    }
    agents
}

/// Whether the sidecar lives.
fn health() -> Value {
    let granted = answer("A sidecar answers requests.", &reference("health"));
    let mut get = operation("health", "Whether the sidecar lives, and how much there is.", granted, &[UNREADABLE]);
    get["responses"]["503"] = answer("No sidecar answers requests.", &reference("health"));
    json!({"get": get})
}

/// One view, which is written again if it was removed for its age.
fn one_of_any_age(name: &str, about: &str, of: &str) -> Value {
    let mut one = one(name, about, of);
    one["get"]["parameters"] = json!([{
        "name": "old", "in": "query", "schema": {"type": "boolean", "default": true},
        "description": "Whether a view that was removed for its age is written again.",
    }]);
    one
}

/// What tasuki has seen of an agent's work: JSON, or text for a client that asks for text.
fn facts() -> Value {
    let mut facts = one("facts", "What tasuki has seen of the agent's work; as text if Accept says so.", "facts");
    for text_type in ["text/markdown", "text/plain"] {
        facts["get"]["responses"]["200"]["content"][text_type] = json!({"schema": {"type": "string"}});
    }
    facts
}

/// The text of a document.
fn document_text() -> Value {
    let text = json!({"description": "The document, as it was recorded.", "content": {"text/markdown": {"schema": {"type": "string"}}}});
    let refused = [
        (404, "The handoff does not exist, or has no document yet."),
        (409, "The file is not the recorded document any more."),
        UNREADABLE,
    ];
    json!({"get": operation("document", "The document of a handoff.", text, &refused)})
}

fn events() -> Value {
    let about = "The journal as server-sent events: `id` is `seq`, `event` is `type`, `data` the line. Without Last-Event-ID, the stream starts at the journal's current end. An event of type `changed`, without an id, tells of a view or an error that has changed without a line of the journal: `data` is `{\"kind\":\"agents\",\"id\":…}`, where `kind` names the list (`agents`, `handoffs`, `work` or `errors`) and `id` is null if more of the list may have changed. With `serve --all-hosts` there are also events of type `host`, without an id, when the state or the content of a host of the fleet changes: `data` is the host as GET /api/hosts lists it, or `{\"host\":…,\"gone\":true}` if the fleet has the host no longer.";
    let stream = json!({
        "description": "Lines as they come, and a comment every 15 seconds. `too_slow`, `stopping`, `unreadable` and `reset` are events of the stream itself, without an id.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    });
    let refused = [(400, "Last-Event-ID is not a number."), (503, "Too many clients are already listening.")];
    let mut get = operation("events", about, stream, &refused);
    get["parameters"] = json!([{
        "name": "Last-Event-ID", "in": "header", "description": "Continue after this `seq`.",
        "schema": {"type": "integer", "minimum": 0, "maximum": u64::MAX},
    }]);
    json!({"get": get})
}

fn hand_off() -> Value {
    let of_agents =
        [(404, "Agent not found."), (409, "Handoff already in progress, or the key was used for another body.")];
    let refused: Vec<(u16, &str)> = OF_BODIES.into_iter().chain(of_agents).collect();
    let post = operation(
        "hand_off",
        "Start the handoff of an agent; the sidecar then carries it out.",
        answer("The handoff has started.", &reference("initiated")),
        &refused,
    );
    with_body(post, &reference("handoff_body"))
}

fn rework() -> Value {
    let refused = [
        (404, "Handoff not found."),
        (409, "The document can't be changed now, or the key was used for another body."),
    ];
    let refused: Vec<(u16, &str)> = OF_BODIES.into_iter().chain(refused).collect();
    let schema = json!({"type": "object", "required": ["status", "handoff_id"],
        "properties": {"status": {"const": "reworking"}, "handoff_id": {"type": "string"}}});
    let about = "Ask the agent to write its document once more, while the handoff waits for a person.";
    with_body(operation("rework", about, answer("The agent is asked.", &schema), &refused), &reference("rework_body"))
}

/// The schema of a request of any kind.
fn any_request() -> Value {
    let all: Vec<Format> = schema::requests();
    let one_of: Vec<Value> = all.iter().map(|format| reference(format.name)).collect();
    let mapping: Map<String, Value> = all
        .iter()
        .map(|format| (format.name.to_owned(), format!("#/components/schemas/{}", format.name).into()))
        .collect();
    json!({"oneOf": one_of, "discriminator": {"propertyName": "kind", "mapping": mapping}})
}

fn requests() -> Value {
    let mut post =
        operation("ask", "Send any request.", answer("Done; the whole result.", &reference("result")), &OF_BODIES);
    let either = json!({"anyOf": [reference("result"), reference("problem")]});
    let statuses = [
        (207, "Partly done; `result` lists what failed."),
        (400, "The request is malformed, or is not possible in the current state."),
        (403, "The caller may not send this request, or the Host or Origin header is wrong."),
        (404, "Something that the request names does not exist."),
        (409, "The request conflicts with the current state, or the key was used for another body."),
        (413, "The body is larger than 1 MiB."),
        (422, "The answer lists everything that is invalid."),
        (429, "There are too many of what the request would add. Nothing was done."),
        (500, "The request failed."),
        (502, "The agent could not be started."),
        (503, "No sidecar answers, or the sidecar can't do this now. Nothing was done."),
        (504, "No answer in time. The request may still be carried out."),
    ];
    for (status, about) in statuses {
        post["responses"][status.to_string()] = answer(about, &either);
    }
    with_body(post, &any_request())
}

fn schemas() -> Value {
    let mut all = schema::requests();
    let body = |(name, kind, title, id): (&'static str, &str, &str, &str)| {
        let format = all.iter().find(|format| format.name == kind)?;
        Some((name, body_of(&format.schema, title, id)))
    };
    let bodies: Vec<(&str, Value)> = ADDRESSED.into_iter().filter_map(body).collect();
    all.extend(schema::all().into_iter().filter(|format| WRITTEN.contains(&format.name)));
    let named = all.into_iter().map(|format| (format.name, format.schema));
    let own = [
        ("problem", written::<Problem>()),
        ("health", written::<HealthReport>()),
        ("initiated", written::<Initiated>()),
        ("facts", written::<crate::contract::Facts>()),
        ("host_summary", written::<HostSummary>()),
        ("host_agents", written::<HostAgents>()),
        ("host_handoffs", written::<HostHandoffs>()),
        ("host_errors", written::<HostErrors>()),
        ("persona", written::<crate::cli::persona::About>()),
    ];
    let embed = |(name, schema): (&str, Value)| (name.to_owned(), embedded(name, schema));
    named.chain(own).chain(bodies).map(embed).collect::<Map<String, Value>>().into()
}

fn written<T: JsonSchema>() -> Value {
    let schema: Schema = SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>();
    schema.into()
}

/// A request's fields without those in the address.
fn body_of(request: &Value, title: &str, id: &str) -> Value {
    let mut schema = request.clone();
    let known = |name: &Value| ["v", "kind", id].iter().any(|known| name == known);
    if let Some(fields) = schema["properties"].as_object_mut() {
        fields.retain(|name, _| !known(&Value::from(name.as_str())));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !known(name));
    }
    schema["title"] = title.into();
    schema
}

/// A schema at its place in the document: its references are rewritten to start at the document's root.
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
        let rework = &document["components"]["schemas"]["rework_body"];
        assert_eq!(rework["required"], json!(["note"]));
        assert_eq!(rework["properties"].as_object().map(serde_json::Map::len), Some(1));
        assert!(body["properties"]["focus"].is_object() && body["properties"].get("agent_id").is_none());
    }
}
