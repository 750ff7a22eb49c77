//! What it costs that a document is checked: the facts of a repository of 50,000 files, and a whole handoff in it
//! beside one without a repository and without checks.

use crate::Length;
use crate::drops::register;
use crate::place::{Place, Worker, said};
use crate::rows;
use crate::sample::{ms, percentile, rounds};
use crate::table::Row;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tasuki::git::Git;

const FILES: usize = 50_000;
const IN_ONE_FOLDER: usize = 500;
/// A handoff without faults may take so much longer than one that is not checked.
const LONGER: Duration = Duration::from_millis(500);

pub(crate) fn measure(place: &Place, length: Length) -> Vec<Row> {
    let repository = place.path("repository");
    fill(&repository);
    let (facts, status) = facts(&repository, length);
    let home = place.home("documents");
    let plain = place.path("plain");
    fs::create_dir_all(&plain).expect("a folder");
    persona(&home, "with", &repository, "fix");
    persona(&home, "without", &plain, "off");
    let sidecar = Worker::tasuki(place, &home);
    // It answers once it has seen an event.
    let event = r#"{"v":1,"event":"session_start","agent_id":"0b0e4f6e-3a0f-4a52-9df0-5cf0e7c9b001","session_id":"s"}"#;
    register(&home, 1, |_| event.to_owned());
    let (mut with, mut without) = (create(&home, "with"), create(&home, "without"));
    let (mut checked, mut unchecked) = (Vec::new(), Vec::new());
    for _ in rounds(length.pick(20, 4), Duration::from_secs(length.pick(180, 40))) {
        unchecked.push(hand_off(&home, &mut without));
        checked.push(hand_off(&home, &mut with));
    }
    drop(sidecar);
    place.remove(&home);
    place.remove(&repository);
    let (took, floor) = (percentile(&checked, 0.5), percentile(&unchecked, 0.5));
    let longer = took.as_secs_f64() - floor.as_secs_f64();
    let facts_row = Row::times(rows::FACTS, &facts, &status, 0.5, f64::INFINITY);
    vec![
        Row { met: percentile(&facts, 0.5) <= Duration::from_millis(300), ..facts_row },
        Row {
            figure: rows::CHECKED,
            ours: ms(took),
            rival: ms(floor),
            ratio: format!("{:+.0} ms", longer * 1_000.0),
            met: longer <= LONGER.as_secs_f64(),
        },
    ]
}

/// How long tasuki takes for the facts, and `git status` for what it prints, in turn.
fn facts(repository: &Path, length: Length) -> (Vec<Duration>, Vec<Duration>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let git = Git { program: "git".to_owned(), limit: Duration::from_secs(10) };
    let (mut ours, mut rival) = (Vec::new(), Vec::new());
    for _ in rounds(length.pick(40, 10), Duration::from_secs(length.pick(40, 10))) {
        let began = Instant::now();
        let mut not_known = Vec::new();
        let facts = runtime.block_on(git.facts(repository, None, &mut not_known)).expect("a repository");
        ours.push(began.elapsed());
        assert_eq!((facts.changed, not_known), (Some(0), Vec::<String>::new()));
        let began = Instant::now();
        in_git(repository, &["status", "--porcelain=v2", "--branch"]);
        rival.push(began.elapsed());
    }
    (ours, rival)
}

fn in_git(repository: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(["-c", "user.name=kai", "-c", "user.email=kai@example.org"]).args(words);
    command.env_remove("GIT_DIR").stdin(Stdio::null()).stdout(Stdio::null());
    assert!(command.status().is_ok_and(|status| status.success()), "git {words:?}");
}

fn fill(repository: &Path) {
    for folder in 0..FILES / IN_ONE_FOLDER {
        let folder = repository.join(format!("src/part-{folder:03}"));
        fs::create_dir_all(&folder).expect("a folder");
        for number in 0..IN_ONE_FOLDER {
            fs::write(folder.join(format!("file-{number:03}.rs")), format!("pub const N: usize = {number};\n"))
                .expect("a file");
        }
    }
    in_git(repository, &["init", "-q", "-b", "main"]);
    in_git(repository, &["add", "."]);
    in_git(repository, &["commit", "-q", "-m", "Begin"]);
    // A file as young as the index would be read each time.
    std::thread::sleep(Duration::from_secs(2));
    in_git(repository, &["update-index", "-q", "--really-refresh"]);
}

fn persona(home: &Path, slug: &str, cwd: &Path, check: &str) {
    let folder = home.join("data/personas").join(slug);
    fs::create_dir_all(&folder).expect("a folder");
    let persona = format!("profile = \"demo\"\ncwd = {:?}\ncheck = \"{check}\"\n", cwd.display().to_string());
    fs::write(folder.join("persona.toml"), persona).expect("a persona");
    fs::write(folder.join("skill.md"), "# Skill\n\nKeep notes.\n").expect("a skill");
}

/// Starts an agent; gives its id.
fn create(home: &Path, persona: &str) -> String {
    let created = said(home, &["agent", "create", persona]);
    created["agent_id"].as_str().expect("an id").to_owned()
}

/// A whole handoff, from the command to the end of the successor's first turn. The successor is the next agent.
fn hand_off(home: &Path, agent: &mut String) -> Duration {
    let began = Instant::now();
    let end = said(home, &["handoff", agent, "--reason", "a trial", "--wait"]);
    let view = &end["handoff"];
    let took = began.elapsed();
    assert_eq!((&view["step"], &view["faults"]), (&Value::from("done"), &Value::Array(Vec::new())), "{view:#}");
    *agent = view["successor_id"].as_str().expect("an id").to_owned();
    took
}
