//! `tasuki hook <profile> [--event NAME] [--home DIR]`: an agent's CLI runs it for each of its hook events, with the
//! hook's JSON on standard input. It writes one file to `spool/events/` and exits within a few milliseconds. It never
//! prints, never fails and never makes the agent wait, because some CLIs act on exit code 2 or on a line on standard
//! output. So this file uses no argument parser, no runtime, and only the `hooks` part of the profile. It compiles no
//! pattern for prompts and the ends of turns. Only an event with a message, such as a failure or a notification, is
//! searched for credentials: that takes 1 to 2 ms more, or some 10 ms if the message has words such as `token`.

use super::event::{MAX_LAST_TEXT, MAX_TEXT};
use super::hook_format::HooksSection;
use super::hook_time::{HookTime, ancestors};
use super::profile::{self, BUILT_IN};
use super::prune::{prune, tail};
use super::rules::Extract;
use crate::core::hook::HookKind;
use crate::core::id::{AgentId, Slug};
use crate::secrets::{self, Known};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How much is kept of standard input, in bytes.
const MAX_INPUT: usize = 1 << 20;
/// How much is read and discarded after that, in bytes, so that the CLI does not write to a closed pipe.
const MAX_DRAIN: usize = 16 << 20;
/// How long standard input may take as a whole.
const INPUT_TIME: Duration = Duration::from_secs(1);
/// After this silence, what was read is taken if it is a whole JSON object: some CLIs keep the pipe open.
const SILENCE: Duration = Duration::from_millis(50);
/// A payload larger than this is cut down, in bytes of JSON.
const MAX_PAYLOAD: usize = 256 * 1024;
/// Largest input of a probe (see [`PROBE`]), in bytes.
const MAX_PROBE: usize = 4096;
/// The largest number of processes above the hook that are named.
const MAX_ANCESTORS: usize = 8;

/// The whole command. `args` are those after `hook`. `usual` is the user's default tasuki home, for a command that
/// names none (a plugin's, which is the same on every machine). `make_room` removes old events if too many wait in a
/// home. The exit code is always 0.
pub fn main(args: impl Iterator<Item = OsString>, usual: fn() -> Option<PathBuf>, make_room: fn(&Path)) -> u8 {
    let hook_time = HookTime::take();
    let options = HookOptions::parse(args);
    // Rust's default panic hook would print, and no output of ours may reach the CLI.
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::panic::catch_unwind(|| {
        if let Some(home) = options.home(usual) {
            let input = if io::stdin().is_terminal() { Vec::new() } else { read_all(&mut io::stdin().lock()) };
            let event = event(&options, &home, &input, &hook_time, &|name| std::env::var(name).ok());
            if event.is_some() {
                make_room(&home);
            }
            // Failures are ignored: the agent must not be disturbed, and the sidecar notices missing hooks.
            let _ = match (probe(&input), event) {
                (Some(id), event) => write(&home, &probe_name(&id), &event.unwrap_or_else(|| json!({"v": 1}))),
                (None, Some(event)) => write(&home, &hook_time.file_name(), &event),
                (None, None) => Ok(()),
            };
        }
    });
    0
}

/// The field that makes a hook's input a probe, by which `tasuki doctor` tests the hook. Its value is a UUID, which
/// `doctor` chooses.
pub const PROBE: &str = "tasuki_probe";
/// How the name of a probe's event file begins. The sidecar ignores names with a leading dot, so a probe changes
/// nothing.
const PROBE_START: &str = ".probe-";

/// The name of a probe's event file.
#[must_use]
pub fn probe_name(id: &uuid::Uuid) -> String {
    format!("{PROBE_START}{}.json", id.as_hyphenated())
}

/// Whether a file in `spool/events/` is a probe's event file.
#[must_use]
pub fn is_probe(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PROBE_START) && name.ends_with(".json"))
}

/// If the input is a probe: its id. A large input is not a probe, and is not parsed a second time.
fn probe(input: &[u8]) -> Option<uuid::Uuid> {
    #[derive(Deserialize)]
    struct Probed {
        tasuki_probe: uuid::Uuid,
    }
    if input.len() > MAX_PROBE {
        return None;
    }
    serde_json::from_slice::<Probed>(input).ok().map(|probed| probed.tasuki_probe)
}

#[derive(Debug, Default)]
pub(super) struct HookOptions {
    pub(super) profile: String,
    pub(super) event: Option<String>,
    pub(super) home: Option<PathBuf>,
}

