//! `hooks install|uninstall|show` from outside, and the ways in which an agent names itself.

use crate::support::fake_sidecar::{FakeHome, FakeSidecar};
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;

const KAI: &str = "11111111-1111-4111-8111-111111111111";
const MIA: &str = "33333333-3333-4333-8333-333333333333";
const OWN: &str = "{\n  \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say\"}]}]}\n}\n";

/// A user with a home folder of their own.
struct User {
    home: FakeHome,
    folder: tempfile::TempDir,
}

impl User {
    fn new(settings: &str) -> User {
        let user = User { home: FakeHome::new(), folder: tempfile::tempdir().expect("a folder") };
        fs::create_dir_all(user.folder.path().join(".claude")).expect("a folder");
        fs::write(user.settings(), settings).expect("written");
        user
    }

    fn settings(&self) -> PathBuf {
        self.folder.path().join(".claude/settings.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.settings()).expect("readable")
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.home.command(args);
        for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "PI_CODING_AGENT_DIR"] {
            command.env_remove(name);
        }
        command.env("HOME", self.folder.path()).output().expect("the program runs")
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

#[test]
fn in_and_out_again_with_every_word_said() {
    let user = User::new(OWN);
    let dry = user.run(&["hooks", "install", "claude", "--dry-run"]);
    assert_eq!((code(&dry), user.text().as_str()), (0, OWN));
    assert!(out(&dry).contains("@@ ") && out(&dry).contains("hook claude --home"), "{}", out(&dry));
    let done = user.run(&["hooks", "install", "claude"]);
    assert_eq!(code(&done), 0, "{}", err(&done));
    assert!(err(&done).contains("is kept in") && err(&done).contains("after a restart"), "{}", err(&done));
    let installed: Value = serde_json::from_str(&user.text()).expect("JSON");
    let home = user.home.path().display().to_string();
    let command = installed["hooks"]["Stop"][1]["hooks"][0]["command"].as_str().expect("a command");
    assert!(command.ends_with(&format!("hook claude --home '{home}'")), "{command}");
    let rule = format!("Edit(/{home}/data/personas/*/handoffs/**)");
    assert_eq!(installed["permissions"]["allow"][0], rule);
    let again = user.json(&["hooks", "install", "claude"]);
    assert_eq!((&again["status"], &again["backup"]), (&json!("already_installed"), &Value::Null));
    assert_eq!(user.json(&["hooks", "uninstall", "claude", "--dry-run"])["status"], "would_uninstall");
    let gone = user.json(&["hooks", "uninstall", "claude"]);
    assert_eq!(gone["status"], "uninstalled");
    assert!(fs::metadata(gone["backup"].as_str().expect("a copy")).is_ok());
    assert_eq!(user.text(), OWN);
    assert_eq!(user.json(&["hooks", "uninstall", "claude"])["status"], "not_installed");
}

#[test]
fn every_built_in_profile_installs_and_leaves_nothing_behind() {
    let user = User::new(OWN);
    for (profile, file) in [("codex", ".codex/hooks.json"), ("pi", ".pi/agent/extensions/tasuki.ts")] {
        let shown = user.json(&["hooks", "show", profile]);
        let path = user.folder.path().join(file);
        assert_eq!(shown["file"], path.display().to_string());
        assert_eq!(user.json(&["hooks", "install", profile])["status"], "installed", "{profile}");
        let text = fs::read_to_string(&path).expect("there");
        assert!(text.contains(&user.home.path().display().to_string()), "{text}");
        assert_eq!(user.json(&["hooks", "install", profile])["status"], "already_installed", "{profile}");
        assert_eq!(user.json(&["hooks", "uninstall", profile])["status"], "uninstalled", "{profile}");
        assert!(!user.folder.path().join(file.split('/').next().expect("a folder")).exists());
    }
    let output = user.run(&["hooks", "install", "codex"]);
    assert!(err(&output).contains("trust"), "{}", err(&output));
}

#[test]
fn the_command_goes_in_with_the_hooks_and_out_again() {
    for (profile, file) in [("gemini", ".gemini/commands/handoff.toml"), ("codex", ".codex/skills/handoff/SKILL.md")] {
        let user = User::new(OWN);
        let path = user.folder.path().join(file);
        let dry = user.json(&["hooks", "install", profile, "--dry-run"]);
        assert_eq!(dry["files"][0]["status"], "would_install");
        assert!(dry["files"][0]["diff"].as_str().is_some_and(|diff| diff.contains("handoff --self --home")), "{dry}");
        assert!(!path.exists());
        let done = user.json(&["hooks", "install", profile]);
        assert_eq!((&done["files"][0]["status"], &done["files"][0]["file"]), (&json!("installed"), &json!(path)));
        let text = fs::read_to_string(&path).expect("there");
        assert!(text.contains(&user.home.path().display().to_string()), "{text}");
        assert_eq!(user.json(&["hooks", "show", profile])["files"][0]["text"], text);
        assert_eq!(user.json(&["hooks", "install", profile])["files"][0]["status"], "already_installed");
        assert_eq!(user.json(&["hooks", "uninstall", profile])["files"][0]["status"], "uninstalled");
        assert!(!user.folder.path().join(file.split('/').next().expect("a folder")).exists());
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, "mine").expect("written");
        let kept = user.run(&["hooks", "install", profile]);
        assert!(code(&kept) == 0 && out(&kept).contains("a file of your own"), "{}", out(&kept));
        assert_eq!(user.json(&["hooks", "uninstall", profile])["files"][0]["status"], "not_ours");
        assert_eq!(fs::read_to_string(&path).expect("there"), "mine");
    }
}

#[test]
fn what_was_done_before_a_failure_is_told() {
    let user = User::new(OWN);
    let skills = user.folder.path().join(".codex/skills");
    fs::create_dir_all(&skills).expect("a folder");
    // Nobody can make a file there: a link that leads into nothing that can be made.
    std::os::unix::fs::symlink("/proc/none", skills.join("handoff")).expect("a link");
    let install = |more: &[&str]| user.run(&[&["hooks", "install", "codex"], more].concat());
    let output = install(&[]);
    assert_ne!(code(&output), 0);
    assert!(out(&output).contains("the hooks were added to"), "{}{}", out(&output), err(&output));
    let said = err(&output);
    assert!(said.contains("SKILL.md") && said.contains("What is said above was done"), "{said}");
    let hooks = user.folder.path().join(".codex/hooks.json");
    assert!(fs::read_to_string(&hooks).expect("installed").contains("hook codex"));
    // A second time nothing is done, so there is only the error.
    assert!(out(&install(&[])).is_empty());
    fs::remove_file(&hooks).expect("removed");
    let output = install(&["--json"]);
    let done: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&done["status"], &done["files"]), (&json!("installed"), &json!([])));
    fs::remove_file(skills.join("handoff")).expect("removed");
    let rest = user.json(&["hooks", "install", "codex"]);
    assert_eq!((&rest["status"], &rest["files"][0]["status"]), (&json!("already_installed"), &json!("installed")));
}

