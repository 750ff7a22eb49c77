//! `doctor` on the real program: on a fresh machine, on one where all is well, and on one where one thing after the
//! other is broken: exactly that is told, with its fix.

use crate::support::said::{err, out};
use crate::support::schema;
use crate::support::small_disk::{SmallDisk, has_mounts_of_its_own};
use crate::support::stage::Stage;
use crate::support::stage_files::{make_folder, read_json};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// It ends within this, whatever stands still.
const AT_MOST: Duration = Duration::from_secs(10);

/// A stage with a user: a home folder of their own, and a folder of programs before all others.
struct Clinic {
    stage: Stage,
    /// What is worth a look on this machine itself.
    usual: BTreeSet<String>,
}

impl Clinic {
    /// All is well: a sidecar, and an agent.
    fn well() -> Clinic {
        let clinic = Clinic::closed("");
        clinic.stage.start_sidecar();
        clinic.stage.agent("kai");
        clinic.measured()
    }

    /// No sidecar yet.
    fn closed(config: &str) -> Clinic {
        let clinic = Clinic { stage: Stage::without_sidecar(config), usual: BTreeSet::new() };
        make_folder(&clinic.user());
        make_folder(&clinic.bin());
        clinic
    }

    /// Notes what is not as it should be before anything was broken: nothing may fail.
    fn measured(mut self) -> Clinic {
        let view = self.home("view/sidecar.json");
        self.stage.until("the view names the server", || read_json(&view).is_some_and(|view| view["tmux"].is_object()));
        let (_, found) = self.look(&[]);
        self.usual = bad(&found).into_iter().map(|(id, _)| id).collect();
        let failed: Vec<_> = bad(&found).into_iter().filter(|(_, status)| status == "fail").collect();
        assert!(failed.is_empty(), "{found:#}\n{}", self.stage.story());
        self
    }

    fn user(&self) -> PathBuf {
        self.stage.work_dir().join("user")
    }

    fn bin(&self) -> PathBuf {
        self.stage.work_dir().join("bin")
    }

    /// A program of the user's own.
    fn program(&self, name: &str, body: &str) -> PathBuf {
        let path = self.bin().join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("ours");
        path
    }

    fn path(&self) -> String {
        format!("{}:{}", self.bin().display(), std::env::var("PATH").expect("a PATH"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.stage.command(args);
        for name in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "TMUX_TMPDIR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        command.env("HOME", self.user()).env("PATH", self.path()).env("TASUKI_TMUX", self.stage.socket());
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program runs")
    }

    /// What doctor finds, and its exit code.
    fn look(&self, args: &[&str]) -> (i32, Value) {
        let began = Instant::now();
        let output = self.run(&[&["doctor", "--json"], args].concat());
        assert!(began.elapsed() < AT_MOST + Duration::from_secs(2), "it took {:?}", began.elapsed());
        let found = serde_json::from_slice(&output.stdout);
        let found: Value = found.unwrap_or_else(|error| panic!("{error}: {}{}", out(&output), err(&output)));
        let faults = schema::faults(&schema::of("doctor"), &found);
        assert!(faults.is_empty(), "{faults:?}");
        let code = output.status.code().unwrap_or(-1);
        assert_eq!(found["ok"], code == 0, "{found:#}");
        (code, found)
    }

    /// Looks until exactly this is told beside the usual; gives that check. The first look after something was broken
    /// may come before the sidecar has seen it.
    fn only(&self, id: &str, status: &str, fix: &str) -> Value {
        let expected = [(id.to_owned(), status.to_owned())];
        let mut last = Value::Null;
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            let (code, found) = self.look(&[]);
            if self.news(&found) == expected {
                assert_eq!(code, i32::from(status == "fail"));
                let check = check(&found, id);
                if check["fix"].as_str().is_some_and(|said| said.contains(fix)) {
                    return check;
                }
            }
            last = found;
        }
        panic!("not only {id} {status} with {fix:?}: {:?}\n{last:#}\n{}", self.news(&last), self.stage.story());
    }

    /// Looks until nothing is told but the usual.
    fn content(&self) {
        self.stage.until("doctor is content", || {
            let (code, found) = self.look(&[]);
            code == 0 && self.news(&found).is_empty()
        });
    }

    fn news(&self, found: &Value) -> Vec<(String, String)> {
        bad(found).into_iter().filter(|(id, _)| !self.usual.contains(id)).collect()
    }

    fn settings(&self) -> PathBuf {
        self.user().join(".claude/settings.json")
    }

    fn install_hooks(&self) -> String {
        let output = self.run(&["hooks", "install", "claude"]);
        assert!(output.status.success(), "{}", err(&output));
        fs::read_to_string(self.settings()).expect("installed")
    }

    fn home(&self, below: &str) -> PathBuf {
        self.stage.home().join(below)
    }

    fn mode(&self, below: &str, mode: u32) {
        fs::set_permissions(self.home(below), Permissions::from_mode(mode)).expect("ours");
    }

    /// Starts the sidecar with a `PATH` of its own.
    fn start_with_path(&self, path: &str) {
        let socket = self.stage.socket().display().to_string();
        let mut command = self.command(&["run", "--tmux", &socket]);
        command.env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null());
        self.stage.adopt(command.spawn().expect("it starts"));
        self.stage.until_beating();
    }
}

