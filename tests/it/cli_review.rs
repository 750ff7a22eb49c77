//! A wait for a handoff that a person must decide about: what is printed, and the review on a terminal.

use super::cli::code;
use crate::support::fake_sidecar::{FakeHome, FakeSidecar, write_whole};
use crate::support::said::{err, out};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::pty::{OpenptyResult, openpty};
use serde_json::{Value, json};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";

/// The view in step `checking`, after so many reworks, held or not; or at its end.
fn view(home: &Path, step: &str, reworks: u64, held: Option<u32>) -> Value {
    let folder = home.join("data/personas/kai/handoffs");
    let at = |second: u32| format!("2026-11-21T20:00:{second:02}.000Z");
    let fault = json!({"check": "sections", "grade": "fix", "line": 3, "said": "has no section about blockers"});
    json!({
        "handoff_id": HANDOFF, "agent_id": KAI, "persona_slug": "kai", "step": step, "file_path": folder.join("a.md"),
        "steps": [{"step": "checking", "entered_at": at(0), "left_at": (step != "checking").then(|| at(50))}],
        "reworks": reworks, "held_since": held.map(at), "faults": [fault, fault],
        "facts": {"taken_at": at(0), "repository": {"root": "/w", "branch": "main"}},
    })
}

fn show(home: &Path, seen: &Value) {
    write_whole(&home.join(format!("view/handoffs/{HANDOFF}.json")), seen);
}

fn made() -> Arc<FakeHome> {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("kai"), None, "idle");
    let folder = home.path().join("data/personas/kai/handoffs");
    fs::create_dir_all(&folder).expect("folders");
    fs::write(folder.join("a.md"), "# The whole \u{1b}[2Jstory\n").expect("a document");
    home
}

/// Plays a handoff without a person: it is reworked, held, and then accepted by somebody else.
fn play(args: &[&str]) -> std::process::Output {
    let home = made();
    let answer = |home: &FakeHome, _: &Value| {
        let path = home.path().to_path_buf();
        show(&path, &view(&path, "checking", 0, None));
        std::thread::spawn(move || {
            for (step, reworks, held) in [("checking", 1, None), ("checking", 1, Some(9)), ("done", 1, None)] {
                std::thread::sleep(Duration::from_millis(200));
                show(&path, &view(&path, step, reworks, held));
            }
        });
        Some((200, json!({"status": "initiated", "handoff_id": HANDOFF, "file_path": "/d.md"})))
    };
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    home.run(args)
}

#[test]
fn a_wait_tells_what_happens_while_the_document_is_checked() {
    for option in ["--wait", "--review"] {
        let output = play(&["handoff", "kai", option]);
        let text = out(&output);
        assert_eq!(code(&output), 0, "{}", err(&output));
        let expected = [
            "document    the agent was asked to fix 2 faults",
            "the document waits for you (2 faults): tasuki accept 44444444, tasuki rework 44444444 --note TEXT",
            "checking",
            "done",
        ];
        let mut rest = text.as_str();
        for part in expected {
            rest = rest.split_once(part).unwrap_or_else(|| panic!("{part} is not in its place in\n{text}")).1;
        }
    }
    let output = play(&["handoff", "kai", "--review", "--json"]);
    let lines: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(types, ["initiated", "entered", "reworked", "held", "passed", "done"]);
    assert_eq!((&lines[2]["reworks"], &lines[3]["faults"]), (&json!(1), &json!(2)));
}

/// A terminal with the program on it.
struct OnTerminal {
    pty: OpenptyResult,
    child: Child,
    seen: String,
}

impl OnTerminal {
    fn start(home: &FakeHome, editor: &Path) -> OnTerminal {
        let pty = openpty(None, None).expect("a terminal");
        let end = || Stdio::from(pty.slave.try_clone().expect("another end"));
        let mut command = home.command(&["handoff", "kai", "--review"]);
        command.env("TERM", "xterm").env("EDITOR", format!("'{}' --quiet", editor.display())).env_remove("VISUAL");
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().expect("the program runs");
        OnTerminal { pty, child, seen: String::new() }
    }

