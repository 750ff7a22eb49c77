//! The fleet's owner: the seeds by which members are admitted and expelled. They lie on one machine. The server needs
//! none of them, and no other host has them.

use super::admission::{KeyLine, Ticket};
use super::folder::FleetFolder;
use super::identity::{self, JoinedFleet};
use super::members_file;
use super::settings::FleetSettings;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::core::host::HostName;
use crate::core::time::Now;
use crate::exit;
use crate::files::Grade;
use crate::fleet::nats::admin::{FleetAdmin, push_account};
use crate::fleet::nats::{CourierError, PutOutcome, ServerAccess};
use crate::fleet::{FleetKeys, Member, MemberList, ServerKeys, Topic, UserKey, jwt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file of the owner's seeds.
pub(super) const OWNER: &str = "owner.json";
/// How often the list of members is written again when another change came first.
const TRIES: usize = 5;

/// `fleet/owner.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnerFile {
    v: u8,
    /// The seed of the fleet's key.
    fleet: String,
    /// The seeds of the server's operator and of its system account; none where another party runs the server.
    operator: Option<String>,
    system: Option<String>,
    /// The keys that were expelled, with the second since when.
    #[serde(default)]
    expelled: BTreeMap<UserKey, i64>,
    /// Hosts whose expulsion has begun, with their keys: it can be repeated until all of it is done.
    #[serde(default)]
    expelling: BTreeMap<HostName, UserKey>,
}

/// The owner, at the server.
pub(super) struct FleetOwner<'a> {
    folder: &'a FleetFolder,
    file: OwnerFile,
    keys: FleetKeys,
    fleet: JoinedFleet,
    access: ServerAccess,
    admin: FleetAdmin,
    now: Now,
}

impl OwnerFile {
    pub(super) fn new(fleet: &FleetKeys, server: &ServerKeys) -> OwnerFile {
        let [operator, system] = server.seeds();
        OwnerFile {
            v: 1,
            fleet: fleet.seed(),
            operator: Some(operator),
            system: Some(system),
            expelled: BTreeMap::new(),
            expelling: BTreeMap::new(),
        }
    }

    /// Reads the owner's seeds of this home; none if they lie elsewhere.
    ///
    /// # Errors
    /// The file can't be read.
    pub(super) fn load(folder: &FleetFolder) -> Result<Option<OwnerFile>, CliError> {
        let Some(bytes) = folder.read("", OWNER)? else { return Ok(None) };
        OwnerFile::parse(&bytes).map(Some)
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<OwnerFile, CliError> {
        serde_json::from_slice(bytes)
            .map_err(|_| CliError::config("bad_key", "The file of the fleet's seeds can't be read."))
    }

    /// # Errors
    /// The system's.
    pub(super) fn save(&self, folder: &FleetFolder) -> Result<(), CliError> {
        folder.write("", OWNER, &serde_json::to_vec(self).expect("a plain value"), Grade::Durable)
    }

    pub(super) fn keys(&self) -> Result<FleetKeys, CliError> {
        FleetKeys::from_seed(&self.fleet)
            .map_err(|error| CliError::config("bad_key", format!("The fleet's key: {error}.")))
    }

    fn server_keys(&self) -> Option<ServerKeys> {
        ServerKeys::from_seeds(self.operator.as_deref()?, self.system.as_deref()?).ok()
    }
}

/// An error of the server, for a person.
pub(super) fn server_error(error: &CourierError) -> CliError {
    match error {
        CourierError::Unreachable(_) | CourierError::BadAddress(_) => {
            CliError::new(exit::TRY_AGAIN, "no_server", format!("{error}. Nothing was changed."))
                .hint("Is the server started? nats-server -c DIR/nats-server.conf")
        }
        CourierError::NotAllowed(_) => CliError::new(exit::NOT_ALLOWED, "not_allowed", format!("{error}.")),
        CourierError::Refused(_) => CliError::refused("server", format!("{error}.")),
    }
}

impl<'a> FleetOwner<'a> {
    /// Logs in as the owner.
    ///
    /// # Errors
    /// 77 `not_the_owner` if the fleet's seed lies elsewhere; the server was not reached.
    pub(super) async fn connect(
        folder: &'a FleetFolder,
        settings: &FleetSettings,
        fleet: JoinedFleet,
    ) -> Result<FleetOwner<'a>, CliError> {
        let file = OwnerFile::load(folder)?.ok_or_else(|| {
            CliError::new(
                exit::NOT_ALLOWED,
                "not_the_owner",
                "The fleet's key lies on another machine. Nothing was changed.",
            )
            .hint("Run this where `tasuki fleet join --first` was run.")
        })?;
        let (keys, now) = (file.keys()?, Clock::new().now());
        let access = identity::access(&fleet, "", folder, settings)?;
        let admin = FleetAdmin::connect(&fleet.name, &access, &keys, now.wall_ms / 1_000)
            .await
            .map_err(|error| server_error(&error))?;
        Ok(FleetOwner { folder, file, keys, fleet, access, admin, now })
    }

