//! The command line from outside: what it refuses, what it prints, and its exit codes.

use crate::support::fake_sidecar::{FakeHome, FakeSidecar};
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const NEXT: &str = "22222222-2222-4222-8222-222222222222";
const MIA: &str = "33333333-3333-4333-8333-333333333333";

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Runs one command against a sidecar that answers so, and gives what was asked of it.
fn asked(answer: (u16, Value), args: &[&str]) -> (Output, Vec<Value>) {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("kai"), None, "idle");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let take = move |_: &FakeHome, request: &Value| {
        log.lock().expect("no panic").push(request.clone());
        Some(answer.clone())
    };
    let sidecar = FakeSidecar::start(&home, Box::new(take));
    let output = home.run(args);
    drop(sidecar);
    let seen = seen.lock().expect("no panic").clone();
    (output, seen)
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let home = FakeHome::new();
    for args in [&["nonsense"][..], &["handoff", "--nonsense"], &["persona", "new", "Not A Slug"], &[]] {
        assert_eq!(code(&home.run(args)), 2, "{args:?}");
    }
    let output = home.run(&["agents", "--nonsense", "--json"]);
    let error: Value = serde_json::from_slice(&output.stderr).expect("JSON on standard error");
    assert_eq!((code(&output), error["error"]["code"].as_str()), (2, Some("usage")));
    let message = |args: &[&str]| {
        let error: Value = serde_json::from_slice(&home.run(args).stderr).expect("JSON on standard error");
        error["error"]["message"].as_str().expect("a message").to_owned()
    };
    let missing = message(&["ack", "--json"]);
    assert!(missing.contains("--understanding <TEXT>, --starting-from <TEXT>"), "{missing}");
    let both = message(&["agents", "--all", "--all-hosts", "--json"]);
    assert!(both.contains("'--all-hosts' cannot be used with") || both.contains("--all-hosts"), "{both}");
}

/// They are pasted into a shell that was given no `--home`.
#[test]
fn printed_commands_lead_to_the_home_that_was_named() {
    let home = FakeHome::new();
    home.beat(0);
    let view = json!({"agent_id": KAI, "persona_slug": "kai", "state": "idle", "handoff_suggested": true});
    home.write(&format!("view/agents/{KAI}.json"), &view);
    let root = home.path().canonicalize().expect("there");
    for (args, command) in [
        (&["status"][..], "handoff 11111111 --reason context_limit --wait"),
        (&["agents"], "handoff 11111111 --reason context_limit --wait"),
        (&["persona", "new", "lea"], "agent create lea --profile NAME"),
        (&["handoff", "nobody"], "agents --all` lists"),
        (&["handoff", "nobody", "--json"], "agents --all` lists"),
    ] {
        let elsewhere = home.command(args).env_remove("TASUKI_HOME").output().expect("the program runs");
        let said = out(&elsewhere) + &err(&elsewhere);
        assert!(said.contains(&format!("tasuki --home {} {command}", root.display())), "{args:?}: {said}");
    }
    let here = home.run(&["status"]);
    assert!(out(&here).contains("  tasuki handoff 11111111"), "the environment leads there: {}", out(&here));
}

#[test]
fn help_and_version_end_with_0_on_standard_output() {
    let home = FakeHome::new();
    for args in [&["--help"][..], &["handoff", "--help"], &["--version"], &["hook", "--help"]] {
        let output = home.run(args);
        assert_eq!(code(&output), 0, "{args:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn help_that_can_not_be_written_ends_with_1() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else { return };
    let output = FakeHome::new().command(&["--help"]).stdout(full).output().expect("the program runs");
    assert!(code(&output) == 1 && err(&output).contains("can't be written"), "{}", err(&output));
}

#[test]
fn a_persona_without_a_profile_is_started_with_one() {
    let home = FakeHome::new();
    home.beat(0);
    for (slug, profile) in [("lea", ""), ("kai", "profile = \"demo\"\n")] {
        let folder = home.path().join("data/personas").join(slug);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("skill.md"), "Work.\n").expect("written");
        std::fs::write(folder.join("persona.toml"), profile).expect("written");
        let wanted = format!("tasuki agent create {slug}{}", if profile.is_empty() { " --profile NAME" } else { "" });
        let none = err(&home.run(&["handoff", slug]));
        assert!(none.contains(&format!("Start one: {wanted}")), "{none}");
        home.agent(KAI, Some(slug), None, "ended");
        let ended = err(&home.run(&["handoff", slug]));
        assert!(ended.contains(&format!("Start one: {wanted}. To hand off")), "{ended}");
        std::fs::remove_file(home.path().join(format!("view/agents/{KAI}.json"))).expect("gone");
    }
}

#[test]
fn rules_that_others_could_write_are_not_allowed() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = FakeHome::new();
    std::fs::create_dir_all(home.path().join("data")).expect("a folder");
    let path = home.path().join("data/rules.toml");
    std::fs::write(&path, "").expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("ours");
    let output = home.run(&["rules", "check"]);
    let said = err(&output);
    assert_eq!((code(&output), said.matches("rules.toml can be written").count()), (77, 1), "{said}");
    assert!(said.contains("chmod go-w") && said.matches("rules.toml").count() == 2, "{said}");
}

