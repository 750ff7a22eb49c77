//! From a profile to the arguments and the environment of a new agent. No shell sees any of it.

use super::format::LaunchSection;
use super::profile::Profile;
use crate::core::id::{AgentId, Slug};
use crate::core::text::hex;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Below the home's `state/`: the folder with one folder of launch files for each profile.
pub const FILES_FOLDER: &str = "launch";
/// What comes before the name of one of the profile's own files in a placeholder: its path.
const FILE: &str = "file:";
/// What comes before the name of one of the profile's own texts in a placeholder: the text, filled in.
pub(super) const TEXT: &str = "text:";

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
    /// The program that the profile names, without what is put before it.
    pub program: String,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// What is added to the environment, sorted by name.
    pub env: Vec<(String, String)>,
    /// Files that must be there before the start, as name and content, below `state/launch/<profile>/`.
    pub files: Vec<(String, String)>,
}

/// The names that may stand in braces in a file: what is the same for all agents of a profile.
const FILE_NAMES: [&str; 3] = ["home", "program", "profile"];
/// The names that may stand in braces.
const NAMES: [&str; 9] =
    ["home", "program", "agent_id", "creation", "persona", "handoffs", "cwd", "previous", "profile"];

impl Profile {
    /// How an agent of this profile is started; `None` if the profile has no `launch`.
    #[must_use]
    pub fn launch(&self, context: &LaunchContext<'_>) -> Option<Launch> {
        let section = self.file.launch.as_ref()?;
        let plain = |name: &str| context.value(&self.name, name);
        let value = |name: &str| match (name.strip_prefix(TEXT), name.strip_prefix(FILE)) {
            (Some(text), _) => section.texts.get(text).map(|text| fill(text, plain)).unwrap_or_default(),
            (_, Some(file)) => files_folder(context.home, &self.name).join(file).display().to_string(),
            (None, None) => plain(name),
        };
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
        let files = section.files.iter().map(|(name, text)| (name.clone(), fill(text, plain))).collect();
        let program = section.argv.first().map(|text| fill(text, value)).unwrap_or_default();
        Some(Launch { program, argv, env: env.into_iter().collect(), files })
    }
}

/// Where the files of a profile's launch line lie. They are the same for all agents of a profile, so there are never
/// more of them than profiles name.
fn files_folder(home: &Path, profile: &str) -> PathBuf {
    home.join("state").join(FILES_FOLDER).join(profile)
}

impl LaunchSection {
    /// One of the section's own files or texts.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.files.get(name).or_else(|| self.texts.get(name)).map(String::as_str)
    }

    /// The first thing about the section that serde can't see to be wrong: the key and what is the matter.
    pub(super) fn fault(&self) -> Option<(&'static str, String)> {
        let unknown = |text: &String, allowed: &[&str]| unknown_placeholder(text, allowed, self);
        if self.argv.first().is_none_or(String::is_empty) {
            return Some(("launch.argv", "must name a program".into()));
        }
        if let Some(name) = self.argv.iter().chain(self.env.values()).find_map(|text| unknown(text, &NAMES)) {
            return Some(("launch", format!("no placeholder is called {{{name}}}")));
        }
        // They stand for a text of their own, so they may not hold each other.
        if let Some(name) = self.texts.values().find_map(|text| unknown_plain(text, &NAMES)) {
            return Some(("launch.texts", format!("no placeholder is called {{{name}}} here")));
        }
        if let Some(name) = self.files.values().find_map(|text| unknown_plain(text, &FILE_NAMES)) {
            return Some(("launch.files", format!("no placeholder is called {{{name}}} here")));
        }
        if self.files.keys().any(|name| !is_file_name(name)) {
            return Some((
                "launch.files",
                "a file's name has a-z, 0-9, _, - and . only, and begins with a letter".into(),
            ));
        }
        let is_variable = |name: &String| {
            !name.is_empty()
                && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && !name.as_bytes()[0].is_ascii_digit()
        };
        if !self.unset.iter().chain(self.env.keys()).all(is_variable) {
            return Some(("launch", "a variable's name has letters, digits and _ only".into()));
        }
        None
    }
}

fn is_file_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b))
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

