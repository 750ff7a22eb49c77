//! Installing into real files: what must stay, what must be removed, what must be refused.

use super::*;
use crate::agents::install::{Presence, Way};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

#[path = "failed_tests.rs"]
mod failed_tests;
#[path = "rule_tests.rs"]
mod rule_tests;

const PROFILE: &str = include_str!("../../../data/profiles/claude.toml");

fn claude() -> Profile {
    Profile::parse("claude", Path::new("claude.toml"), PROFILE).expect("the built-in profile")
}

fn of_file(place: &str, text: &str) -> Profile {
    let mut profile = claude();
    let install = profile.file.install.as_mut().expect("it has one");
    install.format = InstallFormat::File;
    install.file.0 = vec![place.to_owned()];
    install.text = text.to_owned();
    profile
}

/// A user's home, tasuki's home, and what is installed.
struct Desk {
    dir: tempfile::TempDir,
    program: PathBuf,
    /// The name of tasuki's home.
    home: String,
    profile: Profile,
}

impl Desk {
    fn new() -> Desk {
        let program = "/opt/it's here/tasuki".into();
        Desk { dir: tempfile::tempdir().expect("a folder"), program, home: "tasuki".to_owned(), profile: claude() }
    }

    fn with(text: &str) -> Desk {
        let desk = Desk::new();
        fs::create_dir_all(desk.path(".claude")).expect("a folder");
        fs::write(desk.settings(), text).expect("written");
        desk
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn settings(&self) -> PathBuf {
        self.path(".claude/settings.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.settings()).expect("readable")
    }

    fn plan(&self, way: fn(&Profile, &Context<'_>) -> Result<Change, InstallError>) -> Result<Change, InstallError> {
        let user = self.dir.path().as_os_str().to_owned();
        let env = move |name: &str| (name == "HOME").then(|| user.clone());
        way(&self.profile, &Context { program: &self.program, home: &self.path(&self.home), env: &env })
    }

    /// Whether anything was to be done.
    fn install(&self) -> bool {
        let change = self.plan(Profile::plan_install).expect("it can be changed");
        let is_something = !change.is_nothing();
        change.apply(1_800_000_000_000).expect("applied");
        is_something
    }

    fn uninstall(&self) -> bool {
        let change = self.plan(Profile::plan_uninstall).expect("it can be changed");
        let is_something = !change.is_nothing();
        change.apply(1_800_000_000_001).expect("applied");
        is_something
    }

    fn refused(&self) -> String {
        let before = fs::read(self.settings()).expect("readable");
        let error = self.plan(Profile::plan_install).expect_err("it must be refused").to_string();
        assert!(self.plan(Profile::plan_uninstall).is_err());
        assert_eq!(fs::read(self.settings()).expect("readable"), before);
        assert!(error.contains("settings.json"), "{error}");
        error
    }
}

fn stops(text: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(text).expect("JSON");
    value["hooks"]["Stop"].as_array().cloned().unwrap_or_default()
}

fn ours(text: &str) -> usize {
    stops(text).iter().filter(|one| one.to_string().contains("hook claude --home")).count()
}

const OWN_HOOKS: &str = r#"{
    "model": "opus",
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ],
        "PreToolUse": []
    },
    "permissions": {"allow": ["Bash(ls)"], "deny": [ ]},
    "env": { }
}
"#;

#[test]
fn hooks_go_beside_the_users_own_and_out_again_without_a_trace() {
    let desk = Desk::with(OWN_HOOKS);
    assert!(desk.install());
    let text = desk.text();
    assert_eq!((stops(&text).len(), ours(&text)), (2, 1), "{text}");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&value["model"], &value["permissions"]["allow"][0]), (&json!("opus"), &json!("Bash(ls)")));
    assert_eq!(stops(&text)[0]["hooks"][0]["command"], "say done");
    let command = stops(&text)[1]["hooks"][0]["command"].as_str().expect("a command").to_owned();
    assert!(command.starts_with(r"'/opt/it'\''s here/tasuki' hook claude --home '"), "{command}");
    assert!(!desk.install(), "a second time there is nothing to do");
    assert_eq!(desk.text(), text);
    assert!(desk.uninstall());
    assert_eq!(desk.text(), OWN_HOOKS);
    assert!(!desk.uninstall(), "a second time there is nothing to do");
}