    /// Reads until this is shown. What came after it in the same piece is kept for the next call.
    fn until(&mut self, part: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        let after = loop {
            if let Some(at) = self.seen.find(part) {
                break at + part.len();
            }
            assert!(Instant::now() < end, "{part} was not shown:\n{}", self.seen);
            let mut fds = [PollFd::new(self.pty.master.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::from(100_u16)).expect("it can be waited for") > 0 {
                let mut piece = [0; 4096];
                let count = nix::unistd::read(&self.pty.master, &mut piece).expect("readable");
                self.seen += &String::from_utf8_lossy(&piece[..count]);
            }
        };
        self.seen.drain(..after);
    }

    fn types(&self, text: &str) {
        nix::unistd::write(&self.pty.master, text.as_bytes()).expect("written");
    }
}

/// An editor that keeps what it was given, with the rights of file and folder.
fn editor(home: &Path) -> std::path::PathBuf {
    let path = home.join("my editor");
    let script = "#!/bin/sh\nkept=$(dirname \"$0\")/kept\n[ \"$1\" = --quiet ] || exit 3\n\
        { stat -c %a \"$2\" \"$(dirname \"$2\")\"; echo \"$2\"; cat \"$2\"; } >\"$kept\"\n";
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("executable");
    path
}

/// A sidecar that holds the handoff, again after a rework, and finishes it when it is accepted; and what it was asked.
fn holding(home: &Arc<FakeHome>) -> (FakeSidecar, Arc<Mutex<Vec<Value>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let answer = move |home: &FakeHome, request: &Value| {
        let (step, reworks, held) = match request["kind"].as_str() {
            Some("handoff") => ("checking", 0, Some(1)),
            Some("handoff_rework") => ("checking", 1, Some(2)),
            _ => ("done", 1, None),
        };
        show(home.path(), &view(home.path(), step, reworks, held));
        log.lock().expect("no panic").push(request.clone());
        Some((200, json!({"status": "x", "handoff_id": HANDOFF, "file_path": "/d.md"})))
    };
    (FakeSidecar::start(home, Box::new(answer)), seen)
}

#[test]
fn a_review_shows_a_private_copy_and_asks_what_to_do() {
    let home = made();
    let (_sidecar, seen) = holding(&home);
    let mut terminal = OnTerminal::start(&home, &editor(home.path()));
    terminal.until("[l]ater: ");
    let kept = fs::read_to_string(home.path().join("kept")).expect("the editor has seen it");
    let mut lines = kept.lines();
    assert_eq!((lines.next(), lines.next()), (Some("400"), Some("700")), "{kept}");
    let copy = lines.next().expect("a path");
    assert!(!Path::new(copy).exists() && copy.ends_with("handoff-44444444.md"), "the copy stays at {copy}");
    for part in ["fix   line 3: has no section about blockers", "# The whole [2Jstory", "- branch: `main`"] {
        assert!(kept.contains(part), "{part} in\n{kept}");
    }
    terminal.types("what?\n");
    terminal.until("[l]ater: ");
    terminal.types("r\n");
    terminal.until("What should the agent change? ");
    terminal.types("name the tests\n");
    terminal.until("[l]ater: ");
    terminal.types("a\n");
    terminal.until("done");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    let asked: Vec<(Value, Value)> =
        seen.lock().expect("no panic").iter().map(|one| (one["kind"].clone(), one["note"].clone())).collect();
    let expected = [
        (json!("handoff"), Value::Null),
        (json!("handoff_rework"), json!("name the tests")),
        (json!("handoff_accept"), Value::Null),
    ];
    assert_eq!(asked, expected);
}

#[test]
fn a_decision_can_wait_and_can_be_made_elsewhere() {
    let home = made();
    let (_sidecar, seen) = holding(&home);
    let mut terminal = OnTerminal::start(&home, &editor(home.path()));
    terminal.until("[l]ater: ");
    terminal.types("l\n");
    terminal.until("The handoff keeps waiting: tasuki accept 44444444");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    let mut terminal = OnTerminal::start(&home, Path::new("/nowhere/editor"));
    terminal.until("can't be started");
    terminal.until("[l]ater: ");
    show(home.path(), &view(home.path(), "done", 0, None));
    terminal.until("done");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    assert!(seen.lock().expect("no panic").iter().all(|asked| asked["kind"] == "handoff"));
}

#[test]
fn an_answer_counts_only_for_the_document_that_was_shown() {
    let home = made();
    let (_sidecar, seen) = holding(&home);
    let mut terminal = OnTerminal::start(&home, &editor(home.path()));
    terminal.until("[l]ater: ");
    // Somebody else has asked for a rework, and the agent has written its document again.
    fs::write(home.path().join("data/personas/kai/handoffs/a.md"), "# Another story\n").expect("a document");
    show(home.path(), &view(home.path(), "checking", 1, Some(2)));
    terminal.types("a\n");
    terminal.until("the document waits for you");
    terminal.until("[l]ater: ");
    assert!(seen.lock().expect("no panic").iter().all(|asked| asked["kind"] == "handoff"), "accepted unseen");
    let kept = fs::read_to_string(home.path().join("kept")).expect("the editor has seen it");
    assert!(kept.contains("# Another story"), "{kept}");
    // The same without an answer.
    show(home.path(), &view(home.path(), "checking", 2, Some(3)));
    terminal.until("the document waits for you");
    terminal.until("[l]ater: ");
    terminal.types("a\n");
    terminal.until("done");
    assert_eq!(terminal.child.wait().expect("it ends").code(), Some(0));
    assert_eq!(seen.lock().expect("no panic").last().map(|asked| asked["kind"].clone()), Some(json!("handoff_accept")));
}
