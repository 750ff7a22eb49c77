//! Loads and checks profiles: the built-in ones, and those of a home, which add to them or replace them.

use super::condition::{Pattern, with_known_patterns};
use super::format::{LaunchSection, ProfileFile};
use super::hook_format::{HookRule, Meaning};
use super::limit_format::LimitsSection;
use crate::core::hook::HookKind;
use crate::core::settings::{NewSession, ProfileFacts};
use crate::core::text::{line_of, quotable, quotable_key, sanitise};
use crate::files::{self, way};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The profiles that are compiled in, by name.
pub(super) const BUILT_IN: &[(&str, &str)] = &[
    ("claude", include_str!("../../data/profiles/claude.toml")),
    ("codex", include_str!("../../data/profiles/codex.toml")),
    ("demo", include_str!("../../data/profiles/demo.toml")),
    ("gemini", include_str!("../../data/profiles/gemini.toml")),
    ("opencode", include_str!("../../data/profiles/opencode.toml")),
    ("pi", include_str!("../../data/profiles/pi.toml")),
];

pub(super) const MAX_BYTES: u64 = 256 * 1024;
/// The largest number of characters of a key, and of what is wrong with it, that a message quotes.
const MAX_QUOTED: usize = 400;
/// The largest number of profile files that one home may have.
const MAX_FILES: usize = 256;

/// Why profiles could not be loaded. Nothing was changed anywhere.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The folder or a file could not be read.
    #[error("could not read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// The file must not be read.
    #[error("{path} {rule}; the profile was not loaded")]
    Unfit { path: PathBuf, rule: &'static str },
    /// Others could change what it says, and it names programs that are run.
    #[error("{0}; no profile was loaded")]
    Exposed(way::Unsafe),
    #[error("{path}, line {line}, key `{key}`: {message}")]
    Wrong {
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
        /// The key, as a dotted path.
        key: String,
        message: String,
    },
}

/// One profile, read and checked.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Its name: the file's name less `.toml`.
    pub name: String,
    pub file: ProfileFile,
}

impl Profile {
    /// Reads a profile's text, and checks it. `path` is only for messages.
    ///
    /// # Errors
    /// [`ProfileError::Wrong`] with file, line and key.
    pub fn parse(name: &str, path: &Path, text: &str) -> Result<Self, ProfileError> {
        let profile = Profile::read(name, path, text)?;
        profile.check().map_err(|(key, message)| wrong(path, line_of_key(text, key), key, &message))?;
        Ok(profile)
    }

    /// A profile of [`BUILT_IN`], which a test checks.
    fn built_in(name: &str, text: &str) -> Result<Self, ProfileError> {
        with_known_patterns(|| Profile::read(name, Path::new(&format!("built-in profile {name}.toml")), text))
    }

    fn read(name: &str, path: &Path, text: &str) -> Result<Self, ProfileError> {
        let deserializer = toml::Deserializer::parse(text)
            .map_err(|why| wrong(path, line_of(text, why.span()), ".", why.message()))?;
        let file: ProfileFile = serde_path_to_error::deserialize(deserializer).map_err(|why| {
            let key = why.path().to_string();
            let inner = why.into_inner();
            wrong(path, line_of(text, inner.span()), &key, inner.message())
        })?;
        Ok(Profile { name: name.to_owned(), file })
    }

