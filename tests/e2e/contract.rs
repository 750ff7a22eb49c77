//! The contract with dashboards: what is answered to which file, in which order it is looked at, and what lies where
//! afterwards. No agent of tasuki's own is needed for this: external programs are agents too.

use super::flow::external;
use super::support::stage::Stage;
use super::support::stage_files::{read_json, refusal};
use nix::sys::stat::Mode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

const NOBODY: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9afff";
const PLAIN: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a001";
const NAMED: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a002";
const ENDED: &str = "0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9a003";

fn event(stage: &Stage, name: &str, event: &Value) {
    stage.drop_file("events", name, event.to_string().as_bytes());
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reason that lies beside a rejected file whose own name was this.
fn why(stage: &Stage, name: &str) -> Value {
    let end = format!("-{name}.why.json");
    stage.wait_for(&format!("{name} is rejected"), || {
        let found = stage.names("rejected").into_iter().find(|file| file.ends_with(&end))?;
        read_json(&stage.spool("rejected").join(found))
    })
}

/// The rejected file itself.
fn rejected(stage: &Stage, name: &str) -> Vec<u8> {
    let end = format!("-{name}");
    // The answer comes before the file is moved, for nobody should wait for that.
    let found = || stage.names("rejected").into_iter().find(|file| file.ends_with(&end));
    let found = stage.wait_for(&format!("{name} is kept whole"), found);
    fs::read(stage.spool("rejected").join(found)).expect("readable")
}

#[test]
fn each_row_of_the_trigger_is_looked_at_in_its_order() {
    let stage = Stage::new();
    stage.persona("dev");
    external(&stage, NAMED, "dev");
    event(&stage, "a.json", &json!({"v": 1, "event": "session_start", "agent_id": PLAIN, "session_id": "p"}));
    event(&stage, "b.json", &json!({"v": 1, "event": "session_start", "agent_id": ENDED, "session_id": "e"}));
    stage.until("both are seen", || {
        stage.agent_view(PLAIN)["state"] == "idle" && stage.agent_view(ENDED)["state"] == "idle"
    });
    event(&stage, "c.json", &json!({"v": 1, "event": "session_end", "agent_id": ENDED, "session_id": "e"}));
    stage.until("one has ended", || stage.agent_view(ENDED)["state"] == "ended");
    for (agent, reason, status, code, message) in [
        // An empty reason is seen before the agent is looked for.
        (NOBODY, "", 400, "bad_request", "reason must not be empty"),
        (NOBODY, " \n", 400, "bad_request", "reason must not be empty"),
        (ENDED, "", 400, "bad_request", "reason must not be empty"),
        (NOBODY, "x", 404, "no_agent", "Agent not found"),
        ("no id at all", "x", 404, "no_agent", "Agent not found"),
        // This one has neither persona nor pane: that it has ended comes first.
        (ENDED, "x", 400, "not_active", "Agent is not active"),
        // This one has no pane either.
        (PLAIN, "x", 400, "no_persona", "Agent has no persona"),
        (NAMED, "x", 400, "no_pane", "Agent has no tmux pane"),
    ] {
        let refused = stage.refused(&json!({"kind": "handoff", "agent_id": agent, "reason": reason}));
        assert_eq!(refused, (status, code.to_owned(), message.to_owned()), "{agent} {reason:?}");
    }
    assert!(stage.views("handoffs").is_empty() && stage.errors().is_empty());
}

#[test]
fn what_is_wrong_with_a_request_is_named() {
    let stage = Stage::new();
    for (body, status, code, field) in [
        (json!({"v": 1, "kind": "handoff", "agent_id": "a", "reason": "x", "reson": "y"}), 400, "bad_request", "reson"),
        (json!({"v": 1, "kind": "handoff", "agent_id": "a"}), 400, "bad_request", "reason"),
        (json!({"v": 1, "kind": "handoff", "reason": "x"}), 400, "bad_request", "agent_id"),
        (json!({"v": 1, "kind": "handoff", "agent_id": 7, "reason": "x"}), 400, "bad_request", "agent_id"),
        (json!({"v": 1, "kind": "handoff", "agent_id": "a", "reason": "x", "now": "yes"}), 400, "bad_request", "now"),
        (
            json!({"v": 1, "kind": "handoff", "agent_id": "a", "reason": "x", "author": "me"}),
            400,
            "bad_request",
            "author",
        ),
        (
            json!({"v": 1, "kind": "handoff", "agent_id": "a", "reason": "x", "tasks": ["t", 1]}),
            400,
            "bad_request",
            "tasks[1]",
        ),
        (json!({"v": 1, "kind": "handoff_retry", "handoff_id": "a", "assume": "maybe"}), 400, "bad_request", "assume"),
        (json!({"v": 1, "kind": "handoff_cancel", "handoff_id": "a", "why": "x"}), 400, "bad_request", "why"),
        (json!({"v": 1, "kind": "agent_create", "persona_slug": "No Slug"}), 400, "bad_request", "persona_slug"),
        (json!({"v": 1, "kind": "agent_create", "persona_slug": "dev", "argv": ["sh"]}), 400, "bad_request", "argv"),
        (
            json!({"v": 1, "kind": "agent_create", "persona_slug": "dev", "session": "a:b"}),
            400,
            "bad_request",
            "session",
        ),
        (json!({"v": 1, "kind": "agent_register", "pane": "3"}), 400, "bad_request", "pane"),
        (json!({"v": 1, "kind": "agent_send", "agent_id": "a", "text": "/clear"}), 400, "bad_request", "text"),
        (json!({"v": 1, "kind": "agent_send", "agent_id": "a", "text": "!ls"}), 400, "bad_request", "text"),
        (json!({"v": 1, "kind": "agent_send", "agent_id": "a", "text": "  # note"}), 400, "bad_request", "text"),
        (json!({"v": 1, "kind": "agent_send", "agent_id": "a", "text": "@file"}), 400, "bad_request", "text"),
        (json!({"v": 1, "kind": "agent_send", "agent_id": "a", "text": ""}), 400, "bad_request", "text"),
        (json!({"v": 1, "kind": "frobnicate"}), 400, "unknown_kind", "kind"),
        (json!({"v": 1}), 400, "bad_request", "kind"),
        (json!({"v": 2, "kind": "handoff"}), 400, "unsupported_version", "v"),
        (json!({"v": "1", "kind": "handoff"}), 400, "unsupported_version", "v"),
        (json!({"kind": "handoff"}), 400, "bad_request", "v"),
    ] {
        let id = stage.new_request_id();
        stage.drop_file("requests", &format!("{id}.json"), body.to_string().as_bytes());
        let answer = stage.result(&id);
        let (found_status, found_code, message) = refusal(&answer);
        assert_eq!((found_status, found_code.as_str()), (status, code), "{body}: {answer}");
        assert_eq!(answer["error"]["field"], field, "{body}: {answer}");
        assert_eq!(answer["kind"], body["kind"], "{body}: {answer}");
        assert!(message.contains(field), "the message names the field: {answer}");
        let why = why(&stage, &format!("{id}.json"));
        assert_eq!((&why["code"], &why["field"]), (&json!(code), &json!(field)), "{why}");
        assert_eq!(rejected(&stage, &format!("{id}.json")), body.to_string().as_bytes());
    }
    let twice = br#"{"v":1,"kind":"handoff","agent_id":"a","agent_id":"b","reason":"x"}"#;
    stage.drop_file("requests", "twice.json", twice);
    assert_eq!(refusal(&stage.result("twice")).1, "bad_request", "which of the two was meant can't be known");
    stage.until("all are moved away", || stage.names("requests").is_empty());
}

#[test]
fn what_is_no_json_is_answered_and_kept_whole() {
    let stage = Stage::new();
    let files =
        [("garbage", &b"this is no JSON"[..]), ("list", b"[1,2]"), ("binary", b"\xff\xfe\x00"), ("number", b"7")];
    for (id, bytes) in files {
        stage.drop_file("requests", &format!("{id}.json"), bytes);
    }
    let bad = b"{\n  \"v\": 1,\n  \"kind\": oops\n}";
    stage.drop_file("requests", "where.json", bad);
    for (id, bytes) in files {
        let answer = stage.result(id);
        assert_eq!(refusal(&answer).0, 400, "{answer}");
        assert_eq!(answer["kind"], Value::Null);
        assert_eq!(answer["request_sha256"], hash(bytes));
        assert_eq!(rejected(&stage, &format!("{id}.json")), bytes);
        let why = why(&stage, &format!("{id}.json"));
        let keys: Vec<&String> = why.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["at", "code", "column", "field", "line", "message", "name", "sha256", "size", "v"]);
        assert_eq!((&why["name"], &why["size"]), (&json!(format!("{id}.json")), &json!(bytes.len())));
        assert_eq!(why["sha256"], hash(bytes));
    }
    assert_eq!(stage.result("where")["error"]["line"], 3);
    let large = vec![b' '; (1 << 20) + 1];
    stage.drop_file("requests", "large.json", &large);
    let (status, code, _) = refusal(&stage.result("large"));
    assert_eq!((status, code.as_str()), (413, "too_large"));
    assert_eq!(rejected(&stage, "large.json").len(), large.len());
}

