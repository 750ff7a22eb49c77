//! A whole handoff of the demo agent until its successor has the briefing, beside the bare floor: a driver that types
//! the same texts into the same agent, knows the instant when each turn and each process is over, and proves nothing.

mod floor;

use crate::Length;
use crate::drops::register;
use crate::place::{Place, TASUKI, Worker, said_by};
use crate::rows;
use crate::sample::{ms, percentile, rounds};
use crate::table::Row;
use floor::{FloorAgent, Texts};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tasuki::contract::{HandoffView, StepView};
use tasuki::core::time::millis;

/// The three texts of a handoff are long enough to be those of a person's own persona.
const SKILL: &str = "# Skill\n\nKeep notes of what you decide, and why.\n";

/// One handoff of ours.
pub(crate) struct Measured {
    /// Until the successor has its briefing.
    pub(crate) took: Duration,
    /// Each step of it.
    steps: Vec<(String, Duration)>,
}

/// A home with a sidecar, and the agent that is handed off next.
pub(crate) struct Relay {
    program: String,
    home: PathBuf,
    sidecar: Worker,
    agent: String,
}

impl Relay {
    pub(crate) fn start(program: &str, place: &Place, name: &str, folder: &Path, config: &str) -> Relay {
        let home = place.home(name);
        fs::write(home.join("config.toml"), config).expect("a configuration");
        persona(&home, "kai", folder);
        let sidecar = Worker::of(program, place, &home);
        // It answers once it has seen an event.
        let event =
            r#"{"v":1,"event":"session_start","agent_id":"0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9b002","session_id":"s"}"#;
        register(&home, 1, |_| event.to_owned());
        let created = said_by(program, &home, &["agent", "create", "kai"]);
        let agent = created["agent_id"].as_str().expect("an id").to_owned();
        Relay { program: program.to_owned(), home, sidecar, agent }
    }

    /// A whole handoff; the successor is the next agent. Gives the path of its document too.
    pub(crate) fn hand_off(&mut self) -> (Measured, String) {
        let end = said_by(&self.program, &self.home, &["handoff", &self.agent, "--reason", "a trial", "--wait"]);
        let view: HandoffView = serde_json::from_value(end["handoff"].clone()).expect("a handoff");
        self.agent = view.successor_id.clone().expect("an id");
        (measured(&view), view.file_path)
    }

    pub(crate) fn end(self, place: &Place) {
        drop(self.sidecar);
        place.remove(&self.home);
    }
}

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let (folder, log) = (place.path("handoff-place"), place.path("handoff-prompts"));
    fs::create_dir_all(&folder).expect("a folder");
    // The agents that tasuki starts note each prompt that they are given.
    let noted = place.tmux(&["set-environment", "-g", "TASUKI_DEMO_LOG", log.to_str().expect("a path")]).status();
    assert!(noted.is_ok_and(|status| status.success()), "tmux takes a variable");
    let mut late = Relay::start(TASUKI, place, "handoff", &folder, "");
    // The first handoff tells which texts are typed; it is not counted.
    let first = late.hand_off();
    let texts = Texts::read(&log, &first.1);
    let mut early = Relay::start(TASUKI, place, "handoff-early", &folder, "[handoff]\nstarting = \"early\"\n");
    let mut floor = FloorAgent::start(place, texts);
    let (mut ours, mut ours_early, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in rounds(length.pick(20, 5), Duration::from_secs(length.pick(240, 60))) {
        ours.push(late.hand_off().0);
        bare.push(floor.hand_off());
        ours_early.push(early.hand_off().0);
    }
    drop(floor);
    for relay in [late, early] {
        relay.end(place);
    }
    eprintln!("{}\nearly: {}", by_step(&ours), by_step(&ours_early));
    let times = |measured: &[Measured]| -> Vec<Duration> { measured.iter().map(|one| one.took).collect() };
    vec![
        Row::times(rows::HANDOFF, &times(&ours), &bare, 0.5, 1.25),
        Row::times(rows::HANDOFF_EARLY, &times(&ours_early), &bare, 0.5, 1.25),
    ]
}

/// Makes a persona of demo agents.
pub(crate) fn persona(home: &Path, slug: &str, cwd: &Path) {
    let folder = home.join("data/personas").join(slug);
    fs::create_dir_all(&folder).expect("a folder");
    let persona = format!("profile = \"demo\"\ncwd = {:?}\n", cwd.display().to_string());
    fs::write(folder.join("persona.toml"), persona).expect("a persona");
    fs::write(folder.join("skill.md"), SKILL).expect("a skill");
}

fn measured(view: &HandoffView) -> Measured {
    let began = millis(&view.created_at).expect("a time");
    let steps: Vec<(String, Duration)> =
        view.steps.iter().take_while(|step| step.step.as_str() != "reading").map(length_of).collect();
    let briefed = view.steps.iter().find(|step| step.step.as_str() == "reading").expect("it was briefed");
    let took = millis(&briefed.entered_at).expect("a time") - began;
    let took = Duration::from_millis(u64::try_from(took).expect("time goes on"));
    Measured { took, steps }
}

fn length_of(step: &StepView) -> (String, Duration) {
    let at = |time: &str| millis(time).expect("a time");
    let left = step.left_at.as_deref().map_or(0, at);
    let took = u64::try_from(left - at(&step.entered_at)).unwrap_or_default();
    (step.step.as_str().to_owned(), Duration::from_millis(took))
}

/// Where the time goes: the median of each step.
fn by_step(handoffs: &[Measured]) -> String {
    let names: Vec<&String> = handoffs[0].steps.iter().map(|(name, _)| name).collect();
    let median = |name: &str| {
        let times: Vec<Duration> = handoffs
            .iter()
            .flat_map(|one| one.steps.iter().filter(|(step, _)| step == name).map(|(_, took)| *took))
            .collect();
        format!("{name} {}", ms(percentile(&times, 0.5)))
    };
    format!("a handoff by step: {}", names.into_iter().map(|name| median(name)).collect::<Vec<_>>().join(", "))
}
