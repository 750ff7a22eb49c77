//! The texts that tasuki writes itself, from templates that a user may override (`HOME/data/prompts/*.md`).

mod template;

use minijinja::{Environment, context};
use std::collections::BTreeMap;

/// A prompt template that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("data/prompts/{name}.md: {why}")]
pub struct PromptError {
    pub name: String,
    pub why: String,
}

const BUILT_IN: [(&str, &str); 13] = [
    ("instruction", include_str!("../../data/prompts/instruction.md")),
    ("reply", include_str!("../../data/prompts/reply.md")),
    ("rework", include_str!("../../data/prompts/rework.md")),
    ("salvage", include_str!("../../data/prompts/salvage.md")),
    ("context", include_str!("../../data/prompts/context.md")),
    ("briefing", include_str!("../../data/prompts/briefing.md")),
    ("changed", include_str!("../../data/prompts/changed.md")),
    ("drift", include_str!("../../data/prompts/drift.md")),
    ("acknowledge", include_str!("../../data/prompts/acknowledge.md")),
    ("how", include_str!("../../data/prompts/how.md")),
    ("published", include_str!("../../data/prompts/published.md")),
    ("work", include_str!("../../data/prompts/work.md")),
    ("long", include_str!("../../data/prompts/long.md")),
];

/// Names of the templates that can be overridden.
#[must_use]
pub fn names() -> [&'static str; 13] {
    BUILT_IN.map(|(name, _)| name)
}

/// The templates, compiled, and tried once with every variable they are given.
#[derive(Debug, Clone)]
pub struct Prompts {
    templates: Environment<'static>,
}

impl Default for Prompts {
    fn default() -> Self {
        Prompts::new(&BTreeMap::new()).expect("the built-in templates are tried by a test")
    }
}

/// The values of the instruction's template.
#[derive(Debug, Clone)]
pub struct Instruction<'a> {
    pub reason: &'a str,
    pub file_path: &'a str,
    pub focus: Option<&'a str>,
    /// What the successor has to do.
    pub tasks: &'a [String],
    /// The document must name a checkpoint.
    pub urgent: bool,
}

/// The values of the text that asks an agent to repair its document.
#[derive(Debug, Clone)]
pub struct Rework<'a> {
    pub file_path: &'a str,
    /// What is wrong, one sentence each.
    pub faults: &'a [String],
    /// The operator's words.
    pub note: Option<&'a str>,
    /// The document is the agent's answer, not a file that the agent has written.
    pub reply: bool,
}

/// The values of the text before a salvaged transcript.
#[derive(Debug, Clone)]
pub struct Salvage<'a> {
    pub agent_id: &'a str,
    pub persona: &'a str,
    pub reason: &'a str,
    pub focus: Option<&'a str>,
    pub cwd: Option<&'a str>,
}

/// The values of the briefing's template.
#[derive(Debug, Clone)]
pub struct Briefing<'a> {
    pub predecessor_id: &'a str,
    pub persona: &'a str,
    pub reason: &'a str,
    pub file_path: &'a str,
    pub focus: Option<&'a str>,
    pub cwd: Option<&'a str>,
    pub tasks: &'a [String],
    /// The first paragraph of the document.
    pub summary: Option<&'a str>,
    /// The file with the facts: what tasuki itself has seen of the agent's work.
    pub facts_path: Option<&'a str>,
    pub generation: u64,
    /// The documents of the chain before this one, oldest first: a name in the same folder, or a path.
    pub earlier: &'a [String],
    /// The command that prints the predecessor's conversation, if that can be read.
    pub read_command: Option<&'a str>,
    /// The command with which a person opens the predecessor's session again, if its profile has one.
    pub resume_command: Option<&'a str>,
}

/// What an urgent handoff's briefing says of its acknowledgement.
#[derive(Debug, Clone)]
pub struct Acknowledge<'a> {
    pub handoff_id: &'a str,
    pub predecessor: &'a str,
    pub reason: &'a str,
    pub priority: &'a str,
    /// How long it may take.
    pub within: &'a str,
    pub until: &'a str,
    pub how: &'a str,
}

/// The values of the template that says how to acknowledge.
#[derive(Debug, Clone)]
pub struct How<'a> {
    /// The command line that reaches this home.
    pub command: &'a str,
    pub requests_dir: &'a str,
    pub form: &'a str,
}

/// What the notice of a work item says.
#[derive(Debug, Clone)]
pub struct WorkNotice<'a> {
    pub item_id: &'a str,
    pub kind: &'a str,
    pub priority: &'a str,
    pub title: &'a str,
    pub description: Option<&'a str>,
    pub needs: &'a [String],
    /// Types of the children that its completion may make.
    pub creates: &'a [String],
    /// Why the agent's completion of the item was undone; `None` if it was not.
    pub undone: Option<&'a str>,
}

