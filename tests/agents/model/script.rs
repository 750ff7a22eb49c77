//! What the model answers. A prompt that asks for a handoff document gets a call of the CLI's own writing tool, or,
//! where it asks for the document as the answer, several blocks of text; any other prompt gets an acknowledgement.
//!
//! Directives, in a prompt or in a rule of the test: `[[slow:SECONDS]]` spreads the answer, `[[hang]]` never gives one,
//! `[[error:CODE]]` answers with that status, `[[run:COMMAND]]` calls the CLI's shell tool, `[[tokens:N]]` says that so
//! many tokens were read, `[[say:TEXT]]` answers just that, `[[flaw]]` leaves all but the headings out of a document,
//! `[[limit:SECONDS]]` says that the account is used up for so long, `[[limit_until:TIME]]` until then, in seconds
//! since 1970, `[[read]]` reads the document that a prompt names, `[[outside]]` lets the command run outside the CLI's
//! sandbox.

use super::asked::Asked;
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime};

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) kind: Kind,
    /// Over how long it is spread.
    pub(crate) spread: Duration,
    /// It never comes.
    pub(crate) hangs: bool,
    /// How many tokens the prompt is said to have.
    pub(crate) tokens: usize,
}

/// What kind of answer.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Blocks of text.
    Texts(Vec<String>),
    /// A call of a tool with arguments; a tool without a schema takes a text.
    Call { name: String, arguments: Value },
    /// A refusal with that status.
    Error(u16),
    /// The account is used up for so many seconds.
    UsedUp(u64),
}

impl Answer {
    /// In a few words, for the log.
    pub(crate) fn words(&self) -> String {
        match &self.kind {
            Kind::Texts(texts) => texts.join(" / ").chars().take(80).collect(),
            Kind::Call { name, .. } => format!("calls {name}"),
            Kind::Error(code) => format!("error {code}"),
            Kind::UsedUp(seconds) => format!("used up for {seconds} s"),
        }
    }
}

/// The value of a directive, if it is there.
fn directive<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let from = text.find(&format!("[[{name}"))? + 2 + name.len();
    let inside = &text[from..from + text[from..].find("]]")?];
    inside.strip_prefix(':').or(inside.is_empty().then_some(""))
}

/// Decides the answer. `bytes` is the size of the request.
pub(crate) fn decide(asked: &Asked, ruled: &str, bytes: usize) -> Answer {
    let prompt = asked.last();
    let find = |name: &str| directive(ruled, name).or_else(|| directive(prompt, name));
    let number = |name: &str| find(name).and_then(|value| value.parse::<u32>().ok());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let ahead = |until: u32| u64::from(until).checked_sub(now).filter(|seconds| *seconds > 0);
    let mut answer = Answer {
        kind: Kind::Texts(vec!["Understood.".to_owned()]),
        spread: Duration::ZERO,
        hangs: false,
        tokens: number("tokens").map_or(bytes / 4, |tokens| tokens as usize),
    };
    if asked.is_side {
        answer.kind = Kind::Texts(vec!["A title".to_owned()]);
        return answer;
    }
    if let Some(result) = &asked.tool_result {
        let first = result.lines().next().unwrap_or_default();
        answer.kind = Kind::Texts(vec![format!("The tool says: {first}")]);
        return answer;
    }
    answer.spread = Duration::from_secs(number("slow").unwrap_or(0).into());
    answer.hangs = find("hang").is_some();
    answer.kind = if let Some(code) = number("error") {
        Kind::Error(u16::try_from(code).unwrap_or(500))
    } else if let Some(seconds) = number("limit").map(u64::from).or_else(|| number("limit_until").and_then(ahead)) {
        Kind::UsedUp(seconds)
    } else if let (Some(_), Some(path)) = (find("read"), document_path(prompt)) {
        read(asked, path)
    } else if let Some(command) = find("run") {
        shell(asked, command, find("outside").is_some())
    } else if let Some(text) = find("say") {
        Kind::Texts(vec![text.to_owned()])
    } else if asks_for_document(prompt) {
        match document_path(prompt) {
            Some(path) if find("flaw").is_some() => write(asked, path, &headings(&document(path))),
            Some(path) => write(asked, path, &document(path)),
            None => Kind::Texts(blocks()),
        }
    } else {
        answer.kind
    };
    answer
}

/// An instruction names the sections that it wants, and a rework says that it is one; a briefing that carries a
/// document is none.
fn asks_for_document(prompt: &str) -> bool {
    let asks =
        ["## Next steps", "## Next Steps", "handoff document once more"].iter().any(|part| prompt.contains(part));
    prompt.contains("handoff document") && asks && !prompt.contains("<handoff-context>")
}

/// The file that an instruction names: alone on its line, in backticks.
fn document_path(prompt: &str) -> Option<&str> {
    let quoted = |line: &'_ str| -> Option<(usize, usize)> {
        let trimmed = line.trim();
        let inside = trimmed.strip_prefix("`/")?.strip_suffix(".md`")?;
        (!inside.contains('`')).then_some((1, trimmed.len() - 1))
    };
    prompt.lines().find_map(|line| quoted(line).map(|(from, to)| &line.trim()[from..to]))
}

