//! The scenes of the demo: two hosts join a fleet, one sends texts to the other's agent, and a bridge is killed while a
//! text is on its way.

use super::stage::{DemoHost, FleetProgram, FleetStage};
use crate::cli::error::CliError;
use crate::cli::follow::span;
use crate::cli::output::{Out, Tone};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const SLUG: &str = "kai";
const FIRST: &str = "Find out why the checkout test fails once in ten runs.";
/// The texts during which the bridge is killed. The next one is sent only if the answer to the one before was faster
/// than the kill.
const SECOND: [&str; 3] = [
    "It is the clock: compare both times in UTC.",
    "Also look at the test of the calendar.",
    "And run the whole suite three times.",
];
/// How long one step may take.
const LIMIT: Duration = Duration::from_secs(30);

/// One run of the demo.
pub(super) struct FleetPlay<'a> {
    pub(super) out: &'a Out,
    pub(super) start: Instant,
}

impl FleetPlay<'_> {
    pub(super) fn run(&self, stage: &mut FleetStage<'_>) -> Result<(), CliError> {
        self.say("Two hosts: each has a home, a private tmux server and a sidecar.", "desk", "tasuki run")?;
        stage.start_sidecars()?;
        self.passed("Both sidecars answer.", &Value::Null)?;
        self.server(stage)?;
        self.members(stage)?;
        self.bridges(stage)?;
        self.agent(stage)?;
        self.first_text(stage)?;
        let text = self.second_text(stage)?;
        self.count(stage, text)
    }

    /// Prints what happens next, and the command that does it, with the host on which that is run.
    fn say(&self, text: &str, host: &str, command: &str) -> Result<(), CliError> {
        if self.out.is_json() {
            let scene = json!({"v": 1, "type": "scene", "text": text, "host": host, "command": command});
            return self.out.record(&scene);
        }
        self.out.line("")?;
        self.out.line(&self.out.paint(Tone::Strong, text))?;
        self.out.line(&self.out.paint(Tone::Faint, &format!("{host} $ {command}")))
    }

    /// Prints that something was done, and how long the demo has run.
    fn passed(&self, text: &str, answer: &Value) -> Result<(), CliError> {
        let took = span(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX));
        if self.out.is_json() {
            return self.out.record(&json!({"v": 1, "type": "passed", "text": text, "took": took, "answer": answer}));
        }
        self.out.line(&format!("  {took:>7}  {text}"))
    }

    fn server(&self, stage: &mut FleetStage<'_>) -> Result<(), CliError> {
        let (address, folder) = (FleetStage::free_address()?, stage.server_folder());
        let (listen, folder) = (address.to_string(), folder.display().to_string());
        self.say(
            "A NATS server that carries their letters, with a configuration of its own.",
            stage.desk.name,
            &format!("tasuki fleet server init fleet-server --listen {listen} --name demo"),
        )?;
        let args = ["server", "init", &folder, "--listen", &listen, "--name", "demo"];
        let answer = stage.run(&stage.desk, FleetProgram::Fleet, &args)?;
        stage.start_server(address)?;
        self.passed(&format!("The server listens at {listen}."), &answer)
    }

    fn members(&self, stage: &FleetStage<'_>) -> Result<(), CliError> {
        let (desk, other) = (&stage.desk, &stage.other);
        self.say(
            "The first host of the fleet is its owner: its home has the fleet's key.",
            desk.name,
            "tasuki fleet join --first fleet-server --as desk",
        )?;
        let folder = stage.server_folder().display().to_string();
        let answer = stage.run(desk, FleetProgram::Fleet, &["join", "--first", &folder, "--as", desk.name])?;
        self.passed("desk is a member.", &answer)?;
        self.say(
            "The second host makes its own keys, is admitted, and joins by a ticket; neither line is secret.",
            desk.name,
            "ssh box tasuki fleet key box | tasuki fleet admit - | ssh box tasuki fleet join -",
        )?;
        let key = stage.run(other, FleetProgram::Fleet, &["key", other.name])?;
        let ticket = stage.run(desk, FleetProgram::Fleet, &["admit", word(&key, "line")])?;
        let answer = stage.run(other, FleetProgram::Fleet, &["join", word(&ticket, "ticket")])?;
        self.passed("box is a member.", &answer)?;
        self.say(
            "Nobody may ask box for anything until box says so.",
            other.name,
            "tasuki fleet accept desk view send",
        )?;
        let answer = stage.run(other, FleetProgram::Fleet, &["accept", desk.name, "view", "send"])?;
        self.passed("desk may see views of box and send texts to its agents.", &answer)
    }

    fn bridges(&self, stage: &mut FleetStage<'_>) -> Result<(), CliError> {
        self.say("A bridge on each host connects it to the server.", "desk", "tasuki fleet run")?;
        for name in [stage.desk.name, stage.other.name] {
            stage.start_bridge(name)?;
        }
        let (desk, other) = (&stage.desk, &stage.other);
        let is_live = |host: &DemoHost, name: &str| {
            let hosts = stage.run(host, FleetProgram::Fleet, &["hosts"]).unwrap_or_default();
            let mut listed = hosts["hosts"].as_array().into_iter().flatten();
            listed.any(|one| one["host"] == name && one["state"] == "live")
        };
        stage.until("the hosts do not see each other", LIMIT, || {
            looked(desk);
            is_live(desk, other.name) && is_live(desk, desk.name)
        })?;
        self.passed("desk sees box.", &Value::Null)
    }

    fn agent(&self, stage: &FleetStage<'_>) -> Result<(), CliError> {
        let (desk, other) = (&stage.desk, &stage.other);
        self.say("An agent on box. desk lists it.", other.name, "tasuki agent create kai")?;
        stage.run(other, FleetProgram::Tasuki, &["persona", "new", SLUG, "--profile", "demo"])?;
        let cwd = other.stage.place().folder().display().to_string();
        let answer = stage.run(other, FleetProgram::Tasuki, &["agent", "create", SLUG, "--cwd", &cwd])?;
        self.passed("kai runs on box.", &answer)?;
        stage.until("desk does not see an idle kai", LIMIT, || {
            looked(desk);
            let all = stage.run(desk, FleetProgram::Tasuki, &["agents", "--all-hosts"]).unwrap_or_default();
            let hosts = all["hosts"].as_array().cloned().unwrap_or_default();
            let agents = hosts
                .iter()
                .filter(|host| host["host"] == other.name)
                .flat_map(|host| host["agents"].as_array().cloned().unwrap_or_default());
            agents.into_iter().any(|agent| agent["persona"] == SLUG && agent["state"] == "idle")
        })?;
        self.passed("desk sees that kai is idle.", &Value::Null)
    }

    fn first_text(&self, stage: &FleetStage<'_>) -> Result<(), CliError> {
        self.say("desk sends kai a text.", "desk", &format!("tasuki send kai@box \"{FIRST}\""))?;
        let answer = stage.run(&stage.desk, FleetProgram::Tasuki, &["send", "kai@box", FIRST])?;
        let verdict = word(&answer, "verdict");
        self.passed(&format!("{verdict}: kai took the text as its prompt."), &answer)?;
        self.idle(stage)
    }

    /// Waits until the agent has ended its turn.
    fn idle(&self, stage: &FleetStage<'_>) -> Result<(), CliError> {
        stage.until("kai's turn does not end", LIMIT, || {
            let all = stage.run(&stage.other, FleetProgram::Tasuki, &["agents"]).unwrap_or_default();
            let agents = all.as_array().or_else(|| all["agents"].as_array());
            agents.into_iter().flatten().any(|agent| agent["state"] == "idle")
        })
    }

    /// Sends a text, kills the desk's bridge when box has taken the letter and desk has no answer, starts it again and
    /// waits for the answer. Returns the text.
    fn second_text(&self, stage: &mut FleetStage<'_>) -> Result<&'static str, CliError> {
        for text in SECOND {
            self.say(
                "desk sends another text, and its bridge is killed while the answer is on its way.",
                "desk",
                &format!("tasuki send kai@box \"{text}\""),
            )?;
            let before = taken(&stage.other);
            let sent =
                stage.start(&stage.desk, FleetProgram::Tasuki, &["--timeout", "80s", "send", "kai@box", text])?;
            let arrived = stage.until("box does not take the letter", LIMIT, || taken(&stage.other) > before);
            let pid = stage.kill_bridge();
            let is_open = waits(&stage.desk);
            if arrived.is_ok() {
                let pid = pid.map(|pid| pid.to_string()).unwrap_or_default();
                let open =
                    if is_open { "box has the letter, desk has no answer yet." } else { "the answer was faster." };
                self.passed(&format!("SIGKILL of the bridge {pid}: {open}"), &json!({"answered": !is_open}))?;
                stage.start_bridge("desk")?;
                self.passed("The bridge is started again, and asks again.", &Value::Null)?;
            }
            let answer = stage.finish(sent);
            arrived?;
            let answer = answer?;
            self.passed(&format!("{}: the answer has come.", word(&answer, "verdict")), &answer)?;
            self.idle(stage)?;
            if is_open {
                return Ok(text);
            }
        }
        let message = "Each answer was faster than the demo, which could not kill the bridge in between.";
        Err(CliError::refused("too_fast", message))
    }

    /// Counts the letters that box has taken, and the prompts that its agent got.
    fn count(&self, stage: &FleetStage<'_>, text: &str) -> Result<(), CliError> {
        self.say("How often did the text arrive?", "box", "tasuki fleet audit")?;
        let id = last_id(&stage.other);
        let letters = arrivals(&stage.other, &id);
        let prompts = prompts(&stage.other.stage.place().folder().join("transcripts"), text);
        let counts = json!({"request_id": id, "letters": letters, "prompts": prompts});
        let letter = if letters == 1 { "letter" } else { "letters" };
        let time = if prompts == 1 { "time" } else { "times" };
        self.passed(
            &format!("box got {letters} {letter} with this request; kai got the text {prompts} {time}."),
            &counts,
        )?;
        if prompts == 1 {
            return Ok(());
        }
        Err(CliError::refused("not_once", format!("The text arrived {prompts} times, not once.")))
    }
}

