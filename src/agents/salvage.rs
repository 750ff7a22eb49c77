//! The end of a conversation as Markdown, for the successor of an agent that could not write its document.

use super::transcript::{Role, Transcript, TranscriptMessage};
use crate::core::cut;
use crate::core::text::sanitise;

impl Transcript {
    /// The end of the conversation as Markdown: the latest messages that fit into `max_bytes`, oldest first, each under
    /// a heading and inside a fence that it can't break, without anything that drives a terminal. Of a message that is
    /// longer than a quarter of `max_bytes`, the middle is left out.
    #[must_use]
    pub fn salvage(&self, max_bytes: usize) -> String {
        let mut parts = Vec::new();
        let mut room = max_bytes;
        for said in self.said.iter().rev() {
            let part = part(said, max_bytes / 4);
            if part.len() > room {
                break;
            }
            room -= part.len();
            parts.push(part);
        }
        parts.into_iter().rev().collect()
    }
}

impl Transcript {
    /// The last message of one role, inside a fence; none if there is none.
    #[must_use]
    pub fn last_of(&self, role: Role, max_bytes: usize) -> Option<String> {
        let said = self.said.iter().rfind(|said| said.role == role)?;
        Some(fenced(&said.text, max_bytes))
    }
}

fn part(said: &TranscriptMessage, most: usize) -> String {
    let heading = match said.role {
        Role::User => "### User",
        Role::Assistant => "### Agent",
    };
    format!("{heading}\n\n{}\n\n", fenced(&said.text, most))
}

/// A text inside a fence that it can't close, and without its middle if it is too long.
fn fenced(text: &str, most: usize) -> String {
    let text = shorten(&sanitise(text), most);
    let fence = fence(&text);
    format!("{fence}text\n{}\n{fence}", text.trim_matches('\n'))
}

/// The beginning and the end of a text that is too long.
fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = (cut::beginning(text, most / 2), cut::end(text, most / 2));
    format!("{head}\n[… {} bytes are left out here …]\n{tail}", text.len() - head.len() - tail.len())
}

/// A fence that the text can't close: longer than any run of its character in the text. Of the two fence characters it
/// uses the one that needs the shorter fence.
fn fence(text: &str) -> String {
    let longest = |mark: char| text.split(|c| c != mark).map(str::len).max().unwrap_or(0);
    let (ticks, tildes) = (longest('`'), longest('~'));
    let (mark, length) = if ticks <= tildes { ('`', ticks) } else { ('~', tildes) };
    String::from(mark).repeat((length + 1).max(3))
}
