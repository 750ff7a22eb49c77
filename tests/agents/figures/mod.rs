//! How long a handoff of a real CLI takes until the successor is briefed, beside the bare floor: a driver that runs the
//! same command, types the same texts, knows the instant when each turn and each process is over, and proves nothing.

mod floor;

use crate::cli::Cli;
use crate::play;
use crate::scene::{PERSONA, Scene};
use floor::Floor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tasuki::core::time::millis;

/// The word on the command line.
pub(crate) const WORD: &str = "figures";
/// The first argument of a process that measures one CLI.
pub(crate) const PART: &str = "--figures-part";
/// How many times as long as the floor a handoff may take.
const GOAL: f64 = 1.15;
/// How many handoffs are measured of each side, unless it is said.
const ROUNDS: usize = 5;
/// How long one handoff of each side may take at most.
const ROUND_WITHIN: Duration = Duration::from_secs(120);

/// What one CLI took, in milliseconds.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct Figures {
    ours: Vec<i64>,
    /// The same with successors that start early, with the times of its steps.
    early: Vec<i64>,
    early_steps: BTreeMap<String, Vec<i64>>,
    floor: Vec<i64>,
    /// Of each step of ours, all its times.
    steps: BTreeMap<String, Vec<i64>>,
    /// The same of the floor.
    floor_steps: BTreeMap<String, Vec<i64>>,
}

/// Measures one CLI in this process.
pub(crate) fn part(args: &[String]) -> ExitCode {
    let [cli, rounds, out] = args else { return ExitCode::from(2) };
    let (Some(cli), Ok(rounds)) = (Cli::named(cli), rounds.parse()) else { return ExitCode::from(2) };
    let figures = measure(cli, rounds);
    fs::write(out, serde_json::to_vec(&figures).expect("JSON")).expect("written");
    ExitCode::SUCCESS
}

/// Measures each CLI that is named, and prints a table. A goal that is missed is told, and is no failure.
pub(crate) fn all(args: &[String]) -> ExitCode {
    let (mut clis, mut rounds, mut words) = (Vec::new(), ROUNDS, args.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--rounds" => rounds = words.next().and_then(|text| text.parse().ok()).unwrap_or(ROUNDS),
            // One CLI at a time: what is measured must not wait for its neighbour.
            "--jobs" => drop(words.next()),
            "--skip" => println!("skipped: {}", words.next().map_or("", String::as_str)),
            name => clis.extend(Cli::named(name)),
        }
    }
    let folder = tempfile::Builder::new().prefix("figures.").tempdir().expect("a folder for the figures");
    let mut failed = false;
    println!("| a handoff until the successor is briefed, p50 | ours | floor | ratio | goal |\n|---|---|---|---|---|");
    for cli in clis {
        let out = folder.path().join(cli.name());
        let within = ROUND_WITHIN * u32::try_from(3 * rounds + 2).unwrap_or(u32::MAX);
        let args = [PART.to_owned(), cli.name().to_owned(), rounds.to_string(), out.display().to_string()];
        match play::apart(&args, within) {
            Ok(()) => print(cli, &out),
            Err(story) => {
                failed = true;
                println!("{story}\n{} could not be measured", cli.name());
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print(cli: Cli, out: &Path) {
    let figures: Figures = serde_json::from_slice(&fs::read(out).expect("it was written")).expect("JSON");
    let floor = median(&figures.floor);
    for (what, times) in [("", &figures.ours), (", its successor starts early", &figures.early)] {
        let ours = median(times);
        let ratio = ours as f64 / floor as f64;
        let missed = if ratio > GOAL { ": **missed**" } else { "" };
        println!("| {}{what} | {ours} ms | {floor} ms | {ratio:.2} | ≤ {GOAL}{missed} |", cli.name());
    }
    eprintln!("{} by step, in ms: {}", cli.name(), by_step(&figures.steps));
    eprintln!("{} early, in ms: {}", cli.name(), by_step(&figures.early_steps));
    eprintln!("{}'s floor, in ms: {}", cli.name(), by_step(&figures.floor_steps));
}

/// The median of each step, in the order in which they come.
fn by_step(steps: &BTreeMap<String, Vec<i64>>) -> String {
    const NAMES: [&str; 9] =
        ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing"];
    let said = NAMES.iter().filter_map(|name| steps.get(*name).map(|times| format!("{name} {}", median(times))));
    said.collect::<Vec<_>>().join(", ")
}

fn median(times: &[i64]) -> i64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn measure(cli: Cli, rounds: usize) -> Figures {
    let mut figures = Figures::default();
    let (_, early) = hand_offs(cli, rounds, "[handoff]\nstarting = \"early\"\n");
    early.iter().for_each(|handoff| figures.early.push(note(&mut figures.early_steps, handoff)));
    let (scene, late) = hand_offs(cli, rounds, "");
    late.iter().for_each(|handoff| figures.ours.push(note(&mut figures.steps, handoff)));
    let mut floor = Floor::of(&scene, late.last().expect("one at least"));
    floor.hand_off();
    for _ in 0..rounds {
        let steps = floor.hand_off();
        let ms = |time: Duration| i64::try_from(time.as_millis()).expect("it fits");
        figures.floor.push(ms(steps.iter().map(|(_, time)| *time).sum()));
        for (name, time) in steps {
            figures.floor_steps.entry(name.to_owned()).or_default().push(ms(time));
        }
    }
    figures
}

/// Handoffs, one after another. The first one is not among them: files that it has read are in memory afterwards.
fn hand_offs(cli: Cli, rounds: usize, config: &str) -> (Scene, Vec<Value>) {
    // A document with faults would be asked for twice, and only tasuki finds them.
    let scene = Scene::with(cli, &format!("[document]\ncheck = \"warn\"\n{config}"), |_| {});
    scene.succeeds(&["agent", "create", PERSONA, "--profile", cli.name()]);
    let mut all = Vec::new();
    for _ in 0..=rounds {
        scene.succeeds(&["handoff", PERSONA, "--reason", "a trial", "--wait"]);
        let last = latest(&scene);
        scene.until_idle(last["successor_id"].as_str().expect("a successor"));
        all.push(last);
    }
    all.remove(0);
    (scene, all)
}

fn latest(scene: &Scene) -> Value {
    let handoffs = scene.stage.views("handoffs");
    let last = handoffs.into_iter().max_by_key(|view| view["created_at"].as_str().map(str::to_owned));
    let last = last.expect("there is a handoff");
    assert_eq!(last["step"], json!("done"), "{last:#}\n{}", scene.story());
    last
}

/// Takes down how long each step of a handoff took; returns how long it took until the successor had the briefing.
fn note(steps: &mut BTreeMap<String, Vec<i64>>, handoff: &Value) -> i64 {
    let at = |value: &Value| value.as_str().and_then(millis).expect("a time");
    for step in handoff["steps"].as_array().expect("its steps") {
        let name = step["step"].as_str().expect("a name").to_owned();
        if name == "reading" {
            return at(&step["entered_at"]) - at(&handoff["created_at"]);
        }
        steps.entry(name).or_default().push(at(&step["left_at"]) - at(&step["entered_at"]));
    }
    panic!("it was never briefed: {handoff:#}");
}
