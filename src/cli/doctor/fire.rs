//! Sends a test event through a hook's command, and checks whether it arrives.

use super::ground::wait_for;
use crate::agents::hook::{PROBE, probe_name};
use crate::agents::install::HookCommand;
use crate::agents::{EventFile, Profile};
use crate::core::text::{sanitise, shell_word};
use crate::files;
use crate::notify::{self, Error};
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time limit for a hook, which should take milliseconds.
const LIMIT: Duration = Duration::from_secs(3);
/// How long after a hook's end its event may still arrive: a child of the hook may write it.
const GRACE: Duration = Duration::from_millis(200);
/// Largest test event that is read, in bytes.
const MAX_EVENT: u64 = 64 * 1024;
/// Variables that would make the test event an agent's event, or send it to another home.
const NOT_FOR_HOOKS: [&str; 6] =
    ["TASUKI_HOME", "TASUKI_AGENT_ID", "TASUKI_PERSONA", "TASUKI_CREATION", "TMUX", "TMUX_PANE"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fired {
    Arrived,
    /// The event arrived, and the hook reports a problem.
    Complained(String),
    /// No event arrived, and why.
    Nothing(String),
    /// The hook was not tried, because it reports to another home.
    Elsewhere(String),
}

/// Our own hook, as a program and its arguments.
pub(super) fn argv(program: &Path, home: &Path) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    vec![text(program), "hook".to_owned(), "demo".to_owned(), "--home".to_owned(), text(home)]
}

/// Sends a test event through each command of a profile, in order. A command that has failed at one event is not
/// tried at the others.
pub(super) fn fire_each(home: &Path, profile: &Profile, commands: &[HookCommand]) -> Vec<(String, Fired)> {
    let name = profile.file.hooks.name.as_ref().and_then(|at| at.top_level()).unwrap_or("event").to_owned();
    let mut all: Vec<(String, Fired)> = Vec::new();
    let mut dead: Vec<&str> = Vec::new();
    for command in commands.iter().filter(|command| !command.event.is_empty()) {
        if dead.contains(&command.line.as_str()) {
            continue;
        }
        let fired = match elsewhere(home, &command.line) {
            Some(why) => Fired::Elsewhere(why),
            None => fire(home, &shell(&command.line), &name, &command.event),
        };
        if matches!(fired, Fired::Nothing(_) | Fired::Elsewhere(_)) {
            dead.push(&command.line);
        }
        all.push((command.event.clone(), fired));
    }
    all
}

fn shell(line: &str) -> Vec<String> {
    ["/bin/sh", "-c", line].map(str::to_owned).into()
}

/// Why a command is not tried: it names another home, and test events must not get into that home's spool. None if it
/// names this home or no home.
fn elsewhere(home: &Path, line: &str) -> Option<String> {
    let home = home.display().to_string();
    let (_, named) = line.split_once(" --home")?;
    let named = named.trim_start_matches([' ', '=']);
    let words = [shell_word(&home), format!("'{home}'"), format!("\"{home}\""), home];
    // The word must end here: /a/tasuki is not /a/tasuki2.
    let ends = |rest: &str| rest.chars().next().is_none_or(|next| next.is_whitespace() || "'\";&|)".contains(next));
    let is_ours = words.iter().any(|word| named.strip_prefix(word.as_str()).is_some_and(ends));
    (!is_ours).then(|| format!("the hook reports to another home: {}", sanitise(line)))
}

/// Runs a command with a test event on its standard input, and looks for the event in the spool. `name`: the field that
/// holds the event's name.
pub(super) fn fire(home: &Path, command: &[String], name: &str, event: &str) -> Fired {
    let id = uuid::Uuid::new_v4();
    let mut input = Map::new();
    input.insert(name.to_owned(), event.into());
    input.insert("session_id".to_owned(), json!(id));
    input.insert(PROBE.to_owned(), json!(id));
    let line = surrounded(home, command);
    let Ok(ended) = wait_for(notify::run_within(&line, Value::Object(input).to_string().as_bytes(), LIMIT)) else {
        return Fired::Nothing("the command could not be started".to_owned());
    };
    let spool = home.join("spool/events");
    let file = probe_name(&id);
    let arrived = await_event(&spool, &file);
    // This also removes an event that came too late to be read.
    let _ = std::fs::remove_file(spool.join(&file));
    match (arrived, ended) {
        (Some(fired), _) => fired,
        (None, Ok(())) => Fired::Nothing("the command succeeded but wrote no event".to_owned()),
        (None, Err(Error::TooSlow { seconds, .. })) => {
            Fired::Nothing(format!("the command did not end within {seconds} s"))
        }
        (None, Err(Error::Failed { status, .. })) => Fired::Nothing(format!("the command ended with {status}")),
        (None, Err(Error::Start { source, .. } | Error::Lost { source, .. })) => {
            Fired::Nothing(format!("the command can't be run: {source}"))
        }
        (None, Err(Error::Empty)) => Fired::Nothing("the command is empty".to_owned()),
        (None, Err(Error::Stopped)) => Fired::Nothing("the command was not started".to_owned()),
    }
}

