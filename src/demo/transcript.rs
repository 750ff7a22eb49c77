//! The demo agent's transcript: the conversation, one JSON object a line, as Claude Code writes it. The file is in
//! `TASUKI_DEMO_DIR`, or else in a folder of this user's among the temporary files. Its name is the session's id, and
//! the first prompt creates it.

use super::faults::Faults;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The size of the context that the agent claims to have, in tokens.
const WINDOW: u64 = 100_000;
/// The model that the agent claims to be.
const MODEL: &str = "demo";
/// How many tokens of the context an empty conversation takes.
const BASE: u64 = 1_000;
/// How long the transcript of a session is kept after its last line.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);
/// How many files a new session looks at, to remove old ones.
const MOST_LOOKED_AT: usize = 2_000;
/// How many characters the agent counts as one token.
const CHARS_PER_TOKEN: u64 = 4;

/// The transcript file of one session.
#[derive(Debug, Default)]
pub struct DemoTranscript {
    dir: PathBuf,
    session_id: String,
    chars: u64,
    /// Lines that are written when they are due, oldest first.
    waiting: VecDeque<(Instant, String)>,
}

impl DemoTranscript {
    /// The transcript of a session that begins.
    #[must_use]
    pub fn new(session_id: &str) -> Self {
        let named = std::env::var_os("TASUKI_DEMO_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let own = || {
            let own = std::env::temp_dir().join(format!("tasuki-demo-agent-{}", nix::unistd::geteuid()));
            remove_old(&own, SystemTime::now());
            own
        };
        DemoTranscript {
            dir: named.unwrap_or_else(own),
            session_id: session_id.to_owned(),
            ..DemoTranscript::default()
        }
    }

    /// Writes all delayed lines, and continues in the file of another session.
    pub fn change_session(&mut self, session_id: &str) {
        self.flush();
        *self = DemoTranscript {
            dir: std::mem::take(&mut self.dir),
            session_id: session_id.to_owned(),
            ..DemoTranscript::default()
        };
    }

    /// The file's path; the file may not exist yet.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir.join(format!("{}.jsonl", self.session_id))
    }

    /// Writes a prompt.
    pub fn user(&mut self, prompt: &str, faults: &Faults, now: Instant) {
        self.count(prompt);
        let line = json!({"type": "user", "message": {"role": "user", "content": prompt}});
        self.line(line, faults, now);
    }

    /// The agent has answered with these blocks of text. With `split_blocks`, each block is a line of its own, and the
    /// result of a tool follows it.
    pub fn assistant(&mut self, blocks: &[String], faults: &Faults, now: Instant) {
        blocks.iter().for_each(|block| self.count(block));
        let id = format!("msg_{}", uuid::Uuid::new_v4().simple());
        let used = faults.number("tokens").unwrap_or(BASE + self.chars / CHARS_PER_TOKEN);
        let message = |blocks: &[String]| {
            let content: Vec<Value> = blocks.iter().map(|text| json!({"type": "text", "text": text})).collect();
            let usage = json!({"input_tokens": used, "context_window": WINDOW});
            let message = json!({"id": id, "role": "assistant", "model": MODEL, "content": content, "usage": usage});
            json!({"type": "assistant", "message": message})
        };
        if !faults.has("split_blocks") {
            return self.line(message(blocks), faults, now);
        }
        for block in blocks {
            self.line(message(std::slice::from_ref(block)), faults, now);
            let result = json!([{"type": "tool_result", "content": "done"}]);
            self.line(json!({"type": "user", "message": {"role": "user", "content": result}}), faults, now);
        }
    }

    /// The agent has used a tool. `done` is the tool's result or the reason for its failure; none if it still runs.
    pub fn tool(&mut self, name: &str, input: &Value, done: Option<Result<&str, &str>>, faults: &Faults, now: Instant) {
        let id = format!("toolu_{}", uuid::Uuid::new_v4().simple());
        let call = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
        let message = format!("msg_{}", uuid::Uuid::new_v4().simple());
        let message = json!({"id": message, "role": "assistant", "model": MODEL, "content": call});
        self.line(json!({"type": "assistant", "message": message}), faults, now);
        let Some(done) = done else { return };
        let (said, is_error) = match done {
            Ok(said) => (said, false),
            Err(said) => (said, true),
        };
        let result = json!([{"type": "tool_result", "tool_use_id": id, "content": said, "is_error": is_error}]);
        self.line(json!({"type": "user", "message": {"role": "user", "content": result}}), faults, now);
    }

    /// When the next delayed line is due.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// Writes the delayed lines that are due.
    pub fn advance(&mut self, now: Instant) {
        while self.due().is_some_and(|due| now >= due) {
            if let Some((_, line)) = self.waiting.pop_front() {
                self.write(&line);
            }
        }
    }

    /// Writes all delayed lines, due or not.
    pub fn flush(&mut self) {
        while let Some((_, line)) = self.waiting.pop_front() {
            self.write(&line);
        }
    }

    fn count(&mut self, text: &str) {
        self.chars = self.chars.saturating_add(text.chars().count() as u64);
    }

    fn line(&mut self, mut line: Value, faults: &Faults, now: Instant) {
        if faults.has("no_transcript") {
            return;
        }
        line["sessionId"] = json!(self.session_id);
        line["timestamp"] = json!(super::record::timestamp());
        let due = now + Duration::from_millis(faults.number("transcript_lag").unwrap_or(0));
        self.waiting.push_back((due, line.to_string()));
        self.advance(now);
    }

    /// An agent that can't write its transcript continues nevertheless.
    fn write(&self, line: &str) {
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        if !is_own(&self.dir) {
            return;
        }
        let flags = nix::fcntl::OFlag::O_NOFOLLOW.bits();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(self.path());
        let _ = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    }
}

