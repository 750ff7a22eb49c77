//! How a page and a program get in to `tasuki serve`: a token that is new at each start, a code that is good once, and
//! a proof of who answers before either is said.

use super::support::fake_sidecar::FakeHome;
use super::support::server::Server;
use nix::pty::openpty;
use nix::sys::signal::Signal;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Stdio};

fn serve(home: &FakeHome) -> Server {
    Server::start(home.command(&["serve"]))
}

/// HMAC-SHA-256, by its definition.
fn hmac(key: &str, message: &str) -> String {
    let pad = |with: u8| {
        let mut block = [with; 64];
        block.iter_mut().zip(key.bytes()).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::digest([&pad(0x36)[..], message.as_bytes()].concat());
    let outer = Sha256::digest([&pad(0x5c)[..], &inner[..]].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

const GET: &str = "HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n";

#[test]
fn each_start_has_a_token_of_its_own() {
    let home = FakeHome::new();
    let mut server = serve(&home);
    let first = server.token();
    // A start that fails takes nothing from the one that runs.
    let failed = home.run(&["serve", "--listen", &server.address.to_string()]);
    assert_eq!((failed.status.code(), server.token()), (Some(75), first.clone()), "{failed:?}");
    assert_eq!(server.raw(&format!("GET /api/agents {GET}Authorization: Bearer {first}\r\n\r\n")).status, 200);
    server.end(Signal::SIGTERM);
    let server = serve(&home);
    assert_ne!(server.token(), first);
    let caught = server.raw(&format!("GET /api/agents {GET}Authorization: Bearer {first}\r\n\r\n"));
    assert_eq!((caught.status, caught.text("code")), (401, "no_token"));
}

/// There is one file, so it must fit each server that runs.
#[test]
fn two_servers_of_a_home_have_the_same_token_while_both_run() {
    let home = FakeHome::new();
    let mut first = serve(&home);
    let token = first.token();
    let second = serve(&home);
    let get = format!("GET /api/agents {GET}Authorization: Bearer {token}\r\n\r\n");
    assert_eq!((second.token(), first.raw(&get).status, second.raw(&get).status), (token, 200, 200));
    first.end(Signal::SIGKILL);
    assert_eq!(second.raw(&get).status, 200);
}

#[test]
fn it_proves_that_it_knows_the_token_before_anybody_says_it() {
    let home = FakeHome::new();
    let server = serve(&home);
    let ask = |query: &str| server.raw(&format!("GET /api/proof{query} {GET}\r\n"));
    let nonce = "0123456789abcdef";
    let proof = ask(&format!("?nonce={nonce}"));
    let expected = hmac(&server.token(), &format!("tasuki serve\n{}\n{nonce}", server.address));
    assert_eq!((proof.status, proof.text("proof")), (200, expected.as_str()));
    // No code was printed, since nobody looks.
    assert_eq!(ask(&format!("?nonce={nonce}&of=code")).status, 401);
    for wrong in ["", "?nonce=short", "?nonce=0123456789abcde%0a", "?nonce=0123456789abcdef&of=x", "?of=token"] {
        assert_eq!(ask(wrong).status, 400, "{wrong}");
    }
    let enter = |more: &str| server.raw(&format!("POST /api/session {GET}Content-Length: 0\r\n{more}\r\n"));
    for wrong in ["", "Authorization: Code \r\n", "Authorization: Code 0123456789abcdef\r\n"] {
        assert_eq!(enter(wrong).status, 401, "{wrong}");
    }
    assert_eq!(enter("Origin: http://evil.example\r\n").status, 403);
}

/// `serve` on a terminal: the child, and the address that it prints there.
fn on_a_terminal(home: &FakeHome) -> (Child, String, File) {
    let pty = openpty(None, None).expect("a terminal");
    let mut command = home.command(&["serve"]);
    let child = command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::from(pty.slave)).stderr(Stdio::null());
    let child = child.spawn().expect("it starts");
    let terminal = File::from(pty.master);
    let mut line = String::new();
    BufReader::new(terminal.try_clone().expect("a copy")).read_line(&mut line).expect("a line");
    (child, line.trim_end().to_owned(), terminal)
}

#[test]
fn the_address_that_is_printed_lets_one_in_and_holds_no_token() {
    let home = FakeHome::new();
    let (mut child, printed, _terminal) = on_a_terminal(&home);
    let token = fs::read_to_string(home.path().join("state/serve.token")).expect("a token").trim_end().to_owned();
    assert!(!printed.contains(&token), "the token would stand in the browser's history: {printed}");
    let (url, code) = printed.split_once("#code=").unwrap_or_else(|| panic!("no code: {printed}"));
    let address: std::net::SocketAddr =
        url.trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
    let ask = |request: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        stream.write_all(request.replace("{host}", &address.to_string()).as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    };
    let proof = ask(&format!("GET /api/proof?of=code&nonce=0123456789abcdef {GET}\r\n"));
    assert!(proof.contains(&hmac(code, &format!("tasuki serve\n{address}\n0123456789abcdef"))), "{proof}");
    let enter = format!("POST /api/session {GET}Content-Length: 0\r\nAuthorization: Code {code}\r\n\r\n");
    let (once, twice) = (ask(&enter), ask(&enter));
    assert!(once.starts_with("HTTP/1.1 200") && once.contains(&token), "{once}");
    assert!(twice.starts_with("HTTP/1.1 401") && !twice.contains(&token), "{twice}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// `localhost` may mean either.
#[test]
fn the_same_port_of_the_other_family_is_nobody_elses() {
    if TcpListener::bind("[::1]:0").is_err() {
        return super::support::tally::skip("this machine has no ::1");
    }
    let home = FakeHome::new();
    let server = serve(&home);
    let port = server.address.port();
    assert!(TcpListener::bind(("::1", port)).is_err(), "anybody can be localhost:{port}");
    drop(server);
    let squatter = TcpListener::bind("[::1]:0").expect("a port");
    let wanted = format!("127.0.0.1:{}", squatter.local_addr().expect("an address").port());
    let refused = home.run(&["serve", "--listen", &wanted]);
    assert_eq!(refused.status.code(), Some(75), "{refused:?}");
}
