//! The floor under a handoff of a real CLI: tasuki's own command for it, run again with tasuki gone, and nothing
//! between. It types when the composer is drawn, presses Enter when the text is, and goes on at the instant when a hook
//! says that the turn is over, or when the process is gone.

use crate::scene::Scene;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tasuki::agents::profile::{Profile, Profiles};
use tasuki::core::pane::{Activity, ComposerContent, Process, ScreenReading};
use tasuki::process::{identify, is_alive};

/// How long Enter is given to work before it is pressed again: some CLIs take the first one after a paste for a new
/// line.
const ENTER_WORKS: Duration = Duration::from_millis(150);
/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How long anything that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent in a window, and what is typed into it and its successors.
pub(super) struct Floor<'s> {
    scene: &'s Scene,
    profile: Profile,
    /// What starts it.
    line: String,
    instruction: String,
    skill: String,
    briefing: String,
    /// The document that the texts name.
    document: String,
    pane: String,
    process: Process,
    handoffs: usize,
}

impl Floor<'_> {
    /// Takes over the agent that tasuki's last handoff has left, with what tasuki has typed in it. The sidecar ends.
    pub(super) fn of<'s>(scene: &'s Scene, handoff: &Value) -> Floor<'s> {
        let outgoing = scene.conversation("Write a handoff document");
        let briefing = handoff["injection_prompt"].as_str().expect("a briefing");
        let successor = scene.conversation(briefing.lines().next().expect("a line"));
        let pane = scene.pane(handoff["successor_id"].as_str().expect("a successor"));
        scene.stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
        let process = process_of(scene, &pane);
        let profiles = Profiles::load(None).expect("the built-in profiles");
        Floor {
            scene,
            profile: profiles.get(scene.cli.name()).expect("a built-in profile").clone(),
            line: line_of(scene, &pane, &process),
            instruction: outgoing.last().expect("an instruction").clone(),
            skill: successor.first().expect("a skill").clone(),
            briefing: successor.get(1).expect("a briefing").clone(),
            document: handoff["file_path"].as_str().expect("a path").to_owned(),
            pane,
            process,
            handoffs: 0,
        }
    }

    /// A handoff until the successor has its briefing, and how long each step took. Then the successor is the agent.
    pub(super) fn hand_off(&mut self) -> Vec<(&'static str, Duration)> {
        self.handoffs += 1;
        let document = self.document.replace(".md", &format!("-floor-{}.md", self.handoffs));
        let (instruction, briefing) =
            (self.instruction.replace(&self.document, &document), self.briefing.replace(&self.document, &document));
        let skill = self.skill.clone();
        let mut steps = Vec::new();
        let mut began = Instant::now();
        let mut note = |name| {
            steps.push((name, began.elapsed()));
            began = Instant::now();
        };
        self.submit(&instruction);
        note("instructing");
        self.until_turn_is_over();
        note("writing");
        assert!(Path::new(&document).exists(), "the agent has written {document}\n{}", self.screen());
        self.leave();
        note("ending");
        self.open();
        note("starting");
        self.submit(&skill);
        self.until_turn_is_over();
        note("priming");
        self.submit(&briefing);
        note("briefing");
        self.until_turn_is_over();
        steps
    }

    fn until_turn_is_over(&self) {
        self.until("the turn is over", |floor| floor.is_told("stop"));
    }

    /// Types a text, and waits until the agent has taken it.
    fn submit(&self, text: &str) {
        // What was told of earlier turns; a successor's events may have the names of its predecessor's.
        for event in fs::read_dir(self.events()).expect("a folder").flatten() {
            fs::remove_file(event.path()).expect("removed");
        }
        self.put(text);
        self.enter(|floor| floor.is_told("prompt_submit"));
    }

    fn leave(&self) {
        self.put(self.profile.exit_command());
        self.enter(|floor| !is_alive(&floor.process));
    }

    /// Opens a window with the successor, and waits until its composer is drawn.
    fn open(&mut self) {
        let place = self.scene.stage.work_dir().display().to_string();
        let words = ["new-window", "-d", "-P", "-F", "#{pane_id}", "-c", &place, &self.line];
        self.pane = self.scene.stage.tmux(&words).trim().to_owned();
        self.process = process_of(self.scene, &self.pane);
        self.until("it is ready", |floor| floor.reading().activity == Activity::Ready);
    }

    fn put(&self, text: &str) {
        self.until("the composer is empty", |floor| floor.reading().composer == ComposerContent::Empty);
        let paste = ["paste-buffer", "-p", "-r", "-d", "-b", "floor", "-t", &self.pane];
        self.scene.stage.tmux(&[&["set-buffer", "-b", "floor", "--", text, ";"][..], &paste].concat());
        self.until("the text is there", |floor| floor.reading().composer != ComposerContent::Empty);
    }

    /// Presses Enter until it has worked.
    fn enter(&self, has_worked: impl Fn(&Self) -> bool) {
        let mut pressed: Option<Instant> = None;
        self.until("Enter has worked", |floor| {
            if has_worked(floor) {
                return true;
            }
            if pressed.is_none_or(|at| at.elapsed() > ENTER_WORKS) {
                floor.scene.stage.tmux(&["send-keys", "-t", &floor.pane, "Enter"]);
                pressed = Some(Instant::now());
            }
            false
        });
    }

    fn until(&self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "{what}: not within {PATIENCE:?}\n{}", self.screen());
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn screen(&self) -> String {
        self.scene.stage.screen(&self.pane)
    }

    fn reading(&self) -> ScreenReading {
        let ask = "#{pane_height} #{cursor_x} #{cursor_y}";
        let said = self.scene.stage.tmux(&[
            "display-message",
            "-p",
            "-t",
            &self.pane,
            ask,
            ";",
            "capture-pane",
            "-e",
            "-p",
            "-t",
            &self.pane,
        ]);
        let (numbers, screen) = said.split_once('\n').expect("two answers");
        let numbers: Vec<u16> = numbers.split(' ').map(|number| number.parse().expect("a number")).collect();
        let [height, x, y] = numbers[..] else { panic!("three numbers: {numbers:?}") };
        self.profile.read_screen(screen, height, (x, y))
    }

    fn events(&self) -> PathBuf {
        self.scene.stage.spool("events")
    }

    /// Whether the hooks have left an event of that kind.
    fn is_told(&self, kind: &str) -> bool {
        let mark = format!("\"event\":\"{kind}\"");
        let mut events = fs::read_dir(self.events()).into_iter().flatten().flatten();
        events.any(|entry| fs::read_to_string(entry.path()).is_ok_and(|text| text.contains(&mark)))
    }
}