#[test]
fn without_a_sidecar_commands_end_with_69_and_nothing_is_dropped() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    let output = home.run(&["handoff", "kai"]);
    assert_eq!(code(&output), 69);
    assert!(err(&output).contains("tasuki run --home"), "{}", err(&output));
    assert!(home.files("spool/requests").is_empty() && home.files("spool/tmp").is_empty());
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    let elsewhere = elsewhere.args(["--home", "/nowhere/a b", "status"]).output().expect("the program runs");
    assert!(err(&elsewhere).contains("tasuki run --home '/nowhere/a b'"), "{}", err(&elsewhere));
    home.beat(60);
    let output = home.run(&["send", "kai", "hello", "--json"]);
    let error: Value = serde_json::from_slice(&output.stderr).expect("JSON on standard error");
    assert_eq!((code(&output), error["error"]["code"].as_str()), (69, Some("no_sidecar")));
    let message = error["error"]["message"].as_str().unwrap_or_default();
    assert!(message.ends_with(" s ago. Nothing was sent."), "{message}");
}

#[test]
fn a_socket_whose_path_is_too_long_for_the_system_is_refused_with_path_length_and_limit() {
    let home = FakeHome::new();
    let socket = format!("/tmp/{}", "s".repeat(200));
    let output = home.run(&["run", "--tmux", &socket]);
    assert_eq!(code(&output), 78, "{}", err(&output));
    let before = home.run(&["--tmux", &socket, "run"]);
    assert!(code(&before) == 78 && err(&before).contains("205 bytes"), "the option may stand first: {}", err(&before));
    let doctor = home.run(&["doctor", "--tmux", &socket]);
    assert!(out(&doctor).contains(&socket), "{}", out(&doctor));
    let limit = if cfg!(target_os = "linux") { "at most 107" } else { "at most 103" };
    for part in [socket.as_str(), "205 bytes", limit, "--tmux", "TMUX_TMPDIR"] {
        assert!(err(&output).contains(part), "{part}: {}", err(&output));
    }
}

#[test]
fn a_refusal_is_said_with_its_exact_message() {
    let error = json!({"code": "no_persona", "message": "Agent has no persona", "hint": "Give it one."});
    for (status, exit) in [(400, 1), (403, 77), (409, 1), (503, 75)] {
        let (output, _) = asked((status, error.clone()), &["handoff", "kai"]);
        assert_eq!(code(&output), exit, "{status}");
        assert_eq!(err(&output), "tasuki: Agent has no persona (no_persona)\n  Give it one.\n");
    }
}

#[test]
fn a_handoff_request_holds_what_was_asked_for_and_nothing_else() {
    let answer = json!({"status": "initiated", "handoff_id": "h1", "file_path": "/d.md"});
    let (output, requests) = asked((200, answer.clone()), &["handoff", "kai", "--json"]);
    assert_eq!(requests, [json!({"v": 1, "kind": "handoff", "agent_id": KAI, "reason": "requested by the operator"})]);
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).ok(), Some(answer.clone()));
    let all = ["handoff", &KAI[..6], "--reason", "r", "--focus", "f", "--author", "agent-reply", "--successor", "kai"];
    let more = ["--urgency", "when-available", "--task", "a", "--task", "b", "--now"];
    let (output, requests) = asked((200, answer), &[&all[..], &more[..]].concat());
    let expected = json!({
        "v": 1, "kind": "handoff", "agent_id": KAI, "reason": "r", "focus": "f", "author": "agent_reply",
        "successor": {"agent_id": KAI}, "urgency": "when_available", "tasks": ["a", "b"], "now": true,
    });
    assert_eq!(requests, [expected]);
    assert!(out(&output).starts_with("handoff h1\n"), "{}", out(&output));
}