/// Everything that is not as it should be.
fn bad(found: &Value) -> Vec<(String, String)> {
    let text = |check: &Value, key: &str| check[key].as_str().expect("a text").to_owned();
    let checks = found["checks"].as_array().expect("checks");
    let bad = checks.iter().filter(|check| check["status"] == "warn" || check["status"] == "fail");
    bad.map(|check| (text(check, "id"), text(check, "status"))).collect()
}

fn check(found: &Value, id: &str) -> Value {
    let checks = found["checks"].as_array().expect("checks");
    let one = checks.iter().find(|check| check["id"] == id);
    one.unwrap_or_else(|| panic!("no check {id}: {found:#}")).clone()
}

/// Every file and folder below one.
fn all_below(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.insert(entry.path());
        if entry.path().is_dir() {
            found.extend(all_below(&entry.path()));
        }
    }
    found
}

#[test]
fn where_there_is_no_home_it_says_how_to_begin_and_makes_nothing() {
    let clinic = Clinic::closed("");
    let home = clinic.stage.work_dir().join("none");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    Stage::make_own(&mut command);
    let plain = command.arg("--home").arg(&home).arg("doctor").env("HOME", clinic.user()).output().expect("it runs");
    assert_eq!(plain.status.code(), Some(1), "{}", out(&plain));
    assert!(out(&plain).contains(&format!("start with: tasuki run --home {}", home.display())), "{}", out(&plain));
    assert!(out(&plain).contains("exit code 69"), "{}", out(&plain));
    assert!(!out(&plain).contains('\u{1b}'), "colour is for terminals");
    assert!(!home.exists());
}

#[test]
fn where_all_is_well_it_says_so_and_leaves_nothing_behind() {
    let clinic = Clinic::well();
    clinic.install_hooks();
    let (code, found) = clinic.look(&[]);
    assert_eq!((code, clinic.news(&found)), (0, Vec::new()), "{found:#}");
    for id in
        ["sidecar.alive", "sidecar.tmux", "sidecar.watch", "tmux.server", "hooks.own", "hooks.claude", "data.personas"]
    {
        assert_eq!(check(&found, id)["status"], "ok", "{id}");
    }
    assert!(check(&found, "hooks.claude")["said"].as_str().expect("a text").starts_with("7 hooks"), "{found:#}");
    // The test events were seen by nobody: no line in the journal, no rejected file, the agent as it was.
    assert!(clinic.stage.names("events").is_empty() && clinic.stage.names("rejected").is_empty());
    let journal = clinic.stage.journal();
    clinic.look(&[]);
    assert_eq!(clinic.stage.journal(), journal);
    // The same without a sidecar: only that is missing, and the home holds what it held.
    clinic.stage.end_sidecar(Signal::SIGTERM);
    let before = all_below(&clinic.stage.home());
    clinic.only("sidecar.alive", "fail", "tasuki run --home");
    let (_, found) = clinic.look(&[]);
    assert_eq!(check(&found, "hooks.claude")["status"], "ok", "{found:#}");
    assert_eq!(all_below(&clinic.stage.home()), before);
}

