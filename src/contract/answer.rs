//! The answer to a request, and why a file was not taken, as others see them.

use super::words::without_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `spool/results/<request_id>.json`: the one answer to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct ResultFile {
    /// The format's version: 1.
    pub v: u8,
    /// The name of the request's file without `.json`.
    pub request_id: String,
    /// The request's kind; null where it could not be read.
    pub kind: Option<String>,
    /// The outcome, as a status code of HTTP.
    pub status: u16,
    /// True for every status from 200 to 299.
    pub ok: bool,
    /// What the kind answers; only there when `ok` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why not; only there when `ok` is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<RefusedView>,
    /// When it was decided: UTC, milliseconds, `Z`.
    pub at: String,
    /// SHA-256 of the request file's bytes, in lower-case hexadecimal; empty where they were not read.
    pub request_sha256: String,
}

/// Why something was not done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
#[schemars(rename = "Refused")]
pub struct RefusedView {
    /// The error code.
    pub code: String,
    /// The message: one sentence.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The field of the request that is wrong, if it is a single field. With code `refused`: why nothing was typed,
    /// such as `busy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line of the file, counted from 1, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column of that line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// Everything that is wrong, where that may be more than one thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<Fault>>,
}

/// One of several things that are wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct Fault {
    /// Where: a JSON pointer into the request, or the id of the work item that prevents it.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

/// `spool/rejected/<seq>-<name>.why.json`, and the same in `fleet/rejected`: why a file could not be taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(transform = without_defaults)]
pub struct WhyFile {
    /// The format's version: 1.
    pub v: u8,
    /// When: UTC, milliseconds, `Z`.
    pub at: String,
    /// The error code.
    pub code: String,
    /// The message: one sentence.
    pub message: String,
    /// The field that is wrong, if it is a single field.
    pub field: Option<String>,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The column, counted from 1.
    pub column: Option<u64>,
    /// The file's name as it was dropped, made safe to print.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// SHA-256 of its bytes, where it could be read.
    pub sha256: Option<String>,
}
