//! Some deliveries one after the other, to agents of one CLI in one private home.

use super::faults::{self, Fault};
use super::judge::{self, Row};
use super::texts::{self, Text};
use crate::cli::Cli;
use crate::random::Random;
use crate::scene::{PERSONA, Scene};
use crate::stage_files::read_json;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long an answer may take: a busy agent and a dialog are waited for.
const ANSWER: Duration = Duration::from_secs(120);
/// How long a start may take, its priming included.
const START: Duration = Duration::from_secs(180);
/// How long an agent may take to come to rest.
const REST: Duration = Duration::from_secs(40);
/// How long a delivered text may take to the model: it may wait for the turn that runs.
const HEARD: Duration = Duration::from_secs(90);

/// The part, while it is played.
pub(super) struct Part {
    pub(super) scene: Scene,
    agent: RefCell<String>,
    pub(super) pane: String,
}

/// Plays the deliveries with these numbers; each row is written as soon as it is known.
pub(super) fn play(cli: Cli, seed: u64, numbers: std::ops::Range<u64>, out: &Path) {
    let scene = Scene::with(cli, "", |scene| furnish(scene, cli));
    let mut part = Part { scene, agent: RefCell::default(), pane: String::new() };
    let mut file = fs::OpenOptions::new().create(true).append(true).open(out).expect("a file for the rows");
    let mut rows = Vec::new();
    for number in numbers {
        if part.agent.borrow().is_empty() {
            part.start();
        }
        let (row, text) = part.deliver(cli, seed, number);
        row.write(&mut file);
        rows.push((row, text));
    }
    // What lay in a composer may have come later.
    sleep(Duration::from_secs(2));
    for (row, text) in &mut rows {
        let before = row.count;
        row.look(&part, text);
        if row.count != before {
            row.write(&mut file);
        }
    }
}

/// A short skill, so that starts are quick; and a user who wants to be asked before a command is run.
fn furnish(scene: &Scene, cli: Cli) {
    let persona = scene.stage.home().join("data/personas").join(PERSONA);
    fs::write(persona.join("skill.md"), "# Skill\n\nBe brief.\n").expect("a skill");
    cli.ask_always(&scene.home());
}

impl Part {
    /// Starts an agent and waits until it is primed.
    fn start(&mut self) {
        let id = self.scene.stage.send(&json!({"kind": "agent_create", "persona_slug": PERSONA}));
        let path = self.scene.stage.spool(&format!("results/{id}.json"));
        let answer = wait(START, || read_json(&path)).unwrap_or_default();
        let agent = answer["result"]["agent_id"].as_str().unwrap_or_else(|| panic!("no agent: {answer}")).to_owned();
        self.agent.replace(agent.clone());
        let due = Instant::now() + START;
        loop {
            let view = self.view();
            if view["primed"] == true && view["state"] == "idle" {
                break;
            }
            assert!(Instant::now() < due, "the agent did not become ready\n{}", self.scene.story());
            sleep(Duration::from_millis(100));
        }
        self.pane = self.scene.pane(&agent);
    }

    /// Ends the agent; the next delivery starts another one.
    fn end(&self) {
        let agent = self.agent.take();
        self.scene.stage.ask(&json!({"kind": "agent_shutdown", "agent_id": agent, "force": true}));
        let due = Instant::now() + REST;
        while self.scene.stage.agent_view(&agent)["ended_at"].is_null() && Instant::now() < due {
            sleep(Duration::from_millis(100));
        }
    }

    fn view(&self) -> Value {
        self.scene.stage.agent_view(&self.agent.borrow())
    }

    pub(super) fn state(&self) -> String {
        self.view()["state"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn until_state(&self, state: &str, within: Duration) -> bool {
        wait(within, || (self.state() == state).then_some(())).is_some()
    }

    pub(super) fn tmux(&self, args: &[&str]) {
        self.scene.stage.tmux(args);
    }

    /// Types as a person does, without looking.
    pub(super) fn keys(&self, text: &str, enter: bool) {
        self.tmux(&["send-keys", "-t", &self.pane, "-l", "--", text]);
        if enter {
            // Gemini takes an Enter that follows too soon for a line end.
            sleep(Duration::from_millis(700));
            self.tmux(&["send-keys", "-t", &self.pane, "Enter"]);
        }
    }

    /// A file outside the folder that the agent may write in.
    pub(super) fn scratch(&self) -> PathBuf {
        self.scene.stage.home().join("touched")
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(pid) = self.view()["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()) {
            faults::signal(pid, signal);
        }
    }

    fn deliver(&self, cli: Cli, seed: u64, number: u64) -> (Row, Text) {
        let mut random = Random::of(super::seed_of(seed, cli, number));
        let text = texts::make(&mut random, format!("tok{seed:x}{}{number}z", cli.name()));
        let fault = Fault::pick(&mut random, cli);
        let words = format!("own{number}w");
        let went_along = fault.before(self, &words);
        let begun = Instant::now();
        let request = json!({"kind": "agent_send", "agent_id": &*self.agent.borrow(), "text": text.body});
        let id = self.scene.stage.send(&request);
        fault.meanwhile(self, &mut random, &words);
        let path = self.scene.stage.spool(&format!("results/{id}.json"));
        let answer = wait(ANSWER, || read_json(&path));
        let seconds = begun.elapsed().as_secs_f64();
        let mut row = Row::new(seed, number, cli, &text, fault, answer.as_ref(), seconds);
        if !went_along {
            row.by_person = true;
            row.note.push_str("the CLI did not take the person's own prompt before it; ");
        }
        row.heard(self, &text, HEARD);
        self.tidy(&mut row, fault, &words);
        (row, text)
    }

    /// Waits until the agent is at rest again; one of which a text of ours may be in the way is ended.
    fn tidy(&self, row: &mut Row, fault: Fault, words: &str) {
        row.screen = self.last_lines();
        if fault == Fault::Draft && row.verdict == "refused" && !row.screen.contains(words) {
            row.person = "the draft is gone from the screen".to_owned();
        }
        if fault.is_a_person() {
            self.tmux(&["send-keys", "-t", &self.pane, "Enter"]);
            sleep(Duration::from_millis(700));
        }
        let rests = wait(REST, || (self.state() == "idle").then_some(()));
        if rests.is_none() {
            row.note.push_str("the agent did not come to rest; ");
        }
        if fault.is_a_person() && row.person.is_empty() {
            row.person = self.scene.model.look(|heard| judge::of_person(heard, words, fault == Fault::Prompts));
        }
        if row.verdict != "delivered" && row.verdict != "refused" || rests.is_none() || row.is_odd() {
            self.end();
        }
    }

    fn last_lines(&self) -> String {
        let screen = self.scene.stage.screen(&self.pane);
        let lines: Vec<&str> = screen.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(14)..].join("\n")
    }
}

/// Looks every 20 ms, for so long.
pub(super) fn wait<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let due = Instant::now() + within;
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if Instant::now() > due {
            return None;
        }
        sleep(Duration::from_millis(20));
    }
}
