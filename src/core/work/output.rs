//! Checks whether an output holds what its rule asks for. It finds every fault, not only the first.

use crate::core::reply::Fault;
use crate::core::rules::{Rule, ValueType};
use serde_json::Value;

/// The place of an output in a request.
const PLACE: &str = "/output";

/// Every fault of an output; empty if it is good. The pointer of a fault leads into the request.
#[must_use]
pub fn faults(rule: &Rule, output: &Value) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut wrong = |pointer: &str, message: String| faults.push(Fault::new(format!("{PLACE}{pointer}"), message));
    for pointer in &rule.all {
        if output.pointer(pointer).is_none_or(Value::is_null) {
            wrong(pointer, format!("{} is missing", name(pointer)));
        }
    }
    for pointer in &rule.non_empty {
        match output.pointer(pointer) {
            None => wrong(pointer, format!("{} is missing", name(pointer))),
            Some(value) if !holds_something(value) => wrong(pointer, format!("{} is empty", name(pointer))),
            Some(_) => {}
        }
    }
    let given = |pointer: &String| output.pointer(pointer).is_some_and(holds_something);
    if !rule.any.is_empty() && !rule.any.iter().any(given) {
        let names: Vec<String> = rule.any.iter().map(|pointer| name(pointer)).collect();
        wrong("", format!("must hold {}", names.join(" or ")));
    }
    for (pointer, wanted) in &rule.values {
        let found = output.pointer(pointer).filter(|value| !value.is_null());
        if let Some(value) = found.filter(|value| !is(value, *wanted)) {
            wrong(pointer, format!("{} must be of type {}, not {}", name(pointer), type_name(*wanted), type_of(value)));
        }
    }
    faults
}

fn name(pointer: &str) -> String {
    if pointer.is_empty() { "the output".to_owned() } else { pointer.trim_start_matches('/').to_owned() }
}

/// Not null, not false, not blank, not empty.
#[must_use]
pub fn holds_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

fn is(value: &Value, wanted: ValueType) -> bool {
    match wanted {
        ValueType::String => value.is_string(),
        ValueType::Number => value.is_number(),
        ValueType::Integer => value.is_i64() || value.is_u64(),
        ValueType::Boolean => value.is_boolean(),
        ValueType::Array => value.is_array(),
        ValueType::Object => value.is_object(),
    }
}

fn type_name(wanted: ValueType) -> &'static str {
    match wanted {
        ValueType::String => "string",
        ValueType::Number => "number",
        ValueType::Integer => "integer",
        ValueType::Boolean => "boolean",
        ValueType::Array => "array",
        ValueType::Object => "object",
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::rules::Rules;
    use serde_json::json;

    fn pointers(kind: &str, output: &Value) -> Vec<String> {
        faults(&Rules::default().types[kind], output).into_iter().map(|fault| fault.pointer).collect()
    }

    #[test]
    fn the_built_in_rules_judge_as_the_contract_says() {
        for kind in ["project_spec", "feature"] {
            assert_eq!(pointers(kind, &json!({})), ["/output/requirements", "/output/prd"]);
            assert_eq!(pointers(kind, &json!({"requirements": [], "prd": " "})).len(), 2);
            assert!(pointers(kind, &json!({"requirements": ["r"], "prd": {"title": "t"}})).is_empty());
        }
        assert_eq!(pointers("prd", &json!({"stories": []})), ["/output/stories"]);
        assert!(pointers("prd", &json!({"stories": ["s"]})).is_empty());
        for kind in ["story", "bug"] {
            assert_eq!(pointers(kind, &json!({"pr_url": "", "completed": false})), ["/output"]);
            assert!(pointers(kind, &json!({"completed": true})).is_empty());
            assert!(pointers(kind, &json!({"pr_url": "https://x/1"})).is_empty());
        }
        assert_eq!(pointers("task", &json!({})), ["/output"]);
        assert!(pointers("task", &json!({"note": "done"})).is_empty());
    }

    #[test]
    fn every_fault_is_listed_with_its_pointer() {
        let text = "[types.a]\nprocessed_by = [\"x\"]\nrequire = { all = [\"/n\"], any = [\"/p\", \"/q\"], non_empty = [\"/l\"], values = { \"/n\" = \"integer\", \"/l/0/k\" = \"string\" } }\n";
        let rule = Rules::with(text).expect("rules").types["a"].clone();
        let found = faults(&rule, &json!({"n": 1.5, "l": [{"k": 7}]}));
        let listed: Vec<(&str, &str)> =
            found.iter().map(|fault| (fault.pointer.as_str(), fault.message.as_str())).collect();
        assert_eq!(
            listed,
            [
                ("/output", "must hold p or q"),
                ("/output/l/0/k", "l/0/k must be of type string, not number"),
                ("/output/n", "n must be of type integer, not number"),
            ]
        );
        assert!(faults(&rule, &json!({"n": 0, "p": "x", "l": [0]})).is_empty(), "zero is there");
        assert_eq!(faults(&rule, &json!({})).len(), 3);
    }
}
