//! The doctor's checks of a fleet, which another program makes: here it is a script that prints checks, hangs, prints
//! something else, or is not there.

use crate::support::fake_sidecar::FakeHome;
use crate::support::fleet_home::home_in_fleet;
use crate::support::processes::ends_soon;
use crate::support::said::{err, out};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Folders for a copy of tasuki, beside which nothing is installed, and for the other program.
struct Installed {
    own: tempfile::TempDir,
    path: tempfile::TempDir,
}

impl Installed {
    fn new() -> Installed {
        let folder = || tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let installed = Installed { own: folder(), path: folder() };
        let (from, to) = (env!("CARGO_BIN_EXE_tasuki"), installed.own.path().join("tasuki"));
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(drop)).expect("a copy");
        installed
    }

    fn script(&self, body: &str) {
        let program = self.path.path().join("tasuki-fleet");
        fs::write(&program, format!("#!/bin/sh\n{body}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("executable");
    }

    fn doctor(&self, home: &Path, args: &[&str]) -> (String, Vec<Value>) {
        let path = format!("{}:/usr/bin:/bin", self.path.path().display());
        let mut command = Command::new(self.own.path().join("tasuki"));
        command.arg("--home").arg(home).arg("doctor").args(args).env("PATH", path).stdin(Stdio::null());
        for name in ["TMUX", "TMUX_PANE", "TASUKI_HOME", "TASUKI_AGENT_ID", "CLICOLOR_FORCE", "NO_COLOR"] {
            command.env_remove(name);
        }
        let output = command.output().expect("it runs");
        let text = out(&output);
        let found: Value = serde_json::from_str(&text).unwrap_or_default();
        let checks = found["checks"].as_array().cloned().unwrap_or_default();
        assert!(args.contains(&"--json") != checks.is_empty(), "{text}{}", err(&output));
        (text, checks.into_iter().filter(|check| check["group"] == "fleet").collect())
    }
}

fn words(check: &Value) -> (&str, &str) {
    (check["id"].as_str().unwrap_or_default(), check["status"].as_str().unwrap_or_default())
}

#[test]
fn where_no_fleet_was_joined_no_other_program_is_run() {
    let installed = Installed::new();
    let home = FakeHome::new();
    installed.script(&format!("touch {}/was-run", installed.path.path().display()));
    assert_eq!(installed.doctor(home.path(), &["--json"]).1, Vec::<Value>::new());
    // Keys alone do not make a member.
    fs::create_dir(home.path().join("fleet")).expect("made");
    home.write("fleet/host.json", &json!({"v": 1, "name": "desk", "fleet": null}));
    assert_eq!(installed.doctor(home.path(), &["--json"]).1, Vec::<Value>::new());
    assert!(!installed.path.path().join("was-run").exists());
    fs::write(home.path().join("fleet/host.json"), "{").expect("written");
    let (_, found) = installed.doctor(home.path(), &["--json"]);
    assert_eq!(found.iter().map(words).collect::<Vec<_>>(), [("fleet.host", "fail")]);
}

#[test]
fn the_other_programs_checks_are_part_of_the_report() {
    let (installed, home) = (Installed::new(), home_in_fleet());
    let line = |id: &str, status: &str, said: &str| json!({"id": id, "group": "fleet", "status": status, "said": said, "fix": "do it", "fixed": null});
    let checks = [
        line("fleet.server", "ok", "nats-server"),
        line("fleet.hosts", "warn", "box \u{1b}[31mis away"),
        line("fleet.bridge", "fail", "no bridge runs"),
        line("fleet.lease", "warn", "waiting"),
    ];
    let document = json!({"v": 1, "version": env!("CARGO_PKG_VERSION"), "checks": checks});
    installed.script(&format!("echo \"$@\" > {}/args\ncat <<'END'\n{document}\nEND", installed.path.path().display()));
    let (_, found) = installed.doctor(home.path(), &["--json"]);
    let expected = [
        ("fleet.program", "ok"),
        ("fleet.server", "ok"),
        ("fleet.hosts", "warn"),
        ("fleet.bridge", "fail"),
        ("fleet.lease", "skipped"),
    ];
    assert_eq!(found.iter().map(words).collect::<Vec<_>>(), expected, "a lease follows from its bridge");
    assert!(!found[2]["said"].as_str().expect("a text").contains('\u{1b}'), "{:?}", found[2]);
    let args = fs::read_to_string(installed.path.path().join("args")).expect("it was run");
    assert_eq!(args.trim(), format!("--home {} --json checks", home.path().display()));
    let (text, _) = installed.doctor(home.path(), &["--fix"]);
    let section = text.split("\nfleet\n").nth(1).expect("a section");
    assert!(section.contains("  fail     bridge        no bridge runs\n"), "{section}");
    assert!(section.contains("left alone: doctor does not change a fleet"), "{section}");
}

#[test]
fn another_program_that_is_missing_or_says_something_else_is_one_failure() {
    let (installed, home) = (Installed::new(), home_in_fleet());
    let one = |told: &str| {
        let (_, found) = installed.doctor(home.path(), &["--json"]);
        assert_eq!(found.iter().map(words).collect::<Vec<_>>(), [("fleet.program", "fail")], "{found:?}");
        assert!(found[0].to_string().contains(told), "{told}: {found:?}");
    };
    one("cargo install --locked --path . --features fleet");
    installed.script("echo rubbish; echo 'no such command: checks' >&2; exit 2");
    one("exit code 2: no such command: checks");
    installed.script("yes");
    one("it printed too much");
    installed.script("kill -9 $$");
    one("ended with a signal");
}

#[test]
#[cfg_attr(tasuki_portable, ignore = "a zombie counts as alive where the system tells no start")]
fn another_program_that_hangs_is_ended_with_all_that_it_has_started() {
    let (installed, home) = (Installed::new(), home_in_fleet());
    let pid = installed.path.path().join("pid");
    installed.script(&format!("sleep 300 & echo $! > {}; wait", pid.display()));
    let began = Instant::now();
    let (_, found) = installed.doctor(home.path(), &["--json"]);
    assert_eq!(found.iter().map(words).collect::<Vec<_>>(), [("fleet.program", "fail")], "{found:?}");
    assert!(found[0]["said"].as_str().is_some_and(|said| said.contains("within 20 s")), "{found:?}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let pid = fs::read_to_string(&pid).expect("it ran");
    let pid: u32 = pid.trim().parse().expect("an id");
    assert!(ends_soon(pid), "process {pid} still runs");
}
