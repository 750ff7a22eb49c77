//! The first use of the README, as a person pastes it: its recipes are run, and every file that comes of it is as
//! `tasuki schema` describes it.

use super::support::readme::{blocks, has_python};
use super::support::schema::faults;
use super::support::server::{Server, has_curl};
use super::support::stage::Stage;
use super::support::stage_files::{json_files, read_json};
use super::support::tally;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tasuki::cli::schema;

/// Pastes text into the pane of a window as a person does.
fn paste(stage: &Stage, window: &str, text: &str) {
    let file = stage.work_dir().join("paste");
    fs::write(&file, text).expect("written");
    stage.tmux(&["load-buffer", &file.display().to_string()]);
    stage.tmux(&["paste-buffer", "-d", "-t", &format!("user:{window}")]);
}

/// A stage whose panes find the program under its name, and two of them with a shell.
fn stage() -> Stage {
    let stage = Stage::without_sidecar("");
    // The PATH of whoever asks for a window wins over the one in the server's own environment.
    let variables = surroundings(&stage).map(|(name, value)| format!("{name}='{value}'")).join(" ");
    let shell = format!("exec env {variables} bash --norc --noprofile");
    let work = stage.work_dir().display().to_string();
    for window in ["one", "two"] {
        stage.tmux(&["new-window", "-d", "-t", "user:", "-n", window, "-c", &work, &shell]);
    }
    stage
}

fn surroundings(stage: &Stage) -> [(&'static str, String); 3] {
    let program = Path::new(env!("CARGO_BIN_EXE_tasuki"));
    let folder = program.parent().expect("a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").expect("a PATH"));
    let (home, socket) = (stage.home().display().to_string(), stage.socket().display().to_string());
    [("PATH", path), ("TASUKI_HOME", home), ("TASUKI_TMUX", socket)]
}

/// Runs a recipe as a dashboard's author does.
fn run(stage: &Stage, program: &str, recipe: &str) -> Output {
    let mut command = Command::new(program);
    command.arg("-c").arg(recipe).envs(surroundings(stage)).stdin(Stdio::null());
    let output = command.output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{program}: {said}\n{}", stage.story());
    output
}

/// The one agent that lives.
fn living(stage: &Stage) -> String {
    let agents = stage.views("agents");
    let alive: Vec<&Value> = agents.iter().filter(|agent| agent["ended_at"].is_null()).collect();
    assert_eq!(alive.len(), 1, "{agents:?}");
    alive[0]["agent_id"].as_str().expect("an id").to_owned()
}

fn hold_to_schemas(stage: &Stage) {
    let schemas = schema::all();
    let check = |name: &str, values: Vec<Value>| {
        let format = schemas.iter().find(|format| format.name == name).expect("a format");
        assert!(!values.is_empty(), "no {name} to check\n{}", stage.story());
        for value in values {
            let faults = faults(&format.schema, &value);
            assert!(faults.is_empty(), "{name}: {faults:#?}\n{value:#}");
        }
    };
    check("sidecar_view", vec![read_json(&stage.home().join("view/sidecar.json")).expect("a view")]);
    check("agent_view", stage.views("agents"));
    check("handoff_view", stage.views("handoffs"));
    check("journal", stage.journal());
    check("error", stage.errors());
    check("result", json_files(&stage.spool("results")));
    let rejected = json_files(&stage.spool("rejected"));
    check("why", rejected.into_iter().filter(|file| file.get("sha256").is_some()).collect());
}

#[test]
fn the_first_use_works_when_it_is_pasted_and_every_file_is_as_its_schema_says() {
    let stage = stage();
    let use_it = blocks("Use it", "sh");
    paste(&stage, "one", &use_it[1]);
    stage.until("the sidecar beats", || stage.home().join("view/sidecar.json").exists());
    paste(&stage, "two", &use_it[2]);
    let end = stage.work_dir().join("end");
    paste(&stage, "two", &format!("touch {}\n", end.display()));
    stage.until("all is pasted and done", || end.exists());
    let screen = stage.tmux(&["capture-pane", "-p", "-J", "-S", "-200", "-t", "user:two"]);
    assert!(!screen.contains("tasuki: "), "no command may fail:\n{screen}");
    for part in ["delivered", "kai", "handoff ", "writing", "done", "└─ ", "No errors."] {
        assert!(screen.contains(part), "{part} in\n{screen}");
    }
    recipes(&stage);
    over_http(&stage);
    failure(&stage);
    stage.check_once();
    hold_to_schemas(&stage);
}

/// Both recipes, one after the other, against the sidecar of the first use.
fn recipes(stage: &Stage) {
    stage.until_idle(&living(stage));
    let output = run(stage, "sh", &blocks("spool", "sh")[0]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the answer");
    assert_eq!(answer["result"]["verdict"], "delivered", "{answer}");
    if !has_python() {
        tally::skip("there is no python3 to run the guide's recipe");
        return;
    }
    stage.until_idle(&living(stage));
    let output = run(stage, "python3", &blocks("spool", "python")[0]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(" waiting\n") && said.contains(" briefing\n"), "{said}");
    assert!(said.lines().last().is_some_and(|last| last.starts_with("done /")), "{said}");
}

/// The recipe for HTTP, at the address where a server of the same home listens.
fn over_http(stage: &Stage) {
    if !has_curl() {
        return;
    }
    let agent = living(stage);
    stage.until_idle(&agent);
    let server = Server::start(stage.command(&["serve"]));
    let recipe = &blocks("http", "sh")[0];
    let usual = "http://127.0.0.1:7311";
    assert!(recipe.contains(usual), "{recipe}");
    let output = run(stage, "sh", &recipe.replace(usual, server.url.trim_end_matches('/')));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the answer");
    assert_eq!(answer["status"], "initiated", "{answer}");
    let view = stage.until_step(answer["handoff_id"].as_str().expect("an id"), "done");
    assert_eq!((&view["agent_id"], &view["focus"]), (&json!(agent), &json!("the flaky test")));
}

/// A handoff that fails, and a file that can't be taken: their files have formats too.
fn failure(stage: &Stage) {
    let agent = living(stage);
    stage.until_idle(&agent);
    stage.faults("write_never");
    let handoff = stage.hand_off(&agent);
    stage.until_failed(&handoff, "writing", "document_missing");
    assert_eq!(stage.refused(&json!({"kind": "handoff", "agent": agent})).0, 400);
}
