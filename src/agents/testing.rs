//! What tests of transcripts share.

use super::ProfileFile;
use super::profile::{Profile, Profiles};
use serde_json::{Value, json};
use std::io::Write;

/// A built-in profile.
pub(super) fn profile(name: &str) -> Profile {
    Profiles::load(None).expect("built in").get(name).expect("a profile").clone()
}

/// A profile that does not say how its CLI's transcript is read.
pub(super) fn without_rules() -> Profile {
    let demo = profile("demo");
    Profile { file: ProfileFile { transcript: None, ..demo.file.clone() }, ..demo }
}

/// A file with these lines.
pub(super) fn written(lines: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(lines.as_bytes()).expect("written");
    file
}

/// A line of the demo agent's transcript in which its user says this.
pub(super) fn user(text: &str) -> Value {
    json!({"type":"user","message":{"content":text}})
}

/// A token. It is put together here, so that no file holds anything that looks like a token.
pub(super) fn token() -> String {
    ["ghp_q7Zk2Vx9Lm4TcR8w", "Yb3NfJ6sHd5GpA1eUoXi"].concat()
}

/// Whether a text holds the token whole, or no part of it that could be of use.
pub(super) fn is_whole_or_gone(text: &str) -> bool {
    let token = token();
    text.contains(&token) || !(0..token.len() - 6).any(|at| text.contains(&token[at..at + 6]))
}
