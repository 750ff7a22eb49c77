//! What only the fleet's owner can do at the server: admit and expel members, with the seeds in `owner_file`.

use super::admission::{KeyLine, Ticket};
use super::folder::FleetFolder;
use super::identity::{self, JoinedFleet};
use super::members_file;
use super::owner_file::OwnerFile;
use super::settings::FleetSettings;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::core::host::HostName;
use crate::core::time::Now;
use crate::exit;
use crate::fleet::nats::admin::{FleetAdmin, SystemAdmin};
use crate::fleet::nats::{CourierError, PutOutcome, ServerAccess};
use crate::fleet::{FleetKeys, LoginKey, Member, MemberList, Topic, UserKey, jwt};
use std::cell::Cell;

/// How often a change of the list of members is tried while other changes come first.
const TRIES: usize = 5;

/// The owner, logged in at the server.
pub(super) struct FleetOwner<'a> {
    folder: &'a FleetFolder,
    file: OwnerFile,
    keys: FleetKeys,
    login: LoginKey,
    fleet: JoinedFleet,
    access: ServerAccess,
    admin: FleetAdmin,
    now: Now,
    /// Something may have been changed already, at the server or in `owner_file`.
    has_begun: Cell<bool>,
}

/// The error of a command if the server fails before anything was changed.
fn server_error(error: &CourierError) -> CliError {
    match error {
        CourierError::Unreachable(_) | CourierError::BadAddress(_) => {
            CliError::new(exit::TRY_AGAIN, "no_server", format!("{error}. Nothing was changed."))
                .hint("Is the server started? nats-server -c DIR/nats-server.conf")
        }
        CourierError::NotAllowed(_) => CliError::new(exit::NOT_ALLOWED, "not_allowed", format!("{error}.")),
        CourierError::Refused(_) => CliError::refused("server", format!("{error}.")),
    }
}

/// The error of a command if the server fails once something may have been changed. The server may have done what it
/// was asked even if no confirmation came.
fn broken_off(error: &CourierError) -> CliError {
    match error {
        CourierError::Unreachable(_) | CourierError::BadAddress(_) => {
            let message = format!("{error}. The command has broken off, and some of it may be done.");
            CliError::new(exit::TRY_AGAIN, "no_server", message)
                .hint("Run the same command again until it succeeds: what is done is not done twice.")
        }
        _ => {
            let error = server_error(error);
            let message = format!("{} The command has broken off, and some of it may be done.", error.message);
            CliError { message, ..error }.hint("When the cause is gone, run the same command again until it succeeds.")
        }
    }
}

impl<'a> FleetOwner<'a> {
    fn failed(&self, error: &CourierError) -> CliError {
        if self.has_begun.get() { broken_off(error) } else { server_error(error) }
    }

