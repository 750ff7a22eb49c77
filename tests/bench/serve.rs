//! `tasuki serve` over a sidecar with 200 agents: what HTTP adds to a request, what it costs while nobody asks, and how
//! long it takes until 200 listeners have heard of something.

use crate::Length;
use crate::drops::{Arrivals, REQUEST, drop_event, register};
use crate::place::{Place, Worker};
use crate::rows;
use crate::sample::{ms, percentile, rounds, share_of_a_core};
use crate::table::Row;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};
use tasuki::spool::client;

const AGENTS: usize = 200;
const LISTENERS: usize = 200;
/// Between two requests, so that each meets programs at rest.
const REST: Duration = Duration::from_millis(4);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let home = place.home("serve");
    let sidecar = Worker::tasuki(place, &home);
    register(&home, AGENTS, |number| start_of(&format!("agent-{number}"), &agent(number)));
    let (server, address) = Worker::serve(&home);
    let mut table = added(&home, &address, length);
    // What was answered last is tidied up.
    std::thread::sleep(Duration::from_secs(2));
    let watched = Duration::from_secs(length.pick(30, 8));
    table.push(idle(&server, watched, rows::SERVE_IDLE));
    table.extend(listeners(&home, &address, &server, length));
    drop((server, sidecar));
    place.remove(&home);
    table
}

fn agent(number: usize) -> String {
    format!("0b0e4f6e-3a0f-4a52-9df0-{number:012x}")
}

/// The event by which an agent comes.
fn start_of(session: &str, agent: &str) -> String {
    format!(
        r#"{{"v":1,"event":"session_start","agent_id":"{agent}","session_id":"{session}","cwd":"/home/kai/src/app"}}"#
    )
}

/// A connection that is kept, with what every request on it says.
struct Client {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Client {
    fn new(home: &Path, address: &str) -> Client {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("a connection");
        stream.set_read_timeout(Some(crate::place::PATIENCE)).expect("a deadline");
        let token = fs::read_to_string(home.join("state/serve.token")).expect("a token");
        let head = format!("Host: {address}\r\nAuthorization: Bearer {}\r\n", token.trim_end());
        Client { stream: BufReader::new(stream), head }
    }

    fn send(&mut self, line: &str, body: &[u8]) {
        let more = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        let head = format!("{line} HTTP/1.1\r\n{}{more}\r\n", self.head);
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).expect("sent");
    }

    /// One request and its whole answer.
    fn round_trip(&mut self, line: &str, body: &[u8]) -> Duration {
        let began = Instant::now();
        self.send(line, body);
        let mut length = 0;
        loop {
            let mut header = String::new();
            self.stream.read_line(&mut header).expect("an answer");
            let header = header.trim_end().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length: ") {
                length = value.parse().expect("a length");
            }
            if header.is_empty() {
                break;
            }
        }
        self.stream.read_exact(&mut vec![0; length]).expect("a body");
        began.elapsed()
    }

    /// Reads on until a line holds this.
    fn hear(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert!(self.stream.read_line(&mut line).expect("a line") > 0, "the stream ended before {word}");
        }
    }
}

/// Drops the request as our own commands do, so that it outlives a power cut, and waits for its result.
fn synced_drop(home: &Path, results: &Arrivals, id: &str) -> Duration {
    let id = id.parse().expect("an id");
    let began = Instant::now();
    client::submit_request(home, &id, REQUEST).expect("dropped");
    results.wait_for(1);
    began.elapsed()
}

/// The same request dropped as a file and posted, in turn; both are synced to the disk.
fn added(home: &Path, address: &str, length: Length) -> Vec<Row> {
    let results = Arrivals::into_folder(&home.join("spool/results"));
    let mut client = Client::new(home, address);
    let (mut posted, mut dropped) = (Vec::new(), Vec::new());
    let (warm, count) = (5, length.pick(1_000, 200));
    for round in rounds(warm + count, Duration::from_secs(length.pick(60, 12))) {
        let one = client.round_trip("POST /api/requests", REQUEST);
        results.wait_for(1);
        std::thread::sleep(REST);
        let two = synced_drop(home, &results, &format!("round-{round:06}"));
        std::thread::sleep(REST);
        if round >= warm {
            posted.push(one);
            dropped.push(two);
        }
    }
    let row = |figure: rows::Figure, part: f64| {
        let (ours, floor) = (percentile(&posted, part), percentile(&dropped, part));
        let more = ours.saturating_sub(floor);
        let met = figure.goal.is_empty() || more < Duration::from_millis(2);
        Row { figure, ours: ms(ours), rival: ms(floor), ratio: format!("+{}", ms(more)), met }
    };
    vec![row(rows::SERVE_P50, 0.5), row(rows::SERVE_P99, 0.99)]
}

fn idle(server: &Worker, watched: Duration, figure: rows::Figure) -> Row {
    let share = share_of_a_core(server.pid(), watched);
    Row::alone(figure, format!("{share:.2} %"), share < 1.0)
}

/// From the drop of an event until the last of all listeners has it.
fn listeners(home: &Path, address: &str, server: &Worker, length: Length) -> Vec<Row> {
    // Each shows the token before the next one comes: of those who have not, only few are kept.
    let listener = |_| {
        let mut client = Client::new(home, address);
        client.send("GET /api/events", b"");
        client.hear("retry:");
        client
    };
    let mut all: Vec<Client> = (0..LISTENERS).map(listener).collect();
    let mut took = Vec::new();
    for round in rounds(length.pick(100, 20), Duration::from_secs(length.pick(40, 10))) {
        let (id, name) = (agent(AGENTS + round), format!("late-{round}"));
        let began = Instant::now();
        drop_event(home, &name, &start_of(&name, &id));
        all.iter_mut().for_each(|client| client.hear(&id));
        took.push(began.elapsed());
        std::thread::sleep(REST);
    }
    let row = Row::alone(rows::SERVE_LISTENERS, ms(percentile(&took, 0.5)), true);
    let watched = Duration::from_secs(length.pick(20, 8));
    vec![row, idle(server, watched, rows::SERVE_IDLE_LISTENED)]
}