/// The first `{word}` or `{word:filter}` of small letters, or one of the profile's own texts or files; other braces, such
/// as those of JSON or of a script, are plain text.
fn next_hole(text: &str) -> Option<Hole<'_>> {
    text.match_indices('{').find_map(|(at, _)| {
        let (inside, after) = text[at + 1..].split_once('}')?;
        let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        let own = [FILE, TEXT].iter().find(|prefix| inside.starts_with(**prefix)).map_or(0, |prefix| prefix.len());
        let end = inside[own..].find(':').map_or(inside.len(), |at| own + at);
        let (name, filters) = (&inside[..end], inside[end..].trim_start_matches(':'));
        let is_named = if own > 0 { is_file_name(&name[own..]) } else { is_word(name) };
        let is_filter = |word: &str| word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        (is_named && filters.split(':').all(is_filter)).then(|| Hole { before: &text[..at], name, filters, after })
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
            "sha256" => sha256(&text),
            _ => shell_word(&text),
        }));
        rest = hole.after;
    }
    filled.push_str(rest);
    filled
}

/// The first placeholder of a text that means nothing, if there is one.
fn unknown_placeholder(text: &str, names: &[&str], section: &LaunchSection) -> Option<String> {
    let has_own = |name: &str| {
        name.strip_prefix(TEXT).is_some_and(|name| section.texts.contains_key(name))
            || name.strip_prefix(FILE).is_some_and(|name| section.files.contains_key(name))
    };
    first_unknown(text, |name| names.contains(&name) || has_own(name))
}

/// The same where the profile's own texts and files may not stand.
fn unknown_plain(text: &str, names: &[&str]) -> Option<String> {
    first_unknown(text, |name| names.contains(&name))
}

/// The first placeholder of a text of which nothing is known.
pub(super) fn first_unknown(text: &str, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let mut rest = text;
    while let Some(hole) = next_hole(rest) {
        let filters_known = hole.filters.split(':').all(|filter| matches!(filter, "" | "json" | "sh" | "sha256"));
        if !is_known(hole.name) || !filters_known {
            return Some([hole.name, hole.filters].join(":").trim_end_matches(':').to_owned());
        }
        rest = hole.after;
    }
    None
}

fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
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
        assert_eq!(unknown_plain("{home} {\"a\":1} {program:sh:json}", &NAMES), None);
        assert_eq!(unknown_plain("{home} {hom}", &NAMES).as_deref(), Some("hom"));
        assert_eq!(unknown_plain("{home:html}", &NAMES).as_deref(), Some("home:html"));
        assert_eq!(unknown_plain("{file:x.ts} {cwd}", &FILE_NAMES).as_deref(), Some("file:x.ts"));
    }

    #[test]
    fn a_profile_brings_files_and_texts_of_its_own() {
        let text = r#"
            title = "x"
            exit = { command = "/q" }
            input = { mode = "bracketed" }
            hooks = {}
            screen = { composer = { top = "^-", bottom = "^-" } }
            [launch]
            argv = ["x", "-e", "{file:tell.ts}", "--hash={text:line:sha256}", "{text:line:json}"]
            texts.line = 'run "{program}"'
            files."tell.ts" = 'const program = "{program:json}"; if (x) { y }'
        "#;
        let profile = Profile::parse("x", Path::new("x.toml"), text).expect("a profile");
        let slug: Slug = "dev".parse().expect("a slug");
        let launch = profile.launch(&context(Path::new("/h"), &slug)).expect("launchable");
        assert_eq!(launch.argv[2], "/h/state/launch/x/tell.ts");
        assert_eq!(launch.argv[4], r#"run \"/opt/my tools/tasuki\""#);
        assert_eq!(launch.argv[3], format!("--hash={}", sha256(r#"run "/opt/my tools/tasuki""#)));
        let content = "const program = \"/opt/my tools/tasuki\"; if (x) { y }";
        assert_eq!(launch.files, [("tell.ts".to_owned(), content.to_owned())]);
        for wrong in ["{file:no.ts}", "{text:no}"] {
            let text = text.replacen("{file:tell.ts}", wrong, 1);
            assert!(Profile::parse("x", Path::new("x.toml"), &text).is_err(), "{wrong}");
        }
        let nested = text.replacen("const program", "{file:tell.ts} {agent_id}", 1);
        assert!(Profile::parse("x", Path::new("x.toml"), &nested).is_err(), "a file is the same for all agents");
    }
}
