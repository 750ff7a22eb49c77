//! Three servers that keep three copies, as the guide sets them up: any of them dies at any moment, then two at once,
//! then all; and the bridges too.

use crate::fleet::{NatsServer, TestFleet, TestHost, check_promises, free_port, text};
use crate::support::random::Random;
use crate::support::stage::PATIENCE;
use crate::support::tally;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const GUIDE: &str = include_str!("../../data/guide/fleet.md");

/// The block of the guide that makes one cluster of three servers.
fn cluster_block() -> String {
    let start = GUIDE.find("   cluster {").expect("the guide's block");
    let length = GUIDE[start..].find("   ```").expect("its end");
    GUIDE[start..start + length].to_owned()
}

/// The folders of three servers of one fleet on this machine, each at ports of its own.
fn nodes_of(server: &NatsServer) -> Vec<NatsServer> {
    let ports: Vec<(u16, u16)> = (0..3).map(|_| (free_port(), free_port())).collect();
    let node = |number: usize| {
        let (port, route) = ports[number];
        let folder = server.folder.with_file_name(format!("server-{}", number + 1));
        assert!(Command::new("cp").arg("-a").args([&server.folder, &folder]).status().expect("cp").success());
        // No server needs the fleet's key.
        fs::remove_dir_all(folder.join("owner")).expect("it was copied");
        let mut block = cluster_block().replace("0.0.0.0:6222", &format!("127.0.0.1:{route}"));
        for (other, (_, route)) in ports.iter().enumerate() {
            block = block.replace(&format!("10.0.0.{}:6222", other + 1), &format!("127.0.0.1:{route}"));
        }
        let node = server.another(folder, port);
        let place = |folder: &std::path::Path| folder.display().to_string();
        node.change("nats-server.conf", |text| {
            let text = text.replace("\"tasuki-test\"", &format!("\"tasuki-test-{}\"", number + 1));
            let text = text.replace(&format!("127.0.0.1:{}", server.port), &format!("127.0.0.1:{port}"));
            let text = format!("{text}{block}").replace("/srv/fleet/", &format!("{}/", place(&server.folder)));
            text.replace(&place(&server.folder), &place(&node.folder))
        });
        node
    };
    server.change("owner/fleet.json", |text| {
        let mut fleet: Value = serde_json::from_str(&text).expect("JSON");
        fleet["servers"] = ports.iter().map(|(port, _)| json!(format!("tls://127.0.0.1:{port}"))).collect();
        fleet.to_string()
    });
    (0..3).map(node).collect()
}

/// Waits until the servers have found each other, and one of them leads.
fn until_led(nodes: &[NatsServer]) {
    let deadline = Instant::now() + PATIENCE;
    let logs = || nodes.iter().map(|node| fs::read_to_string(node.folder.join("log")).unwrap_or_default());
    while !logs().any(|log| log.contains("new metadata leader")) {
        assert!(
            Instant::now() < deadline,
            "none of the servers leads:\n{}",
            logs().collect::<Vec<_>>().join("\n---\n")
        );
        sleep(Duration::from_millis(20));
    }
}

/// Three servers, two hosts, and the texts that one has sent to agents of the other.
struct Three {
    fleet: TestFleet,
    nodes: Vec<NatsServer>,
    agents: Vec<String>,
    sent: Vec<(String, String, String)>,
    kills: u64,
}

impl Three {
    fn new() -> Option<Three> {
        let mut nodes = Vec::new();
        let fleet = TestFleet::made(&["a", "b"], 3, |server| {
            nodes = nodes_of(server);
            nodes.iter().for_each(NatsServer::start);
            until_led(&nodes);
        })?;
        for host in fleet.hosts.values() {
            host.start_bridge();
            host.until_serving();
        }
        let b = fleet.host("b");
        b.accept("a", &["send"]);
        let agents = b.stage.agents(&["kai", "mia", "ben"]);
        Some(Three { fleet, nodes, agents, sent: Vec::new(), kills: 0 })
    }

    fn a(&self) -> &TestHost {
        self.fleet.host("a")
    }

    fn send(&mut self) {
        let number = self.sent.len();
        let (id, agent) = (format!("t{number}"), self.agents[number % self.agents.len()].clone());
        let words = format!("text <{number}> by three servers");
        self.a().drop_to(&id, "b", &text(&agent, &words), Some("2h"));
        self.sent.push((id, agent, words));
    }

    fn answered(&self) -> usize {
        self.sent.iter().filter(|(id, ..)| self.a().answer(id).is_some()).count()
    }

    /// To which of the servers this host's bridge is connected.
    fn node_of(&self, name: &str) -> Option<usize> {
        let view = self.fleet.host(name).bridge_view();
        let server = view["server"].as_str()?;
        self.nodes.iter().position(|node| server.ends_with(&format!(":{}", node.port)))
    }

    fn signal_node(&self, number: usize, signal: Signal) {
        let pid = self.nodes[number].child.borrow().as_ref().expect("it runs").id();
        kill(Pid::from_raw(pid.try_into().expect("a process id")), signal).expect("it is there");
    }

    /// `kill -9` of some servers, which start again after a while.
    fn kill_nodes(&mut self, numbers: &[usize], away: Duration) {
        numbers.iter().for_each(|number| self.nodes[*number].kill());
        sleep(away);
        numbers.iter().for_each(|number| self.nodes[*number].start());
        self.kills += numbers.len() as u64;
    }

    /// The same of one bridge.
    fn kill_bridge(&mut self, name: &str, away: Duration) {
        let host = self.fleet.host(name);
        host.kill_bridge();
        sleep(away);
        host.start_bridge();
        self.kills += 1;
    }

