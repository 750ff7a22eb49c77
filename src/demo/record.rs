//! The recorder: with `TASUKI_DEMO_LOG=FILE` each prompt that the agent was given, and each event of interest, becomes
//! one JSON line in that file. Tests count the lines: a text that was typed twice is there twice.

use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The file for the lines, and the agent that each line names.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    file: Option<PathBuf>,
    agent_id: String,
    persona: String,
}

impl Recorder {
    /// A recorder that writes where the environment says.
    #[must_use]
    pub fn from_env() -> Self {
        let text = |name| std::env::var(name).unwrap_or_default();
        Recorder {
            file: std::env::var_os("TASUKI_DEMO_LOG").filter(|path| !path.is_empty()).map(PathBuf::from),
            agent_id: text("TASUKI_AGENT_ID"),
            persona: text("TASUKI_PERSONA"),
        }
    }

    /// Records that a prompt was submitted.
    pub fn prompt(&self, text: &str) {
        self.line(json!({"text": text}));
    }

    /// Something else happened: `started`, `exit`, `dialog_answered` …
    pub fn event(&self, name: &str) {
        self.line(json!({"event": name}));
    }

    fn line(&self, mut line: Value) {
        let Some(path) = &self.file else { return };
        line["at"] = json!(timestamp());
        line["agent_id"] = json!(self.agent_id);
        line["persona"] = json!(self.persona);
        line["pid"] = json!(std::process::id());
        // A recorder that can't write must not change what the agent does.
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// The present time, as tasuki writes times.
pub(super) fn timestamp() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    crate::core::time::rfc3339(i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