/// The command without the environment of an agent. A command that names no home gets ours.
fn surrounded(home: &Path, command: &[String]) -> Vec<String> {
    let mut line = vec!["env".to_owned()];
    line.extend(NOT_FOR_HOOKS.iter().flat_map(|name| ["-u".to_owned(), (*name).to_owned()]));
    if !command.iter().any(|word| word.contains("--home")) {
        line.push(format!("TASUKI_HOME={}", home.display()));
    }
    line.extend(command.iter().cloned());
    line
}

/// Reads the test event from the spool, as soon as it is there. None if it does not arrive within [`GRACE`].
fn await_event(spool: &Path, name: &str) -> Option<Fired> {
    let until = Instant::now() + GRACE;
    loop {
        let read = files::open_dir(spool).ok().and_then(|dir| files::read_at(&dir, OsStr::new(name), MAX_EVENT).ok());
        if let Some((bytes, _)) = read {
            let said = serde_json::from_slice(&bytes).ok().and_then(|event: EventFile| event.message);
            let said = said.as_deref().and_then(|said| said.strip_prefix("tasuki hook: "));
            return Some(said.map_or(Fired::Arrived, |said| Fired::Complained(sanitise(said))));
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_another_home_is_not_tried() {
        let home = Path::new("/home/ada/tasuki home");
        let line = |home: &str| format!("'/opt/tasuki' hook claude --home {home}");
        assert_eq!(elsewhere(home, &line("'/home/ada/tasuki home'")), None);
        assert_eq!(elsewhere(home, "tasuki hook claude"), None);
        assert!(elsewhere(home, &line("'/home/ada/other'")).is_some());
        let home = Path::new("/home/ada/tasuki");
        for ours in ["/home/ada/tasuki", "'/home/ada/tasuki'", "\"/home/ada/tasuki\"", "/home/ada/tasuki || true"] {
            assert_eq!(elsewhere(home, &line(ours)), None, "{ours}");
        }
        for other in ["/home/ada/tasuki2", "'/home/ada/tasuki2'", "'/home/ada/tasuki/two'", "/mnt/home/ada/tasuki"] {
            assert!(elsewhere(home, &line(other)).is_some(), "{other}");
        }
        assert!(elsewhere(home, "/home/ada/tasuki/bin/tasuki hook claude --home /home/bob").is_some());
    }

    #[test]
    fn hooks_that_write_no_event_fail_or_hang_are_told_apart_and_leave_no_file() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("spool/events")).expect("made");
        let said = |line: &str| match fire(dir.path(), &shell(line), "event", "Stop") {
            Fired::Nothing(why) => why,
            other => panic!("{line}: {other:?}"),
        };
        assert!(said("true").contains("wrote no event"));
        assert!(said("exit 3").contains("exit status: 3"));
        assert!(said("/no/such/tasuki hook claude").contains("exit status: 127"));
        assert!(said("sleep 60").contains("did not end within"));
        assert_eq!(std::fs::read_dir(dir.path().join("spool/events")).expect("there").count(), 0);
    }

    #[test]
    fn a_hook_that_is_told_no_home_is_told_ours_and_no_agent() {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(dir.path().join("spool/events")).expect("made");
        let script = "test -z \"$TASUKI_AGENT_ID$TMUX_PANE\" || exit 4; id=$(sed 's/.*tasuki_probe\":\"\\([^\"]*\\)\".*/\\1/'); echo '{}' >\"$TASUKI_HOME/spool/events/.probe-$id.json\"";
        assert_eq!(fire(dir.path(), &shell(script), "event", "Stop"), Fired::Arrived);
        assert_eq!(std::fs::read_dir(dir.path().join("spool/events")).expect("there").count(), 0);
    }
}
