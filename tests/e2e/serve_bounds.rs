//! What `tasuki serve` refuses: strangers, pages from elsewhere, too much at once, and those who are too slow. Here the
//! sidecar is made of files, or there is none.

use super::support::fake_sidecar::{FakeHome, FakeSidecar};
use super::support::server::{Answer, Event, Server, has_curl};
use super::support::stage::PATIENCE;
use super::support::stage_files::resident_mib;
use nix::sys::signal::Signal;
use serde_json::json;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn serve(home: &FakeHome) -> Server {
    Server::start(home.command(&["serve"]))
}

/// Appends lines to the journal.
pub(crate) fn lines(home: &FakeHome, seqs: std::ops::RangeInclusive<u64>, pad: usize) {
    let journal = OpenOptions::new().create(true).append(true).open(home.path().join("spool/journal.jsonl"));
    let pad = "x".repeat(pad);
    let text: String = seqs.map(|seq| format!("{{\"seq\":{seq},\"type\":\"work\",\"pad\":\"{pad}\"}}\n")).collect();
    journal.expect("a journal").write_all(text.as_bytes()).expect("written");
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.text("code"))
}

/// Such as `nc -N`: the client has said all, and reads.
#[test]
fn a_client_that_closes_its_sending_side_gets_its_answer() {
    let home = FakeHome::new();
    let server = serve(&home);
    for _ in 0..20 {
        let mut socket = server.connect();
        let (address, token) = (server.address, server.token());
        let request = format!(
            "GET /api/agents HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).expect("sent");
        socket.shutdown(Shutdown::Write).expect("closed");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }
}

#[test]
fn strangers_and_pages_from_elsewhere_are_refused() {
    let home = FakeHome::new();
    let server = serve(&home);
    let mode = fs::metadata(server.token_file()).expect("a token").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let get =
        |path: &str, headers: &str| server.raw(&format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"));
    let (host, token) = ("Host: {host}\r\n", "Authorization: Bearer {token}\r\n");
    let with = |more: &str| format!("{host}{token}{more}");
    assert_eq!(get("/api/agents", &with("")).status, 200);
    assert_eq!(get("/api/agents", &with("Origin: http://{host}\r\n")).status, 200);
    for headers in
        ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic {token}\r\n", "Authorization: Bearer\r\n"]
    {
        for path in ["/api/agents", "/api/events", "/api/openapi.json", "/api/nothing", "/api"] {
            let answer = get(path, &format!("{host}{headers}"));
            assert_eq!(code(&answer), (401, "no_token"), "{path} {headers}");
            assert!(answer.headers.contains("www-authenticate: bearer"));
        }
    }
    assert_eq!(get("/api/agents", &with(token)).status, 401, "said twice");
    let port = server.address.port();
    for name in ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "{host}\r\nHost: evil.example"]
    {
        let name = name.replace("{port}", &port.to_string());
        for path in ["/", "/api/agents"] {
            assert_eq!(code(&get(path, &format!("Host: {name}\r\n{token}"))), (403, "bad_host"), "{name}");
        }
    }
    assert_eq!(get("/", token).status, 403, "no Host at all");
    assert_eq!(code(&get(&format!("http://evil.example:{port}/api/agents"), &with(""))), (403, "bad_host"));
    assert_eq!(get("/api/agents", &format!("Host: localhost:{port}\r\n{token}")).status, 200);
    for origin in ["http://evil.example", "null", "https://{host}", "http://{host}.evil.example", "http://localhost"] {
        let answer = get("/api/agents", &with(&format!("Origin: {origin}\r\n")));
        assert_eq!(code(&answer), (403, "bad_origin"), "{origin}");
        assert!(!answer.headers.contains("access-control"), "{answer:?}");
    }
    let options = server.raw(&format!(
        "OPTIONS /api/requests HTTP/1.1\r\nConnection: close\r\nOrigin: http://{{host}}\r\nAccess-Control-Request-Method: POST\r\n{host}{token}\r\n"
    ));
    assert!(options.status == 405 && !options.headers.contains("access-control"), "{options:?}");
    assert_eq!(server.raw(&format!("DELETE / HTTP/1.1\r\nConnection: close\r\n{host}\r\n")).status, 405);
    for (path, kind) in [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")] {
        let answer = get(path, host);
        assert!(answer.status == 200 && answer.headers.contains(kind), "{answer:?}");
        for header in [
            "default-src 'none'; script-src 'self'",
            "nosniff",
            "referrer-policy: no-referrer",
            "x-frame-options: deny",
        ] {
            assert!(answer.headers.contains(header), "{header} in {answer:?}");
        }
    }
    assert!(get("/api/agents", &with("")).headers.contains("cache-control: no-store"));
}

#[test]
fn it_starts_only_where_it_is_safe_and_says_why_not() {
    let home = FakeHome::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80", "nonsense"] {
        let output = home.run(&["serve", "--listen", address]);
        assert_eq!(output.status.code(), Some(2), "{address}: {output:?}");
    }
    let server = serve(&home);
    let taken = home.run(&["serve", "--listen", &server.address.to_string()]);
    assert_eq!(taken.status.code(), Some(75), "{taken:?}");
    let token = server.token_file().to_owned();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).expect("opened");
    let output = home.run(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    assert_eq!(output.status.code(), Some(77), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("chmod 600"), "{output:?}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).expect("closed");
    fs::set_permissions(home.path().join("spool"), fs::Permissions::from_mode(0o755)).expect("opened");
    assert_eq!(home.run(&["serve", "--listen", "127.0.0.1:0"]).status.code(), Some(77));
    let nowhere = FakeHome::new();
    fs::remove_dir_all(nowhere.path().join("view")).expect("removed");
    assert_eq!(nowhere.run(&["serve", "--listen", "127.0.0.1:0"]).status.code(), Some(69));
}

#[test]
fn bodies_have_a_bound_a_type_and_a_form() {
    let home = FakeHome::new();
    let server = serve(&home);
    let post = |headers: &str, body: &str| {
        let head =
            "POST /api/requests HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n";
        server.raw(&format!("{head}{headers}\r\n{body}"))
    };
    let json = "Content-Type: application/json\r\n";
    assert_eq!(code(&post(&format!("{json}Content-Length: 1048577\r\n"), "")), (413, "too_large"));
    let chunk = format!("100000\r\n{}\r\n", "1".repeat(1 << 20));
    let chunked = post(&format!("{json}Transfer-Encoding: chunked\r\n"), &format!("{chunk}1\r\n1\r\n0\r\n\r\n"));
    assert_eq!(code(&chunked), (413, "too_large"));
    assert_eq!(code(&post("Content-Length: 2\r\n", "{}")), (415, "not_json"));
    assert_eq!(code(&post("Content-Type: text/plain\r\nContent-Length: 2\r\n", "{}")), (415, "not_json"));
    assert_eq!(code(&post(&format!("{json}Content-Length: 1\r\n"), "{")), (400, "bad_request"));
    assert_eq!(post(&format!("{json}X: {}\r\nContent-Length: 2\r\n", "x".repeat(200_000)), "{}").status, 431);
    assert_eq!(code(&post(&format!("{json}Content-Length: 2\r\n"), "{}")), (503, "no_sidecar"));
    assert!(home.files("spool/requests").is_empty() && home.files("spool/tmp").is_empty());
}

#[test]
fn a_request_without_an_answer_is_told_and_can_be_asked_for_later() {
    if !has_curl() {
        return;
    }
    let home = Arc::new(FakeHome::new());
    let _sidecar = FakeSidecar::start(&home, Box::new(|_, _| None));
    let server = Server::start(home.command(&["--timeout", "400ms", "serve"]));
    let answer = server.post(
        "api/requests",
        &json!({"v": 1, "kind": "error_dismiss", "error_id": "x"}),
        &["-H", "Idempotency-Key: late"],
    );
    assert_eq!((code(&answer), answer.text("request_id")), ((504, "no_answer"), "late"));
    // The sidecar has removed the file, and has not answered: the request is open all the same.
    assert!(home.files("spool/requests").is_empty());
    assert_eq!(code(&server.curl("api/requests/late", &[])), (404, "no_answer"));
    let unknown = server.curl("api/requests/never", &[]);
    assert_eq!(code(&unknown), (404, "no_request"));
    assert!(unknown.text("hint").contains("before this server was started"), "{unknown:?}");
    // What is malformed is answered without the sidecar, which would keep each as a bad file.
    let malformed = server.post("api/requests", &json!({"v": 1, "kind": "error_dismiss"}), &[]);
    assert_eq!((malformed.status, &malformed.body["error"]["code"]), (400, &json!("bad_request")), "{malformed:?}");
    let result = json!({"v": 1, "request_id": "late", "status": 200, "ok": true, "result": {}});
    home.write("spool/results/late.json", &result);
    let found = server.curl("api/requests/late", &[]);
    assert_eq!((found.status, &found.body), (200, &result));
}

#[cfg(not(target_os = "macos"))]
/// The event of a view or an error that has changed without a line: its kind and its id.
fn changed(event: Option<Event>) -> (String, Option<String>) {
    let Event { id, name, data } = event.expect("an event");
    assert_eq!((id, name.as_str()), (None, "changed"), "{data}");
    (data["kind"].as_str().expect("a kind").to_owned(), data["id"].as_str().map(str::to_owned))
}

// On macOS only the folder of a change is told.
#[cfg(not(target_os = "macos"))]
#[test]
fn listeners_are_told_of_what_changes_without_a_line_of_the_journal() {
    let home = FakeHome::new();
    lines(&home, 1..=1, 1);
    home.write("spool/errors/e-1.json", &json!({"error_id": "e-1"}));
    let server = serve(&home);
    let mut events = server.listen(None);
    let of = |kind: &str, id: &str| (kind.to_owned(), Some(id.to_owned()));
    fs::remove_file(home.path().join("spool/errors/e-1.json")).expect("dismissed");
    assert_eq!(changed(events.next()), of("errors", "e-1"));
    for percent in [10, 20] {
        home.write("view/agents/a-1.json", &json!({"agent_id": "a-1", "context": {"percent": percent}}));
    }
    assert_eq!(changed(events.next()), of("agents", "a-1"), "once for both");
    // A line that names the agent tells it too.
    home.write("view/agents/a-1.json", &json!({"agent_id": "a-1"}));
    let journal = OpenOptions::new().append(true).open(home.path().join("spool/journal.jsonl"));
    journal.expect("a journal").write_all(b"{\"seq\":2,\"type\":\"x\",\"agent_id\":\"a-1\"}\n").expect("written");
    assert_eq!(events.next().and_then(|event| event.id), Some(2));
    (0..200).for_each(|n| home.write(&format!("view/handoffs/h-{n}.json"), &json!({})));
    let (kind, _) = changed(events.next());
    assert_eq!(kind, "handoffs");
    lines(&home, 3..=3, 1);
    let mut rest: Vec<Event> = std::iter::from_fn(|| events.next()).take_while(|event| event.id != Some(3)).collect();
    rest.retain(|event| event.data["kind"] != "handoffs");
    assert!(rest.is_empty(), "{:?}", rest.iter().map(|event| &event.data).collect::<Vec<_>>());
}

#[test]
fn two_hundred_listen_and_all_hear_the_same() {
    let home = FakeHome::new();
    lines(&home, 1..=5, 10);
    let mut server = serve(&home);
    let mut listeners: Vec<_> = (0..200).map(|_| server.listen(None)).collect();
    lines(&home, 6..=105, 200);
    let expected: Vec<u64> = (6..=105).collect();
    for listener in &mut listeners {
        let heard: Vec<u64> = (0..100).filter_map(|_| listener.next()?.id).collect();
        assert_eq!(heard, expected);
    }
    assert_eq!(server.end(Signal::SIGINT).code(), Some(0), "with all of them listening");
}

#[test]
fn a_listener_goes_on_where_it_was_also_over_files_that_were_rotated() {
    let home = FakeHome::new();
    lines(&home, 1..=2_000, 100);
    fs::rename(home.path().join("spool/journal.jsonl"), home.path().join("spool/journal-1.jsonl")).expect("rotated");
    lines(&home, 2_001..=2_100, 100);
    let server = serve(&home);
    for after in [0, 1_234, 2_000, 2_050] {
        let mut events = server.listen(Some(after));
        let heard: Vec<u64> = (after..2_100).filter_map(|_| events.next()?.id).collect();
        assert_eq!(heard, (after + 1..=2_100).collect::<Vec<u64>>());
    }
    let mut at_end = server.listen(Some(2_100));
    let mut from_now = server.listen(None);
    let mut lost = server.listen(Some(99_999));
    assert_eq!(lost.next().map(|event| event.name), Some("reset".to_owned()));
    lines(&home, 2_101..=2_101, 1);
    fs::rename(home.path().join("spool/journal.jsonl"), home.path().join("spool/journal-2001.jsonl")).expect("rotated");
    lines(&home, 2_102..=2_102, 1);
    for events in [&mut at_end, &mut from_now, &mut lost] {
        let heard = [events.next(), events.next()].map(|event| event.and_then(|event| event.id));
        assert_eq!(heard, [Some(2_101), Some(2_102)]);
    }
    let wrong = server.raw(
        "GET /api/events HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\nLast-Event-ID: x\r\n\r\n",
    );
    assert_eq!(code(&wrong), (400, "bad_request"));
}

#[test]
fn listeners_are_told_of_a_journal_that_was_begun_anew_and_hear_it_from_its_first_line() {
    let home = FakeHome::new();
    lines(&home, 1..=49, 10);
    let server = serve(&home);
    let mut from_now = server.listen(None);
    let mut seen = server.listen(Some(40));
    for seq in 41..=49 {
        assert_eq!(seen.next().and_then(|event| event.id), Some(seq));
    }
    fs::remove_file(home.path().join("spool/journal.jsonl")).expect("ours");
    lines(&home, 1..=2, 10);
    for events in [&mut from_now, &mut seen] {
        assert_eq!(events.next().map(|event| event.name), Some("reset".to_owned()));
        // One that was still reading the old one may be told twice.
        let heard: Vec<u64> = std::iter::from_fn(|| events.next()).filter_map(|event| event.id).take(2).collect();
        assert_eq!(heard, [1, 2]);
    }
}

#[test]
fn a_slow_listener_is_cut_off_and_loses_nothing() {
    let home = FakeHome::new();
    lines(&home, 1..=1, 1);
    let server = serve(&home);
    let mut slow = server.listen(None);
    let began = Instant::now();
    let (last, pad) = (8_001, 4_000);
    // More than all buffers between us hold, in pieces that a listener who reads would have kept up with.
    let mut quick = server.listen(None);
    for first in (2..last).step_by(250) {
        lines(&home, first..=first + 249, pad);
        while quick.next().and_then(|event| event.id).expect("an event") < first + 249 {}
    }
    let held = resident_mib(server.pid());
    assert!(held < 96, "{held} MiB");
    let mut seen: Vec<Event> = Vec::new();
    seen.extend(std::iter::from_fn(|| slow.next()));
    // One that has taken nothing for 20 seconds, on a machine that has much else to do, is left without a word.
    match seen.last().expect("an event") {
        cut if cut.name == "too_slow" => assert_eq!(seen.pop().and_then(|cut| cut.id), None),
        other => assert!(began.elapsed() > Duration::from_secs(20), "after {} events: {:?}", seen.len(), other.id),
    }
    assert!(seen.last().and_then(|event| event.id) < Some(last), "it was not cut off");
    let mut again = server.listen(seen.last().and_then(|event| event.id));
    while seen.last().and_then(|event| event.id) != Some(last) {
        seen.push(again.next().expect("the rest"));
    }
    let ids: Vec<u64> = seen.iter().filter_map(|event| event.id).collect();
    assert_eq!(ids, (2..=last).collect::<Vec<u64>>());
}

/// Any program of any user of the machine can connect; only the token earns a place that lasts.
#[test]
fn those_without_the_token_keep_nobody_out() {
    let home = FakeHome::new();
    let server = serve(&home);
    let mut open: Vec<TcpStream> = (0..700).map(|_| server.connect()).collect();
    open.iter_mut().for_each(|stream| stream.write_all(b"GET / HTTP/1.1\r\nHost:").unwrap_or_default());
    let get = "GET /api/agents HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n";
    assert_eq!(server.raw(get).status, 200);
    assert_eq!(server.raw(&get.replace("/api/agents", "/")).status, 200);
    // Those that came first made room; the last ones are closed when their time for a head is up.
    open.iter_mut().for_each(|stream| stream.set_read_timeout(Some(PATIENCE)).expect("a deadline"));
    let began = Instant::now();
    for stream in &mut open[..600] {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for stream in &mut open[600..] {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(began.elapsed() < PATIENCE.min(Duration::from_secs(40)), "{:?}", began.elapsed());
}

#[test]
fn connections_with_the_token_are_bounded_too() {
    let home = FakeHome::new();
    let server = serve(&home);
    let get = "GET /api/agents HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
        .replace("{host}", &server.address.to_string())
        .replace("{token}", &server.token());
    let ask = |stream: &mut TcpStream| {
        stream.write_all(get.as_bytes()).expect("sent");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("answered");
        String::from_utf8_lossy(&head).into_owned()
    };
    let mut open: Vec<TcpStream> = Vec::new();
    for _ in 0..448 {
        let mut stream = server.connect();
        assert_eq!(ask(&mut stream), "HTTP/1.1 200", "after {}", open.len());
        open.push(stream);
    }
    let closing = get.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert_eq!(code(&server.raw(&closing)), (503, "too_many"));
    assert_eq!(server.raw("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").status, 200);
    // One that goes makes room.
    drop(open.pop());
    let until = Instant::now() + PATIENCE;
    while server.raw(&closing).status != 200 {
        assert!(Instant::now() < until, "its place is not free again");
    }
}
