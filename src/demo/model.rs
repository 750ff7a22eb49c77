//! The demo agent's understanding: what a prompt asks, and what to answer. Pure. It remembers earlier prompts, so that
//! each agent's document is different.

use super::flaws::MAX_KEPT;
use super::work::{NotifiedWork, notice};
use crate::core::check::without_front_matter;
use std::path::PathBuf;

/// What a prompt asks the demo agent for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// To write a handoff document at a path.
    Write(PathBuf),
    /// To read a document and continue its work.
    Read(PathBuf),
    /// To act on a text in a file, because the text was too long to be typed.
    Follow(PathBuf),
    /// To give the handoff document as its answer.
    Reply,
    Work(NotifiedWork),
    Answer,
}

const MAX_MEMORY: usize = 20;
/// Longest gist of a prompt, in characters.
const MAX_GIST: usize = 160;

/// What the demo agent remembers.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// The agent's id, or its session's id if tasuki did not start the agent.
    pub agent: String,
    pub persona: String,
    pub cwd: String,
    /// The gists of what it was asked, oldest first.
    pub prompts: Vec<String>,
    /// The gist of the predecessor's document.
    pub inherited: Option<String>,
    /// The whole document of the predecessor without its front matter, if it is at most [`MAX_KEPT`] long.
    pub predecessor: Option<String>,
}

/// Finds out what a prompt asks: by its beginning, or else by the word `write` or `read` that is nearest before the
/// path of a document.
#[must_use]
pub fn understand(prompt: &str) -> Task {
    // tasuki may type a line of its own before the text.
    let mut beginning = prompt.lines().filter(|line| !line.trim().is_empty()).take(2).map(str::trim_start);
    if beginning.clone().any(|line| line.starts_with("<handoff-context>")) {
        return Task::Answer;
    }
    if beginning.clone().any(|line| line.starts_with("Answer with a handoff document")) {
        return Task::Reply;
    }
    let takes_over = is_delivered(prompt) && beginning.any(|line| line.starts_with("Here is your handoff from agent"));
    if let Some(work) = notice(prompt).filter(|_| is_delivered(prompt)) {
        return Task::Work(work);
    }
    let Some((at, path)) = document_path(prompt) else { return Task::Answer };
    let path = PathBuf::from(path);
    if path.components().any(|part| part.as_os_str() == "texts") {
        return Task::Follow(path);
    }
    match nearest_verb(&prompt[..at]).or_else(|| nearest_verb(prompt)) {
        // A briefing may mention writing: that must not make the agent write to its predecessor's document.
        Some("write") if !takes_over => Task::Write(path),
        _ => Task::Read(path),
    }
}

/// The first absolute path in backticks that ends in `.md`, and its position.
fn document_path(prompt: &str) -> Option<(usize, &str)> {
    let mut rest = 0;
    while let Some(open) = prompt[rest..].find('`').map(|at| rest + at) {
        let close = open + 1 + prompt[open + 1..].find('`')?;
        let inside = &prompt[open + 1..close];
        if inside.starts_with('/') && inside.ends_with(".md") && !inside.contains('\n') {
            return Some((open, inside));
        }
        rest = close;
    }
    None
}

fn nearest_verb(text: &str) -> Option<&'static str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.rev().find_map(|word| match word.to_lowercase().as_str() {
        "write" => Some("write"),
        "read" => Some("read"),
        _ => None,
    })
}

/// Whether tasuki typed this prompt.
#[must_use]
pub fn is_delivered(prompt: &str) -> bool {
    prompt.contains("(tasuki delivery ")
}

/// Whether a prompt asks to repair a document that was written before.
#[must_use]
pub fn is_rework(prompt: &str) -> bool {
    is_delivered(prompt) && prompt.lines().any(|line| line.starts_with("Write your handoff document once more"))
}

/// A prompt in one line: its first line, or, of a text that tasuki typed, the first line after tasuki's own.
#[must_use]
pub fn gist(prompt: &str) -> String {
    let skip = usize::from(is_delivered(prompt));
    let lines = prompt.lines().map(|line| line.trim_start_matches(['#', '-', '*', ' ', '>']).trim());
    let line = lines.skip(skip).find(|line| !line.is_empty() && !is_frame(line));
    let line: String = line.unwrap_or_default().chars().filter(|c| *c != '`').collect();
    if line.chars().count() <= MAX_GIST {
        line
    } else {
        format!("{}…", line.chars().take(MAX_GIST).collect::<String>())
    }
}

