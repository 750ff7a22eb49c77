//! Reads what the bridge to other hosts has written: the rosters of the fleet's hosts, and the bridge's own file.
//! Commands read only these files and never talk to the fleet's server.

use super::client::HeartbeatWatch;
use super::error::CliError;
use super::unread::Unread;
use super::view::{self, ViewFile, read_bytes, said};
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::fleet::HOST_STALE_MS;
use crate::contract::{BridgeView, HostState, HostView};
use crate::core::host::HostName;
use crate::core::text::{sanitise, shell_word};
use crate::core::time::millis;
use crate::exit;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant, SystemTime};

/// The largest `fleet/host.json` that is read, in bytes.
const MOST_BYTES: u64 = 8 << 20;
/// How long a command waits for the bridge to bring the rosters up to date.
const READ_WITHIN: Duration = Duration::from_secs(3);
/// How often the command looks whether the bridge has done that.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The fleet, as this home knows it.
#[derive(Debug)]
pub struct FleetHosts {
    /// This host's own name.
    pub own: HostName,
    /// The bridge has written its file within the last 45 s, and is connected to a server.
    pub is_fresh: bool,
    /// The hosts by name, this one among them.
    pub hosts: Vec<ViewFile<HostView>>,
    /// The hosts whose files can't be read.
    pub unread: Unread,
}

impl FleetHosts {
    /// The state of a host of this fleet at this moment, as far as this host knows it.
    #[must_use]
    pub fn state(&self, host: &HostView) -> HostState {
        host.state(self.is_fresh)
    }

    /// The host of this name.
    ///
    /// # Errors
    /// `no_host`.
    pub fn named(&self, name: &HostName) -> Result<&ViewFile<HostView>, CliError> {
        self.hosts.iter().find(|host| host.host == name.as_str()).ok_or_else(|| no_host(name.as_str()))
    }
}

/// The bridge's own file; none if this home has joined no fleet, or its bridge never ran.
///
/// # Errors
/// When it can't be read.
pub fn bridge(home: &Home) -> Result<Option<ViewFile<BridgeView>>, CliError> {
    view::read(&home.fleet().join("bridge.json"))
}

/// Whether the bridge has written a heartbeat within the last 45 s, and is connected to a server.
#[must_use]
pub fn is_fresh(bridge: &BridgeView, now_ms: i64) -> bool {
    age_ms(bridge, now_ms).is_some_and(|age| age <= HOST_STALE_MS) && bridge.server.is_some()
}

/// Whether the bridge can pass on a request at this moment.
///
/// # Errors
/// When its file can't be read.
pub fn has_bridge(home: &Home) -> Result<bool, CliError> {
    let now_ms = Clock::new().now().wall_ms;
    Ok(bridge(home)?.is_some_and(|bridge| is_fresh(&bridge, now_ms)))
}

/// When the bridge has last read all rosters, in milliseconds since 1970.
#[must_use]
pub fn rosters_read_ms(bridge: &BridgeView) -> Option<i64> {
    millis(said(bridge.hosts_seen_at.as_deref())?)
}

/// Refuses when the bridge can't pass on a request at this moment.
///
/// # Errors
/// `no_bridge`, exit code 69.
pub fn require_bridge(home: &Home) -> Result<(), CliError> {
    let now_ms = Clock::new().now().wall_ms;
    match bridge(home)? {
        Some(seen) if is_fresh(&seen, now_ms) => Ok(()),
        seen => Err(no_bridge(home, seen.as_deref(), now_ms)),
    }
}

/// As [`require_bridge`], before something is sent: the error says that nothing was.
///
/// # Errors
/// `no_bridge`, exit code 69.
pub fn require_bridge_to_send(home: &Home) -> Result<(), CliError> {
    require_bridge(home).map_err(CliError::nothing_sent)
}

/// Watches the bridge while a command waits for an answer. The bridge keeps what it has taken until it is answered,
/// also while it reaches no server. So only a bridge that has ended, or hangs, ends the wait.
#[derive(Debug, Default)]
pub struct BridgePulse(HeartbeatWatch);

