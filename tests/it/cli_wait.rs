//! `--wait` against a sidecar that plays a handoff.

use crate::support::fake_sidecar::{FakeHome, FakeSidecar};
use crate::support::said::{err, out};
use nix::pty::{OpenptyResult, Winsize, openpty};
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use std::sync::Arc;

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const NEXT: &str = "22222222-2222-4222-8222-222222222222";
const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";

fn step(name: &str, from: u32, to: Option<u32>) -> Value {
    let at = |second: u32| format!("2026-11-21T20:00:{second:02}.000Z");
    json!({"step": name, "entered_at": at(from), "left_at": to.map(at)})
}

fn show(home: &FakeHome, view: &Value) {
    home.write(&format!("view/handoffs/{HANDOFF}.json"), view);
}

fn at(step_name: &str, steps: &[Value]) -> Value {
    json!({"handoff_id": HANDOFF, "agent_id": KAI, "step": step_name, "steps": steps, "warnings": [], "error": null})
}

/// Runs a handoff that passes through these views, a moment apart.
fn play(views: Vec<Value>, args: &[&str]) -> Output {
    play_with(views, |home| home.run(args))
}

fn play_with<T>(views: Vec<Value>, run: impl FnOnce(&FakeHome) -> T) -> T {
    play_among(["idle", "blocked"], views, run)
}

/// The same, with both agents in these states.
fn play_among<T>([kai, next]: [&str; 2], views: Vec<Value>, run: impl FnOnce(&FakeHome) -> T) -> T {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("kai"), None, kai);
    home.agent(NEXT, Some("other"), None, next);
    let answer = move |home: &FakeHome, _: &Value| {
        show(home, &views[0]);
        let (path, rest) = (home.path().to_path_buf(), views[1..].to_vec());
        std::thread::spawn(move || {
            for view in rest {
                std::thread::sleep(std::time::Duration::from_millis(120));
                let file = path.join(format!("view/handoffs/{HANDOFF}.json"));
                crate::support::fake_sidecar::write_whole(&file, &view);
            }
        });
        Some((200, json!({"status": "initiated", "handoff_id": HANDOFF, "file_path": "/d.md"})))
    };
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    run(&home)
}

/// Runs the command on a terminal of so many columns; gives all that it has written there.
fn on_terminal(home: &FakeHome, columns: u16, args: &[&str]) -> String {
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    let OpenptyResult { master, slave } = openpty(&size, None).expect("a terminal");
    let end = || Stdio::from(slave.try_clone().expect("another end"));
    let mut command = home.command(args);
    let mut child = command.env("TERM", "xterm").stdout(end()).stderr(Stdio::null()).spawn().expect("the program runs");
    drop((command, slave));
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    // When nobody has it open any more, there is nothing to read.
    while let Ok(count @ 1..) = nix::unistd::read(&master, &mut piece) {
        seen.extend_from_slice(&piece[..count]);
    }
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    String::from_utf8_lossy(&seen).into_owned()
}

fn good() -> Vec<Value> {
    let waiting = step("waiting", 0, Some(1));
    let mut done = at("done", &[waiting.clone(), step("writing", 1, Some(3)), step("briefing", 3, Some(4))]);
    done["file_path"] = json!("/d.md");
    done["successor_id"] = json!("s1");
    done["verdicts"] = json!({"instruction": null, "priming": null, "briefing": {"verdict": "delivered"}});
    vec![at("waiting", &[step("waiting", 0, None)]), at("writing", &[waiting, step("writing", 1, None)]), done]
}

#[test]
fn each_step_is_shown_and_done_is_0() {
    let output = play(good(), &["handoff", "kai", "--wait"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    let lines: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        format!("handoff {HANDOFF}"),
        "waiting 1.0 s".to_owned(),
        "writing 2.0 s".to_owned(),
        "briefing 1.0 s delivered".to_owned(),
        "done".to_owned(),
        "document /d.md".to_owned(),
        "successor s1".to_owned(),
        "verdicts briefing delivered".to_owned(),
    ];
    assert_eq!(lines, expected);
    assert!(!text.contains('\u{1b}') && !text.contains('\r'));
}

#[test]
fn the_line_that_is_redrawn_stays_in_one_row_of_a_narrow_terminal() {
    for columns in [45, 12] {
        let text =
            play_with(good(), |home| on_terminal(home, columns, &["handoff", "kai", "--wait"]).replace("\x1b[K", ""));
        // Each frame goes back to the beginning of its row.
        let frames: Vec<&str> = text.split('\n').flat_map(|row| row.split('\r')).collect();
        let mut drawn = 0;
        for frame in frames.iter().filter(|frame| frame.contains("\x1b[2m")) {
            let plain = frame.replace("\x1b[2m", "").replace("\x1b[0m", "");
            assert!(plain.chars().count() < usize::from(columns), "{columns}: {plain:?}");
            drawn += 1;
        }
        assert!(drawn > 0, "no line was redrawn: {text:?}");
    }
}

#[test]
fn growth_and_dialogs_are_told() {
    let mut grown = at("writing", &[step("writing", 1, None)]);
    grown["document"] = json!({"bytes": 883, "at": "2026-11-21T20:00:02.000Z"});
    let mut blocked = grown.clone();
    blocked["successor_id"] = json!(NEXT);
    let done = at("done", &[step("writing", 1, Some(3))]);
    // The view of the agent shows a dialog for so many moments.
    let with_dialog = |moments: usize| {
        let views = [vec![grown.clone()], vec![blocked.clone(); moments], vec![done.clone()]].concat();
        out(&play(views, &["handoff", "kai", "--wait"]))
    };
    let text = with_dialog(30);
    assert!(text.contains("document     883 bytes"), "{text}");
    let told = "agent 22222222 is waiting for you: answer the dialog in its pane %1";
    assert_eq!(text.matches(told).count(), 1, "{text}");
    // One that was answered before a retry is still in the view until tasuki has looked at the pane.
    let text = with_dialog(4);
    assert!(!text.contains("waiting for you"), "{text}");
    let output = play(vec![grown, done], &["handoff", "kai", "--wait", "--json"]);
    let lines: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|line| line["type"] == "document" && line["bytes"] == 883), "{lines:?}");
}