    /// Checks the rules that serde cannot.
    fn check(&self) -> Result<(), (&'static str, String)> {
        if let Some(fault) = self.file.launch.as_ref().and_then(LaunchSection::fault) {
            return Err(fault);
        }
        if let Some(fault) = self.resume_fault() {
            return Err(("resume", fault));
        }
        if let Some(fault) = self.file.transcript.as_ref().and_then(|rules| rules.tools.as_ref()?.fault()) {
            return Err(fault);
        }
        if let Some(fault) = self.file.limits.as_ref().and_then(LimitsSection::fault) {
            return Err(fault);
        }
        if !is_command(&self.file.exit.command) {
            return Err(("exit.command", "must be one line of 1 to 200 visible characters".into()));
        }
        if self.file.new_session.as_ref().is_some_and(|new| !is_command(&new.command)) {
            return Err(("new_session.command", "must be one line of 1 to 200 visible characters".into()));
        }
        if !(1..=4_000).contains(&self.file.input.piece_chars) {
            return Err(("input.piece_chars", "must be from 1 to 4000".into()));
        }
        super::install::check(&self.name, &self.file)?;
        if self.file.input.enter_retries > 5 {
            return Err(("input.enter_retries", "must be at most 5".into()));
        }
        let has_text = |wrapper: &Pattern| wrapper.regex().capture_names().flatten().any(|name| name == "text");
        if !self.file.hooks.wrappers.iter().all(has_text) {
            return Err(("hooks.wrappers", "needs a group named `text`, as in (?<text>.*)".into()));
        }
        Ok(())
    }

    /// What the core must know of this profile.
    #[must_use]
    pub fn facts(&self) -> ProfileFacts {
        let reports = |rule: &HookRule| rule.event == Meaning::Event(HookKind::PromptSubmit) && rule.text.is_some();
        let tells = |rule: &HookRule| rule.event == Meaning::Event(HookKind::Stop) && rule.last_text.is_some();
        let fails = |rule: &HookRule| rule.event == Meaning::Event(HookKind::StopFailure);
        ProfileFacts {
            name: self.name.clone(),
            launchable: self.file.launch.is_some(),
            shows_limits: self.file.limits.is_some(),
            reports_failures: self.file.hooks.on.iter().any(fails),
            takes_model: self.file.launch.as_ref().is_some_and(|launch| !launch.model.is_empty()),
            reports_prompts: self.file.hooks.on.iter().any(reports),
            screen_proof: self.file.screen.proof,
            starts_at_launch: self.file.hooks.starts_at_launch,
            turn_ids: self.file.hooks.turn_id.is_some(),
            new_session: self
                .file
                .new_session
                .as_ref()
                .map(|new| if new.lazy { NewSession::Lazy } else { NewSession::Reported }),
            reports_answers: self.file.hooks.on.iter().any(tells),
            reports_context: self.file.transcript.as_ref().is_some_and(|rules| rules.context.is_some()),
            proves_prompts: self.file.transcript.as_ref().is_some_and(|rules| rules.proves_prompts),
            reports_tools: self.file.transcript.as_ref().is_some_and(|rules| rules.tools.is_some()),
            shows_dialogs: !self.file.screen.blocked.is_empty(),
            has_transcript: self.file.transcript.as_ref().is_some_and(|rules| !rules.messages.is_empty()),
            resume: self.file.resume.clone(),
        }
    }

    /// Whether a program with these arguments is this CLI.
    #[must_use]
    pub fn detects(&self, argv: &[String]) -> bool {
        self.file.detect.as_ref().is_some_and(|pattern| pattern.regex().is_match(&argv.join(" ")))
    }

    /// What is typed to end the CLI.
    #[must_use]
    pub fn exit_command(&self) -> &str {
        &self.file.exit.command
    }

    /// What is typed to begin a new session in the same pane, if the CLI has that.
    #[must_use]
    pub fn new_command(&self) -> Option<&str> {
        self.file.new_session.as_ref().map(|new| new.command.as_str())
    }
}

fn wrong(path: &Path, line: usize, key: &str, message: &str) -> ProfileError {
    ProfileError::Wrong {
        path: path.to_owned(),
        line,
        key: quotable_key(key, MAX_QUOTED),
        message: quotable(message, MAX_QUOTED),
    }
}

/// All profiles of a home, by name.
#[derive(Debug, Clone)]
pub struct Profiles {
    by_name: BTreeMap<String, Profile>,
}

