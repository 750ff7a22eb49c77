//! The sidecar as a service: what `tasuki service` writes and calls. systemd itself is played by a program that notes how it
//! was called; its own tools judge the unit where they are there.

use super::support::said::{err, out};
use super::support::tally;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A user whose systemd is a script that notes its calls.
struct User {
    folder: tempfile::TempDir,
}

impl User {
    fn new() -> User {
        let folder = tempfile::tempdir().expect("a folder");
        let user = User { folder };
        fs::create_dir(user.path("bin")).expect("a folder");
        user.play("systemctl", "echo \"$@\" >>\"$CALLS\"");
        user
    }

    fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    fn play(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    }

    fn unit(&self) -> PathBuf {
        self.path("config/systemd/user/tasuki.service")
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.path("calls"));
        text.lines().filter(|line| *line != "--user show-environment").map(str::to_owned).collect()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("service").args(args).args(["--home", "/srv/a home"]);
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("CALLS", self.path("calls")).env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        for name in ["LC_ALL", "LC_CTYPE", "TASUKI_TMUX", "TMUX_TMPDIR", "TASUKI_HOME"] {
            command.env_remove(name);
        }
        command.env("XDG_DATA_DIRS", self.path("share"));
        command.env("LANG", "C.UTF-8").output().expect("the program runs")
    }

    fn done(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", out(&output)))
    }

    fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(&[args, &["--json"]].concat());
        let error: Value = serde_json::from_slice(&output.stderr).expect("an error");
        (output.status.code().unwrap_or(-1), error["error"]["code"].as_str().expect("a code").to_owned())
    }
}

#[test]
fn install_is_repeatable_and_uninstall_leaves_nothing() {
    let user = User::new();
    assert_eq!(user.refused(&["start"]), (1, "not_installed".to_owned()));
    assert_eq!(user.done(&["install", "--dry-run"])["status"], "would_change");
    assert!(!user.unit().exists() && user.calls().is_empty(), "nothing is done by looking");
    assert_eq!(user.done(&["install", "--no-start"])["status"], "installed");
    assert_eq!(user.calls(), ["--user daemon-reload", "--user enable tasuki.service"]);
    assert_eq!(user.done(&["install", "--no-start"])["status"], "already_installed");
    user.calls();
    assert_eq!(user.done(&["install", "--tmux", "work"])["status"], "started");
    assert_eq!(user.calls().last().map(String::as_str), Some("--user restart tasuki.service"));
    let unit = fs::read_to_string(user.unit()).expect("a unit");
    assert!(unit.contains("\"--home\" \"/srv/a home\" \"run\" \"--tmux\" \"work\""), "{unit}");
    assert!(unit.contains(&format!("PATH={}", user.path("bin").display())), "{unit}");
    for (word, call) in [("start", "start"), ("stop", "stop"), ("restart", "restart")] {
        user.done(&[word]);
        assert_eq!(user.calls(), [format!("--user {call} tasuki.service")]);
    }
    assert_eq!(user.done(&["uninstall"])["status"], "uninstalled");
    assert!(!user.unit().exists());
    assert_eq!(user.calls(), ["--user disable --now tasuki.service", "--user daemon-reload"]);
    assert_eq!(user.done(&["uninstall"])["status"], "not_installed");
}

#[test]
fn a_unit_that_somebody_else_wrote_is_left_alone() {
    let user = User::new();
    let own = "[Service]\nExecStart=/usr/bin/tasuki run\n";
    fs::create_dir_all(user.unit().parent().expect("a folder")).expect("made");
    fs::write(user.unit(), own).expect("written");
    assert_eq!(user.refused(&["install"]), (1, "not_ours".to_owned()));
    assert_eq!(user.refused(&["uninstall"]), (1, "not_ours".to_owned()));
    assert_eq!(fs::read_to_string(user.unit()).expect("there"), own);
    assert!(user.calls().is_empty());
}