/// Until the successor's turn has come, the handoff waits for the outgoing agent, although a successor may be bound to
/// it.
#[test]
fn a_dialog_of_the_agent_whose_turn_it_is_is_told() {
    for (step_name, states, who) in [
        ("writing", ["blocked", "idle"], "11111111"),
        ("ending", ["blocked", "blocked"], "11111111"),
        ("starting", ["blocked", "blocked"], "22222222"),
    ] {
        let mut bound = at(step_name, &[step(step_name, 1, None)]);
        bound["successor_id"] = json!(NEXT);
        let views = [vec![bound; 20], vec![at("done", &[step(step_name, 1, Some(3))])]].concat();
        let text = out(&play_among(states, views, |home| home.run(&["handoff", "kai", "--wait"])));
        let told = format!("agent {who} is waiting for you");
        assert!(text.contains(&told) && text.matches("waiting for you").count() == 1, "{step_name}: {text}");
    }
}

#[test]
fn programs_get_one_object_a_line_and_the_view_last() {
    let output = play(good(), &["handoff", "kai", "--wait", "--json"]);
    let lines: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let types: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(types, ["initiated", "entered", "passed", "entered", "passed", "entered", "passed", "done"]);
    assert_eq!(lines.last().expect("a line")["handoff"]["successor_id"], "s1");
}

#[test]
fn a_failed_handoff_is_1_with_code_message_and_hint() {
    let mut failed = at("failed", &[step("waiting", 0, Some(1)), step("writing", 1, Some(2))]);
    let message = "There is no document at /d.md.";
    failed["error"] =
        json!({"error_id": "e", "step": "writing", "code": "document_missing", "message": message, "hint": "Look."});
    let output = play(vec![failed], &["handoff", "kai", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(err(&output), format!("tasuki: {message} (document_missing)\n  Look.\n"));
    assert!(out(&output).contains("stopped here"));
}

#[test]
fn a_cancelled_handoff_is_1_and_not_called_failed() {
    let output = play(vec![at("cancelled", &[step("waiting", 0, Some(1))])], &["handoff", "kai", "--wait"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("(cancelled)") && !err(&output).contains("failed"), "{}", err(&output));
}

#[test]
fn a_wait_that_is_over_leaves_the_handoff_alone() {
    let views = vec![at("writing", &[step("writing", 1, None)])];
    let output = play(views, &["handoff", "kai", "--wait", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(75));
    assert!(err(&output).contains("continues"), "{}", err(&output));
}

#[test]
fn a_wait_that_is_over_while_a_person_must_decide_says_so() {
    let mut held = at("checking", &[step("checking", 1, None)]);
    held["held_since"] = json!("2026-11-21T20:00:02.000Z");
    let output = play(vec![held], &["handoff", "kai", "--wait", "--timeout", "1s"]);
    assert_eq!(output.status.code(), Some(75));
    let said = err(&output);
    assert!(
        said.contains("within 1s: it waits for you to accept its document") && !said.contains("continues"),
        "{said}"
    );
    assert!(said.contains("Decide: tasuki accept 44444444, tasuki rework 44444444 --note TEXT"), "{said}");
}

#[test]
fn a_retry_is_followed_from_where_it_stopped() {
    let home = Arc::new(FakeHome::new());
    let before = [step("waiting", 0, Some(1)), step("writing", 1, Some(2))];
    let mut failed = at("failed", &before);
    failed["error"] = json!({"code": "document_missing", "message": "x", "step": "writing"});
    show(&home, &failed);
    let answer = move |home: &FakeHome, _: &Value| {
        let mut steps = before.to_vec();
        steps.push(step("writing", 5, Some(9)));
        show(home, &at("done", &steps));
        Some((200, json!({"handoff_id": HANDOFF})))
    };
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    let output = home.run(&["retry", "4444", "--wait"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(out(&output).contains("4.0 s") && !out(&output).contains("waiting"), "{}", out(&output));
}

#[test]
fn a_text_that_waits_says_what_for_on_standard_error() {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("kai"), None, "starting");
    let answer = |home: &FakeHome, _: &Value| {
        std::thread::sleep(std::time::Duration::from_millis(1_600));
        home.agent(KAI, Some("kai"), None, "blocked");
        std::thread::sleep(std::time::Duration::from_millis(800));
        Some((200, json!({"verdict": "delivered", "reason": null, "delivery_id": "5f2a9c81d0e3"})))
    };
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    let output = home.run(&["send", "kai", "Look."]);
    assert_eq!(out(&output), "delivered\n");
    let told: Vec<String> = err(&output).lines().map(str::to_owned).collect();
    assert_eq!(told, ["waiting: kai is starting", "waiting: kai has a dialog open in %1; answer it there"]);
}
