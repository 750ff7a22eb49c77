//! The whole program in an environment of its own: a private tmux server, a home in a temporary folder, and the sidecar
//! as a child process that can be stopped, killed and started again. Tests talk to it only by files, as a dashboard
//! does.

use super::stage_files::{self, read_json};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::cell::{Cell, RefCell, RefMut};
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for anything: a loaded machine may be slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long a turn of a demo agent takes unless a test says otherwise, in milliseconds.
const TURN_MS: u32 = 100;
/// Variables that would lead a program under test to somebody else's home or server.
pub(super) const FOREIGN: [&str; 8] = [
    "TMUX",
    "TMUX_PANE",
    "TASUKI_HOME",
    "TASUKI_TMUX",
    "TASUKI_AGENT_ID",
    "TASUKI_PERSONA",
    "TASUKI_DEMO_FAULTS",
    "TASUKI_CREATION",
];

/// A home, a tmux server, agents, and a sidecar. Dropping this ends all of them.
pub(crate) struct Stage {
    dir: tempfile::TempDir,
    pub(crate) sidecar: RefCell<Option<Child>>,
    next_request: Cell<u32>,
}

impl Stage {
    /// A stage whose sidecar runs, with the default limits.
    pub(crate) fn new() -> Self {
        Stage::with_config("")
    }

    /// The same with a `config.toml`.
    pub(crate) fn with_config(config: &str) -> Self {
        let stage = Stage::without_sidecar(config);
        stage.start_sidecar();
        stage
    }

    /// A tmux server, and a home that has only a `config.toml`.
    pub(crate) fn without_sidecar(config: &str) -> Self {
        let dir = tempfile::tempdir().expect("a folder for the test");
        let stage = Stage { dir, sidecar: RefCell::new(None), next_request: Cell::new(0) };
        stage_files::make_folder(&stage.home());
        stage_files::make_folder(&stage.work_dir());
        fs::write(stage.home().join("config.toml"), config).expect("the configuration");
        stage.faults("");
        stage.start_tmux();
        stage
    }

