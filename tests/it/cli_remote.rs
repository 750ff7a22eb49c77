//! Commands that name an agent or handoff of another host, against a bridge that answers as that host.

use crate::support::fake_bridge::{Answer, FakeBridge, ago};
use crate::support::fake_sidecar::{FakeHome, FakeSidecar, write_whole};
use crate::support::fleet_home::{heartbeat, home_in_fleet, host};
use crate::support::said::{err, out};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const MIA: &str = "22222222-2222-4222-8222-222222222222";
const MIA_TOO: &str = "22333333-3333-4333-8333-333333333333";
const HANDOFF: &str = "44444444-4444-4444-8444-444444444444";

fn told(step: &str, second: u32) -> Value {
    let agent =
        |id: &str, persona: &str| json!({"agent_id": id, "persona": persona, "profile": "demo", "state": "idle"});
    json!({
        "agents": [agent(KAI, "kai"), agent(MIA, "mia"), agent(MIA_TOO, "mia")],
        "handoffs": [{"handoff_id": HANDOFF, "agent_id": KAI, "persona": "kai", "step": step,
            "since": format!("2026-11-25T12:00:{second:02}.000Z")}],
        "errors": [{"error_id": MIA, "code": "document_missing", "at": ago(60)}],
    })
}

fn fleet() -> Arc<FakeHome> {
    let home = home_in_fleet();
    host(&home, "box", &told("failed", 0));
    Arc::new(home)
}

/// A bridge that has a heartbeat of this moment.
fn start(home: &Arc<FakeHome>, answer: Box<Answer>) -> FakeBridge {
    heartbeat(home, 0);
    FakeBridge::start(home, "cli-", answer)
}

/// Runs a command against a host that answers every request with this, and returns what was asked.
fn ask(home: &Arc<FakeHome>, answer: (u16, Value), args: &[&str]) -> (Output, Vec<Value>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&asked);
    let answer: Box<Answer> = Box::new(move |_, request| {
        note.lock().expect("a list").push(request.clone());
        Some(answer.clone())
    });
    let bridge = start(home, answer);
    let output = home.run(args);
    drop(bridge);
    let asked = asked.lock().expect("a list").clone();
    (output, asked)
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn a_text_for_an_agent_of_another_host_is_a_request_to_that_host() {
    let home = fleet();
    let (output, asked) =
        ask(&home, (200, json!({"verdict": "delivered"})), &["send", "kai@box", "hello", "--timeout", "30s"]);
    assert_eq!((code(&output), out(&output).trim()), (Some(0), "delivered"), "{}", err(&output));
    let request = json!({"v": 1, "kind": "agent_send", "agent_id": KAI, "text": "hello"});
    assert_eq!(asked, [json!({"v": 1, "to": "box", "request": request, "ttl": "30s"})]);
    assert!(home.files("fleet/requests").is_empty() && home.files("fleet/tmp").is_empty());
    assert!(home.files("spool/requests").is_empty());
}

