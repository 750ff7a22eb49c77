//! `tasuki serve` over a sidecar with 200 agents: what HTTP adds to a request, what it costs while nobody asks, and how
//! long it takes until 200 listeners have heard of something.

use crate::Length;
use crate::drops::{Arrivals, REQUEST};
use crate::place::{Place, Worker, wait_until};
use crate::sample::{ms, percentile, rounds};
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
    (0..AGENTS).for_each(|number| register(&home, &format!("agent-{number}"), &agent(number)));
    wait_until("all agents are registered", Duration::from_millis(50), || {
        fs::read_dir(home.join("view/agents")).map_or(0, Iterator::count) >= AGENTS
    });
    let (server, address) = Worker::serve(&home);
    let mut rows = added(&home, &address, length);
    // What was answered last is tidied up.
    std::thread::sleep(Duration::from_secs(2));
    let watched = Duration::from_secs(length.pick(30, 8));
    rows.push(idle(&server, watched, "nobody asks"));
    rows.extend(listeners(&home, &address, &server, length));
    drop((server, sidecar));
    place.remove(&home);
    rows
}

fn agent(number: usize) -> String {
    format!("0b0e4f6e-3a0f-4a52-9df0-{number:012x}")
}

/// An agent comes: its event is dropped.
fn register(home: &Path, name: &str, agent: &str) {
    let event = format!(
        r#"{{"v":1,"event":"session_start","agent_id":"{agent}","session_id":"{name}","cwd":"/home/kai/src/app"}}"#
    );
    let scratch = home.join(format!("spool/tmp/{name}.json"));
    fs::write(&scratch, event).expect("written");
    fs::rename(scratch, home.join(format!("spool/events/{name}.json"))).expect("renamed");
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
    client::drop_request(home, &id, REQUEST).expect("dropped");
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
    let row = |name: &str, part: f64| {
        let (ours, floor) = (percentile(&posted, part), percentile(&dropped, part));
        let more = ours.saturating_sub(floor);
        Row {
            figure: format!("request by HTTP → its answer, {name}, against a synced file dropped → its result visible"),
            ours: ms(ours),
            rival: ms(floor),
            ratio: format!("+{}", ms(more)),
            goal: if part < 0.9 { "+2 ms".to_owned() } else { String::new() },
            met: part > 0.9 || more < Duration::from_millis(2),
        }
    };
    vec![row("p50", 0.5), row("p99", 0.99)]
}

/// Seconds of a processor that the server has used.
fn used(server: &Worker) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("it runs");
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // Linux counts hundredths for everybody.
    ticks as f64 / 100.0
}

fn idle(server: &Worker, watched: Duration, when: &str) -> Row {
    let before = used(server);
    std::thread::sleep(watched);
    let share = (used(server) - before) / watched.as_secs_f64() * 100.0;
    Row {
        figure: format!("serve with {AGENTS} agents, {when}: share of one core in {} s", watched.as_secs()),
        ours: format!("{share:.2} %"),
        rival: String::new(),
        ratio: String::new(),
        goal: "< 1 %".to_owned(),
        met: share < 1.0,
    }
}

/// From the drop of an event until the last of all listeners has it.
fn listeners(home: &Path, address: &str, server: &Worker, length: Length) -> Vec<Row> {
    let mut all: Vec<Client> = (0..LISTENERS).map(|_| Client::new(home, address)).collect();
    for client in &mut all {
        client.send("GET /api/events", b"");
        client.hear("retry:");
    }
    let mut took = Vec::new();
    for round in rounds(length.pick(100, 20), Duration::from_secs(length.pick(40, 10))) {
        let id = agent(AGENTS + round);
        let began = Instant::now();
        register(home, &format!("late-{round}"), &id);
        all.iter_mut().for_each(|client| client.hear(&id));
        took.push(began.elapsed());
        std::thread::sleep(REST);
    }
    let row = Row {
        figure: format!(
            "an agent's event dropped → {LISTENERS} listeners have its line, the last of them, p50 of {}",
            took.len()
        ),
        ours: ms(percentile(&took, 0.5)),
        rival: String::new(),
        ratio: String::new(),
        goal: String::new(),
        met: true,
    };
    let watched = Duration::from_secs(length.pick(20, 8));
    vec![row, idle(server, watched, "200 listen and nothing happens")]
}
