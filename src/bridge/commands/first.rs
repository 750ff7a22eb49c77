//! Makes this home the first host of a new fleet, and its owner: at a server of one's own (`join --first`), or in an
//! account that another party has given (`setup --account`).

use super::ground::Ground;
use super::server::NewFleet;
use crate::bridge::admission::{KeyLine, Ticket, save_ticket};
use crate::bridge::identity::{CA, HostFile, JoinedFleet};
use crate::bridge::lock::make_lock;
use crate::bridge::owner::{FleetOwner, not_the_owner};
use crate::bridge::owner_file::{OWNER, OwnerFile};
use crate::bridge::runtime::wait_for;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::cli::view::read_bytes;
use crate::core::host::{FleetName, HostName};
use crate::files::Grade;
use crate::fleet::{AccountKey, FleetKeys};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The largest file that is read from a server's folder or from another party, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// `setup --account …`: what another party has told about its server, and the names of the new fleet and host.
#[derive(Debug, Args)]
pub(crate) struct GivenServerArgs {
    /// The file with a signing key of the account.
    #[arg(long, value_name = "FILE", requires = "account")]
    pub(crate) signing_key: Option<PathBuf>,
    /// An address of the server, such as tls://connect.example.org:4222; may be given several times.
    #[arg(long, value_name = "URL", requires = "account")]
    pub(crate) server: Vec<String>,
    /// The JetStream domain of the server, if it has one.
    #[arg(long, value_name = "DOMAIN", requires = "account")]
    pub(crate) domain: Option<String>,
    /// The certificate of the server's authority, if this system does not know it.
    #[arg(long, value_name = "FILE", requires = "account")]
    pub(crate) ca: Option<PathBuf>,
    /// The new fleet's name: 1 to 16 of a-z and 0-9.
    #[arg(long = "name", id = "fleet", value_name = "FLEET", requires = "account")]
    pub(crate) fleet: Option<FleetName>,
    /// The name that this host shall have in it.
    #[arg(long = "as", id = "host", value_name = "NAME", requires = "account")]
    pub(crate) host: Option<HostName>,
}

/// Makes a new fleet in an account that another party has given. The fleet gets a key of its own, which that party
/// never sees.
pub(super) fn in_account(
    session: &CliSession,
    ground: &Ground,
    account: &AccountKey,
    given: &GivenServerArgs,
    replicas: usize,
) -> Result<(), CliError> {
    let GivenServerArgs { signing_key: Some(path), server, domain, ca, fleet: Some(name), host: Some(host) } = given
    else {
        return Err(CliError::refused("input", "--account needs --signing-key, --server, --name and --as."));
    };
    let seed = seed_in(path)?;
    let file = match OwnerFile::load(&ground.folder)? {
        // The fleet was made before, perhaps by a command that failed half-way: it keeps its key.
        Some(file) if file.account() == Some(account) => file.signing_by(seed)?,
        _ => OwnerFile::of_account(&FleetKeys::generate(), account.clone(), seed),
    };
    let key = file.keys()?.account_key();
    not_another_fleet(ground, &key)?;
    match ca {
        Some(path) => ground.folder.write("", CA, &file_of(path)?, Grade::Durable)?,
        None => ground.folder.remove("", CA)?,
    }
    let domain = domain.clone().unwrap_or_default();
    let fleet = JoinedFleet { name: name.clone(), key, servers: server.clone(), domain };
    let ticket = be_first(ground, file, fleet, host, replicas)?;
    report(session, ground, host, &ticket)
}

/// The seed of a signing key in a file that another party has given: the first line that is a seed, which begins with
/// SA.
///
/// # Errors
/// There is no such file, or no seed in it.
pub(super) fn seed_in(path: &Path) -> Result<String, CliError> {
    let text = String::from_utf8(file_of(path)?).unwrap_or_default();
    let seed = text.lines().map(str::trim).find(|line| FleetKeys::from_seed(line).is_ok());
    seed.map(str::to_owned).ok_or_else(|| {
        let message = format!("{} has no seed of a signing key. Nothing was changed.", path.display());
        CliError::refused("bad_key", message)
            .hint("The seed is a line of 58 characters that begin with SA. What begins with A is the public half.")
    })
}