    /// Waits until both bridges serve. It may take a minute: a bridge that died while a roster of its was on the way,
    /// or that is shown an older one by a server that was away, can't know what stood there last.
    fn until_serving(&self) {
        let start = Instant::now();
        for host in self.fleet.hosts.values() {
            let pid = host.bridge_pid();
            host.until_within(3 * PATIENCE, "its bridge serves", || {
                let view = host.bridge_view();
                view["pid"] == pid && view["lease"] == "held"
            });
        }
        println!("both bridges serve after {:.1} s", start.elapsed().as_secs_f64());
    }

    /// How long it takes from now on until one more request is answered.
    fn goes_on_after(&mut self, what: &str) -> Duration {
        self.send();
        let (start, before) = (Instant::now(), self.answered());
        self.a().until_within(2 * PATIENCE, what, || self.answered() > before);
        println!("goes on after {:.1} s: {what}", start.elapsed().as_secs_f64());
        start.elapsed()
    }

    /// Two at once for so long, then all of them: how long after a majority is there again the next request is
    /// answered.
    fn lose_the_majority(&mut self, away: Duration) -> Vec<Duration> {
        let mut times = Vec::new();
        for (numbers, what) in [(&[0, 1][..], "two servers were away"), (&[0, 1, 2], "all servers were away")] {
            self.send();
            self.kill_nodes(numbers, away);
            times.push(self.goes_on_after(what));
        }
        times
    }

    fn end(&self) {
        self.a().until_within(Duration::from_secs(300), "all is answered", || self.answered() == self.sent.len());
        tally::add(tally::DEATHS, self.kills);
        check_promises(self.a(), self.fleet.host("b"), &self.sent);
        self.a().until_nothing_is_open();
        println!("{} kills, {} requests, 0 lost, 0 twice", self.kills, self.sent.len());
    }
}

/// What the servers say at the end of a test that fails.
impl Drop for Three {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for node in &self.nodes {
            let log = fs::read_to_string(node.folder.join("log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n");
            eprintln!("--- the server at port {}\n{last}", node.port);
        }
    }
}

/// So many of the last lines of a server's log are shown.
const LOG_LINES: usize = 120;

/// 15 s on a machine with nothing else to do.
const GOES_ON: Duration = Duration::from_secs(45);

/// 35 to 45 s on a machine with nothing else to do: a roster is put every 15 s, and the server may take 5 s to answer.
const LEFT: Duration = Duration::from_secs(55);

#[test]
fn three_servers_and_bridges_that_die_lose_nothing_and_repeat_nothing() {
    let mut seed = Random::from_env();
    let Some(mut three) = Three::new() else { return };
    for name in ["a", "b"] {
        three.send();
        three.kill_bridge(name, Duration::from_millis(seed.below(200)));
        three.until_serving();
    }
    let mut times = Vec::new();
    // Each of them once: so what leads any stream, and what any bridge is connected to, has died at least once.
    let first = usize::try_from(seed.below(3)).expect("it fits");
    for node in (0..3).map(|number| (first + number) % 3) {
        three.nodes[node].kill();
        times.push(three.goes_on_after("one server is away"));
        three.kill_nodes(&[node], Duration::ZERO);
        three.send();
        // What has started again takes part again.
        times.push(three.goes_on_after("it is back"));
    }
    times.extend(three.lose_the_majority(Duration::from_secs(4)));
    three.end();
    assert!(times.iter().all(|time| *time < GOES_ON), "{times:?}");
}

/// A server that stands still keeps its connections open and answers nothing. The client's own pings would find that out
/// after a minute.
#[test]
fn a_server_that_is_silent_is_left_for_another_one() {
    let Some(mut three) = Three::new() else { return };
    for name in ["a", "b"] {
        let node = three.node_of(name).expect("the bridge is connected");
        three.signal_node(node, Signal::SIGSTOP);
        let start = Instant::now();
        three.fleet.host(name).until_within(LEFT, "its bridge has left the server", || {
            three.node_of(name).is_some_and(|other| other != node)
        });
        println!("{name} has left the server after {:.1} s", start.elapsed().as_secs_f64());
        let log = three.fleet.host(name).log_file();
        assert!(fs::read_to_string(log).expect("a log").contains("leaves the server"));
        three.signal_node(node, Signal::SIGCONT);
        three.goes_on_after("the server goes on");
        three.until_serving();
    }
    tally::add(tally::FAULTS, 2);
    three.end();
}

/// Five hundred deaths in ten minutes: a server every few seconds, and bridges between them.
#[test]
fn a_long_storm_over_three_servers() {
    if !tally::is_long() {
        return tally::skip("a long storm over three servers: only in the long suite; a short one is tried always");
    }
    let mut seed = Random::from_env();
    let Some(mut three) = Three::new() else { return };
    let start = Instant::now();
    while three.kills < 495 {
        let step = Instant::now();
        three.send();
        sleep(Duration::from_millis(seed.below(300)));
        let away = Duration::from_millis(seed.below(500));
        match three.kills % 4 {
            0 => three.kill_nodes(&[usize::try_from(seed.below(3)).expect("it fits")], away),
            1 | 3 => three.kill_bridge("a", away),
            _ => three.kill_bridge("b", away),
        }
        sleep(Duration::from_millis(1_200).saturating_sub(step.elapsed()));
    }
    println!("{} of {} answered after {:.0} s", three.answered(), three.sent.len(), start.elapsed().as_secs_f64());
    three.until_serving();
    let mut times = vec![three.goes_on_after("the last one has died")];
    times.extend(three.lose_the_majority(Duration::from_secs(30)));
    three.end();
    assert!(times.iter().all(|time| *time < GOES_ON), "{times:?}");
}
