//! The programs that can be a service of their user: the sidecar, and the bridge to other hosts.

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
    unit_template: include_str!("../../packaging/systemd/tasuki.service"),
    list_template: include_str!("../../packaging/launchd/dev.tasuki.sidecar.plist"),
    packaged: "/usr/local/bin/tasuki",
    packaged_log: "/Users/YOU/Library/Logs/tasuki/tasuki.log",
};

/// `tasuki-fleet run`.
#[cfg(feature = "fleet")]
pub static BRIDGE: ServiceProgram = ServiceProgram {
    unit: "tasuki-fleet.service",
    label: "dev.tasuki.fleet",
    role: "bridge",
    command: "tasuki fleet service",
    by_hand: "tasuki fleet run",
    log: "tasuki-fleet.log",
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
}
