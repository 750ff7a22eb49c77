//! Makes the arguments and the environment of a new agent from its profile. No shell sees any of it.

use super::placeholder::{FILE, TEXT, fill};
use super::profile::Profile;
use crate::core::id::{AgentId, Slug};
use std::path::{Path, PathBuf};

/// Below the home's `state/`: the folder with one folder of launch files for each profile.
pub const FILES_FOLDER: &str = "launch";

/// What a launch line may refer to.
#[derive(Debug, Clone, Copy)]
pub struct LaunchContext<'a> {
    pub home: &'a Path,
    pub agent_id: AgentId,
    /// The id by which the pane is found again after a crash.
    pub creation: &'a str,
    pub persona_slug: &'a Slug,
    /// The absolute path of the folder of the persona's documents.
    pub handoffs_dir: &'a Path,
    pub program: &'a Path,
    /// The directory in which the agent works.
    pub cwd: &'a Path,
    pub previous: Option<AgentId>,
    /// The model that was asked for; if `None`, the CLI chooses.
    pub model: Option<&'a str>,
}

/// How a process is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The program that the profile names, without the `env` that may stand before it in `argv`.
    pub program: String,
    pub argv: Vec<String>,
    /// What is added to the environment, sorted by name.
    pub env: Vec<(String, String)>,
    /// Files that must be there before the start, as name and content, below `state/launch/<profile>/`.
    pub files: Vec<(String, String)>,
}

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
        if let Some(model) = context.model {
            argv.extend(section.model.iter().map(|text| fill(text, |_| model.to_owned())));
        }
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

/// The folder of the files that a profile's launch line names. They are the same for all agents of a profile, so their
/// number does not grow.
fn files_folder(home: &Path, profile: &str) -> PathBuf {
    home.join("state").join(FILES_FOLDER).join(profile)
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

#[cfg(test)]
mod tests {
    use super::super::profile::Profiles;
    use super::*;
    use crate::core::text::sha256;

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
            model: None,
        }
    }

    #[test]
    fn the_demo_agent_is_launched_with_its_four_variables() {
        let slug: Slug = "dev".parse().expect("a slug");
        let profiles = Profiles::load(None).expect("built in");
        let launch = profiles.get("demo").and_then(|p| p.launch(&context(Path::new("/h"), &slug))).expect("launchable");
        assert_eq!(launch.argv, ["/opt/my tools/tasuki", "demo-agent"]);
        let asked = LaunchContext { model: Some("m{home}"), ..context(Path::new("/h"), &slug) };
        let launch = profiles.get("demo").and_then(|p| p.launch(&asked)).expect("launchable");
        assert_eq!(launch.argv[1..], ["demo-agent", "--model", "m{home}"], "what is filled in is not filled again");
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
    fn a_profile_can_have_its_own_files_and_prompts() {
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
        assert_eq!(launch.argv[3], format!("--hash={}", sha256(br#"run "/opt/my tools/tasuki""#)));
        let content = "const program = \"/opt/my tools/tasuki\"; if (x) { y }";
        assert_eq!(launch.files, [("tell.ts".to_owned(), content.to_owned())]);
        for wrong in ["{file:no.ts}", "{text:no}"] {
            let text = text.replacen("{file:tell.ts}", wrong, 1);
            assert!(Profile::parse("x", Path::new("x.toml"), &text).is_err(), "{wrong}");
        }
        for wrong in ["['--model']", "['--model={home}', '{model}']"] {
            let text = text.replacen("[launch]", &format!("[launch]\nmodel = {wrong}"), 1);
            let fault = Profile::parse("x", Path::new("x.toml"), &text).expect_err("must be refused").to_string();
            assert!(fault.contains("launch.model"), "{fault}");
        }
        let nested = text.replacen("const program", "{file:tell.ts} {agent_id}", 1);
        assert!(Profile::parse("x", Path::new("x.toml"), &nested).is_err(), "a file is the same for all agents");
    }
}
