//! Hostile text, in every field that takes a text: it reaches a pane as text and nothing else, and it reaches no path,
//! no log, no view and no terminal as anything that acts.

use crate::support::nasty::{long_line, nasty};
use crate::support::stage::Stage;
use crate::support::stage_files::delivery_ids;
use crate::support::tally;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use tasuki::core::text::{normalise, sanitise};

const UNKNOWN: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

/// A stage, an agent on it, and the file that would be made if anything from outside were carried out.
fn stage() -> (Stage, String, PathBuf) {
    let stage = Stage::new();
    let agent = stage.agent("kai");
    let trap = stage.home().join("trap");
    (stage, agent, trap)
}

/// What must be so after all of it.
fn check(stage: &Stage, trap: &std::path::Path) {
    assert!(!trap.exists(), "something was carried out\n{}", stage.story());
    stage.check_plain();
    assert!(stage.tmux(&["list-buffers"]).is_empty(), "a buffer was left");
}

/// Requests that are as they should be but for one field, which a text is put into.
fn requests() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (
            json!({"kind": "handoff", "agent_id": UNKNOWN, "reason": "x", "author": "provided", "document": {"text": "x"}, "tasks": ["x"],
                "successor": {"agent_id": UNKNOWN}}),
            vec![
                "/agent_id",
                "/reason",
                "/focus",
                "/author",
                "/document",
                "/document/text",
                "/document/path",
                "/successor",
                "/successor/agent_id",
                "/tasks",
                "/tasks/0",
                "/urgency",
                "/publish",
                "/now",
            ],
        ),
        (
            json!({"kind": "handoff", "agent_id": UNKNOWN, "reason": "x", "author": "provided", "document": {}}),
            vec!["/document/path"],
        ),
        (
            json!({"kind": "handoff_retry", "handoff_id": UNKNOWN, "successor": {"agent_id": UNKNOWN}}),
            vec!["/handoff_id", "/assume", "/successor", "/successor/agent_id"],
        ),
        (json!({"kind": "handoff_abandon", "handoff_id": UNKNOWN}), vec!["/handoff_id"]),
        (json!({"kind": "handoff_cancel", "handoff_id": UNKNOWN}), vec!["/handoff_id", "/kind", "/v"]),
        (json!({"kind": "handoff_accept", "handoff_id": UNKNOWN}), vec!["/handoff_id"]),
        (
            json!({"kind": "agent_create", "persona_slug": "kai"}),
            vec!["/persona_slug", "/profile", "/cwd", "/previous_agent_id", "/session"],
        ),
        (
            json!({"kind": "agent_register", "pane": "%99999", "profile": "demo"}),
            vec!["/pane", "/tmux", "/persona_slug", "/profile"],
        ),
        (json!({"kind": "agent_shutdown", "agent_id": UNKNOWN}), vec!["/agent_id", "/force"]),
        (json!({"kind": "agent_forget", "agent_id": UNKNOWN}), vec!["/agent_id"]),
        (json!({"kind": "agent_send", "agent_id": UNKNOWN, "text": "x"}), vec!["/agent_id", "/text"]),
        (json!({"kind": "error_dismiss", "error_id": UNKNOWN}), vec!["/error_id"]),
    ]
}

/// The same of acknowledgements and of publishing.
fn delivery_requests() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (
            json!({"kind": "ack", "handoff_id": UNKNOWN, "agent_id": UNKNOWN, "understanding": "x", "starting_from": "x",
                "questions": ["x"], "status": "ready_to_proceed"}),
            vec![
                "/handoff_id",
                "/agent_id",
                "/understanding",
                "/starting_from",
                "/questions",
                "/questions/0",
                "/status",
            ],
        ),
        (
            json!({"kind": "clarify", "handoff_id": UNKNOWN, "clarifications": [{"question": "x", "answer": "x"}]}),
            vec![
                "/handoff_id",
                "/clarifications",
                "/clarifications/0/question",
                "/clarifications/0/answer",
                "/document",
            ],
        ),
        (json!({"kind": "ack_override", "handoff_id": UNKNOWN, "reason": "x"}), vec!["/handoff_id", "/reason"]),
        (json!({"kind": "publish", "handoff_id": UNKNOWN}), vec!["/handoff_id", "/assume"]),
    ]
}

