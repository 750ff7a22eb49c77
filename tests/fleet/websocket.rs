//! Hosts whose network lets only websockets out: with TLS, at a port of their own.

use crate::fleet::{TestFleet, TestHost, free_port};
use serde_json::{Value, json};
use std::fs;

/// Takes the `#` away from the block that `server init` has written, and gives it a port; the port.
fn open_websocket(fleet: &TestFleet) -> u16 {
    let (path, port) = (fleet.server.folder.join("nats-server.conf"), free_port());
    let text = fs::read_to_string(&path).expect("its configuration");
    let (rest, block) = text.split_once("# websocket {").expect("the block");
    let block: Vec<&str> = block.lines().map(|line| line.strip_prefix('#').unwrap_or(line)).collect();
    let block = block.join("\n").replace("port: 443", &format!("port: {port}"));
    fs::write(&path, format!("{rest}websocket {{{block}\n")).expect("written");
    fleet.server.kill();
    fleet.server.start();
    port
}

#[test]
fn a_host_reaches_the_server_by_a_websocket_with_tls() {
    let Some(fleet) = TestFleet::joined(&["a", "b"]) else { return };
    let (a, b) = (fleet.host("a"), fleet.host("b"));
    let port = open_websocket(&fleet);
    let settings =
        format!("[server]\nurls = [\"wss://127.0.0.1:{port}\"]\nwebsocket = true\n[accept]\na = [\"view\"]\n");
    fs::write(b.files("fleet.toml"), settings).expect("written");
    [a, b].into_iter().for_each(TestHost::start_bridge);
    [a, b].into_iter().for_each(TestHost::until_serving);
    assert_eq!(a.ask("v1", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
    // The server is gone for a moment: the websocket is made again.
    fleet.server.kill();
    fleet.server.start();
    assert_eq!(a.ask("v2", "b", &json!({"kind": "view", "of": "agents"}))["status"], 200);
    let server = check(b);
    let said = server["said"].as_str().unwrap_or_default();
    // An old server has holes, of which doctor warns.
    assert!(server["status"] == "ok" || said.contains("known holes"), "{server}");
    assert!(said.contains("wss://"), "{server}");
    // Another authority than that of the server's certificate is not believed.
    b.kill_bridge();
    let other = TestFleet::joined(&["a"]).expect("there is a server");
    fs::copy(other.host("a").files("ca.pem"), b.files("ca.pem")).expect("copied");
    b.start_bridge();
    b.until("it is told", || {
        let view = b.bridge_view();
        view["pid"] == b.bridge_pid() && view["problem"].as_str().is_some_and(|it| it.contains("not reached"))
    });
    let server = check(b);
    assert!(
        server["status"] == "fail" && server["said"].as_str().is_some_and(|it| it.contains("ertificate")),
        "{server}"
    );
}

/// What doctor says of the server.
fn check(host: &TestHost) -> Value {
    let checks: Value = serde_json::from_str(&host.fleet(&["--json", "checks"])).expect("JSON");
    let all = checks["checks"].as_array().expect("a list");
    all.iter().find(|line| line["id"] == "fleet.server").cloned().expect("a check")
}