impl Prompts {
    /// Compiles the built-in templates and the overrides, by name without `.md`.
    ///
    /// # Errors
    /// Names the template that does not parse, or that uses a variable which it is not given.
    pub fn new(overrides: &BTreeMap<String, String>) -> Result<Self, PromptError> {
        let mut templates = template::environment();
        for (name, text) in BUILT_IN {
            let text = overrides.get(name).map_or(text, String::as_str).to_owned();
            let failed = |error: minijinja::Error| PromptError { name: name.to_owned(), why: error.to_string() };
            if let Some(why) = template::fault(&text) {
                return Err(PromptError { name: name.to_owned(), why });
            }
            templates.add_template_owned(name, text).map_err(failed)?;
        }
        let prompts = Prompts { templates };
        prompts.try_all()?;
        Ok(prompts)
    }

    /// Renders every template with every variable set, so that a misspelt variable is found at start, and not by a
    /// handoff at night.
    fn try_all(&self) -> Result<(), PromptError> {
        let tasks = ["t".to_owned()];
        let instruction =
            Instruction { reason: "r", file_path: "/f.md", focus: Some("f"), tasks: &tasks, urgent: true };
        self.render_with("instruction", instruction_context(&instruction), "file_path", "/f.md")?;
        self.render("reply", instruction_context(&instruction))?;
        let salvage = Salvage { agent_id: "a", persona: "s", reason: "r", focus: Some("f"), cwd: Some("/") };
        self.render("salvage", salvage_context(&salvage))?;
        self.render_with("context", context! { document => "/d", tasks => vec!["t"] }, "document", "/d")?;
        let briefing = Briefing {
            predecessor_id: "p",
            persona: "s",
            reason: "r",
            file_path: "/f.md",
            focus: Some("f"),
            cwd: Some("/"),
            tasks: &tasks,
            summary: Some("s"),
            facts_path: Some("/f.facts.md"),
            generation: 2,
            earlier: &tasks,
            read_command: Some("tasuki read 5f2a"),
            resume_command: Some("demo --session s"),
        };
        self.render_with("briefing", briefing_context(&briefing), "file_path", "/f.md")?;
        let rework = Rework { file_path: "/f.md", faults: &tasks, note: Some("n"), reply: false };
        self.render_with("rework", rework_context(&rework), "file_path", "/f.md")?;
        self.render("drift", context! { drift => tasks.clone() })?;
        let work = WorkNotice {
            item_id: "i",
            kind: "t",
            priority: "normal",
            title: "t",
            description: Some("d"),
            needs: &tasks,
            creates: &tasks,
            undone: Some("r"),
        };
        self.render("work", work_context(&work))?;
        self.render("changed", context! { sha256 => "0" })?;
        let (predecessor, within, until) = ("p-1", "5 minutes", "t");
        let acknowledge =
            Acknowledge { handoff_id: "h", predecessor, reason: "r", priority: "urgent", within, until, how: "w" };
        self.render("acknowledge", acknowledge_context(&acknowledge))?;
        self.render("how", how_context(&How { command: "c", requests_dir: "/r", form: "{}" }))?;
        self.render("published", context! { url => "https://x/" })?;
        self.render_with("long", context! { file_path => "/f.md" }, "file_path", "/f.md").map(drop)
    }

    /// Renders a template whose text must have that value: without it, a document would be lost.
    fn render_with(
        &self,
        name: &str,
        context: minijinja::Value,
        variable: &str,
        value: &str,
    ) -> Result<String, PromptError> {
        let text = self.render(name, context)?;
        let why = format!("the text lacks {{{{ {variable} }}}}, without which an agent can't do its part");
        if text.contains(value) { Ok(text) } else { Err(PromptError { name: name.to_owned(), why }) }
    }

    fn render(&self, name: &str, context: minijinja::Value) -> Result<String, PromptError> {
        let failed = |error: minijinja::Error| PromptError { name: name.to_owned(), why: error.to_string() };
        let template = self.templates.get_template(name).map_err(failed)?;
        Ok(template.render(context).map_err(failed)?.trim_end().to_owned())
    }

    /// Uses the built-in template if the user's template fails on real values although it passed [`Prompts::try_all`]:
    /// no handoff may fail because of a template.
    fn render_or_built_in(&self, name: &str, context: &minijinja::Value) -> String {
        self.render(name, context.clone()).unwrap_or_else(|_| {
            let built_in = Prompts::default();
            built_in.render(name, context.clone()).unwrap_or_default()
        })
    }

    /// The body of the instruction to the outgoing agent.
    #[must_use]
    pub fn instruction(&self, values: &Instruction<'_>) -> String {
        self.render_or_built_in("instruction", &instruction_context(values))
    }