/// The same of work items.
fn work_requests() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (
            json!({"kind": "work_create", "type": "epic", "title": "x"}),
            vec!["/type", "/title", "/description", "/parent_id", "/priority", "/metadata"],
        ),
        (json!({"kind": "work_claim", "item_id": UNKNOWN, "agent_id": UNKNOWN}), vec!["/item_id", "/agent_id"]),
        (
            json!({"kind": "work_complete", "item_id": UNKNOWN, "agent_id": "human", "output": {}}),
            vec!["/item_id", "/agent_id", "/output", "/children", "/partial", "/next_status"],
        ),
        (
            json!({"kind": "work_retry_children", "item_id": UNKNOWN, "agent_id": "human"}),
            vec!["/item_id", "/agent_id", "/children"],
        ),
        (json!({"kind": "work_release", "item_id": UNKNOWN}), vec!["/item_id", "/agent_id", "/reason"]),
        (
            json!({"kind": "work_escalate", "item_id": UNKNOWN, "agent_id": "human", "reason": "x"}),
            vec!["/item_id", "/agent_id", "/reason"],
        ),
        (json!({"kind": "work_rollback", "item_id": UNKNOWN, "reason": "x"}), vec!["/item_id", "/reason"]),
        (
            json!({"kind": "work_comment", "item_id": UNKNOWN, "author": "x", "text": "x"}),
            vec!["/item_id", "/author", "/text"],
        ),
        (
            json!({"kind": "work_import", "items": [{"type": "epic", "title": "x"}]}),
            vec!["/items", "/items/0", "/items/0/type", "/items/0/title", "/items/0/item_id", "/items/0/parent_id"],
        ),
    ]
}

/// Puts a text where a JSON pointer points, making the last part of it.
fn put(request: &Value, pointer: &str, text: &str) -> Value {
    let mut request = request.clone();
    let (parent, last) = pointer.rsplit_once('/').expect("a pointer");
    match request.pointer_mut(parent).expect("there") {
        Value::Array(items) => items[0] = json!(text),
        object => object[last] = json!(text),
    }
    request
}

#[test]
fn no_field_of_any_request_does_harm() {
    let (stage, agent, trap) = stage();
    // tmux names the window of our own client, in which no process runs, at any time.
    let name = "#{?#{pane_pid},#{window_name},}";
    let panes =
        || stage.tmux(&["list-panes", "-a", "-F", &format!("#{{pane_id}} #{{pane_pid}} #{{session_name}} {name}")]);
    let before = panes();
    let mut texts = nasty(&trap);
    texts.push(long_line());
    let mut ids = Vec::new();
    for (request, fields) in requests().into_iter().chain(delivery_requests()).chain(work_requests()) {
        for text in &texts {
            // A session may be called that, for tmux knows no folders; and the user's pane may be adopted.
            let legal = |field: &str| [("/session", "/etc/passwd"), ("/pane", "%0")].contains(&(field, text.as_str()));
            let fields = fields.iter().filter(|field| !legal(field));
            ids.extend(fields.map(|field| stage.send(&put(&request, field, text))));
            // The name of a field is a text too.
            let mut odd = request.clone();
            odd[text] = json!(1);
            ids.push(stage.send(&odd));
        }
    }
    tally::add(tally::INPUTS, ids.len() as u64);
    tally::add(tally::REQUESTS, ids.len() as u64);
    for id in &ids {
        let answer = stage.result(id);
        assert_eq!(answer["ok"], false, "{answer}");
        let error = &answer["error"];
        for part in ["message", "field", "hint", "code"] {
            let said = error[part].as_str().unwrap_or_default();
            assert!(sanitise(said) == said && said.len() <= 2_048, "{part} of {answer}");
        }
        for fault in error["errors"].as_array().into_iter().flatten() {
            let said = fault.to_string();
            assert!(sanitise(&said) == said && said.len() <= 2_048, "{fault} of {answer}");
        }
        let named = error["field"].is_string() || error["line"].is_u64();
        assert!(answer["status"] != 400 || named || error["code"] != "bad_request", "no field: {answer}");
    }
    assert_eq!(panes(), before, "a pane came or went");
    assert_eq!(stage.agent_view(&agent)["state"], "idle");
    assert_eq!(stage.prompts(&agent).len(), 1, "only its skill was typed");
    check(&stage, &trap);
}

