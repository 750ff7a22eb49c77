//! The sidecar as a service: what `tasuki service` writes and calls. systemd itself is played by a program that notes
//! how it was called; its own tools judge the unit where they are there.

use super::support::said::{err, out};
use super::support::service_user::{ServiceUser, packaging, property_list, systemd_finds_nothing_wrong};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn user() -> ServiceUser {
    ServiceUser::new(env!("CARGO_BIN_EXE_tasuki"), "tasuki.service", "/srv/a home")
}

#[test]
fn install_is_repeatable_and_uninstall_leaves_nothing() {
    let user = user();
    assert_eq!(user.refused(&["start"]), (1, "not_installed".to_owned()));
    assert_eq!(user.done(&["install", "--dry-run"])["status"], "would_change");
    assert!(!user.unit().exists() && user.calls().is_empty(), "nothing is done by looking");
    assert_eq!(user.done(&["install", "--no-start"])["status"], "installed");
    assert_eq!(user.calls(), ["--user daemon-reload", "--user enable tasuki.service"]);
    assert_eq!(user.done(&["install", "--no-start"])["status"], "already_installed");
    user.calls();
    assert_eq!(user.done(&["--tmux", "work", "install"])["status"], "started");
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
fn the_service_of_another_home_is_left_alone() {
    let user = ServiceUser::new(env!("CARGO_BIN_EXE_tasuki"), "tasuki.service", "home");
    fs::create_dir_all(user.home()).expect("a home");
    user.done(&["install"]);
    let before = fs::read_to_string(user.unit()).expect("a unit");
    let other = user.path("other");
    user.calls();
    for word in ["install", "uninstall", "start", "stop", "restart"] {
        let output = user.with(&other, &[], &["service", word, "--json"]);
        let said = err(&output);
        assert_eq!(output.status.code(), Some(1), "{word}: {said}");
        assert!(said.contains("\"other_home\"") && said.contains("tasuki service uninstall --home"), "{word}: {said}");
    }
    assert!(user.calls().is_empty() && fs::read_to_string(user.unit()).expect("there") == before);
    // A home that is gone needs no service.
    fs::remove_dir_all(user.home()).expect("removed");
    let output = user.with(&other, &[], &["service", "install", "--json"]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn a_service_that_can_not_be_asked_for_is_not_said_to_be_down() {
    let user = user();
    user.done(&["install", "--no-start"]);
    user.play("systemctl", "echo 'Failed to connect to bus: No medium found' >&2; exit 1");
    assert_eq!(user.refused(&["status"]), (1, "no_service_manager".to_owned()));
}

#[test]
fn a_service_gets_the_time_zone_of_the_shell() {
    let user = user();
    let zone = [("TZ", "America/New_York")];
    let output = user.with(user.home(), &zone, &["service", "install", "--dry-run"]);
    assert!(out(&output).contains("TZ=America/New_York"), "{}", out(&output));
}

/// The service runs in another folder than the shell in which it is installed.
#[test]
fn a_service_gets_the_whole_path_of_a_tmux_socket() {
    let user = user();
    let here = std::env::current_dir().expect("it is there").join("run/s").display().to_string();
    for named in ["run/s", &here] {
        let text = user.done(&["install", "--dry-run", "--tmux", named])["text"].to_string();
        assert!(text.contains(&here) && !text.contains("\"run/s"), "{text}");
    }
}

#[test]
fn a_unit_that_somebody_else_wrote_is_left_alone() {
    let user = user();
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
    let user = user();
    user.play("systemctl", "echo 'Failed to connect to bus' >&2; exit 1");
    let output = user.run(&["install"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("Failed to connect to bus") && said.contains(" run` in a tmux window"), "{said}");
    assert!(!user.unit().exists());
}

#[test]
fn a_failed_start_is_told_with_what_the_manager_said() {
    let user = user();
    user.play("systemctl", "case \"$*\" in *restart*) echo 'Unit is masked.' >&2; exit 1;; esac");
    let output = user.run(&["install"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("Unit is masked."), "{}", err(&output));
}

#[test]
fn status_tells_what_the_manager_and_the_sidecar_say() {
    let user = user();
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
    let user = user();
    let packaged = user.path("share/systemd/user/tasuki.service");
    fs::create_dir_all(packaged.parent().expect("a folder")).expect("made");
    fs::copy(packaging("systemd").join("tasuki.service"), &packaged).expect("there");
    user.done(&["start"]);
    assert_eq!(user.calls(), ["--user start tasuki.service"]);
    user.play("systemctl", "printf 'ActiveState=active\\nMainPID=4711\\nSubState=running\\n'");
    let view = user.done(&["status"]);
    assert_eq!((&view["installed"], &view["file"]), (&true.into(), &packaged.display().to_string().into()));
    // What is the package's is removed by the package.
    assert_eq!(user.done(&["uninstall"])["status"], "not_installed");
    let said = out(&user.run(&["uninstall"]));
    assert!(said.contains("systemctl --user disable --now tasuki.service"), "{said}");
    assert!(packaged.exists());
    // One of the user's own goes before it.
    user.play("systemctl", "echo \"$@\" >>\"$CALLS\"");
    assert_eq!(user.done(&["install", "--no-start"])["status"], "installed");
    assert!(user.unit().exists());
}

#[test]
fn doctor_knows_a_packaged_unit_and_looks_whether_it_runs() {
    let home = super::support::fake_sidecar::FakeHome::new();
    let path = home.path().display().to_string();
    let user = ServiceUser::new(env!("CARGO_BIN_EXE_tasuki"), "tasuki.service", &path);
    let packaged = user.path("share/systemd/user/tasuki.service");
    fs::create_dir_all(packaged.parent().expect("a folder")).expect("made");
    fs::copy(packaging("systemd").join("tasuki.service"), &packaged).expect("there");
    // A process that is named like a sidecar, so that what is wrong with the service follows from nothing else. It ends
    // with its input.
    let mut sidecar = Command::new("sh");
    sidecar.arg0("tasuki").args(["-c", "read line; :", "run"]).stdin(Stdio::piped());
    let mut sidecar = sidecar.spawn().expect("a shell");
    let found = |active: &str, enabled: &str| -> Vec<(String, String)> {
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        home.write("view/sidecar.json", &serde_json::json!({"pid": sidecar.id(), "version": "0", "heartbeat": now}));
        let states = format!("printf 'ActiveState={active}\\nUnitFileState={enabled}\\nResult=success\\n'");
        user.play("systemctl", &states);
        let output = user.asked("doctor", &["--manager", "systemd", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        let text = |check: &serde_json::Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
        let checks = report["checks"].as_array().expect("checks").iter();
        let own = checks.filter(|check| text(check, "id").starts_with("service."));
        own.map(|check| (text(check, "id"), text(check, "status"))).filter(|(id, _)| id != "service.lingers").collect()
    };
    let expected = |states: &[(&str, &str)]| -> Vec<(String, String)> {
        states.iter().map(|(id, state)| ((*id).to_owned(), (*state).to_owned())).collect()
    };
    let both = |state| expected(&[("service.file", "ok"), ("service.state", state)]);
    assert_eq!(found("active", "enabled"), both("ok"));
    assert_eq!(found("active", "disabled"), both("warn"));
    assert_eq!(found("failed", "enabled"), both("fail"));
    assert_eq!(found("inactive", "disabled"), expected(&[("service.file", "skipped")]), "nobody wants it to run");
    drop(sidecar.stdin.take());
    sidecar.wait().expect("its end");
}

#[test]
fn the_log_is_printed_by_the_journal_s_own_program() {
    let user = user();
    user.play("journalctl", "echo \"$@\"");
    let output = user.run(&["logs", "--lines", "7", "--follow"]);
    assert_eq!(out(&output).trim(), "--user --unit tasuki.service --lines 7 -f");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_unit() {
    let user = user();
    user.done(&["install", "--no-start"]);
    // A user's unit can hide no folder, and this one needs the network for gh: 7.3 is what is left of 10.
    systemd_finds_nothing_wrong(&user, "/usr/bin/tasuki", 75);
}

#[test]
fn launchd_gets_a_service_again_only_when_the_old_one_has_gone() {
    let user = user();
    user.play_launchd(2, 1);
    let launchd = |args: &[&'static str]| user.done(&[args, &["--manager", "launchd"]].concat());
    let agent = user.path("Library/LaunchAgents/dev.tasuki.sidecar.plist");
    let domain = format!("gui/{}", nix::unistd::getuid());
    let target = format!("{domain}/dev.tasuki.sidecar");
    let [enable, bootout, kick] = ["enable", "bootout", "kickstart"].map(|call| format!("{call} {target}"));
    let load = format!("bootstrap {domain} {}", agent.display());
    assert_eq!(launchd(&["install"])["status"], "started");
    assert_eq!(user.calls(), [&enable, &bootout, &load].map(String::as_str));
    // A second time, as after an update.
    assert_eq!(launchd(&["install"])["status"], "started");
    assert_eq!(user.calls(), [&enable, &bootout, &load, &load].map(String::as_str), "again while launchd is busy");
    launchd(&["stop"]);
    launchd(&["start"]);
    assert_eq!(user.calls(), [&bootout, &enable, &load, &load, &kick].map(String::as_str));
    // A service that is there already is started all the same.
    launchd(&["start"]);
    assert_eq!(user.calls(), [&enable, &load, &kick].map(String::as_str));
    launchd(&["uninstall"]);
    assert_eq!((user.calls(), agent.exists()), (vec![bootout], false));
}

#[test]
fn what_launchd_refuses_for_another_reason_is_told_at_once() {
    let user = user();
    user.play(
        "launchctl",
        "case $1 in print) [ \"$2\" = \"${2%/dev.*}\" ];; bootstrap) echo 'Bootstrap failed: 125' >&2; exit 125;; esac",
    );
    let output = user.run(&["install", "--manager", "launchd"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("Bootstrap failed: 125"), "{}", err(&output));
}

#[test]
fn doctor_knows_launchds_agent_its_file_its_state_and_its_path() {
    let home = super::support::fake_sidecar::FakeHome::new();
    let path = home.path().display().to_string();
    let user = ServiceUser::new(env!("CARGO_BIN_EXE_tasuki"), "tasuki.service", &path);
    // A process that is named like a sidecar, so that what is wrong with the service follows from nothing else. It ends
    // with its input.
    let mut sidecar = Command::new("sh");
    sidecar.arg0("tasuki").args(["-c", "read line; :", "run"]).stdin(Stdio::piped());
    let mut sidecar = sidecar.spawn().expect("a shell");
    user.play_launchd(0, 0);
    let found = || -> Vec<(String, String, String)> {
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let view = serde_json::json!({"pid": sidecar.id(), "version": "0", "heartbeat": now});
        home.write("view/sidecar.json", &view);
        let output = user.asked("doctor", &["--manager", "launchd", "--json"]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a report");
        let text = |check: &serde_json::Value, key: &str| check[key].as_str().unwrap_or_default().to_owned();
        let checks = report["checks"].as_array().expect("checks").iter();
        let own = checks.filter(|check| text(check, "id").starts_with("service."));
        own.map(|check| (text(check, "id"), text(check, "status"), text(check, "said"))).collect()
    };
    let states = || -> Vec<(String, String)> { found().into_iter().map(|(id, state, _)| (id, state)).collect() };
    let expected = |states: [&str; 3]| -> Vec<(String, String)> {
        let ids = ["service.file", "service.environment", "service.state"];
        ids.into_iter().zip(states).map(|(id, state)| (id.to_owned(), state.to_owned())).collect()
    };
    assert_eq!(states(), [("service.file".to_owned(), "skipped".to_owned())], "it is not installed");
    user.done(&["install", "--manager", "launchd"]);
    assert_eq!(states(), expected(["ok", "ok", "ok"]));
    let disabled = format!("{}.disabled", user.path("calls").display());
    fs::write(&disabled, "").expect("written");
    assert_eq!(states(), expected(["ok", "ok", "warn"]), "it runs and is disabled");
    user.done(&["stop", "--manager", "launchd"]);
    let last = || found().pop().expect("a state");
    assert!(last().1 == "warn" && last().2.contains("not as the service"), "{:?}", last());
    fs::remove_file(&disabled).expect("removed");
    user.done(&["start", "--manager", "launchd"]);
    // A later shell has another PATH, and another version of tasuki wrote the file.
    let agent = user.path("Library/LaunchAgents/dev.tasuki.sidecar.plist");
    let text = fs::read_to_string(&agent).expect("a list");
    fs::write(&agent, text.replace("/usr/bin:/bin", "/bin")).expect("written");
    assert_eq!(states(), expected(["ok", "warn", "ok"]));
    fs::write(&agent, text.replace("Interactive", "Background")).expect("written");
    assert_eq!(states(), expected(["warn", "ok", "ok"]));
    drop(sidecar.stdin.take());
    sidecar.wait().expect("its end");
}

/// launchd starts a service again after every exit code but 0.
#[test]
fn under_launchd_a_broken_configuration_is_told_and_not_tried_again() {
    let home = super::support::fake_sidecar::FakeHome::new();
    fs::write(home.path().join("config.toml"), "this is no TOML").expect("written");
    let run = |manager: Option<&str>| {
        let mut command = home.command(&["run"]);
        command.env_remove("TASUKI_SERVICE").envs(manager.map(|manager| ("TASUKI_SERVICE", manager)));
        command.output().expect("the program runs")
    };
    assert_eq!(run(None).status.code(), Some(78));
    let output = run(Some("launchd"));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let said = err(&output);
    assert!(said.contains("config.toml") && said.contains("tasuki service start"), "{said}");
}

#[test]
fn the_property_list_is_one() {
    let user = user();
    let text =
        user.done(&["install", "--dry-run", "--manager", "launchd"])["text"].as_str().expect("a text").to_owned();
    let path = user.path("tasuki.plist");
    fs::write(&path, text).expect("written");
    let Some(list) = property_list(&packaging("launchd").join("dev.tasuki.sidecar.plist")) else { return };
    assert_eq!(list["ProgramArguments"], serde_json::json!(["/usr/local/bin/tasuki", "run"]));
    let Some(list) = property_list(&path) else { return };
    assert_eq!(
        list["ProgramArguments"],
        serde_json::json!([env!("CARGO_BIN_EXE_tasuki"), "--home", user.home(), "run"])
    );
    assert_eq!((&list["KeepAlive"]["SuccessfulExit"], &list["Umask"]), (&false.into(), &63.into()));
    assert!(list["EnvironmentVariables"]["PATH"].as_str().expect("a path").contains("/usr/bin"));
    assert_eq!(list["EnvironmentVariables"]["TASUKI_SERVICE"], "launchd");
    assert_eq!(
        (&list["ProcessType"], &list["SoftResourceLimits"]["NumberOfFiles"]),
        (&"Interactive".into(), &4096.into())
    );
    assert_eq!(list["StandardErrorPath"], serde_json::json!(user.path("Library/Logs/tasuki/tasuki.log")));
}
