//! The bridge as a service: what `tasuki fleet service` writes and calls. systemd and launchd are played by programs
//! that note how they were called; their own tools judge the files where they are there.

use crate::support::said::err;
use crate::support::service_user::{ServiceUser, packaging, property_list, systemd_finds_nothing_wrong};
use serde_json::json;
use std::fs;
use std::os::unix::fs::DirBuilderExt;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tasuki-fleet");

/// A user whose home has joined a fleet.
fn member() -> ServiceUser {
    let user = stranger();
    let fleet = json!({
        "name": "test", "key": tasuki::fleet::FleetKeys::generate().account_key(), "servers": ["tls://127.0.0.1:1"],
        "domain": "hub",
    });
    let host = json!({"v": 1, "name": "desk", "home_id": "11111111-1111-4111-8111-111111111111", "fleet": fleet});
    let folder = user.home().join("fleet");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).expect("a folder");
    fs::write(folder.join("host.json"), host.to_string()).expect("written");
    user
}

fn stranger() -> ServiceUser {
    ServiceUser::new(PROGRAM, "tasuki-fleet.service", "a home")
}

#[test]
fn a_home_in_no_fleet_gets_no_service() {
    let user = stranger();
    assert_eq!(user.refused(&["install"]), (77, "no_fleet".to_owned()));
    assert!(!user.unit().exists() && user.calls().is_empty());
}

#[test]
fn under_systemd_install_is_repeatable_and_uninstall_leaves_nothing() {
    let user = member();
    assert_eq!(user.refused(&["start"]), (1, "not_installed".to_owned()));
    assert_eq!(user.done(&["install", "--dry-run"])["status"], "would_change");
    assert!(!user.unit().exists() && user.calls().is_empty(), "nothing is done by looking");
    assert_eq!(user.done(&["install"])["status"], "started");
    let calls = ["--user daemon-reload", "--user enable tasuki-fleet.service", "--user restart tasuki-fleet.service"];
    assert_eq!(user.calls(), calls);
    let unit = fs::read_to_string(user.unit()).expect("a unit");
    let exec = format!("\nExecStart=\"{PROGRAM}\" \"--home\" \"{}\" \"run\"\n", user.home().display());
    assert!(unit.contains(&exec), "{unit}");
    assert!(unit.contains(&format!("PATH={}", user.path("bin").display())), "key_command needs it: {unit}");
    for word in ["start", "stop", "restart"] {
        user.done(&[word]);
        assert_eq!(user.calls(), [format!("--user {word} tasuki-fleet.service")]);
    }
    assert_eq!(user.done(&["uninstall"])["status"], "uninstalled");
    assert!(!user.unit().exists());
    assert_eq!(user.calls(), ["--user disable --now tasuki-fleet.service", "--user daemon-reload"]);
    assert_eq!(user.done(&["uninstall"])["status"], "not_installed");
}

#[test]
fn a_unit_of_an_earlier_version_is_ours_and_that_of_somebody_else_is_not() {
    let user = member();
    fs::create_dir_all(user.unit().parent().expect("a folder")).expect("made");
    let own = "[Service]\nExecStart=/usr/bin/tasuki-fleet run\n";
    fs::write(user.unit(), own).expect("written");
    assert_eq!(user.refused(&["install"]), (1, "not_ours".to_owned()));
    assert_eq!(user.refused(&["uninstall"]), (1, "not_ours".to_owned()));
    // The sidecar's own files have another first line.
    fs::write(user.unit(), format!("# Written by `tasuki service install`\n{own}")).expect("written");
    assert_eq!(user.refused(&["install"]), (1, "not_ours".to_owned()));
    let earlier = "# Written by `tasuki fleet service install`; `tasuki fleet service uninstall` removes it.\n";
    fs::write(user.unit(), format!("{earlier}{own}")).expect("written");
    assert_eq!(user.done(&["install", "--no-start"])["status"], "installed");
}

#[test]
fn under_launchd_the_agent_is_loaded_asked_for_and_removed() {
    let user = member();
    user.play_launchd(0, 0);
    let launchd = ["--manager", "launchd"];
    let with = |args: &[&'static str]| [args, &launchd].concat();
    assert_eq!(user.done(&with(&["install"]))["status"], "started");
    let agent = user.path("Library/LaunchAgents/dev.tasuki.fleet.plist");
    let domain = format!("gui/{}", nix::unistd::getuid());
    let target = format!("{domain}/dev.tasuki.fleet");
    let load = format!("bootstrap {domain} {}", agent.display());
    assert_eq!(user.calls(), [format!("enable {target}"), format!("bootout {target}"), load]);
    user.done(&with(&["restart"]));
    assert_eq!(user.calls(), [format!("kickstart -k {target}")]);
    user.play("launchctl", "printf 'state = running\\npid = 4711\\n'");
    let view = user.done(&with(&["status"]));
    assert_eq!(
        (&view["state"], &view["pid"], &view["bridge_answers"]),
        (&json!("active"), &json!(4711), &json!(false))
    );
    user.play("launchctl", "case $1 in print) [ \"$2\" = \"${2%/dev.*}\" ];; esac");
    assert_eq!(user.refused(&with(&["status"])), (1, "not_running".to_owned()));
    if let Some(list) = property_list(&agent) {
        assert_eq!(list["Label"], "dev.tasuki.fleet");
        assert_eq!(list["ProgramArguments"], json!([PROGRAM, "--home", user.home(), "run"]));
        let log = user.path("Library/Logs/tasuki/tasuki-fleet.log");
        assert_eq!((&list["StandardErrorPath"], &list["StandardOutPath"]), (&json!(log), &json!(log)));
        assert_eq!((&list["KeepAlive"]["SuccessfulExit"], &list["Umask"]), (&json!(false), &json!(63)));
        assert!(list["EnvironmentVariables"]["PATH"].as_str().expect("a path").contains("/usr/bin"));
        assert_eq!(
            (&list["EnvironmentVariables"]["TASUKI_SERVICE"], &list["ProcessType"]),
            (&json!("launchd"), &json!("Interactive"))
        );
    }
    assert_eq!(user.done(&with(&["uninstall"]))["status"], "uninstalled");
    assert!(!agent.exists());
}

#[test]
fn status_tells_what_the_manager_and_the_bridge_say() {
    let user = member();
    let output = user.run(&["status"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains(" fleet service install"), "{}", err(&output));
    user.done(&["install", "--no-start"]);
    user.play("systemctl", "printf 'ActiveState=active\\nMainPID=4711\\n'");
    let view = user.done(&["status"]);
    assert_eq!(
        (&view["state"], &view["pid"], &view["bridge_answers"]),
        (&json!("active"), &json!(4711), &json!(false))
    );
    user.play("systemctl", "printf 'ActiveState=failed\\nMainPID=0\\n'");
    assert_eq!(user.refused(&["status"]), (1, "not_running".to_owned()));
}

#[test]
fn the_packaged_files_start_what_is_packaged_and_nothing_is_wrong_with_them() {
    let user = member();
    user.done(&["install", "--no-start"]);
    systemd_finds_nothing_wrong(&user, "/usr/bin/tasuki-fleet", 75);
    let Some(list) = property_list(&packaging("launchd").join("dev.tasuki.fleet.plist")) else { return };
    assert_eq!(list["ProgramArguments"], json!(["/usr/local/bin/tasuki-fleet", "run"]));
}
