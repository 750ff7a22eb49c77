//! Another user on the machine, who is there while tasuki is used: what that user makes ready, holds or tries with a
//! uid of its own, and what the program says. `another_user` and `other_people` hold what such a user may have left
//! behind.

use crate::another_user::give_by_list;
use crate::support::stage::Stage;
use crate::support::stage_hostile::is_root;
use crate::support::tally;
use nix::sys::signal::Signal;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Somebody else: `nobody` on every system that we know.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

fn theirs(program: &str) -> Command {
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY).env_clear().env("PATH", "/usr/bin:/bin").current_dir("/").stdin(Stdio::null());
    command
}

/// What they do must work.
fn they_do<S: AsRef<OsStr>>(script: &str, arguments: &[S]) {
    let output = theirs("sh").args(["-ec", script, "sh"]).args(arguments).output().expect("it runs");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `tasuki run` on that home, which must be refused as not allowed; gives what it said.
fn refused_at(stage: &Stage, home: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    command.arg("--home").arg(home).args(["run", "--tmux"]).arg(stage.socket()).stdin(Stdio::null());
    Stage::make_own(&mut command);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "{said}");
    tally::add(tally::FAULTS, 1);
    said
}

/// A stage whose folders they may walk through, as in a home folder below /home.
fn reachable() -> Stage {
    let stage = Stage::without_sidecar("");
    set_mode(stage.home().parent().expect("a parent"), 0o711);
    set_mode(&stage.work_dir(), 0o711);
    stage
}

#[test]
fn a_home_that_they_were_the_first_to_make_in_a_shared_place_is_refused() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = reachable();
    let shared = stage.work_dir().join("shared");
    fs::create_dir(&shared).expect("made");
    set_mode(&shared, 0o1777);
    let home = shared.join("home");
    for mode in ["700", "755", "777", "1777"] {
        they_do("mkdir \"$1\"; chmod \"$2\" \"$1\"", &[home.as_os_str(), OsStr::new(mode)]);
        let said = refused_at(&stage, &home);
        assert!(said.contains("belongs to user 65534") && said.contains(&home.display().to_string()), "{mode}: {said}");
        assert_eq!(fs::read_dir(&home).expect("there").count(), 0, "something was put into their folder");
        they_do("rmdir \"$1\"", &[&home]);
    }
    // Ours, in a folder of theirs in which they can put another in its place, sticky or not.
    let above = shared.join("above");
    they_do("mkdir \"$1\"", &[&above]);
    for mode in [0o755, 0o777, 0o1777] {
        set_mode(&above, mode);
        let said = refused_at(&stage, &above.join("home"));
        assert!(said.contains(&above.display().to_string()), "{mode:o}: {said}");
    }
}

/// Whether a sidecar runs in our home is not theirs to know, and no command says that none does.
#[test]
fn a_home_that_they_may_not_open_is_not_called_one_without_a_sidecar() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = reachable();
    let program = stage.work_dir().join("tasuki");
    fs::copy(env!("CARGO_BIN_EXE_tasuki"), &program).expect("copied");
    set_mode(&program, 0o755);
    stage.start_sidecar();
    let view = stage.home().join("view");
    for (home, folder) in [(0o700, 0o700), (0o711, 0o700)] {
        set_mode(&stage.home(), home);
        set_mode(&view, folder);
        for command in ["agents", "status", "handoffs", "errors", "work list", "lineage kai", "read kai", "send kai x"]
        {
            let mut theirs = theirs(&program.display().to_string());
            let output = theirs.arg("--home").arg(stage.home()).args(command.split(' ')).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(77), "{command}: {said}");
            assert!(said.contains(&view.display().to_string()) && !said.contains("No sidecar"), "{command}: {said}");
            tally::add(tally::FAULTS, 1);
        }
    }
    set_mode(&stage.home(), 0o700);
    stage.end_sidecar(Signal::SIGTERM);
    // A view of theirs in our home: whoever wrote it, it was not our sidecar.
    let file = view.join("sidecar.json");
    fs::write(&file, "{\"pid\":1,\"heartbeat\":\"2026-11-21T20:00:00.000Z\"}").expect("a view");
    std::os::unix::fs::lchown(&file, Some(NOBODY), Some(NOBODY)).expect("given away");
    let output = stage.command(&["agents"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(77), "{said}");
    assert!(said.contains("sidecar.json belongs to another user"), "{said}");
}