#[test]
fn folders_with_wrong_modes_are_named_and_mended() {
    let clinic = Clinic::well();
    for (below, mode, id, fix) in [
        ("spool", 0o755, "paths.spool", "chmod go-rwx"),
        ("state", 0o750, "paths.state", "chmod go-rwx"),
        // Others may read views.
        ("view/agents", 0o777, "paths.view", "chmod go-w"),
    ] {
        clinic.mode(below, mode);
        clinic.only(id, "fail", fix);
        let (_, found) = clinic.look(&["--fix"]);
        let mended = check(&found, id);
        assert_eq!((&mended["status"], mended["fixed"].is_string()), (&json!("ok"), true), "{mended:#}");
        assert_eq!(fs::metadata(clinic.home(below)).expect("there").permissions().mode() & 0o077 & !0o755, 0);
        clinic.content();
    }
    // A folder above the home is not tasuki's to change.
    let above = clinic.stage.home().parent().expect("a parent").to_owned();
    fs::set_permissions(&above, Permissions::from_mode(0o777)).expect("ours");
    clinic.only("paths.above", "fail", "chmod go-w");
    let said = out(&clinic.run(&["doctor", "--fix"]));
    assert!(said.contains("left alone: these folders do not belong to tasuki alone"), "{said}");
    assert_eq!(fs::metadata(&above).expect("there").permissions().mode() & 0o777, 0o777);
    fs::set_permissions(&above, Permissions::from_mode(0o700)).expect("ours");
    clinic.content();
}

#[test]
fn what_people_have_written_wrong_is_named_with_its_line() {
    let clinic = Clinic::well();
    let data = clinic.home("data");
    let broken = [
        (clinic.home("config.toml"), "[limits]\nwaitin = \"90s\"\n", "paths.config", "line 2"),
        (
            clinic.home("config.toml"),
            "[notify]\ncommand = [\"/no/such/program\"]\n",
            "notify.command",
            "/no/such/program",
        ),
        (data.join("personas/kai/persona.toml"), "profil = \"demo\"\n", "data.personas", "persona.toml, line 1"),
        (data.join("profiles/wren.toml"), "titel = \"x\"\n", "data.profiles", "wren.toml, line 1"),
        (data.join("prompts/briefing.md"), "{{ unclosed", "data.prompts", "briefing"),
        (data.join("rules.toml"), "[types.prd]\nprocessed = 1\n", "data.rules", "rules.toml"),
    ];
    for (path, text, id, said) in broken {
        let before = fs::read(&path).ok();
        fs::write(&path, text).expect("written");
        let check = clinic.only(id, "fail", "fix");
        assert!(check["said"].as_str().is_some_and(|text| text.contains(said)), "{check:#}");
        match before {
            Some(bytes) => fs::write(&path, bytes).expect("written"),
            None => fs::remove_file(&path).expect("ours"),
        }
    }
    clinic.content();
    // A pipe in the place of a file is no reason to wait.
    fs::remove_file(clinic.home("config.toml")).expect("ours");
    nix::unistd::mkfifo(&clinic.home("config.toml"), nix::sys::stat::Mode::S_IRUSR).expect("a pipe");
    clinic.only("paths.config", "fail", "fix");
}

#[test]
fn a_tmux_that_is_missing_or_too_old_is_named() {
    let mut clinic = Clinic::closed("").with_a_persona();
    // Such a sidecar finds no gh either.
    clinic.usual = ["gh.of_sidecar", "gh.login"].map(str::to_owned).into();
    let none = clinic.stage.work_dir().join("empty");
    make_folder(&none);
    clinic.start_with_path(&none.display().to_string());
    clinic.only("tmux.program", "fail", "install tmux");
    clinic.stage.end_sidecar(Signal::SIGTERM);
    let old = clinic.program("tmux", "echo tmux 3.0");
    clinic.start_with_path(&old.parent().expect("a folder").display().to_string());
    let found = clinic.only("tmux.program", "fail", "install tmux 3.2");
    assert!(found["said"].as_str().is_some_and(|said| said.contains("3.0, which is too old")), "{found:#}");
}