/// The document that the model writes to a path.
pub(crate) fn document(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    format!(
        "---\ncheckpoint: the second half of the script\nverified: none, there was nothing to check\n---\n\n# Handoff {name}\n\n\
         ## What I was working on\nI followed the script that I was given, line by line. The goal is that every line of it was followed.\n\n\
         ## Current progress\nHalf of it is done and was read again; the other half is untouched. Nothing has left this machine, and nothing still runs. \
         I kept no notes elsewhere, so this document is all that there is.\n\n\
         ## Key decisions and why\nI followed the lines in their order, because the later ones build on the earlier ones. I did not skip any, and I tried nothing that failed.\n\n\
         ## Blockers\nNone.\n\n## Files modified\nNone.\n\n\
         ## Next steps\n1. Run `ls` to see where you are.\n2. Follow the other half of the script, from its middle on.\n"
    )
}

/// A document without anything under its headings.
fn headings(document: &str) -> String {
    document.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n\n")).collect()
}

/// The same as an answer, which a CLI keeps as several blocks.
pub(crate) fn blocks() -> Vec<String> {
    vec![
        "---\ncheckpoint: the second half of the script\nverified: none, there was nothing to check\n---\n\n# Handoff\n\n\
         ## Goal\nTo follow the script that I was given, line by line, until every line of it was followed.\n\n\
         ## Constraints & Preferences\nNone.\n"
            .to_owned(),
        "## Progress\nHalf of it is done and was read again; the other half is untouched. Nothing has left this machine, and nothing still runs. \
         I kept no notes elsewhere, so this answer is all that there is.\n\n\
         ## Key Decisions\nI followed the lines in their order, because the later ones build on the earlier ones. I did not skip any, and I tried \
         nothing that failed.\n"
            .to_owned(),
        "## Critical Context\nNothing but the script itself is needed to continue.\n\n\
         ## Next Steps\n1. Run `ls` to see where you are.\n2. Follow the other half of the script, from its middle on.\n"
            .to_owned(),
    ]
}

/// A call of the tool that writes files, by whatever name the CLI has it.
fn write(asked: &Asked, path: &str, text: &str) -> Kind {
    if let Some(tool) = asked.tool(&["write", "write_file", "create_file"]) {
        let arguments = fill(tool.schema.as_ref(), &[("path", path), ("content", text)]);
        return Kind::Call { name: tool.name.clone(), arguments };
    }
    if let Some(tool) = asked.tool(&["apply_patch"]) {
        let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n");
        let arguments = match &tool.schema {
            None => Value::String(patch),
            schema => fill(schema.as_ref(), &[("input", &patch), ("patch", &patch)]),
        };
        return Kind::Call { name: tool.name.clone(), arguments };
    }
    shell(asked, &format!("cat > '{path}' <<'END'\n{text}END"), false)
}

/// A call of the tool that reads files, by whatever name the CLI has it.
fn read(asked: &Asked, path: &str) -> Kind {
    match asked.tool(&["read", "read_file"]) {
        Some(tool) => Kind::Call { name: tool.name.clone(), arguments: fill(tool.schema.as_ref(), &[("path", path)]) },
        None => shell(asked, &format!("cat '{path}'"), false),
    }
}

/// A call of the tool that runs commands.
fn shell(asked: &Asked, command: &str, is_outside: bool) -> Kind {
    let names = ["bash", "exec_command", "shell_command", "shell", "local_shell", "run_shell_command"];
    match asked.tool(&names) {
        Some(tool) => {
            let mut wanted = vec![("command", command), ("cmd", command), ("description", "a scripted command")];
            if is_outside {
                wanted.extend([("sandbox_permissions", "require_escalated"), ("justification", "a scripted command")]);
            }
            Kind::Call { name: tool.name.clone(), arguments: fill(tool.schema.as_ref(), &wanted) }
        }
        None => {
            let names: Vec<&str> = asked.tools.iter().map(|tool| tool.name.as_str()).collect();
            Kind::Texts(vec![format!("No tool fits; there are {}", names.join(", "))])
        }
    }
}

/// Arguments by a tool's own schema: a property whose name ends in a wanted word gets its value, any other one that
/// must be there gets the plainest value of its type.
fn fill(schema: Option<&Value>, wanted: &[(&str, &str)]) -> Value {
    let empty = Map::new();
    let properties = schema.and_then(|schema| schema["properties"].as_object()).unwrap_or(&empty);
    let is_required = |name: &str| {
        let required = schema.and_then(|schema| schema["required"].as_array());
        required.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let mut arguments = Map::new();
    for (name, about) in properties {
        let is_list = about["type"] == "array";
        if let Some((_, value)) = wanted.iter().find(|(word, _)| name.to_lowercase().ends_with(word)) {
            let value = if is_list { json!(["bash", "-lc", value]) } else { json!(value) };
            arguments.insert(name.clone(), value);
        } else if is_required(name) {
            let value = match about["type"].as_str() {
                Some("boolean") => json!(false),
                Some("number" | "integer") => json!(0),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => about["enum"].get(0).cloned().unwrap_or(json!("scripted")),
            };
            arguments.insert(name.clone(), value);
        }
    }
    Value::Object(arguments)
}
