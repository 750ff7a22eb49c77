//! The `transcript` part of the profile format: how a CLI's own record of the conversation, one JSON object a line, is
//! read.

use super::condition::{Pattern, Pointer, When};
use super::tool_format::ToolsSection;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or tasuki.
    User,
    /// The agent.
    Assistant,
}

/// How the CLI's transcript is read: a file with one JSON object a line, whose path its hooks report. A line that no
/// rule fits means nothing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TranscriptSection {
    /// The CLI writes each prompt that it has taken into the transcript as soon as its hooks have ended. tasuki then
    /// takes this line, and not the hook's report, as the proof of delivery: the hook may report a prompt that the CLI
    /// drops a moment later.
    #[serde(default)]
    pub proves_prompts: bool,
    /// A line is left out if one of these fits: the talk of subordinate agents, the CLI's own error texts.
    #[serde(default)]
    pub skip: Vec<When>,
    /// A text is left out if one of these matches: what the CLI itself puts among a person's words.
    #[serde(default)]
    pub skip_texts: Vec<Pattern>,
    /// Where a line says when it was written.
    pub time: Option<Pointer>,
    /// Which lines are messages; the first rule that fits is taken.
    #[serde(default)]
    pub messages: Vec<MessageRule>,
    /// Where the transcript says how full the context is.
    pub context: Option<ContextUsageRule>,
    /// Where the transcript says which model answers.
    pub model: Option<ModelRule>,
    /// A line says that the CLI has summarised the conversation, to free its context, if all of these fit.
    #[serde(default)]
    pub compacted: Vec<When>,
    /// How the agent's tool calls are read; without it nothing is known of what the agent did.
    pub tools: Option<ToolsSection>,
}

/// Which lines are messages of one role, and where their text is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageRule {
    /// Whose: `user` or `assistant`.
    pub role: Role,
    /// All of these must fit.
    #[serde(default)]
    pub when: Vec<When>,
    /// Where the content is: a text, or a list of blocks.
    pub content: Pointer,
    /// Where, in a block, its kind is.
    #[serde(default = "kind_at")]
    pub block_kind: Pointer,
    /// The kinds of blocks that are text; with an empty list each block that has a text.
    #[serde(default = "text_kinds")]
    pub text_kinds: Vec<String>,
    /// Where, in a block, its text is.
    #[serde(default = "text_at")]
    pub block_text: Pointer,
    /// Where the message's id is, for a CLI that writes one message as several lines. Without it each line is a
    /// message.
    pub id: Option<Pointer>,
    /// Each of those lines has the whole message so far, and not only a part of it.
    #[serde(default)]
    pub whole: bool,
}

/// Where a transcript says which model answers. The last line that fits and has a name counts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelRule {
    /// All of these must fit.
    #[serde(default)]
    pub when: Vec<When>,
    /// Where the model's name is.
    pub at: Pointer,
}

/// Where a transcript says how full the context is. The last line that fits and has tokens counts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContextUsageRule {
    /// All of these must fit.
    #[serde(default)]
    pub when: Vec<When>,
    /// The numbers whose sum is the tokens used; missing ones count as 0.
    pub used: Vec<Pointer>,
    /// Where the size of the window is.
    pub window: Option<Pointer>,
    /// Where the model's name is, for `windows`.
    pub model: Option<Pointer>,
    /// The size of the window by model, if the transcript does not say it; the first rule that matches. It is a guess,
    /// and gives way to a size that the CLI itself has reported.
    #[serde(default)]
    pub windows: Vec<ModelWindow>,
}

/// The size of some models' context window.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelWindow {
    /// Matched against the model's name, which is empty if the transcript does not say it.
    pub model: Pattern,
    /// Its size in tokens.
    pub tokens: u64,
}

impl MessageRule {
    /// The text blocks of a line's content, in their order.
    pub(super) fn texts<'v>(&self, line: &'v Value) -> Vec<&'v str> {
        let block = |block: &'v Value| match block {
            Value::String(text) => Some(text.as_str()),
            block => {
                let kind = || self.block_kind.find(block)?.as_str();
                let is_text = self.text_kinds.is_empty() || kind().is_some_and(|kind| self.is_text_kind(kind));
                is_text.then(|| self.block_text.find(block)?.as_str()).flatten()
            }
        };
        match self.content.find(line) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(blocks)) => blocks.iter().filter_map(block).collect(),
            _ => Vec::new(),
        }
    }

    fn is_text_kind(&self, kind: &str) -> bool {
        self.text_kinds.iter().any(|text| text == kind)
    }
}

fn kind_at() -> Pointer {
    Pointer::constant("/type")
}

fn text_at() -> Pointer {
    Pointer::constant("/text")
}

fn text_kinds() -> Vec<String> {
    vec!["text".to_owned()]
}