#[test]
fn changes_by_the_user_stay() {
    let desk = Desk::with(OWN_HOOKS);
    desk.install();
    let edit = |text: &str| text.replace("opus", "haiku").replace("say done", "say it's done");
    fs::write(desk.settings(), edit(&desk.text()).replace("\"env\": { }", "\"env\": {\"A\": \"1\"}")).expect("edited");
    desk.uninstall();
    assert_eq!(desk.text(), edit(OWN_HOOKS).replace("\"env\": { }", "\"env\": {\"A\": \"1\"}"));
}

#[test]
fn a_file_that_another_program_rewrote_loses_ours_and_nothing_else() {
    let desk = Desk::with(OWN_HOOKS);
    desk.install();
    let value: Value = serde_json::from_str(&desk.text()).expect("JSON");
    fs::write(desk.settings(), value.to_string()).expect("rewritten");
    assert!(!desk.install(), "our hooks are there, only formatted differently");
    desk.uninstall();
    let (left, own): (Value, Value) =
        (serde_json::from_str(&desk.text()).expect("JSON"), serde_json::from_str(OWN_HOOKS).expect("JSON"));
    assert_eq!(left, own);
}

#[test]
fn a_hook_that_the_user_put_behind_ours_stays() {
    let desk = Desk::with("{}");
    desk.install();
    let mut value: Value = serde_json::from_str(&desk.text()).expect("JSON");
    value["hooks"]["Stop"].as_array_mut().expect("a list").push(json!({"hooks": []}));
    fs::write(desk.settings(), format!("{value:#}")).expect("rewritten");
    desk.uninstall();
    assert_eq!(serde_json::from_str::<Value>(&desk.text()).expect("JSON"), json!({"hooks": {"Stop": [{"hooks": []}]}}));
}

#[test]
fn another_path_of_the_program_takes_the_place_of_the_old_one() {
    let mut desk = Desk::with(OWN_HOOKS);
    desk.install();
    desk.program = "/usr/bin/tasuki".into();
    assert!(desk.install());
    assert_eq!((stops(&desk.text()).len(), ours(&desk.text())), (2, 1));
    assert!(desk.text().contains("/usr/bin/tasuki") && !desk.text().contains("/opt/it"), "{}", desk.text());
    desk.uninstall();
    assert_eq!(desk.text(), OWN_HOOKS);
}

#[test]
fn hooks_of_another_home_are_replaced_too() {
    let desk = Desk::with(OWN_HOOKS);
    desk.install();
    fs::rename(desk.path("tasuki"), desk.path("moved")).expect("moved");
    let old = desk.text().replace("/tasuki' hook", "/old' hook");
    fs::write(desk.settings(), old).expect("written");
    assert!(desk.install());
    assert_eq!((stops(&desk.text()).len(), ours(&desk.text())), (2, 1), "{}", desk.text());
    desk.uninstall();
    let left: Value = serde_json::from_str(&desk.text()).expect("JSON");
    assert_eq!(left, serde_json::from_str::<Value>(OWN_HOOKS).expect("JSON"));
}

#[test]
fn uninstalling_removes_our_folders_unless_another_file_is_in_them() {
    let desk = Desk::new();
    assert!(desk.install());
    assert_eq!(ours(&desk.text()), 1);
    assert!(desk.uninstall());
    assert!(!desk.path(".claude").exists());
    desk.install();
    fs::write(desk.path(".claude/CLAUDE.md"), "mine").expect("written");
    desk.uninstall();
    assert!(desk.path(".claude/CLAUDE.md").exists() && !desk.settings().exists());
}

#[test]
fn a_link_is_followed_and_stays_and_the_mode_too() {
    let desk = Desk::new();
    for folder in [".claude", "dotfiles"] {
        fs::create_dir_all(desk.path(folder)).expect("a folder");
    }
    let target = desk.path("dotfiles/claude.json");
    fs::write(&target, OWN_HOOKS).expect("written");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("a mode");
    symlink("../dotfiles/claude.json", desk.settings()).expect("a link");
    desk.install();
    assert_eq!(fs::read_link(desk.settings()).expect("still a link"), PathBuf::from("../dotfiles/claude.json"));
    assert_eq!(ours(&fs::read_to_string(&target).expect("readable")), 1);
    assert_eq!(fs::metadata(&target).expect("there").mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(desk.path("dotfiles")).expect("a folder").count(), 1, "nothing is left beside it");
    desk.uninstall();
    assert_eq!(fs::read_to_string(&target).expect("readable"), OWN_HOOKS);
    fs::remove_file(&target).expect("removed");
    let error = desk.plan(Profile::plan_install).expect_err("the link leads nowhere").to_string();
    assert!(error.contains("broken link"), "{error}");
}