#[test]
fn the_command_of_gemini_runs_nothing_before_its_turn() {
    let user = User::new(OWN);
    user.json(&["hooks", "install", "gemini"]);
    let text = fs::read_to_string(user.folder.path().join(".gemini/commands/handoff.toml")).expect("there");
    let prompt = text.parse::<toml::Table>().expect("TOML")["prompt"].as_str().expect("a text").to_owned();
    assert!(prompt.trim_end().ends_with("{{args}}") && prompt.contains(r"as '\''."), "{prompt}");
    assert!(!prompt.contains("!{"), "a shell would run what is typed, or the handoff would begin before the turn");
}

#[test]
fn bad_input_is_named_with_its_exit_code_and_nothing_is_changed() {
    let user = User::new("{\n  \"hooks\": {},\n  // mine\n}");
    let refused = |args: &[&str], exit: i32, words: &[&str]| {
        let output = user.run(args);
        assert_eq!(code(&output), exit, "{args:?}: {}{}", out(&output), err(&output));
        assert!(words.iter().all(|word| err(&output).contains(word)), "{args:?}: {}", err(&output));
    };
    refused(&["hooks", "install", "nonsense"], 1, &["no_profile", "claude, codex, demo"]);
    refused(&["hooks", "install", "demo"], 1, &["no_install"]);
    refused(&["hooks", "install"], 2, &[]);
    refused(
        &["hooks", "install", "claude"],
        78,
        &["settings.json", "line 3, column 3", "comment", "hooks show claude"],
    );
    refused(&["hooks", "uninstall", "claude"], 78, &["settings.json", "line 3"]);
    assert_eq!(user.text(), "{\n  \"hooks\": {},\n  // mine\n}");
    fs::create_dir_all(user.folder.path().join(".pi/agent/extensions")).expect("a folder");
    fs::write(user.folder.path().join(".pi/agent/extensions/tasuki.ts"), "mine").expect("written");
    refused(&["hooks", "install", "pi"], 1, &["not_ours", "tasuki.ts"]);
    let profiles = user.home.path().join("data/profiles");
    fs::create_dir_all(&profiles).expect("a folder");
    let claude = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/profiles/claude.toml")).expect("there");
    fs::write(profiles.join("mine.toml"), claude.replace("{home:json}", "{hom}")).expect("written");
    refused(&["hooks", "install", "mine"], 78, &["mine.toml", "{hom}"]);
    fs::write(profiles.join("mine.toml"), claude.replace("\"~/.claude/settings.json\"", "\"../x\"")).expect("written");
    refused(&["hooks", "install", "mine"], 78, &["mine.toml", "install.file"]);
    fs::remove_file(profiles.join("mine.toml")).expect("removed");
    if !nix::unistd::geteuid().is_root() {
        fs::set_permissions(user.settings(), fs::Permissions::from_mode(0o000)).expect("a mode");
        refused(&["hooks", "install", "claude"], 77, &["settings.json"]);
    }
}