#[test]
fn a_file_that_is_written_in_place_is_waited_for() {
    let stage = Stage::new();
    let path = stage.spool("requests/slow.json");
    let whole = json!({"v": 1, "kind": "error_dismiss", "error_id": "none"}).to_string();
    for end in [10, 25, whole.len()] {
        fs::write(&path, &whole[..end]).expect("written in place");
        if end < whole.len() {
            // The wait is what is tested: half a file must not be judged within it.
            std::thread::sleep(Duration::from_millis(700));
            assert!(stage.names("results").is_empty() && stage.names("rejected").is_empty());
        }
    }
    assert_eq!(refusal(&stage.result("slow")), (404, "no_error".into(), "Error not found".into()));
    let began = Instant::now();
    fs::write(stage.spool("requests/never.json"), &whole[..10]).expect("written in place");
    fs::write(stage.spool("requests/empty.json"), "").expect("written in place");
    for id in ["never", "empty"] {
        assert_eq!(refusal(&stage.result(id)).0, 400);
        assert!(began.elapsed() >= Duration::from_millis(1_900), "{:?}", began.elapsed());
    }
    assert_eq!(rejected(&stage, "never.json"), &whole.as_bytes()[..10]);
}

#[test]
fn names_that_give_no_id_are_put_aside_without_an_answer() {
    let stage = Stage::new();
    let whole = json!({"v": 1, "kind": "error_dismiss", "error_id": "none"}).to_string();
    let long = format!("{}.json", "x".repeat(129));
    for name in ["has blank.json", "umlaut-ä.json", "no-suffix", long.as_str()] {
        stage.drop_file("requests", name, whole.as_bytes());
    }
    stage.until("all are put aside", || stage.names("rejected").len() == 8);
    let whys: Vec<Value> = stage
        .names("rejected")
        .iter()
        .filter(|name| name.ends_with(".why.json"))
        .filter_map(|name| read_json(&stage.spool("rejected").join(name)))
        .collect();
    assert!(whys.iter().all(|why| why["code"] == "bad_name"), "{whys:#?}");
    for name in [".hidden.json", "being-written.tmp"] {
        stage.drop_file("requests", name, whole.as_bytes());
    }
    // An answer to a later one shows that the folder was listed after these came.
    stage.ask(&json!({"kind": "error_dismiss", "error_id": "none"}));
    // It goes from there only after its answer is written.
    stage.until("the others stay", || stage.names("requests") == [".hidden.json", "being-written.tmp"]);
    assert_eq!(stage.names("results"), ["r-1.json"]);
    assert_eq!(stage.names("rejected").len(), 8);
}