#[test]
fn a_file_that_is_missing_behind_a_linked_folder_is_known_again() {
    let desk = Desk::new();
    fs::create_dir_all(desk.path("dotfiles")).expect("a folder");
    symlink("dotfiles", desk.path(".claude")).expect("a link");
    desk.install();
    desk.uninstall();
    assert_eq!(fs::read_dir(desk.path("dotfiles")).expect("it stays").count(), 0);
}

#[test]
fn copies_of_the_former_file_are_kept_for_this_user_alone_and_not_for_ever() {
    let desk = Desk::with(OWN_HOOKS);
    for _ in 0..8 {
        desk.install();
        desk.uninstall();
    }
    let copies: Vec<_> = fs::read_dir(desk.path("tasuki/state/hooks")).expect("a folder").flatten().collect();
    assert!((1..=10).contains(&copies.len()), "{}", copies.len());
    assert_eq!(copies[0].metadata().expect("there").mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(desk.path("tasuki/state")).expect("there").mode() & 0o777, 0o700);
}

#[test]
fn an_unreadable_configuration_is_refused_with_its_position_and_left_alone() {
    let refused = |text: &str| Desk::with(text).refused();
    assert!(refused("{\n  \"a\" 1\n}").contains("line 2, column 7"));
    assert!(refused("{\n  // mine\n}").contains("comment"));
    assert!(refused("[]").contains("an object is expected here"));
    assert!(
        Desk::with("{\"hooks\": []}").plan(Profile::plan_install).expect_err("a list").to_string().contains("`hooks`")
    );
    assert!(refused("{\"a\":1} x").contains("line 1, column 9"));
    let desk = Desk::with("{}");
    fs::hard_link(desk.settings(), desk.path("other")).expect("a second name");
    assert!(desk.refused().contains("2 names"));
    fs::remove_file(desk.settings()).expect("removed");
    fs::create_dir(desk.settings()).expect("a folder");
    assert!(desk.plan(Profile::plan_install).is_err());
}

#[test]
fn a_file_that_changes_between_plan_and_change_is_not_written() {
    let desk = Desk::with("{}");
    let change = desk.plan(Profile::plan_install).expect("planned");
    fs::write(desk.settings(), "{\"mine\": true}").expect("written");
    assert!(matches!(change.apply(0), Err(InstallError::Changed { .. })));
    assert_eq!(desk.text(), "{\"mine\": true}");
    desk.install();
    desk.uninstall();
    assert_eq!(desk.text(), "{\"mine\": true}");
}

#[test]
fn a_record_that_cannot_be_read_is_never_replaced() {
    let desk = Desk::with(OWN_HOOKS);
    desk.install();
    let records = fs::read_dir(desk.path("tasuki/state/hooks")).expect("a folder").flatten();
    let record = records.map(|entry| entry.path()).find(|path| !path.to_string_lossy().contains("settings"));
    fs::write(record.expect("a record"), "no JSON").expect("written");
    assert!(matches!(desk.plan(Profile::plan_uninstall), Err(InstallError::Record { .. })));
}

#[test]
fn the_clis_own_variable_wins_where_it_is_set() {
    let places = ["$CLAUDE_CONFIG_DIR/settings.json".to_owned(), "~/.claude/settings.json".to_owned()];
    let choose = |set: &'static [(&'static str, &'static str)]| {
        let env = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).into());
        found_file::choose(&places, &env)
    };
    assert_eq!(choose(&[("HOME", "/u"), ("CLAUDE_CONFIG_DIR", "/c")]), Some("/c/settings.json".into()));
    assert_eq!(choose(&[("HOME", "/u"), ("CLAUDE_CONFIG_DIR", "")]), Some("/u/.claude/settings.json".into()));
    assert_eq!(choose(&[]), None);
    for wrong in ["settings.json", "~/../x", "$/x", "$A", "~/a/"] {
        assert!(!found_file::is_place(wrong), "{wrong}");
    }
}

