//! A user of `tasuki service` or `tasuki fleet service`. In place of systemd and launchd there are scripts that note
//! how they were called.

use super::said::{err, out};
use super::tally;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The calls that ask whether a service manager is there.
const QUESTIONS: [&str; 2] = ["--user show-environment", "print gui/"];

/// A user who runs `program`, `tasuki` or `tasuki-fleet`.
pub(crate) struct ServiceUser {
    folder: tempfile::TempDir,
    program: &'static str,
    unit: &'static str,
    home: PathBuf,
}

impl ServiceUser {
    /// `home`: tasuki's home, absolute or below the user's folder.
    pub(crate) fn new(program: &'static str, unit: &'static str, home: &str) -> ServiceUser {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join(home);
        let user = ServiceUser { folder, program, unit, home };
        fs::create_dir(user.path("bin")).expect("a folder");
        user.play("systemctl", "echo \"$@\" >>\"$CALLS\"");
        user
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().join(below)
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Puts a script into the user's `PATH` in place of a program.
    pub(crate) fn play(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("ours");
    }

    /// Plays launchd. It answers the order to end a service before the service has ended, and then refuses to start it
    /// again for a moment. Questions are not noted.
    ///
    /// `looks`: at how many looks a service that was told to end is still there. `busy`: how many starts are refused
    /// then.
    pub(crate) fn play_launchd(&self, looks: u32, busy: u32) {
        let body = r#"
here=$CALLS.here left=$CALLS.left busy=$CALLS.busy
count() { n=$(cat "$1" 2>/dev/null || echo 0); [ "$n" -gt 0 ] && echo $((n - 1)) >"$1"; }
case $1 in print*) ;; *) echo "$@" >>"$CALLS" ;; esac
case $1 in
  print)
    [ "$2" = "${2%/dev.*}" ] && exit 0
    [ ! -e "$left" ] || count "$left" || rm -f "$left" "$here"
    [ -e "$here" ] || { echo 'Could not find service' >&2; exit 113; }
    printf 'state = running
pid = 4711
' ;;
  print-disabled) [ ! -e "$CALLS.disabled" ] || echo '  "dev.tasuki.sidecar" => disabled' ;;
  bootout) [ -e "$here" ] || exit 3; echo LOOKS >"$left"; echo BUSY >"$busy" ;;
  bootstrap)
    if [ -e "$left" ]; then echo 'too early' >>"$CALLS"; exit 37; fi
    if [ -e "$here" ] || count "$busy"; then echo 'Bootstrap failed: 5: Input/output error' >&2; exit 5; fi
    : >"$here" ;;
  kickstart) [ -e "$here" ] || { echo 'Could not find service' >&2; exit 113; } ;;
esac"#;
        self.play("launchctl", &body.replace("LOOKS", &looks.to_string()).replace("BUSY", &busy.to_string()));
    }

    /// The user's own unit.
    pub(crate) fn unit(&self) -> PathBuf {
        self.path("config/systemd/user").join(self.unit)
    }

    /// The calls of the service manager since the last call of this method, without questions whether it is there.
    pub(crate) fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = fs::remove_file(self.path("calls"));
        let [systemd, launchd] = QUESTIONS;
        let is_question = |line: &str| line == systemd || (line.starts_with(launchd) && !line.contains("dev.tasuki"));
        text.lines().filter(|line| !is_question(line)).map(str::to_owned).collect()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.asked("service", args)
    }

    /// Runs a command with these arguments in the user's home.
    pub(crate) fn asked(&self, word: &str, args: &[&str]) -> Output {
        self.with(&self.home, &[], &[&[word], args].concat())
    }

    /// Runs a command line in a home of the user, with these variables of the shell.
    pub(crate) fn with(&self, home: &Path, variables: &[(&str, &str)], args: &[&str]) -> Output {
        let mut command = Command::new(self.program);
        command.args(args).arg("--home").arg(home);
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("CALLS", self.path("calls")).env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()));
        for name in ["LC_ALL", "LC_CTYPE", "TZ", "TASUKI_TMUX", "TMUX_TMPDIR", "TASUKI_HOME"] {
            command.env_remove(name);
        }
        command.env("XDG_DATA_DIRS", self.path("share"));
        command.env("LANG", "C.UTF-8").envs(variables.iter().copied()).output().expect("the program runs")
    }

    /// Runs `service` with these arguments, which must succeed. Returns its JSON.
    pub(crate) fn done(&self, args: &[&str]) -> Value {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", err(&output));
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", out(&output)))
    }

    /// Runs `service` with these arguments, which must fail. Returns the exit code and the error's code.
    pub(crate) fn refused(&self, args: &[&str]) -> (i32, String) {
        let output = self.run(&[args, &["--json"]].concat());
        let error: Value = serde_json::from_slice(&output.stderr).expect("an error");
        (output.status.code().unwrap_or(-1), error["error"]["code"].as_str().expect("a code").to_owned())
    }
}

/// Checks the user's unit and the packaged one with systemd's own tools.
///
/// `packaged`: the path of the program in the packaged unit. `most`: the highest allowed exposure, in tenths.
pub(crate) fn systemd_finds_nothing_wrong(user: &ServiceUser, packaged: &str, most: u32) {
    let copy = user.path("packaged").join(user.unit);
    fs::create_dir(user.path("packaged")).expect("a folder");
    let text = fs::read_to_string(packaging("systemd").join(user.unit)).expect("the packaged unit");
    fs::write(&copy, text.replace(packaged, user.program)).expect("written");
    for path in [user.unit(), copy] {
        let Some(output) = judge("systemd-analyze", &["--user", "verify", "--man=no"], Some(&path)) else { return };
        let said = err(&output);
        assert!(output.status.success() && !said.contains(user.unit), "{}: {said}", path.display());
        let threshold = format!("--threshold={most}");
        let args = ["--user", "security", "--offline=true", &threshold, "--no-pager"];
        let Some(output) = judge("systemd-analyze", &args, Some(&path)) else { return };
        assert!(output.status.success(), "{}: {}{}", path.display(), out(&output), err(&output));
    }
}

/// The content of a property list, as Python reads it; none if there is no Python.
pub(crate) fn property_list(path: &Path) -> Option<Value> {
    let read = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let output = judge("python3", &["-c", read], Some(path))?;
    Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output))))
}

/// A folder of `packaging`.
pub(crate) fn packaging(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(folder)
}

/// The output of a program that checks what was written. None if the program is not installed: that counts as skipped.
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
