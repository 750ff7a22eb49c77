//! The floor: the same agent, the same texts, and nothing between. It types when the composer is drawn, and goes on at
//! the instant when the agent says that its turn is over, or when its process is gone.

use crate::place::{Place, TASUKI, wait_until};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tasuki::core::pane::Process;
use tasuki::process::{identify, is_alive};

/// Pause between two looks at what the agent has noted.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// What an empty composer of the demo agent shows.
const INVITATION: &str = "Ask for a change";

/// The texts of a handoff, as tasuki types them.
pub(super) struct Texts {
    instruction: String,
    skill: String,
    briefing: String,
    /// The document that they name.
    document: String,
}

impl Texts {
    /// Reads them from what the agents have noted of the first handoff.
    pub(super) fn read(log: &Path, document: &str) -> Texts {
        let lines = fs::read_to_string(log).expect("the prompts");
        let mut texts = lines.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            line["text"].as_str().map(str::to_owned)
        });
        // The first agent was primed too, before its handoff.
        let mut next =
            |has: &str| texts.find(|text| text.contains(has)).unwrap_or_else(|| panic!("no text with {has:?}"));
        let instruction = next("Write a handoff document");
        let (skill, briefing) = (next("Keep notes"), next("Here is your handoff"));
        Texts { instruction, skill, briefing, document: document.to_owned() }
    }
}

/// An agent in a window, and the folder in which its hooks leave their events.
pub(super) struct FloorAgent<'p> {
    place: &'p Place,
    texts: Texts,
    home: PathBuf,
    log: PathBuf,
    pane: String,
    process: Process,
    handoffs: usize,
}

impl FloorAgent<'_> {
    pub(super) fn start(place: &Place, texts: Texts) -> FloorAgent<'_> {
        let (home, log) = (place.home("handoff-floor"), place.path("handoff-floor-prompts"));
        let (pane, process) = open(place, &home, &log);
        FloorAgent { place, texts, home, log, pane, process, handoffs: 0 }
    }

    /// A handoff, and how long it took until the successor had its briefing. Then the successor is the agent.
    pub(super) fn hand_off(&mut self) -> Duration {
        self.handoffs += 1;
        self.forget();
        let document = self.home.join(format!("document-{}.md", self.handoffs));
        let document = document.to_str().expect("a path").to_owned();
        let with = |text: &str| text.replace(&self.texts.document, &document);
        let (instruction, briefing) = (with(&self.texts.instruction), with(&self.texts.briefing));
        let skill = self.texts.skill.clone();
        let began = Instant::now();
        self.turn(&instruction);
        assert!(Path::new(&document).exists(), "the agent has written {document}");
        self.put("/exit");
        wait_until("it has ended", LOOK_EVERY, || !is_alive(&self.process));
        (self.pane, self.process) = open(self.place, &self.home, &self.log);
        self.turn(&skill);
        let (prompts, turns) = (self.prompts(), self.turns());
        self.put(&briefing);
        wait_until("it is briefed", LOOK_EVERY, || self.prompts() > prompts);
        let took = began.elapsed();
        wait_until("it has read", LOOK_EVERY, || self.turns() > turns);
        took
    }

    /// Removes what was noted of earlier handoffs: it is read again and again while something is waited for.
    fn forget(&self) {
        fs::write(&self.log, "").expect("emptied");
        for event in fs::read_dir(self.home.join("spool/events")).expect("a folder").flatten() {
            fs::remove_file(event.path()).expect("removed");
        }
    }

    /// Types a text and waits for the end of the turn.
    fn turn(&self, text: &str) {
        let turns = self.turns();
        self.put(text);
        wait_until("the turn is over", LOOK_EVERY, || self.turns() > turns);
    }

    fn put(&self, text: &str) {
        let paste = ["paste-buffer", "-p", "-r", "-d", "-b", "floor", "-t", &self.pane];
        let typed = [
            &["set-buffer", "-b", "floor", "--", text, ";"][..],
            &paste,
            &[";", "send-keys", "-t", &self.pane, "Enter"],
        ];
        self.place.tmux_says(&typed.concat());
    }

    /// How many prompts the agents have taken.
    fn prompts(&self) -> usize {
        fs::read_to_string(&self.log).unwrap_or_default().matches("\"text\":").count()
    }

    /// How many turns are over.
    fn turns(&self) -> usize {
        let events = fs::read_dir(self.home.join("spool/events")).into_iter().flatten().flatten();
        events.filter(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains("\"stop\""))).count()
    }
}

/// Opens a window with an agent, and waits until its composer is drawn.
fn open(place: &Place, home: &Path, log: &Path) -> (String, Process) {
    let program = format!(
        "exec env TASUKI_HOME={} TASUKI_DEMO_LOG={} TASUKI_AGENT_ID=0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9b003 {TASUKI} demo-agent",
        home.display(),
        log.display()
    );
    let made = place.tmux_says(&["new-window", "-d", "-P", "-F", "#{pane_id} #{pane_pid}", "-t", "user:", &program]);
    let (pane, pid) = made.split_once(' ').expect("a pane and a process");
    wait_until("it is ready", LOOK_EVERY, || place.tmux_says(&["capture-pane", "-p", "-t", pane]).contains(INVITATION));
    let process = identify(pid.parse().expect("a number")).expect("it runs");
    (pane.to_owned(), process)
}
