//! A fleet for a test: one NATS server, and hosts that each have a stage of their own and a bridge.

use crate::support::stage::{PATIENCE, Stage};
use crate::support::stage_files::{json_lines, make_folder, names, read_json, resident_mib};
use crate::support::tally;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A NATS server to start; none if none can be had, which is counted as skipped.
pub(crate) fn nats_program() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/fleet-nats");
        let output = Command::new(script).stdin(Stdio::null()).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then(|| PathBuf::from(path))
    });
    if found.is_none() {
        tally::skip("no NATS server can be had");
    }
    found.clone()
}

/// A port that is free at this moment, and that the system gives to no connection by itself: a server that was killed
/// must find it free again.
pub(crate) fn free_port() -> u16 {
    let some = || 10_000 + u16::try_from(uuid::Uuid::new_v4().as_u128() % 22_000).expect("it fits");
    let free = (0..1_000).map(|_| some()).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.expect("a free port")
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The fleet's server, in a folder that `server init` has written.
pub(crate) struct NatsServer {
    pub(crate) folder: PathBuf,
    pub(crate) port: u16,
    program: PathBuf,
    pub(crate) child: RefCell<Option<Child>>,
}

impl NatsServer {
    /// A server whose configuration lies in that folder and names that port; none if there is no NATS server.
    pub(crate) fn at(folder: PathBuf, port: u16) -> Option<NatsServer> {
        Some(NatsServer { folder, port, program: nats_program()?, child: RefCell::new(None) })
    }

    /// The same program in another folder, at another port. It does not run yet.
    pub(crate) fn another(&self, folder: PathBuf, port: u16) -> NatsServer {
        NatsServer { folder, port, program: self.program.clone(), child: RefCell::new(None) }
    }

    /// Changes a file of its folder.
    pub(crate) fn change(&self, name: &str, change: impl FnOnce(String) -> String) {
        let path = self.folder.join(name);
        let text = fs::read_to_string(&path).expect("a file of its folder");
        fs::write(&path, change(text)).expect("written");
    }

    pub(crate) fn start(&self) {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log")).expect("a log");
        let mut command = Command::new(&self.program);
        command
            .arg("-c")
            .arg(self.folder.join("nats-server.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        *self.child.borrow_mut() = Some(command.spawn().expect("the NATS server runs"));
        let deadline = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < deadline, "the NATS server does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn kill(&self) {
        if let Some(mut child) = self.child.borrow_mut().take() {
            stop(&mut child);
        }
    }

    /// Everything that the server keeps is lost, or set aside by the caller.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.join("jetstream")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One host.
pub(crate) struct TestHost {
    pub(crate) name: String,
    pub(crate) stage: Stage,
    bridge: RefCell<Option<Child>>,
}

/// A server and its hosts. All of it ends when this is dropped.
pub(crate) struct TestFleet {
    pub(crate) hosts: BTreeMap<String, TestHost>,
    pub(crate) server: NatsServer,
    _dir: tempfile::TempDir,
}

impl TestFleet {
    /// A fleet of hosts `a`, `b` …, whose sidecars and bridges run, and of whom nobody accepts anything; none if there
    /// is no NATS server.
    pub(crate) fn new(hosts: &[&str]) -> Option<TestFleet> {
        let fleet = TestFleet::joined(hosts)?;
        fleet.hosts.values().for_each(TestHost::start_bridge);
        fleet.hosts.values().for_each(TestHost::until_serving);
        Some(fleet)
    }

    /// The same before any bridge was started.
    pub(crate) fn joined(hosts: &[&str]) -> Option<TestFleet> {
        TestFleet::made(hosts, 1, NatsServer::start)
    }

    /// The same with a server that `start` starts, from the folder that `server init` has written, or with several that
    /// keep so many copies.
    pub(crate) fn made(hosts: &[&str], copies: usize, start: impl FnOnce(&NatsServer)) -> Option<TestFleet> {
        let (program, dir) = (nats_program()?, tempfile::tempdir().expect("a folder"));
        let (port, folder) = (free_port(), dir.path().join("server"));
        let made: BTreeMap<String, TestHost> =
            hosts.iter().map(|name| ((*name).to_owned(), TestHost::new(name))).collect();
        let first = &made[hosts[0]];
        let place = folder.display().to_string();
        let init = ["server", "init", &place, "--listen", &format!("127.0.0.1:{port}"), "--name", "test"];
        // A server of before 2.10 knows no `sync_interval: always`; init asks the server that it finds in PATH.
        let mut command = first.fleet_command(&init);
        let path =
            format!("{}:{}", program.parent().expect("a folder").display(), std::env::var("PATH").unwrap_or_default());
        succeeded(&command.env("PATH", path).output().expect("it runs"));
        let server = NatsServer { folder, port, program, child: RefCell::new(None) };
        start(&server);
        let join = ["join", "--first", &place, "--as", hosts[0], "--replicas", &copies.to_string()];
        // Several servers need a while until they have found each other.
        let is_joined = || first.fleet_command(&join).output().expect("it runs").status.success();
        first.until("so many copies can be kept", || copies == 1 || is_joined());
        first.fleet(&join);
        for name in &hosts[1..] {
            let line = made[*name].fleet(&["key", name]);
            let ticket = first.fleet(&["admit", line.trim()]);
            made[*name].fleet(&["join", ticket.trim()]);
        }
        Some(TestFleet { hosts: made, server, _dir: dir })
    }

    pub(crate) fn host(&self, name: &str) -> &TestHost {
        &self.hosts[name]
    }
}

/// What a command printed, if it has succeeded.
pub(crate) fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

impl TestHost {
    pub(crate) fn new(name: &str) -> TestHost {
        TestHost { name: name.to_owned(), stage: Stage::new(), bridge: RefCell::new(None) }
    }

    pub(crate) fn fleet_command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki-fleet"));
        command.arg("--home").arg(self.stage.home()).args(args).stdin(Stdio::null());
        Stage::make_own(&mut command);
        command
    }

    /// Runs a command of `tasuki-fleet` that must succeed, and gives what it printed.
    pub(crate) fn fleet(&self, args: &[&str]) -> String {
        succeeded(&self.fleet_command(args).output().expect("it runs"))
    }

    pub(crate) fn accept(&self, host: &str, rights: &[&str]) {
        self.fleet(&[&["accept", host], rights].concat());
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.stage.home().with_file_name("bridge.log")
    }

    pub(crate) fn start_bridge(&self) {
        let log = fs::File::options().create(true).append(true).open(self.log_file()).expect("a log");
        let child = self.fleet_command(&["run"]).stdout(Stdio::null()).stderr(log).spawn().expect("the bridge runs");
        *self.bridge.borrow_mut() = Some(child);
    }

    /// Starts the bridge under strace, which kills it at the entry of its n-th system call of a kind.
    pub(crate) fn start_bridge_dying_at(&self, call: &str, when: u64) {
        let log = fs::File::options().create(true).append(true).open(self.log_file()).expect("a log");
        let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=SIGKILL:when={when}"));
        let mut command = Command::new("strace");
        // -D: the bridge stays our own child.
        command.args(["-D", "-f", "-q", "-o", "/dev/null", "-e", &trace, "-e", &inject]);
        command.arg(env!("CARGO_BIN_EXE_tasuki-fleet")).arg("--home").arg(self.stage.home()).arg("run");
        Stage::make_own(&mut command);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("strace runs");
        *self.bridge.borrow_mut() = Some(child);
    }

    /// Whether the bridge has ended by itself.
    pub(crate) fn has_bridge_ended(&self) -> bool {
        self.bridge.borrow_mut().as_mut().is_none_or(|child| child.try_wait().expect("our own child").is_some())
    }

    /// Waits until the bridge that was started last serves as this host.
    pub(crate) fn until_serving(&self) {
        let pid = self.bridge_pid();
        self.until("its bridge serves", || {
            let view = self.bridge_view();
            view["pid"] == pid && view["lease"] == "held"
        });
    }

    pub(crate) fn bridge_pid(&self) -> u32 {
        self.bridge.borrow().as_ref().expect("a bridge runs").id()
    }

    pub(crate) fn bridge_view(&self) -> Value {
        read_json(&self.stage.home().join("fleet/bridge.json")).unwrap_or_default()
    }

    /// `kill -9`.
    pub(crate) fn kill_bridge(&self) {
        if let Some(mut child) = self.bridge.borrow_mut().take() {
            stop(&mut child);
        }
    }

    pub(crate) fn signal_bridge(&self, signal: Signal) {
        let pid = i32::try_from(self.bridge_pid()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("the bridge is there");
    }

    /// How much memory the bridge holds, in MiB.
    pub(crate) fn bridge_mib(&self) -> u64 {
        resident_mib(self.bridge_pid())
    }

    /// Waits until the bridge has ended by itself; with which code, and what it said.
    pub(crate) fn bridge_end(&self) -> (Option<i32>, String) {
        let mut ended: Option<ExitStatus> = None;
        self.until("its bridge ends", || {
            ended = self.bridge.borrow_mut().as_mut().and_then(|child| child.try_wait().expect("our own child"));
            ended.is_some()
        });
        *self.bridge.borrow_mut() = None;
        (ended.and_then(|status| status.code()), fs::read_to_string(self.log_file()).unwrap_or_default())
    }

    pub(crate) fn files(&self, below: &str) -> PathBuf {
        self.stage.home().join("fleet").join(below)
    }

    /// Drops a request to another host; `v` is added to both.
    pub(crate) fn drop_to(&self, id: &str, to: &str, request: &Value, ttl: Option<&str>) {
        let mut request = request.clone();
        request["v"] = json!(1);
        let mut file = json!({"v": 1, "to": to, "request": request});
        if let Some(ttl) = ttl {
            file["ttl"] = json!(ttl);
        }
        make_folder(&self.files("tmp"));
        let temp = self.files("tmp").join(format!("{id}.new"));
        fs::write(&temp, file.to_string()).expect("written");
        fs::rename(temp, self.files("requests").join(format!("{id}.json"))).expect("dropped");
        tally::add(tally::REQUESTS, 1);
    }

    /// The answer to such a request, if it is there.
    pub(crate) fn answer(&self, id: &str) -> Option<Value> {
        read_json(&self.files("results").join(format!("{id}.json")))
    }

    /// Waits for the answer.
    pub(crate) fn answered(&self, id: &str) -> Value {
        let mut answer = None;
        self.until(&format!("{id} is answered"), || {
            answer = self.answer(id);
            answer.is_some()
        });
        answer.expect("it was there")
    }

    /// Drops a request and waits for its answer.
    pub(crate) fn ask(&self, id: &str, to: &str, request: &Value) -> Value {
        self.drop_to(id, to, request, None);
        self.answered(id)
    }

    pub(crate) fn audit(&self) -> Vec<Value> {
        json_lines(&self.files("audit.jsonl"))
    }

    /// How many requests have no answer yet, as their files show it.
    pub(crate) fn open(&self) -> usize {
        names(&self.files("out")).iter().filter(|name| name.ends_with(".json")).count()
            + names(&self.files("requests")).len()
    }

    /// The answer is there before the request is removed, so that a death between the two loses nothing.
    pub(crate) fn until_nothing_is_open(&self) {
        self.until("what is answered is not open any more", || self.open() == 0);
    }

    /// Polls until something is so; fails with what this host's bridge and stage know.
    pub(crate) fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.until_within(PATIENCE, what, is_so);
    }

    pub(crate) fn until_within(&self, patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + patience;
        while !is_so() {
            if Instant::now() > deadline {
                let log = fs::read_to_string(self.log_file()).unwrap_or_default();
                let last: Vec<&str> = log.lines().rev().take(40).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                let audit: Vec<String> = self.audit().iter().rev().take(20).rev().map(Value::to_string).collect();
                panic!(
                    "not within {patience:?} at {}: {what}\n--- bridge\n{}\n--- audit\n{}\n--- view {}\n{}",
                    self.name,
                    last.join("\n"),
                    audit.join("\n"),
                    self.bridge_view(),
                    self.stage.story()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// How often each of these texts was typed into an agent of this host.
    pub(crate) fn times_typed(&self, agent: &str, texts: &[String]) -> Vec<usize> {
        let prompts = self.stage.prompts(agent);
        texts.iter().map(|text| prompts.iter().filter(|prompt| prompt.contains(text.as_str())).count()).collect()
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.kill_bridge();
    }
}

/// A text to an agent.
pub(crate) fn text(agent: &str, text: &str) -> Value {
    json!({"kind": "agent_send", "agent_id": agent, "text": text})
}

/// Each request has exactly one answer; a text that was answered `delivered` was typed once, and no text twice.
pub(crate) fn check_promises(from: &TestHost, to: &TestHost, sent: &[(String, String, String)]) {
    let (mut lost, mut twice, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (id, agent, text) in sent {
        let times = to.times_typed(agent, std::slice::from_ref(text))[0];
        let Some(answer) = from.answer(id) else {
            lost.push(id.clone());
            continue;
        };
        let is_delivered = answer["ok"] == true && answer["result"]["verdict"] == "delivered";
        let is_refused = [400, 403, 404, 410, 413, 429, 503].contains(&answer["status"].as_u64().unwrap_or(0));
        if times > 1 {
            twice.push(format!("{id}: {times} times"));
        }
        if (is_delivered && times != 1) || (is_refused && times != 0) {
            wrong.push(format!("{id}: typed {times} times, {answer}"));
        }
    }
    tally::add(tally::TEXTS, sent.len() as u64);
    assert!(wrong.is_empty(), "answers that are not true: {wrong:#?}");
    tally::none_lost_none_twice("requests to another host", &lost, &twice);
}