#[test]
fn an_agent_names_itself_by_its_environment() {
    let home = Arc::new(FakeHome::new());
    let answer = json!({"handoff_id": "h", "file_path": "/d.md"});
    let echo = move |_: &FakeHome, request: &Value| match request["agent_id"] == KAI {
        true => Some((200, answer.clone())),
        false => Some((404, json!({"code": "no_agent", "message": "Agent not found"}))),
    };
    let _sidecar = FakeSidecar::start(&home, Box::new(echo));
    for args in [&["handoff"][..], &["handoff", "."]] {
        let output = home.command(args).env("TASUKI_AGENT_ID", KAI).output().expect("the program runs");
        assert_eq!(code(&output), 0, "{}", err(&output));
    }
    assert_eq!(code(&home.run(&["handoff"])), 2);
    let output =
        home.command(&["handoff", KAI, "--wait"]).env("TASUKI_AGENT_ID", KAI).output().expect("the program runs");
    assert_eq!(code(&output), 2, "an agent that waits for its own handoff never ends its turn");
}

#[test]
fn a_send_that_is_not_proven_is_no_success() {
    let verdict = |word: &str| json!({"delivery_id": "x", "verdict": word, "reason": null, "at": "t"});
    let (output, requests) = asked((200, verdict("delivered")), &["send", "kai", "hello"]);
    assert_eq!((code(&output), out(&output).as_str()), (0, "delivered\n"));
    assert_eq!(requests[0]["text"], "hello");
    let (output, _) = asked((200, verdict("unconfirmed")), &["send", "kai", "hello"]);
    assert_eq!(code(&output), 1);
}

#[test]
fn an_ambiguous_name_lists_the_candidates() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.agent(MIA, Some("kai"), None, "busy");
    let output = home.run(&["lineage", "kai"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains(KAI) && err(&output).contains(MIA), "{}", err(&output));
}

#[test]
fn lists_and_lineage_are_read_from_the_views_even_when_nobody_beats() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "ended");
    home.agent(NEXT, Some("kai"), Some(KAI), "idle");
    let output = home.run(&["agents"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    let (kai, next) = (&KAI[..8], &NEXT[..8]);
    assert!(out(&output).contains(next) && !out(&output).contains(kai), "{}", out(&output));
    assert!(out(&home.run(&["agents", "--all"])).contains(kai));
    home.write(
        "view/handoffs/h.json",
        &json!({"handoff_id": "h1", "successor_id": NEXT, "reason": "con\ntext", "file_path": "/d.md", "step": "done"}),
    );
    let lineage = out(&home.run(&["lineage", "kai"]));
    let lines: Vec<&str> = lineage.lines().collect();
    assert!(lines[0].starts_with(kai) && lines[1].starts_with(&format!("└─ {next}")), "{lineage}");
    assert!(lines[2].contains("by handoff h1 (done): con text") && lines[3].ends_with("document /d.md"), "{lineage}");
    let json: Value = serde_json::from_slice(&home.run(&["agents", "--all", "--json"]).stdout).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(2));
    assert_eq!(json[0]["agent_id"], KAI);
}

#[test]
fn errors_are_listed_and_dismissed_by_deleting_when_nobody_beats() {
    let home = FakeHome::new();
    let error = json!({"v": 1, "error_id": KAI, "at": "t", "code": "document_missing", "message": "No document."});
    home.write(&format!("spool/errors/{KAI}.json"), &error);
    assert!(out(&home.run(&["errors"])).contains("document_missing"));
    assert_eq!(code(&home.run(&["errors", "dismiss", "99"])), 1);
    assert_eq!(code(&home.run(&["errors", "dismiss", "1111"])), 0);
    assert!(home.files("spool/errors").is_empty());
}

