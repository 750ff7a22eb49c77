//! The commands by which hosts become members and leave: `key`, `join`, `admit`, `setup`, `expel`, `leave`, `moved`,
//! `rejoin`.

use super::first;
use super::ground::{Ground, line_of_input};
use crate::bridge::admission::{KeyLine, Ticket, save_ticket};
use crate::bridge::identity::{self, CA, HostFile, JoinedFleet, save_keys};
use crate::bridge::leaving::{answer_all_open, note_all_begun};
use crate::bridge::lock::{BridgeLock, LOCK, is_running, lock, make_lock};
use crate::bridge::owner::{FleetOwner, not_the_owner};
use crate::bridge::owner_file::{OWNER, OwnerFile};
use crate::bridge::runtime::wait_for;
use crate::bridge::seen::SEEN;
use crate::bridge::settings::forget_rights;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::hosts::no_fleet;
use crate::core::host::HostName;
use crate::fleet::{AccountKey, HostKeys};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// `key`.
#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The name that this host shall have in the fleet: 1 to 32 of a-z, 0-9 and -.
    pub(crate) name: HostName,
}

/// `join`.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct JoinArgs {
    /// The ticket that `tasuki fleet admit` has printed, or `-` for standard input.
    #[arg(conflicts_with = "first")]
    pub(crate) ticket: Option<String>,
    /// Be the first host of a new fleet, and its owner: the folder that `tasuki fleet server init` has written.
    #[arg(long, value_name = "DIR", requires = "name")]
    pub(crate) first: Option<PathBuf>,
    /// The name that this host shall have in the fleet.
    #[arg(long = "as", id = "name", value_name = "NAME")]
    pub(crate) name: Option<HostName>,
    /// How many copies of each letter the servers keep: 1 for one server, 3 for three.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) replicas: u8,
}

/// `admit`.
#[derive(Debug, Args)]
pub(crate) struct AdmitArgs {
    /// The line that `tasuki fleet key` has printed on the newcomer, or `-` for standard input.
    pub(crate) line: String,
    /// The newcomer takes the name of another home, which is gone.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Where another party runs the server: the file with the signing key of the account, if it is another one than
    /// before.
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: Option<PathBuf>,
}

/// `setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// How many copies of each letter the servers keep: 1 for one server, 3 for three.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) replicas: u8,
    /// Make a new fleet in this account, at a server that another party runs.
    #[arg(long, requires_all = ["signing_key", "server", "fleet", "host"])]
    pub(crate) account: Option<AccountKey>,
    #[command(flatten)]
    pub(crate) given: first::GivenServerArgs,
}

/// `expel`.
#[derive(Debug, Args)]
pub(crate) struct ExpelArgs {
    /// The host's name.
    pub(crate) host: HostName,
}

/// Makes this host's keys, if it has none, and prints the line for the owner.
pub(super) fn key(session: &CliSession, args: &KeyArgs) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let (host, keys) = ground.own_key(&args.name)?;
    let line = KeyLine::of(&host, &keys).line();
    session.report(&json!({"status": "ready", "host": host.name, "line": line}), &line)
}