#[test]
fn without_a_manager_nothing_is_written_and_another_way_is_named() {
    let user = User::new();
    user.play("systemctl", "echo 'Failed to connect to bus' >&2; exit 1");
    let output = user.run(&["install"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Failed to connect to bus") && said.contains("tasuki run"), "{said}");
    assert!(!user.unit().exists());
}

#[test]
fn a_failed_start_is_told_with_what_the_manager_said() {
    let user = User::new();
    user.play("systemctl", "case \"$*\" in *restart*) echo 'Unit is masked.' >&2; exit 1;; esac");
    let output = user.run(&["install"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("Unit is masked."), "{}", err(&output));
}

#[test]
fn status_tells_what_the_manager_and_the_sidecar_say() {
    let user = User::new();
    assert_eq!(user.refused(&["status"]), (1, "not_running".to_owned()));
    user.done(&["install", "--no-start"]);
    user.play("systemctl", "printf 'ActiveState=active\\nMainPID=4711\\nSubState=running\\n'");
    let view = user.done(&["status"]);
    assert_eq!(
        (&view["state"], &view["pid"], &view["sidecar_answers"]),
        (&"active".into(), &4711.into(), &false.into())
    );
    user.play("systemctl", "printf 'ActiveState=failed\\nMainPID=0\\n'");
    assert_eq!(user.refused(&["status"]), (1, "not_running".to_owned()));
}

#[test]
fn a_unit_that_a_package_has_brought_is_one_too() {
    let user = User::new();
    let packaged = user.path("share/systemd/user/tasuki.service");
    fs::create_dir_all(packaged.parent().expect("a folder")).expect("made");
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd/tasuki.service"), &packaged).expect("there");
    user.done(&["start"]);
    assert_eq!(user.calls(), ["--user start tasuki.service"]);
    user.play("systemctl", "printf 'ActiveState=active\\nMainPID=4711\\nSubState=running\\n'");
    let view = user.done(&["status"]);
    assert_eq!((&view["installed"], &view["file"]), (&true.into(), &packaged.display().to_string().into()));
    // What is the package's is removed by the package.
    assert_eq!(user.done(&["uninstall"])["status"], "not_installed");
    assert!(packaged.exists());
    // One of the user's own goes before it.
    user.play("systemctl", "echo \"$@\" >>\"$CALLS\"");
    assert_eq!(user.done(&["install", "--no-start"])["status"], "installed");
    assert!(user.unit().exists());
}

#[test]
fn the_log_is_printed_by_the_journal_s_own_program() {
    let user = User::new();
    user.play("journalctl", "echo \"$@\"");
    let output = user.run(&["logs", "--lines", "7", "--follow"]);
    assert_eq!(out(&output).trim(), "--user --unit tasuki.service --lines 7 -f");
}

/// Whether a program is there to judge what was written.
fn judge(program: &str, args: &[&str], path: Option<&Path>) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(args).args(path);
    match command.env("XDG_RUNTIME_DIR", std::env::temp_dir()).output() {
        Ok(output) => Some(output),
        Err(_) => {
            tally::skip(&format!("{program} is not there to judge what `tasuki service install` writes"));
            None
        }
    }
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let user = User::new();
    user.done(&["install", "--no-start"]);
    let packaged = user.path("packaged/tasuki.service");
    fs::create_dir(user.path("packaged")).expect("a folder");
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/systemd/tasuki.service"));
    let text = text.expect("the packaged unit").replace("/usr/bin/tasuki", env!("CARGO_BIN_EXE_tasuki"));
    fs::write(&packaged, text).expect("written");
    for path in [user.unit(), packaged] {
        let Some(output) = judge("systemd-analyze", &["--user", "verify", "--man=no"], Some(&path)) else { return };
        let said = err(&output);
        assert!(output.status.success() && !said.contains("tasuki.service"), "{}: {said}", path.display());
        // A user's unit can hide no folder, and this one needs the network for gh: 7.3 is what is left of 10.
        let args = ["--user", "security", "--offline=true", "--threshold=75", "--no-pager"];
        let Some(output) = judge("systemd-analyze", &args, Some(&path)) else { return };
        assert!(output.status.success(), "{}: {}{}", path.display(), out(&output), err(&output));
    }
}

#[test]
fn the_property_list_is_one() {
    let user = User::new();
    let text =
        user.done(&["install", "--dry-run", "--manager", "launchd"])["text"].as_str().expect("a text").to_owned();
    let path = user.path("tasuki.plist");
    fs::write(&path, text).expect("written");
    let read = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let packaged = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/launchd/dev.tasuki.sidecar.plist");
    let Some(output) = judge("python3", &["-c", read], Some(&packaged)) else { return };
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    assert_eq!(list["ProgramArguments"], serde_json::json!(["/usr/local/bin/tasuki", "run"]));
    let Some(output) = judge("python3", &["-c", read], Some(&path)) else { return };
    let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    let words: Vec<&str> =
        list["ProgramArguments"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
    assert_eq!(words, [env!("CARGO_BIN_EXE_tasuki"), "--home", "/srv/a home", "run"]);
    assert_eq!((&list["KeepAlive"]["SuccessfulExit"], &list["Umask"]), (&false.into(), &63.into()));
    assert!(list["EnvironmentVariables"]["PATH"].as_str().expect("a path").contains("/usr/bin"));
}
