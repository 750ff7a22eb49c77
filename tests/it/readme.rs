//! The README is true: what it says to paste is pasted, its recipes are run, and every file that comes of it is as
//! `tasuki schema` describes it.

use super::support::schema::faults;
use super::support::server::{Server, has_curl};
use super::support::stage::Stage;
use super::support::stage_files::{json_files, read_json};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tasuki::cli::schema;

fn readme() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("README.md");
    fs::read_to_string(path).expect("a README")
}

/// The blocks of one language below one heading.
pub(crate) fn blocks(heading: &str, language: &str) -> Vec<String> {
    let text = readme();
    let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no section {heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let fence = format!("```{language}\n");
    section.split(&fence).skip(1).filter_map(|rest| rest.split("```").next().map(str::to_owned)).collect()
}

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

pub(crate) fn has_python() -> bool {
    let out = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    out.is_ok_and(|status| status.success())
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
    let output = run(stage, "sh", &blocks("Write a dashboard", "sh")[0]);
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the answer");
    assert_eq!(answer["result"]["verdict"], "delivered", "{answer}");
    if !has_python() {
        eprintln!("there is no python3: its recipe is not run");
        return;
    }
    stage.until_idle(&living(stage));
    let output = run(stage, "python3", &blocks("Write a dashboard", "python")[0]);
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
    let recipe = &blocks("A dashboard over HTTP", "sh")[0];
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

#[test]
fn the_table_of_keys_names_every_key_of_the_configuration() {
    let section = readme().split("## Configure it").nth(1).expect("a section").to_owned();
    let section = section.split("\n## ").next().expect("its end").to_owned();
    let schema = Value::from(tasuki::config::schema());
    for (table, about) in schema["properties"].as_object().expect("tables") {
        let name = about["$ref"].as_str().map(|name| name.trim_start_matches('#'));
        let keys = name.and_then(|pointer| schema.pointer(pointer)).unwrap_or(about)["properties"].clone();
        let keys = keys.as_object().unwrap_or_else(|| panic!("{table}: {about}")).clone();
        for key in keys.keys() {
            assert!(section.contains(&format!("`{table}.{key}`")), "{table}.{key}");
        }
    }
}

#[test]
fn the_tables_of_commands_and_kinds_are_whole() {
    let text = readme();
    for kind in tasuki::core::request::KINDS {
        assert!(text.contains(&format!("`{kind}`")), "{kind}");
    }
    let out = Command::new(env!("CARGO_BIN_EXE_tasuki")).arg("--help").output().expect("the program runs");
    let help = String::from_utf8_lossy(&out.stdout).into_owned();
    let commands = help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("commands");
    for command in
        commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|word| !word.is_empty())
    {
        let named = ["`", "`tasuki "].iter().any(|start| text.contains(&format!("{start}{command}")));
        assert!(named || command == "help", "{command} is in no table");
    }
}