#[test]
fn every_text_is_typed_as_text_and_proven_by_its_own_id() {
    let (stage, agent, trap) = stage();
    let mut texts: Vec<String> = nasty(&trap).iter().map(|text| format!("x {text}")).collect();
    texts.push(format!("x {}", &long_line()[..40_000]));
    // Rows of more characters than the pane has columns.
    texts.extend(["ที่นี่มีข้อผิดพลาด", "⚠️ stop ", "שָׁלוֹם ", "नमस्ते ", "🧑‍🚀❤️👍🏽 "].map(|text| text.repeat(30)));
    for text in &texts {
        stage.until_idle(&agent);
        let before = stage.prompts(&agent).len();
        let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": agent, "text": text}));
        assert_eq!(verdict["verdict"], "delivered", "{text:?}: {verdict}\n{}", stage.story());
        let prompts = stage.prompts(&agent);
        assert_eq!(prompts.len(), before + 1, "{text:?} came {} times", prompts.len() - before);
        let prompt = &prompts[before];
        assert!(normalise(prompt).contains(&normalise(&sanitise(text))), "{text:?} came as {prompt:?}");
        let ids = delivery_ids(prompt);
        assert_eq!(ids.last().map(String::as_str), verdict["delivery_id"].as_str(), "{prompt:?}");
        assert_eq!(sanitise(prompt), *prompt);
    }
    tally::add(tally::INPUTS, texts.len() as u64);
    tally::add(tally::TEXTS, texts.len() as u64 + 1);
    check(&stage, &trap);
}

#[test]
fn a_handoff_full_of_hostile_text_is_a_handoff_like_any_other() {
    let (stage, agent, trap) = stage();
    let texts = nasty(&trap);
    let all = texts.join("\n");
    let asked = json!({
        "reason": all, "focus": all, "tasks": texts, "author": "provided", "document": {"text": format!("# It\n{all}\n")},
    });
    let handoff = stage.hand_off_with(&agent, &asked);
    let view = stage.until_step(&handoff, "done");
    let successor = view["successor_id"].as_str().expect("a successor");
    let briefing = stage.prompts(successor).pop().expect("a briefing");
    assert_eq!(
        delivery_ids(&briefing).last().map(String::as_str),
        view["verdicts"]["briefing"]["delivery_id"].as_str()
    );
    assert_eq!(stage.prompts(successor).len(), 2, "one priming, one briefing");
    tally::add(tally::INPUTS, 3 * texts.len() as u64);
    tally::add(tally::TEXTS, 3);
    // And one that the agent itself writes, asked for in such words.
    stage.until_idle(successor);
    let again = stage.hand_off_with(successor, &json!({"reason": all, "focus": all, "tasks": texts}));
    let view = stage.until_step(&again, "done");
    // The last id of each prompt is its own; the others are look-alikes.
    let mut own: Vec<String> = stage
        .recorded()
        .iter()
        .filter_map(|line| delivery_ids(line["text"].as_str().unwrap_or_default()).pop())
        .collect();
    let typed = own.len();
    own.sort();
    own.dedup();
    assert_eq!(own.len(), typed, "typed twice\n{}", stage.story());
    assert!(view["file_path"].as_str().is_some_and(|path| path.starts_with(&stage.home().display().to_string())));
    check(&stage, &trap);
}

