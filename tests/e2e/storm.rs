//! `kill -9` under load: writers drop requests and log what they were promised, agents are handed off, texts are sent,
//! and the sidecar is killed again and again. In the end every request has one result, the very one that was seen
//! first, every text was typed at most once, and nobody has two successors.

use super::support::random::Random;
use super::support::stage::Stage;
use super::support::stage_files::{delivery_ids, demo_agents_with, read_json};
use super::support::tally::{self, is_long};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Kills in the gate and in the long suite.
const ROUNDS: (u32, u32) = (10, 500);
/// Agents in the gate and in the long suite.
const AGENTS: (usize, usize) = (4, 20);
/// Programs that drop requests at the same time.
const WRITERS: u64 = 4;
/// The longest that the sidecar lives, in milliseconds: a handoff that is left alone takes a few of these.
const LIFE_MS: u64 = 900;
/// How long a writer waits at most between two requests, in milliseconds: short and long suite.
const PAUSE_MS: (u64, u64) = (120, 250);
/// How long everything may take to come to its end after the last kill.
const SETTLE: Duration = Duration::from_secs(240);
/// Limits that end a handoff in doubt soon enough.
const LIMITS: &str = "[limits]\nwaiting = \"30s\"\ninstructing = \"10s\"\nwriting = \"30s\"\nending = \"15s\"\nstarting = \"30s\"\npriming = \"20s\"\nbriefing = \"10s\"\n";

/// What a writer knows of one of its requests.
struct Asked {
    bytes: String,
    /// The answer as it was first seen.
    promised: Option<Value>,
    /// The agent that a text was sent to, and the word in it that no other text has.
    text: Option<(String, String)>,
}

/// A dashboard: it sees files, and nothing else.
struct Writer {
    name: String,
    spool: PathBuf,
    view: PathBuf,
    random: Random,
    /// Agents that were not handed off yet.
    agents: Vec<String>,
    asked: BTreeMap<String, Asked>,
    handoffs: Vec<(String, String)>,
}

impl Writer {
    fn run(mut self, stop: &AtomicBool) -> Writer {
        let pause = if is_long() { PAUSE_MS.1 } else { PAUSE_MS.0 };
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(self.random.below(pause)));
            self.ask();
            self.look();
        }
        self
    }

    fn ask(&mut self) {
        let number = self.asked.len();
        let word = format!("word-{}-{number}-end", self.name);
        let agent = (!self.agents.is_empty()).then(|| self.random.one_of(&self.agents).clone());
        let mut text = None;
        let request = match (self.random.below(20), agent) {
            (0..=1, Some(agent)) if self.is_idle(&agent) => {
                self.agents.retain(|other| *other != agent);
                json!({"kind": "handoff", "agent_id": agent, "reason": "context_limit"})
            }
            (2..=7, Some(agent)) => {
                text = Some((agent.clone(), word.clone()));
                json!({"kind": "agent_send", "agent_id": agent, "text": format!("Please note the {word}.")})
            }
            (8, _) => json!({"kind": "handoff", "agent_id": "nobody", "reason": ""}),
            (9, _) if number > 0 => return self.ask_again(),
            _ => json!({"kind": "handoff_cancel", "handoff_id": word}),
        };
        let mut request = request;
        request["v"] = json!(1);
        let id = format!("{}-{number}", self.name);
        let bytes = request.to_string();
        self.drop_request(&id, &bytes);
        self.asked.insert(id, Asked { bytes, promised: None, text });
    }

    /// The same id and the same bytes again: nothing else may happen.
    fn ask_again(&mut self) {
        let ids: Vec<String> = self.asked.keys().cloned().collect();
        let id = self.random.one_of(&ids).clone();
        let bytes = self.asked[&id].bytes.clone();
        self.drop_request(&id, &bytes);
    }

    fn drop_request(&self, id: &str, bytes: &str) {
        let scratch = self.spool.join("tmp").join(id);
        fs::write(&scratch, bytes).expect("written");
        fs::rename(&scratch, self.spool.join("requests").join(format!("{id}.json"))).expect("dropped");
    }

    fn is_idle(&self, agent: &str) -> bool {
        let view = read_json(&self.view.join("agents").join(format!("{agent}.json"))).unwrap_or(Value::Null);
        view["primed"] == true && view["state"] == "idle"
    }

    /// Notes what was answered, and takes over the successors.
    fn look(&mut self) {
        for (id, asked) in self.asked.iter_mut().filter(|(_, asked)| asked.promised.is_none()) {
            let Some(answer) = read_json(&self.spool.join("results").join(format!("{id}.json"))) else { continue };
            if let Some(handoff) = answer["result"]["handoff_id"].as_str() {
                let request: Value = serde_json::from_str(&asked.bytes).expect("our own");
                self.handoffs.push((handoff.to_owned(), request["agent_id"].as_str().expect("an id").to_owned()));
            }
            asked.promised = Some(answer);
        }
        for (handoff, _) in &self.handoffs {
            let view = read_json(&self.view.join("handoffs").join(format!("{handoff}.json"))).unwrap_or(Value::Null);
            let Some(successor) = view["successor_id"].as_str().filter(|_| view["step"] == "done") else { continue };
            let used = self.handoffs.iter().any(|(_, agent)| agent == successor);
            let asked = self.asked.values().any(|asked| asked.bytes.contains(successor) && asked.text.is_none());
            if !used && !asked && !self.agents.iter().any(|agent| agent == successor) {
                self.agents.push(successor.to_owned());
            }
        }
    }
}