/// Joins a fleet by a ticket, or as its first host.
pub(super) fn join(session: &CliSession, args: &JoinArgs) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    if let (Some(folder), Some(name)) = (&args.first, &args.name) {
        return first::join(session, &ground, folder, name, args.replicas.into());
    }
    let line = line_of_input(args.ticket.as_deref().unwrap_or("-"))?;
    let ticket = Ticket::read(&line).ok_or_else(|| {
        CliError::refused("bad_ticket", "This is not a ticket. Nothing was changed.")
            .hint("The whole of it: ssh box tasuki fleet key box | tasuki fleet admit - | ssh box tasuki fleet join -")
    })?;
    let (host, keys) =
        (HostFile::load(&ground.folder)?, identity::load_keys(&ground.folder, &ground.settings, identity::KEY_WITHIN)?);
    let (Some(host), Some(keys)) = (host, keys) else {
        let message = "This home has no key of its own yet. Nothing was changed.";
        return Err(CliError::refused("no_key", message).hint("Make it first: tasuki fleet key NAME"));
    };
    let is_ours =
        crate::fleet::jwt::subject_and_end(&ticket.jwt).is_some_and(|(key, _)| key == keys.user_key().as_str());
    if !is_ours {
        let message = "This ticket is for another host: it does not name this host's key. Nothing was changed.";
        return Err(CliError::refused("bad_ticket", message));
    }
    if host.fleet.as_ref().is_some_and(|fleet| fleet.key != ticket.fleet_key) {
        let message = "This home is a member of another fleet. Nothing was changed.";
        return Err(CliError::refused("is_member", message).hint("To leave that one: tasuki fleet leave"));
    }
    let is_same_server = is_server_of(&ground, &host, &ticket)?;
    save_ticket(&ground.folder, &host, &ticket)?;
    make_lock(&ground.folder)?;
    let next = match (is_running(&ground.folder), is_same_server) {
        (false, _) => "Start the bridge: tasuki fleet run, or: tasuki fleet service install",
        (true, true) => "The bridge that runs logs in with the new ticket by itself, within a minute.",
        (true, false) => "The new ticket names another server than the last one: start the bridge that runs again.",
    };
    let line = format!(
        "{} is a member of the fleet {}. Nobody there may ask it for anything yet: tasuki fleet accept HOST RIGHT…\n{next}",
        host.name, ticket.fleet
    );
    session.report(&json!({"status": "joined", "host": host.name, "fleet": ticket.fleet}), &line)
}

/// Whether a ticket says the same of the server as this host's files, which a bridge that runs has read at its start.
fn is_server_of(ground: &Ground, host: &HostFile, ticket: &Ticket) -> Result<bool, CliError> {
    let ca = ground.folder.read("", CA)?;
    let is_same = |fleet: &JoinedFleet| (&fleet.servers, &fleet.domain) == (&ticket.servers, &ticket.domain);
    Ok(host.fleet.as_ref().is_some_and(is_same) && ca.as_deref() == ticket.ca.as_deref().map(str::as_bytes))
}

fn joined(ground: &Ground) -> Result<(HostFile, JoinedFleet), CliError> {
    let host = HostFile::load(&ground.folder)?.ok_or_else(no_fleet)?;
    let fleet = host.fleet.clone().ok_or_else(no_fleet)?;
    Ok((host, fleet))
}

/// Admits a host, and prints its ticket.
pub(super) fn admit(session: &CliSession, args: &AdmitArgs) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let (_, fleet) = joined(&ground)?;
    let line = KeyLine::read(&line_of_input(&args.line)?).ok_or_else(|| {
        CliError::refused("bad_key", "This is not a line of `tasuki fleet key`. Nothing was changed.")
    })?;
    let file = OwnerFile::load(&ground.folder)?.ok_or_else(not_the_owner)?;
    let file = match &args.signing_key {
        None => file,
        Some(path) => file.signing_by(first::seed_in(path)?)?,
    };
    let (ticket, left) = wait_for(async {
        let mut owner = FleetOwner::connect_by(&ground.folder, &ground.settings, fleet, file).await?;
        owner.admit(&line, args.replace).await
    })?;
    left.into_iter().for_each(|what| session.out.note(&what));
    session.out.note(&format!("{} is admitted. Its ticket, for `tasuki fleet join` there:", line.name));
    session.report(&json!({"status": "admitted", "host": line.name, "ticket": ticket.line()}), &ticket.line())
}

/// Makes streams and consumers at the server where they are missing. With `--account`, makes a new fleet instead.
pub(super) fn setup(session: &CliSession, args: &SetupArgs) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    if let Some(account) = &args.account {
        return first::in_account(session, &ground, account, &args.given, args.replicas.into());
    }
    let (_, fleet) = joined(&ground)?;
    let name = fleet.name.clone();
    wait_for(async {
        let owner = FleetOwner::connect(&ground.folder, &ground.settings, fleet).await?;
        owner.set_up(args.replicas.into()).await?;
        owner.admit_all().await
    })?;
    let line = format!("The server has the streams of the fleet {name}, and keeps letters for each of its hosts.");
    session.report(&json!({"status": "ready", "fleet": name}), &line)
}

