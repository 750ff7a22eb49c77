//! From a profile to the arguments and the environment of a new agent. No shell sees any of it.

use super::profile::Profile;
use crate::core::id::{AgentId, Slug};
use std::path::Path;

/// What a launch is told.
#[derive(Debug, Clone, Copy)]
pub struct LaunchContext<'a> {
    /// tasuki's home.
    pub home: &'a Path,
    /// The new agent.
    pub agent_id: AgentId,
    /// The id by which the pane is found again after a crash.
    pub creation: &'a str,
    /// The agent's persona.
    pub persona_slug: &'a Slug,
    /// The absolute path of the folder of the persona's documents.
    pub handoffs_dir: &'a Path,
    /// The path of the tasuki program.
    pub program: &'a Path,
    /// The directory in which the agent works.
    pub cwd: &'a Path,
    /// The agent before it.
    pub previous: Option<AgentId>,
}

/// How a process is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// What is added to the environment, sorted by name.
    pub env: Vec<(String, String)>,
}

/// The names that may stand in braces.
const NAMES: [&str; 9] =
    ["home", "program", "agent_id", "creation", "persona", "handoffs", "cwd", "previous", "profile"];

impl Profile {
    /// How an agent of this profile is started; `None` if the profile has no `launch`.
    #[must_use]
    pub fn launch(&self, context: &LaunchContext<'_>) -> Option<Launch> {
        let section = self.file.launch.as_ref()?;
        let value = |name: &str| context.value(&self.name, name);
        let mut argv = Vec::new();
        if !section.unset.is_empty() {
            argv.push("env".to_owned());
            argv.extend(section.unset.iter().flat_map(|name| ["-u".to_owned(), name.clone()]));
        }
        argv.extend(section.argv.iter().map(|text| fill(text, value)));
        let mut env = section.env.clone();
        for text in env.values_mut() {
            *text = fill(text, value);
        }
        for (name, from) in [
            ("TASUKI_AGENT_ID", "agent_id"),
            ("TASUKI_HOME", "home"),
            ("TASUKI_PERSONA", "persona"),
            ("TASUKI_CREATION", "creation"),
        ] {
            env.insert(name.to_owned(), value(from));
        }
        Some(Launch { argv, env: env.into_iter().collect() })
    }
}

impl LaunchContext<'_> {
    fn value(&self, profile: &str, name: &str) -> String {
        match name {
            "home" => self.home.display().to_string(),
            "program" => self.program.display().to_string(),
            "agent_id" => self.agent_id.to_string(),
            "creation" => self.creation.to_owned(),
            "persona" => self.persona_slug.to_string(),
            "handoffs" => self.handoffs_dir.display().to_string(),
            "cwd" => self.cwd.display().to_string(),
            "previous" => self.previous.map(|id| id.to_string()).unwrap_or_default(),
            "profile" => profile.to_owned(),
            _ => String::new(),
        }
    }
}

/// One placeholder: the text before it, its name, its filters, the text after it.
struct Hole<'t> {
    before: &'t str,
    name: &'t str,
    filters: &'t str,
    after: &'t str,
}

/// The first `{word}` or `{word:filter}` of small letters; other braces, such as those of JSON, are plain text.
fn next_hole(text: &str) -> Option<Hole<'_>> {
    text.match_indices('{').find_map(|(at, _)| {
        let (inside, after) = text[at + 1..].split_once('}')?;
        let is_word = |c: char| c.is_ascii_lowercase() || c == '_' || c == ':';
        if inside.is_empty() || !inside.chars().all(is_word) {
            return None;
        }
        let (name, filters) = inside.split_once(':').unwrap_or((inside, ""));
        Some(Hole { before: &text[..at], name, filters, after })
    })
}

/// The text with its placeholders replaced.
pub(super) fn fill(text: &str, value: impl Fn(&str) -> String) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(hole) = next_hole(rest) {
        filled.push_str(hole.before);
        let filters = hole.filters.split(':').filter(|filter| !filter.is_empty());
        filled.push_str(&filters.fold(value(hole.name), |text, filter| match filter {
            "json" => json_inside(&text),
            _ => shell_word(&text),
        }));
        rest = hole.after;
    }
    filled.push_str(rest);
    filled
}

/// The first placeholder of a text that means nothing, if there is one.
pub(super) fn unknown_placeholder(text: &str) -> Option<String> {
    unknown_placeholder_of(text, &NAMES)
}

/// The same where only some of them mean something.
pub(super) fn unknown_placeholder_of(text: &str, names: &[&str]) -> Option<String> {
    let mut rest = text;
    while let Some(hole) = next_hole(rest) {
        let filters_known = hole.filters.split(':').all(|filter| matches!(filter, "" | "json" | "sh"));
        if !names.contains(&hole.name) || !filters_known {
            return Some([hole.name, hole.filters].join(":").trim_end_matches(':').to_owned());
        }
        rest = hole.after;
    }
    None
}

fn json_inside(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profiles;
    use super::*;

    fn context<'a>(home: &'a Path, slug: &'a Slug) -> LaunchContext<'a> {
        LaunchContext {
            home,
            agent_id: "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa".parse().expect("a UUID"),
            creation: "c0ffee",
            persona_slug: slug,
            handoffs_dir: Path::new("/h/o'h \"x\"/handoffs"),
            program: Path::new("/opt/my tools/tasuki"),
            cwd: Path::new("/w"),
            previous: None,
        }
    }

    #[test]
    fn the_demo_agent_is_launched_with_its_four_variables() {
        let slug: Slug = "dev".parse().expect("a slug");
        let profiles = Profiles::load(None).expect("built in");
        let launch = profiles.get("demo").and_then(|p| p.launch(&context(Path::new("/h"), &slug))).expect("launchable");
        assert_eq!(launch.argv, ["/opt/my tools/tasuki", "demo-agent"]);
        for name in ["TASUKI_AGENT_ID", "TASUKI_HOME", "TASUKI_PERSONA", "TASUKI_CREATION"] {
            assert!(launch.env.iter().any(|(key, value)| key == name && !value.is_empty()), "{name}");
        }
    }

    #[test]
    fn claude_gets_its_rule_and_its_hooks_with_the_launch_line_as_json() {
        let slug: Slug = "dev".parse().expect("a slug");
        let profiles = Profiles::load(None).expect("built in");
        let launch =
            profiles.get("claude").and_then(|p| p.launch(&context(Path::new("/h"), &slug))).expect("launchable");
        assert_eq!(launch.argv[..3], ["env", "-u", "CLAUDECODE"]);
        let at = launch.argv.iter().position(|word| word == "--settings").expect("settings come with the launch line");
        let settings: serde_json::Value = serde_json::from_str(&launch.argv[at + 1]).expect("JSON");
        assert_eq!(settings["permissions"]["allow"][0], "Edit(//h/o'h \"x\"/handoffs/**)");
        let command = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().expect("a command");
        assert_eq!(command, "'/opt/my tools/tasuki' hook claude");
    }

    #[test]
    fn only_known_words_in_braces_are_placeholders() {
        assert_eq!(fill("{\"a\":{}} {x}{y:sh}", |name| format!("<{name}'>")), "{\"a\":{}} <x'>'<y'\\''>'");
        assert_eq!(unknown_placeholder("{home} {\"a\":1} {program:sh:json}"), None);
        assert_eq!(unknown_placeholder("{home} {hom}").as_deref(), Some("hom"));
        assert_eq!(unknown_placeholder("{home:html}").as_deref(), Some("home:html"));
    }
}