/// A handoff that has failed and was then closed for good, and its error.
fn abandoned(home: &FakeHome) {
    let error =
        json!({"error_id": NEXT, "step": "instructing", "code": "not_delivered", "message": "No.", "hint": "Look."});
    let view = json!({"handoff_id": MIA, "agent_id": KAI, "persona_slug": "kai", "step": "cancelled", "steps": [],
        "file_path": "/d.md", "error": error});
    home.write(&format!("view/handoffs/{MIA}.json"), &view);
    let file = json!({"v": 1, "error_id": NEXT, "at": "t", "code": "not_delivered", "message": "No.", "hint": "Look.",
        "handoff_id": MIA, "step": "instructing"});
    home.write(&format!("spool/errors/{NEXT}.json"), &file);
}

#[test]
fn an_abandoned_handoff_is_called_so_and_leaves_nothing_to_do() {
    let home = FakeHome::new();
    abandoned(&home);
    let list = out(&home.run(&["handoffs"]));
    assert!(list.contains("abandoned: not_delivered") && !list.contains("cancelled"), "{list}");
    let shown = out(&home.run(&["handoffs", "show", MIA]));
    assert!(shown.contains("it had failed, and was abandoned") && shown.contains("No. (not_delivered)"), "{shown}");
    let errors = out(&home.run(&["errors"]));
    assert!(errors.contains("the handoff was abandoned since then: nothing is left to do"), "{errors}");
    assert!(!shown.contains("Look.") && !errors.contains("Look."), "{shown}{errors}");
}

/// What to do about the earlier failure would be done about the later one.
#[test]
fn a_failure_of_a_handoff_that_has_failed_again_points_to_the_later_one() {
    let home = FakeHome::new();
    let later = json!({"error_id": NEXT, "step": "briefing", "code": "unconfirmed", "message": "No.", "hint": "Look."});
    let view = json!({"handoff_id": MIA, "agent_id": KAI, "step": "failed", "steps": [], "error": later});
    home.write(&format!("view/handoffs/{MIA}.json"), &view);
    for (id, step) in [(KAI, "priming"), (NEXT, "briefing"), (MIA, "publishing")] {
        let file = json!({"v": 1, "error_id": id, "at": "t", "code": "unconfirmed", "message": "No.",
            "hint": format!("Do {step}."), "handoff_id": MIA, "step": step});
        home.write(&format!("spool/errors/{id}.json"), &file);
    }
    let said = out(&home.run(&["errors"]));
    let again = format!("the handoff has continued since then, and has failed again at briefing: see error {NEXT}");
    assert!(said.matches(&again).count() == 1 && !said.contains("Do priming."), "{said}");
    assert!(said.contains("Do briefing.") && said.contains("Do publishing."), "{said}");
}

/// The clock was 70 years ahead when the first handoff was requested.
#[test]
fn a_persona_does_not_mean_its_handoff_from_the_future() {
    let home = FakeHome::new();
    for (id, at) in
        [(MIA, "2096-11-29T12:00:00.000Z"), (KAI, "2026-11-28T12:00:00.000Z"), (NEXT, "2026-11-29T12:00:00.000Z")]
    {
        let view = json!({"handoff_id": id, "agent_id": KAI, "persona_slug": "kai", "step": "done", "steps": [],
            "file_path": "/d.md", "created_at": at});
        home.write(&format!("view/handoffs/{id}.json"), &view);
    }
    let shown = out(&home.run(&["handoffs", "show", "kai"]));
    assert!(shown.contains(&NEXT[..8]) && !shown.contains(&MIA[..8]), "{shown}");
}

/// Each command that it proposes names the handoff.
#[test]
fn the_check_of_a_delivery_proposes_only_what_can_be_done() {
    let home = FakeHome::new();
    home.agent(NEXT, Some("kai"), Some(KAI), "ended");
    for (step, successor, said) in [
        ("failed", json!(NEXT), format!("tasuki retry {MIA} --successor new")),
        ("failed", json!(KAI), format!("tasuki retry {MIA} --successor new")),
        (
            "briefing",
            json!(NEXT),
            format!("wait until the handoff has failed, then: tasuki retry {MIA} --successor new"),
        ),
        ("briefing", json!(null), format!("tasuki handoffs show {MIA}")),
        ("done", json!(NEXT), "the handoff is done, so it needs it no longer".to_owned()),
        ("done", json!(KAI), "the handoff is done, so it needs it no longer".to_owned()),
        ("cancelled", json!(NEXT), "start another agent, or hand an agent off again".to_owned()),
    ] {
        let view = json!({"handoff_id": MIA, "agent_id": KAI, "persona_slug": "kai", "step": step, "steps": [],
            "file_path": "/d.md", "successor_id": successor});
        home.write(&format!("view/handoffs/{MIA}.json"), &view);
        let shown = out(&home.run(&["doctor", "delivery", "--handoff", MIA]));
        assert!(shown.contains(&said), "{step}: {shown}");
    }
}

