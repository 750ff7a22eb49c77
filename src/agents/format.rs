//! The profile format: everything that tasuki must know to drive one agent CLI, as data, so that a new CLI needs a TOML
//! file and no Rust. `tasuki schema profile` prints the doc comments.

use super::composer_format::ComposerSection;
use super::condition::Pattern;
use super::hook_format::HooksSection;
use super::limit_format::LimitsSection;
use super::transcript_format::TranscriptSection;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::time::Duration;

/// One agent CLI. The file's name, less `.toml`, is the profile's name.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// What people call this CLI.
    pub title: String,
    /// Recognises the CLI by its arguments, joined by single blanks (`node /usr/bin/codex --foo`). Without it tasuki
    /// never recognises this CLI on its own.
    pub detect: Option<Pattern>,
    /// The command that opens a session of the CLI again, as program and arguments; `{session_id}` is replaced. tasuki
    /// shows it, and runs it when a person asks for that (`tasuki reopen`).
    #[serde(default)]
    pub resume: Vec<String>,
    /// How tasuki starts it. Without it the CLI can only be adopted.
    pub launch: Option<LaunchSection>,
    /// How tasuki asks for its version, and with which versions this profile was tried.
    pub version: Option<VersionSection>,
    /// How it is ended.
    pub exit: ExitSection,
    /// How a new session is begun in the same pane; without it `same_pane` is refused.
    pub new_session: Option<NewSection>,
    /// How text is put in and submitted.
    pub input: InputSection,
    /// When it counts as ready after a start.
    #[serde(default)]
    pub ready: ReadySection,
    /// How its screen is read.
    pub screen: ScreenSection,
    /// Which of its own events mean what.
    pub hooks: HooksSection,
    /// How its transcript is read; without it there is no `agent_reply`, no `salvage`, no context usage from it, and
    /// nothing is known of what the agent did.
    pub transcript: Option<TranscriptSection>,
    /// How the limits of the CLI show (used up, no credit, logged out, overloaded).
    pub limits: Option<LimitsSection>,
    /// What goes into the CLI's own configuration so that an agent that tasuki did not start reports too.
    pub install: Option<InstallSection>,
}

/// How tasuki starts the CLI. In every value of this section `{home}`, `{program}` (tasuki's own path), `{agent_id}`,
/// `{creation}`, `{persona}`, `{handoffs}` (the folder of the persona's documents), `{cwd}`, `{previous}` and
/// `{profile}` are replaced; `{handoffs:json}` is escaped for the inside of a JSON string, `{program:sh}` quoted as
/// one word of a shell, `{program:sh:json}` first one, then the other. `{text:NAME}` and `{file:NAME}` stand for one of
/// `texts` and for the path of one of `files`; `{text:NAME:sha256}` is a text's SHA-256 in hexadecimal digits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaunchSection {
    /// Program and arguments. They are never given to a shell.
    pub argv: Vec<String>,
    /// What is added to `argv` if the new agent is to use a certain model, such as `["--model", "{model}"]`. Without it
    /// no model can be asked for.
    #[serde(default)]
    pub model: Vec<String>,
    /// Added to the environment, beside `TASUKI_AGENT_ID`, `TASUKI_HOME`, `TASUKI_PERSONA` and `TASUKI_CREATION`.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Names taken out of the environment first, such as `CLAUDECODE`.
    #[serde(default)]
    pub unset: Vec<String>,
    /// Texts that replace `{text:NAME}` in `argv` and `env`: for a text that is used more than once, or as its hash.
    #[serde(default)]
    pub texts: BTreeMap<String, String>,
    /// Files that are written, readable by this user alone, before each start, by name: an extension, a configuration.
    /// `{file:NAME}` in `argv` and `env` is a file's path. In their text `{home}`, `{program}` and `{profile}` are
    /// replaced; values that differ between agents are in the CLI's environment.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// How to ask the CLI for its version. tasuki asks when an agent does not become ready, because screens change between
/// versions.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VersionSection {
    /// Program and arguments that print it.
    pub argv: Vec<String>,
    /// The versions with which this profile was tried: what each prints, or a part of it.
    pub tried: Vec<String>,
}

/// How the CLI is ended.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExitSection {
    /// Typed as one unbracketed piece, then Enter: `/exit`.
    pub command: String,
}

/// How a new session is begun in the same process.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSection {
    /// Typed as one unbracketed piece, then Enter: `/clear`.
    pub command: String,
    /// The new session reports itself only with its first prompt; until then the empty screen is the only sign.
    #[serde(default)]
    pub lazy: bool,
}

/// How text goes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputMode {
    /// As one bracketed paste.
    Bracketed,
    /// As unbracketed pieces with a pause between, as if typed.
    Pieces,
}

