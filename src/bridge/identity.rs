//! Who this host is: its name, its home's id, its two keys, and the fleet that it has joined.

use super::folder::FleetFolder;
use super::runtime::wait_for;
use super::settings::FleetSettings;
use crate::child::Grouped;
use crate::cli::error::CliError;
use crate::cli::hosts::no_fleet;
use crate::core::host::{FleetName, HomeId, HostName};
use crate::core::text::quotable;
use crate::exit;
use crate::files::Grade;
use crate::fleet::nats::{FleetPlace, ServerAccess};
use crate::fleet::{AccountKey, HostKeys};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// The file of the host's name and fleet.
const HOST: &str = "host.json";
/// The file of the host's two seeds, one on each line: first that of the user key, with which the host signs and logs
/// in, then that of the box key, for which letters to it are encrypted.
pub(super) const KEY: &str = "key";
/// The code of the error of a `key_command`.
const KEY_COMMAND: &str = "key_command";
/// How long a `key_command` may take. It may have to ask a person, in a window of its own.
pub(super) const KEY_WITHIN: Duration = Duration::from_secs(60);
/// How much of its output is read, in bytes.
const MOST_KEY: u64 = 4 << 10;
/// The file of the host's claims: the signed text (JWT) by which the server lets it log in.
pub(super) const JWT: &str = "jwt";
/// The most characters of a wrong setting that a message quotes.
const MOST_QUOTED: usize = 100;
/// The file of the certificate of the server's authority.
pub(super) const CA: &str = "ca.pem";

/// `fleet/host.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HostFile {
    pub(crate) v: u8,
    /// The host's name.
    pub(crate) name: HostName,
    /// The id of its home.
    pub(crate) home_id: HomeId,
    /// The fleet that it has joined; none yet after `tasuki fleet key`.
    pub(crate) fleet: Option<JoinedFleet>,
    /// The operator has said that this home was moved here from another machine (`tasuki fleet moved`). False again
    /// once the bridge has served here.
    #[serde(default)]
    pub(crate) was_moved: bool,
}

/// The fleet that a host has joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JoinedFleet {
    /// The fleet's name.
    pub(crate) name: FleetName,
    /// The fleet's key, which signs the list of members.
    pub(crate) key: AccountKey,
    /// The server's addresses.
    pub(crate) servers: Vec<String>,
    /// The domain of the server's streams; empty if they have none.
    pub(crate) domain: String,
}

impl HostFile {
    /// A host that has joined no fleet yet.
    #[must_use]
    pub(crate) fn new(name: HostName) -> HostFile {
        HostFile { v: 1, name, home_id: HomeId(uuid::Uuid::new_v4()), fleet: None, was_moved: false }
    }

    /// Reads the file; none if this home has neither made a key nor joined a fleet.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn load(folder: &FleetFolder) -> Result<Option<HostFile>, CliError> {
        let Some(bytes) = folder.read("", HOST)? else { return Ok(None) };
        let path = folder.path("", HOST);
        let broken = |error| CliError::config("not_json", format!("{} can't be read: {error}.", path.display()));
        serde_json::from_slice(&bytes).map(Some).map_err(broken)
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn save(&self, folder: &FleetFolder) -> Result<(), CliError> {
        folder.write("", HOST, &serde_json::to_vec_pretty(self).expect("a plain value"), Grade::Durable)
    }
}

/// This host as a member of its fleet.
#[derive(Debug)]
pub(crate) struct Membership {
    /// Its name and home, and more.
    pub(crate) host: HostFile,
    /// The fleet.
    pub(crate) fleet: JoinedFleet,
    /// Its keys.
    pub(crate) keys: Arc<HostKeys>,
    /// Its claims.
    pub(crate) jwt: String,
}

impl Membership {
    /// Reads the files that make this home a member.
    ///
    /// # Errors
    /// `no_fleet` (77) if this home has joined none; a file is missing or can't be read.
    pub(crate) fn load(folder: &FleetFolder, settings: &FleetSettings) -> Result<Membership, CliError> {
        let host = HostFile::load(folder)?.ok_or_else(no_fleet)?;
        let fleet = host.fleet.clone().ok_or_else(no_fleet)?;
        let keys = load_keys(folder, settings, KEY_WITHIN)?.ok_or_else(|| missing(folder, KEY))?;
        Ok(Membership { host, fleet, keys: Arc::new(keys), jwt: load_claims(folder)? })
    }

