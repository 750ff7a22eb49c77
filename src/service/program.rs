//! The programs that can be a service of their user: the sidecar, and the bridge to other hosts. And the exit of a
//! service of launchd.

use crate::exit::{CONFIG, DONE, NOT_ALLOWED, TRY_AGAIN, USAGE};
use std::ffi::{OsStr, OsString};

/// The variable by which our property list tells the program that launchd has started it.
pub const SERVICE_VARIABLE: &str = "TASUKI_SERVICE";

/// A program as a service: how it is called, and the packaged files from which its own are made.
#[derive(Debug, PartialEq, Eq)]
pub struct ServiceProgram {
    /// The name of systemd's unit.
    pub unit: &'static str,
    /// The label of launchd's agent.
    pub label: &'static str,
    /// What the program is to its users: the sidecar, or the bridge.
    pub role: &'static str,
    /// The command that manages the service.
    pub command: &'static str,
    /// The command that runs the program in a pane.
    pub by_hand: &'static str,
    /// The name of the log that launchd writes.
    pub log: &'static str,
    /// The exit codes after which a start would fail again. systemd's unit names the same codes.
    pub finals: &'static [u8],
    /// The unit as a package installs it.
    pub unit_template: &'static str,
    /// The property list as a package installs it.
    pub list_template: &'static str,
    /// Where the packaged property list expects the program.
    pub(super) packaged: &'static str,
    /// Where the packaged property list has the log.
    pub(super) packaged_log: &'static str,
}

/// `tasuki run`.
pub static SIDECAR: ServiceProgram = ServiceProgram {
    unit: "tasuki.service",
    label: "dev.tasuki.sidecar",
    role: "sidecar",
    command: "tasuki service",
    by_hand: "tasuki run",
    log: "tasuki.log",
    // Not 75: a disk may have room again.
    finals: &[USAGE, NOT_ALLOWED, CONFIG],
    unit_template: include_str!("../../packaging/systemd/tasuki.service"),
    list_template: include_str!("../../packaging/launchd/dev.tasuki.sidecar.plist"),
    packaged: "/usr/local/bin/tasuki",
    packaged_log: "/Users/YOU/Library/Logs/tasuki/tasuki.log",
};

/// `tasuki-fleet run`.
pub static BRIDGE: ServiceProgram = ServiceProgram {
    unit: "tasuki-fleet.service",
    label: "dev.tasuki.fleet",
    role: "bridge",
    command: "tasuki fleet service",
    by_hand: "tasuki fleet run",
    log: "tasuki-fleet.log",
    // 75: another bridge of its home runs.
    finals: &[USAGE, TRY_AGAIN, NOT_ALLOWED, CONFIG],
    unit_template: include_str!("../../packaging/systemd/tasuki-fleet.service"),
    list_template: include_str!("../../packaging/launchd/dev.tasuki.fleet.plist"),
    packaged: "/usr/local/bin/tasuki-fleet",
    packaged_log: "/Users/YOU/Library/Logs/tasuki/tasuki-fleet.log",
};

impl ServiceProgram {
    /// The mark in every service file that tasuki wrote; a file without it is never overwritten.
    #[must_use]
    pub fn ours(&self) -> String {
        format!("Written by `{} install`", self.command)
    }
    /// The code with which a command line that has ended with `code` exits. launchd starts a service again after every
    /// code but 0, and knows no exception. So under launchd a service that has failed for a reason that no restart
    /// removes exits with 0, after `say`; what the reason is has been told before.
    ///
    /// `args`: the command line, the program first. `manager`: the value of [`SERVICE_VARIABLE`].
    #[must_use]
    pub fn exit_code(&self, args: &[OsString], manager: Option<&OsStr>, code: u8, say: fn(&str)) -> u8 {
        let is_run = args.iter().skip(1).any(|arg| arg == "run");
        if !is_run || manager.is_none_or(|manager| manager != "launchd") || !self.finals.contains(&code) {
            return code;
        }
        say(&format!(
            "Exit code {code} became 0, so that launchd does not try again. Remove the cause, then run: {} start",
            self.command
        ));
        DONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{FAULT, REFUSED, UNAVAILABLE};

    #[test]
    fn launchd_is_told_of_success_only_by_a_service_that_no_restart_helps() {
        let words = |words: &[&str]| -> Vec<OsString> { words.iter().map(OsString::from).collect() };
        let run = words(&["tasuki", "--home", "/h", "run"]);
        let exit = |args: &[OsString], manager: Option<&str>, code| {
            SIDECAR.exit_code(args, manager.map(OsStr::new), code, |_| {})
        };
        for code in [USAGE, NOT_ALLOWED, CONFIG] {
            assert_eq!(exit(&run, Some("launchd"), code), DONE);
            assert_eq!(exit(&run, None, code), code);
            assert_eq!(exit(&run, Some("systemd"), code), code);
            assert_eq!(exit(&words(&["tasuki", "status"]), Some("launchd"), code), code, "no service");
        }
        for code in [DONE, REFUSED, UNAVAILABLE, FAULT, TRY_AGAIN] {
            assert_eq!(exit(&run, Some("launchd"), code), code, "a restart may help");
        }
    }

    #[test]
    fn systemd_s_units_name_the_same_codes() {
        for service in [&SIDECAR, &BRIDGE] {
            let codes = service.unit_template.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
            let wanted = service.finals.iter().map(ToString::to_string);
            assert_eq!(codes, Some(wanted.collect::<Vec<_>>().join(" ").as_str()));
        }
    }
}