/// How text is put in and submitted.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InputSection {
    /// One bracketed paste, or typed pieces.
    pub mode: InputMode,
    /// For a bracketed paste: the longest text, in bytes, that the CLI also takes without brackets. Any if not given.
    #[serde(default)]
    pub raw_bytes: Option<usize>,
    /// For pieces: characters in one piece. An emoji counts as two.
    #[serde(default = "piece_chars")]
    pub piece_chars: usize,
    /// For pieces: the pause between two of them.
    #[serde(default = "ms::<30>", deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub piece_gap: Duration,
    /// For pieces: the pause between the last one and Enter.
    #[serde(default = "ms::<500>", deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub settle: Duration,
    /// The pause between seeing the text in the composer and Enter.
    #[serde(default = "ms::<150>", deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub enter_delay: Duration,
    /// If the text is still in the composer after this time, Enter is pressed again.
    #[serde(default = "ms::<2000>", deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub enter_retry_after: Duration,
    /// How often Enter may be pressed again.
    #[serde(default = "one")]
    pub enter_retries: u32,
}

/// When the CLI counts as ready after a start.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReadySection {
    /// How long the screen must look ready without a change.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub calm: Duration,
    /// How long tasuki waits for that.
    #[serde(deserialize_with = "duration")]
    #[schemars(with = "String")]
    pub timeout: Duration,
}

impl Default for ReadySection {
    fn default() -> Self {
        ReadySection { calm: Duration::from_millis(500), timeout: Duration::from_secs(60) }
    }
}

/// How the screen is read. Lines are matched without their trailing blanks.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenSection {
    /// The composer: the box in which the next prompt is written.
    pub composer: ComposerSection,
    /// A turn is running if one of these matches a line near the composer: one of the last `busy_lines` lines above
    /// it that are not blank, or one below it. Text in the composer never counts.
    #[serde(default)]
    pub busy: Vec<Pattern>,
    /// How many lines above the composer are looked at for `busy`.
    #[serde(default = "busy_lines")]
    pub busy_lines: usize,
    /// A dialog is open if one of these matches the live end of the screen: the last `blocked_lines` lines that are
    /// not blank, joined by newlines, or, if the screen shows a composer, only the lines below it. Match the whole menu
    /// with `(?m)`, not a single word: an old menu further up, or a list in the agent's prose, is not a dialog.
    #[serde(default)]
    pub blocked: Vec<Pattern>,
    /// How many lines at the end of the screen are looked at for `blocked`.
    #[serde(default = "blocked_lines")]
    pub blocked_lines: usize,
    /// All of these must match some line of the screen before the CLI counts as ready.
    #[serde(default)]
    pub ready: Vec<Pattern>,
    /// None of these may match a line of the screen: a splash, a start-up question.
    #[serde(default)]
    pub not_ready: Vec<Pattern>,
    /// The screen alone proves that a prompt was taken: the composer is emptied and a turn begins. Only for a CLI
    /// that does not report prompts.
    #[serde(default)]
    pub proof: bool,
}

/// What `tasuki hooks install` puts into the CLI's own configuration, for agents that people start themselves.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallSection {
    /// Which file: `"~/.mycli/settings.json"`. A list if the CLI has an environment variable for the path: the first
    /// whose variable is set counts, as in `["$MYCLI_HOME/settings.json", "~/.mycli/settings.json"]`.
    pub file: Places,
    /// What kind of file it is.
    #[serde(default)]
    pub format: InstallFormat,
    /// What goes in, with `{program}`, `{home}` and `{profile}` as in `launch`; `{text:NAME}` is one of `launch.files`
    /// or `launch.texts`, so that the profile need not repeat it. For `json` and `jsonc` an object: its objects
    /// are merged with those in the file, and the elements of its lists are added after those in the file.
    pub text: String,
    /// What else the person has to do, in one or two sentences.
    pub note: Option<String>,
    /// More files, each of them tasuki's alone, such as the command `/handoff`. A person's own file is never replaced.
    #[serde(default)]
    pub files: Vec<InstallFile>,
}

/// A file that goes in with the hooks.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallFile {
    /// Which file, as `install.file` says it.
    pub file: Places,
    /// All of it, with the same placeholders as `install.text`.
    pub text: String,
}

/// One place or several.
#[derive(Debug, Clone, JsonSchema)]
#[schemars(with = "PlaceOrPlaces")]
pub struct Places(pub Vec<String>);

/// How places are written.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be a path, or a list of paths")]
enum PlaceOrPlaces {
    /// One.
    One(String),
    /// The first whose variable is set.
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for Places {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Places(match PlaceOrPlaces::deserialize(deserializer)? {
            PlaceOrPlaces::One(place) => vec![place],
            PlaceOrPlaces::Several(places) => places,
        }))
    }
}

/// What kind of file hooks are put into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstallFormat {
    /// JSON, merged into the file.
    #[default]
    Json,
    /// The same with comments.
    Jsonc,
    /// A file of our own, such as an extension: `text` is all of it.
    File,
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let value = humantime::parse_duration(&text)
        .map_err(|why| serde::de::Error::custom(format!("not a duration such as \"150ms\": {why}")))?;
    if value <= Duration::from_secs(600) {
        Ok(value)
    } else {
        Err(serde::de::Error::custom("the duration must be at most 10 minutes"))
    }
}

fn ms<const N: u64>() -> Duration {
    Duration::from_millis(N)
}

fn piece_chars() -> usize {
    400
}

fn one() -> u32 {
    1
}

fn busy_lines() -> usize {
    8
}

fn blocked_lines() -> usize {
    20
}