#[test]
fn a_text_for_another_host_is_withdrawn_if_the_wait_is_broken_off() {
    let home = fleet();
    heartbeat(&home, 0);
    let mut command = home.command(&["send", "kai@box", "hello"]);
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let until = Instant::now() + Duration::from_secs(10);
    while home.files("fleet/requests").is_empty() {
        assert!(Instant::now() < until, "no request came");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(i32::try_from(child.id()).expect("an id")), Signal::SIGINT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((code(&output), home.files("fleet/requests").len()), (Some(130), 0), "{}", err(&output));
    assert!(err(&output).contains("Interrupted. The request was withdrawn."), "{}", err(&output));
}

#[test]
fn the_answer_of_another_host_is_told_with_its_name() {
    let refusal = json!({"code": "not_accepted", "message": "desk may not ask for agent_send.", "hint": "On box: tasuki fleet accept desk send"});
    let (output, _) = ask(&fleet(), (403, refusal), &["send", "kai@box", "hello"]);
    assert_eq!(code(&output), Some(77));
    assert!(
        err(&output).contains("On the host box: desk may not ask for agent_send. (not_accepted)"),
        "{}",
        err(&output)
    );
    let (output, _) = ask(
        &fleet(),
        (504, json!({"code": "no_answer", "message": "It may have been carried out: look at box."})),
        &["send", "kai@box", "x"],
    );
    assert_eq!(code(&output), Some(75), "{}", err(&output));
    // A refusal by this host's own bridge says nothing of the other one.
    let own = json!({"code": "too_many", "message": "Too many requests of this host wait.", "answered_here": true});
    let (output, _) = ask(&fleet(), (429, own), &["send", "kai@box", "hello"]);
    let text = err(&output);
    assert!(text.contains("Too many requests") && !text.contains("On the host"), "{text}");
}

#[test]
fn names_are_looked_for_on_the_host_that_is_named() {
    let home = fleet();
    heartbeat(&home, 0);
    for (name, code, said) in [
        ("mia@box", "ambiguous", "\"mia\" matches 2 agents on the host box."),
        ("22@box", "ambiguous", "22333333-3333-4333-8333-333333333333  mia  idle"),
        ("zoe@box", "no_agent", "Agent not found: \"zoe\" on the host box"),
        ("kai@bax", "no_host", "Host not found: \"bax\""),
        ("kai@Box/..", "no_host", "tasuki agents --all-hosts"),
    ] {
        let output = home.run(&["send", name, "hello"]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let text = err(&output);
        assert!(text.contains(&format!("({code})")) && text.contains(said), "{name}: {text}");
    }
    let output = home.run(&["cancel", "5f2a@box"]);
    assert!(err(&output).contains("(no_handoff)"), "{}", err(&output));
    assert!(home.files("fleet/requests").is_empty());
}

#[test]
fn our_own_name_is_this_host() {
    let home = fleet();
    home.agent(KAI, Some("kai"), None, "idle");
    let _sidecar = FakeSidecar::start(&home, Box::new(|_, _| Some((200, json!({"verdict": "delivered"})))));
    let output = home.run(&["send", "kai@desk", "hello"]);
    assert_eq!(code(&output), Some(0), "no bridge is needed: {}", err(&output));
}

#[test]
fn what_nobody_may_ask_for_from_elsewhere_is_refused_here() {
    let home = fleet();
    heartbeat(&home, 0);
    for line in [
        &["publish", "5f2a@box"][..],
        &["rework", "5f2a@box", "--note", "x"],
        &["reopen", "5f2a@box"],
        &["read", "5f2a@box"],
        &["agent", "forget", "kai@box"],
        &["work", "show", "5f2a@box"],
        &["handoffs", "show", "kai@box", "--document"],
    ] {
        let output = home.run(line);
        assert_eq!(code(&output), Some(1), "{line:?}");
        let text = err(&output);
        assert!(text.contains("(not_from_elsewhere)") && text.contains("ssh box tasuki"), "{line:?}: {text}");
    }
    assert!(home.files("fleet/requests").is_empty());
}

#[test]
fn without_a_bridge_nothing_is_sent() {
    let home = fleet();
    for age_s in [None, Some(100)] {
        age_s.into_iter().for_each(|age_s| heartbeat(&home, age_s));
        let output = home.run(&["send", "kai@box", "hello"]);
        assert_eq!(code(&output), Some(69));
        assert!(err(&output).contains("(no_bridge)") && err(&output).contains("fleet run"), "{}", err(&output));
        assert!(err(&output).contains("Nothing was sent."), "{}", err(&output));
    }
    home.write("fleet/bridge.json", &json!({"heartbeat": ago(0), "server": null, "problem": "The server refuses us."}));
    let output = home.run(&["send", "kai@box", "hello"]);
    assert_eq!(code(&output), Some(69));
    assert!(err(&output).contains("The server refuses us."), "{}", err(&output));
    assert!(home.files("fleet/requests").is_empty());
}

#[test]
fn a_request_that_the_bridge_did_not_take_is_withdrawn() {
    let home = fleet();
    heartbeat(&home, 0);
    let output = home.run(&["send", "kai@box", "hello", "--timeout", "300ms"]);
    assert_eq!(code(&output), Some(75));
    assert!(err(&output).contains("The request was withdrawn."), "{}", err(&output));
    assert!(home.files("fleet/requests").is_empty() && home.files("fleet/tmp").is_empty());
    let bridge = start(&home, Box::new(|_, _| None));
    let output = home.run(&["send", "kai@box", "hello", "--timeout", "1s"]);
    drop(bridge);
    assert_eq!(code(&output), Some(75));
    assert!(err(&output).contains("box may still carry it out"), "{}", err(&output));
}

#[test]
fn each_command_asks_for_its_kind() {
    let answer = || (200, json!({"handoff_id": HANDOFF, "agent_id": KAI, "status": "ok", "step": "writing"}));
    let handoff = json!({"handoff_id": HANDOFF});
    for (line, kind, fields) in [
        (&["cancel", "4444@box"][..], "handoff_cancel", handoff.clone()),
        (&["abandon", "kai@box"], "handoff_abandon", handoff.clone()),
        (&["accept", "4444@box"], "handoff_accept", handoff),
        (
            &["retry", "4444@box", "--successor", "kai"],
            "handoff_retry",
            json!({"handoff_id": HANDOFF, "successor": {"agent_id": KAI}}),
        ),
        (&["ack-override", "4444@box", "--reason", "r"], "ack_override", json!({"handoff_id": HANDOFF, "reason": "r"})),
        (
            &["agent", "create", "zoe@box", "--cwd", "/there"],
            "agent_create",
            json!({"persona_slug": "zoe", "cwd": "/there"}),
        ),
        (&["agent", "shutdown", "kai@box", "--force"], "agent_shutdown", json!({"agent_id": KAI, "force": true})),
        (&["errors", "dismiss", "22@box"], "error_dismiss", json!({"error_id": MIA})),
        (
            &["handoff", "kai@box", "--successor", "kai@box"],
            "handoff",
            json!({"agent_id": KAI, "reason": "requested by the operator", "successor": {"agent_id": KAI}}),
        ),
    ] {
        let (output, asked) = ask(&fleet(), answer(), line);
        assert_eq!(code(&output), Some(0), "{line:?}: {}", err(&output));
        let mut expected = fields;
        expected["v"] = json!(1);
        expected["kind"] = json!(kind);
        assert_eq!(asked, [json!({"v": 1, "to": "box", "request": expected})], "{line:?}");
    }
    for line in
        [&["agent", "create", "zoe@box", "--cwd", "here"][..], &["handoff", "kai@box", "--successor", "kai@desk"]]
    {
        let (output, asked) = ask(&fleet(), answer(), line);
        assert_eq!((code(&output), asked.len()), (Some(2), 0), "{line:?}: {}", err(&output));
    }
}

/// A step, when it begins, and whether it stands in a roster of its host: some pass between two.
type PlayedStep = (&'static str, u32, bool);

/// Answers as a host on which the handoff, which had failed, passes through these steps, a moment apart.
fn play(steps: &'static [PlayedStep], shows_views: bool, args: &[&str]) -> Output {
    let home = fleet();
    let reached = Arc::new(AtomicUsize::new(0));
    let answer = move |home: &FakeHome, request: &Value| {
        if request["request"]["kind"] == "view" && !shows_views {
            return Some((403, json!({"code": "not_accepted", "message": "desk may not ask for view.", "hint": ""})));
        }
        if request["request"]["kind"] == "view" {
            return Some((200, json!({"view": whole_view(&steps[..reached.load(Ordering::SeqCst)])})));
        }
        let (path, reached) = (home.path().join("fleet/hosts/box.json"), Arc::clone(&reached));
        std::thread::spawn(move || {
            for step in steps {
                reach(&path, *step, &reached);
            }
        });
        Some((200, json!({"status": "initiated", "handoff_id": HANDOFF})))
    };
    let _bridge = start(&home, Box::new(answer));
    let output = home.run(args);
    assert!(home.files("fleet/results").len() <= 2, "answers to looks are not kept");
    output
}

/// The view of the handoff when it has passed through these steps.
fn whole_view(reached: &[PlayedStep]) -> Value {
    let all: Vec<(&str, u32)> =
        std::iter::once(("failed", 0)).chain(reached.iter().map(|(step, at, _)| (*step, *at))).collect();
    let at = |second: u32| format!("2026-11-25T12:00:{second:02}.000Z");
    let left = |index: usize| all.get(index + 1).map(|(_, second)| at(*second));
    let steps: Vec<Value> = all
        .iter()
        .enumerate()
        .map(|(index, (step, second))| json!({"step": step, "entered_at": at(*second), "left_at": left(index)}))
        .collect();
    json!({"handoff_id": HANDOFF, "step": all.last().expect("a step").0, "steps": steps, "file_path": "/there/d.md",
        "successor_id": MIA, "error": {"code": "document_missing", "message": "There is no document.", "hint": "Look."}})
}

fn reach(path: &Path, (step, second, in_roster): PlayedStep, reached: &AtomicUsize) {
    std::thread::sleep(std::time::Duration::from_millis(350));
    reached.fetch_add(1, Ordering::SeqCst);
    if in_roster {
        let mut view = told(step, second);
        view["host"] = json!("box");
        write_whole(path, &view);
    }
}

fn lines_of(output: &Output) -> Vec<String> {
    let text = out(output);
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The handoff is `recording` between two rosters.
const PASSES: [PlayedStep; 4] =
    [("writing", 10, true), ("recording", 12, false), ("starting", 13, true), ("done", 14, true)];

#[test]
fn a_handoff_on_another_host_is_followed_to_its_end_and_no_step_is_missed() {
    let output = play(&PASSES, true, &["retry", "kai@box", "--wait"]);
    assert_eq!(code(&output), Some(0), "{}", err(&output));
    let continues = format!("handoff {HANDOFF}@box continues");
    let lines = lines_of(&output);
    assert_eq!(lines[..5], [&continues, "writing 2.0 s", "recording 1.0 s", "starting 1.0 s", "done"], "{lines:?}");
    for line in ["document /there/d.md", &format!("successor {MIA}")] {
        assert!(lines.iter().any(|own| own == line), "{lines:?}");
    }
    assert!(!err(&output).contains("not shown"), "{}", err(&output));
}

#[test]
fn without_the_right_to_views_the_steps_of_rosters_are_shown_and_the_others_said_to_be_missing() {
    let output = play(&PASSES, false, &["retry", "kai@box", "--wait"]);
    assert_eq!(code(&output), Some(0), "{}", err(&output));
    let continues = format!("handoff {HANDOFF}@box continues");
    assert_eq!(lines_of(&output)[..4], [&continues, "writing 3.0 s", "starting 1.0 s", "done"]);
    let said = err(&output);
    assert!(said.contains("tasuki fleet accept desk view") && said.contains("are not shown"), "{said}");
}

#[test]
fn a_handoff_that_fails_on_another_host_is_1_and_says_where() {
    let steps = &[("writing", 10, true), ("failed", 12, true)];
    let output = play(steps, true, &["handoff", "kai@box", "--wait", "--json"]);
    assert_eq!(code(&output), Some(1), "{}", err(&output));
    let types: Vec<Value> = out(&output).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(types.first().expect("a line")["type"], "initiated");
    assert_eq!(types.last().expect("a line")["handoff"]["file_path"], "/there/d.md");
    let error: Value = serde_json::from_str(&err(&output)).expect("JSON");
    assert_eq!(error["error"]["message"], "On the host box: There is no document.");
    assert_eq!(error["error"]["code"], "document_missing");
}

#[test]
fn a_wait_that_is_over_leaves_the_handoff_on_the_other_host_alone() {
    for shows_views in [true, false] {
        let steps = &[("writing", 10, true)];
        let output = play(steps, shows_views, &["handoffs", "follow", "4444@box", "--timeout", "1s"]);
        // The handoff had failed before: that is its end.
        assert_eq!(code(&output), Some(1), "{}", err(&output));
        let output = play(steps, shows_views, &["retry", "4444@box", "--wait", "--timeout", "3s"]);
        assert_eq!(code(&output), Some(75), "{}", err(&output));
        assert!(err(&output).contains(&format!("The handoff {HANDOFF}@box is not affected")), "{}", err(&output));
    }
}

#[test]
fn views_of_another_host_are_shown_as_those_of_this_one() {
    let view = json!({"handoff_id": HANDOFF, "step": "acknowledging", "reason": "context", "agent_id": KAI, "steps": [],
        "ack": {"status": "needs_clarification", "questions": ["Which branch?"]}});
    let (output, asked) = ask(&fleet(), (200, json!({"view": view})), &["handoffs", "show", "4444@box"]);
    assert_eq!(code(&output), Some(0), "{}", err(&output));
    assert!(out(&output).contains("reason     context") && err(&output).contains("@box"), "{}", out(&output));
    assert_eq!(asked[0]["request"], json!({"v": 1, "kind": "view", "of": "handoffs", "id": HANDOFF}));
    // Answers go with the questions that the other host has.
    let (_, asked) = ask(&fleet(), (200, json!({"view": view})), &["clarify", "4444@box", "--answer", "main"]);
    assert_eq!(asked[1]["request"]["clarifications"], json!([{"question": "Which branch?", "answer": "main"}]));
}

#[test]
fn a_lineage_on_another_host_is_asked_for_agent_by_agent() {
    let home = fleet();
    let agent = |id: &str, previous: Option<&str>, next: Option<&str>| {
        json!({"agent_id": id, "persona_slug": "kai",
        "previous_agent_id": previous, "successor_id": next, "state": "idle", "registered_at": format!("2026-01-01T00:00:{}Z", &id[..2])})
    };
    let answer = move |_: &FakeHome, request: &Value| {
        let request = &request["request"];
        Some(match request["id"].as_str() {
            None => (
                200,
                json!({"views": [{"handoff_id": HANDOFF, "successor_id": MIA, "step": "done", "reason": "context"}]}),
            ),
            Some(KAI) => (200, json!({"view": agent(KAI, None, Some(MIA))})),
            Some(MIA) => (200, json!({"view": agent(MIA, Some(KAI), Some(MIA_TOO))})),
            Some(_) => (404, json!({"code": "no_agent", "message": "Agent not found"})),
        })
    };
    let _bridge = start(&home, Box::new(answer));
    let output = home.run(&["lineage", "kai@box"]);
    assert_eq!(code(&output), Some(0), "{}", err(&output));
    let text = out(&output);
    assert!(text.starts_with("11111111  kai") && text.contains("└─ 22222222  kai"), "{text}");
    assert!(text.contains("by handoff 44444444 (done): context"), "{text}");
}