#[test]
fn a_tmux_server_that_stands_still_or_is_gone_is_named() {
    let clinic = Clinic::well();
    let view = read_json(&clinic.home("view/sidecar.json")).expect("a view");
    let server = Pid::from_raw(i32::try_from(view["tmux"]["pid"].as_u64().expect("a server")).expect("a process id"));
    kill(server, Signal::SIGSTOP).expect("our own server");
    let began = Instant::now();
    clinic.look(&[]);
    assert!(began.elapsed() < AT_MOST, "it took {:?}", began.elapsed());
    clinic.only("tmux.server", "fail", "kill -CONT");
    kill(server, Signal::SIGCONT).expect("our own server");
    clinic.content();
    clinic.stage.tmux(&["set-option", "-s", "exit-unattached", "on"]);
    clinic.only("tmux.unattached", "warn", "exit-unattached off");
    clinic.stage.tmux(&["set-option", "-s", "exit-unattached", "off"]);
    clinic.stage.tmux(&["set-option", "-s", "command-alias[90]", "set-option=display-message"]);
    clinic.only("tmux.aliases", "fail", "tmux.conf");
    clinic.stage.tmux(&["kill-server"]);
    clinic.only("tmux.server", "fail", "new-session -d");
}

#[test]
fn a_sidecar_that_is_stopped_dead_or_of_another_version_is_named() {
    let clinic = Clinic::well();
    let view = clinic.home("view/sidecar.json");
    let of_another_version = || {
        let mut other = read_json(&view).expect("a view");
        other["version"] = json!("0.0.9");
        fs::write(view.with_extension("new"), other.to_string()).expect("written");
        fs::rename(view.with_extension("new"), &view).expect("renamed");
        clinic.look(&[]).1
    };
    // Its own next heartbeat takes that back, so it may take more than one try.
    let found = clinic.stage.wait_for("the other version is told", || {
        let found = of_another_version();
        (clinic.news(&found) == [("sidecar.version".to_owned(), "warn".to_owned())]).then_some(found)
    });
    assert!(check(&found, "sidecar.version")["fix"].as_str().is_some_and(|fix| fix.contains("restart")), "{found:#}");
    clinic.stage.signal(Signal::SIGSTOP);
    clinic.only("sidecar.alive", "fail", "kill -CONT");
    clinic.stage.signal(Signal::SIGCONT);
    clinic.content();
    clinic.stage.end_sidecar(Signal::SIGKILL);
    let dead = clinic.only("sidecar.alive", "fail", "tasuki run --home");
    assert!(dead["said"].as_str().is_some_and(|said| said.contains("exit code 69")), "{dead:#}");
}

#[test]
fn hooks_that_are_missing_stale_or_do_not_fire_are_named_and_stale_ones_mended() {
    let clinic = Clinic::well();
    let good = clinic.install_hooks();
    clinic.content();
    fs::write(clinic.settings(), "{}").expect("written");
    clinic.only("hooks.claude", "fail", "tasuki hooks install claude");
    // They name another program that works: stale, and they fire.
    let program = env!("CARGO_BIN_EXE_tasuki");
    let other = clinic.program("tasuki", &format!("exec '{program}' \"$@\""));
    let moved = |to: &str| fs::write(clinic.settings(), good.replace(program, to)).expect("written");
    moved(&other.display().to_string());
    let stale = clinic.only("hooks.claude", "warn", "tasuki hooks install claude");
    assert!(stale["said"].as_str().is_some_and(|said| said.contains("work but are out of date")), "{stale:#}");
    // They name one that is gone.
    moved("/no/such/tasuki");
    let gone = clinic.only("hooks.claude", "fail", "tasuki hooks install claude");
    assert!(gone["said"].as_str().is_some_and(|said| said.contains("exit status: 127")), "{gone:#}");
    // They report to another home, whose path begins like ours: they are that home's.
    let home = clinic.stage.home().display().to_string();
    let theirs = good.replace(&home, &format!("{home}2"));
    fs::write(clinic.settings(), &theirs).expect("written");
    let (_, found) = clinic.look(&["--fix"]);
    let left = check(&found, "hooks.claude");
    assert!(left["status"] == "fail" && left["fixed"].is_null(), "{left:#}");
    assert!(left["said"].as_str().is_some_and(|said| said.contains("another home")), "{left:#}");
    assert_eq!(fs::read_to_string(clinic.settings()).expect("there"), theirs);
    // A person's own words in the file stay.
    let with_own = good.replace(program, "/no/such/tasuki").replacen('{', "{\n  \"model\": \"mine\",", 1);
    fs::write(clinic.settings(), with_own).expect("written");
    let (_, found) = clinic.look(&["--fix"]);
    let mended = check(&found, "hooks.claude");
    assert!(mended["status"] == "ok" && mended["fixed"].is_string(), "{mended:#}");
    let text = fs::read_to_string(clinic.settings()).expect("there");
    assert!(text.contains("\"model\": \"mine\"") && text.contains(program), "{text}");
    clinic.content();
    // All is as it was written, and beside it stands one that does nothing.
    let idle = "\"hooks\": {\n    \"PreCompact\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"true tasuki hook claude\"}]}],";
    fs::write(clinic.settings(), text.replacen("\"hooks\": {", idle, 1)).expect("written");
    let dead = clinic.only("hooks.claude", "fail", "check the command");
    assert!(
        dead["said"].as_str().is_some_and(|said| said.contains("PreCompact") && said.contains("wrote no event")),
        "{dead:#}"
    );
}