#[test]
fn a_tmux_folder_that_they_were_the_first_to_make_is_not_used() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = reachable();
    let tmp = stage.work_dir().join("tmp");
    fs::create_dir(&tmp).expect("made");
    set_mode(&tmp, 0o1777);
    let folder = tmp.join("tmux-0");
    they_do("mkdir -m 755 \"$1\"", &[&folder]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    command.arg("--home").arg(stage.home()).args(["doctor", "--json"]).stdin(Stdio::null());
    Stage::make_own(&mut command);
    let output = command.env("TMUX_TMPDIR", &tmp).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("belongs to user 65534") && said.contains(&folder.display().to_string()), "{said}");
    tally::add(tally::FAULTS, 1);
}

/// Whoever holds the port gets no word from us, in either family.
#[test]
fn a_port_that_they_hold_is_told_and_not_spoken_to() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = Stage::new();
    for (family, host) in [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")] {
        let script = format!(
            "import socket, sys\ns = socket.socket(socket.{family}); s.bind(('{host}', 0)); s.listen()\n\
             print(s.getsockname()[1], flush=True)\ns.settimeout(4)\n\
             try:\n  c, _ = s.accept(); c.settimeout(2); print('spoke', c.recv(9999))\nexcept OSError: pass"
        );
        let holder = theirs("python3").args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut holder) = holder else { return tally::skip("no python3 to hold a port by another user") };
        let mut told = BufReader::new(holder.stdout.take().expect("an output"));
        let mut port = String::new();
        told.read_line(&mut port).expect("a line");
        let Ok(port) = port.trim().parse::<u16>() else {
            holder.wait().expect("it has ended");
            tally::skip("no ::1 on this machine");
            continue;
        };
        let output = stage.command(&["serve", "--listen", &format!("127.0.0.1:{port}")]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(75), "{host}: {said}");
        assert!(said.contains(&port.to_string()), "{host}: {said}");
        let mut heard = String::new();
        told.read_to_string(&mut heard).expect("its words");
        holder.wait().expect("it has ended");
        assert_eq!(heard, "", "{host}");
        tally::add(tally::FAULTS, 1);
    }
}

/// An access list that is handed down gives them all rights to whatever is made without a word about modes.
#[test]
fn what_is_made_below_a_list_that_is_handed_down_is_for_its_owner_alone() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = reachable();
    if !give_by_list(&stage.home(), "default") {
        return tally::skip("no python3 to give rights by an access list, or no such lists on this file system");
    }
    stage.start_sidecar();
    stage.all_answered(&[stage.send_cheap()]);
    stage.end_sidecar(Signal::SIGTERM);
    // Even with the doors open, the files themselves are shut.
    let state = stage.home().join("state");
    for door in [&stage.home(), &state] {
        set_mode(door, 0o711);
    }
    for name in ["tasuki.redb", "tasuki.lock"] {
        let path = state.join(name);
        let Ok(meta) = fs::metadata(&path) else { continue };
        assert_eq!(meta.mode() & 0o077, 0, "{name}: {:o}", meta.mode());
        let script = "cat \"$1\" >/dev/null 2>&1 && echo read; (: >>\"$1\") 2>/dev/null && echo written; true";
        let output = theirs("sh").args(["-c", script, "sh"]).arg(&path).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{name}");
        tally::add(tally::FAULTS, 2);
    }
    assert!(state.join("tasuki.redb").exists());
}
