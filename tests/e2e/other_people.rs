//! Other people: folders that they could get at are refused with the path and the fix, at the start and while tasuki
//! runs; and a process of theirs gets nothing.

use crate::support::stage::Stage;
use crate::support::stage_hostile::is_root;
use crate::support::tally;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::unistd::{Gid, Uid, chown, setfsgid, setfsuid};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Somebody else: `nobody` on every system that we know.
const NOBODY: u32 = 65534;
/// Folders that must be ours alone.
const OURS: [&str; 6] = ["spool", "spool/requests", "spool/events", "spool/results", "spool/rejected", "state"];

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

/// `tasuki run` must refuse; gives what it said.
fn refused(stage: &Stage) -> String {
    let (code, said) = stage.refused_start();
    assert_eq!(code, Some(77), "{said}");
    tally::add(tally::FAULTS, 1);
    said
}

#[test]
fn what_others_can_get_at_is_refused_at_the_start_with_path_and_fix() {
    let stage = Stage::new();
    stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
    for below in OURS {
        for mode in [0o770, 0o750, 0o707, 0o701, 0o710] {
            let path = stage.home().join(below);
            set_mode(&path, mode);
            let said = refused(&stage);
            assert!(said.contains(&format!("chmod go-rwx '{}'", path.display())), "{said}");
            assert!(said.contains("Nothing was changed"), "{said}");
            assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, mode, "mended in silence");
            set_mode(&path, 0o700);
        }
    }
    for below in ["", "view", "view/agents"] {
        set_mode(&stage.home().join(below), 0o775);
        let said = refused(&stage);
        assert!(said.contains("chmod go-"), "{said}");
        set_mode(&stage.home().join(below), 0o755);
    }
    // Above the home: whoever can write there can put another home in its place.
    let parent = stage.home().parent().expect("a parent").to_owned();
    for mode in [0o777, 0o775, 0o722] {
        set_mode(&parent, mode);
        let said = refused(&stage);
        assert!(said.contains(&format!("chmod go-w '{}'", parent.display())), "{said}");
    }
    set_mode(&parent, 0o1777);
    stage.start_sidecar();
    let ids = [stage.send_cheap()];
    stage.all_answered(&ids);
    set_mode(&parent, 0o700);
}

#[test]
fn what_belongs_to_others_is_refused_at_the_start() {
    if !is_root("a folder of another user's") {
        return;
    }
    let stage = Stage::new();
    stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
    for below in ["", "spool", "spool/requests", "state", "view"] {
        let path = stage.home().join(below);
        chown(&path, Some(Uid::from_raw(NOBODY)), None).expect("given away");
        let said = refused(&stage);
        assert!(
            said.contains(path.display().to_string().trim_end_matches('/')) && said.contains("belongs to user 65534"),
            "{said}"
        );
        assert!(said.contains("owner") || said.contains("your own folders"), "no fix: {said}");
        chown(&path, Some(Uid::from_raw(0)), None).expect("taken back");
    }
    stage.start_sidecar();
}

#[test]
fn a_folder_that_is_opened_to_others_meanwhile_stops_the_intake_until_it_is_closed() {
    let stage = Stage::new();
    for below in ["spool", "spool/requests", "state", "spool/results"] {
        let path = stage.home().join(below);
        set_mode(&path, 0o770);
        stage.until_degraded(&[&format!("chmod go-rwx '{}'", path.display())]);
        let id = stage.send_cheap();
        // Looked at again every second.
        std::thread::sleep(std::time::Duration::from_millis(1_500));
        assert!(!stage.spool(&format!("results/{id}.json")).exists(), "{below}: taken all the same\n{}", stage.story());
        set_mode(&path, 0o700);
        stage.until_well();
        stage.all_answered(&[id]);
        tally::add(tally::FAULTS, 1);
    }
}

/// Files and folders below this one that others may do anything with.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let meta = entry.metadata().expect("it is there");
        if !meta.is_symlink() && meta.permissions().mode() & 0o077 != 0 {
            found.push(format!("{} {:o}", entry.path().display(), meta.permissions().mode()));
        }
        if meta.is_dir() {
            found.extend(open_to_others(&entry.path()));
        }
    }
    found
}

