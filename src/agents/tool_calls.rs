//! Reads an agent's tool calls, and their results, from the lines of its transcript.

use super::condition::{Pointer, When};
use super::rules::{all_fit, fits, text_at};
use super::tool_format::{CallRule, ResultRule, ToolsSection, UseRule};
use crate::core::cut;
use crate::core::time::{millis, rfc3339};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::VecDeque;

pub use super::tool_format::ToolKind;

/// How many calls are kept: the last ones.
pub const MAX_CALLS: usize = 2_000;
/// How far back the call of a result is searched for, in calls.
const MAX_BACK: usize = 256;
/// How many files one call may write or read.
const MAX_FILES: usize = 200;
/// Longest path that is taken over, in bytes.
const MAX_PATH: usize = 4_096;
/// How much is kept of what a command printed, from its end, in bytes.
const MAX_PRINTED: usize = 4_096;

/// What one tool call did to one file, or the command line that it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    pub kind: ToolKind,
    /// The path, as the call names it, or the command line.
    pub target: String,
    /// The exit status of a command; `None` if the transcript does not say.
    pub exit: Option<i64>,
    /// Whether it failed; `None` if the transcript does not say, or has no result.
    pub failed: Option<bool>,
    /// The end of what a command printed, at most 4 KiB.
    pub printed: Option<String>,
    /// When it was called: UTC, milliseconds, `Z`.
    pub at: Option<String>,
}

/// One call in a line. It may have several uses: with a patch, an agent changes several files at once.
#[derive(Debug)]
pub(super) struct FoundCall {
    id: Option<String>,
    /// What it does, and to what.
    pub(super) uses: Vec<(ToolKind, String)>,
    at: Option<String>,
}

/// What a result says of its call.
struct Outcome {
    exit: Option<i64>,
    failed: Option<bool>,
    printed: Option<String>,
}

/// Puts calls and their results together, line by line.
pub(super) struct CallReader<'r> {
    rules: &'r ToolsSection,
    calls: VecDeque<(Option<String>, ToolCall)>,
}

impl<'r> CallReader<'r> {
    pub(super) fn new(rules: &'r ToolsSection) -> Self {
        CallReader { rules, calls: VecDeque::new() }
    }

    pub(super) fn take(&mut self, line: &Value) {
        for found in calls_in(self.rules, line) {
            self.call(found);
        }
        for rule in &self.rules.results {
            for block in blocks(line, &rule.when, rule.blocks.as_ref(), &rule.block_when) {
                self.result(rule, block);
            }
        }
    }

    /// The last calls, oldest first.
    pub(super) fn calls(self) -> Vec<ToolCall> {
        self.calls.into_iter().map(|(_, call)| call).collect()
    }

    fn call(&mut self, found: FoundCall) {
        let is_same = |(id, _): &&(Option<String>, ToolCall)| *id == found.id;
        if found.id.is_some() && self.calls.iter().rev().take(MAX_BACK).any(|call| is_same(&call)) {
            return;
        }
        for (kind, target) in found.uses {
            if self.calls.len() == MAX_CALLS {
                self.calls.pop_front();
            }
            let call = ToolCall { kind, target, exit: None, failed: None, printed: None, at: found.at.clone() };
            self.calls.push_back((found.id.clone(), call));
        }
    }

    fn result(&mut self, rule: &ResultRule, block: &Value) {
        let id = match &rule.id {
            Some(at) => text_at(block, at),
            None => self.calls.back().and_then(|(id, _)| id.clone()),
        };
        if rule.id.is_some() && id.is_none() {
            return;
        }
        let back = if id.is_some() { MAX_BACK } else { 1 };
        let mut outcome = None;
        for (_, call) in self.calls.iter_mut().rev().take(back).filter(|(of, _)| *of == id) {
            outcome.get_or_insert_with(|| Outcome::read(rule, block)).add_to(call);
        }
    }
}

impl Outcome {
    fn read(rule: &ResultRule, block: &Value) -> Self {
        let text = rule.text.as_ref().and_then(|at| text_at(block, at));
        let groups =
            rule.pattern.as_ref().zip(text.as_ref()).and_then(|(pattern, text)| pattern.regex().captures(text));
        let group = |name: &str| groups.as_ref().and_then(|groups| groups.name(name)).map(|found| found.as_str());
        let told = rule.exit.as_ref().and_then(|at| text_at(block, at));
        let exit = told.as_deref().or_else(|| group("exit")).and_then(|exit| exit.trim().parse::<i64>().ok());
        let by_rule = (!rule.failed.is_empty()).then(|| rule.failed.iter().any(|when| fits(Some(when), block)));
        let is_failure = exit.is_some_and(|exit| exit != 0) || group("failed").is_some_and(|text| !text.is_empty());
        let failed = if is_failure { Some(true) } else { by_rule.or(exit.map(|_| false)) };
        let printed = group("printed").or(text.as_deref()).filter(|text| !text.trim().is_empty());
        let printed = printed.map(|text| cut::end(text, MAX_PRINTED).to_owned()).filter(|end| !end.is_empty());
        Outcome { exit, failed, printed }
    }