#[test]
fn a_failure_says_that_another_handoff_has_taken_over() {
    let home = FakeHome::new();
    let error = json!({"error_id": NEXT, "step": "writing", "code": "agent_ended", "message": "No.", "hint": "Look."});
    let view = json!({"handoff_id": MIA, "agent_id": KAI, "step": "failed", "steps": [], "error": error});
    home.write(&format!("view/handoffs/{MIA}.json"), &view);
    let file = json!({"v": 1, "error_id": NEXT, "at": "t", "code": "agent_ended", "message": "No.", "hint": "Look.",
        "handoff_id": MIA, "agent_id": KAI, "step": "writing"});
    home.write(&format!("spool/errors/{NEXT}.json"), &file);
    for (recorded_in, is_over) in [(json!(null), false), (json!(MIA), false), (json!(NEXT), true)] {
        let agent =
            json!({"v": 1, "agent_id": KAI, "persona_slug": "kai", "state": "ended", "recorded_in": recorded_in});
        home.write(&format!("view/agents/{KAI}.json"), &agent);
        let text = out(&home.run(&["errors"]));
        let said = text.contains("another handoff of this agent has taken over: nothing is left to do");
        assert_eq!((said, text.contains("Look.")), (is_over, !is_over), "{text}");
    }
}

#[test]
fn a_failed_publication_says_how_far_publishing_is_now() {
    let home = FakeHome::new();
    let file = json!({"v": 1, "error_id": NEXT, "at": "t", "code": "gh_auth", "message": "No.", "hint": "Look.",
        "handoff_id": MIA, "step": "publishing"});
    home.write(&format!("spool/errors/{NEXT}.json"), &file);
    let newer = json!({"error_id": KAI, "code": "gh_auth", "message": "No."});
    let same = json!({"error_id": NEXT, "code": "gh_auth", "message": "No."});
    for (state, error, said) in [
        ("published", json!(null), "the document was published after that: nothing is left to do"),
        ("running", json!(null), "publishing has continued since then: running"),
        ("failed", newer, "publishing was tried again after that, and has a newer failure"),
        ("failed", same, "Look."),
    ] {
        let publish = json!({"state": state, "error": error});
        let view = json!({"handoff_id": MIA, "agent_id": KAI, "step": "done", "steps": [], "publish": publish});
        home.write(&format!("view/handoffs/{MIA}.json"), &view);
        let text = out(&home.run(&["errors"]));
        assert!(text.contains(said) && text.contains("Look.") == (said == "Look."), "{state}: {text}");
    }
}

#[test]
fn a_failure_of_an_agent_that_was_made_good_leaves_nothing_to_do() {
    let home = FakeHome::new();
    let failures = |code: &str, view: Value| {
        home.write(&format!("view/agents/{KAI}.json"), &view);
        let file = json!({"v": 1, "error_id": NEXT, "at": "t", "code": code, "message": "No.", "hint": "Look.", "agent_id": KAI});
        home.write(&format!("spool/errors/{NEXT}.json"), &file);
        out(&home.run(&["errors"]))
    };
    let agent = |more: Value| {
        let mut view =
            json!({"v": 2, "agent_id": KAI, "persona_slug": "kai", "profile": "demo", "state": "idle", "primed": true});
        more.as_object().into_iter().flatten().for_each(|(name, value)| view[name] = value.clone());
        view
    };
    let settled = [
        ("agent_died", agent(json!({"state": "ended", "ended_at": "t", "successor_id": MIA})), "a successor continues"),
        ("start_failed", agent(json!({})), "the agent got its skill after that"),
        ("priming_failed", agent(json!({})), "the agent got its skill after that"),
        ("start_failed", agent(json!({"state": "ended", "ended_at": "t"})), "the agent got its skill after that"),
        (
            "priming_failed",
            agent(json!({"state": "ended", "ended_at": "t", "primed": false})),
            "the agent has ended since",
        ),
        ("priming_failed", agent(json!({"primed": false, "successor_id": MIA})), "a successor continues"),
    ];
    for (code, view, said) in settled {
        let text = failures(code, view);
        assert!(text.contains(said) && text.contains("nothing is left to do") && !text.contains("Look."), "{text}");
    }
    let left = [
        ("agent_died", agent(json!({"state": "ended", "ended_at": "t"}))),
        ("start_failed", agent(json!({"primed": false}))),
        ("start_failed", agent(json!({"state": "ended", "ended_at": "t", "primed": false}))),
        ("turn_failed", agent(json!({}))),
    ];
    for (code, view) in left {
        let text = failures(code, view);
        assert!(text.contains("Look.") && !text.contains("nothing is left"), "{text}");
    }
}

