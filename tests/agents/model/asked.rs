//! What a CLI asks, read from whichever dialect it speaks: Anthropic Messages, OpenAI Responses, chat completions,
//! Gemini.

use serde_json::Value;

/// Which dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// A tool that the CLI offers.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// The schema of its arguments; a tool without one takes plain text.
    pub(crate) schema: Option<Value>,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) dialect: Dialect,
    pub(crate) model: String,
    /// What the user said, first to last, without what the CLI adds of its own.
    pub(crate) prompts: Vec<String>,
    /// The result of a tool, if that came last.
    pub(crate) tool_result: Option<String>,
    pub(crate) tools: Vec<Tool>,
    /// It is not the agent's work but a title, a summary or the like.
    pub(crate) is_side: bool,
}

impl Asked {
    /// What the user said last.
    pub(crate) fn last(&self) -> &str {
        self.prompts.last().map_or("", String::as_str)
    }

    /// The first of the tools that goes by one of these names, small letters.
    pub(crate) fn tool(&self, names: &[&str]) -> Option<&Tool> {
        names.iter().find_map(|name| self.tools.iter().find(|tool| tool.name.to_lowercase() == *name))
    }

    fn hears(&mut self, text: &str) {
        let said = without_additions(text);
        if !said.is_empty() {
            self.prompts.push(said);
            self.tool_result = None;
        }
    }
}

/// What CLIs put beside the user's words, each in an element of its own.
const ADDITIONS: [&str; 11] = [
    "session_context",
    "command-name",
    "command-message",
    "command-args",
    "local-command-stdout",
    "system-reminder",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "local-command-caveat",
    "recommended_plugins",
];

fn without_additions(text: &str) -> String {
    let mut kept = text.to_owned();
    for name in ADDITIONS {
        let (open, close) = (format!("<{name}>"), format!("</{name}>"));
        while let Some(from) = kept.find(&open) {
            let Some(length) = kept[from..].find(&close) else { break };
            kept.replace_range(from..from + length + close.len(), "");
        }
    }
    if kept.len() == text.len() { kept.trim_matches('\n').to_owned() } else { kept.trim().to_owned() }
}

/// Reads a request; `None` if the path is none of the four.
pub(crate) fn read(path: &str, bytes: &[u8]) -> Option<Asked> {
    let body: Value = serde_json::from_slice(bytes).ok()?;
    let dialect = if path.ends_with("/messages") {
        Dialect::Anthropic
    } else if path.ends_with("/responses") {
        Dialect::Responses
    } else if path.ends_with("/chat/completions") {
        Dialect::Chat
    } else if path.contains("/models/") && path.ends_with("enerateContent") {
        Dialect::Gemini
    } else {
        return None;
    };
    let mut asked = Asked {
        dialect,
        model: body["model"].as_str().unwrap_or("scripted-model").to_owned(),
        prompts: Vec::new(),
        tool_result: None,
        tools: body["tools"].as_array().into_iter().flatten().flat_map(tools).collect(),
        is_side: false,
    };
    match dialect {
        Dialect::Anthropic => anthropic(&mut asked, &body),
        Dialect::Responses => responses(&mut asked, &body),
        Dialect::Chat => chat(&mut asked, &body),
        Dialect::Gemini => gemini(&mut asked, &body),
    }
    let wants_json = [
        "/output_config/format",
        "/text/format/schema",
        "/response_format",
        "/generationConfig/responseSchema",
        "/generationConfig/responseJsonSchema",
    ];
    asked.is_side = asked.tools.is_empty() || wants_json.iter().any(|at| body.pointer(at).is_some());
    Some(asked)
}

/// An entry of the list is one tool, or, for Gemini, a list of them.
fn tools(value: &Value) -> Vec<Tool> {
    match value["functionDeclarations"].as_array() {
        Some(several) => several.iter().filter_map(tool).collect(),
        None => tool(value).into_iter().collect(),
    }
}

fn tool(value: &Value) -> Option<Tool> {
    let inner = if value["function"].is_object() { &value["function"] } else { value };
    let name = inner["name"].as_str()?.to_owned();
    let schema = ["input_schema", "parametersJsonSchema", "parameters"].iter().find_map(|key| inner.get(key)).cloned();
    Some(Tool { name, schema })
}

fn anthropic(asked: &mut Asked, body: &Value) {
    for message in body["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "user") {
        if let Some(text) = message["content"].as_str() {
            asked.hears(text);
        }
        // Turns that follow each other may be merged into one message of many blocks.
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_result") => asked.tool_result = Some(flat(&block["content"])),
                Some("text") => asked.hears(block["text"].as_str().unwrap_or_default()),
                _ => {}
            }
        }
    }
}

fn responses(asked: &mut Asked, body: &Value) {
    for item in body["input"].as_array().into_iter().flatten() {
        let kind = item["type"].as_str().unwrap_or("message");
        if kind == "message" && item["role"] == "user" {
            asked.hears(&flat(&item["content"]));
        } else if kind.ends_with("_output") {
            asked.tool_result = Some(flat(&item["output"]));
        }
    }
}

fn chat(asked: &mut Asked, body: &Value) {
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("user") => asked.hears(&flat(&message["content"])),
            Some("tool") => asked.tool_result = Some(flat(&message["content"])),
            _ => {}
        }
    }
}

fn gemini(asked: &mut Asked, body: &Value) {
    for content in body["contents"].as_array().into_iter().flatten().filter(|content| content["role"] != "model") {
        for part in content["parts"].as_array().into_iter().flatten() {
            match part["functionResponse"]["response"].as_object() {
                Some(response) => asked.tool_result = Some(Value::Object(response.clone()).to_string()),
                None => asked.hears(part["text"].as_str().unwrap_or_default()),
            }
        }
    }
}

/// The text of a field that may be a text or a list of blocks.
fn flat(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().unwrap_or(item["text"].as_str().unwrap_or_default()));
            texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