impl HookOptions {
    /// Unknown words are passed over: a later tasuki may have written the hook's command.
    pub(super) fn parse(mut args: impl Iterator<Item = OsString>) -> Self {
        let mut options = HookOptions::default();
        while let Some(arg) = args.next() {
            let bytes = arg.as_bytes();
            let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
                Some(at) if bytes.starts_with(b"--") => (&bytes[..at], Some(OsStr::from_bytes(&bytes[at + 1..]))),
                _ => (bytes, None),
            };
            let mut value = || value.map(OsStr::to_owned).or_else(|| args.next());
            match name {
                b"--event" => options.event = value().and_then(|name| name.into_string().ok()),
                b"--home" => options.home = value().map(PathBuf::from),
                word if !word.starts_with(b"-") && options.profile.is_empty() => {
                    options.profile = String::from_utf8_lossy(word).into_owned();
                }
                _ => {}
            }
        }
        options
    }

    /// The home that the launch put into the environment, else the home that `hooks install` wrote into the command,
    /// else the user's default home.
    pub(super) fn home(&self, usual: fn() -> Option<PathBuf>) -> Option<PathBuf> {
        let from_env = std::env::var_os("TASUKI_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        from_env.or_else(|| self.home.clone()).or_else(usual).filter(|home| home.is_absolute())
    }
}

/// Reads until the end, the limit, or the deadline.
pub(super) fn read_all(input: &mut (impl Read + AsFd)) -> Vec<u8> {
    let deadline = Instant::now() + INPUT_TIME;
    let (mut kept, mut drained, mut chunk) = (Vec::new(), 0_usize, vec![0_u8; 16 * 1024]);
    while drained < MAX_DRAIN {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if !is_readable(input, left.min(SILENCE)) {
            if kept.last() == Some(&b'}') && serde_json::from_slice::<IgnoredAny>(&kept).is_ok() {
                break;
            }
            continue;
        }
        match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                let room = MAX_INPUT.saturating_add(1).saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(&chunk[..room]);
                drained += count - room;
            }
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    kept
}

fn is_readable(input: &impl AsFd, time: Duration) -> bool {
    let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::ZERO);
    poll(&mut fds, time).is_ok_and(|count| count > 0)
}

/// The profile's `hooks` part alone; the rest of the file is ignored.
#[derive(Deserialize)]
struct HooksOnly {
    hooks: HooksSection<IgnoredAny>,
}

fn hooks_of(name: &str, home: &Path) -> Result<HooksSection<IgnoredAny>, String> {
    if !profile::is_name(name) {
        return Err("the hook's command does not name a valid profile".into());
    }
    let path = home.join("data/profiles").join(format!("{name}.toml"));
    let built_in = BUILT_IN.iter().find(|(built_in, _)| *built_in == name).map(|(_, text)| hooks_tables(text));
    let text = match profile::read_regular(&path) {
        Ok(text) => text,
        Err(profile::ProfileError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            built_in.ok_or_else(|| format!("there is no profile {name}"))?
        }
        Err(why) => return Err(why.to_string()),
    };
    toml::from_str::<HooksOnly>(&text)
        .map(|only| only.hooks)
        .map_err(|why| format!("profile {name}: {}", why.message()))
}

/// The lines of a built-in profile that are its `hooks` part. To read the whole file would take as long as all else
/// that the hook does. A profile of the home is read whole, because its `hooks` part may be written in any way that
/// TOML has.
fn hooks_tables(profile: &str) -> String {
    let mut wanted = false;
    let lines = profile.split_inclusive('\n').filter(|line| {
        if let Some(table) = line.strip_prefix('[') {
            wanted = table.trim_start_matches('[').starts_with("hooks");
        }
        wanted
    });
    lines.collect()
}