#[test]
fn an_agent_is_named_by_its_pane() {
    let home = Arc::new(FakeHome::new());
    home.agent(KAI, Some("kai"), None, "ended");
    home.agent(MIA, Some("kai"), Some(KAI), "busy");
    let echo = |_: &FakeHome, request: &Value| match request["agent_id"] == MIA {
        true => Some((200, json!({"handoff_id": "h", "file_path": "/d.md"}))),
        false => Some((404, json!({"code": "no_agent", "message": "Agent not found"}))),
    };
    let _sidecar = FakeSidecar::start(&home, Box::new(echo));
    let run = |args: &[&str], env: &[(&str, &str)]| {
        let output = home.command(args).envs(env.iter().copied()).output().expect("the program runs");
        (code(&output), err(&output))
    };
    assert_eq!(run(&["handoff", "%1"], &[]).0, 0);
    assert_eq!(run(&["handoff", "%1"], &[("TMUX", "/tmp/x,77,0")]).0, 0);
    assert_eq!(run(&["handoff", "%2"], &[]).0, 1);
    for own in [&["handoff", "--self"][..], &["handoff"], &["handoff", "."]] {
        assert_eq!(run(own, &[("TMUX_PANE", "%1")]).0, 0, "{own:?}");
        // A new session in the same process has the environment of the one before.
        assert_eq!(run(own, &[("TMUX_PANE", "%1"), ("TASUKI_AGENT_ID", KAI)]).0, 0, "{own:?}");
        assert_eq!(run(own, &[("TASUKI_AGENT_ID", MIA)]).0, 0, "{own:?}");
        assert_eq!(run(own, &[("TMUX_PANE", "%7")]).0, 2, "{own:?}");
    }
    assert_eq!(run(&["handoff", "--self", "kai"], &[]).0, 2);
    let (exit, said) = run(&["handoff", "--self", "--wait"], &[("TMUX_PANE", "%1")]);
    assert!(exit == 2 && said.contains("its own handoff"), "{said}");
}

#[test]
fn a_pane_of_another_tmux_server_names_nobody() {
    let home = FakeHome::new();
    home.agent(KAI, Some("kai"), None, "idle");
    home.write("view/sidecar.json", &json!({"pid": 1, "heartbeat": "", "tmux": {"pid": 77, "start_time": 1}}));
    let run = |tmux: &str| {
        let output = home.command(&["lineage", "%1"]).env("TMUX", tmux).output().expect("the program runs");
        (code(&output), err(&output))
    };
    assert_eq!(run("/tmp/x,77,0").0, 0);
    let (exit, said) = run("/tmp/x,78,0");
    assert!(exit == 1 && said.contains("other_server"), "{said}");
}

#[test]
fn the_plugin_reports_what_the_installed_hooks_report() {
    let repository = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(repository.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let plugin = read("packaging/claude-plugin/hooks/hooks.json");
    let user = User::new("{}");
    let shown = user.json(&["hooks", "show", "claude"]);
    let shown: Value = serde_json::from_str(shown["configuration"].as_str().expect("a text")).expect("JSON");
    let events = |of: &Value| of["hooks"].as_object().expect("hooks").keys().cloned().collect::<Vec<_>>();
    assert_eq!(events(&plugin), events(&shown));
    let market = read(".claude-plugin/marketplace.json");
    let source = market["plugins"][0]["source"].as_str().expect("a path");
    let manifest = read(&format!("{source}/.claude-plugin/plugin.json"));
    assert_eq!(
        (&manifest["name"], &manifest["version"]),
        (&market["plugins"][0]["name"], &env!("CARGO_PKG_VERSION").into())
    );
}

#[test]
fn a_hook_that_is_told_no_home_reports_to_the_users_own() {
    let user = tempfile::tempdir().expect("a folder");
    let home = user.path().join("data/tasuki");
    for room in ["tmp", "events"] {
        fs::create_dir_all(home.join("spool").join(room)).expect("a room");
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tasuki"));
    command.args(["hook", "claude", "--event", "Stop"]).stdin(std::process::Stdio::null());
    for name in ["TASUKI_HOME", "TASUKI_AGENT_ID", "TMUX", "TMUX_PANE"] {
        command.env_remove(name);
    }
    let output = command.env("HOME", user.path()).env("XDG_DATA_HOME", user.path().join("data")).output();
    assert_eq!(code(&output.expect("the program runs")), 0);
    assert_eq!(fs::read_dir(home.join("spool/events")).expect("a room").count(), 1);
}
