//! `tasuki hook` as agents' CLIs run it: a process of its own, with whatever they give it on standard input.

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        for folder in ["spool/tmp", "spool/events", "data/profiles"] {
            fs::create_dir_all(dir.path().join(folder)).expect("folders");
        }
        Home(dir)
    }

    fn hook(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("hook").args(args).env("TASUKI_HOME", self.0.path()).env("TASUKI_AGENT_ID", AGENT);
        command.env_remove("TASUKI_PERSONA").env("TMUX_PANE", "%5").env("TMUX", "/tmp/t,77,0");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the hook with that input and checks what must hold whatever the input is.
    fn run(&self, args: &[&str], input: &[u8]) -> Option<Value> {
        let mut child = self.hook(args).spawn().expect("it runs");
        // A hook that needs no input may be gone before it is given any.
        let _ = child.stdin.take().expect("piped").write_all(input);
        silent_success(&child.wait_with_output().expect("it ends"));
        self.only_event()
    }

    fn only_event(&self) -> Option<Value> {
        let files = list(&self.0.path().join("spool/events"));
        assert!(files.len() <= 1, "{files:?}");
        assert_eq!(list(&self.0.path().join("spool/tmp")), Vec::<PathBuf>::new());
        let file = files.first()?;
        let event = serde_json::from_slice(&fs::read(file).expect("readable")).expect("JSON");
        fs::remove_file(file).expect("removed");
        Some(event)
    }
}

fn list(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect()
}

fn silent_success(out: &Output) {
    assert_eq!(out.status.code(), Some(0));
    assert!(out.stdout.is_empty() && out.stderr.is_empty(), "{out:?}");
}

