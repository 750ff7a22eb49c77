//! Work items by command: what people and agents type.

use super::support::stage::Stage;
use serde_json::{Value, json};
use std::fs;
use std::process::Output;

fn run(stage: &Stage, args: &[&str]) -> Output {
    stage.command(args).output().expect("it runs")
}

/// What a command that must be granted prints.
fn said(stage: &Stage, args: &[&str]) -> String {
    let output = run(stage, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn json_of(stage: &Stage, args: &[&str]) -> Value {
    let text = said(stage, &[args, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
}

#[test]
fn work_is_done_by_commands_alone() {
    let stage = Stage::new();
    let (pm, sm) = (stage.clerk(1, "pm", "project_manager"), stage.clerk(2, "sm", "scrum_master"));
    let made =
        json_of(&stage, &["work", "create", "project_spec", "A shop", "--priority", "high", "--metadata", "{\"k\":1}"]);
    let spec = made["item_id"].as_str().expect("an id").to_owned();
    let short = &spec[..8];
    assert!(said(&stage, &["work", "claim", short, "--agent", "pm"]).contains("claimed"));
    let children = stage.work_dir().join("children.json");
    fs::write(&children, "[{\"type\":\"prd\",\"title\":\"The PRD\"}]").expect("a file");
    let children = children.display().to_string();
    let refused = run(&stage, &["work", "complete", short, "--agent", "pm", "--output", "{\"prd\":1}"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(why.contains("bad_output") && why.contains("/output/requirements"), "{why}");
    let output = "{\"prd\":1,\"requirements\":[1]}";
    let shown =
        said(&stage, &["work", "complete", short, "--agent", "pm", "--output", output, "--children", &children]);
    assert!(shown.contains("completed") && shown.contains("The PRD"), "{shown}");
    let listed = json_of(&stage, &["work", "list"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "what is done is not listed");
    let prd = listed[0]["item_id"].as_str().expect("an id").to_owned();
    assert_eq!(listed[0], stage.item(&prd), "views are printed as they are");
    // The mark of an item that is done goes after its view was written; whoever looks in between is not misled.
    fs::write(stage.home().join("view/work/open").join(&spec), "").expect("a mark that is on its way out");
    assert_eq!(json_of(&stage, &["work", "list"]), listed);
    assert_eq!(said(&stage, &["work", "export", "--open"]).lines().count(), 1);
    assert_eq!(json_of(&stage, &["work", "list", "--all"]).as_array().map(Vec::len), Some(2));
    assert_eq!(json_of(&stage, &["work", "list", "--status", "done"])[0]["item_id"], spec);
    let table = said(&stage, &["work", "list"]);
    assert!(table.contains("TITLE") && table.contains("The PRD") && table.contains("high"), "{table}");
    said(&stage, &["work", "claim", &prd, "--agent", &sm]);
    let bad = "[{\"type\":\"story\",\"title\":\"one\"},{\"type\":\"bug\",\"title\":\"two\"}]";
    let shown = said(
        &stage,
        &["work", "complete", &prd, "--agent", "sm", "--output", "{\"stories\":[1]}", "--children", bad, "--partial"],
    );
    assert!(shown.contains("not created: two"), "{shown}");
    let mended = "[{\"type\":\"story\",\"title\":\"two\"}]";
    said(&stage, &["work", "retry-children", &prd, "--agent", "sm", "--children", mended]);
    what_is_shown(&stage, &spec, &prd);
    assert_eq!(stage.item(&spec)["completed_by"], pm);
}

/// What is known of a specification that is done, and of a PRD whose two stories are ready.
fn what_is_shown(stage: &Stage, spec: &str, prd: &str) {
    let short = &spec[..8];
    let tree = said(stage, &["work", "tree", short]);
    assert_eq!(tree.lines().count(), 4, "{tree}");
    assert!(tree.lines().nth(2).is_some_and(|line| line.starts_with("    ")), "{tree}");
    assert_eq!(said(stage, &["work", "tree"]), tree, "without a name, what is not done, from its root on");
    assert!(said(stage, &["work", "comment", short, "well done", "--author", "Ada"]).starts_with("comment "));
    let shown = said(stage, &["work", "show", short]);
    assert!(shown.contains("Ada: well done") && shown.contains("requirements"), "{shown}");
    assert!(said(stage, &["work", "rollback", prd, "--reason", "the wrong ones"]).contains("claimed"));
    let history = said(stage, &["work", "history", prd]);
    for word in ["completed", "children_created", "rolled_back", "the wrong ones", "output: stories", "1 child failed"]
    {
        assert!(history.contains(word), "{word}: {history}");
    }
    said(stage, &["work", "escalate", prd, "--agent", "sm", "--reason", "lost"]);
    assert!(said(stage, &["work", "release", prd, "--human"]).contains("ready"));
    let stats = json_of(stage, &["work", "stats"]);
    let of =
        |kind: &str| stats.as_array().expect("a list").iter().find(|row| row["type"] == kind).expect("a row").clone();
    assert_eq!(
        (&of("project_spec")["done"], &of("prd")["ready"], &of("story")["withdrawn"]),
        (&json!(1), &json!(1), &json!(2))
    );
    assert!(of("prd")["waited"]["mean_ms"].is_u64() && of("project_spec")["took"]["count"] == 1);
    assert!(said(stage, &["work", "stats"]).contains("WAITED"));
    let nobody = run(stage, &["work", "show", "ffffffff"]);
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("no_item"));
}

#[test]
fn items_move_out_and_in() {
    let stage = Stage::new();
    let sm = stage.clerk(1, "sm", "scrum_master");
    let prd = stage.item_of("prd", "The PRD");
    stage.claim(&prd, &sm);
    stage.complete(&prd, &sm, &json!({"stories": [1]}), &json!([{"type": "story", "title": "one"}]));
    let exported = said(&stage, &["work", "export"]);
    assert_eq!(exported.lines().count(), 2);
    assert_eq!(said(&stage, &["work", "export", "--open"]).lines().count(), 1);
    let file = stage.work_dir().join("work.jsonl");
    let foreign = "{\"item_id\":\"BD-2\",\"parent_id\":\"BD-1\",\"type\":\"story\",\"title\":\"below\"}\n{\"item_id\":\"BD-1\",\"type\":\"prd\",\"title\":\"above\"}\n";
    fs::write(&file, format!("{exported}{foreign}")).expect("a file");
    let other = Stage::new();
    let path = file.display().to_string();
    assert!(said(&other, &["work", "import", &path]).contains("4 items imported"));
    let (before, after) = (stage.item(&prd), other.item(&prd));
    for name in ["status", "output", "children", "completed_by", "created_at", "title"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    let above = other.views("work").into_iter().find(|item| item["title"] == "above").expect("imported");
    assert_eq!(
        (&above["metadata"]["imported_id"], above["children"].as_array().map(Vec::len)),
        (&json!("BD-1"), Some(1))
    );
    other.check_work();
    let again = run(&other, &["work", "import", &path]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists"));
    let only = exported.lines().next().expect("a line");
    fs::write(&file, only).expect("a file");
    assert!(said(&other, &["work", "import", &path, "--skip-known"]).contains("1 already existed"));
    // A key of another program stands for the same item in every import.
    fs::write(&file, format!("{foreign}{}\n", json!({"type": "story", "title": "later", "parent_id": "BD-1"})))
        .expect("a file");
    let later = said(&other, &["work", "import", &path, "--skip-known"]);
    assert!(later.contains("1 items imported, 2 already existed"), "{later}");
    let ring = "{\"item_id\":\"a\",\"parent_id\":\"b\",\"type\":\"story\",\"title\":\"t\"}\n{\"item_id\":\"b\",\"parent_id\":\"a\",\"type\":\"story\",\"title\":\"t\"}\n";
    fs::write(&file, ring).expect("a file");
    assert!(String::from_utf8_lossy(&run(&other, &["work", "import", &path]).stderr).contains("cycle"));
}

#[test]
fn an_import_that_stops_in_the_middle_is_repeated_without_a_second_copy() {
    const BAD: usize = 1_200;
    let stage = Stage::new();
    let file = stage.work_dir().join("backlog.jsonl");
    let path = file.display().to_string();
    let text = |kind: &Value| -> String {
        let kind = |line: usize| if line == BAD { kind.clone() } else { json!("task") };
        (1..=1_300).map(|line| format!("{}\n", json!({"type": kind(line), "title": format!("t{line}")}))).collect()
    };
    fs::write(&file, text(&json!(7))).expect("a file");
    let refused = run(&stage, &["work", "import", &path]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("line 1200, /type") && why.contains("1000 items were imported before that"), "{why}");
    assert!(why.contains("--skip-known") && !why.contains("Nothing was imported"), "{why}");
    fs::write(&file, text(&json!("bug"))).expect("a file");
    let again = said(&stage, &["work", "import", &path, "--skip-known"]);
    assert!(again.contains("300 items imported, 1000 already existed"), "{again}");
    assert_eq!(stage.views("work").len(), 1_300);
    let on_purpose = run(&stage, &["work", "import", &path]);
    let why = String::from_utf8_lossy(&on_purpose.stderr).into_owned();
    assert_eq!(on_purpose.status.code(), Some(1), "{why}");
    assert!(why.contains("Line 1: ") && why.contains("(exists)") && why.contains("--skip-known leaves out"), "{why}");
}

#[test]
fn rules_are_checked_without_a_sidecar() {
    let stage = Stage::without_sidecar("");
    stage.player("kai", "developer");
    let shown = said(&stage, &["rules", "check"]);
    for word in ["project_spec", "project_manager", "pr_url or completed", "developer: kai", "scrum_master: nobody yet"]
    {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let path = stage.home().join("data/rules.toml");
    fs::write(&path, "[types.a]\nprocessed_by = [\"x\"]\ncreates = [\"b\"]\n").expect("rules");
    let refused = run(&stage, &["rules", "check"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(78));
    assert!(why.contains("line 3, column 12") && why.contains("rules.toml"), "{why}");
    // With such rules no sidecar starts: it would have to guess.
    let output = run(&stage, &["run", "--tmux", &stage.socket().display().to_string()]);
    assert_eq!(output.status.code(), Some(78), "{}", String::from_utf8_lossy(&output.stderr));
    // A file may be named from the present folder, and must be there.
    let from_its_folder = |name: &str| {
        let mut command = stage.command(&["rules", "check", name]);
        let output = command.current_dir(stage.home().join("data")).output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (name, why) in [
        ("rules.toml", "line 3, column 12"),
        ("./rules.toml", "line 3, column 12"),
        ("none.toml", "there is no such file"),
        ("none/rules.toml", "there is no such file"),
        ("personas", "not a regular file"),
        (".", "not a regular file"),
        ("..", "not a regular file"),
    ] {
        let (code, said) = from_its_folder(name);
        assert!(code == Some(78) && said.contains(why) && said.contains("(bad_rules)"), "{name}: {code:?} {said}");
    }
    fs::write(&path, "[roles]\nscrum_master = [\"kai\"]\n").expect("rules");
    assert_eq!(from_its_folder("rules.toml").0, Some(0));
    assert!(said(&stage, &["rules", "check"]).contains("scrum_master: kai"));
    assert_eq!(json_of(&stage, &["rules", "check"])["types"].as_array().map(Vec::len), Some(6));
}

/// After a restart the agent had no role, and nobody was told why it got no work.
#[test]
fn a_persona_whose_role_can_not_be_read_is_told_of_until_the_file_is_right() {
    let stage = Stage::new();
    let agent = stage.clerk(1, "rev", "developer");
    let file = stage.home().join("data/personas/rev/persona.toml");
    let right = fs::read_to_string(&file).expect("a persona");
    fs::write(&file, format!("{right}profle = \"demo\"\n")).expect("written");
    stage.until_degraded(&["persona rev", "keep the role developer", "profle"]);
    stage.crash_and_restart();
    stage.until_degraded(&["persona rev", "have no role but what data/rules.toml gives them", "profle"]);
    let status = run(&stage, &["status"]);
    assert!(
        status.status.code() == Some(10) && String::from_utf8_lossy(&status.stdout).contains("profle"),
        "{status:?}"
    );
    let rules = run(&stage, &["rules", "check"]);
    assert!(rules.status.success() && String::from_utf8_lossy(&rules.stderr).contains("profle"), "{rules:?}");
    fs::write(&file, right).expect("written");
    stage.until_well();
    let story = stage.item_of("story", "A sash");
    stage.granted(&json!({"kind": "work_claim", "item_id": story, "agent_id": agent}));
}
