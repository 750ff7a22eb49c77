//! Homes of earlier versions, as `scripts/fixture` has kept them: killed in the middle, with an idle agent, handoffs
//! that are done, running and failed, and files that nobody took. This version must go on with each of them. And a home
//! of a later version, which it must leave alone.

use super::support::stage::Stage;
use super::support::stage_files::json_lines;
use super::support::tally;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// Every version of which a home was kept.
fn versions() -> Vec<String> {
    let entries = fs::read_dir(fixtures()).expect("fixtures").flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().expect("a plain name")).collect();
    names.sort();
    names
}

/// A stage whose home a former version has left, with a new tmux server.
fn left_by(version: &str) -> Stage {
    let stage = Stage::without_sidecar("");
    fs::remove_dir_all(stage.home()).expect("the empty home is removed");
    let into = stage.home().parent().expect("a folder").to_path_buf();
    let archive = fixtures().join(version).join("home.tar.gz");
    let status = Command::new("tar").arg("-xzpf").arg(archive).arg("-C").arg(into).status().expect("tar runs");
    assert!(status.success(), "{status}");
    stage
}

/// What the former version has shown, by id.
fn shown(stage: &Stage, kind: &str) -> BTreeMap<String, Value> {
    let id = |view: &Value| view[format!("{}_id", kind.trim_end_matches('s'))].as_str().expect("an id").to_owned();
    stage.views(kind).into_iter().map(|view| (id(&view), view)).collect()
}

fn of_persona<'v>(views: &'v BTreeMap<String, Value>, slug: &str) -> &'v Value {
    let mut found = views.values().filter(|view| view["persona_slug"] == slug);
    found.next().unwrap_or_else(|| panic!("no view of {slug}"))
}

/// Every field that was shown is shown as it was, but for those that are named.
fn assert_kept(before: &Value, after: &Value, but: &[&str]) {
    for (name, value) in before.as_object().expect("an object") {
        if !but.contains(&name.as_str()) {
            assert_eq!(&after[name], value, "{name}: {before:#}{after:#}");
        }
    }
}

/// The points of a handoff's checklist and when they were reached. Why one was not is said in today's words.
fn points(view: &Value) -> Vec<(&Value, &Value)> {
    let checklist = view["checklist"].as_array().expect("a checklist");
    checklist.iter().map(|point| (&point["point"], &point["at"])).collect()
}

#[test]
fn a_home_of_every_earlier_version_is_gone_on_with() {
    let versions = versions();
    assert!(versions.len() >= 2, "{versions:?}");
    for version in versions {
        println!("{version}");
        let stage = left_by(&version);
        let (agents, handoffs) = (shown(&stage, "agents"), shown(&stage, "handoffs"));
        let journal = json_lines(&stage.spool("journal.jsonl"));
        assert_eq!((agents.len(), handoffs.len()), (6, 4), "five that were created, and a successor");
        // The views must come of the rows, not of the files that lie there.
        fs::remove_dir_all(stage.home().join("view")).expect("the views are removed");
        stage.start_sidecar();
        rows_are_read(&stage, &agents, &handoffs);
        what_was_left_is_taken(&stage, &journal);
        failed_ones_are_retried(&stage, &handoffs);
        let successor = stage.agent("idle");
        stage.check_done(&stage.until_step(&stage.hand_off(&successor), "done"));
        tally::add("homes of earlier versions", 1);
    }
}

/// Asks for every handoff, and for the agents of the one that is done, as a person would. The homes become older than the
/// 7 days for which the program shows the past unasked.
fn ask_for_all(stage: &Stage, handoffs: &BTreeMap<String, Value>) {
    let successor = of_persona(handoffs, "finished")["successor_id"].as_str().expect("an id");
    let mut questions: Vec<[&str; 3]> = handoffs.keys().map(|id| ["handoffs", "show", id]).collect();
    questions.push(["lineage", successor, "--json"]);
    let ask = |args: &[&str; 3]| {
        let mut command = stage.command(args);
        command.stdout(Stdio::null()).spawn().expect("it starts")
    };
    for mut child in questions.iter().map(ask).collect::<Vec<_>>() {
        assert!(child.wait().expect("it ends").success(), "{}", stage.story());
    }
}

fn rows_are_read(stage: &Stage, agents: &BTreeMap<String, Value>, handoffs: &BTreeMap<String, Value>) {
    ask_for_all(stage, handoffs);
    stage.until("every view is there", || {
        stage.views("agents").len() == agents.len() && stage.views("handoffs").len() == handoffs.len()
    });
    // Their server is gone, so all of them have ended; the rest of what was known of them is known still.
    for (id, before) in agents {
        stage.until("it has ended", || stage.agent_view(id)["ended_at"].is_string());
        assert_kept(before, &stage.agent_view(id), &["state", "ended_at", "handoff_id"]);
    }
    for slug in ["finished", "failing", "early"] {
        let before = of_persona(handoffs, slug);
        let after = stage.handoff_view(before["handoff_id"].as_str().expect("an id"));
        assert_kept(before, &after, &["checklist"]);
        assert_eq!(points(&after), points(before));
    }
    let running = of_persona(handoffs, "running")["handoff_id"].as_str().expect("an id").to_owned();
    let failed = stage.until_step(&running, "failed");
    let code = failed["error"]["code"].as_str().expect("a code").to_owned();
    assert!(["pane_gone", "agent_ended"].contains(&code.as_str()), "{failed:#}");
    assert_eq!((&failed["error"]["step"], stage.errors_of(&running).len()), (&json!("writing"), 1));
}