impl Profiles {
    /// The built-in profiles, and those in `dir` (HOME/data/profiles), if it exists, which add to them or replace them.
    ///
    /// # Errors
    /// When a file can't be read, is not a regular file of at most 256 KiB with a legal name, or is not a profile.
    pub fn load(dir: Option<&Path>) -> Result<Self, ProfileError> {
        let mut by_name = BTreeMap::new();
        for (name, text) in BUILT_IN {
            by_name.insert((*name).to_owned(), Profile::built_in(name, text)?);
        }
        for path in dir.map(files_in).transpose()?.unwrap_or_default() {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            if !is_name(&name) {
                let rule = "does not have a profile's name: 1 to 64 of a-z, 0-9 and -, not beginning with -";
                return Err(ProfileError::Unfit { path, rule });
            }
            let text = read_regular(&path)?;
            by_name.insert(name.clone(), Profile::parse(&name, &path, &text)?);
        }
        Ok(Profiles { by_name })
    }

    /// The profile with that name, if there is one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.by_name.get(name)
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.by_name.values()
    }

    /// What the core must know of each.
    #[must_use]
    pub fn facts(&self) -> BTreeMap<String, ProfileFacts> {
        self.by_name.iter().map(|(name, profile)| (name.clone(), profile.facts())).collect()
    }

    /// The first profile, by name, whose `detect` fits a program's arguments.
    #[must_use]
    pub fn detect(&self, argv: &[String]) -> Option<&Profile> {
        self.iter().find(|profile| profile.detects(argv))
    }
}