fn process_of(scene: &Scene, pane: &str) -> Process {
    let pid = scene.stage.tmux(&["display-message", "-p", "-t", pane, "#{pane_pid}"]);
    identify(pid.trim().parse().expect("a number")).expect("it runs")
}

/// The line that starts the same agent again: the environment of its process, and its words. Where the CLI has given
/// itself another name, those of its pane's command take their place.
fn line_of(scene: &Scene, pane: &str, process: &Process) -> String {
    let words = |name: &str| {
        let mut bytes = fs::read(format!("/proc/{}/{name}", process.pid)).expect("a process of ours");
        assert_eq!(bytes.pop(), Some(0), "each word ends with a zero");
        let words = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        words.collect::<Vec<_>>()
    };
    let quoted = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    // The pane of the predecessor is gone; tmux names the new one itself.
    let variables: Vec<String> = words("environ").iter().filter(|word| !word.starts_with("TMUX")).map(quoted).collect();
    let command = match words("cmdline").as_slice() {
        [_, rest @ ..] if rest.iter().all(String::is_empty) => {
            scene.stage.tmux(&["display-message", "-p", "-t", pane, "#{pane_start_command}"]).trim().to_owned()
        }
        words => words.iter().map(quoted).collect::<Vec<_>>().join(" "),
    };
    format!("exec env -i {} {command}", variables.join(" "))
}
