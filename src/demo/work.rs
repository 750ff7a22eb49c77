//! What the demo agent does when it is notified of a work item: it claims the item, and completes it with an output and
//! children that fit the built-in rules. It uses only the commands that the notice names.

use super::faults::Faults;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// A work item, as its notice describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifiedWork {
    pub item_id: String,
    pub kind: String,
    pub title: String,
    /// The type of the children that are created when it is completed; none if it may have none.
    pub creates: Option<String>,
}

/// Parses a notice: a line such as "Work item `5f2a…` (story, priority normal): A title".
#[must_use]
pub fn notice(prompt: &str) -> Option<NotifiedWork> {
    let line = prompt.lines().find_map(|line| line.trim_start().strip_prefix("Work item `"))?;
    let (item_id, rest) = line.split_once("` (")?;
    let (about, title) = rest.split_once("): ")?;
    let kind = about.split(", priority ").next()?;
    uuid::Uuid::try_parse(item_id).ok()?;
    let follows = prompt.split("a JSON list of objects with type (").nth(1).and_then(|rest| rest.split(')').next());
    let creates = follows.and_then(|types| types.split(" or ").next()).map(str::to_owned);
    Some(NotifiedWork { item_id: item_id.to_owned(), kind: kind.to_owned(), title: title.trim().to_owned(), creates })
}

/// The output of a completed item: it has all fields that the built-in rules ask for.
fn output(work: &NotifiedWork) -> Value {
    json!({
        "requirements": [format!("what {} asks for", work.title)], "prd": { "goal": work.title },
        "stories": [format!("as a user, I want: {}", work.title)], "completed": true, "by": "the demo agent",
    })
}

fn children(work: &NotifiedWork, bad: bool) -> Vec<Value> {
    let Some(kind) = &work.creates else { return Vec::new() };
    let child = |number: usize| json!({ "type": kind, "title": format!("{} ({number})", work.title) });
    if bad {
        let wrong =
            [json!({ "type": "epic", "title": "of no type" }), json!({ "type": kind, "title": " " }), json!({})];
        return vec![child(1), wrong[0].clone(), wrong[1].clone(), child(2), wrong[2].clone()];
    }
    (1..=if work.kind == "prd" { 2 } else { 1 }).map(child).collect()
}

/// The command lines that the agent runs for an item, each without the program's name.
#[must_use]
pub fn commands(work: &NotifiedWork, faults: &Faults) -> Vec<Vec<String>> {
    let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let claim = line(&["work", "claim", &work.item_id]);
    let list = |bad: bool| Value::Array(children(work, bad)).to_string();
    let output = output(work).to_string();
    let complete =
        |bad: bool| line(&["work", "complete", &work.item_id, "--output", &output, "--children", &list(bad)]);
    match faults.text("work") {
        Some("ignore") => Vec::new(),
        Some("claim") => vec![claim],
        Some("release") => vec![claim, line(&["work", "release", &work.item_id, "--reason", "not for me"])],
        Some("escalate") => vec![claim, line(&["work", "escalate", &work.item_id, "--reason", "I have no access"])],
        Some("bad_output") => vec![claim, line(&["work", "complete", &work.item_id, "--output", "{}"])],
        Some("partial") => {
            let mut partial = complete(true);
            partial.push("--partial".to_owned());
            vec![claim, partial]
        }
        _ => vec![claim, complete(false)],
    }
}

/// Runs one command line of `program`. Returns the first line of its output, and whether it succeeded.
pub fn run(program: &Path, words: &[String]) -> (String, bool) {
    let ran = Command::new(program).args(words).args(["--timeout", "10s"]).stdin(Stdio::null()).output();
    match ran {
        Ok(output) => {
            let said = if output.status.success() { output.stdout } else { output.stderr };
            (String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned(), output.status.success())
        }
        Err(error) => (format!("I cannot run it: {error}"), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::prompts::{Prompts, WorkNotice};

    #[test]
    fn a_notice_is_understood_as_it_is_written() {
        let id = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
        let creates = ["story".to_owned(), "review".to_owned()];
        let text = Prompts::default().work(&WorkNotice {
            item_id: id,
            kind: "prd",
            priority: "high",
            title: "A shop (small): sashes",
            description: Some("In full."),
            needs: &["stories".to_owned()],
            creates: &creates,
            undone: None,
        });
        let work =
            notice(&format!("A work item waits for you.\n{text}\n(tasuki delivery 5f2a9c81d0e3.)")).expect("a notice");
        assert_eq!((work.item_id.as_str(), work.kind.as_str()), (id, "prd"));
        assert_eq!((work.title.as_str(), work.creates.as_deref()), ("A shop (small): sashes", Some("story")));
        assert_eq!(notice("Work item 5 is done"), None);
        let lines = commands(&work, &Faults::default());
        assert_eq!((lines.len(), &lines[0][..]), (2, &["work".to_owned(), "claim".to_owned(), id.to_owned()][..]));
        assert_eq!(commands(&work, &Faults::parse("work=partial"))[1].last().map(String::as_str), Some("--partial"));
        assert!(commands(&work, &Faults::parse("work=ignore")).is_empty());
    }
}