/// Reads a file of at most 256 KiB without following a link at its end and without waiting at a FIFO.
pub(super) fn read_regular(path: &Path) -> Result<String, ProfileError> {
    let failed = |source| ProfileError::Read { path: path.to_owned(), source };
    guard(path)?;
    let unfit = |rule| ProfileError::Unfit { path: path.to_owned(), rule };
    let (file, meta) = files::open(path).map_err(failed)?;
    if !meta.is_file() {
        return Err(unfit("is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(unfit("is larger than 256 KiB"));
    }
    String::from_utf8(bytes).map_err(|_| unfit("is not UTF-8"))
}

/// Refuses a path that another user could change. A missing file is not an error here; the caller's read reports it.
fn guard(path: &Path) -> Result<(), ProfileError> {
    match way::trust_if_there(path) {
        Err(error @ way::Unsafe::Exposed { .. }) => Err(ProfileError::Exposed(error)),
        _ => Ok(()),
    }
}

fn files_in(dir: &Path) -> Result<Vec<PathBuf>, ProfileError> {
    let failed = |source| ProfileError::Read { path: dir.to_owned(), source };
    guard(dir)?;
    let entries = match fs::read_dir(dir) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
        if files.len() > MAX_FILES {
            return Err(ProfileError::Unfit { path: dir.to_owned(), rule: "holds more than 256 profiles" });
        }
    }
    files.sort();
    Ok(files)
}

/// A profile's name obeys the rule of persona slugs: it is part of a path.
pub(super) fn is_name(name: &str) -> bool {
    name.parse::<crate::core::id::Slug>().is_ok()
}

fn is_command(text: &str) -> bool {
    !text.is_empty() && text.len() <= 200 && !text.contains(['\n', '\t']) && sanitise(text) == text
}

/// The line on which a dotted key's last part is set or its table begins, for rules that are checked after parsing.
fn line_of_key(text: &str, key: &str) -> usize {
    let header_of = |name: &str| text.lines().position(|line| line.trim().trim_matches(['[', ']']) == name);
    if let Some(header) = header_of(key) {
        return header + 1;
    }
    let mut parts = key.split('.');
    let header = header_of(parts.next().unwrap_or_default()).unwrap_or(0);
    let Some(last) = parts.next_back() else { return header + 1 };
    let below = text.lines().skip(header).position(|line| line.trim_start().starts_with(last)).unwrap_or(0);
    header + below + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demo() -> &'static str {
        BUILT_IN.iter().find(|(name, _)| *name == "demo").map_or("", |(_, text)| text)
    }

    fn fault(text: &str) -> String {
        Profile::parse("x", Path::new("x.toml"), text).expect_err("must be refused").to_string()
    }

    #[test]
    fn every_built_in_profile_is_right() {
        for (name, text) in BUILT_IN {
            Profile::parse(name, Path::new(name), text).expect("its expressions compile, and it keeps the rules");
        }
        let profiles = Profiles::load(None).expect("the built-in profiles are right");
        let facts = profiles.get("demo").expect("there is a demo").facts();
        assert!(facts.launchable && facts.reports_prompts && facts.starts_at_launch && facts.turn_ids);
        assert_eq!(profiles.facts().len(), BUILT_IN.len());
    }

    #[test]
    fn the_schema_describes_every_field() {
        let schema = serde_json::to_value(schemars::schema_for!(ProfileFile)).expect("JSON");
        let definitions = schema["$defs"].as_object().expect("definitions").values().chain([&schema]);
        for definition in definitions {
            for (name, field) in definition["properties"].as_object().into_iter().flatten() {
                assert!(field.get("description").is_some(), "{name}: {field}");
            }
        }
    }

    #[test]
    fn a_wrong_key_is_named_with_its_file_and_line() {
        let text = demo().replacen("[exit]", "[exit]\ncommnd = 1", 1);
        let line = text.lines().position(|line| line.starts_with("commnd")).expect("it is there") + 1;
        let message = fault(&text);
        assert!(
            message.contains("x.toml") && message.contains("commnd") && message.contains(&format!("line {line}")),
            "{message}"
        );
    }

    #[test]
    fn a_wrong_pattern_is_named_with_its_line() {
        let text = demo().replacen("detect = '", "detect = '(", 1);
        let line = text.lines().position(|line| line.starts_with("detect")).expect("it is there") + 1;
        let message = fault(&text);
        assert!(message.contains("`detect`") && message.contains(&format!("line {line},")), "{message}");
        assert!(message.contains("regular expression"), "{message}");
    }

    #[test]
    fn rules_that_serde_cannot_check_are_checked_too() {
        let message = fault(&demo().replacen("{program}", "{programm}", 1));
        assert!(message.contains("{programm}"), "{message}");
        assert!(fault(&demo().replacen("command = \"/exit\"", "command = \"a\\nb\"", 1)).contains("exit.command"));
    }

    #[test]
    fn detection_looks_at_the_arguments() {
        let profiles = Profiles::load(None).expect("built in");
        let name = |argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(ToString::to_string).collect();
            profiles.detect(&argv).map(|profile| profile.name.clone())
        };
        assert_eq!(name(&["/usr/bin/tasuki", "demo-agent"]).as_deref(), Some("demo"));
        assert_eq!(name(&["claude", "--continue"]).as_deref(), Some("claude"));
        assert_eq!(name(&["node", "/usr/lib/node_modules/@openai/codex/bin/codex.js"]).as_deref(), Some("codex"));
        assert_eq!(name(&["node", "/usr/local/bin/pi"]).as_deref(), Some("pi"));
        assert_eq!(name(&["vim", "claude.md"]), None);
        assert_eq!(name(&["bash"]), None);
    }

    #[test]
    fn a_home_puts_its_own_in_place_and_links_are_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        fs::write(dir.path().join("mine.toml"), demo()).expect("written");
        fs::write(dir.path().join("demo.toml"), demo().replacen("/exit", "/bye", 1)).expect("written");
        let profiles = Profiles::load(Some(dir.path())).expect("both are right");
        assert_eq!(profiles.get("demo").map(Profile::exit_command), Some("/bye"));
        assert!(profiles.get("mine").is_some());
        std::os::unix::fs::symlink("mine.toml", dir.path().join("other.toml")).expect("linked");
        assert!(Profiles::load(Some(dir.path())).expect_err("a link").to_string().contains("other.toml"));
    }

    #[test]
    fn a_profile_over_its_size_is_refused() {
        let dir = tempfile::tempdir().expect("a folder");
        let big = usize::try_from(MAX_BYTES).expect("small") + 1;
        fs::write(dir.path().join("big.toml"), "#".repeat(big)).expect("written");
        assert!(Profiles::load(Some(dir.path())).expect_err("too large").to_string().contains("256 KiB"));
    }
}