impl BridgePulse {
    /// Whether the bridge has written a heartbeat within the last 45 s. A heartbeat that was seen to change within that
    /// time counts even if the wall clock says otherwise: the clock may jump, and after the machine has slept, the
    /// bridge needs a moment for its next heartbeat.
    ///
    /// # Errors
    /// When its file can't be read.
    pub fn has_heartbeat(&mut self, home: &Home) -> Result<bool, CliError> {
        let Some(seen) = bridge(home)? else { return Ok(false) };
        let age_ms = age_ms(&seen, Clock::new().now().wall_ms).filter(|age| *age <= HOST_STALE_MS);
        if let Some(heartbeat_ms) = millis(&seen.heartbeat) {
            self.0.note(heartbeat_ms, age_ms.map(i64::unsigned_abs));
        }
        Ok(age_ms.is_some() || self.0.has_changed_within(Duration::from_millis(HOST_STALE_MS.unsigned_abs())))
    }

    /// As [`BridgePulse::has_heartbeat`], for a command that ends if it does not.
    ///
    /// # Errors
    /// `no_bridge`, exit code 69; when the file can't be read.
    pub fn keep(&mut self, home: &Home) -> Result<(), CliError> {
        match self.has_heartbeat(home)? {
            true => Ok(()),
            false => Err(no_bridge(home, bridge(home)?.as_deref(), Clock::new().now().wall_ms)),
        }
    }
}

/// How old the bridge's last heartbeat is by the wall clock; none if it has not written one.
fn age_ms(bridge: &BridgeView, now_ms: i64) -> Option<i64> {
    millis(&bridge.heartbeat).map(|at| now_ms.saturating_sub(at).saturating_abs())
}

fn no_bridge(home: &Home, seen: Option<&BridgeView>, now_ms: i64) -> CliError {
    let root = home.root().display();
    let start = format!("Start it in another pane: tasuki --home {} fleet run", shell_word(&root.to_string()));
    let heartbeat = seen.and_then(|seen| Some((seen, age_ms(seen, now_ms)?)));
    let error = |message: String| CliError::new(exit::UNAVAILABLE, "no_bridge", message);
    match heartbeat {
        Some((seen, age_ms)) if age_ms <= HOST_STALE_MS => {
            let problem = seen.all_problems().map(|problem| format!(" {}", sanitise(&problem)));
            let message =
                format!("The bridge of {root} is not connected to the fleet's server.{}", problem.unwrap_or_default());
            error(message).hint("It tries again by itself. Only one bridge is needed: tasuki fleet run")
        }
        Some((_, age_ms)) => error(format!(
            "No bridge to other hosts answers for {root}: its last heartbeat was {} s ago.",
            age_ms / 1_000
        ))
        .hint(start),
        None => error(format!("No bridge to other hosts runs for {root}.")).hint(start),
    }
}

/// Takes `kai@b` apart: the name, and the host if it is not this one.
///
/// # Errors
/// `no_fleet` if a host is named and this home has joined no fleet.
pub fn split<'t>(home: &Home, text: &'t str) -> Result<(&'t str, Option<&'t str>), CliError> {
    let Some((name, host)) = text.rsplit_once('@') else { return Ok((text, None)) };
    let own = own_name(home)?.ok_or_else(no_fleet)?;
    Ok((name, Some(host).filter(|host| *host != own.as_str())))
}

/// The name of something on this host, for commands that ask no other host.
///
/// # Errors
/// `not_from_elsewhere` if another host is named; `no_fleet` as for [`split`].
pub fn only_here<'t>(home: &Home, text: &'t str) -> Result<&'t str, CliError> {
    match split(home, text)? {
        (name, None) => Ok(name),
        (name, Some(host)) => Err(not_from_elsewhere(name, host)),
    }
}