#[test]
fn a_disk_without_room_and_one_without_inodes_are_named() {
    for (options, id) in [("size=256m", "disk.space"), ("size=256m,nr_inodes=4000", "disk.inodes")] {
        if !has_mounts_of_its_own() {
            return;
        }
        let clinic = Clinic::closed("");
        let disk = SmallDisk::over(&clinic.stage.home(), options);
        clinic.stage.start_sidecar();
        clinic.stage.agent("kai");
        let clinic = clinic.measured();
        if id == "disk.space" {
            disk.fill_blocks()
        } else {
            disk.fill_inodes()
        }
        clinic.only(id, "fail", "free some space");
        disk.make_room();
        clinic.content();
        // The disk goes first, or the folder under it would stay.
        drop(disk);
    }
}

#[test]
fn folders_that_are_missing_are_made_and_nothing_else_is_touched() {
    let clinic = Clinic::well();
    clinic.stage.end_sidecar(Signal::SIGTERM);
    fs::remove_dir_all(clinic.home("spool/rejected")).expect("ours");
    fs::write(clinic.home("spool/tmp/fresh"), "a writer is at it").expect("written");
    let state = fs::read(clinic.home("state/tasuki.redb")).expect("a state");
    let (_, found) = clinic.look(&[]);
    assert!(clinic.news(&found).contains(&("paths.folders".to_owned(), "warn".to_owned())), "{found:#}");
    assert!(!clinic.home("spool/rejected").exists(), "only --fix makes anything");
    let said = out(&clinic.run(&["doctor", "--fix"]));
    assert!(said.contains("fixed: 1 folders were created"), "{said}");
    assert!(said.contains("left alone: doctor does not start or end programs"), "{said}");
    assert_eq!(fs::metadata(clinic.home("spool/rejected")).expect("made").permissions().mode() & 0o777, 0o700);
    assert!(clinic.home("spool/tmp/fresh").exists());
    assert_eq!(fs::read(clinic.home("state/tasuki.redb")).expect("a state"), state);
}

#[test]
fn programs_of_others_that_hang_are_named_in_time() {
    let clinic = Clinic::well();
    for name in ["gh", "systemctl"] {
        clinic.program(name, "exec sleep 60");
    }
    clinic.install_hooks();
    let output = clinic.run(&["service", "install", "--dry-run"]);
    assert!(output.status.success(), "{}", err(&output));
    let unit = clinic.user().join(".config/systemd/user/tasuki.service");
    make_folder(unit.parent().expect("a folder"));
    fs::write(&unit, out(&output)).expect("written");
    let hung = fs::read_to_string(clinic.settings()).expect("there");
    let program = env!("CARGO_BIN_EXE_tasuki");
    let slow = clinic.program("tasuki-slow", "exec sleep 60").display().to_string();
    fs::write(clinic.settings(), hung.replace(program, &slow)).expect("written");
    let began = Instant::now();
    let (_, found) = clinic.look(&[]);
    assert!(began.elapsed() < AT_MOST, "it took {:?}", began.elapsed());
    for (id, status, said) in [
        ("gh.program", "warn", "did not end within"),
        ("service.state", "warn", "did not end within"),
        ("hooks.claude", "fail", "did not end within"),
        ("service.file", "ok", "starts this program"),
        ("service.environment", "ok", "PATH"),
    ] {
        let check = check(&found, id);
        assert_eq!(check["status"], status, "{check:#}");
        assert!(check["said"].as_str().is_some_and(|text| text.contains(said)), "{check:#}");
    }
    fs::write(&unit, out(&output).replace(program, "/no/such/tasuki")).expect("written");
    let (_, found) = clinic.look(&[]);
    let gone = check(&found, "service.file");
    assert_eq!(
        (gone["status"].as_str(), gone["fix"].as_str()),
        (Some("fail"), Some("rewrite the service file: tasuki service install"))
    );
}