#[test]
fn links_and_pipes_are_never_followed() {
    let stage = Stage::new();
    let secret = stage.work_dir().join("secret.json");
    let whole = json!({"v": 1, "kind": "error_dismiss", "error_id": "none"}).to_string();
    fs::write(&secret, &whole).expect("a file");
    symlink(&secret, stage.spool("requests/link.json")).expect("a link");
    nix::unistd::mkfifo(&stage.spool("requests/pipe.json"), Mode::S_IRWXU).expect("a pipe");
    fs::create_dir(stage.spool("requests/folder.json")).expect("a folder");
    for id in ["link", "pipe", "folder"] {
        let answer = stage.result(id);
        assert_eq!(refusal(&answer).0, 400, "{answer}");
        let path = stage.spool("requests").join(format!("{id}.json"));
        stage.until("it is moved away", || path.symlink_metadata().is_err());
    }
    assert_eq!(why(&stage, "link.json")["code"], "link");
    assert_eq!(fs::read_to_string(&secret).expect("untouched"), whole);
}

#[test]
fn a_request_is_answered_once_and_again_with_the_same_words() {
    let stage = Stage::new();
    stage.persona("dev");
    external(&stage, NAMED, "dev");
    let body = json!({"v": 1, "kind": "handoff", "agent_id": NAMED, "reason": "x"}).to_string();
    stage.drop_file("requests", "one.json", body.as_bytes());
    let first = stage.result("one");
    let path = stage.spool("results/one.json");
    fs::remove_file(&path).expect("the dashboard has taken it");
    stage.drop_file("requests", "one.json", body.as_bytes());
    assert_eq!(stage.result("one"), first, "the same answer is written again");
    // Also after a new start.
    stage.crash_and_restart();
    stage.until("it is written again", || path.exists());
    fs::remove_file(&path).expect("taken again");
    stage.drop_file("requests", "one.json", body.as_bytes());
    assert_eq!(stage.result("one"), first);
    let other = json!({"v": 1, "kind": "handoff", "agent_id": NAMED, "reason": "y"}).to_string();
    stage.drop_file("requests", "one.json", other.as_bytes());
    let reused = stage.result("one.reused");
    let (status, code, _) = refusal(&reused);
    assert_eq!((status, code.as_str()), (409, "id_reused"));
    assert_eq!((&reused["request_id"], &reused["request_sha256"]), (&json!("one"), &json!(hash(other.as_bytes()))));
    assert_eq!(read_json(&path), Some(first), "the first answer is untouched");
    assert_eq!(why(&stage, "one.json")["code"], "id_reused");
    assert_eq!(stage.names("results"), ["one.json", "one.reused.json"]);
}