/// The refusal of a command that another host takes from its own users only.
#[must_use]
pub fn not_from_elsewhere(name: &str, host: &str) -> CliError {
    let (name, host) = (sanitise(name), sanitise(host));
    let message =
        format!("The host {host} takes this command from its own users only, not from other hosts. Nothing was sent.");
    CliError::refused("not_from_elsewhere", message).hint(format!("Run it there, and name {name}: ssh {host} tasuki …"))
}

/// The refusal of a host's name that is not in the fleet.
#[must_use]
pub fn no_host(name: &str) -> CliError {
    CliError::refused("no_host", format!("Host not found: \"{}\"", sanitise(name)))
        .hint("`tasuki agents --all-hosts` lists the hosts of this fleet.")
}

/// This host's own name in its fleet; `None` if this home has joined no fleet.
///
/// # Errors
/// When `fleet/host.json` can't be read.
pub fn own_name(home: &Home) -> Result<Option<HostName>, CliError> {
    #[derive(serde::Deserialize)]
    struct HostFile {
        name: HostName,
        // Missing if the host has made its keys, but has not joined a fleet.
        fleet: Option<serde_json::Value>,
    }
    let path = home.fleet().join("host.json");
    let Some(bytes) = read_bytes(&path, MOST_BYTES)? else { return Ok(None) };
    let broken = |error| CliError::config("not_json", format!("{} can't be read: {error}.", path.display()));
    let file: HostFile = serde_json::from_slice(&bytes).map_err(broken)?;
    Ok(file.fleet.map(|_| file.name))
}

/// All hosts of the fleet, sorted by name. If the bridge runs, this first asks it to bring the rosters up to date, and
/// waits at most 3 s for that.
///
/// # Errors
/// `no_fleet` if this home has joined none; when the files can't be read.
pub fn all(home: &Home) -> Result<FleetHosts, CliError> {
    let own = own_name(home)?.ok_or_else(no_fleet)?;
    let clock = Clock::new();
    let asked_ms = clock.now().wall_ms;
    ask_for_rosters(home);
    let end = Instant::now() + READ_WITHIN;
    let is_fresh = loop {
        let seen = bridge(home)?;
        let is_fresh = seen.as_ref().is_some_and(|bridge| is_fresh(bridge, clock.now().wall_ms));
        let is_read = seen.and_then(|bridge| rosters_read_ms(&bridge)).is_some_and(|at| at >= asked_ms);
        if !is_fresh || is_read || Instant::now() >= end {
            break is_fresh;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    read(home, own, is_fresh)
}

/// All hosts as their files are at this moment, without asking the bridge to bring them up to date.
///
/// # Errors
/// As [`all`].
pub fn as_written(home: &Home) -> Result<FleetHosts, CliError> {
    let own = own_name(home)?.ok_or_else(no_fleet)?;
    read(home, own, has_bridge(home)?)
}

/// One host as its file is at this moment, without asking the bridge to bring it up to date.
///
/// # Errors
/// When it can't be read.
pub fn one(home: &Home, name: &HostName) -> Result<Option<ViewFile<HostView>>, CliError> {
    view::read(&home.fleet().join(format!("hosts/{name}.json")))
}

/// The hosts as their files are at this moment.
///
/// # Errors
/// When the folder can't be read.
fn read(home: &Home, own: HostName, is_fresh: bool) -> Result<FleetHosts, CliError> {
    let mut unread = Unread::default();
    let hosts = view::all(&home.fleet().join("hosts"), &mut unread)?;
    Ok(FleetHosts { own, is_fresh, hosts, unread })
}

/// Tells the bridge that somebody looks at the rosters: it keeps them up to date for the next 60 s. If the bridge can't
/// be told, the rosters stay as they are.
pub fn ask_for_rosters(home: &Home) {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    let _ = options.open(home.fleet().join("looked")).and_then(|file| file.set_modified(SystemTime::now()));
}

/// The error of every command that needs a fleet where none was joined.
#[must_use]
pub fn no_fleet() -> CliError {
    CliError::new(exit::NOT_ALLOWED, "no_fleet", "This home has joined no fleet.")
        .hint("How to set up a fleet of several hosts: tasuki help fleet")
}