    /// Makes the streams, and a first list of members.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) async fn set_up(&self, replicas: usize) -> Result<(), CliError> {
        self.admin.set_up(replicas).await.map_err(|error| server_error(&error))?;
        self.change_members(|_| Ok(false)).await.map(drop)
    }

    /// Admits a host: its consumers, its entry in the list of members, its claims. The same host again gets the same.
    ///
    /// # Errors
    /// `name_taken` if another home has the name, and `replace` does not say that it is to lose it.
    pub(super) async fn admit(&mut self, line: &KeyLine, replace: bool) -> Result<Ticket, CliError> {
        let member = Member {
            name: line.name.clone(),
            home_id: line.home_id,
            user_key: line.user_key.clone(),
            box_key: line.box_key.clone(),
            admitted_at: self.now.rfc3339(),
        };
        self.admin.admit(&line.name).await.map_err(|error| server_error(&error))?;
        let mut former = None;
        self.change_members(|members| {
            former = members.iter().find(|known| known.name == member.name).map(|known| known.user_key.clone());
            enter(members, &member, replace)
        })
        .await?;
        if let Some(former) = former.filter(|former| *former != member.user_key) {
            self.file.expelled.insert(former, self.now.wall_ms / 1_000);
            self.file.save(self.folder)?;
            self.push_expelled().await?;
        }
        let (fleet, domain, at_s) = (&self.fleet, &self.access.domain, self.now.wall_ms / 1_000);
        let claims = jwt::member(&self.keys, &fleet.name, domain, &line.name, &line.user_key, at_s);
        let ca = self.access.ca.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        Ok(Ticket {
            fleet: fleet.name.clone(),
            fleet_key: fleet.key.clone(),
            servers: fleet.servers.clone(),
            ca,
            domain: domain.clone(),
            jwt: claims,
        })
    }

    /// Makes what keeps letters, where it is missing, for each member.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) async fn admit_all(&self) -> Result<(), CliError> {
        let list = self.change_members(|_| Ok(false)).await?;
        for member in list.members {
            self.admin.admit(&member.name).await.map_err(|error| server_error(&error))?;
        }
        Ok(())
    }

    /// Expels a host: from the list of members first, so that no bridge believes it any more; then from the server.
    /// Returns what could not be done.
    ///
    /// # Errors
    /// 404 `no_host`; the server refuses.
    pub(super) async fn expel(mut self, name: &HostName) -> Result<Option<&'static str>, CliError> {
        let now_s = self.now.wall_ms / 1_000;
        let list = self.change_members(|_| Ok(false)).await?;
        let key =
            list.find(name).map(|member| member.user_key.clone()).or_else(|| self.file.expelling.get(name).cloned());
        let key = key.ok_or_else(|| CliError::refused("no_host", format!("{name} is not a host of this fleet.")))?;
        self.file.expelling.insert(name.clone(), key.clone());
        self.file.expelled.insert(key, now_s);
        self.file.save(self.folder)?;
        self.change_members(|members| {
            let before = members.len();
            members.retain(|member| member.name != *name);
            Ok(members.len() < before)
        })
        .await?;
        self.admin.expel(name).await.map_err(|error| server_error(&error))?;
        let left = self.push_expelled().await?;
        self.file.expelling.remove(name);
        self.file.save(self.folder)?;
        Ok(left)
    }

    /// Tells the server which keys may not log in any more. Returns what could not be done.
    async fn push_expelled(&self) -> Result<Option<&'static str>, CliError> {
        let Some(server) = self.file.server_keys() else {
            return Ok(Some("The server's operator must revoke the host's key, for that key is not here."));
        };
        let at_s = self.now.wall_ms / 1_000;
        let account = jwt::fleet_account(&server, (&self.fleet.name, &self.fleet.key), &self.file.expelled, at_s);
        push_account(&self.access, &server, account, at_s).await.map_err(|error| server_error(&error))?;
        Ok(None)
    }

    /// Changes the list of members: `change` returns whether it has changed it. A list of another change that came
    /// between is read again.
    async fn change_members(
        &self,
        mut change: impl FnMut(&mut Vec<Member>) -> Result<bool, CliError>,
    ) -> Result<MemberList, CliError> {
        let (fleet, key) = (&self.fleet.name, &self.fleet.key);
        let kept = members_file::load(self.folder, key, fleet)?;
        for _ in 0..TRIES {
            let standing = self.admin.courier().standing(&Topic::Fleet).await.map_err(|error| server_error(&error))?;
            let sequence = standing.as_ref().map_or(0, |standing| standing.sequence);
            let read = standing.map(|standing| MemberList::open(&standing.bytes, key, fleet)).transpose();
            // Somebody has scribbled there: the list that this home has kept counts, if it has kept one.
            let read = match read {
                Ok(read) => read,
                Err(_) if kept.version > 0 => None,
                Err(error) => return Err(unreadable_list(&error)),
            };
            // A server that has gone back shows an old list: the one that this home has kept is newer.
            let is_missing = read.as_ref().is_none_or(|list| list.version < kept.version);
            let mut list = read.filter(|_| !is_missing).unwrap_or_else(|| kept.clone());
            if !change(&mut list.members)? && !is_missing {
                return Ok(list);
            }
            let list = MemberList::new(fleet.clone(), list.version + 1, list.members);
            let bytes = list.sign(&self.keys);
            MemberList::open(&bytes, key, fleet).map_err(|error| unreadable_list(&error))?;
            match self.admin.put_members(bytes.clone(), sequence).await {
                PutOutcome::Stored(_) => {
                    members_file::save(self.folder, &bytes)?;
                    return Ok(list);
                }
                PutOutcome::Other => {}
                PutOutcome::Unreachable => {
                    return Err(server_error(&CourierError::Unreachable("it did not answer in time".to_owned())));
                }
            }
        }
        Err(CliError::new(
            exit::TRY_AGAIN,
            "try_again",
            "The list of members was changed by somebody else at the same time.",
        ))
    }
}

