//! What a request is refused for, and whether the answer says which field is at fault and what to do.

use super::support::stage::Stage;
use serde_json::{Value, json};
use std::fs;

/// The field that a 400 names.
fn field(stage: &Stage, request: &Value) -> Value {
    let answer = stage.ask(request);
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(400), &json!("bad_request")), "{answer}");
    answer["error"]["field"].clone()
}

#[test]
fn a_key_without_a_name_and_a_folder_that_is_not_there_are_the_requests_own_fault() {
    let stage = Stage::new();
    stage.persona("kai");
    let cancel = json!({"kind": "handoff_cancel", "handoff_id": "x", "": 1});
    assert_eq!(field(&stage, &cancel), "\"\"");
    assert_eq!(field(&stage, &json!({"kind": "handoff_cancel", "handoff_id": "x", " ": 1})), "\" \"");
    let file = stage.work_dir().join("a file");
    fs::write(&file, "").expect("written");
    for cwd in [stage.work_dir().join("nowhere"), file] {
        let create = json!({"kind": "agent_create", "persona_slug": "kai", "cwd": cwd});
        assert_eq!(field(&stage, &create), "cwd", "{}", cwd.display());
    }
    assert!(stage.views("agents").is_empty() && stage.errors().is_empty());
}

/// `gh` would be pointed at any host, with the token that is set for GitHub Enterprise.
#[test]
fn a_document_goes_to_the_hosts_of_the_configuration_alone() {
    let stage = Stage::with_config("[publish]\nhosts = [\"github.com\", \"GHE.example\"]\n");
    let agent = stage.agent("kai");
    let ask = |host: &str| {
        let issue = format!("https://{host}/o/r/issues/1");
        let document = json!({"text": "# Done\n"});
        let (author, publish) = ("provided", json!({"issue": issue}));
        stage.ask(&json!({"kind": "handoff", "agent_id": agent, "reason": "r", "author": author, "document": document, "publish": publish}))
    };
    for host in ["evil.example.com", "localhost", "a..b", "github.com.evil.example", "ghe.example.com"] {
        let answer = ask(host);
        let error = &answer["error"];
        assert_eq!((&answer["status"], &error["field"]), (&json!(400), &json!("publish.issue")), "{host}: {answer}");
        assert!(error["message"].as_str().is_some_and(|said| said.contains("publish.hosts")), "{error}");
    }
    assert_eq!(ask("ghe.EXAMPLE")["ok"], true);
}

#[test]
fn who_asks_for_a_second_handoff_is_told_of_the_first() {
    let stage = Stage::new();
    stage.faults("delay=60000");
    let agent = stage.agent("kai");
    let id = stage.hand_off(&agent);
    let answer = stage.ask(&json!({"kind": "handoff", "agent_id": agent, "reason": "again"}));
    assert_eq!(answer["error"]["message"], "Handoff already in progress", "{answer}");
    let hint = answer["error"]["hint"].as_str().expect("a hint");
    assert!(hint.contains(&format!("tasuki handoffs follow {}", &id[..8])), "{hint}");
    stage.granted(&json!({"kind": "handoff_cancel", "handoff_id": id}));
}

/// Whoever can drop an event can name any file: what is salvaged is told, and another agent's words are no agent's own.
#[test]
fn what_another_agent_has_said_is_not_salvaged() {
    let stage = Stage::new();
    let agents = stage.agents(&["kai", "mia"]);
    stage.granted(&json!({"kind": "agent_send", "agent_id": agents[1], "text": "The secret of mia."}));
    stage.until_idle(&agents[1]);
    let path = stage.agent_view(&agents[1])["transcript_path"].as_str().expect("a path").to_owned();
    let own = stage.agent_view(&agents[0])["transcript_path"].as_str().expect("a path").to_owned();
    let names = |path: &str| {
        let event = json!({"v": 1, "event": "stop", "agent_id": agents[0], "transcript_path": path});
        stage.drop_file("events", &format!("{}.json", stage.new_request_id()), event.to_string().as_bytes());
        stage.until("it is taken", || stage.agent_view(&agents[0])["transcript_path"] == path);
    };
    names(&path);
    let ask = json!({"kind": "handoff", "agent_id": agents[0], "reason": "r", "author": "salvage"});
    let (status, code, message) = stage.refused(&ask);
    assert_eq!((status, code.as_str()), (409, "transcript_of_another"));
    assert!(message.contains(&agents[1]), "{message}");
    names(&own);
    let id = stage.hand_off_with(&agents[0], &json!({"author": "salvage"}));
    let view = stage.until_step(&id, "done");
    assert!(view["warnings"].to_string().contains(&own), "{view:#}");
}