#[test]
fn a_handoff_that_went_on_unread_is_shown_as_such() {
    let home = FakeHome::new();
    let shown = |read: &str| {
        let steps = json!([{"step": "reading", "entered_at": "2026-11-21T20:00:01.000Z", "left_at": "2026-11-21T20:02:01.000Z"}]);
        let view = json!({"handoff_id": MIA, "agent_id": KAI, "persona_slug": "kai", "step": "done", "steps": steps, "read": read});
        home.write(&format!("view/handoffs/{MIA}.json"), &view);
        [out(&home.run(&["handoffs"])), out(&home.run(&["handoffs", "show", MIA]))]
    };
    let [list, one] = shown("unseen");
    assert!(list.contains("done: read unseen"), "{list}");
    assert!(one.contains("! reading       2 min 00 s  unseen") && one.contains("look into its pane"), "{one}");
    for text in shown("seen") {
        assert!(!text.contains("unseen"), "{text}");
    }
}

#[test]
fn abandon_names_the_document_if_there_is_one() {
    let home = Arc::new(FakeHome::new());
    abandoned(&home);
    let answer = |_: &FakeHome, _: &Value| Some((200, json!({"status": "cancelled", "handoff_id": MIA})));
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    assert_eq!(out(&home.run(&["abandon", MIA])), format!("handoff {MIA} is closed\n"));
    home.write(&format!("view/handoffs/{MIA}.json"), &json!({"handoff_id": MIA, "file_path": "/d.md", "bytes": 7}));
    let said = out(&home.run(&["abandon", MIA]));
    assert_eq!(said, format!("handoff {MIA} is closed; its document and record are kept: /d.md\n"));
}

#[test]
fn a_hook_always_ends_with_0_and_prints_nothing() {
    let home = FakeHome::new();
    for args in [&["hook"][..], &["hook", "no such profile"], &["hook", "--nonsense"], &["--nonsense", "hook", "demo"]]
    {
        let output = home.run(args);
        assert_eq!((code(&output), output.stdout.len()), (0, 0), "{args:?}");
    }
}

#[test]
fn a_persona_needs_no_sidecar() {
    let home = FakeHome::new();
    let output = home.run(&["persona", "new", "kai", "--name", "Kai", "--profile", "demo"]);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert!(home.path().join("data/personas/kai/skill.md").is_file());
    assert_eq!(code(&home.run(&["persona", "new", "kai"])), 1);
    let folder = home.path().join("data/personas/kai/handoffs");
    std::fs::create_dir_all(&folder).expect("a folder");
    let stem = "20261121T200000-11111111";
    let copy = "replacement-handoff-kai-11111111-to-kai-22222222-20261121T200000Z".to_owned();
    for name in [format!("{stem}.md"), format!("{stem}.facts.md"), format!("{stem}.facts.json"), format!("{copy}.md")] {
        std::fs::write(folder.join(name), "x").expect("a file");
    }
    let list: Value = serde_json::from_slice(&home.run(&["persona", "list", "--json"]).stdout).expect("JSON");
    assert_eq!((list[0]["persona_slug"].as_str(), list[0]["documents"].as_u64()), (Some("kai"), Some(1)));
    assert_eq!((list[0]["name"].as_str(), list[0]["profile"].as_str()), (Some("Kai"), Some("demo")));
}