#[test]
fn a_whole_file_of_ours_is_written_replaced_and_removed_but_nobody_elses() {
    let mut desk = Desk::new();
    desk.profile = of_file("~/.pi/agent/extensions/tasuki.ts", "const at = \"{program:json}\";\n");
    let file = desk.path(".pi/agent/extensions/tasuki.ts");
    desk.install();
    desk.program = "/usr/bin/tasuki".into();
    assert!(desk.install() && !desk.install());
    assert_eq!(fs::read_to_string(&file).expect("readable"), "const at = \"/usr/bin/tasuki\";\n");
    desk.uninstall();
    assert!(!desk.path(".pi").exists(), "and the folders that were made for it");
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(&file, "mine").expect("written");
    for way in [Profile::plan_install, Profile::plan_uninstall] {
        assert!(matches!(desk.plan(way), Err(InstallError::Foreign { .. })));
    }
}

fn with_command(desk: &mut Desk) -> PathBuf {
    let command = "[[install.files]]\nfile = \"~/.claude/commands/handoff.md\"\ntext = \"run {program:sh} --home {home:sh}\\n\"\n";
    let at = PROFILE.find("[transcript]").expect("it has one");
    let text = [&PROFILE[..at], command, &PROFILE[at..]].concat();
    desk.profile = Profile::parse("claude", Path::new("claude.toml"), &text).expect("a profile");
    desk.path(".claude/commands/handoff.md")
}

impl Desk {
    /// Of each further file: whether something is done with it; `None` if it is a person's own.
    fn files(&self, way: Way) -> Vec<Option<bool>> {
        let user = self.dir.path().as_os_str().to_owned();
        let env = move |name: &str| (name == "HOME").then(|| user.clone());
        let context = Context { program: &self.program, home: &self.path(&self.home), env: &env };
        let planned = self.profile.plan_files(&context, way).expect("planned");
        let done = |change: Change| {
            let is_something = !change.is_nothing();
            change.apply(1_800_000_000_002).expect("applied");
            is_something
        };
        planned.into_iter().map(|file| file.change.map(done)).collect()
    }

    fn presence(&self) -> Presence {
        let user = self.dir.path().as_os_str().to_owned();
        let env = move |name: &str| (name == "HOME").then(|| user.clone());
        let context = Context { program: &self.program, home: &self.path(&self.home), env: &env };
        self.profile.installed(&context).expect("readable").presence
    }
}

#[test]
fn further_files_go_in_and_out_and_follow_the_program() {
    let mut desk = Desk::new();
    let file = with_command(&mut desk);
    desk.install();
    assert_eq!((desk.files(Way::In), desk.files(Way::In)), (vec![Some(true)], vec![Some(false)]));
    assert!(fs::read_to_string(&file).expect("readable").starts_with(r"run '/opt/it'\''s here/tasuki' --home '"));
    assert_eq!(desk.presence(), Presence::Whole);
    let old = std::mem::replace(&mut desk.program, "/usr/bin/tasuki".into());
    desk.install();
    assert_eq!(desk.presence(), Presence::Stale, "the command names a program that has moved");
    assert_eq!(desk.files(Way::In), [Some(true)]);
    assert_eq!(desk.presence(), Presence::Whole);
    desk.program = old;
    assert_eq!(desk.files(Way::Out), [Some(true)], "for another program too");
    desk.uninstall();
    assert!(!desk.path(".claude").exists(), "and the folders that were made for them");
    assert_eq!(desk.files(Way::Out), [Some(false)]);
}

#[test]
fn a_persons_own_file_of_the_same_name_stays() {
    let mut desk = Desk::new();
    let file = with_command(&mut desk);
    fs::create_dir_all(file.parent().expect("a folder")).expect("made");
    fs::write(&file, "mine").expect("written");
    assert_eq!((desk.files(Way::In), desk.files(Way::Out)), (vec![None], vec![None]));
    desk.install();
    assert_eq!(desk.presence(), Presence::Whole, "the hooks are there all the same");
    desk.uninstall();
    assert_eq!(fs::read_to_string(&file).expect("readable"), "mine");
}
