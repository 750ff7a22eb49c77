//! `server init`: writes a folder with everything that a NATS server needs to carry a fleet's letters. It does not
//! start the server.

use crate::bridge::owner_file::OwnerFile;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::core::host::FleetName;
use crate::fleet::{AccountKey, FleetKeys, ServerKeys, jwt};
use clap::{Args, Subcommand};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The domain of the server's streams.
const DOMAIN: &str = "hub";

/// `server …`.
#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Write what a NATS server needs for a new fleet: configuration, certificate, keys, a service file.
    #[command(
        after_help = "Example:\n  tasuki fleet server init ./fleet-server --listen 0.0.0.0:4222 --name home\n  nats-server -c ./fleet-server/nats-server.conf"
    )]
    Init(InitArgs),
}

/// `server init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder to write; it must not exist yet, or be empty.
    pub(crate) folder: PathBuf,
    /// The address that the server listens at.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:4222")]
    pub(crate) listen: SocketAddr,
    /// The fleet's name: 1 to 16 of a-z and 0-9.
    #[arg(long)]
    pub(crate) name: FleetName,
    /// A name or an IP address by which the hosts reach the server; may be given several times [default: this machine's
    /// own name and addresses].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Vec<String>,
}

/// `owner/fleet.json`, beside the seeds in `owner/owner.json`: what `join --first` must know of the new fleet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NewFleet {
    pub(crate) name: FleetName,
    pub(crate) key: AccountKey,
    pub(crate) servers: Vec<String>,
    pub(crate) domain: String,
}

/// Writes the folder.
///
/// # Errors
/// The folder is not empty, or it can't be written.
pub(crate) fn command(session: &CliSession, command: &ServerCommand) -> Result<(), CliError> {
    let ServerCommand::Init(args) = command;
    let folder = std::path::absolute(&args.folder)
        .map_err(|error| CliError::file("Can't find the folder", &args.folder, &error))?;
    if std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        let message = format!("{} is not empty. Nothing was written.", folder.display());
        return Err(CliError::refused("exists", message).hint("Name a new folder."));
    }
    let addresses = if args.address.is_empty() { own_addresses(args.listen) } else { args.address.clone() };
    let server = write(&folder, args, &addresses)?;
    let lines = [
        format!("The server's folder is {}.", folder.display()),
        format!("  Start the server:  nats-server -c '{}'", folder.join("nats-server.conf").display()),
        format!("  Then join it here: tasuki fleet join --first '{}' --as NAME", folder.display()),
        "  The server is reached at:".to_owned(),
    ];
    let urls: Vec<String> = server.servers.iter().map(|url| format!("    {url}")).collect();
    let answer = json!({"status": "written", "folder": folder.display().to_string(), "servers": server.servers});
    session.report(&answer, &lines.into_iter().chain(urls).collect::<Vec<_>>().join("\n"))
}

/// The addresses by which hosts may reach a server that listens at `listen`. At a loopback address: 127.0.0.1 and
/// localhost. At all addresses: this machine's IPv4 addresses, except those of its containers and virtual machines, its
/// name and 127.0.0.1. Otherwise that one address.
fn own_addresses(listen: SocketAddr) -> Vec<String> {
    if listen.ip().is_loopback() {
        return vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    }
    if !listen.ip().is_unspecified() {
        return vec![listen.ip().to_string()];
    }
    let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let found = nix::ifaddrs::getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address.filter(|_| !is_virtual(&interface.interface_name))?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.filter(|ip| !ip.is_loopback()).map(|ip| ip.to_string())
    });
    let mut addresses: Vec<String> = found.chain(name).chain(["127.0.0.1".to_owned()]).collect();
    addresses.dedup();
    addresses
}

/// Whether an interface leads only to containers or virtual machines of this machine. A bridge with a plain name such
/// as br0 may have this machine's own address.
fn is_virtual(interface: &str) -> bool {
    let is_of_docker = |id: &str| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    ["docker", "podman", "cni", "veth", "virbr", "lxcbr", "lxdbr"].iter().any(|kind| interface.starts_with(kind))
        || interface.strip_prefix("br-").is_some_and(is_of_docker)
}

fn write(folder: &Path, args: &InitArgs, addresses: &[String]) -> Result<NewFleet, CliError> {
    let (fleet_keys, server_keys, at_s) =
        (FleetKeys::generate(), ServerKeys::generate(), Clock::new().now().wall_ms / 1_000);
    let key = fleet_keys.account_key();
    for part in ["", "accounts", "jetstream", "owner"] {
        let path = folder.join(part);
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&path);
        made.map_err(|error| CliError::file("Can't make", &path, &error))?;
    }
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| {
            std::io::Write::write_all(&mut file, text.as_bytes())?;
            file.sync_all()
        });
        written.map_err(|error| CliError::file("Can't write", &path, &error))
    };
    let (ca, certificate, certificate_key) = certificates(&args.name, addresses)?;
    put("ca.pem", &ca)?;
    put("server.pem", &certificate)?;
    put("server-key.pem", &certificate_key)?;
    let account = jwt::fleet_account(&server_keys, (&args.name, &key), &BTreeMap::new(), at_s);
    put(&format!("accounts/{key}.jwt"), &account)?;
    put("nats-server.conf", &configuration(folder, args, &server_keys, at_s))?;
    put("tasuki-nats.service", &unit(folder))?;
    put("owner/owner.json", &json!(OwnerFile::new(&fleet_keys, &server_keys)).to_string())?;
    let port = args.listen.port();
    let url = |address: &String| match address.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("tls://[{ip}]:{port}"),
        _ => format!("tls://{address}:{port}"),
    };
    let server = NewFleet {
        name: args.name.clone(),
        key,
        servers: addresses.iter().map(url).collect(),
        domain: DOMAIN.to_owned(),
    };
    put("owner/fleet.json", &json!(server).to_string())?;
    Ok(server)
}