fn file_of(path: &Path) -> Result<Vec<u8>, CliError> {
    read_bytes(path, MOST_BYTES)?
        .ok_or_else(|| CliError::refused("no_file", format!("{} does not exist. Nothing was changed.", path.display())))
}

/// Makes the streams at the server, admits this home, and makes it a member.
fn be_first(
    ground: &Ground,
    file: OwnerFile,
    fleet: JoinedFleet,
    name: &HostName,
    replicas: usize,
) -> Result<Ticket, CliError> {
    let (host, keys) = ground.own_key(name)?;
    let (ticket, _) = wait_for(async {
        let mut owner = FleetOwner::connect_by(&ground.folder, &ground.settings, fleet, file).await?;
        owner.set_up(replicas).await?;
        owner.admit(&KeyLine::of(&host, &keys), false).await
    })?;
    save_ticket(&ground.folder, &host, &ticket)?;
    make_lock(&ground.folder)?;
    Ok(ticket)
}

fn report(session: &CliSession, ground: &Ground, name: &HostName, ticket: &Ticket) -> Result<(), CliError> {
    let line = format!(
        "{name} is the first host of the fleet {}, and its owner: the fleet's key lies in {}.\n\
         To admit another host: ssh HOST tasuki fleet key NAME | tasuki fleet admit - | ssh HOST tasuki fleet join -\n\
         Start the bridge: tasuki fleet run, or: tasuki fleet service install",
        ticket.fleet,
        ground.folder.path("", OWNER).display()
    );
    session.report(&json!({"status": "joined", "host": name, "fleet": ticket.fleet, "owner": true}), &line)
}

/// Whether this home has the fleet's key already.
///
/// # Errors
/// `is_member` if this home belongs to another fleet, or has the key of another one.
fn not_another_fleet(ground: &Ground, key: &AccountKey) -> Result<bool, CliError> {
    let (known, owner) = (HostFile::load(&ground.folder)?, OwnerFile::load(&ground.folder)?);
    let is_other_fleet = known.and_then(|host| host.fleet).is_some_and(|joined| joined.key != *key);
    let owned = owner.as_ref().map(OwnerFile::keys).transpose()?.map(|keys| keys.account_key());
    if !is_other_fleet && owned.as_ref().is_none_or(|owned| owned == key) {
        return Ok(owned.is_some());
    }
    let message = "This home belongs to another fleet, or has the key of one. Nothing was changed.";
    Err(CliError::refused("is_member", message)
        .hint("Use another home; or leave that fleet, and put its fleet/owner.json into a safe place."))
}

/// Makes a new fleet at the server whose folder `server init` has written.
pub(super) fn join(
    session: &CliSession,
    ground: &Ground,
    server: &Path,
    name: &HostName,
    replicas: usize,
) -> Result<(), CliError> {
    let read = |name: &str| -> Result<Vec<u8>, CliError> {
        let path = server.join(name);
        read_bytes(&path, MOST_BYTES)?.ok_or_else(|| {
            CliError::refused("no_server_folder", format!("{} does not exist. Nothing was changed.", path.display()))
                .hint("Write the folder first: tasuki fleet server init DIR --name FLEET")
        })
    };
    let broken = |_| {
        CliError::refused("no_server_folder", format!("{} can't be read.", server.join("owner/fleet.json").display()))
    };
    let NewFleet { name: fleet, key, servers, domain } =
        serde_json::from_slice(&read("owner/fleet.json")?).map_err(broken)?;
    let owned = not_another_fleet(ground, &key)?;
    if !owned {
        OwnerFile::parse(&read("owner/owner.json")?)?.save(&ground.folder)?;
    }
    ground.folder.write("", CA, &read("ca.pem")?, Grade::Durable)?;
    let fleet = JoinedFleet { name: fleet, key, servers, domain };
    let file = OwnerFile::load(&ground.folder)?.ok_or_else(not_the_owner)?;
    let ticket = be_first(ground, file, fleet, name, replicas)?;
    // The seeds are in this home now. The server needs none of them, so they are removed from its folder.
    let seeds = server.join("owner/owner.json");
    if let Err(error) = std::fs::remove_file(&seeds).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }) {
        session.out.note(&format!("The fleet's seeds are in this home now; remove {} ({error}).", seeds.display()));
    }
    report(session, ground, name, &ticket)
}