#[test]
fn a_request_that_was_granted_is_not_carried_out_twice() {
    let stage = Stage::new();
    stage.persona("dev");
    let body = json!({"v": 1, "kind": "agent_create", "persona_slug": "dev"}).to_string();
    stage.drop_file("requests", "make.json", body.as_bytes());
    stage.drop_file("requests", "make.json", body.as_bytes());
    let first = stage.result("make");
    assert_eq!(first["ok"], true, "{first}");
    stage.drop_file("requests", "make.json", body.as_bytes());
    let agent = first["result"]["agent_id"].as_str().expect("an id");
    stage.until_idle(agent);
    stage.until("the second file is taken", || stage.names("requests").is_empty());
    assert_eq!(stage.views("agents").len(), 1, "{}", stage.story());
    assert_eq!(stage.result("make"), first);
    assert_eq!(stage.typed(agent), (0, 1, 0));
    stage.check_once();
}

#[test]
fn bad_events_are_put_aside_with_a_reason_and_no_answer() {
    let stage = Stage::new();
    for (name, body, code) in [
        ("a.json", r#"{"v":1,"event":"stopp","agent_id":null}"#, "unknown_event"),
        ("b.json", r#"{"v":2,"event":"stop"}"#, "unsupported_version"),
        ("c.json", r#"{"v":1,"event":"stop","agent":"x"}"#, "unknown_field"),
        ("d.json", r#"{"v":1,"event":"stop","pane":"3"}"#, "bad_field"),
    ] {
        stage.drop_file("events", name, body.as_bytes());
        assert_eq!(why(&stage, name)["code"], code);
        assert_eq!(rejected(&stage, name), body.as_bytes());
    }
    assert!(stage.names("results").is_empty() && stage.names("events").is_empty());
    assert!(stage.views("agents").is_empty() && stage.errors().is_empty());
}

#[test]
fn what_does_not_exist_is_not_found() {
    let stage = Stage::new();
    stage.persona("dev");
    fs::remove_file(stage.home().join("data/personas/dev/skill.md")).expect("removed");
    let not_found = |kind: &str, field: &str| stage.refused(&json!({"kind": kind, field: NOBODY}));
    for kind in ["handoff_retry", "handoff_abandon", "handoff_cancel", "handoff_accept"] {
        assert_eq!(not_found(kind, "handoff_id"), (404, "no_handoff".into(), "Handoff not found".into()), "{kind}");
    }
    for kind in ["agent_shutdown", "agent_forget"] {
        assert_eq!(not_found(kind, "agent_id"), (404, "no_agent".into(), "Agent not found".into()), "{kind}");
    }
    assert_eq!(not_found("error_dismiss", "error_id"), (404, "no_error".into(), "Error not found".into()));
    let send = stage.refused(&json!({"kind": "agent_send", "agent_id": NOBODY, "text": "hello"}));
    assert_eq!((send.0, send.1.as_str()), (404, "no_agent"));
    let create = |slug: &str, more: Value| {
        let mut request = json!({"kind": "agent_create", "persona_slug": slug});
        more.as_object().into_iter().flatten().for_each(|(name, value)| request[name] = value.clone());
        let (status, code, _) = stage.refused(&request);
        (status, code)
    };
    assert_eq!(create("nobody", json!({})), (404, "no_persona".into()));
    assert_eq!(create("dev", json!({})), (400, "no_skill".into()));
    fs::write(stage.home().join("data/personas/dev/skill.md"), "# Skill\n").expect("written");
    assert_eq!(create("dev", json!({"profile": "nothing"})), (404, "no_profile".into()));
    assert_eq!(create("dev", json!({"previous_agent_id": NOBODY})), (404, "no_agent".into()));
    let register = stage.refused(&json!({"kind": "agent_register", "pane": "%999"}));
    assert_eq!((register.0, register.1.as_str()), (404, "no_pane"));
}

#[test]
fn what_needs_tmux_is_refused_without_a_server() {
    let stage = Stage::new();
    let agent = stage.agent("dev");
    stage.tmux(&["kill-server"]);
    stage.until("the agent's end is seen", || stage.agent_view(&agent)["ended_at"].is_string());
    let answer = || stage.refused(&json!({"kind": "agent_create", "persona_slug": "dev"}));
    let mut last = answer();
    stage.until("it is known that no server answers", || {
        last = answer();
        last.1 == "no_tmux"
    });
    assert_eq!((last.0, last.2.as_str()), (503, "No tmux server answers"));
    stage.start_tmux();
    stage.until("a new server is found", || {
        stage.ask(&json!({"kind": "agent_create", "persona_slug": "dev"}))["ok"] == true
    });
}

#[test]
fn what_is_wrong_with_a_request_is_said_of_its_field() {
    let stage = Stage::new();
    stage.persona("kai");
    let field = |request: Value| {
        let answer = stage.ask(&request);
        assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(400), &json!("bad_request")), "{answer}");
        answer["error"]["field"].clone()
    };
    for kind in [json!([]), json!({}), json!(1), json!(true), json!([["handoff"]])] {
        assert_eq!(field(json!({"kind": kind})), "kind", "{kind}");
    }
    let create = |name: &str, value: &str| field(json!({"kind": "agent_create", "persona_slug": "kai", name: value}));
    assert_eq!(create("cwd", "relative"), "cwd");
    assert_eq!(create("cwd", "../.."), "cwd");
    // A session of our own connections: the agent would be lost in it.
    assert_eq!(create("session", "_tasuki-00c0ffee"), "session");
    assert!(stage.views("agents").is_empty());
}

/// `results/<id>.reused.json` is the answer to other bytes under an id: it must not be taken for that of another
/// request.
#[test]
fn an_id_that_would_lie_where_another_ones_refusal_lies_is_none() {
    let stage = Stage::new();
    let cheap = br#"{"v":1,"kind":"handoff_cancel","handoff_id":"nothing"}"#;
    stage.drop_file("requests", "y.json", cheap);
    stage.result("y");
    stage.drop_file("requests", "y.json", br#"{"v":1,"kind":"handoff_cancel","handoff_id":"other"}"#);
    let reused = stage.result("y.reused");
    assert_eq!(reused["error"]["code"], "id_reused", "{reused}");
    stage.drop_file("requests", "y.reused.json", cheap);
    stage.until("it is put aside", || stage.names("rejected").iter().any(|name| name.contains("y.reused.json.why")));
    assert_eq!(stage.result("y.reused"), reused);
}

/// Nobody sees them end: they have no pane, and no process that we know.
#[test]
fn agents_that_only_say_that_they_are_there_are_bounded() {
    let stage = Stage::new();
    let kai = stage.agent("kai");
    for number in 0..300 {
        let event = json!({"v": 1, "event": "session_start", "session_id": format!("s{number}"), "profile": "demo"});
        stage.drop_file("events", &format!("{number:03}.json"), event.to_string().as_bytes());
    }
    let state = |state: &str| stage.views("agents").iter().filter(|agent| agent["state"] == state).count();
    stage.until("the first of them are lost", || (state("lost"), state("idle")) == (300 - 256, 256 + 1));
    assert_eq!(stage.agent_view(&kai)["state"], "idle");
    let lost: Vec<_> = stage.journal().into_iter().filter(|line| line["state"] == "lost").collect();
    assert_eq!(lost.len(), 300 - 256);
}