#[test]
fn a_folder_with_a_hostile_name_is_worked_in_as_it_is() {
    let (stage, _, trap) = stage();
    let name = "we;ird #{pane_pid} #(touch trap) $(touch trap) `touch trap` 'q\" ~ \\ {a} %H $HOME\u{1b}[31m ü ;";
    let folder = stage.work_dir().join(name);
    fs::create_dir(&folder).expect("made");
    let created = stage.granted(&json!({"kind": "agent_create", "persona_slug": "kai", "cwd": folder.display().to_string(), "session": "other"}));
    let agent = created["agent_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&agent);
    // Only Linux tells by a name that nothing has escaped.
    let works_in = |agent: &str| {
        let pid = stage.processes(agent)[0];
        !cfg!(target_os = "linux") || fs::read_link(format!("/proc/{pid}/cwd")).expect("Linux tells") == folder
    };
    assert!(works_in(&agent), "{}", stage.story());
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    let successor = view["successor_id"].as_str().expect("a successor");
    assert!(works_in(successor), "{}", stage.story());
    assert!(fs::read_dir(&folder).expect("read").next().is_none(), "something was carried out in it");
    check(&stage, &trap);
}

const EVENTS: [&str; 9] = [
    "session_start",
    "prompt_submit",
    "stop",
    "stop_failure",
    "interrupted",
    "blocked",
    "notification",
    "context",
    "session_end",
];
const EVENT_FIELDS: [&str; 18] = [
    "/agent_id",
    "/pane",
    "/tmux",
    "/profile",
    "/at",
    "/text",
    "/last_text",
    "/session_id",
    "/turn_id",
    "/transcript_path",
    "/cwd",
    "/persona_slug",
    "/reason",
    "/message",
    "/payload",
    "/context",
    "/event",
    "/v",
];

#[test]
fn no_field_of_any_event_does_harm() {
    let (stage, agent, trap) = stage();
    let mut count = 0;
    let mut drop_event = |event: &Value| {
        count += 1;
        stage.drop_file("events", &format!("n-{count}.json"), event.to_string().as_bytes());
    };
    let mut texts = nasty(&trap);
    texts.push(long_line());
    for (number, text) in texts.iter().enumerate() {
        // Each kind with each text, and each field with each text, of an agent that nobody knows.
        for (kind, field) in EVENTS.iter().cycle().skip(number).zip(EVENT_FIELDS) {
            drop_event(&put(&json!({"v": 1, "event": kind, "agent_id": UNKNOWN, "profile": "demo"}), field, text));
        }
        // What an agent that is known may say of itself.
        for field in ["/message", "/transcript_path", "/turn_id", "/tmux", "/at"] {
            drop_event(&put(
                &json!({"v": 1, "event": "notification", "agent_id": agent, "profile": "demo"}),
                field,
                text,
            ));
        }
        drop_event(
            &json!({"v": 1, "event": "notification", "profile": "demo", "agent_id": agent, "payload": {text: text, "message": text}}),
        );
        drop_event(&json!({"v": 1, "event": "notification", text: 1}));
    }
    tally::add(tally::INPUTS, count);
    stage.until("all of it is taken", || stage.names("events").is_empty());
    let whys: Vec<String> = stage.names("rejected").into_iter().filter(|name| name.ends_with(".why.json")).collect();
    assert!(!whys.is_empty());
    check(&stage, &trap);
    // None of them was an end, a receipt or a question: the agent is handed off as ever.
    stage.until_idle(&agent);
    let view = stage.until_step(&stage.hand_off(&agent), "done");
    stage.check_done(&view);
    check(&stage, &trap);
}

#[test]
fn a_look_alike_of_a_receipt_proves_nothing() {
    let (stage, agent, trap) = stage();
    stage.faults("swallow_enter=99");
    let id = stage.send(&json!({"kind": "agent_send", "agent_id": agent, "text": "the real text"}));
    // Somebody else's prompt that bears an id as ours do, and one with the right id and other words.
    let view = stage.agent_view(&agent);
    let (pane, session) = (view["pane"].as_str().expect("a pane").to_owned(), view["session_id"].clone());
    let ids = stage.wait_for("it stands in the composer", || {
        let screen = stage.screen(&pane);
        screen.contains("the real text").then(|| delivery_ids(&screen)).filter(|ids| !ids.is_empty())
    });
    assert!(!stage.spool(&format!("results/{id}.json")).exists(), "it was answered too soon to be tested");
    for delivery in ids.iter().map(String::as_str).chain(["000000000000", "ffffffffffff"]) {
        for text in [format!("(tasuki delivery {delivery}.)"), format!("other words\n(tasuki delivery {delivery}.)")] {
            let event = json!({"v": 1, "event": "prompt_submit", "agent_id": agent, "pane": pane, "profile": "demo", "session_id": session, "text": text});
            stage.drop_file("events", &format!("l-{delivery}-{}.json", text.len()), event.to_string().as_bytes());
        }
    }
    let answer = stage.result(&id);
    assert_ne!(answer["result"]["verdict"], "delivered", "{answer}\n{}", stage.story());
    check(&stage, &trap);
}

#[test]
fn persona_files_and_names_of_any_kind_do_no_harm() {
    let (stage, _, trap) = stage();
    let folder = stage.home().join("data/personas");
    let texts = nasty(&trap);
    // Names that are no slugs, and twins in another case, are not personas.
    for name in ["Kai", "KAI", ".kai", "k i", "#{pane_pid}", "x;", "é"] {
        stage.persona(name);
    }
    for name in ["Kai", "KAI", ".kai", "../kai", "kai/", "kai/../kai", "kai\0", "k i", "./kai", "KaI", ""] {
        let (status, code, _) = stage.refused(&json!({"kind": "agent_create", "persona_slug": name}));
        assert_eq!((status, code.as_str()), (400, "bad_request"), "{name:?}");
    }
    let listed = stage.command(&["persona", "list"]).output().expect("it runs");
    let listed = String::from_utf8(listed.stdout).expect("UTF-8");
    assert!(listed.contains("kai") && !listed.contains("Kai") && sanitise(&listed) == listed, "{listed:?}");
    for text in &texts {
        for key in ["session", "profile", "cwd", "name", "role", text.as_str()] {
            let fields = json!({"profile": "demo", "cwd": stage.work_dir().display().to_string()});
            let mut fields = fields.as_object().expect("an object").clone();
            fields.insert(key.to_owned(), json!(text));
            // JSON's strings are TOML's too, but for what TOML wants escaped.
            let quoted = |text: &str| tasuki::core::text::plain_json(&json!(text).to_string()).into_owned();
            let toml: String = fields
                .iter()
                .map(|(key, value)| format!("{} = {}\n", quoted(key), quoted(value.as_str().expect("a text"))))
                .collect();
            fs::write(folder.join("kai/persona.toml"), toml).expect("written");
            let answer = stage.ask(&json!({"kind": "agent_create", "persona_slug": "kai"}));
            // A session may be called that, for tmux knows no folders.
            let legal = ["name", "role"].contains(&key) || (key, text.as_str()) == ("session", "/etc/passwd");
            assert_eq!(answer["ok"], legal, "{key} = {text:?}: {answer}");
            if let Some(agent) = answer["result"]["agent_id"].as_str() {
                stage.until_idle(agent);
                stage.granted(&json!({"kind": "agent_shutdown", "agent_id": agent, "force": true}));
            }
            tally::add(tally::INPUTS, 1);
        }
        if !tally::is_long() && text.starts_with("ends") {
            break;
        }
    }
    check(&stage, &trap);
}
