//! What the operator is told outside a handoff, with the whole program; and notices on a desktop: by a program, or by
//! the terminals that are attached to tmux.

use super::support::stage::Stage;
use super::support::stage_files::json_lines;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The codes of what a configured command got.
fn codes(told: &Path) -> Vec<Value> {
    if told.exists() { json_lines(told).iter().map(|notice| notice["code"].clone()).collect() } else { Vec::new() }
}

fn errors(stage: &Stage) -> Vec<Value> {
    stage.errors().iter().map(|error| error["code"].clone()).collect()
}

/// Starts a sidecar whose notices go to a file. Returns the file.
fn start_telling(stage: &Stage) -> PathBuf {
    let told = stage.work_dir().join("told");
    let script = "cat >> \"$0\"; echo >> \"$0\"";
    let command = format!("command = [\"/bin/sh\", \"-c\", '{script}', \"{}\"]", told.display());
    fs::write(stage.home().join("config.toml"), format!("[notify]\nblocked_after = \"1s\"\n{command}\n"))
        .expect("written");
    stage.start_sidecar();
    told
}

#[test]
fn an_agent_whose_pane_or_tmux_server_is_closed_is_told_of_and_an_exit_by_hand_is_not() {
    let stage = Stage::without_sidecar("");
    let told = start_telling(&stage);
    let agents = stage.agents(&["kai", "mia", "lea", "pip", "tom", "eve"]);
    let pane = |agent: &String| stage.agent_view(agent)["pane"].as_str().expect("a pane").to_owned();
    let until_ended = |agent: &String| {
        stage.until("it has ended", || ["ended", "lost"].map(Value::from).contains(&stage.agent_view(agent)["state"]));
    };
    stage.tmux(&["send-keys", "-t", &pane(&agents[0]), "/exit", "Enter"]);
    until_ended(&agents[0]);
    stage.granted(&json!({"kind": "agent_shutdown", "agent_id": agents[1], "force": true}));
    until_ended(&agents[1]);
    assert_eq!((codes(&told), errors(&stage)), (vec![], vec![]), "somebody asked for both");
    stage.tmux(&["kill-pane", "-t", &pane(&agents[2])]);
    stage.until("the closed pane is told of", || codes(&told) == [json!("agent_died")]);
    assert_eq!(json_lines(&told)[0]["agent_id"], json!(agents[2]));
    stage.tmux(&["kill-server"]);
    stage.until("each of them is a failure", || errors(&stage).len() == 4);
    agents[3..].iter().for_each(until_ended);
    stage.until("the server's end is told of", || {
        let notices = json_lines(&told);
        let of = |notice: &Value| notice["agent_ids"].as_array().map_or(1, Vec::len);
        notices.iter().map(of).sum::<usize>() == 4 && notices.iter().any(|notice| of(notice) > 1)
    });
    assert!(errors(&stage).iter().chain(&codes(&told)).all(|code| *code == "agent_died"));
}

#[test]
fn a_dialog_a_failed_turn_and_a_death_are_told_once_each() {
    let stage = Stage::without_sidecar("");
    let told = start_telling(&stage);
    let agent = stage.agent("dev");
    let send = |text: &str| {
        let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": text}));
        assert_eq!(verdict["verdict"], "delivered", "{verdict}");
    };
    stage.faults("dialog_on_write");
    send(&format!("Please write your notes to `{}` now.", stage.work_dir().join("notes.md").display()));
    stage.until("the dialog is told of", || codes(&told) == [json!("agent_blocked")]);
    assert_eq!(stage.agent_view(&agent)["state"], "blocked");
    assert_eq!(errors(&stage), [] as [Value; 0], "it is not a failure");
    // The dialog is still open after a crash, and told already.
    stage.crash_and_restart();
    let pane = stage.agent_view(&agent)["pane"].as_str().expect("a pane").to_owned();
    stage.tmux(&["send-keys", "-t", &pane, "Enter"]);
    stage.until_idle(&agent);
    stage.faults("fail_turn");
    for _ in 0..2 {
        send("Please go on with it.");
        stage.until_idle(&agent);
    }
    stage.until("the failed turn is told of", || codes(&told).contains(&json!("turn_failed")));
    assert_eq!(errors(&stage), [json!("turn_failed")], "once");
    let pid = stage.agent_view(&agent)["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("a process");
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it runs");
    let all = ["agent_blocked", "turn_failed", "agent_died"].map(Value::from);
    // What was being told when the sidecar was killed is told again by the next one.
    let once = || {
        let mut codes = codes(&told);
        codes.dedup();
        codes
    };
    stage.until("its death is told of", || once() == all);
    let mut left: Vec<String> = errors(&stage).iter().map(ToString::to_string).collect();
    left.sort();
    assert_eq!(left, ["\"agent_died\"", "\"turn_failed\""]);
    let line = stage.journal().into_iter().find(|line| line["type"] == "notice").expect("a line");
    assert_eq!((&line["code"], &line["agent_id"]), (&all[0], &json!(agent)));
    stage.check_once();
}

/// A folder with these programs of the system and nothing else, but what a test puts there.
fn programs(stage: &Stage) -> PathBuf {
    let folder = stage.work_dir().join("bin");
    fs::create_dir(&folder).expect("a folder");
    for name in ["tmux", "sh", "cat", "sleep"] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
        std::os::unix::fs::symlink(found.expect("it is everywhere"), folder.join(name)).expect("a link");
    }
    folder
}