/// The event file's content; `None` if the profile wants this hook ignored. If something is wrong, the event has a
/// message that says so. It keeps its meaning if the event's name can still be read, and is a `notification` otherwise.
fn event(
    options: &HookOptions,
    home: &Path,
    input: &[u8],
    hook_time: &HookTime,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<Value> {
    let (payload, mut complaint) = parse(input);
    let mut found = Extract { kind: Some(HookKind::Notification), ..Extract::default() };
    match hooks_of(&options.profile, home) {
        Err(why) => complaint = Some(why),
        Ok(hooks) => {
            let salvaged = || hooks.name.as_ref().and_then(|at| salvage(input, at.top_level()?));
            let name = options.event.clone().or_else(|| hooks.name_in(&payload)).or_else(salvaged);
            match name.as_deref().map(|name| (name, hooks.extract(name, &payload))) {
                Some((_, Some(extract))) => found = extract,
                Some((name, None)) => {
                    found = Extract { kind: found.kind, ..hooks.common(&payload) };
                    complaint.get_or_insert(format!("the profile has no rule for the event {name:.64}"));
                }
                None => {
                    complaint.get_or_insert("the hook's input names no event".into());
                }
            }
        }
    }
    if let Some(complaint) = complaint {
        found.message = Some(format!("tasuki hook: {complaint}"));
    }
    found.kind.map(|kind| assemble(kind, found, payload, options, hook_time, env))
}

/// The input as JSON, or an empty object and what is wrong.
fn parse(input: &[u8]) -> (Value, Option<String>) {
    let empty = || Value::Object(Map::new());
    if input.iter().all(u8::is_ascii_whitespace) {
        return (empty(), Some("the hook's input is missing".into()));
    }
    if input.len() > MAX_INPUT {
        return (empty(), Some("the hook's input is over 1 MiB".into()));
    }
    match super::json::read::<Value>(input) {
        Ok(value @ Value::Object(_)) => (value, None),
        Ok(_) => (empty(), Some("the hook's input is not a JSON object".into())),
        Err(why) => {
            (empty(), Some(format!("the hook's input is not JSON (line {}, column {})", why.line(), why.column())))
        }
    }
}

/// The string behind `"key":` in input that can't be parsed as a whole: cut off, or too long. So a Stop stays a Stop.
fn salvage(input: &[u8], key: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&input[..input.len().min(MAX_INPUT)]);
    let (_, after) = text.split_once(&format!("\"{key}\""))?;
    let value = after.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    let (value, _) = value.split_once('"')?;
    (!value.is_empty() && value.len() <= 64 && !value.contains('\\')).then(|| value.to_owned())
}

pub(super) fn assemble(
    kind: HookKind,
    found: Extract,
    payload: Value,
    options: &HookOptions,
    hook_time: &HookTime,
    env: &dyn Fn(&str) -> Option<String>,
) -> Value {
    let agent_id = env("TASUKI_AGENT_ID").filter(|id| id.parse::<AgentId>().is_ok());
    let pane = env("TMUX_PANE").filter(|pane| pane.strip_prefix('%').is_some_and(|n| n.parse::<u32>().is_ok()));
    let slug = env("TASUKI_PERSONA").filter(|slug| slug.parse::<Slug>().is_ok());
    let text = found.text.as_deref().map(|text| tail(text, MAX_TEXT));
    let last_text = found.last_text.as_deref().map(|text| tail(text, MAX_LAST_TEXT));
    let mut event = json!({
        "v": 1,
        "event": kind,
        "agent_id": agent_id,
        "pane": pane,
        "tmux": env("TMUX"),
        "profile": options.profile,
        "at": crate::core::time::rfc3339(hook_time.wall_ms),
        "payload": prune(payload, MAX_PAYLOAD),
        "ancestors": ancestors(MAX_ANCESTORS),
    });
    let more = [
        ("text", json!(text)),
        ("last_text", json!(last_text)),
        ("session_id", json!(found.session_id)),
        ("turn_id", json!(found.turn_id)),
        ("transcript_path", json!(found.transcript_path)),
        ("cwd", json!(found.cwd)),
        ("persona_slug", json!(slug)),
        ("reason", json!(found.reason)),
        ("paused", json!(found.paused.then_some(true))),
        (
            "message",
            json!(
                found
                    .message
                    .map(|text| secrets::without(&text, &Known::default()).chars().take(500).collect::<String>())
            ),
        ),
        ("context", json!(found.context)),
    ];
    if let Some(map) = event.as_object_mut() {
        map.extend(more.into_iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.to_owned(), value)));
    }
    event
}

/// Writes the file in `spool/tmp` and renames it into `spool/events`. The file is not synced: a power cut that loses
/// the event also ends its agent.
pub(super) fn write(home: &Path, name: &str, event: &Value) -> io::Result<()> {
    let spool = home.join("spool");
    let (draft, place) = (spool.join("tmp").join(format!("{name}.tmp")), spool.join("events").join(name));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(event.to_string().as_bytes()).and_then(|()| fs::rename(&draft, &place));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

#[cfg(test)]
#[path = "hook_tests.rs"]
mod tests;