    /// Starts the tmux server with one session of the user's own.
    pub(crate) fn start_tmux(&self) {
        self.tmux(&["new-session", "-d", "-s", "user", "-x", "120", "-y", "40", "exec cat"]);
        let transcripts = ("TASUKI_DEMO_DIR", self.dir.path().join("transcripts"));
        let logs = [("TASUKI_DEMO_LOG", self.recorder()), ("TASUKI_DEMO_FAULTS_FILE", self.faults_file()), transcripts];
        for (name, path) in logs {
            self.tmux(&["set-environment", "-g", name, &path.display().to_string()]);
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The folder in which agents work.
    pub(crate) fn work_dir(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn spool(&self, below: &str) -> PathBuf {
        self.home().join("spool").join(below)
    }

    pub(crate) fn recorder(&self) -> PathBuf {
        self.dir.path().join("recorder")
    }

    fn faults_file(&self) -> PathBuf {
        self.dir.path().join("faults")
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    /// Sets the faults of all demo agents, from their next Enter on. `lines`: as in the fault file.
    pub(crate) fn faults(&self, lines: &str) {
        let turn = if lines.contains("slow_turn") { String::new() } else { format!("slow_turn={TURN_MS}\n") };
        let scratch = self.dir.path().join("faults.new");
        fs::write(&scratch, format!("{turn}{lines}\n")).expect("faults");
        fs::rename(&scratch, self.faults_file()).expect("faults in force");
    }

    /// Runs one tmux command and returns its output, whether it succeeds or not.
    pub(crate) fn tmux<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.socket()).args(["-f", "/dev/null"]).args(args);
        Stage::make_own(&mut command);
        let out = command.stdin(Stdio::null()).output().expect("tmux runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    /// The text on a pane's screen.
    pub(crate) fn screen(&self, pane: &str) -> String {
        self.tmux(&["capture-pane", "-p", "-t", pane])
    }

    /// The command line with this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("--home").arg(self.home()).args(args).stdin(Stdio::null());
        Stage::make_own(&mut command);
        command
    }

    /// Removes variables that would lead a program to somebody else's home or server.
    pub(crate) fn make_own(command: &mut Command) {
        for name in FOREIGN {
            command.env_remove(name);
        }
    }

    /// The sidecar's process, if one was started.
    pub(crate) fn sidecar(&self) -> RefMut<'_, Option<Child>> {
        self.sidecar.borrow_mut()
    }

    /// Takes over a sidecar that was started in another way.
    pub(crate) fn adopt(&self, child: Child) {
        *self.sidecar() = Some(child);
    }

    /// Starts the sidecar and waits until its heartbeat is there.
    pub(crate) fn start_sidecar(&self) {
        self.spawn_sidecar();
        self.until_beating();
    }

    pub(crate) fn until_beating(&self) {
        let pid = self.sidecar_pid();
        let view = self.home().join("view/sidecar.json");
        let ended = self.ended_or("beating", || read_json(&view).is_some_and(|view| view["pid"] == pid));
        assert!(ended.is_none(), "the sidecar has ended: {ended:?}\n{}", self.story());
    }

    pub(crate) fn sidecar_pid(&self) -> u32 {
        self.sidecar().as_ref().expect("a sidecar runs").id()
    }

    /// Sends the sidecar a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.sidecar_pid()).expect("a process id");
        kill(Pid::from_raw(pid), signal).expect("the sidecar is there");
    }

    /// Sends the sidecar a signal that ends it, and waits until it has ended.
    pub(crate) fn end_sidecar(&self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        let mut child = self.sidecar.borrow_mut().take().expect("a sidecar runs");
        let deadline = Instant::now() + PATIENCE;
        loop {
            match child.try_wait().expect("a child of ours") {
                Some(status) => return status,
                None if Instant::now() > deadline => panic!("the sidecar does not end on {signal}\n{}", self.story()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Kills the sidecar (SIGKILL) and starts it again.
    pub(crate) fn crash_and_restart(&self) {
        self.end_sidecar(Signal::SIGKILL);
        self.start_sidecar();
    }

    /// Makes a persona of the demo profile.
    pub(crate) fn persona(&self, slug: &str) {
        let folder = self.home().join("data/personas").join(slug);
        stage_files::make_folder(&folder);
        fs::write(folder.join("skill.md"), format!("# Skill of {slug}\n\nKeep notes.\n")).expect("a skill");
        let toml = format!("profile = \"demo\"\ncwd = \"{}\"\n", self.work_dir().display());
        fs::write(folder.join("persona.toml"), toml).expect("a persona");
    }

    /// A request id that was never used.
    pub(crate) fn new_request_id(&self) -> String {
        self.next_request.set(self.next_request.get() + 1);
        format!("r-{}", self.next_request.get())
    }

    /// Drops a file into a folder of the spool (`room`) as writers should: whole, by rename.
    pub(crate) fn drop_file(&self, room: &str, name: &str, bytes: &[u8]) {
        let scratch = self.spool("tmp").join(format!("w-{name}"));
        fs::write(&scratch, bytes).expect("written");
        fs::rename(&scratch, self.spool(room).join(name)).expect("dropped");
    }

    /// Drops a request, with `v` added. Returns its id.
    pub(crate) fn send(&self, request: &Value) -> String {
        let id = self.new_request_id();
        let mut request = request.clone();
        request["v"] = json!(1);
        self.drop_file("requests", &format!("{id}.json"), request.to_string().as_bytes());
        id
    }

    /// Waits for the answer to a request.
    pub(crate) fn result(&self, id: &str) -> Value {
        self.wait_for(&format!("{id} is answered"), || read_json(&self.spool(&format!("results/{id}.json"))))
    }

    /// Drops a request and waits for its answer.
    pub(crate) fn ask(&self, request: &Value) -> Value {
        self.result(&self.send(request))
    }

    /// Makes a request that must be granted. Returns the answer's `result`.
    pub(crate) fn granted(&self, request: &Value) -> Value {
        let answer = self.ask(request);
        assert_eq!((&answer["status"], &answer["ok"]), (&json!(200), &json!(true)), "{answer}\n{}", self.story());
        answer["result"].clone()
    }

    /// Makes a request that must be refused. Returns `(status, code, message)`.
    pub(crate) fn refused(&self, request: &Value) -> (u64, String, String) {
        stage_files::refusal(&self.ask(request))
    }

    /// Makes a persona and an agent of it, and waits until the agent is primed and idle. Returns the agent's id.
    pub(crate) fn agent(&self, slug: &str) -> String {
        self.agents(&[slug]).remove(0)
    }

    /// The same for several personas at once.
    pub(crate) fn agents(&self, slugs: &[&str]) -> Vec<String> {
        let asked: Vec<String> = slugs
            .iter()
            .map(|slug| {
                self.persona(slug);
                self.send(&json!({"kind": "agent_create", "persona_slug": slug}))
            })
            .collect();
        let id_of = |request: &String| {
            let answer = self.result(request);
            let id = answer["result"]["agent_id"].as_str();
            id.unwrap_or_else(|| panic!("no agent: {answer}\n{}", self.story())).to_owned()
        };
        let agents: Vec<String> = asked.iter().map(id_of).collect();
        agents.iter().for_each(|agent| self.until_idle(agent));
        agents
    }

    /// Waits until an agent is primed and idle.
    pub(crate) fn until_idle(&self, agent: &str) {
        self.until(&format!("agent {agent} is primed and idle"), || {
            let view = self.agent_view(agent);
            view["primed"] == true && view["state"] == "idle"
        });
    }

    /// An agent's view; null while there is none.
    pub(crate) fn agent_view(&self, id: &str) -> Value {
        read_json(&self.home().join(format!("view/agents/{id}.json"))).unwrap_or(Value::Null)
    }

    /// A handoff's view; null while there is none.
    pub(crate) fn handoff_view(&self, id: &str) -> Value {
        read_json(&self.home().join(format!("view/handoffs/{id}.json"))).unwrap_or(Value::Null)
    }

    /// All views of a kind (`agents`, `handoffs`).
    pub(crate) fn views(&self, kind: &str) -> Vec<Value> {
        stage_files::json_files(&self.home().join("view").join(kind))
    }

    /// Requests a handoff, which must be granted. Returns its id.
    pub(crate) fn hand_off(&self, agent: &str) -> String {
        self.hand_off_with(agent, &json!({}))
    }

    /// The same with more fields.
    pub(crate) fn hand_off_with(&self, agent: &str, more: &Value) -> String {
        let mut request = json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"});
        for (name, value) in more.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        let result = self.granted(&request);
        assert_eq!(result["status"], "initiated", "{result}");
        result["handoff_id"].as_str().expect("an id").to_owned()
    }

    /// Waits until a handoff is in a step, and returns its view. Panics at once if the handoff ends in another step.
    pub(crate) fn until_step(&self, handoff: &str, step: &str) -> Value {
        self.wait_for(&format!("handoff {handoff} is {step}"), || {
            let view = self.handoff_view(handoff);
            let at = view["step"].as_str().unwrap_or_default().to_owned();
            let is_end = ["done", "failed", "cancelled"].contains(&at.as_str());
            assert!(at == step || !is_end, "handoff ended {at}, not {step}: {view:#}\n{}", self.story());
            (at == step && self.is_journaled(handoff, step)).then_some(view)
        })
    }

    /// Waits until a handoff has ended, in whichever way, and returns its view.
    pub(crate) fn until_ended(&self, handoff: &str) -> Value {
        self.wait_for(&format!("handoff {handoff} ends"), || {
            let view = self.handoff_view(handoff);
            let step = view["step"].as_str().unwrap_or_default().to_owned();
            let is_end = ["done", "failed", "cancelled"].contains(&step.as_str());
            (is_end && self.is_journaled(handoff, &step)).then_some(view)
        })
    }

    /// Waits until a handoff has failed with that code at that step.
    pub(crate) fn until_failed(&self, handoff: &str, step: &str, code: &str) -> Value {
        let view = self.until_step(handoff, "failed");
        let found = (view["error"]["step"].as_str(), view["error"]["code"].as_str());
        assert_eq!(found, (Some(step), Some(code)), "{view:#}\n{}", self.story());
        view
    }

    /// The journal's lines so far. A last line without its newline does not count.
    pub(crate) fn journal(&self) -> Vec<Value> {
        stage_files::json_lines(&self.spool("journal.jsonl"))
    }

    /// The lines of the recorder, into which all demo agents write.
    pub(crate) fn recorded(&self) -> Vec<Value> {
        stage_files::json_lines(&self.recorder())
    }

    /// The prompts that an agent was given.
    pub(crate) fn prompts(&self, agent: &str) -> Vec<String> {
        let lines = self.recorded();
        let of = lines.iter().filter(|line| line["agent_id"] == agent);
        of.filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
    }

    /// The processes of the demo agent with this id. A process whose parent is one of them does not count.
    pub(crate) fn processes(&self, agent: &str) -> Vec<i32> {
        stage_files::demo_agents_with(&format!("TASUKI_AGENT_ID={agent}"))
    }

    /// Whether an agent has exactly one process.
    pub(crate) fn is_running(&self, agent: &str) -> bool {
        self.processes(agent).len() == 1
    }

    /// Polls until a condition is true.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        self.wait_for(what, || is_so().then_some(()));
    }

    /// Polls until `look` returns something. If that takes too long, the panic shows everything that the stage knows.
    pub(crate) fn wait_for<T>(&self, what: &str, look: impl FnMut() -> Option<T>) -> T {
        self.wait_within(PATIENCE, what, look)
    }

    /// The same with another time limit.
    pub(crate) fn wait_within<T>(&self, patience: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(found) = look() {
                return found;
            }
            if Instant::now() > deadline {
                panic!("not within {patience:?}: {what}\n{}", self.story());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(mut child) = self.sidecar.borrow_mut().take() {
            // SIGKILL ends a stopped process too.
            let _ = child.kill();
            let _ = child.wait();
        }
        self.tmux(&["kill-server"]);
        for pid in stage_files::processes_with(&format!("TASUKI_HOME={}", self.home().display()), |_| true) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        if !std::thread::panicking() {
            let found = [stage_files::shown_keys(&self.home()), stage_files::holding_keys(&self.log_file())].concat();
            assert!(found.is_empty(), "a planted credential is shown: {found:?}");
        }
    }
}