    /// Logs in as the owner.
    ///
    /// # Errors
    /// 77 `not_the_owner` if the fleet's seeds are in another home; the server was not reached.
    pub(super) async fn connect(
        folder: &'a FleetFolder,
        settings: &FleetSettings,
        fleet: JoinedFleet,
    ) -> Result<FleetOwner<'a>, CliError> {
        let file = OwnerFile::load(folder)?.ok_or_else(not_the_owner)?;
        FleetOwner::connect_by(folder, settings, fleet, file).await
    }

    /// Logs in by the seeds in `file`, and saves them in this home once the server has accepted them.
    ///
    /// # Errors
    /// A seed can't be used; the server was not reached, or refuses them.
    pub(super) async fn connect_by(
        folder: &'a FleetFolder,
        settings: &FleetSettings,
        fleet: JoinedFleet,
        file: OwnerFile,
    ) -> Result<FleetOwner<'a>, CliError> {
        let (keys, login, now) = (file.keys()?, file.login()?, Clock::new().now());
        let access = identity::access(&fleet, "", folder, settings)?;
        let admin = FleetAdmin::connect(&fleet.name, &access, &login, now.wall_ms / 1_000)
            .await
            .map_err(|error| server_error(&error))?;
        if OwnerFile::load(folder)?.as_ref() != Some(&file) {
            file.save(folder)?;
        }
        Ok(FleetOwner { folder, file, keys, login, fleet, access, admin, now, has_begun: Cell::new(false) })
    }

    /// Makes the streams and a first list of members, if they are missing.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) async fn set_up(&self, replicas: usize) -> Result<(), CliError> {
        self.has_begun.set(true);
        self.admin.set_up(replicas).await.map_err(|error| self.failed(&error))?;
        self.change_members(|_| Ok(false)).await.map(drop)
    }

    /// Admits a host: makes its consumers, enters it into the list of members, and signs its claims. A host that is
    /// admitted again, with the same home and keys, stays as it is in the list. Returns the ticket, and a sentence on
    /// what could not be done, if there is something.
    ///
    /// # Errors
    /// `name_taken` if another home has the name and `replace` is false; the other errors of [`enter`]; the server
    /// fails.
    pub(super) async fn admit(&mut self, line: &KeyLine, replace: bool) -> Result<(Ticket, Option<String>), CliError> {
        let member = Member {
            name: line.name.clone(),
            home_id: line.home_id,
            user_key: line.user_key.clone(),
            box_key: line.box_key.clone(),
            admitted_at: self.now.rfc3339(),
        };
        let list = self.change_members(|_| Ok(false)).await?;
        // Tries it on a copy, so that a host that can't be entered is refused before anything is changed.
        enter(&mut list.members.clone(), &member, replace)?;
        self.note_replaced(&member, list.find(&member.name))?;
        self.has_begun.set(true);
        self.admin.admit(&line.name).await.map_err(|error| self.failed(&error))?;
        let mut former = None;
        self.change_members(|members| {
            former = members.iter().find(|known| known.name == member.name).map(|known| known.user_key.clone());
            enter(members, &member, replace)
        })
        .await?;
        let left = self.expel_replaced(&member, former).await?;
        let (fleet, domain) = (&self.fleet, &self.access.domain);
        let at_s = jwt::issued_s(self.now.wall_ms / 1_000, self.file.expelled.get(&line.user_key).copied());
        let claims = jwt::member(&self.login, &fleet.name, domain, &line.name, &line.user_key, at_s);
        let ca = self.access.ca.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
        let ticket = Ticket {
            fleet: fleet.name.clone(),
            fleet_key: fleet.key.clone(),
            servers: fleet.servers.clone(),
            ca,
            domain: domain.clone(),
            jwt: claims,
        };
        Ok((ticket, left))
    }

    /// If the name now goes to another home, notes the user key of the home that loses it, before the list of members
    /// changes. Once the new list is published, nobody could see any more which login is to be revoked.
    fn note_replaced(&mut self, member: &Member, standing: Option<&Member>) -> Result<(), CliError> {
        let replaced = standing.map(|standing| &standing.user_key).filter(|key| **key != member.user_key);
        let Some(replaced) = replaced else { return Ok(()) };
        self.note_expelling(&member.name, replaced);
        self.file.save(self.folder)
    }

    /// Notes that the home with this name and key is being expelled. A command that has broken off may have noted an
    /// earlier home of this name: its key counts as expelled from now on.
    fn note_expelling(&mut self, name: &HostName, key: &UserKey) {
        if let Some(earlier) = self.file.expelling.insert(name.clone(), key.clone()).filter(|earlier| earlier != key) {
            self.file.expelled.insert(earlier, self.now.wall_ms / 1_000);
        }
    }

    /// Once the name belongs to `member`, revokes the logins of the homes that had it before. Returns a sentence on
    /// what could not be done, if there is something.
    async fn expel_replaced(&mut self, member: &Member, former: Option<UserKey>) -> Result<Option<String>, CliError> {
        let noted = self.file.expelling.get(&member.name).cloned();
        let replaced: Vec<UserKey> =
            [noted, former].into_iter().flatten().filter(|key| *key != member.user_key).collect();
        let Some(last) = replaced.last().cloned() else { return Ok(None) };
        let at_s = self.now.wall_ms / 1_000;
        self.file.expelled.extend(replaced.into_iter().map(|key| (key, at_s)));
        self.file.save(self.folder)?;
        let left = self.push_expelled(&last).await?;
        self.file.expelling.remove(&member.name);
        self.file.save(self.folder)?;
        Ok(left)
    }

    /// Makes the consumers of each member where they are missing.
    ///
    /// # Errors
    /// The server refuses.
    pub(super) async fn admit_all(&self) -> Result<(), CliError> {
        let list = self.change_members(|_| Ok(false)).await?;
        self.has_begun.set(true);
        for member in list.members {
            self.admin.admit(&member.name).await.map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    /// Expels a host: from the list of members first, so that no bridge believes it any more; then from the server.
    /// Returns a sentence on what could not be done, if there is something.
    ///
    /// # Errors
    /// `no_host` if there is no such host; the server fails.
    pub(super) async fn expel(mut self, name: &HostName) -> Result<Option<String>, CliError> {
        let now_s = self.now.wall_ms / 1_000;
        let list = self.change_members(|_| Ok(false)).await?;
        let key =
            list.find(name).map(|member| member.user_key.clone()).or_else(|| self.file.expelling.get(name).cloned());
        let key = key.ok_or_else(|| CliError::refused("no_host", format!("{name} is not a host of this fleet.")))?;
        self.note_expelling(name, &key);
        self.file.expelled.insert(key.clone(), now_s);
        self.file.save(self.folder)?;
        self.has_begun.set(true);
        self.change_members(|members| {
            let before = members.len();
            members.retain(|member| member.name != *name);
            Ok(members.len() < before)
        })
        .await?;
        self.admin.expel(name).await.map_err(|error| self.failed(&error))?;
        let left = self.push_expelled(&key).await?;
        self.file.expelling.remove(name);
        self.file.save(self.folder)?;
        Ok(left)
    }

    /// Tells the server which keys may not log in any more. Keys that the server has revoked before stay revoked, even
    /// if this home was set back to an older state and does not know them. If another party runs the server, nothing is
    /// done: the returned sentence says that `last` is to be revoked there.
    async fn push_expelled(&mut self, last: &UserKey) -> Result<Option<String>, CliError> {
        let Some(server) = self.file.server_keys() else {
            return Ok(Some(format!(
                "Another party runs the server, which still lets that home log in, though no host believes it any more. \
                 Revoke its user key in the account there: {last}"
            )));
        };
        let at_s = self.now.wall_ms / 1_000;
        let system = SystemAdmin::connect(&self.access, &server, at_s).await.map_err(|error| self.failed(&error))?;
        let known = system.account(&self.fleet.key).await.map_err(|error| self.failed(&error))?;
        for (key, since_s) in jwt::expelled_in(&known) {
            let noted = self.file.expelled.entry(key).or_insert(since_s);
            *noted = (*noted).max(since_s);
        }
        self.file.save(self.folder)?;
        let account = jwt::fleet_account(&server, (&self.fleet.name, &self.fleet.key), &self.file.expelled, at_s);
        system.push_account(account).await.map_err(|error| self.failed(&error))?;
        Ok(None)
    }

    /// Changes the list of members, and returns the new list. `change` returns whether it has changed anything; if not,
    /// nothing is written unless the list at the server is missing or outdated. If another change comes first, the list
    /// is read again and `change` is called again.
    async fn change_members(
        &self,
        mut change: impl FnMut(&mut Vec<Member>) -> Result<bool, CliError>,
    ) -> Result<MemberList, CliError> {
        let (fleet, key) = (&self.fleet.name, &self.fleet.key);
        let kept = members_file::load(self.folder, key, fleet)?;
        for _ in 0..TRIES {
            let standing = self.admin.courier().standing(&Topic::Fleet).await.map_err(|error| self.failed(&error))?;
            let sequence = standing.as_ref().map_or(0, |standing| standing.sequence);
            let read = standing.map(|standing| MemberList::open(&standing.bytes, key, fleet)).transpose();
            // If a member has written something else there, the list that this home has kept counts, if it has kept
            // one.
            let read = match read {
                Ok(read) => read,
                Err(_) if kept.version > 0 => None,
                Err(error) => return Err(unreadable_list(&error, self.has_begun.get())),
            };
            // If the server was set back, it has an old list, and the list that this home has kept is newer.
            let is_missing = read.as_ref().is_none_or(|list| list.version < kept.version);
            let mut list = read.filter(|_| !is_missing).unwrap_or_else(|| kept.clone());
            if !change(&mut list.members)? && !is_missing {
                return Ok(list);
            }
            let list = MemberList::new(fleet.clone(), list.version + 1, list.members);
            let bytes = list.sign(&self.keys);
            MemberList::open(&bytes, key, fleet).map_err(|error| unreadable_list(&error, self.has_begun.get()))?;
            self.has_begun.set(true);
            match self.admin.put_members(bytes.clone(), sequence).await {
                PutOutcome::Stored(_) => {
                    members_file::save(self.folder, &bytes)?;
                    return Ok(list);
                }
                PutOutcome::Other => {}
                PutOutcome::Refused(why) => return Err(self.failed(&CourierError::Refused(why))),
                PutOutcome::Unreachable => {
                    return Err(self.failed(&CourierError::Unreachable("it did not answer in time".to_owned())));
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

/// The error if the fleet's key is in another home.
pub(super) fn not_the_owner() -> CliError {
    let message = "The fleet's key lies on another machine. Nothing was changed.";
    CliError::new(exit::NOT_ALLOWED, "not_the_owner", message)
        .hint("Run this where the fleet was made: `tasuki fleet join --first`, or `setup --account`.")
}

/// The error if the list of members can't be right. The list itself was not changed. `has_begun`: something else may
/// have been.
fn unreadable_list(error: &dyn std::fmt::Display, has_begun: bool) -> CliError {
    let left = if has_begun {
        "The list was left as it is. The command has broken off, and some of it may be done."
    } else {
        "Nothing was changed."
    };
    CliError::refused("bad_list", format!("The list of members can't be right: {error}. {left}"))
}

/// Enters a host into the list; false if it is there already, with the same home and keys.
///
/// # Errors
/// `is_member` if this home or one of its keys is there under another name; `name_taken` if another home has the name
/// and `replace` is false; `too_many`.
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

    #[test]
    fn a_list_that_can_t_be_right_is_told_with_what_may_be_done_by_then() {
        let told = |has_begun| unreadable_list(&"its signature is wrong", has_begun).message;
        assert!(told(false).ends_with("Nothing was changed."), "{}", told(false));
        assert!(!told(true).contains("Nothing was changed") && told(true).contains("may be done"), "{}", told(true));
    }
}