/// Started by somebody who lets others write whatever he makes.
#[test]
fn what_tasuki_makes_is_for_its_owner_alone_whatever_the_umask() {
    const GENEROUS: [&str; 3] = ["sh", "-c", "umask 000; exec \"$0\" \"$@\""];
    let stage = Stage::without_sidecar("");
    stage.spawn_sidecar_by(&GENEROUS, "debug");
    stage.until_beating();
    let agent = stage.agent("kai");
    stage.all_answered(&[stage.send_cheap()]);
    stage.check_done(&stage.until_step(&stage.hand_off(&agent), "done"));
    stage.end_sidecar(nix::sys::signal::Signal::SIGTERM);
    let made = stage.command(&["persona", "new", "mia"]);
    let mut command = Command::new(GENEROUS[0]);
    let out = command.args(&GENEROUS[1..]).arg(made.get_program()).args(made.get_args()).output().expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    for below in ["state", "spool", "view", "data/personas/mia"] {
        let mut found = open_to_others(&stage.home().join(below));
        // What others have dropped is theirs to guard, and lies here until it is removed.
        found.retain(|path| !path.contains("/state/reap/"));
        assert_eq!(found, [] as [String; 0]);
    }
    tally::add(tally::FAULTS, 2);
}

#[test]
fn a_command_drops_nothing_into_a_spool_that_others_can_get_at() {
    let stage = Stage::new();
    set_mode(&stage.spool(""), 0o777);
    let out = stage.command(&["agent", "create", "kai", "--timeout", "5s"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(77), "{said}");
    assert!(said.contains("chmod go-rwx") && stage.names("requests").is_empty(), "{said}");
    set_mode(&stage.spool(""), 0o700);
}

/// Reads, drops, renames, links, removes, lists, watches, connects.
#[test]
fn a_process_of_another_user_gets_nothing() {
    if !is_root("a process of another user") {
        return;
    }
    let stage = Stage::new();
    stage.agent("kai");
    stage.signal(nix::sys::signal::Signal::SIGSTOP);
    let id = stage.send_cheap();
    let home = stage.home();
    // Others may come as far as the home's door, as in a home folder below /home.
    set_mode(home.parent().expect("a parent"), 0o755);
    let request = home.join(format!("spool/requests/{id}.json"));
    let script = r#"
        try() { if "$@" >/dev/null 2>&1; then echo "$*"; fi; }
        cd /
        try ls "$1"; try ls "$1/spool/requests"; try cat "$2"; try cp "$2" /dev/null
        try sh -c ': > "$0/spool/requests/evil.json"' "$1"; try sh -c ': > "$0/spool/tmp/evil"' "$1"
        try mv "$2" "$2.x"; try ln "$2" /tmp/tasuki-evil; try rm "$2"; try ln -s /etc/passwd "$1/spool/requests/l.json"
        try mv "$1" "$1.x"; try mv "$1/spool" "$1/x"; try mkdir "$1/x"; try touch "$1/config.toml"; try touch "$2"
        try cat "$1/state/tasuki.redb"; try cat "$1/view/sidecar.json"; try ls "$1/spool/results"; try chmod 777 "$1"
        try cat "$1/data/personas/kai/skill.md"
    "#;
    let mut command = Command::new("sh");
    command
        .args(["-c", script, "sh"])
        .arg(&home)
        .arg(&request)
        .uid(NOBODY)
        .gid(NOBODY)
        .env_clear()
        .env("PATH", "/usr/bin:/bin");
    let out = command.output().expect("it runs");
    assert!(out.stdout.is_empty(), "somebody else could: {}", String::from_utf8_lossy(&out.stdout));
    // A watch is a question of the same rights; the system asks for the user of the thread.
    let (folders, socket) = (OURS.map(|below| home.join(below)), stage.socket());
    let others = std::thread::spawn(move || {
        setfsgid(Gid::from_raw(NOBODY));
        setfsuid(Uid::from_raw(NOBODY));
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC).expect("anybody may");
        let watched =
            folders.iter().filter(|path| inotify.add_watch(*path, AddWatchFlags::IN_ALL_EVENTS).is_ok()).count();
        let listed = folders.iter().filter(|path| fs::read_dir(path).is_ok()).count();
        let connected =
            UnixStream::connect(socket).map_or_else(|error| error.kind() != ErrorKind::PermissionDenied, |_| true);
        (watched, listed, connected)
    });
    assert_eq!(others.join().expect("it tried"), (0, 0, false));
    tally::add(tally::FAULTS, 24);
    stage.signal(nix::sys::signal::Signal::SIGCONT);
    stage.all_answered(&[id]);
    assert!(stage.names("rejected").is_empty());
    set_mode(home.parent().expect("a parent"), 0o700);
}
