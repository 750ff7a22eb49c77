//! Another user on the machine, who has made ready what tasuki is about to use: it is refused with the path and the
//! fix, and nothing of theirs is spoken to, run or typed.

use crate::support::server::Server;
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
    assert!(message.contains(why), "{message}");
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
        // Their shell may be one that lets nobody in; tmux takes what it is told first.
        command.env("SHELL", "/bin/sh");
        command.stdin(Stdio::null()).output().expect("tmux runs")
    };
    let made = theirs(&["new-session", "-d", "-s", "theirs", "exec cat"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for path in [&folder, &socket] {
        chown(path, Some(Uid::from_raw(0)), None).expect("taken");
    }
    left_alone(&stage, &socket, &socket, "has a listener of user 65534");
    give_away(&folder);
    give_away(&socket);
    let asked = theirs(&["list-sessions", "-F", "#{session_name}"]);
    let sessions = String::from_utf8_lossy(&asked.stdout).into_owned();
    theirs(&["kill-server"]);
    assert_eq!(sessions, "theirs\n", "{}", String::from_utf8_lossy(&asked.stderr));
}

/// `tasuki run` must refuse; gives what it said.
fn refused(stage: &Stage) -> String {
    let (code, said) = stage.refused_start();
    assert_eq!(code, Some(77), "{said}");
    tally::add(tally::FAULTS, 1);
    said
}

/// A profile like the demo's, of another name.
fn profile(stage: &Stage, home: &Path, name: &str) -> PathBuf {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/data/profiles/demo.toml")).expect("a profile");
    let path = home.join("data/profiles").join(format!("{name}.toml"));
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    for folder in ["data", "data/profiles"] {
        set_mode(&home.join(folder), 0o700);
    }
    fs::write(&path, text).expect("written");
    set_mode(&path, 0o600);
    assert!(path.exists(), "{}", stage.story());
    path
}

#[test]
fn what_is_run_or_typed_and_others_could_change_is_refused_at_the_start() {
    let stage = Stage::without_sidecar("");
    stage.persona("kai");
    let path = profile(&stage, &stage.home(), "other");
    let prompt = stage.home().join("data/prompts/briefing.md");
    fs::create_dir(prompt.parent().expect("a folder")).expect("made");
    fs::write(&prompt, "Read {{ file_path }}.\n").expect("written");
    let (config, rules) = (stage.home().join("config.toml"), stage.home().join("data/rules.toml"));
    for file in [&config, &rules] {
        if !file.exists() {
            fs::write(file, "").expect("written");
        }
        set_mode(file, 0o600);
    }
    let folders = ["data", "data/personas", "data/profiles", "data/prompts"].map(|below| stage.home().join(below));
    folders.iter().for_each(|folder| set_mode(folder, 0o755));
    for (path, modes) in folders.iter().map(|folder| (folder, [0o777, 0o1777, 0o775])).chain([
        (&path, [0o666, 0o664, 0o646]),
        (&prompt, [0o666, 0o664, 0o646]),
        (&config, [0o666, 0o664, 0o646]),
        (&rules, [0o666, 0o664, 0o646]),
        (&stage.home(), [0o777, 0o1777, 0o775]),
    ]) {
        let good = fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        for mode in modes {
            set_mode(path, mode);
            let said = refused(&stage);
            assert!(said.contains(&format!("chmod go-w '{}'", path.display())), "{mode:o}: {said}");
        }
        let (id, shown) = match path.file_name().and_then(|name| name.to_str()) {
            Some("profiles" | "other.toml") => ("data.profiles", path),
            Some("prompts" | "briefing.md") => ("data.prompts", path),
            _ => ("", path),
        };
        if !id.is_empty() {
            let (status, words) = doctor(&stage, &stage.socket(), id);
            assert!(status == "fail" && words.contains(&shown.display().to_string()), "{status}: {words}");
        }
        set_mode(path, good);
    }
    stage.start_sidecar();
}

#[test]
fn what_is_run_or_typed_and_belongs_to_another_user_is_never_read() {
    if !is_root("a profile of another user's") {
        return;
    }
    let stage = Stage::new();
    let agent = stage.agent("kai");
    let path = profile(&stage, &stage.home(), "other");
    give_away(&path);
    stage.signal(nix::sys::signal::Signal::SIGHUP);
    stage.until("the sidecar says that it does not read it", || {
        let log = fs::read_to_string(stage.log_file()).expect("a log");
        log.lines()
            .any(|line| line.contains("the previous one stays in force") && line.contains("belongs to user 65534"))
    });
    let asked = json!({"kind": "agent_create", "persona_slug": "kai", "profile": "other"});
    assert_ne!(stage.refused(&asked).0, 200);
    // A skill that somebody else could have written is typed into nobody.
    stage.persona("mia");
    for theirs in ["skill.md", "persona.toml", ""] {
        let path = stage.home().join("data/personas/mia").join(theirs);
        give_away(&path);
        let (status, code, message) = stage.refused(&json!({"kind": "agent_create", "persona_slug": "mia"}));
        assert!(status >= 400, "{code}: {message}");
        chown(&path, Some(Uid::from_raw(0)), None).expect("taken back");
    }
    set_mode(&stage.home().join("data/personas/mia/skill.md"), 0o666);
    let (status, code, message) = stage.refused(&json!({"kind": "agent_create", "persona_slug": "mia"}));
    assert!(status >= 400 && message.contains("chmod go-w"), "{code}: {message}");
    assert_eq!(stage.agent_view(&agent)["state"], "idle");
    stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
    assert!(refused(&stage).contains("belongs to user 65534"));
}

#[test]
fn a_link_on_the_way_to_the_home_is_followed_once() {
    let stage = Stage::without_sidecar("");
    let link = stage.work_dir().join("link");
    symlink(stage.home(), &link).expect("a link");
    let log = fs::File::create(stage.log_file()).expect("a log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    command.arg("--home").arg(&link).args(["run", "--tmux"]).arg(stage.socket()).stdin(Stdio::null());
    Stage::make_own(&mut command);
    let child = command.env("TASUKI_LOG", "debug").stdout(Stdio::null()).stderr(log).spawn().expect("it starts");
    stage.adopt(child);
    stage.until_beating();
    let other = stage.work_dir().join("elsewhere");
    fs::create_dir(&other).expect("made");
    set_mode(&other, 0o700);
    profile(&stage, &other, "elsewhere");
    fs::remove_file(&link).expect("removed");
    symlink(&other, &link).expect("a link");
    stage.signal(nix::sys::signal::Signal::SIGHUP);
    stage.until("it has read its configuration again", || {
        fs::read_to_string(stage.log_file()).expect("a log").contains("reloaded the configuration")
    });
    stage.persona("kai");
    let (status, _, message) =
        stage.refused(&json!({"kind": "agent_create", "persona_slug": "kai", "profile": "elsewhere"}));
    assert_eq!((status, message.as_str()), (404, "Profile not found"));
    stage.agent("mia");
}

#[test]
fn a_home_whose_path_can_not_be_typed_or_shown_is_refused() {
    let stage = Stage::without_sidecar("");
    for name in ["h\u{1b}]0;pwn\u{7}", "h\u{202e}x", "h`id`", "h\nx"] {
        let home = stage.work_dir().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        command.arg("--home").arg(&home).args(["run", "--tmux"]).arg(stage.socket()).stdin(Stdio::null());
        Stage::make_own(&mut command);
        let output = command.output().expect("it runs");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(78), "{said:?}");
        assert_eq!(tasuki::core::text::sanitise(said.trim_end()), said.trim_end(), "it would drive a terminal");
        assert!(said.contains("choose a home") && !home.exists(), "{said}");
    }
}

/// Gives another user all rights by an access list, as `setfacl -m u:65534:rwx` does; whether that can be done here.
pub(crate) fn give_by_list(path: &Path, kind: &str) -> bool {
    let script = "import os, struct, sys\n\
        rows = [(1, 7, -1), (2, 7, 65534), (4, 5, -1), (16, 7, -1), (32, 0, -1)]\n\
        rows = b''.join(struct.pack('<HHi', *row) for row in rows)\n\
        os.setxattr(sys.argv[1], 'system.posix_acl_' + sys.argv[2], struct.pack('<I', 2) + rows)";
    let output = Command::new("python3").args(["-c", script]).arg(path).arg(kind).output();
    output.is_ok_and(|output| output.status.success())
}

/// Rights that stand in no mode alone: the system shows them in the bits of the group.
#[test]
fn what_an_access_list_opens_to_another_user_is_refused() {
    let stage = Stage::new();
    stage.persona("kai");
    let path = profile(&stage, &stage.home(), "other");
    stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
    if !give_by_list(&stage.work_dir(), "access") {
        return tally::skip("no python3 to give rights by an access list, or no such lists on this file system");
    }
    let below = ["", "data", "data/profiles", "data/personas", "spool", "spool/requests", "state", "view"];
    for path in below.map(|below| stage.home().join(below)).iter().chain([&path]) {
        let mode = fs::metadata(path).expect("there").permissions().mode() & 0o7777;
        assert!(give_by_list(path, "access"), "{}", path.display());
        let said = refused(&stage);
        assert!(said.contains(path.display().to_string().trim_end_matches('/')), "{said}");
        // Also takes away what the list gives.
        set_mode(path, mode);
    }
    // One that is handed down to whatever is made: what lies in our folders is shut by them.
    assert!(give_by_list(stage.home().parent().expect("a parent"), "default"));
    fs::remove_dir_all(stage.home()).expect("removed");
    stage.start_sidecar();
    for room in ["", "spool", "state", "data", "data/profiles"] {
        let mode = fs::metadata(stage.home().join(room)).expect("made").permissions().mode() & 0o077;
        assert_eq!(mode, 0, "{room}");
    }
}

/// They can reach the port, for everybody can; they can't get at what opens it.
#[test]
fn a_process_of_another_user_gets_nothing_from_serve() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = Stage::new();
    set_mode(stage.home().parent().expect("a parent"), 0o755);
    let server = Server::start(stage.command(&["serve"]));
    let script = r#"
        cd /
        cat "$1" 2>/dev/null && echo read; ls "$2/state" 2>/dev/null && echo listed
        mv "$1" "$1.x" 2>/dev/null && echo moved; : 2>/dev/null >"$1" && echo written
        tr '\0' ' ' <"/proc/$3/environ" 2>/dev/null && echo environment
        tr '\0' '\n' <"/proc/$3/cmdline" | grep -F "$(cat "$1" 2>/dev/null || echo none-at-all)" && echo argument
    "#;
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(server.token_file()).arg(stage.home()).arg(server.pid().to_string());
    command.uid(NOBODY).gid(NOBODY).env_clear().env("PATH", "/usr/bin:/bin");
    let out = command.output().expect("it runs");
    assert!(out.stdout.is_empty(), "somebody else could: {}", String::from_utf8_lossy(&out.stdout));
    let host = "HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n";
    for path in ["/api/agents", "/api/events", "/api/requests/x", "/api/openapi.json", "/api"] {
        assert_eq!(server.raw(&format!("GET {path} {host}\r\n")).status, 401, "{path}");
    }
    tally::add(tally::FAULTS, 11);
}