/// Starts the sidecar with this `PATH` and session bus.
fn start(stage: &Stage, path: &Path, bus: &str) {
    let variables = [format!("PATH={}", path.display()), format!("DBUS_SESSION_BUS_ADDRESS={bus}")];
    stage.spawn_sidecar_by(&["/usr/bin/env", "-u", "XDG_RUNTIME_DIR", &variables[0], &variables[1]], "debug");
    stage.until_beating();
}

/// An item that nobody who is there could process: the operator is told.
fn something_to_tell(stage: &Stage, title: &str) {
    stage.granted(&json!({"kind": "work_create", "type": "task", "title": title}));
}

#[test]
fn a_notice_is_shown_by_notify_send_with_its_text_as_one_argument() {
    let stage = Stage::without_sidecar("[notify]\ncommand = \"desktop\"\n");
    let folder = programs(&stage);
    let shown = stage.work_dir().join("shown");
    let program = folder.join("notify-send");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" >> '{}'\n", shown.display());
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    start(&stage, &folder, "unix:path=/nowhere");
    something_to_tell(&stage, "look at $(touch pwned) <b>this</b>");
    stage.until("it is shown", || fs::read_to_string(&shown).is_ok_and(|text| text.lines().count() == 5));
    let text = fs::read_to_string(&shown).expect("shown");
    let words: Vec<&str> = text.lines().collect();
    assert_eq!(words[..4], ["4", "--app-name=tasuki", "--", "tasuki"]);
    assert!(words[4].ends_with("(task): look at $(touch pwned) &lt;b&gt;this&lt;/b&gt;"), "{text}");
}

/// A tmux client on a terminal that this test holds the other end of.
struct Client {
    master: fs::File,
    child: Child,
    shown: Vec<u8>,
}

impl Client {
    fn attach(stage: &Stage, term: &str) -> Client {
        let size = Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a terminal");
        for end in [&pty.master, &pty.slave] {
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("set");
        }
        fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("set");
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(stage.socket()).args(["attach", "-t", "user"]).env("TERM", term);
        Stage::make_own(&mut command);
        let end = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("tmux runs");
        stage.until("the client is attached", || {
            stage.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_session}"]).contains("0 user")
        });
        Client { master: fs::File::from(pty.master), child, shown: Vec::new() }
    }

    /// All that the terminal has got.
    fn shown(&mut self) -> String {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = self.master.read(&mut bytes) {
            self.shown.extend_from_slice(&bytes[..count]);
        }
        String::from_utf8_lossy(&self.shown).into_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn without_a_program_the_attached_terminals_get_a_notice_and_no_pane_sees_it() {
    let stage = Stage::without_sidecar("[notify]\ncommand = \"desktop\"\n");
    let folder = programs(&stage);
    start(&stage, &folder, "");
    let pane = stage.tmux(&["list-panes", "-t", "user", "-F", "#{pane_id}"]).trim().to_owned();
    let mut client = Client::attach(&stage, "xterm");
    let server = stage.tmux(&["display-message", "-p", "#{pid}"]);
    something_to_tell(&stage, "für dich; ja");
    let begins = "\u{1b}]9;tasuki: A work item waits for a person: ";
    stage.until("the terminal gets it", || client.shown().contains(begins));
    let shown = client.shown();
    let sequence = shown.split(begins).nth(1).and_then(|rest| rest.split("\u{1b}\\").next()).expect("a whole sequence");
    assert!(sequence.ends_with("(task): für dich; ja"), "{sequence:?}");
    assert_eq!(shown.matches(begins).count(), 1);
    assert!(!stage.screen(&pane).contains("work item"), "a pane got it");
    assert_eq!(stage.tmux(&["display-message", "-p", "#{pid}"]), server);
    drop(client);
    let mut client = Client::attach(&stage, "rxvt");
    something_to_tell(&stage, "another");
    stage.until("another terminal gets it", || client.shown().contains("\u{1b}]777;notify;tasuki;tasuki: A work item"));
}