    /// How to reach the server, by the ticket, or by the settings where they say otherwise.
    ///
    /// # Errors
    /// A server on another machine would be reached without encryption, and the settings do not allow that. Or an
    /// address, the domain or the certificate can't be used.
    pub(crate) fn access(&self, folder: &FleetFolder, settings: &FleetSettings) -> Result<ServerAccess, CliError> {
        access(&self.fleet, &self.jwt, folder, settings)
    }

    /// The fleet and the host's name.
    #[must_use]
    pub(crate) fn place(&self) -> FleetPlace {
        FleetPlace { fleet: self.fleet.name.clone(), host: self.host.name.clone() }
    }
}

/// The host's claims, as its last ticket has brought them.
///
/// # Errors
/// They can't be read.
pub(super) fn load_claims(folder: &FleetFolder) -> Result<String, CliError> {
    let bytes = folder.read("", JWT)?.ok_or_else(|| missing(folder, JWT))?;
    Ok(String::from_utf8(bytes).map_err(|_| missing(folder, JWT))?.trim().to_owned())
}

/// How to reach the server, and the claims to log in with.
///
/// # Errors
/// As for [`Membership::access`].
pub(crate) fn access(
    fleet: &JoinedFleet,
    jwt: &str,
    folder: &FleetFolder,
    settings: &FleetSettings,
) -> Result<ServerAccess, CliError> {
    let own = &settings.server;
    let named = if own.urls.is_empty() { &fleet.servers } else { &own.urls };
    let mut urls: Vec<String> =
        named.iter().map(|url| if own.websocket { by_websocket(url) } else { url.clone() }).collect();
    urls.dedup();
    // Addresses are shown in messages, so a password in one would be shown too. And hosts log in by their keys alone.
    if urls.iter().any(|url| url.contains('@')) {
        let message = "An address of the server names a user or a password.";
        return Err(
            CliError::config("address", message).hint("Leave out what stands before @: hosts log in by their keys.")
        );
    }
    if let Some(open) = urls.iter().find(|url| is_open(url)).filter(|_| !own.plaintext) {
        let message = format!("The server {open} is on another machine and would be reached without encryption.");
        let hint = "Use an address that begins with tls://, or allow it in fleet.toml: [server] plaintext = true.";
        return Err(CliError::config("plaintext", message).hint(hint));
    }
    let kept = folder.path("", CA);
    let ca = own.ca.clone().or_else(|| kept.is_file().then_some(kept));
    let needs_ca = urls.iter().any(|url| url.starts_with("tls://") || url.starts_with("wss://"));
    let domain = own.domain.clone().unwrap_or_else(|| fleet.domain.clone());
    if !is_domain(&domain) {
        let message = format!("The domain {:?} of the server can't be used.", quotable(&domain, MOST_QUOTED));
        return Err(CliError::config("domain", message).hint("A domain has at most 64 of A-Z a-z 0-9 _ -"));
    }
    // If the path is a pipe, the client would wait for ever to read it.
    if let Some(ca) = ca.as_ref().filter(|ca| needs_ca && !ca.is_file()) {
        return Err(CliError::config("ca", format!("{} is not there, or not a plain file.", ca.display())));
    }
    Ok(ServerAccess { urls, ca: ca.filter(|_| needs_ca), domain, jwt: jwt.to_owned() })
}

/// Whether a text can be the domain of a server's streams. The empty text can: the streams then have no domain.
fn is_domain(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Whether this address leads to another machine without encryption.
pub(crate) fn is_open(url: &str) -> bool {
    // If there is no scheme, the client takes nats://.
    let scheme = url.split_once("://").map_or("nats", |(scheme, _)| scheme);
    ["nats", "ws"].contains(&scheme) && !is_local(url)
}

/// The host in an address.
fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address).trim_end_matches('/');
    match address.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => address,
    }
}

