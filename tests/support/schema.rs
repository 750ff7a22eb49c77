//! Checks JSON against a JSON Schema, with the keywords that tasuki's schemas use. It is stricter than the standard: if
//! a schema lists an object's properties, the object may have no others.

use serde_json::Value;

/// The schema of a format.
pub(crate) fn of(name: &str) -> Value {
    let all = tasuki::cli::schema::all();
    all.into_iter().find(|format| format.name == name).unwrap_or_else(|| panic!("no format {name}")).schema
}

/// What is wrong with a value; empty if it fits its schema.
pub(crate) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let definition = name.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        check(root, definition.unwrap_or_else(|| panic!("{name} is not defined")), value, at, found);
    }
    let fits = |one: &Value| {
        let mut faults = Vec::new();
        check(root, one, value, at, &mut faults);
        faults.is_empty()
    };
    for word in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[word].as_array()
            && !choices.iter().any(fits)
        {
            found.push(format!("{at}: {value} is none of {choices:?}"));
        }
    }
    if schema.get("const").is_some_and(|only| only != value) {
        found.push(format!("{at}: {value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        found.push(format!("{at}: {value} is not one of {}", schema["enum"]));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    };
    if !types.is_empty() && !types.iter().any(|name| is(value, name)) {
        found.push(format!("{at}: {value} is not {types:?}"));
    }
    if let (Some(items), Some(values)) = (schema.get("items"), value.as_array()) {
        values.iter().enumerate().for_each(|(n, item)| check(root, items, item, &format!("{at}/{n}"), found));
    }
    fields(root, schema, value, at, found);
}

fn fields(root: &Value, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    let Some(object) = value.as_object() else { return };
    let Some(properties) = schema["properties"].as_object() else {
        // Without listed properties, the object is a table whose keys are names that people choose.
        let each = schema.get("additionalProperties").filter(|each| each.is_object());
        for (each, (name, field)) in each.into_iter().flat_map(|each| object.iter().map(move |field| (each, field))) {
            check(root, each, field, &format!("{at}/{name}"), found);
        }
        return;
    };
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(required) {
            found.push(format!("{at}/{required}: is missing"));
        }
    }
    for (name, field) in object {
        match properties.get(name) {
            Some(schema) => check(root, schema, field, &format!("{at}/{name}"), found),
            None => found.push(format!("{at}/{name}: is not described")),
        }
    }
}

fn is(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    }
}
