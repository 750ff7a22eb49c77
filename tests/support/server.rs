//! `tasuki serve` as a child process, and ways to make requests to it: by curl, or with exact bytes.

use super::stage::PATIENCE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A server on a free port. Dropping this ends it.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    token_file: PathBuf,
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    /// The body if it is JSON, else null.
    pub(crate) body: Value,
    /// The body as it came.
    pub(crate) said: String,
}

impl Answer {
    fn parse(text: &str) -> Answer {
        let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = headers.split(' ').nth(1).and_then(|status| status.parse().ok());
        Answer {
            status: status.unwrap_or_else(|| panic!("no answer: {text:?}")),
            headers: headers.to_ascii_lowercase(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
            said: body.to_owned(),
        }
    }

    /// A field of the body as text.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.body[name].as_str().unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

impl Server {
    /// Starts the server and waits until it listens. `command`: ends in `serve` and its options.
    pub(crate) fn start(mut command: Command) -> Server {
        command.args(["--listen", "127.0.0.1:0", "--json"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("an output")).read_line(&mut line).expect("a line");
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
        assert_eq!(said["pid"], child.id(), "{said}");
        let url = said["url"].as_str().expect("an address").to_owned();
        let address = url.trim_start_matches("http://").trim_end_matches('/').parse().expect("an address");
        Server { child, url, address, token_file: said["token_file"].as_str().expect("a path").into() }
    }

    pub(crate) fn token_file(&self) -> &Path {
        &self.token_file
    }

    pub(crate) fn token(&self) -> String {
        fs::read_to_string(&self.token_file).expect("a token").trim_end().to_owned()
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    /// Sends the server a signal, and waits until it has ended.
    pub(crate) fn end(&mut self, signal: Signal) -> ExitStatus {
        kill(self.pid(), signal).expect("it runs");
        let until = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait().expect("a child of ours") {
                Some(status) => return status,
                None => assert!(Instant::now() < until, "it does not end on {signal}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Makes a request by curl, with the token.
    pub(crate) fn curl(&self, path: &str, more: &[&str]) -> Answer {
        let mut command = Command::new("curl");
        command.args(["-sS", "-i", "--max-time", "60", "-H", &format!("Authorization: Bearer {}", self.token())]);
        command.args(more).arg(format!("{}{path}", self.url));
        let output = command.stdin(Stdio::null()).output().expect("curl runs");
        Answer::parse(&String::from_utf8_lossy(&output.stdout))
    }

    /// Posts JSON by curl.
    pub(crate) fn post(&self, path: &str, body: &Value, more: &[&str]) -> Answer {
        let body = body.to_string();
        let json = ["-H", "Content-Type: application/json", "--data-binary", &body];
        self.curl(path, &[&json[..], more].concat())
    }

    /// A connection whose reads have a deadline.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
        stream
    }

    /// Sends these bytes on a new connection and reads the whole response. `{host}` and `{token}` in them are replaced.
    pub(crate) fn raw(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        let request = request.replace("{host}", &self.address.to_string()).replace("{token}", &self.token());
        // Writing fails if the server refuses the request before all of it was sent, and reading if the server then
        // cuts the connection. In both cases the response has come.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::parse(&String::from_utf8_lossy(&answer))
    }

    /// Begins to listen to events. `after`: the `seq` after which they begin.
    pub(crate) fn listen(&self, after: Option<u64>) -> Events {
        let mut stream = self.connect();
        let last = after.map(|seq| format!("Last-Event-ID: {seq}\r\n")).unwrap_or_default();
        let (host, token) = (self.address, self.token());
        let request =
            format!("GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{last}\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut events = Events { reader: BufReader::new(stream) };
        let head = events.lines_until_empty().expect("a head");
        assert!(head[0].contains(" 200 "), "{head:?}");
        assert!(head.iter().any(|line| line == "content-type: text/event-stream"), "{head:?}");
        events
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream of server-sent events.
pub(crate) struct Events {
    reader: BufReader<TcpStream>,
}

/// One event of the stream.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    fn lines_until_empty(&mut self) -> Option<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            // A broken connection counts as the end of the stream.
            if self.reader.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            match line.trim_end() {
                "" => return Some(lines),
                line => lines.push(line.to_owned()),
            }
        }
    }

    /// The next event; none at the end. Comments and lines of the chunked encoding are skipped.
    pub(crate) fn next(&mut self) -> Option<Event> {
        loop {
            let mut event = Event::default();
            for line in self.lines_until_empty()? {
                match line.split_once(": ") {
                    Some(("id", id)) => event.id = id.parse().ok(),
                    Some(("event", name)) => event.name = name.to_owned(),
                    Some(("data", data)) => event.data = serde_json::from_str(data).expect("JSON"),
                    _ => {}
                }
            }
            if !event.data.is_null() {
                return Some(event);
            }
        }
    }

    /// The next events, up to and including the first of this name.
    pub(crate) fn until(&mut self, name: &str) -> Vec<Event> {
        let mut seen = Vec::new();
        while let Some(event) = self.next() {
            let is_it = event.name == name;
            seen.push(event);
            if is_it {
                return seen;
            }
        }
        panic!("the stream ended before {name}: {:?}", seen.last());
    }
}

/// Whether curl is installed. If not, the test counts as skipped.
pub(crate) fn has_curl() -> bool {
    let found =
        Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success());
    if !found {
        super::tally::skip("curl is not installed");
    }
    found
}
