//! The demo agent's tools. What it reads, writes and runs appears in its transcript, as a real agent's tool calls do.

use super::acknowledge::AckAction;
use super::app::App;
use super::document::read_document;
use super::plan::Act;
use crate::core::text::shell_word;
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Instant;

/// The largest number of names of a folder that the agent lists.
const MAX_NAMES: usize = 50;

impl App {
    /// Reads a document.
    pub(super) fn read_with_tool(&mut self, path: &Path, now: Instant) -> io::Result<String> {
        let read = read_document(path);
        self.note("Read", &json!({"file_path": path}), read.as_ref(), now);
        read
    }

    /// Runs a command of tasuki's.
    pub(super) fn run_with_tool(&mut self, words: &[String], now: Instant) {
        let ran = self.hooks.run_tool(words);
        self.say(&match &ran {
            Ok(said) => format!("I ran it: {said}"),
            Err(said) => format!("I was refused: {said}"),
        });
        let program = ["tasuki".to_owned()];
        let line = command_line(program.iter().chain(words));
        self.note("Bash", &json!({"command": line}), ran.as_ref(), now);
    }

    /// Lists the folder that the agent works in. The transcript says `ls`, but the agent reads the folder itself.
    pub(super) fn look(&mut self, now: Instant) {
        let names = fs::read_dir(".").map(|entries| {
            let names = entries.flatten().take(MAX_NAMES).map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
            names.sort();
            names.join("\n")
        });
        self.note("Bash", &json!({"command": "ls"}), names.as_ref(), now);
    }

    /// Notes in the transcript that a file was written, or could not be.
    pub(super) fn note_writing(&mut self, act: &Act, done: &io::Result<()>, now: Instant) {
        let (name, input) = match act {
            Act::Create(path, bytes) => {
                ("Write", json!({"file_path": path, "content": String::from_utf8_lossy(bytes)}))
            }
            Act::Append(path, bytes) => {
                ("Edit", json!({"file_path": path, "old_string": "", "new_string": String::from_utf8_lossy(bytes)}))
            }
            _ => return,
        };
        self.note(name, &input, done.as_ref().map(|()| "The file was written."), now);
    }

    /// Notes the commands of an acknowledgement in the transcript. It has no results, because they run beside the turn.
    pub(super) fn note_acknowledgement(&mut self, actions: &[AckAction], now: Instant) {
        for action in actions {
            if let AckAction::Run(words) = action {
                let input = json!({"command": command_line(words)});
                self.transcript.tool("Bash", &input, None, &self.faults, now);
            }
        }
    }

    fn note(&mut self, tool: &str, input: &Value, done: Result<impl AsRef<str>, impl Display>, now: Instant) {
        let done = done.map_err(|why| why.to_string());
        let done = done.as_ref().map(AsRef::as_ref).map_err(String::as_str);
        self.transcript.tool(tool, input, Some(done), &self.faults, now);
    }
}

fn command_line<'w>(words: impl IntoIterator<Item = &'w String>) -> String {
    words.into_iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}