/// Expels a host.
pub(super) fn expel(session: &CliSession, args: &ExpelArgs) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let (own, fleet) = joined(&ground)?;
    if own.name == args.host {
        return Err(CliError::refused("is_own", "This host can't expel itself.").hint("To leave: tasuki fleet leave"));
    }
    let left = wait_for(async {
        let owner = FleetOwner::connect(&ground.folder, &ground.settings, fleet).await?;
        owner.expel(&args.host).await
    })?;
    left.into_iter().for_each(|what| session.out.note(&what));
    let line =
        format!("{} is expelled: no host believes it any more, and its letters are gone from the server.", args.host);
    session.report(&json!({"status": "expelled", "host": args.host}), &line)
}

/// Takes the home's lock, so that no bridge can start while the returned lock is held. None if there is no lock file.
///
/// # Errors
/// `bridge_runs` while a bridge runs on this home.
fn without_bridge(ground: &Ground) -> Result<Option<BridgeLock>, CliError> {
    let held = ground.folder.path("", LOCK).try_exists().is_ok_and(|there| there).then(|| lock(&ground.folder));
    held.transpose()
}

/// Makes this home leave its fleet. Letters to it stay at the server until the owner expels the host.
pub(super) fn leave(session: &CliSession) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let (host, fleet) = joined(&ground)?;
    let _lock = without_bridge(&ground)?;
    if OwnerFile::load(&ground.folder)?.is_some() {
        let owner = ground.folder.path("", OWNER);
        session.out.note(&format!("The fleet's own key stays in {}.", owner.display()));
    }
    answer_all_open(&ground.folder, &host.name)?;
    forget_rights(&ground.folder)?;
    for name in ground.folder.names("hosts")? {
        ground.folder.remove("hosts", &name)?;
    }
    // With host.json this home is still a member, so the command can be repeated if it fails before that file is
    // removed.
    for name in ["jwt", "key", "members.json", CA, SEEN, "bridge.json", "host.json", LOCK] {
        ground.folder.remove("", name)?;
    }
    let line = format!(
        "This home is not a member of the fleet {} any more. Tell the owner to expel {}: tasuki fleet expel {}",
        fleet.name, host.name, host.name
    );
    session.report(&json!({"status": "left", "fleet": fleet.name}), &line)
}

/// Notes that this home was moved here from another machine, and is gone there.
pub(super) fn moved(session: &CliSession) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let (host, _) = joined(&ground)?;
    let _lock = without_bridge(&ground)?;
    HostFile { was_moved: true, ..host.clone() }.save(&ground.folder)?;
    let line =
        format!("The bridge of {} starts here the next time, even if its last one ran on another machine.", host.name);
    session.report(&json!({"status": "moved", "host": host.name}), &line)
}

/// Gives this home a new identity under its old name. The owner must then admit it again. If this home is the owner's,
/// it admits itself, because nobody else can.
pub(super) fn rejoin(session: &CliSession) -> Result<(), CliError> {
    let ground = Ground::open(session)?;
    let (host, fleet) = joined(&ground)?;
    let _lock = without_bridge(&ground)?;
    if !ground.settings.key_command.is_empty() {
        let message = "The key of this home comes from key_command, so it can't be made new here. Nothing was changed.";
        return Err(CliError::refused("key_command", message).hint(
            "Remove key_command from fleet.toml, run this again, and put the two lines of fleet/key where you keep keys.",
        ));
    }
    let (new, keys) = (HostFile::new(host.name), HostKeys::generate());
    let line = KeyLine::of(&new, &keys);
    let ticket = match OwnerFile::load(&ground.folder)? {
        None => None,
        Some(_) => Some(wait_for(async {
            let mut owner = FleetOwner::connect(&ground.folder, &ground.settings, fleet).await?;
            owner.admit(&line, true).await
        })?),
    };
    note_all_begun(&ground.folder)?;
    save_keys(&ground.folder, &keys)?;
    ground.folder.remove("", SEEN)?;
    let Some((ticket, left)) = ticket else {
        new.save(&ground.folder)?;
        let what = "This home has a new identity. Have it admitted: tasuki fleet admit --replace LINE, then join here.";
        session.out.note(what);
        return session.report(&json!({"status": "ready", "host": new.name, "line": line.line()}), &line.line());
    };
    save_ticket(&ground.folder, &new, &ticket)?;
    left.into_iter().for_each(|what| session.out.note(&what));
    let said = format!("{} has a new identity, and has admitted itself. Start the bridge: tasuki fleet run", new.name);
    session.report(&json!({"status": "joined", "host": new.name, "line": line.line()}), &said)
}
