//! No text lies in clear at the server, on the wire, in logs, audits or rosters.

use crate::fleet::{TestFleet, text};
use serde_json::json;
use std::fs;
use std::path::Path;

/// Texts that must be nowhere but where they belong.
const CANARIES: [&str; 3] = ["canary-of-the-text-7f3a", "canary-of-the-reason-91bc", "canary-of-the-focus-c0de"];

/// The files below a folder that hold one of the canaries.
fn holding(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            holding(&path, found);
        } else if let Ok(bytes) = fs::read(&path) {
            let has = |canary: &&str| bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
            if CANARIES.iter().any(has) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn no_text_is_in_clear_at_the_server_in_logs_audits_or_rosters() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send", "operate"]);
    let agent = b.stage.agent("kai");
    assert_eq!(a.ask("s1", "b", &text(&agent, CANARIES[0]))["result"]["verdict"], "delivered");
    let handoff = json!({"kind": "handoff", "agent_id": agent, "reason": CANARIES[1], "focus": CANARIES[2]});
    assert_eq!(a.ask("h1", "b", &handoff)["status"], 200);
    // A letter that nobody fetches stays at the server.
    b.kill_bridge();
    a.drop_to("s2", "b", &text(&agent, CANARIES[0]), Some("1h"));
    a.until("it is at the server", || a.audit().iter().any(|line| line["id"] == "s2"));
    fleet.server.kill();
    let mut found = Vec::new();
    holding(&fleet.server.folder, &mut found);
    for host in [a, b] {
        for part in ["audit.jsonl", "hosts", "bridge.json", "told"] {
            let path = host.files(part);
            if path.is_dir() {
                holding(&path, &mut found);
            } else if fs::read_to_string(&path).is_ok_and(|text| CANARIES.iter().any(|canary| text.contains(canary))) {
                found.push(path.display().to_string());
            }
        }
        let log = fs::read_to_string(host.log_file()).unwrap_or_default();
        assert!(!CANARIES.iter().any(|canary| log.contains(canary)), "{log}");
    }
    assert!(found.is_empty(), "texts in clear: {found:#?}");
}