/// Waits for something after the storm.
fn settle(stage: &Stage, what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + SETTLE;
    while !is_so() {
        assert!(Instant::now() < until, "not settled: {what}\n{}", stage.story());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn kill_9_under_load_loses_nothing_and_types_nothing_twice() {
    let mut random = Random::from_env();
    let stage = Stage::with_config(LIMITS);
    let (rounds, agents) = if is_long() { (ROUNDS.1, AGENTS.1) } else { (ROUNDS.0, AGENTS.0) };
    let slugs: Vec<String> = (0..agents).map(|number| format!("dev-{number}")).collect();
    let mut agents = stage.agents(&slugs.iter().map(String::as_str).collect::<Vec<_>>());
    let stop = AtomicBool::new(false);
    let share = agents.len() / usize::try_from(WRITERS).expect("few");
    let writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer {
            name: format!("w{number}"),
            spool: stage.spool(""),
            view: stage.home().join("view"),
            random: Random::of(random.below(u64::MAX)),
            agents: agents.split_off(agents.len() - share),
            asked: BTreeMap::new(),
            handoffs: Vec::new(),
        })
        .collect();
    let stop_now = &stop;
    let writers = std::thread::scope(|scope| {
        let running: Vec<_> = writers.into_iter().map(|writer| scope.spawn(|| writer.run(stop_now))).collect();
        for _ in 0..rounds {
            std::thread::sleep(Duration::from_millis(random.below(LIFE_MS)));
            stage.end_sidecar(Signal::SIGKILL);
            // Some die again before they have said a word.
            if random.below(5) == 0 {
                stage.spawn_sidecar();
                std::thread::sleep(Duration::from_millis(random.below(60)));
                stage.end_sidecar(Signal::SIGKILL);
            }
            stage.start_sidecar();
        }
        stop.store(true, Ordering::Relaxed);
        running.into_iter().map(|writer| writer.join().expect("a writer does not fail")).collect::<Vec<_>>()
    });
    check(&stage, writers, rounds, random.seed);
}

fn check(stage: &Stage, mut writers: Vec<Writer>, rounds: u32, seed: u64) {
    settle(stage, "every request is answered", || {
        writers.iter_mut().for_each(Writer::look);
        writers.iter().all(|writer| writer.asked.values().all(|asked| asked.promised.is_some()))
            && stage.names("requests").is_empty()
    });
    let is_over = |view: &Value| ["done", "failed"].contains(&view["step"].as_str().unwrap_or_default());
    settle(stage, "every handoff has ended", || stage.views("handoffs").iter().all(is_over));
    let (mut lost, mut twice) = (Vec::new(), Vec::new());
    let typed = typed_words(stage);
    let mut asked_in_all = 0;
    for (id, asked) in writers.iter().flat_map(|writer| &writer.asked) {
        asked_in_all += 1;
        let now = read_json(&stage.spool("results").join(format!("{id}.json")));
        if now.is_none() || now != asked.promised {
            lost.push(format!("{id} was promised {:?} and has {now:?}", asked.promised));
        }
        let Some((agent, word)) = &asked.text else { continue };
        let count = typed.get(word).copied().unwrap_or(0);
        if count > 1 {
            twice.push(format!("{word} was typed {count} times into {agent}"));
        }
        let delivered = now.is_some_and(|answer| answer["result"]["verdict"] == "delivered");
        if delivered && count == 0 {
            lost.push(format!("{word} is said to be delivered to {agent}"));
        }
    }
    let handoffs = stage.views("handoffs");
    for view in &handoffs {
        check_handoff(stage, view, &mut lost, &mut twice);
    }
    let begun: usize = writers.iter().map(|writer| writer.handoffs.len()).sum();
    assert_eq!(begun, handoffs.len(), "a handoff for each that was promised\n{}", stage.story());
    check_agents(stage, &mut lost, &mut twice);
    stage.check_once();
    let done = handoffs.iter().filter(|view| view["step"] == "done").count();
    let texts: usize =
        stage.recorded().iter().map(|line| delivery_ids(line["text"].as_str().unwrap_or("")).len()).sum();
    println!("seed {seed}: {rounds} rounds, {asked_in_all} requests, {texts} texts, {done} of {begun} handoffs done");
    tally::add(tally::DEATHS, u64::from(rounds));
    tally::add(tally::REQUESTS, asked_in_all);
    tally::add(tally::TEXTS, texts as u64);
    tally::none_lost_none_twice(&format!("seed {seed}"), &lost, &twice);
}

/// How often each word of a sent text came to an agent.
fn typed_words(stage: &Stage) -> BTreeMap<String, u32> {
    let mut words = BTreeMap::new();
    for line in stage.recorded() {
        let text = line["text"].as_str().unwrap_or_default().to_owned();
        for word in text.split_whitespace().filter(|word| word.starts_with("word-")) {
            *words.entry(word.trim_end_matches('.').to_owned()).or_default() += 1;
        }
    }
    words
}

fn check_handoff(stage: &Stage, view: &Value, lost: &mut Vec<String>, twice: &mut Vec<String>) {
    let id = view["handoff_id"].as_str().expect("an id");
    let agent = view["agent_id"].as_str().expect("an id");
    let failures = usize::from(view["step"] == "failed");
    let told = (stage.errors_of(id).len(), stage.lines_of(id, "handoff.failed").len());
    if told.0 < failures || told.1 < failures {
        lost.push(format!("the failure of {id}: {told:?}"));
    }
    if told.0 > failures || told.1 > failures {
        twice.push(format!("the failure of {id}: {told:?}"));
    }
    let (instructions, primings, briefings) = stage.typed(agent);
    if instructions > 1 || primings > 1 || briefings > 1 {
        twice.push(format!("texts of {agent}: {instructions} {primings} {briefings}"));
    }
    let successor = view["successor_id"].as_str();
    if view["step"] == "done" {
        let (_, primings, briefings) = stage.typed(successor.expect("done has a successor"));
        if (primings, briefings) != (1, 1) {
            lost.push(format!("the successor of {id} was primed {primings} times and briefed {briefings} times"));
        }
    }
    if successor.is_some() || (view["step"] == "done" && stage.processes(agent).is_empty()) {
        assert!(view["recorded_at"].is_string(), "nothing comes after the record without it: {view:#}");
    }
}

/// Each agent has one process at most, one successor at most; and no process is an agent that nobody knows.
fn check_agents(stage: &Stage, lost: &mut Vec<String>, twice: &mut Vec<String>) {
    let agents = stage.views("agents");
    let known: BTreeSet<&str> = agents.iter().filter_map(|view| view["agent_id"].as_str()).collect();
    let mut successors: BTreeMap<&str, u32> = BTreeMap::new();
    for previous in agents.iter().filter_map(|view| view["previous_agent_id"].as_str()) {
        *successors.entry(previous).or_default() += 1;
    }
    twice.extend(successors.iter().filter(|(_, count)| **count > 1).map(|(agent, _)| format!("successors of {agent}")));
    let mut running: BTreeMap<String, u32> = BTreeMap::new();
    let home = format!("TASUKI_HOME={}", stage.home().display());
    for pid in demo_agents_with(&home) {
        let pid = u32::try_from(pid).expect("an id");
        if let Some(id) = tasuki::process::environ_var(pid, "TASUKI_AGENT_ID") {
            *running.entry(id).or_default() += 1;
        }
    }
    twice.extend(running.iter().filter(|(_, count)| **count > 1).map(|(agent, _)| format!("processes of {agent}")));
    lost.extend(running.keys().filter(|id| !known.contains(id.as_str())).map(|id| format!("{id} is an orphan")));
}