    /// The body of the instruction that asks the outgoing agent to write the document as its answer, not to a file.
    #[must_use]
    pub fn reply(&self, values: &Instruction<'_>) -> String {
        self.render_or_built_in("reply", &instruction_context(values))
    }

    /// The body of the text that asks the agent to repair its document.
    #[must_use]
    pub fn rework(&self, values: &Rework<'_>) -> String {
        self.render_or_built_in("rework", &rework_context(values))
    }

    /// The text before a salvaged transcript.
    #[must_use]
    pub fn salvage(&self, values: &Salvage<'_>) -> String {
        self.render_or_built_in("salvage", &salvage_context(values))
    }

    /// The injection prompt of a successor in the predecessor's process: it holds the document itself.
    #[must_use]
    pub fn context(&self, document: &str, tasks: &[String]) -> String {
        self.render_or_built_in("context", &context! { document => document, tasks => tasks.to_vec() })
    }

    /// The injection prompt: the briefing's body.
    #[must_use]
    pub fn briefing(&self, values: &Briefing<'_>) -> String {
        self.render_or_built_in("briefing", &briefing_context(values))
    }

    /// What is added to a briefing whose document was changed after the record.
    #[must_use]
    pub fn changed(&self, sha256: &str) -> String {
        self.render_or_built_in("changed", &context! { sha256 => sha256 })
    }

    /// What is added to a briefing if the repository has changed since the record.
    #[must_use]
    pub fn drift(&self, drift: &[String]) -> String {
        self.render_or_built_in("drift", &context! { drift => drift.to_vec() })
    }

    /// What is added to a briefing that must be acknowledged.
    #[must_use]
    pub fn acknowledge(&self, values: &Acknowledge<'_>) -> String {
        self.render_or_built_in("acknowledge", &acknowledge_context(values))
    }

    /// The text that says how to acknowledge a handoff.
    #[must_use]
    pub fn how(&self, values: &How<'_>) -> String {
        self.render_or_built_in("how", &how_context(values))
    }

    /// What is added to a briefing if its document has already been published.
    #[must_use]
    pub fn published(&self, url: &str) -> String {
        self.render_or_built_in("published", &context! { url => url })
    }

    /// The body of a work item's notice.
    #[must_use]
    pub fn work(&self, values: &WorkNotice<'_>) -> String {
        self.render_or_built_in("work", &work_context(values))
    }

    /// The body that is typed instead of a text that is too long: it names the file with that text.
    #[must_use]
    pub fn long(&self, file_path: &str) -> String {
        self.render_or_built_in("long", &context! { file_path => file_path })
    }
}

fn instruction_context(values: &Instruction<'_>) -> minijinja::Value {
    context! {
        reason => values.reason,
        file_path => values.file_path,
        focus => values.focus,
        tasks => values.tasks.to_vec(),
        urgent => values.urgent,
    }
}

fn rework_context(values: &Rework<'_>) -> minijinja::Value {
    context! {
        file_path => values.file_path,
        faults => values.faults.to_vec(),
        note => values.note,
        reply => values.reply,
    }
}

fn salvage_context(values: &Salvage<'_>) -> minijinja::Value {
    context! {
        agent_id => values.agent_id,
        persona => values.persona,
        reason => values.reason,
        focus => values.focus,
        cwd => values.cwd,
    }
}

fn briefing_context(values: &Briefing<'_>) -> minijinja::Value {
    context! {
        predecessor_id => values.predecessor_id,
        persona => values.persona,
        reason => values.reason,
        file_path => values.file_path,
        focus => values.focus,
        cwd => values.cwd,
        tasks => values.tasks.to_vec(),
        summary => values.summary,
        facts_path => values.facts_path,
        generation => values.generation,
        earlier => values.earlier.to_vec(),
        read_command => values.read_command,
        resume_command => values.resume_command,
    }
}

fn acknowledge_context(values: &Acknowledge<'_>) -> minijinja::Value {
    context! {
        handoff_id => values.handoff_id,
        predecessor => values.predecessor,
        reason => values.reason,
        priority => values.priority,
        within => values.within,
        until => values.until,
        how => values.how,
    }
}

fn how_context(values: &How<'_>) -> minijinja::Value {
    context! { command => values.command, requests_dir => values.requests_dir, form => values.form }
}

fn work_context(values: &WorkNotice<'_>) -> minijinja::Value {
    context! {
        item_id => values.item_id,
        type => values.kind,
        priority => values.priority,
        title => values.title,
        description => values.description,
        needs => values.needs.to_vec(),
        creates => values.creates.to_vec(),
        undone => values.undone,
    }
}

#[cfg(test)]
#[path = "prompts_tests.rs"]
mod tests;
