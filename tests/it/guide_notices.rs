//! The guide's chapter about notices: its tables hold every code, and its recipes pass a notice on, as they are
//! written.

use super::support::{readme, tally};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;
use tasuki::contract::NoticeCode;

/// A notice as a command gets it.
const NOTICE: &str = r#"{"v":1,"at":"2026-11-25T08:00:00.000Z","code":"agent_died","message":"Agent 6f1c3a52 (kai) has \"died\": its process is dead","hint":"To hand its work off: tasuki handoff 6f1c3a52 --author salvage","agent_id":"6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa","handoff_id":null}"#;

/// The first column of a table whose rows begin with a code.
fn codes(section: &str) -> Vec<String> {
    let chapter = readme::chapter("notices");
    let text = chapter.split(&format!("\n## {section}\n")).nth(1).expect("the section");
    let rows = text.split("\n## ").next().unwrap_or_default().lines().filter_map(|line| line.strip_prefix("| `"));
    rows.flat_map(|row| {
        row.split(" | ").next().unwrap_or_default().split('`').step_by(2).map(str::to_owned).collect::<Vec<_>>()
    })
    .filter(|code| !code.is_empty())
    .collect()
}

#[test]
fn the_table_of_notices_holds_every_code() {
    let known: Vec<&str> = NoticeCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes("What you are told"), known);
}

/// The codes with which steps fail are in the list of transitions, which the simulation writes.
#[test]
fn the_table_of_failures_holds_every_code_of_a_step() {
    let listed = codes("Failures");
    let transitions = fs::read_to_string("tests/it/sim/transitions.txt").expect("the list");
    let expression = regex::Regex::new(r"failed \(([a-z_]+)\)").expect("an expression");
    let failures: Vec<&str> =
        expression.captures_iter(&transitions).map(|found| found.get(1).expect("a code").as_str()).collect();
    assert!(failures.len() > 20, "{failures:?}");
    for code in failures {
        assert!(listed.iter().any(|known| known == code), "{code} is missing");
    }
}

/// A server that takes one request; its request line, headers and body.
fn one_request() -> (String, JoinHandle<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("set");
        let mut bytes = Vec::new();
        let (head, body) = loop {
            let mut part = [0; 4_096];
            let count = stream.read(&mut part).expect("the request goes on");
            bytes.extend_from_slice(&part[..count]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.expect("its length") {
                break (head.to_owned(), serde_json::from_str(body).expect("a body in JSON"));
            }
        };
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}").expect("answered");
        (head, body)
    });
    (address, server)
}

fn has(program: &str) -> bool {
    let out = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    out.is_ok_and(|status| status.success())
}

/// Runs a command as the sidecar does, with the notice on its standard input; gives what a server at `address` got.
fn passed_on(command: &[String], server: JoinHandle<(String, Value)>) -> (String, Value) {
    let mut child = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::piped()).spawn().expect("it runs");
    child.stdin.take().expect("a pipe").write_all(NOTICE.as_bytes()).expect("written");
    assert!(child.wait().expect("it ends").success());
    server.join().expect("a request came")
}

/// The command that a block of configuration sets, with another address in it.
fn configured(block: &str, from: &str, to: &str) -> Vec<String> {
    let block = block.replace(from, to);
    match tasuki::config::Config::parse(Path::new("/h/config.toml"), &block).expect("legal").notify_command {
        tasuki::config::OperatorCommand::Command(command) => command,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_recipe_for_a_webhook_posts_the_notice_as_it_is() {
    if !has("curl") {
        tally::skip("there is no curl to run the guide's recipes");
        return;
    }
    let block = readme::blocks("notices", "toml").into_iter().find(|block| block.contains("hooks.example.com"));
    let (address, server) = one_request();
    let command = configured(&block.expect("the recipe"), "https://hooks.example.com", &address);
    let (head, body) = passed_on(&command, server);
    assert!(head.starts_with("POST /tasuki HTTP") && head.to_lowercase().contains("content-type: application/json"));
    assert_eq!(body, serde_json::from_str::<Value>(NOTICE).expect("JSON"));
}

#[test]
fn the_recipe_for_ntfy_sends_title_and_text() {
    if !has("curl") || !has("jq") {
        tally::skip("there is no curl or jq to run the guide's recipes");
        return;
    }
    let script = readme::blocks("notices", "sh").into_iter().find(|block| block.contains("https://ntfy.sh"));
    let script = script.expect("the script");
    let block = readme::blocks("notices", "toml").into_iter().find(|block| block.contains("tasuki-ntfy"));
    let dir = tempfile::tempdir().expect("a folder");
    let (address, server) = one_request();
    let file = dir.path().join("tasuki-ntfy");
    fs::write(&file, script.replace("https://ntfy.sh", &address)).expect("written");
    let command = configured(&block.expect("the recipe"), "/home/you/bin/tasuki-ntfy", &file.display().to_string());
    let (head, body) = passed_on(&command, server);
    assert!(head.starts_with("POST / HTTP"), "{head}");
    let text = "Agent 6f1c3a52 (kai) has \"died\": its process is dead. To hand its work off: tasuki handoff 6f1c3a52 --author \
                salvage";
    assert_eq!((&body["title"], &body["message"]), (&"tasuki: agent_died".into(), &text.into()));
    assert!(body["topic"].is_string() && body["priority"] == 4, "{body}");
}