fn what_was_left_is_taken(stage: &Stage, before: &[Value]) {
    let answer = stage.result("left-over");
    assert_eq!((&answer["status"], &answer["error"]["code"]), (&json!(404), &json!("no_handoff")), "{answer}");
    stage.until("the lanes are empty", || stage.names("events").is_empty() && stage.names("requests").is_empty());
    // What was answered then is answered with the same words now.
    let path = stage.spool("results").join("create-idle.json");
    let first = fs::read(&path).expect("the answer");
    let agent: Value = serde_json::from_slice(&first).expect("JSON");
    fs::remove_file(&path).expect("removed");
    let request = br#"{"v":1,"kind":"agent_create","persona_slug":"idle"}"#;
    stage.drop_file("requests", "create-idle.json", request);
    assert_eq!(stage.result("create-idle"), agent, "it is not carried out again");
    let after = stage.journal();
    assert_eq!(after[..before.len()], *before, "the journal goes on where it stood");
    let seqs: Vec<u64> = after.iter().map(|line| line["seq"].as_u64().expect("a number")).collect();
    assert_eq!(seqs, (1..=after.len() as u64).collect::<Vec<_>>());
}

fn failed_ones_are_retried(stage: &Stage, handoffs: &BTreeMap<String, Value>) {
    let before = of_persona(handoffs, "failing");
    let id = before["handoff_id"].as_str().expect("an id");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let done = stage.until_step(id, "done");
    assert_kept(
        before,
        &done,
        &[
            "step",
            "steps",
            "error",
            "successor_id",
            "verdicts",
            "checklist",
            "deadline",
            "document",
            "place",
            "warnings",
        ],
    );
    let successor = done["successor_id"].as_str().expect("an id");
    assert_eq!(stage.typed(successor), (0, 1, 1), "{}", stage.story());
    assert_eq!(stage.agent_view(successor)["previous_agent_id"], before["agent_id"]);
    // One that failed before its record, and whose agent is no more, says so; another way is open.
    let early = of_persona(handoffs, "early");
    let id = early["handoff_id"].as_str().expect("an id");
    stage.granted(&json!({"kind": "handoff_retry", "handoff_id": id}));
    let again = stage.until_step(id, "failed");
    assert_eq!(again["error"]["code"], "agent_ended", "{again:#}");
    let document = json!({"author": "provided", "document": {"text": "# By hand\n"}});
    let anew = stage.hand_off_with(early["agent_id"].as_str().expect("an id"), &document);
    stage.until_step(&anew, "done");
}

fn fingerprint(path: &Path) -> (Vec<u8>, u64) {
    let bytes = fs::read(path).expect("a file");
    (Sha256::digest(&bytes).to_vec(), bytes.len() as u64)
}

/// Makes the state file one of a later version.
fn make_newer(state: &Path) {
    let database = redb::Database::open(state).expect("a state file");
    let write = database.begin_write().expect("a transaction");
    let meta = redb::TableDefinition::<&str, u64>::new("meta");
    write.open_table(meta).expect("a table").insert("schema", 99).expect("a row");
    write.commit().expect("a commit");
}

#[test]
fn a_state_file_of_a_later_version_is_refused_and_left_as_it_was() {
    let stage = Stage::new();
    stage.end_sidecar(Signal::SIGTERM);
    let state = stage.home().join("state/tasuki.redb");
    make_newer(&state);
    let before = fingerprint(&state);
    for _ in 0..2 {
        let output =
            stage.command(&["run", "--tmux", &stage.socket().display().to_string()]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(78), "{said}");
        for word in ["schema 99", &state.display().to_string(), "left as it is"] {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert_eq!(fingerprint(&state), before, "not a byte of it was changed");
    }
    assert!(!stage.home().join("view/sidecar.json").exists(), "nobody is told that a sidecar runs");
    tally::add(tally::FAULTS, 1);
}

#[test]
fn a_state_file_of_a_later_version_that_was_killed_is_left_as_it_was_too() {
    let stage = Stage::new();
    stage.end_sidecar(Signal::SIGTERM);
    let state = stage.home().join("state/tasuki.redb");
    make_newer(&state);
    // As a killed process leaves it: open, and to be repaired.
    let database = redb::Database::open(&state).expect("a state file");
    fs::copy(&state, stage.home().join("state/copy")).expect("a copy");
    drop(database);
    fs::rename(stage.home().join("state/copy"), &state).expect("in place");
    let before = fingerprint(&state);
    let output = stage.command(&["run", "--tmux", &stage.socket().display().to_string()]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(78), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(fingerprint(&state), before, "not a byte of it was changed");
}