fn ends_within(child: &mut Child, limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if child.try_wait().expect("it can be waited for").is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn a_hook_leaves_one_event_and_prints_nothing() {
    let home = Home::new();
    let input = json!({"hook_event_name":"Stop","session_id":"s","prompt_id":"p","last_assistant_message":"done"});
    let event = home.run(&["claude"], input.to_string().as_bytes()).expect("an event");
    assert_eq!((&event["event"], &event["agent_id"], &event["pane"]), (&json!("stop"), &json!(AGENT), &json!("%5")));
    assert_eq!(event["payload"], input);
    assert_eq!(event["ancestors"][0], std::process::id());
}

#[test]
fn options_are_taken_in_both_forms_before_and_after_the_command() {
    let home = Home::new();
    let path = home.0.path().display().to_string();
    let named = format!("--home={path}");
    for args in [
        &["hook", "claude", "--home", &path, "--event", "Stop"][..],
        &["hook", "claude", &named, "--event=Stop"],
        &[&named, "hook", "claude", "--event=Stop"],
        &["--json", &named, "hook", "--event=Stop", "claude"],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.args(args).env_remove("TASUKI_HOME").stdin(Stdio::null());
        silent_success(&command.output().expect("it runs"));
        let event = home.only_event().unwrap_or_else(|| panic!("{args:?} left no event"));
        assert_eq!((&event["event"], &event["profile"]), (&json!("stop"), &json!("claude")), "{args:?}");
    }
}

#[test]
fn the_files_name_is_boot_time_and_pid_and_its_mode_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let child = home.hook(&["claude", "--event", "Stop"]).stdin(Stdio::null()).spawn().expect("it runs");
    let pid = child.id();
    silent_success(&child.wait_with_output().expect("it ends"));
    let file = list(&home.0.path().join("spool/events")).pop().expect("an event");
    let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
    let parts: Vec<&str> = name.trim_end_matches(".json").split('-').collect();
    assert_eq!(parts.iter().map(|part| part.len()).take(2).collect::<Vec<_>>(), [8, 20]);
    assert_eq!(parts[2], pid.to_string());
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn input_without_a_newline_cut_off_or_of_no_sense_still_leaves_an_event() {
    let home = Home::new();
    for (input, event, message) in [
        (&br#"{"hook_event_name":"Stop"}"#[..], "stop", None),
        (b"{\"hook_event_name\":\"Stop\"}\n\n", "stop", None),
        (br#"{"hook_event_name":"Stop","last_assistant_message":"ab"#, "stop", Some("not JSON")),
        (b"", "notification", Some("missing")),
        (b"no json at all", "notification", Some("not JSON")),
        (b"\0\xff\xfe", "notification", Some("not JSON")),
        (b"null", "notification", Some("not a JSON object")),
    ] {
        let found = home.run(&["claude"], input).expect("an event");
        assert_eq!(found["event"], event, "{found}");
        let said = found["message"].as_str().unwrap_or_default();
        assert!(message.map_or(said.is_empty(), |words| said.contains(words)), "{found}");
    }
}

#[test]
fn a_pipe_that_is_never_closed_does_not_hold_the_agent() {
    let home = Home::new();
    let mut child = home.hook(&["claude"]).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(br#"{"hook_event_name":"Stop"}"#).expect("written");
    assert!(ends_within(&mut child, Duration::from_secs(10)), "it waits for the end of its input");
    silent_success(&child.wait_with_output().expect("it ends"));
    let event = home.only_event().expect("an event");
    assert_eq!((event["event"].as_str(), event["message"].as_str()), (Some("stop"), None));
    drop(stdin);
}

#[test]
fn input_that_stalls_in_the_middle_is_given_up() {
    let home = Home::new();
    let mut child = home.hook(&["claude"]).spawn().expect("it runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(br#"{"hook_event_name":"UserPromptSubmit","prompt":"hel"#).expect("written");
    assert!(ends_within(&mut child, Duration::from_secs(10)), "it waits for ever");
    let event = home.only_event().expect("an event");
    assert_eq!(event["event"], "prompt_submit");
    assert!(event["message"].as_str().is_some_and(|text| text.contains("not JSON")), "{event}");
    drop(stdin);
}

#[test]
fn missing_input_leaves_an_event_that_says_so() {
    let home = Home::new();
    let out = home.hook(&["claude"]).stdin(Stdio::null()).output().expect("it runs");
    silent_success(&out);
    let event = home.only_event().expect("an event");
    assert!(event["message"].as_str().is_some_and(|text| text.contains("missing")));
}

#[test]
fn very_much_input_is_taken_from_the_cli_and_mostly_thrown_away() {
    let home = Home::new();
    let input = json!({"hook_event_name":"Stop","last_assistant_message":"x".repeat(5 << 20)}).to_string();
    let mut child = home.hook(&["claude"]).spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(input.as_bytes()).expect("the pipe is read to its end");
    silent_success(&child.wait_with_output().expect("it ends"));
    let event = home.only_event().expect("an event");
    assert_eq!(event["event"], "stop");
    assert!(event.to_string().len() < 4096);
}

#[test]
fn nothing_wrong_with_the_place_disturbs_the_agent() {
    let home = Home::new();
    for broken in ["/nowhere/at/all", "relative", ""] {
        let mut child = home.hook(&["claude"]).env("TASUKI_HOME", broken).spawn().expect("it runs");
        let _ = child.stdin.take().expect("piped").write_all(b"{}");
        silent_success(&child.wait_with_output().expect("it ends"));
    }
    assert_eq!(home.only_event(), None);
    fs::remove_dir(home.0.path().join("spool/events")).expect("removed");
    let out = home.hook(&["claude"]).stdin(Stdio::null()).output().expect("it runs");
    silent_success(&out);
    assert_eq!(list(&home.0.path().join("spool/tmp")), Vec::<PathBuf>::new());
}

#[test]
fn the_home_in_the_command_serves_where_the_environment_has_none() {
    let home = Home::new();
    let path = home.0.path().to_str().expect("UTF-8").to_owned();
    let mut command = home.hook(&["claude", "--event", "Stop", "--home", &path, "--later-option"]);
    silent_success(&command.env_remove("TASUKI_HOME").stdin(Stdio::null()).output().expect("it runs"));
    assert_eq!(home.only_event().expect("an event")["event"], "stop");
}

#[test]
fn a_profile_of_the_home_needs_no_rust() {
    let home = Home::new();
    let text = r#"
        title = "Mine"
        [exit]
        command = "/q"
        [input]
        mode = "bracketed"
        [screen.composer]
        top = '^> '
        top_is_text = true
        bottom = '^$'
        anchor = "top"
        [hooks]
        name = "/type"
        [[hooks.on]]
        name = "finished"
        event = "stop"
        last_text = "/answer"
        [[hooks.on]]
        name = "noise"
        event = "ignore"
    "#;
    fs::write(home.0.path().join("data/profiles/mine.toml"), text).expect("written");
    let event = home.run(&["mine"], br#"{"type":"finished","answer":"42"}"#).expect("an event");
    assert_eq!((&event["event"], &event["last_text"]), (&json!("stop"), &json!("42")));
    assert_eq!(home.run(&["mine"], br#"{"type":"noise"}"#), None);
    fs::write(home.0.path().join("data/profiles/mine.toml"), "[hooks]\nname = 7").expect("written");
    let event = home.run(&["mine"], br#"{"type":"finished"}"#).expect("an event");
    assert!(event["message"].as_str().is_some_and(|text| text.contains("profile mine")), "{event}");
}

#[test]
fn a_hook_without_a_profile_leaves_an_event_that_says_so() {
    let home = Home::new();
    let event = home.run(&[], b"{}").expect("an event");
    assert!(event["message"].as_str().is_some_and(|text| text.contains("does not name a valid profile")), "{event}");
}

/// JavaScript cuts texts between the halves of an emoji, and writes the half that is left.
#[test]
fn a_text_that_ends_in_half_an_emoji_keeps_its_event() {
    let home = Home::new();
    let input = br#"{"hook_event_name":"Stop","session_id":"s1","last_assistant_message":"all done \ud83d"}"#;
    let event = home.run(&["claude"], input).expect("an event");
    assert_eq!((&event["event"], &event["session_id"]), (&json!("stop"), &json!("s1")), "{event}");
    assert_eq!(event["last_text"], "all done \u{fffd}", "{event}");
    assert_eq!(event["payload"]["session_id"], "s1", "{event}");
}

#[test]
fn nothing_is_said_at_the_loudest_level() {
    let home = tempfile::tempdir().expect("a home");
    for input in [r#"{"hook_event_name":"UserPromptSubmit","prompt":"xyzzy"}"#, "xyzzy"] {
        // Once where there is no spool at all, once where there is.
        for _ in 0..2 {
            let mut child = Command::new(env!("CARGO_BIN_EXE_tasuki"))
                .args(["hook", "claude"])
                .envs([("TASUKI_LOG", "trace"), ("RUST_LOG", "trace"), ("RUST_BACKTRACE", "full")])
                .env("TASUKI_HOME", home.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it runs");
            child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("taken");
            silent_success(&child.wait_with_output().expect("it ends"));
            for folder in ["spool/tmp", "spool/events"] {
                fs::create_dir_all(home.path().join(folder)).expect("made");
            }
        }
    }
}

/// Hooks stay installed when the service is stopped, and the agents report for months.
#[test]
fn events_that_no_sidecar_takes_have_a_bound() {
    let home = Home::new();
    let events = home.0.path().join("spool/events");
    let name = |number: u64| format!("00000000-{number:020}-7.json");
    let most = tasuki::spool::overflow::MOST_WAITING as u64;
    for number in 0..most {
        fs::write(events.join(name(number)), "{}").expect("written");
    }
    fs::write(events.join("a-script-of-the-user.json"), "{}").expect("written");
    fs::create_dir(home.0.path().join("view")).expect("made");
    let view = home.0.path().join("view/sidecar.json");
    let beat = |heartbeat: &str| fs::write(&view, json!({"v": 1, "pid": 77, "heartbeat": heartbeat}).to_string());
    let report = || {
        let mut child = home.hook(&["claude"]).spawn().expect("it runs");
        child.stdin.take().expect("piped").write_all(br#"{"hook_event_name":"Stop"}"#).expect("taken");
        silent_success(&child.wait_with_output().expect("it ends"));
        list(&events).len() as u64
    };
    // A sidecar that runs is only late.
    beat(&chrono::Utc::now().to_rfc3339()).expect("written");
    assert_eq!(report(), most + 2);
    assert!(!tasuki::spool::overflow::take_mark(home.0.path()));
    beat("2026-01-01T00:00:00Z").expect("written");
    // The oldest thousand went, and what was above the bound; the user's file, the mark and this event are there.
    assert_eq!(report(), most - 1_000 + 3);
    assert!(!events.join(name(1_000)).exists() && events.join(name(1_001)).exists());
    assert!(events.join("a-script-of-the-user.json").exists());
    assert!(tasuki::spool::overflow::take_mark(home.0.path()), "the next sidecar can say it");
}