/// Makes a certificate authority that certifies this server and nothing else, because its key is thrown away
/// afterwards. Returns three PEM texts: the authority's certificate, the server's certificate, and the server's key.
fn certificates(name: &FleetName, addresses: &[String]) -> Result<(String, String, String), CliError> {
    let failed =
        |error: rcgen::Error| CliError::refused("certificate", format!("The certificate can't be made: {error}."));
    let (from, to) = (rcgen::date_time_ymd(2020, 1, 1), rcgen::date_time_ymd(2060, 1, 1));
    let mut ca = CertificateParams::new(Vec::new()).map_err(failed)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    ca.distinguished_name.push(DnType::CommonName, format!("tasuki fleet {name}"));
    (ca.not_before, ca.not_after) = (from, to);
    let ca_key = KeyPair::generate().map_err(failed)?;
    let ca_certificate = ca.self_signed(&ca_key).map_err(failed)?;
    let mut server = CertificateParams::new(addresses.to_vec()).map_err(failed)?;
    server.distinguished_name.push(DnType::CommonName, format!("nats-server of {name}"));
    // If a fleet has three servers, they also log in at each other with this certificate.
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    (server.not_before, server.not_after) = (from, to);
    let server_key = KeyPair::generate().map_err(failed)?;
    let certificate = server.signed_by(&server_key, &Issuer::new(ca, ca_key)).map_err(failed)?;
    Ok((ca_certificate.pem(), certificate.pem(), server_key.serialize_pem()))
}

fn configuration(folder: &Path, args: &InitArgs, keys: &ServerKeys, at_s: i64) -> String {
    let path = |name: &str| quoted(&folder.join(name));
    let (tls, sync) = if is_new() {
        (
            "  min_version: \"1.3\"\n",
            "  # Each letter is on the disk before the server confirms it.\n  sync_interval: always\n",
        )
    } else {
        // An older server refuses a configuration with these words, because it does not know them.
        ("  # min_version: \"1.3\"\n", "  # sync_interval: always\n")
    };
    format!(
        "# Written by `tasuki fleet server init` for the fleet {fleet}.\n\
         server_name: \"tasuki-{fleet}\"\n\
         listen: \"{listen}\"\n\
         max_payload: 2MB\n\
         tls {{\n  cert_file: {certificate}\n  key_file: {key}\n{tls}}}\n\
         operator: {operator}\n\
         system_account: {system}\n\
         # The fleet's account lies in accounts/. If it were preloaded here, a restart would let the expelled in again.\n\
         resolver {{\n  type: full\n  dir: {accounts}\n}}\n\
         resolver_preload: {{\n  {system}: {system_jwt}\n}}\n\
         # Without max_file_store the server may keep three quarters of what is free on its disk. If that is less than\n\
         # twice what the fleet's account may keep, it may give the fleet no streams.\n\
         jetstream {{\n  store_dir: {store}\n  max_file_store: {most}\n{sync}  domain: {DOMAIN}\n}}\n\
         # For hosts whose network lets only port 443 out, with [server] websocket = true in their fleet.toml:\n\
         # websocket {{\n#   port: 443\n#   tls {{\n#     cert_file: {certificate}\n#     key_file: {key}\n#   }}\n# }}\n",
        fleet = args.name,
        listen = args.listen,
        certificate = path("server.pem"),
        key = path("server-key.pem"),
        operator = jwt::operator(keys, &args.name, at_s),
        system = keys.system_key(),
        accounts = path("accounts"),
        system_jwt = jwt::system_account(keys, at_s),
        store = path("jetstream"),
        most = jwt::SERVER_MAY_KEEP,
    )
}

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('\\', "\\\\").replace('"', "\\\""))
}

/// Whether nats-server on this machine is 2.10 or newer, and so knows everything in the configuration. If it is not
/// installed here, it counts as new.
fn is_new() -> bool {
    let run = Command::new("nats-server").arg("--version").stdin(Stdio::null()).output();
    let Ok(output) = run else { return true };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split('v').next_back().unwrap_or_default().trim().to_owned();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (2, 10)
}

/// A service file with which the user's own systemd runs the server.
fn unit(folder: &Path) -> String {
    let conf = folder.join("nats-server.conf").display().to_string().replace('%', "%%").replace('"', "\\\"");
    format!(
        "# Copy it to ~/.config/systemd/user/, then: systemctl --user enable --now tasuki-nats\n\
         [Unit]\nDescription=NATS server of a tasuki fleet\nAfter=network.target\n\n\
         [Service]\nExecStart=/usr/bin/env nats-server -c \"{conf}\"\nRestart=always\nRestartSec=2\nUMask=0077\nLimitNOFILE=65536\n\n\
         [Install]\nWantedBy=default.target\n"
    )
}

#[cfg(test)]
mod tests {
    use super::is_virtual;

    #[test]
    fn interfaces_that_only_this_machine_reaches_are_left_out() {
        for interface in ["docker0", "br-0a1b2c3d4e5f", "vethab12cd3", "virbr0", "lxdbr0", "podman1", "cni0"] {
            assert!(is_virtual(interface), "{interface}");
        }
        for interface in ["eth0", "enp3s0", "wlan0", "br0", "br-lan", "wg0", "tailscale0", "bond0"] {
            assert!(!is_virtual(interface), "{interface}");
        }
    }
}