    /// What an earlier result has said stays.
    fn add_to(&self, call: &mut ToolCall) {
        call.failed = call.failed.or(self.failed);
        if call.kind == ToolKind::Command {
            call.exit = call.exit.or(self.exit);
            call.printed = call.printed.take().or_else(|| self.printed.clone());
        }
    }
}

/// The calls in a line, without those of tools that no rule of the profile names.
pub(super) fn calls_in(rules: &ToolsSection, line: &Value) -> Vec<FoundCall> {
    let of_rule = |rule: &CallRule| {
        let blocks = blocks(line, &rule.when, rule.blocks.as_ref(), &rule.block_when);
        blocks.into_iter().filter_map(|block| found(rules, rule, line, block)).collect::<Vec<_>>()
    };
    rules.calls.iter().flat_map(of_rule).collect()
}

fn found(rules: &ToolsSection, rule: &CallRule, line: &Value, block: &Value) -> Option<FoundCall> {
    let name = text_at(block, &rule.name)?;
    let uses: Vec<&UseRule> = rules.uses.iter().filter(|rule| rule.names.contains(&name)).collect();
    if uses.is_empty() {
        return None;
    }
    let input = match &rule.input {
        Some(at) => unpacked(at.find(block)?),
        None => Cow::Borrowed(block),
    };
    let uses = uses.into_iter().flat_map(|rule| rule.targets(&input).into_iter().map(|target| (rule.kind, target)));
    let uses: Vec<(ToolKind, String)> = uses.collect();
    let at = rule.time.as_ref().and_then(|at| time(at.find(line)?));
    (!uses.is_empty()).then(|| FoundCall { id: rule.id.as_ref().and_then(|at| text_at(block, at)), uses, at })
}

/// An input, which may be JSON in a text.
fn unpacked(input: &Value) -> Cow<'_, Value> {
    let inside = input.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    let inside = inside.and_then(|text| super::json::read::<Value>(text.as_bytes()).ok());
    inside.map_or(Cow::Borrowed(input), Cow::Owned)
}

/// A transcript's time in the format of tasuki's files.
pub(super) fn time(value: &Value) -> Option<String> {
    let ms = match value {
        Value::String(text) => millis(text),
        value => value.as_i64(),
    };
    ms.map(rfc3339)
}

/// The blocks of a line that fit.
fn blocks<'v>(line: &'v Value, when: &[When], at: Option<&Pointer>, block_when: &[When]) -> Vec<&'v Value> {
    if !all_fit(when, line) {
        return Vec::new();
    }
    let blocks = match at.map_or(Some(line), |at| at.find(line)) {
        Some(Value::Array(blocks)) => blocks.iter().collect(),
        Some(block) => vec![block],
        None => Vec::new(),
    };
    blocks.into_iter().filter(|block| all_fit(block_when, block)).collect()
}

impl UseRule {
    /// The paths or command lines in an input.
    fn targets(&self, input: &Value) -> Vec<String> {
        let there = |at: &Pointer| at.find_all(input).into_iter().flat_map(|value| self.texts(value)).collect();
        let found = self.at.iter().map(there).find(|texts: &Vec<String>| !texts.is_empty());
        let texts = found.unwrap_or_else(|| input.as_str().map(str::to_owned).into_iter().collect());
        let is_one =
            |text: &String| !text.trim().is_empty() && (self.kind == ToolKind::Command || text.len() <= MAX_PATH);
        let Some(pattern) = &self.pattern else { return texts.into_iter().filter(is_one).take(MAX_FILES).collect() };
        let group = self.kind.group();
        let matched = |text: &String| {
            let groups =
                pattern.regex().captures_iter(text).filter_map(|groups| Some(groups.name(group)?.as_str().to_owned()));
            groups.filter(is_one).take(MAX_FILES).collect::<Vec<_>>()
        };
        texts.iter().flat_map(matched).take(MAX_FILES).collect()
    }

    /// The texts of a value: its own, those of a list, or the keys of an object, which may be paths. The words of a
    /// command in a list are one command line.
    fn texts(&self, value: &Value) -> Vec<String> {
        match (value, self.kind) {
            (Value::String(text), _) => vec![text.clone()],
            (Value::Array(words), ToolKind::Command) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                vec![words.join(" ")]
            }
            (Value::Array(items), ToolKind::Write | ToolKind::Read) => {
                items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (Value::Object(map), ToolKind::Write | ToolKind::Read) => map.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }
}