#[test]
fn an_agent_that_was_registered_is_no_failure_because_of_a_note() {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("zed"), None, "idle");
    let profiles = home.path().join("data/profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    std::fs::write(profiles.join("bad.toml"), "title = 7").expect("a file");
    let answer = |_: &FakeHome, _: &Value| Some((200, json!({"status": "registered", "agent_id": KAI})));
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    let output = home.run(&["agent", "register", "%1", "--persona", "zed", "--profile", "demo"]);
    assert_eq!((code(&output), err(&output).as_str()), (0, ""));
    assert_eq!(out(&output), format!("agent {KAI} in pane %1\n"));
}

#[test]
fn colour_is_for_terminals_and_for_those_who_force_it() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    let coloured = |name: &str| {
        let output = home.command(&["agents"]).env(name, "1").output().expect("the program runs");
        out(&output).contains('\u{1b}')
    };
    assert!(!coloured("NOTHING") && !coloured("NO_COLOR"));
    assert!(coloured("CLICOLOR_FORCE"));
}

#[test]
fn a_closed_output_is_no_panic() {
    for args in [&["completions", "bash"][..], &["schema", "handoff"], &["--help"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tasuki"))
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(output.stderr.is_empty(), "{args:?}: {}", err(&output));
    }
}

#[test]
fn every_command_has_a_page_of_the_manual_with_an_example() {
    let (home, folder) = (FakeHome::new(), tempfile::tempdir().expect("a folder"));
    let dir = folder.path().join("man1").display().to_string();
    let written: Value = serde_json::from_slice(&home.run(&["man", "--dir", &dir, "--json"]).stdout).expect("JSON");
    let files = written["files"].as_array().expect("files");
    assert!(files.len() > 30, "{written:#}");
    for file in files.iter().filter_map(Value::as_str) {
        let page = std::fs::read_to_string(file).expect("a page");
        // The chapters of the guide have their examples where they need them.
        let is_shown = file.ends_with(".7") || page.to_lowercase().contains("example");
        assert!(is_shown && page.contains(".SH NAME"), "{file}: {page}");
    }
    assert!(out(&home.run(&["man"])).contains("tasuki 1"), "the page of the program itself");
}

#[test]
fn schemas_are_shown_by_name() {
    let home = FakeHome::new();
    let listed: Value = serde_json::from_slice(&home.run(&["schema", "--json"]).stdout).expect("JSON");
    let names: Vec<&str> = listed.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
    for name in ["handoff", "agent_send", "result", "event", "why", "journal", "handoff_view", "config", "profile"] {
        assert!(names.contains(&name), "{name}");
        let schema: Value = serde_json::from_slice(&home.run(&["schema", name]).stdout).expect("JSON");
        assert_eq!(schema["type"], "object", "{name}");
    }
    let output = home.run(&["schema", "nonsense"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("handoff_view"), "{}", err(&output));
}

#[test]
fn hooks_are_shown_for_every_profile_and_an_unknown_one_lists_what_there_is() {
    let home = FakeHome::new();
    let output = home.run(&["hooks", "show", "claude"]);
    let text: Value = serde_json::from_slice(&output.stdout).expect("nothing but the configuration");
    let command = text["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().expect("a command");
    assert!(command.contains("hook claude") && command.contains(&home.path().display().to_string()), "{command}");
    assert!(err(&output).contains("settings.json"), "{}", err(&output));
    assert_eq!(code(&home.run(&["hooks", "show", "demo"])), 0);
    let output = home.run(&["hooks", "show", "nonsense"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("claude, codex, demo"), "{}", err(&output));
    let profiles = home.path().join("data/profiles");
    std::fs::create_dir_all(&profiles).expect("a folder");
    let demo = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/profiles/demo.toml"));
    std::fs::write(profiles.join("mine.toml"), demo.expect("a profile")).expect("written");
    assert_eq!(code(&home.run(&["hooks", "show", "mine"])), 0);
    std::fs::write(profiles.join("mine.toml"), "titel = 1").expect("written");
    let output = home.run(&["hooks", "show", "mine"]);
    assert_eq!(code(&output), 78);
    assert!(err(&output).contains("mine.toml, line 1"), "{}", err(&output));
}

#[test]
fn a_group_of_commands_alone_is_wrong_and_the_help_of_a_handoff_names_every_dial() {
    let home = FakeHome::new();
    for command in ["work", "agent", "service"] {
        assert_eq!(code(&home.run(&[command])), 2, "{command}");
    }
    let help = out(&home.run(&["handoff", "--help"]));
    for dial in ["--author", "--document", "--successor", "--urgency", "--task"] {
        assert!(help.contains(dial), "{dial}");
    }
}

/// The sidecar would try the step again, whatever was said of its text.
#[test]
fn nothing_is_assumed_where_nothing_is_in_doubt() {
    let home = FakeHome::new();
    home.beat(0);
    for (step, code, is_sent) in [
        ("writing", "document_missing", false),
        ("instructing", "not_delivered", false),
        ("instructing", "unconfirmed", true),
    ] {
        let error = json!({"error_id": NEXT, "step": step, "code": code, "message": "No.", "hint": "Look."});
        home.write(
            &format!("view/handoffs/{MIA}.json"),
            &json!({"handoff_id": MIA, "agent_id": KAI, "step": "failed", "error": error}),
        );
        let said = err(&home.run(&["retry", MIA, "--assume", "delivered", "--timeout", "1s"]));
        assert_eq!(said.contains("(not_in_doubt)"), !is_sent, "{code}: {said}");
        assert_eq!(
            said.contains("Nothing was sent") && said.contains(&format!("tasuki retry {MIA}")),
            !is_sent,
            "{said}"
        );
    }
}

#[test]
fn a_retry_says_what_goes_on() {
    let home = Arc::new(FakeHome::new());
    let id = "44444444-4444-4444-8444-444444444444";
    let error = json!({"step": "writing", "code": "document_missing", "message": "x"});
    let view = json!({"handoff_id": id, "step": "failed", "steps": [], "error": error});
    home.write(&format!("view/handoffs/{id}.json"), &view);
    let answer = move |_: &FakeHome, _: &Value| Some((200, json!({"handoff_id": id, "step": "instructing"})));
    let _sidecar = FakeSidecar::start(&home, Box::new(answer));
    let output = home.run(&["retry", "4444"]);
    let expected = format!("handoff {id} continues at instructing; it had failed at writing (document_missing)\n");
    assert_eq!(out(&output), expected);
}

#[test]
fn the_demo_agent_says_what_it_needs_where_it_has_no_terminal() {
    let out =
        Command::new(env!("CARGO_BIN_EXE_tasuki")).arg("demo-agent").stdin(Stdio::null()).output().expect("it runs");
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("tmux pane"));
}

/// A typing error in a persona's own file says nothing about its documents.
#[test]
fn a_persona_with_a_wrong_file_keeps_its_count_of_documents() {
    let home = FakeHome::new();
    let folder = home.path().join("data/personas/kai");
    std::fs::create_dir_all(folder.join("handoffs")).expect("folders");
    for (file, text) in [("skill.md", "Work.\n"), ("persona.toml", "profil = 1\n"), ("handoffs/handoff-a.md", "# A\n")]
    {
        std::fs::write(folder.join(file), text).expect("written");
    }
    let output = home.run(&["persona", "list", "--json"]);
    let listed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&listed[0]["persona_slug"], &listed[0]["documents"]), (&"kai".into(), &1.into()), "{listed}");
    assert!(err(&output).contains("persona.toml, line 1"), "{}", err(&output));
}

/// The text of a script, or a `shutdown`, would reach one of two agents by a guess.
#[test]
fn a_persona_names_no_agent_while_the_view_of_another_cant_be_read() {
    let home = FakeHome::new();
    home.beat(0);
    home.agent(KAI, Some("kai"), None, "idle");
    home.agent(NEXT, Some("kai"), None, "idle");
    let damaged = home.path().join(format!("view/agents/{NEXT}.json"));
    std::fs::write(&damaged, [0; 100]).expect("written");
    let output = home.run(&["send", "kai", "hello"]);
    let said = err(&output);
    assert!(code(&output) == 1 && said.contains("It is not known which agents have the persona kai"), "{said}");
    assert!(said.contains(&format!("view/.wanted-{NEXT}")) && said.contains("Name the agent by its id"), "{said}");
    assert!(
        !err(&home.run(&["--timeout", "1s", "send", "1111", "hello"])).contains("not known which"),
        "its id is enough"
    );
}
