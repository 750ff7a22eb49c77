//! `schema`: the JSON Schema of every file format of the contract.

use super::Session;
use super::args::SchemaArgs;
use super::error::CliError;
use super::formats;
use schemars::{Schema, schema_for};
use serde_json::{Value, json};

/// Every file format by name, in the order of the contract.
#[must_use]
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("result", schema_for!(formats::ResultFile)),
        ("event", schema_for!(formats::EventFile)),
        ("error", schema_for!(formats::ErrorFile)),
        ("why", schema_for!(formats::WhyFile)),
        ("journal", schema_for!(formats::JournalLine)),
        ("sidecar", schema_for!(formats::SidecarView)),
        ("agent", schema_for!(formats::AgentView)),
        ("handoff", schema_for!(formats::HandoffView)),
    ]
}

/// Prints one schema, or the names of all.
///
/// # Errors
/// When there is no such format.
pub fn command(session: &Session, args: &SchemaArgs) -> Result<(), CliError> {
    let all = all();
    let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
    let Some(kind) = args.kind.as_deref() else {
        return session.tell(&json!(names), &names.join("\n"));
    };
    let found = all.into_iter().find(|(name, _)| *name == kind);
    let (_, schema) = found.ok_or_else(|| {
        CliError::refused("no_schema", format!("There is no format {}.", crate::core::text::sanitise(kind)))
            .hint(format!("There are: {}.", names.join(", ")))
    })?;
    session.out.document(&Value::from(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_name_of_its_own_and_describes_its_fields() {
        let mut seen = std::collections::BTreeSet::new();
        for (name, schema) in all() {
            assert!(seen.insert(name), "{name} twice");
            let schema = Value::from(schema);
            let fields = schema["properties"].as_object().unwrap_or_else(|| panic!("{name} has no fields"));
            for (field, about) in fields {
                assert!(about.get("description").is_some() || about.get("$ref").is_some(), "{name}.{field}");
            }
        }
    }
}
