//! `tasuki statusline [--home DIR] [-- COMMAND ARGS…]`: Claude Code runs it to draw its status line, with JSON about
//! the session on standard input. It writes a `context` event into the spool when the numbers have changed, and prints
//! what the user's own status line command prints. It adds a few milliseconds to that command, and always exits 0.

use super::hook::{self, HookOptions};
use super::hook_time::HookTime;
use super::rules::Extract;
use crate::core::hook::{ContextUsage, HookKind};
use crate::core::text::sha256;
use crate::files;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The profile whose agent this is: no other CLI gives this JSON.
const PROFILE: &str = "claude";
/// How long the user's own command may take.
const COMMAND_TIME: Duration = Duration::from_secs(5);
/// The pause between two looks whether the command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Longest note of what was reported, in bytes.
const MAX_NOTE: u64 = 128;

/// The whole command. `args` are those after `statusline`. `usual` is the user's default tasuki home, for a command
/// that names none. The exit code is always 0.
pub fn main(args: impl Iterator<Item = OsString>, usual: fn() -> Option<PathBuf>) -> u8 {
    let hook_time = HookTime::take();
    let (options, command) = parse(args);
    // A message of Rust's default panic hook would appear in the user's terminal.
    std::panic::set_hook(Box::new(|_| {}));
    let _ = std::panic::catch_unwind(|| {
        let input = if io::stdin().is_terminal() { Vec::new() } else { hook::read_all(&mut io::stdin().lock()) };
        // The user's command is started first, because the CLI waits for what it prints.
        let child = start(&command, &input);
        if let Some(home) = options.home(usual) {
            report(&options, &home, &input, &hook_time);
        }
        if let Some(child) = child {
            wait(child);
        }
    });
    0
}

/// Our own options, and the user's command behind `--`.
fn parse(args: impl Iterator<Item = OsString>) -> (HookOptions, Vec<OsString>) {
    let all: Vec<OsString> = args.collect();
    let own = all.iter().position(|arg| arg == "--").unwrap_or(all.len());
    let options = HookOptions { profile: PROFILE.to_owned(), ..HookOptions::parse(all[..own].iter().cloned()) };
    (options, all.into_iter().skip(own + 1).collect())
}

/// Starts the user's command with the same input; its output goes where ours would.
fn start(command: &[OsString], input: &[u8]) -> Option<Child> {
    let (program, args) = command.split_first()?;
    let mut child = Command::new(program).args(args).stdin(Stdio::piped()).spawn().ok()?;
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_vec();
        // A command that reads nothing must not hold us up.
        std::thread::spawn(move || stdin.write_all(&input));
    }
    Some(child)
}

fn wait(mut child: Child) {
    let deadline = Instant::now() + COMMAND_TIME;
    while let Ok(None) = child.try_wait() {
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Writes the event into the spool, unless the last event of this session had the same numbers.
fn report(options: &HookOptions, home: &Path, input: &[u8], hook_time: &HookTime) {
    let Ok(payload) = super::json::read::<Value>(input) else { return };
    let Some(context_usage) = context_usage(&payload) else { return };
    let text = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
    let session = text("session_id").unwrap_or_default();
    let note = note_path(home, &session);
    let numbers = format!("{} {}", context_usage.used, context_usage.window.unwrap_or(0));
    if read_note(&note).as_deref() == Some(&numbers) {
        return;
    }
    let found = Extract {
        session_id: text("session_id"),
        transcript_path: text("transcript_path"),
        cwd: text("cwd"),
        context: Some(context_usage),
        ..Extract::default()
    };
    let env = |name: &str| std::env::var(name).ok();
    let event = hook::assemble(HookKind::Context, found, json!({}), options, hook_time, &env);
    // A failure is ignored: the next change is reported again.
    if hook::write(home, &hook_time.file_name(), &event).is_ok() {
        let _ = write_note(&note, &numbers);
    }
}

/// How full the context is; nothing before the first answer.
fn context_usage(payload: &Value) -> Option<ContextUsage> {
    let window = payload.pointer("/context_window/context_window_size").and_then(Value::as_u64);
    let usage = payload.pointer("/context_window/current_usage").filter(|usage| usage.is_object());
    let counted = usage.and_then(|usage| {
        let names = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
        names.iter().filter_map(|name| usage.get(name)?.as_u64()).reduce(u64::saturating_add)
    });
    let share = payload.pointer("/context_window/used_percentage").and_then(Value::as_f64);
    let by_share = || Some((window? as f64 * share?.clamp(0.0, 100.0) / 100.0) as u64);
    Some(ContextUsage { used: counted.or_else(by_share)?, window: window.filter(|window| *window > 0) })
}

/// The file that remembers the last report: one of the spool's scratch files, which the sidecar removes when they are
/// old.
fn note_path(home: &Path, session: &str) -> PathBuf {
    let hash = sha256(session.as_bytes());
    home.join("spool/tmp").join(format!("statusline-{}.tmp", &hash[..16]))
}

fn read_note(path: &Path) -> Option<String> {
    let (file, _) = files::open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_NOTE).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Writes the note under another name and renames it, so that two status lines at once leave no half note.
fn write_note(path: &Path, text: &str) -> io::Result<()> {
    let draft = path.with_extension(format!("{}.tmp", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text.as_bytes()).and_then(|()| fs::rename(&draft, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_found_and_none_are_made_up() {
        let context_usage = |window: Value| context_usage(&json!({ "context_window": window }));
        let before = json!({"context_window_size": 200_000, "current_usage": null, "used_percentage": null});
        assert_eq!(context_usage(before), None);
        let usage = json!({"input_tokens": 8, "output_tokens": 99, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 2});
        let whole = json!({"context_window_size": 200_000, "current_usage": usage, "used_percentage": 1});
        assert_eq!(context_usage(whole), Some(ContextUsage { used: 40, window: Some(200_000) }));
        let share = json!({"context_window_size": 200_000, "used_percentage": 42.5});
        assert_eq!(context_usage(share), Some(ContextUsage { used: 85_000, window: Some(200_000) }));
        assert_eq!(context_usage(json!({"used_percentage": 5})), None);
        let odd = json!({"context_window_size": 200_000, "current_usage": {"input_tokens": "many"}});
        assert_eq!(context_usage(odd), None, "a CLI that writes it another way has not said 0");
        assert_eq!(context_usage(Value::Null), None);
    }

    #[test]
    fn the_users_command_follows_the_two_dashes() {
        let args = ["--home", "/h", "--", "sh", "-c", "--home x"].map(OsString::from);
        let (options, command) = parse(args.into_iter());
        assert_eq!((options.home, options.profile.as_str()), (Some(PathBuf::from("/h")), "claude"));
        assert_eq!(command, ["sh", "-c", "--home x"]);
        assert_eq!(parse(["--home"].map(OsString::from).into_iter()).1, Vec::<OsString>::new());
    }
}