#[test]
fn a_cli_of_a_version_that_was_never_tried_is_told() {
    let clinic = Clinic::well();
    let tried = "2.1.328";
    clinic.program("claude", &format!("echo '{tried} (Claude Code)'"));
    clinic.stage.tmux(&["set-environment", "-g", "PATH", &clinic.path()]);
    clinic.stage.persona("mia");
    fs::write(clinic.home("data/personas/mia/persona.toml"), "profile = \"claude\"\n").expect("written");
    let look = || check(&clinic.look(&[]).1, "programs.claude");
    let told = look();
    assert_eq!(told["status"], "ok", "{told:#}");
    for (version, side) in [("2.1.330", "newer"), ("2.1.7", "older")] {
        clinic.program("claude", &format!("echo '{version} (Claude Code)'"));
        let told = look();
        let said = told["said"].as_str().expect("words");
        assert!(told["status"] == "warn" && said.contains(version) && said.contains(tried), "{told:#}");
        assert!(said.contains(side), "{said}");
    }
    clinic.program("claude", "exec sleep 60");
    assert_eq!(look()["status"], "ok");
}

/// A fallback is needed in the night in which a usage limit is reached.
#[test]
fn the_cli_of_a_fallback_is_looked_for() {
    let clinic = Clinic::well();
    clinic.stage.tmux(&["set-environment", "-g", "PATH", &clinic.path()]);
    clinic.stage.persona("mia");
    let toml = "profile = \"demo\"\nfallbacks = [{ profile = \"codex\" }]\n";
    fs::write(clinic.home("data/personas/mia/persona.toml"), toml).expect("written");
    let look = || check(&clinic.look(&[]).1, "programs.codex");
    let told = look();
    assert!(told["status"] == "fail" && told["said"].as_str().is_some_and(|said| said.contains("codex")), "{told:#}");
    clinic.program("codex", "exec sleep 60");
    assert_eq!(look()["status"], "ok");
}

#[test]
fn the_operators_command_is_run_only_when_asked() {
    let clinic = Clinic::well();
    let told = clinic.stage.work_dir().join("told");
    let config = format!("[notify]\ncommand = [\"/bin/sh\", \"-c\", 'cat >\"$0\"', \"{}\"]\n", told.display());
    fs::write(clinic.home("config.toml"), config).expect("written");
    clinic.content();
    assert!(!told.exists());
    let (_, found) = clinic.look(&["--notify-test"]);
    assert_eq!(check(&found, "notify.test")["status"], "ok");
    assert_eq!(read_json(&told).expect("told")["code"], "test");
}

#[test]
fn the_operators_command_is_tried_in_the_environment_of_the_sidecar() {
    let clinic = Clinic::well();
    let config = "[notify]\ncommand = [\"/bin/sh\", \"-c\", 'test -n \"$TOKEN\"']\n";
    fs::write(clinic.home("config.toml"), config).expect("written");
    let mut doctor = clinic.command(&["doctor", "--json", "--notify-test"]);
    let found = doctor.env("TOKEN", "of this shell").output().expect("it runs");
    let found: Value = serde_json::from_slice(&found.stdout).expect("what was found");
    assert_eq!(check(&found, "notify.test")["status"], "fail", "{found:#}");
}

impl Clinic {
    fn with_a_persona(self) -> Clinic {
        self.stage.persona("kai");
        self
    }
}