/// Whether this is a folder of this user's, and no link: the folder for temporary files belongs to everybody.
fn is_own(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == nix::unistd::geteuid().as_raw())
}

/// Removes the transcripts of sessions that have written nothing for [`KEPT`].
fn remove_old(dir: &Path, now: SystemTime) {
    if !is_own(dir) {
        return;
    }
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().take(MOST_LOOKED_AT) {
        let is_old = |meta: fs::Metadata| {
            let age = meta.modified().ok().and_then(|changed| now.duration_since(changed).ok());
            meta.is_file() && age.is_some_and(|age| age > KEPT)
        };
        if entry.path().extension().is_some_and(|end| end == "jsonl") && entry.metadata().is_ok_and(is_old) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the file after a conversation.
    fn written(talk: impl FnOnce(&mut DemoTranscript, Instant)) -> Vec<Value> {
        let dir = tempfile::tempdir().expect("a folder");
        let mut kept =
            DemoTranscript { dir: dir.path().join("t"), session_id: "s".to_owned(), ..DemoTranscript::default() };
        talk(&mut kept, Instant::now());
        let text = fs::read_to_string(kept.path()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    fn blocks() -> Vec<String> {
        ["one", "two", "three"].map(str::to_owned).to_vec()
    }

    fn ids(lines: &[Value]) -> Vec<&str> {
        lines.iter().filter_map(|line| line["message"]["id"].as_str()).collect()
    }

    #[test]
    fn old_transcripts_are_removed_from_a_folder_of_the_users_own() {
        let dir = tempfile::tempdir().expect("a folder");
        let (own, link) = (dir.path().join("own"), dir.path().join("link"));
        fs::create_dir(&own).expect("made");
        std::os::unix::fs::symlink(&own, &link).expect("linked");
        for name in ["old.jsonl", "notes.txt"] {
            fs::write(own.join(name), "").expect("written");
        }
        let left = || fs::read_dir(&own).expect("listed").count();
        remove_old(&own, SystemTime::now());
        assert_eq!(left(), 2, "they are new");
        let later = SystemTime::now() + KEPT + Duration::from_secs(60);
        remove_old(&link, later);
        assert_eq!(left(), 2, "a link may lead into another program's folder");
        remove_old(&own, later);
        assert_eq!((left(), own.join("notes.txt").exists()), (1, true));
    }

    #[test]
    fn an_answer_is_one_message_in_one_line_or_in_several() {
        let talk = |faults: &str| {
            written(|kept, now| {
                kept.user("hello", &Faults::parse(faults), now);
                kept.assistant(&blocks(), &Faults::parse(faults), now);
            })
        };
        let whole = talk("");
        assert_eq!((whole.len(), whole[1]["message"]["content"].as_array().map(Vec::len)), (2, Some(3)));
        assert_eq!(whole[1]["message"]["usage"]["input_tokens"], 1_004);
        let split = talk("split_blocks");
        assert_eq!((split.len(), ids(&split).len()), (7, 3));
        assert!(ids(&split).iter().all(|id| *id == ids(&split)[0]));
    }

    #[test]
    fn a_tool_and_its_result_are_two_lines_with_one_id() {
        let lines = written(|kept, now| {
            let read = json!({"file_path": "/h/x.md"});
            kept.tool("Read", &read, Some(Ok("# Handoff")), &Faults::default(), now);
            kept.tool("Bash", &json!({"command": "sleep 9"}), None, &Faults::default(), now);
            kept.tool("Write", &read, Some(Err("no such folder")), &Faults::default(), now);
        });
        assert_eq!(lines.len(), 5);
        let call = &lines[0]["message"]["content"][0];
        let result = &lines[1]["message"]["content"][0];
        assert!(call["id"].is_string() && call["id"] == result["tool_use_id"], "{lines:?}");
        assert_eq!((&result["content"], &result["is_error"]), (&json!("# Handoff"), &json!(false)));
        assert_eq!(lines[4]["message"]["content"][0]["is_error"], true);
        assert!(lines.iter().all(|line| line["timestamp"].as_str().is_some_and(|at| at.ends_with('Z'))));
    }

    #[test]
    fn a_transcript_can_lag_be_missing_and_report_wrong_tokens() {
        let late = Faults::parse("transcript_lag=50,tokens=90000");
        let talk = |kept: &mut DemoTranscript, now| {
            kept.assistant(&blocks(), &late, now);
            kept.advance(now);
        };
        assert!(written(talk).is_empty());
        let found = written(|kept, now| {
            talk(kept, now);
            kept.advance(now + Duration::from_millis(50));
            assert!(kept.due().is_none());
        });
        assert_eq!(found[0]["message"]["usage"]["input_tokens"], 90_000);
        assert!(written(|kept, now| kept.user("hello", &Faults::parse("no_transcript"), now)).is_empty());
    }
}
