//! An agent CLI that tasuki has never seen, driven by nothing but the profile that the guide shows.

use super::support::readme;
use super::support::stage::Stage;
use super::support::stage_files::{json_lines, make_folder};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// The guide's profile.
fn profile() -> String {
    readme::blocks("profiles", "toml").remove(0)
}

/// Whether the program can run here; said aloud where it can't.
fn has_python() -> bool {
    let found = readme::has_python();
    if !found {
        eprintln!("there is no python3: the stranger is not met");
    }
    found
}

/// A stage with the profile in its home and the program in its PATH, and the sidecar running.
fn stage() -> Stage {
    let stage = Stage::without_sidecar("");
    make_folder(&stage.home().join("data/profiles"));
    fs::write(stage.home().join("data/profiles/wren.toml"), profile()).expect("the profile");
    let bin = stage.work_dir().join("bin");
    make_folder(&bin);
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/stranger/wren.py");
    assert_eq!(fs::metadata(&program).expect("there").permissions().mode() & 0o100, 0o100);
    symlink(program, bin.join("wren")).expect("a name for it");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    for (name, value) in [("PATH", path), ("WREN_LOG", stage.recorder().display().to_string())] {
        stage.tmux(&["set-environment", "-g", name, &value]);
    }
    stage.tmux(&["set-environment", "-g", "WREN_HOME", &wren_home(&stage).display().to_string()]);
    stage.start_sidecar();
    stage
}

fn wren_home(stage: &Stage) -> PathBuf {
    stage.work_dir().join("dot-wren")
}

/// A persona of that profile, and its agent, primed and idle.
fn agent(stage: &Stage, slug: &str) -> String {
    persona(stage, slug);
    let made = stage.granted(&json!({"kind": "agent_create", "persona_slug": slug}));
    let id = made["agent_id"].as_str().expect("an id").to_owned();
    stage.until_idle(&id);
    id
}

fn persona(stage: &Stage, slug: &str) {
    let folder = stage.home().join("data/personas").join(slug);
    make_folder(&folder);
    fs::write(folder.join("skill.md"), "# Skill\n\nSing.\n").expect("a skill");
    let toml = format!("profile = \"wren\"\ncwd = \"{}\"\n", stage.work_dir().display());
    fs::write(folder.join("persona.toml"), toml).expect("a persona");
}

/// What holds of a handoff that is done, for agents that are not the demo agent.
fn check_done(stage: &Stage, view: &Value) {
    let successor = view["successor_id"].as_str().expect("a successor");
    for name in ["instruction", "priming", "briefing"] {
        assert_eq!(view["verdicts"][name]["verdict"], "delivered", "{name}: {view:#}");
    }
    let document = fs::read_to_string(view["file_path"].as_str().expect("a path")).expect("the document");
    assert!(document.contains("What a wren knows"), "{document}");
    let lines = json_lines(&stage.recorder());
    let texts: Vec<&str> =
        lines.iter().filter(|line| line["agent_id"] == successor).filter_map(|l| l["text"].as_str()).collect();
    assert_eq!(texts.len(), 2, "{texts:#?}\n{}", stage.story());
    assert!(texts[0].contains("Sing.") && texts[1].contains("Here is your handoff from agent"), "{texts:#?}");
    assert!(stage.errors().is_empty(), "{}", stage.story());
    stage.check_once();
}

#[test]
fn a_cli_that_was_never_seen_is_handed_off_by_the_readmes_profile() {
    if !has_python() {
        return;
    }
    let stage = stage();
    let first = agent(&stage, "pip");
    let verdict = stage.granted(&json!({"kind": "agent_send", "agent_id": first, "text": "Say hello.\n\nTwice."}));
    assert_eq!(verdict["verdict"], "delivered", "{verdict}\n{}", stage.story());
    stage.until_idle(&first);
    let view = stage.until_step(&stage.hand_off(&first), "done");
    check_done(&stage, &view);
    assert_eq!(stage.agent_view(&first)["state"], "ended");
}

#[test]
fn hooks_that_come_twice_count_once() {
    if !has_python() {
        return;
    }
    let stage = stage();
    stage.tmux(&["set-environment", "-g", "WREN_TWICE", "1"]);
    let first = agent(&stage, "pip");
    let view = stage.until_step(&stage.hand_off(&first), "done");
    check_done(&stage, &view);
}

#[test]
fn one_that_a_person_started_is_adopted_by_its_installed_hooks() {
    if !has_python() {
        return;
    }
    let stage = stage();
    let settings = wren_home(&stage).join("settings.json");
    make_folder(&wren_home(&stage));
    let own = "{\n  \"hooks\": {\n    \"answer.done\": [\"true\"]\n  },\n  \"colour\": \"brown\"\n}\n";
    fs::write(&settings, own).expect("the user's own");
    let hooks = |way: &str| {
        let mut command = stage.command(&["hooks", way, "wren"]);
        let output = command.env("WREN_HOME", wren_home(&stage)).output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    hooks("install");
    let work = stage.work_dir().display().to_string();
    // Here the PATH of whoever asks for the window counts, so the whole path it is.
    let line = format!("exec {work}/bin/wren");
    let pane = stage.tmux(&["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "user:", "-c", &work, &line]);
    let pane = pane.trim().to_owned();
    stage.until("it is drawn", || stage.screen(&pane).contains('»'));
    persona(&stage, "pip");
    let adopted = stage.granted(&json!({"kind": "agent_register", "pane": pane, "persona_slug": "pip"}));
    let id = adopted["agent_id"].as_str().expect("an id").to_owned();
    assert_eq!(stage.agent_view(&id)["profile"], "wren");
    // It is drawn before its hook has told that a session began.
    stage.until("it is idle and has reported", || {
        let view = stage.agent_view(&id);
        view["state"] == "idle" && view["hooks"] == "seen"
    });
    let view = stage.until_step(&stage.hand_off(&id), "done");
    // Its successor has hooks from its launch line and from the settings: each event comes twice.
    check_done(&stage, &view);
    hooks("uninstall");
    assert_eq!(fs::read_to_string(&settings).expect("readable"), own);
}

#[test]
fn a_version_that_was_never_tried_is_named_when_the_screen_is_not_the_expected_one() {
    let stage = Stage::without_sidecar("");
    make_folder(&stage.home().join("data/profiles"));
    let bin = stage.work_dir().join("new");
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && echo 'new 9.9.9 of today' && exit\necho 'Welcome to another world'\nexec cat\n";
    fs::write(&bin, script).expect("a program");
    fs::set_permissions(&bin, fs::Permissions::from_mode(0o700)).expect("it can be run");
    let text = include_str!("../../data/profiles/demo.toml")
        .replacen("argv = [\"{program}\", \"demo-agent\"]", &format!("argv = [\"{}\"]", bin.display()), 1)
        .replacen("timeout = \"60s\"", "timeout = \"2s\"", 1);
    let version = format!("\n[version]\nargv = [\"{}\", \"--version\"]\ntried = [\"1.2.3\"]\n", bin.display());
    fs::write(stage.home().join("data/profiles/new.toml"), text + &version).expect("a profile");
    stage.start_sidecar();
    stage.persona("dev");
    let answer = stage.ask(&json!({"kind": "agent_create", "persona_slug": "dev", "profile": "new"}));
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    for part in ["Welcome to another world", "never tried", "new 9.9.9 of today", "1.2.3"] {
        assert!(message.contains(part), "{part}: {answer}");
    }
    assert_eq!(stage.errors().len(), 1, "the operator is told");
}