fn is_frame(line: &str) -> bool {
    line.starts_with("(tasuki delivery") || line.starts_with("<handoff-context>")
}

impl Memory {
    /// Remembers a prompt, to name it in the document.
    pub fn remember(&mut self, prompt: &str) {
        let gist = gist(prompt);
        if !gist.is_empty() {
            self.prompts.push(gist);
        }
        if self.prompts.len() > MAX_MEMORY {
            self.prompts.remove(0);
        }
    }

    /// Forgets the conversation: a new session begins.
    pub fn forget(&mut self) {
        self.prompts.clear();
        self.inherited = None;
        self.predecessor = None;
    }

    /// The handoff document, in the first person, with its six sections.
    #[must_use]
    pub fn document(&self, instruction: &str) -> String {
        let focus = instruction.lines().find_map(|line| line.trim().strip_prefix("Additional focus:")).map(str::trim);
        let asked = |text: &str| format!("- I was asked: {text}\n");
        let worked: String = match self.prompts.len() {
            0 => "I was given no work before I was asked for this document.\n".into(),
            _ => self.prompts.iter().map(|text| asked(text)).collect(),
        };
        let inherited =
            self.inherited.as_ref().map(|text| format!("I took over from an earlier agent, which left: {text}\n\n"));
        let latest = self.prompts.last().map_or("waiting for a first task", String::as_str);
        format!(
            "---\ncheckpoint: {latest}\nverified: none, I ran no checks\n---\n\n\
             # Handoff from {persona}\n\n\
             I am the demo agent {agent}. I worked in {cwd}. I am a small program: I change no files of a project and run no tests, so all that I can pass on is what I was asked and what I answered.\n\n\
             ## What I was working on\n\n{inherited}{worked}\n\
             ## Current progress\n\nI answered {count} of {count} prompts; the latest was: {latest}\n\n\
             ## Key decisions and why\n\nI answered each prompt at once and kept notes of all of them, because my successor knows only what I write down.\n{focus}\n\
             ## Blockers\n\nNone that I know of.\n\n\
             ## Files modified\n\nNone but this document.\n\n\
             ## Next steps\n\nContinue from: {latest}\n\nLook around first: `ls {cwd}`\n",
            persona = if self.persona.is_empty() { "an agent without a persona" } else { &self.persona },
            agent = self.agent,
            cwd = self.cwd,
            inherited = inherited.unwrap_or_default(),
            count = self.prompts.len(),
            focus =
                focus.map(|focus| format!("\nI was asked to look at this above all: {focus}\n")).unwrap_or_default(),
        )
    }

    /// The handoff document as an answer, in three blocks.
    #[must_use]
    pub fn reply(&self, instruction: &str) -> Vec<String> {
        let focus = instruction.lines().find_map(|line| line.trim().strip_prefix("Additional focus:")).map(str::trim);
        let latest = self.prompts.last().map_or("waiting for a first task", String::as_str);
        let done: String = self.prompts.iter().map(|text| format!("- [x] {text}\n")).collect();
        let inherited = self.inherited.as_deref().unwrap_or("nothing from an earlier agent");
        vec![
            format!(
                "---\ncheckpoint: {latest}\nverified: none, I ran no checks\n---\n\n## Goal\n\n{latest}\n\n## Constraints & Preferences\n\n{}\n",
                focus.unwrap_or("(none)")
            ),
            format!(
                "## Progress\n\nI answered every prompt that I got, and nothing has left this machine:\n\n{done}\n## Key Decisions\n\n- **Answer at once**: nobody waits. I kept notes of all prompts, because my successor knows only what I write down; I change no files of a project and run no tests, so all that I can pass on is what I was asked and what I answered.\n"
            ),
            format!(
                "## Critical Context\n\nI worked in {0}, with {inherited}. I am a small program, so nothing else is needed to continue.\n\n## Next Steps\n\n1. {latest}\n2. Look around: `ls {0}`",
                self.cwd
            ),
        ]
    }