fn word<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Touches `fleet/looked`, so that the host's bridge reads the rosters, as commands that list hosts do.
fn looked(host: &DemoHost) {
    let _ = std::fs::File::create(host.fleet_file("looked"));
}

/// The lines of a host's audit about texts that came from other hosts.
fn audit(host: &DemoHost) -> Vec<Value> {
    let text = std::fs::read_to_string(host.fleet_file("audit.jsonl")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["dir"] == "in" && line["kind"] == "agent_send").collect()
}

/// How many requests a host has taken.
fn taken(host: &DemoHost) -> usize {
    audit(host).iter().filter(|line| line["status"] == "taken").count()
}

fn last_id(host: &DemoHost) -> String {
    audit(host).last().map(|line| word(line, "id").to_owned()).unwrap_or_default()
}

/// How often a letter with this request has come, whether it was taken or only answered again.
fn arrivals(host: &DemoHost, id: &str) -> usize {
    audit(host).iter().filter(|line| word(line, "id") == id).count()
}

/// Whether a request of this host waits for its answer.
fn waits(host: &DemoHost) -> bool {
    let files = std::fs::read_dir(host.fleet_file("out")).into_iter().flatten().filter_map(Result::ok);
    files.into_iter().any(|file| file.file_name().to_string_lossy().ends_with(".json"))
}

/// How many prompts in the transcripts hold this text.
fn prompts(transcripts: &Path, text: &str) -> usize {
    let files = std::fs::read_dir(transcripts).into_iter().flatten().filter_map(Result::ok);
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let lines: Vec<Value> = texts
        .flat_map(|text| text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<_>>())
        .collect();
    let is_prompt = |line: &&Value| line["message"]["content"].as_str().is_some_and(|prompt| prompt.contains(text));
    lines.iter().filter(|line| line["type"] == "user").filter(is_prompt).count()
}