fn unreadable_list(error: &dyn std::fmt::Display) -> CliError {
    CliError::refused("bad_list", format!("The list of members can't be right: {error}. Nothing was changed."))
}

/// Enters a host into the list; false if it is there already, as it is.
fn enter(members: &mut Vec<Member>, member: &Member, replace: bool) -> Result<bool, CliError> {
    let is_taken = |known: &&Member| {
        let is_same_key = known.user_key == member.user_key || known.box_key == member.box_key;
        known.name != member.name && (known.home_id == member.home_id || is_same_key)
    };
    if let Some(other) = members.iter().find(is_taken) {
        let message = format!("This home or its key is a member already, under the name {}.", other.name);
        return Err(CliError::refused("is_member", message)
            .hint(format!("To give it another name, expel the old one first: tasuki fleet expel {}", other.name)));
    }
    let Some(known) = members.iter_mut().find(|known| known.name == member.name) else {
        if members.len() >= crate::fleet::members::MOST_MEMBERS {
            return Err(CliError::refused("too_many", "The fleet has 1,000 hosts already."));
        }
        members.push(member.clone());
        return Ok(true);
    };
    let is_same =
        known.home_id == member.home_id && known.user_key == member.user_key && known.box_key == member.box_key;
    if is_same {
        return Ok(false);
    }
    if !replace {
        let message = format!("Another home is a member under the name {}, since {}.", member.name, known.admitted_at);
        return Err(CliError::refused("name_taken", message)
            .hint("If that home is gone: --replace. What was sent to it is then refused. Else choose another name."));
    }
    *known = member.clone();
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::identity::HostFile;
    use crate::fleet::HostKeys;

    fn member(name: &str) -> Member {
        let (host, keys) = (HostFile::new(name.parse().expect("a name")), HostKeys::generate());
        Member {
            name: host.name,
            home_id: host.home_id,
            user_key: keys.user_key(),
            box_key: keys.box_key(),
            admitted_at: "2026-11-25T12:00:00.000Z".to_owned(),
        }
    }

    #[test]
    fn a_name_belongs_to_one_home_until_the_owner_says_otherwise() {
        let (one, other) = (member("box"), member("box"));
        let mut members = Vec::new();
        assert_eq!(enter(&mut members, &one, false), Ok(true));
        assert_eq!(enter(&mut members, &one, false), Ok(false));
        assert_eq!(enter(&mut members, &other, false).expect_err("another home").code, "name_taken");
        assert_eq!(members, [one]);
        assert_eq!(enter(&mut members, &other, true), Ok(true));
        assert_eq!(members, [other]);
    }
}
