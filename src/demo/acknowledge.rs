//! How the demo agent acknowledges its handoff when a prompt tells it to: with the command that the prompt names, or by
//! a file. With faults it acknowledges wrongly, late or not at all.

use super::document::read_document;
use super::faults::Faults;
use crate::core::handoff::document;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long the command may take before it is killed.
const WITHIN: Duration = Duration::from_secs(60);

/// How to acknowledge, as a prompt says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AckInstructions {
    /// The command's words, up to `ack`.
    pub command: Vec<String>,
    /// The folder for request files.
    pub requests: PathBuf,
    /// The request to fill in, if the ACK is to be a file.
    pub form: Value,
}

/// What the demo agent does about the request for an ACK.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AckAction {
    Run(Vec<String>),
    Drop(PathBuf, Value),
}

/// Finds in a prompt how to acknowledge.
#[must_use]
pub fn asked(prompt: &str) -> Option<AckInstructions> {
    let line = prompt.lines().find(|line| line.contains(" ack --understanding "))?;
    let command = words(line.split(" ack --understanding ").next()?);
    let form = prompt.lines().map(str::trim).find(|line| line.starts_with("{\"v\":1,\"kind\":\"ack\""))?;
    let requests = prompt.split('`').find(|part| part.starts_with('/') && part.ends_with("requests"))?;
    Some(AckInstructions { command, requests: requests.into(), form: serde_json::from_str(form).ok()? })
}

/// Splits a command line into words. Single quotes count as in a shell; a backslash outside of them is dropped.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quoted, mut begun) = (String::new(), false, false);
    let mut letters = line.trim().chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => (quoted, begun) = (!quoted, true),
            '\\' if !quoted => word.extend(letters.next()),
            ' ' if !quoted => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            letter => word.push(letter),
        }
    }
    words.push(word);
    words
}

/// What the agent does when it is asked to acknowledge. `document`: the path of the document that it has read. The ACK
/// names the checkpoint in it.
#[must_use]
pub fn actions(prompt: &str, asked: &AckInstructions, document: Option<&Path>, faults: &Faults) -> Vec<AckAction> {
    let is_reminder = prompt.contains("[REMINDER]");
    if faults.has("ack_never") || (faults.has("ack_on_reminder") && !is_reminder) {
        return Vec::new();
    }
    if faults.has("ack_malformed") && !prompt.contains("did not have the right form") {
        let mut form = asked.form.clone();
        form["understanding"] = json!("");
        return vec![drop_of(asked, form)];
    }
    let understanding = "to continue where the document ends".to_owned();
    let starting_from = document
        .and_then(|path| read_document(path).ok())
        .and_then(|text| document::checkpoint(&text))
        .unwrap_or_else(|| "the end of the document".to_owned());
    let mut status = "ready_to_proceed";
    let mut questions = Vec::new();
    if faults.has("ack_questions") && !prompt.contains("Answers to your questions") {
        status = "needs_clarification";
        questions.push("Which branch is it?".to_owned());
    }
    if faults.has("ack_reject") {
        status = "rejected";
    }
    if faults.has("ack_environment") {
        status = "environment_issue";
    }
    if faults.has("ack_file") {
        let mut form = asked.form.clone();
        form["understanding"] = json!(understanding);
        form["starting_from"] = json!(starting_from);
        form["questions"] = json!(questions);
        form["status"] = json!(status);
        return vec![drop_of(asked, form)];
    }
    let mut words = asked.command.clone();
    let flags = ["ack", "--understanding", &understanding, "--starting-from", &starting_from, "--status", status];
    words.extend(flags.map(str::to_owned));
    words.extend(questions.into_iter().flat_map(|question| ["--question".to_owned(), question]));
    if let Some(other) = faults.text("ack_other") {
        words.extend(["--handoff".to_owned(), other.to_owned()]);
    }
    let times = if faults.has("ack_twice") { 2 } else { 1 };
    vec![AckAction::Run(words); times]
}

fn drop_of(asked: &AckInstructions, form: Value) -> AckAction {
    AckAction::Drop(asked.requests.clone(), form)
}

/// Carries out the actions one after the other on a thread of their own, so that a command that hangs does not hang the
/// terminal.
pub fn begin(actions: Vec<AckAction>) {
    std::thread::spawn(move || actions.iter().for_each(perform));
}

fn perform(action: &AckAction) {
    match action {
        AckAction::Run(words) => run(words),
        AckAction::Drop(requests, form) => {
            let name = format!("ack-{}.json", super::hooks::new_id());
            let scratch = requests.with_file_name("tmp").join(&name);
            // An agent that can't write the file continues, and is reminded.
            if fs::write(&scratch, form.to_string()).is_ok() {
                let _ = fs::rename(&scratch, requests.join(&name));
            }
        }
    }
}

fn run(words: &[String]) {
    let [program, arguments @ ..] = words else { return };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(child) = command.spawn() {
        super::hooks::wait(child, WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Read `/h/x.md`.\n\n/opt/my\\ x --home '/h o/m' ack --understanding \"the task\" --status s\n\
        into `/h o/m/spool/requests` instead:\n\n{\"v\":1,\"kind\":\"ack\",\"handoff_id\":\"h\",\"agent_id\":\"a\"}\n";

    fn done(faults: &str, prompt: &str) -> Vec<AckAction> {
        actions(prompt, &asked(prompt).expect("it is asked"), None, &Faults::parse(faults))
    }

    #[test]
    fn a_prompt_tells_how() {
        let asked = asked(PROMPT).expect("it is asked");
        assert_eq!(asked.command, ["/opt/my x", "--home", "/h o/m"]);
        assert_eq!(words(r"'/a'\''b c' d\e"), ["/a'b c", "de"]);
        assert_eq!((asked.requests, &asked.form["agent_id"]), (PathBuf::from("/h o/m/spool/requests"), &json!("a")));
        assert!(super::asked("Run `tasuki ack` some day.").is_none());
    }

    #[test]
    fn faults_change_what_is_done() {
        assert!(
            matches!(done("", PROMPT).as_slice(), [AckAction::Run(words)] if words.contains(&"ready_to_proceed".to_owned()))
        );
        assert!(done("ack_never", PROMPT).is_empty() && done("ack_on_reminder", PROMPT).is_empty());
        assert_eq!(done("ack_on_reminder", &format!("[REMINDER]\n{PROMPT}")).len(), 1);
        assert_eq!(done("ack_twice", PROMPT).len(), 2);
        let wrong = done("ack_malformed", PROMPT);
        assert!(matches!(wrong.as_slice(), [AckAction::Drop(_, form)] if form["understanding"] == ""));
        let right = done("ack_malformed", &format!("Yours did not have the right form.\n{PROMPT}"));
        assert!(matches!(right.as_slice(), [AckAction::Run(_)]));
        let asks = done("ack_questions", PROMPT);
        assert!(matches!(asks.as_slice(), [AckAction::Run(words)] if words.contains(&"--question".to_owned())));
    }
}
