//! `schema`: the JSON Schema of every file format of the contract. Each is generated from the type that reads or writes
//! the file, so it can't differ from the code.

use super::CliSession;
use super::error::CliError;
use crate::agents::{EventFile, ProfileFile};
use crate::contract;
use crate::core::request as asked;
use crate::personas::PersonaFile;
use clap::Args;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, schema_for};
use serde_json::{Value, json};

/// `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The format whose schema to print; without it, the names of all formats.
    pub kind: Option<String>,
}

/// A file format with a JSON Schema.
#[derive(Debug, Clone)]
pub struct Format {
    /// Its name on the command line; a request's is its kind.
    pub name: &'static str,
    pub place: &'static str,
    pub schema: Value,
}

/// Every request kind that this version carries out, in the order of the contract.
#[must_use]
pub fn requests() -> Vec<Format> {
    asked::schemas().into_iter().map(|(kind, fields)| request(kind, fields)).collect()
}

/// The names that `tasuki schema` takes.
#[must_use]
pub fn names() -> Vec<&'static str> {
    all().into_iter().map(|format| format.name).collect()
}

/// Every file format, in the order of the contract.
#[must_use]
pub fn all() -> Vec<Format> {
    let format = |name, place, schema: Schema| Format { name, place, schema: schema.into() };
    let mut all = requests();
    all.extend([
        format("result", "spool/results/<request_id>.json", written::<contract::ResultFile>()),
        format("event", "spool/events/<any name>.json", schema_for!(EventFile)),
        format("error", "spool/errors/<error_id>.json", written::<contract::ErrorFile>()),
        format("notice", "standard input of notify.command", written::<contract::NoticeRecord>()),
        format("why", "spool/rejected/<seq>-<name>.why.json, also in fleet/rejected", written::<contract::WhyFile>()),
        format("journal", "spool/journal.jsonl, one line", written::<contract::JournalLine>()),
        format("sidecar_view", "view/sidecar.json", written::<contract::SidecarView>()),
        format("agent_view", "view/agents/<agent_id>.json", written::<contract::AgentView>()),
        format("handoff_view", "view/handoffs/<handoff_id>.json", written::<contract::HandoffView>()),
        format("work_view", "view/work/<item_id>.json", written::<contract::WorkView>()),
        format("need", "one entry of what tasuki status --json prints", written::<contract::NeedView>()),
        format("fleet_request", "fleet/requests/<id>.json", schema_for!(contract::FleetRequestFile)),
        format("fleet_result", "fleet/results/<id>.json", written::<contract::FleetResultFile>()),
        format("host_view", "fleet/hosts/<name>.json", written::<contract::HostView>()),
        format("bridge_view", "fleet/bridge.json", written::<contract::BridgeView>()),
        format("config", "config.toml", crate::config::schema()),
        format("profile", "data/profiles/<name>.toml", schema_for!(ProfileFile)),
        format("persona", "data/personas/<slug>/persona.toml", schema_for!(PersonaFile)),
        format("rules", "data/rules.toml", crate::config::rules::schema()),
        format("doctor", "what tasuki doctor --json prints", written::<super::doctor::Report>()),
        format(
            "doctor_delivery",
            "what tasuki doctor delivery --json prints",
            written::<super::doctor::DeliveryReport>(),
        ),
    ]);
    all
}

/// The schema of a file that tasuki writes. A field that may be null is required in it, because it is always written.
fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// A request's own fields, and the two that every request has.
fn request(kind: &'static str, fields: Schema) -> Format {
    let mut schema = Value::from(fields);
    schema["properties"]["v"] = json!({"description": "The format's version: 1.", "const": 1});
    schema["properties"]["kind"] = json!({"description": "The kind of the request.", "const": kind});
    let mut required = vec![json!("v"), json!("kind")];
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = Value::Array(required);
    Format { name: kind, place: "spool/requests/<request_id>.json", schema }
}

/// Prints one schema, or the names of all.
///
/// # Errors
/// When there is no such format.
pub fn command(session: &CliSession, args: &SchemaArgs) -> Result<(), CliError> {
    let all = all();
    let Some(kind) = args.kind.as_deref() else {
        if session.out.is_json() {
            let names: Vec<Value> =
                all.iter().map(|format| json!({"name": format.name, "place": format.place})).collect();
            return session.out.document(&Value::Array(names));
        }
        let rows: Vec<_> = all.iter().map(|format| vec![format.name.to_owned(), format.place.to_owned()]).collect();
        return session.out.table(&["FORMAT", "WHERE"], &rows);
    };
    let names: Vec<&str> = all.iter().map(|format| format.name).collect();
    let found = all.iter().find(|format| format.name == kind).ok_or_else(|| {
        CliError::refused("no_schema", format!("There is no format {}.", crate::core::text::sanitise(kind)))
            .hint(format!("Formats: {}.", names.join(", ")))
    })?;
    session.out.document(&found.schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `check` with each object type of a schema.
    fn objects(schema: &Value, check: &mut dyn FnMut(&Value)) {
        let definitions = schema["$defs"].as_object().into_iter().flat_map(|defs| defs.values());
        for object in definitions.chain([schema]).filter(|object| object.get("properties").is_some()) {
            check(object);
        }
    }

    #[test]
    fn every_format_has_a_name_of_its_own_and_describes_its_fields() {
        let mut seen = std::collections::BTreeSet::new();
        for format in all() {
            assert!(seen.insert(format.name), "{} twice", format.name);
            assert!(format.schema["properties"].is_object(), "{} has no fields", format.name);
            objects(&format.schema, &mut |object| {
                for (field, about) in object["properties"].as_object().into_iter().flatten() {
                    assert!(about.get("description").is_some(), "{}: {field}: {about}", format.name);
                }
            });
        }
    }

    #[test]
    fn a_request_names_its_kind_and_refuses_what_it_does_not_know() {
        for format in requests() {
            let schema = &format.schema;
            assert_eq!(schema["properties"]["kind"]["const"], format.name);
            assert_eq!(schema["additionalProperties"], false, "{}", format.name);
            assert_eq!(schema["required"][0], "v");
        }
    }
}