#[test]
fn a_sidecar_that_has_another_name_or_no_path_is_well() {
    let clinic = Clinic::closed("");
    let link = clinic.bin().join("tk");
    symlink(env!("CARGO_BIN_EXE_tasuki"), &link).expect("a link");
    let socket = clinic.stage.socket().display().to_string();
    let start = |command: &mut Command| {
        command.arg("--home").arg(clinic.stage.home()).args(["run", "--tmux", &socket]);
        Stage::make_own(command);
        command.env("HOME", clinic.user()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        clinic.stage.adopt(command.spawn().expect("it starts"));
        clinic.stage.until_beating();
        let view = clinic.home("view/sidecar.json");
        clinic.stage.until("it is in tmux", || read_json(&view).is_some_and(|view| view["tmux"].is_object()));
    };
    start(Command::new(&link).env("PATH", clinic.path()));
    let (_, found) = clinic.look(&[]);
    assert_eq!(check(&found, "sidecar.alive")["status"], "ok", "{found:#}");
    let problem = || {
        let view = read_json(&clinic.home("view/sidecar.json")).unwrap_or_default();
        view["problem"].as_str().unwrap_or_default().to_owned()
    };
    std::fs::remove_file(&link).expect("removed");
    clinic.stage.until("the hooks of agents lead nowhere", || problem().contains("/tk is gone"));
    symlink(env!("CARGO_BIN_EXE_tasuki"), &link).expect("a link");
    clinic.stage.until("it is back", || problem().is_empty());
    // One that does not beat is known by what it runs.
    clinic.stage.signal(Signal::SIGSTOP);
    let view = clinic.home("view/sidecar.json");
    let mut old = read_json(&view).expect("a view");
    old["heartbeat"] = json!("2026-01-01T00:00:00.000Z");
    fs::write(view.with_extension("new"), old.to_string()).expect("written");
    fs::rename(view.with_extension("new"), &view).expect("renamed");
    let alive = check(&clinic.look(&[]).1, "sidecar.alive");
    assert!(alive["fix"].as_str().is_some_and(|fix| fix.contains("kill -CONT")), "{alive:#}");
    clinic.stage.end_sidecar(Signal::SIGKILL);
    // Where there is no PATH, the system has one of its own.
    start(Command::new(&link).env_remove("PATH"));
    let (_, found) = clinic.look(&[]);
    for id in ["sidecar.alive", "tmux.program", "tmux.server"] {
        assert_eq!(check(&found, id)["status"], "ok", "{id}: {found:#}");
    }
}

#[test]
fn an_agent_whose_home_was_moved_is_named_and_a_link_at_the_old_place_helps() {
    let clinic = Clinic::closed("");
    clinic.stage.start_sidecar();
    let agent = clinic.stage.agent("kai");
    clinic.stage.end_sidecar(Signal::SIGTERM);
    let (old, new) = (clinic.stage.home(), clinic.stage.work_dir().join("new home"));
    fs::rename(&old, &new).expect("moved");
    let ours = |command: &mut Command| {
        command.arg("--home").arg(&new);
        Stage::make_own(command);
        command.env("HOME", clinic.user()).env("TASUKI_TMUX", clinic.stage.socket()).stdin(Stdio::null());
    };
    let agents = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
        ours(&mut command);
        let output = command.args(["doctor", "--json"]).output().expect("it runs");
        check(&serde_json::from_slice(&output.stdout).expect("JSON"), "hooks.agents")
    };
    let told = agents();
    let pane = read_json(&new.join(format!("view/agents/{agent}.json"))).expect("a view")["pane"].clone();
    let said = format!("the agent in {} reports to {}, which", pane.as_str().expect("a pane"), old.display());
    assert!(told["status"] == "fail" && told["said"].as_str().is_some_and(|text| text.starts_with(&said)), "{told:#}");
    let fix = format!("ln -s '{}' {}; or", new.display(), old.display());
    assert!(told["fix"].as_str().is_some_and(|text| text.contains(&fix)), "{told:#}");
    symlink(&new, &old).expect("a link");
    assert_eq!(agents()["status"], "ok", "{:#}", agents());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tasuki"));
    ours(&mut command);
    clinic.stage.adopt(command.arg("run").stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
    clinic.stage.until_beating();
    clinic.stage.until_idle(&agent);
    clinic.stage.until_step(&clinic.stage.hand_off(&agent), "done");
}