/// The address of the same host by websocket at port 443. An address that names a websocket already stays as it is.
fn by_websocket(url: &str) -> String {
    let is_one = url.starts_with("wss://") || url.starts_with("ws://");
    if is_one { url.to_owned() } else { format!("wss://{}:443", host_of(url)) }
}

/// Whether this address is one of this machine: localhost or a loopback address.
pub(crate) fn is_local(url: &str) -> bool {
    let host = host_of(url);
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// The host's keys: from the `key_command` of the settings, or else from the file; none if there is neither.
///
/// # Errors
/// They can't be read.
pub(crate) fn load_keys(
    folder: &FleetFolder,
    settings: &FleetSettings,
    within: Duration,
) -> Result<Option<HostKeys>, CliError> {
    let text = match settings.key_command.split_first() {
        Some((program, args)) => printed(program, args, within)?,
        None => match folder.read("", KEY)? {
            Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            None => return Ok(None),
        },
    };
    parse_keys(&text).map(Some)
}

/// The keys whose seeds are in these two lines: user, then box.
fn parse_keys(text: &str) -> Result<HostKeys, CliError> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (user, sealing) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let broken = |error| CliError::config("bad_key", format!("This host's key can't be used: {error}."));
    HostKeys::from_seeds(user, sealing).map_err(broken)
}

/// Runs the command that prints the key, without a shell. A command that takes longer than `within` is ended.
///
/// # Errors
/// Exit code 78 if this user can't execute the command. After another failure a new start may help, for example once
/// the operator has unlocked a vault: the exit code is 1.
fn printed(program: &str, args: &[String], within: Duration) -> Result<String, CliError> {
    let failed = |why: &dyn std::fmt::Display| {
        CliError::refused(KEY_COMMAND, format!("The key_command {program} failed: {why}."))
            .hint("Run the key_command of fleet.toml by hand: it must print the key without a question.")
    };
    let not_started = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied => {
            CliError::config(KEY_COMMAND, format!("The key_command {program} can't be started: {error}."))
        }
        _ => failed(&error),
    };
    let run = async {
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut run = Grouped::spawn(&mut command).map_err(not_started)?;
        let mut text = Vec::new();
        if let Some(out) = run.child().stdout.take() {
            out.take(MOST_KEY).read_to_end(&mut text).await.map_err(|error| failed(&error))?;
        }
        Ok((run.child().wait().await.map_err(|error| failed(&error))?, text))
    };
    match wait_for(async { Ok(tokio::time::timeout(within, run).await) })? {
        Err(_) => Err(failed(&format!("it did not end within {} s", within.as_secs()))),
        Ok(Ok((status, _))) if !status.success() => Err(failed(&status)),
        Ok(run) => run.map(|(_, text)| String::from_utf8_lossy(&text).into_owned()),
    }
}

/// Whether a `key_command` has run and failed. It may print the key the next time.
pub(super) fn is_key_awaited(error: &CliError) -> bool {
    error.code == KEY_COMMAND && error.exit != exit::CONFIG
}

/// Writes the seeds of this host's keys into its file.
///
/// # Errors
/// The system's.
pub(crate) fn save_keys(folder: &FleetFolder, keys: &HostKeys) -> Result<(), CliError> {
    let [user, sealing] = keys.seeds();
    folder.write("", KEY, format!("{user}\n{sealing}\n").as_bytes(), Grade::Durable)
}

