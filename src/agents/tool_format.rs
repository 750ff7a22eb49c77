//! The `transcript.tools` part of the profile format: how the tool calls of an agent, and their results, are read from
//! its transcript.

use super::condition::{Pattern, Pointer, When};
use schemars::JsonSchema;
use serde::Deserialize;

/// How tool calls are read. A call and its result may be in different lines of the transcript, or in one. Every rule
/// that fits a line or block reads it, not only the first.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolsSection {
    /// Where the calls are. A line that repeats the id of an earlier call is not another call.
    pub calls: Vec<CallRule>,
    /// Where the results are. If a call has several, each adds what is not known from an earlier one.
    #[serde(default)]
    pub results: Vec<ResultRule>,
    /// What the tools do, by their names. A tool that is in several rules does several things; a tool that is in none
    /// is left out.
    pub uses: Vec<UseRule>,
}

/// Where tool calls are.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallRule {
    /// All of these must fit the line.
    #[serde(default)]
    pub when: Vec<When>,
    /// Where, in the line, the list of blocks is. Without it the line itself is the block.
    pub blocks: Option<Pointer>,
    /// All of these must fit the block.
    #[serde(default)]
    pub block_when: Vec<When>,
    /// Where, in the block, the tool's name is.
    pub name: Pointer,
    /// Where, in the block, the call's id is, by which its result is found.
    pub id: Option<Pointer>,
    /// Where, in the block, the input of the tool is: JSON, or a text, which may itself be JSON. Without it the block
    /// itself is the input.
    pub input: Option<Pointer>,
    /// Where, in the line, the time is: a text, or a number of milliseconds since 1970.
    pub time: Option<Pointer>,
}

/// Where results are, and what they say.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResultRule {
    /// All of these must fit the line.
    #[serde(default)]
    pub when: Vec<When>,
    /// Where, in the line, the list of blocks is. Without it the line itself is the block.
    pub blocks: Option<Pointer>,
    /// All of these must fit the block.
    #[serde(default)]
    pub block_when: Vec<When>,
    /// Where, in the block, the id of the call is. Without it the result is that of the latest call.
    pub id: Option<Pointer>,
    /// The call has failed if one of these fits the block, and otherwise has not. An exit status other than 0, and the
    /// group `failed` of `pattern`, show a failure too. If this is not set, an exit status of 0 shows that the call has
    /// not failed.
    #[serde(default)]
    pub failed: Vec<When>,
    /// Where, in the block, the exit status of a command is. A command with one other than 0 has failed.
    pub exit: Option<Pointer>,
    /// Where, in the block, the tool's output is.
    pub text: Option<Pointer>,
    /// For a CLI that puts more than the output into that text: a pattern with one or more of the groups `exit` (the
    /// exit status), `printed` (what the tool itself printed) and `failed` (if it matches anything, the call has
    /// failed).
    pub pattern: Option<Pattern>,
}

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// It writes a file, or changes or removes one.
    Write,
    /// It reads a file.
    Read,
    /// It runs a command line.
    Command,
}

/// What the tools with some names do, and to what.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UseRule {
    /// The names of the tools.
    pub names: Vec<String>,
    /// What they do: `write` or `read` (a file), or `command`.
    pub kind: ToolKind,
    /// Where, in the input, the path or the command line is: a text, a list of texts, or an object with paths as keys.
    /// The first place that has one counts. If none has one, or no place is given, the input itself is used, if it is a
    /// text.
    #[serde(default)]
    pub at: Vec<Pointer>,
    /// For a place with a longer text, such as a patch: a pattern with a group `path`, or `command` for a command line.
    /// Each match is one.
    pub pattern: Option<Pattern>,
}

impl ToolKind {
    /// The group, in a pattern, that holds the path or the command line.
    pub(super) fn group(self) -> &'static str {
        match self {
            ToolKind::Write | ToolKind::Read => "path",
            ToolKind::Command => "command",
        }
    }
}

impl ToolsSection {
    /// The first fault that serde can't find: the key, and what is wrong with it.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let has = |pattern: &Pattern, groups: &[&str]| {
            pattern.regex().capture_names().flatten().any(|name| groups.contains(&name))
        };
        let wrong_use = self
            .uses
            .iter()
            .find(|rule| rule.pattern.as_ref().is_some_and(|pattern| !has(pattern, &[rule.kind.group()])));
        if let Some(rule) = wrong_use {
            let group = rule.kind.group();
            return Some((
                "transcript.tools.uses",
                format!("a pattern needs a group named `{group}`, as in (?<{group}>.*)"),
            ));
        }
        let is_wrong = |rule: &ResultRule| {
            rule.pattern.as_ref().is_some_and(|pattern| !has(pattern, &["exit", "printed", "failed"]))
        };
        self.results.iter().any(is_wrong).then(|| {
            let message = "a pattern needs a group named `exit`, `printed` or `failed`, as in (?<exit>[0-9]+)";
            ("transcript.tools.results", message.to_owned())
        })
    }
}