    /// Keeps in memory what a predecessor's document says, and returns the answer to it.
    pub fn inherit(&mut self, document: &str) -> String {
        let bytes = document.len();
        let document = without_front_matter(document);
        self.predecessor = Some(document.to_owned()).filter(|text| text.len() <= MAX_KEPT);
        let next = document.rsplit_once("## Next steps").map_or(document, |(_, next)| next);
        let next = gist(next);
        let first = gist(document);
        self.inherited = Some(if first.is_empty() { "an empty document".into() } else { first });
        format!("I have read the handoff document ({bytes} bytes). I will continue: {next}")
    }

    /// A short answer to a prompt that asks for nothing special.
    #[must_use]
    pub fn answer(&self, prompt: &str) -> String {
        format!("Understood ({} so far): {}", self.prompts.len(), gist(prompt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verb_before_the_path_decides() {
        let path = PathBuf::from("/h/handoffs/20261121T200000-6f1c3a52.md");
        let write =
            format!("You are about to be replaced. Please write a handoff document to `{}` now.", path.display());
        assert_eq!(understand(&write), Task::Write(path.clone()));
        let read = format!(
            "Your predecessor was asked to write things down. Read the file `{}` and continue.",
            path.display()
        );
        assert_eq!(understand(&read), Task::Read(path.clone()));
        let after = format!("`{}` is where you write it.", path.display());
        assert_eq!(understand(&after), Task::Write(path));
        assert_eq!(understand("Please read `notes.md` and `x`"), Task::Answer);
        assert_eq!(understand("an odd ` backtick and /a/b.md"), Task::Answer);
        assert!(matches!(understand("Read `/h/personas/dev/texts/5f2a9c81d0e3.md` and do it."), Task::Follow(_)));
    }

    #[test]
    fn a_briefing_that_speaks_of_writing_makes_nobody_write() {
        let briefing = "Here is your handoff from agent 6f1c3a52.\nIts document is `/h/x.md`.\n\nWrite an ack file, or run the command.\n(tasuki delivery 5f2a9c81d0e3.)";
        assert_eq!(understand(briefing), Task::Read(PathBuf::from("/h/x.md")));
    }

    #[test]
    fn the_document_tells_what_this_agent_was_asked() {
        let mut memory =
            Memory { agent: "6f1c3a52".into(), persona: "dev".into(), cwd: "/w".into(), ..Memory::default() };
        memory.remember("Your skill follows.\n# Skill of the developer\nmore\n(tasuki delivery 5f2a9c81d0e3.)");
        memory.remember("fix the login test");
        let document = memory.document("Write it to `/x.md`.\nAdditional focus: the flaky test");
        for part in ["Skill of the developer", "fix the login test", "6f1c3a52", "the flaky test"] {
            assert!(document.contains(part), "{part}");
        }
        assert_eq!(document.matches("\n## ").count(), 6);
    }

    #[test]
    fn a_prompts_beginning_shows_a_reply_or_a_handoffs_context() {
        let framed = |body: &str| format!("A line of ours.\n{body}\n(tasuki delivery 5f2a9c81d0e3.)");
        let reply = "Answer with a handoff document: do not write to `/x.md`.\nAdditional focus: speed";
        assert_eq!((understand(reply), understand(&framed(reply))), (Task::Reply, Task::Reply));
        let context = framed("<handoff-context>\n# Goal\nread `/x.md`\n</handoff-context>\nContinue.");
        assert_eq!(understand(&context), Task::Answer);
        assert_eq!(gist(&context), "Goal");
        let blocks = Memory::default().reply(reply);
        assert_eq!((blocks.len(), blocks.join("\n").matches("## ").count()), (3, 6));
        assert!(blocks[0].contains("speed"));
    }

    #[test]
    fn an_inherited_document_is_passed_on() {
        let mut memory = Memory::default();
        let answer = memory.inherit("# Handoff from dev\n\n## Next steps\n\nContinue from: the login test\n");
        assert!(answer.contains("the login test"));
        assert!(memory.document("").contains("Handoff from dev"));
        memory.forget();
        assert!(!memory.document("").contains("Handoff from dev"));
    }
}