fn missing(folder: &FleetFolder, name: &str) -> CliError {
    let path = folder.path("", name);
    CliError::config("not_a_member", format!("{} is missing or can't be read.", path.display()))
        .hint("Have this host admitted again: tasuki fleet key, then admit, then join.")
}

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::*;
    use crate::fleet::FleetKeys;

    fn fleet_at(servers: &[&str]) -> JoinedFleet {
        JoinedFleet {
            name: "home".parse().expect("a name"),
            key: FleetKeys::generate().account_key(),
            servers: servers.iter().map(|server| (*server).to_owned()).collect(),
            domain: "hub".to_owned(),
        }
    }

    #[test]
    fn a_server_elsewhere_is_not_reached_without_encryption_unless_that_is_allowed() {
        let (_dir, _, folder) = of_test();
        let fleet = |url: &str| fleet_at(&[url]);
        let mut settings = FleetSettings::default();
        for (url, is_fine) in [
            ("nats://127.0.0.1:4222", true),
            ("nats://localhost:4222", true),
            ("tls://10.0.0.1:4222", true),
            ("nats://10.0.0.1:4222", false),
            ("nats://a@10.0.0.1:4222", false),
            ("nats://localhost.example.org:4222", false),
            ("nats://127.example.org:4222", false),
            ("10.0.0.1:4222", false),
            ("127.0.0.1:4222", true),
            ("nats://[::1]:4222", true),
            ("ws://10.0.0.1:80", false),
        ] {
            assert_eq!(access(&fleet(url), "", &folder, &settings).is_ok(), is_fine, "{url}");
        }
        settings.server.plaintext = true;
        assert!(access(&fleet("nats://10.0.0.1:4222"), "", &folder, &settings).is_ok());
    }

    #[test]
    fn a_domain_that_would_change_the_subjects_and_a_certificate_that_is_not_a_plain_file_are_refused() {
        let (_dir, _, folder) = of_test();
        let fleet = fleet_at(&["tls://127.0.0.1:4222"]);
        let mut settings = FleetSettings::default();
        for (domain, is_fine) in
            [("", true), ("hub-2", true), ("a.b", false), (">", false), ("a b", false), ("*", false)]
        {
            settings.server.domain = Some(domain.to_owned());
            assert_eq!(access(&fleet, "", &folder, &settings).is_ok(), is_fine, "{domain}");
        }
        settings.server.domain = None;
        let pipe = folder.path("", "pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for path in [pipe, folder.path("", "missing"), folder.path("", "out")] {
            settings.server.ca = Some(path);
            assert_eq!(access(&fleet, "", &folder, &settings).expect_err("not a file").code, "ca");
        }
    }

    #[test]
    fn a_key_command_that_has_run_and_failed_does_not_end_the_service_for_good() {
        let (_dir, _, folder) = of_test();
        let words = [&["false"][..], &["sleep", "300"], &["/no/such/program"], &["/"], &["echo", "no key"]];
        for (words, is_awaited) in words.into_iter().zip([true, true, false, false, false]) {
            let key_command = words.iter().map(|word| (*word).to_owned()).collect();
            let settings = FleetSettings { key_command, ..FleetSettings::default() };
            let error = load_keys(&folder, &settings, Duration::from_millis(500)).expect_err("no key");
            assert_eq!(
                (is_key_awaited(&error), crate::service::BRIDGE.finals.contains(&error.exit)),
                (is_awaited, !is_awaited),
                "{error:?}"
            );
        }
    }

    #[test]
    fn no_password_in_an_address_is_taken_or_shown() {
        let (_dir, _, folder) = of_test();
        let fleet = fleet_at(&["nats://me:secret@127.0.0.1:4222"]);
        let error = access(&fleet, "", &folder, &FleetSettings::default()).expect_err("a password");
        assert!(error.code == "address" && !format!("{error:?}").contains("secret"), "{error:?}");
    }

    #[test]
    fn by_websocket_each_server_is_reached_at_port_443_unless_its_address_says_otherwise() {
        let (_dir, _, folder) = of_test();
        folder.write("", CA, b"certificate", Grade::Fast).expect("written");
        let servers =
            ["tls://10.0.0.1:4222", "nats://10.0.0.1:4222", "tls://[::1]:4222", "hub.example.org", "wss://a:8443"];
        let fleet = fleet_at(&servers);
        let mut settings = FleetSettings::default();
        settings.server.websocket = true;
        let access = access(&fleet, "", &folder, &settings).expect("encrypted");
        let urls = ["wss://10.0.0.1:443", "wss://[::1]:443", "wss://hub.example.org:443", "wss://a:8443"];
        assert_eq!((access.urls, access.ca), (urls.map(str::to_owned).to_vec(), Some(folder.path("", CA))));
    }
}
