//! The README is true: what it says to paste is pasted, its recipes are run, and every file that comes of it is as
//! `tasuki schema` describes it.

use super::support::schema::faults;
use super::support::server::{Server, has_curl};
use super::support::stage::Stage;
use super::support::stage_files::{json_files, read_json};
use super::support::tally;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tasuki::cli::schema;
use tasuki::core::rows::handoff::Step;

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
        tally::skip("there is no python3 to run the README's recipe");
        return;
    }
    stage.until_idle(&living(stage));
    let output = run(stage, "python3", &blocks("Write a dashboard", "python")[0]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains(" waiting\n") && said.contains(" briefing\n"), "{said}");
    assert!(said.lines().last().is_some_and(|last| last.starts_with("done /")), "{said}");
}

/// What a dashboard's author may not see for months: the journal is renamed while it is read.
const ROTATION: &str = r#"
import itertools, tempfile, threading

folder = tempfile.TemporaryDirectory()
SPOOL = pathlib.Path(folder.name)
LAST = 3000


def write():
    first, file = 1, open(SPOOL / "journal.jsonl", "w")
    for seq in range(1, LAST + 1):
        line = json.dumps({"seq": seq, "type": "handoff.step"})
        file.write(line[:9])
        file.flush()
        file.write(line[9:] + "\n")
        file.flush()
        if seq % 100 == 0:
            file.close()
            os.rename(SPOOL / "journal.jsonl", SPOOL / f"journal-{first}.jsonl")
            first, file = seq + 1, open(SPOOL / "journal.jsonl", "w")


writer = threading.Thread(target=write)
writer.start()
got = [event["seq"] for event in itertools.islice(journal(0, 30), LAST)]
writer.join()
assert got == list(range(1, LAST + 1)), got
later = [event["seq"] for event in itertools.islice(journal(1250, 30), LAST - 1250)]
assert later == list(range(1251, LAST + 1)), later
assert list(journal(LAST, 0.2)) == []
print("every line once, in order")
"#;

#[test]
fn the_recipe_reads_every_line_of_a_journal_that_is_renamed_meanwhile() {
    if !has_python() {
        tally::skip("there is no python3 to run the README's recipe");
        return;
    }
    let recipe = blocks("Write a dashboard", "python").remove(0);
    let functions = recipe.split("\nagents = ").next().expect("it begins with functions").to_owned();
    let program = format!("{functions}\n{ROTATION}");
    let mut command = Command::new("python3");
    let output = command.args(["-c", &program]).env("TASUKI_HOME", "/nowhere").output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output.stdout.starts_with(b"every line once"), "{said}");
}

#[test]
fn the_picture_shows_the_steps_that_there_are() {
    let picture = fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/pictures/flow.svg"));
    let picture = picture.expect("a picture");
    assert!(readme().contains("(packaging/pictures/flow.svg)"));
    let shown: Vec<&str> = picture
        .lines()
        .filter_map(|line| line.trim().strip_prefix("<text class=\"word\"")?.split(['<', '>']).nth(1))
        .filter(|word| !word.contains(' '))
        .collect();
    // An acknowledgement is asked for only where a handoff is urgent.
    let flow: Vec<&str> = Step::ALL
        .iter()
        .filter(|step| !step.is_end() && **step != Step::Acknowledging)
        .map(|step| step.word())
        .collect();
    assert_eq!(shown, [flow, vec!["done"]].concat());
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
fn the_table_of_keys_of_top_is_its_own_help() {
    let text = readme();
    let section = text.split("\n## See all at once\n").nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = section.expect("a section").lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows: Vec<(&str, &str)> = rows.filter_map(|row| row.split_once(" | ")).skip(1).collect();
    assert_eq!(rows, tasuki::cli::top::keys::KEYS);
    let picture = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("packaging/pictures/top.svg");
    let picture = fs::read_to_string(picture).expect("scripts/pictures has made it");
    for part in ["tasuki", "[1 Agents 4]", "hands off: writing", "document_missing", "? help"] {
        assert!(picture.contains(part), "the picture shows no {part}: run scripts/pictures");
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
    let (commands, _) = crate::cli_help::listed(&help);
    assert!(commands.len() > 25, "{help}");
    for command in commands {
        let named = ["`", "`tasuki "].iter().any(|start| text.contains(&format!("{start}{command}")));
        assert!(named, "{command} is in no table");
    }
}
