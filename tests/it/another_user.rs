//! Another user on the machine, who has made ready what tasuki is about to use: it is refused with the path and the fix,
//! and nothing of theirs is spoken to, run or typed.

use crate::support::stage::Stage;
use crate::support::stage_hostile::is_root;
use crate::support::tally;
use nix::unistd::{Uid, chown};
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Somebody else: `nobody` on every system that we know.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

fn give_away(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).expect("given away");
}

/// What doctor says of one thing: its status, and what it saw with the fix.
fn doctor(stage: &Stage, socket: &Path, id: &str) -> (String, String) {
    let mut command = stage.command(&["doctor", "--json"]);
    let output = command.env("TASUKI_TMUX", socket).output().expect("it runs");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = found["checks"].as_array().cloned().unwrap_or_default();
    let check = checks.into_iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {found:#}"));
    let words = format!("{} {}", check["said"].as_str().unwrap_or_default(), check["fix"].as_str().unwrap_or_default());
    (check["status"].as_str().unwrap_or_default().to_owned(), words)
}

/// Nothing of ours speaks at this socket: not the sidecar at its start, not for a request, not doctor. All say why.
fn left_alone(stage: &Stage, socket: &Path, blamed: &Path, why: &str) {
    let _ = fs::remove_file(stage.log_file());
    let mut command = stage.command(&["run", "--tmux", &socket.display().to_string()]);
    let log = fs::File::create(stage.log_file()).expect("a log");
    let child = command.env("TASUKI_LOG", "debug").stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
    stage.adopt(child);
    stage.until_beating();
    let blamed = blamed.display().to_string();
    stage.until("the log tells of it", || {
        let log = fs::read_to_string(stage.log_file()).expect("a log");
        log.lines().any(|line| line.contains(&blamed) && line.contains(why))
    });
    stage.persona("kai");
    let (status, code, message) = stage.refused(&json!({"kind": "agent_create", "persona_slug": "kai"}));
    assert_eq!((status, code.as_str()), (503, "no_tmux"), "{message}");
    let (status, words) = doctor(stage, socket, "tmux.socket");
    assert!(status == "fail" && words.contains(&blamed) && words.contains(why), "{status}: {words}");
    stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
    tally::add(tally::FAULTS, 1);
}

/// A socket that another user could listen on, and what spoke there.
struct Trap {
    listener: UnixListener,
    path: PathBuf,
}

impl Trap {
    fn at(path: PathBuf) -> Trap {
        let listener = UnixListener::bind(&path).expect("a socket");
        listener.set_nonblocking(true).expect("it does not wait");
        set_mode(&path, 0o700);
        Trap { listener, path }
    }

    fn is_untouched(&self) {
        assert!(self.listener.accept().is_err(), "somebody has connected to {}", self.path.display());
    }
}

#[test]
fn a_tmux_socket_that_another_user_could_have_made_is_never_spoken_to() {
    if !is_root("a socket of another user's") {
        return;
    }
    let stage = Stage::without_sidecar("");
    let root = stage.work_dir();
    let folder = |name: &str| {
        let path = root.join(name);
        fs::create_dir(&path).expect("made");
        set_mode(&path, 0o700);
        path
    };
    // Their folder, as anybody can make it in /tmp before the first tmux of a day.
    let theirs = folder("theirs");
    let trap = Trap::at(theirs.join("default"));
    give_away(&theirs);
    left_alone(&stage, &trap.path, &theirs, "belongs to user 65534");
    trap.is_untouched();
    // Their socket in a folder of ours, and folders in which they could put one.
    let ours = folder("ours");
    let trap = Trap::at(ours.join("default"));
    give_away(&trap.path);
    left_alone(&stage, &trap.path, &trap.path, "belongs to user 65534");
    trap.is_untouched();
    for mode in [0o777, 0o1777, 0o770, 0o707] {
        let open = folder(&format!("open-{mode:o}"));
        let trap = Trap::at(open.join("default"));
        set_mode(&open, mode);
        left_alone(&stage, &trap.path, &open, "other users");
        trap.is_untouched();
    }
    // tmux's own folder, by tmux's own rule.
    let tmuxs = folder("tmux-0");
    let trap = Trap::at(tmuxs.join("default"));
    set_mode(&tmuxs, 0o755);
    left_alone(&stage, &trap.path, &tmuxs, "other users");
    trap.is_untouched();
    // Our folder inside one of theirs, and one in which they can rename.
    for (name, mode, why) in [("above", 0o700, "belongs to user 65534"), ("loose", 0o777, "other users")] {
        let above = folder(name);
        let inside = folder(&format!("{name}/inside"));
        let trap = Trap::at(inside.join("default"));
        set_mode(&above, mode);
        if mode == 0o700 {
            give_away(&above);
        }
        left_alone(&stage, &trap.path, &above, why);
        trap.is_untouched();
    }
    // Their link to a socket of ours.
    let safe = folder("safe");
    let trap = Trap::at(safe.join("default"));
    let link = root.join("link");
    symlink(&safe, &link).expect("a link");
    give_away(&link);
    left_alone(&stage, &link.join("default"), &link, "belongs to user 65534");
    trap.is_untouched();
}

#[test]
fn a_tmux_server_of_another_user_behind_a_socket_of_ours_is_never_spoken_to() {
    if !is_root("a tmux server of another user's") {
        return;
    }
    let stage = Stage::without_sidecar("");
    set_mode(stage.home().parent().expect("a parent"), 0o711);
    set_mode(&stage.work_dir(), 0o711);
    let folder = stage.work_dir().join("tmux");
    fs::create_dir(&folder).expect("made");
    set_mode(&folder, 0o700);
    give_away(&folder);
    let socket = folder.join("default");
    let theirs = |args: &[&str]| {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&socket).args(["-f", "/dev/null"]).args(args).uid(NOBODY).gid(NOBODY).current_dir("/");
        Stage::make_own(&mut command);
        command.stdin(Stdio::null()).output().expect("tmux runs")
    };
    let made = theirs(&["new-session", "-d", "-s", "theirs", "exec cat"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for path in [&folder, &socket] {
        chown(path, Some(Uid::from_raw(0)), None).expect("taken");
    }
    left_alone(&stage, &socket, &socket, "is listened on by user 65534");
    give_away(&folder);
    give_away(&socket);
    let asked = theirs(&["list-sessions", "-F", "#{session_name}"]);
    let sessions = String::from_utf8_lossy(&asked.stdout).into_owned();
    theirs(&["kill-server"]);
    assert_eq!(sessions, "theirs\n", "{}", String::from_utf8_lossy(&asked.stderr));
}
