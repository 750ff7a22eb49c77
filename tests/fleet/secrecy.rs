//! No text lies in clear at the server, on the wire, in logs, audits or rosters.

use crate::fleet::{TestFleet, TestHost, text};
use crate::proxy::Proxy;
use crate::support::stage_files::read_json;
use serde_json::json;
use std::fs;
use std::path::Path;

/// Texts that must be nowhere but where they belong. No two of them have a part in common, for compression would leave
/// such a part out.
const CANARIES: [&str; 3] = ["quail-in-the-text-7f3a", "heron.of.the.reason.91bc", "linnet_at_a_focus_c0de"];
/// The same for the two files of a persona.
const PERSONA: [&str; 2] = ["Wren+and+its+skill+55d1", "Siskin and her name e82f"];

/// Which of them bytes hold.
fn held(bytes: &[u8]) -> Vec<&'static str> {
    let holds = |canary: &&str| bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
    CANARIES.into_iter().chain(PERSONA).filter(holds).collect()
}

/// Sends a text, and begins a handoff with a reason and a focus.
fn send_canaries(a: &TestHost, agent: &str) {
    assert_eq!(a.ask("s1", "b", &text(agent, CANARIES[0]))["result"]["verdict"], "delivered");
    let handoff = json!({"kind": "handoff", "agent_id": agent, "reason": CANARIES[1], "focus": CANARIES[2]});
    assert_eq!(a.ask("h1", "b", &handoff)["status"], 200);
}

/// The files below a folder that hold one of the canaries.
fn holding(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            holding(&path, found);
        } else if fs::read(&path).is_ok_and(|bytes| !held(&bytes).is_empty()) {
            found.push(path.display().to_string());
        }
    }
}

#[test]
fn no_text_is_in_clear_at_the_server_in_logs_audits_or_rosters() {
    let Some(fleet) = TestFleet::new(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    b.accept("a", &["send", "operate"]);
    let agent = b.stage.agent("kai");
    send_canaries(a, &agent);
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
            } else if fs::read(&path).is_ok_and(|bytes| !held(&bytes).is_empty()) {
                found.push(path.display().to_string());
            }
        }
        let log = fs::read_to_string(host.log_file()).unwrap_or_default();
        assert!(held(log.as_bytes()).is_empty(), "{log}");
    }
    assert!(found.is_empty(), "texts in clear: {found:#?}");
}

/// The server speaks without TLS here, so that all that passes can be read.
#[test]
fn no_text_is_in_clear_on_the_wire() {
    let mut recording = None;
    let fleet = TestFleet::made(&["a", "b"], 1, |server| {
        let proxy = Proxy::recording_before(server.port);
        server.change("nats-server.conf", |text| {
            let (before, tls) = text.split_once("tls {\n").expect("its certificate");
            format!("{before}{}", tls.split_once("\n}\n").expect("its end").1)
        });
        server.change("owner/fleet.json", |text| {
            let mut fleet: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            fleet["servers"] = json!([format!("nats://127.0.0.1:{}", proxy.port)]);
            fleet.to_string()
        });
        server.start();
        recording = Some(proxy);
    });
    let (Some(fleet), Some(proxy)) = (fleet, recording) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    for host in [a, b] {
        host.start_bridge();
        host.until_serving();
    }
    b.accept("a", &["send", "operate", "personas"]);
    let agent = b.stage.agent("xylophone");
    send_canaries(a, &agent);
    // Whole views in answers, which hold reason and focus.
    for of in ["agents", "handoffs", "errors"] {
        assert_eq!(a.ask(of, "b", &json!({"kind": "view", "of": of}))["status"], 200);
    }
    a.stage.persona("mia");
    let folder = a.stage.home().join("data/personas/mia");
    fs::write(folder.join("skill.md"), PERSONA[0]).expect("written");
    fs::write(folder.join("persona.toml"), format!("profile = \"demo\"\nname = \"{}\"\n", PERSONA[1]))
        .expect("written");
    a.fleet(&["persona", "push", "mia", "--to", "b"]);
    let skill = fs::read_to_string(b.stage.home().join("data/personas/mia/skill.md"));
    assert_eq!(skill.expect("it has arrived"), PERSONA[0]);
    a.until("b tells of its agent", || {
        a.fleet(&["hosts"]);
        read_json(&a.files("hosts/b.json")).is_some_and(|host| host["agents"][0]["persona"] == "xylophone")
    });
    let passed = proxy.passed();
    assert_eq!(held(&passed), [""; 0], "texts in clear on the wire");
    // What may be read there is read: subjects, and the persona's name in a roster, whose compression may have its
    // ends.
    for clear in ["tk.test.box.b.a.req", "tk.test.box.a.b.res", "tk.test.host.b", "ylophon"] {
        assert!(passed.windows(clear.len()).any(|part| part == clear.as_bytes()), "{clear} was not recorded");
    }
    println!("{} bytes recorded", passed.len());
}
