//! `fleet/owner.json`: the seeds of the keys that admit and expel members. They are on one machine: the server needs
//! none of them, and no other host has them.
//!
//! If the fleet's account at the server belongs to another party, this party gives a signing key, which signs the
//! logins. That party never sees the fleet's own key, which signs the list of members, so it can make nobody a member.

use super::folder::FleetFolder;
use crate::cli::error::CliError;
use crate::core::host::HostName;
use crate::files::Grade;
use crate::fleet::{AccountKey, FleetKeys, LoginKey, ServerKeys, UserKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The file of the owner's seeds.
pub(super) const OWNER: &str = "owner.json";

/// `fleet/owner.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OwnerFile {
    v: u8,
    /// The seed of the fleet's key.
    fleet: String,
    /// The seeds of the server's operator and of its system account; none if another party runs the server.
    operator: Option<String>,
    system: Option<String>,
    /// The account that another party has given, and its signing key; none if the fleet's key is the key of the
    /// account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<GivenAccount>,
    /// The user keys that were expelled, each with the time since when, in seconds since 1970.
    #[serde(default)]
    pub(super) expelled: BTreeMap<UserKey, i64>,
    /// The hosts whose expulsion has begun, or whose name goes to another home, each with the user key that must not
    /// log in any more. If the command breaks off, it can be repeated until all is done.
    #[serde(default)]
    pub(super) expelling: BTreeMap<HostName, UserKey>,
}

/// An account at a server of another party.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GivenAccount {
    account: AccountKey,
    /// The seed of the signing key.
    signing: String,
}

impl OwnerFile {
    pub(super) fn new(fleet: &FleetKeys, server: &ServerKeys) -> OwnerFile {
        let [operator, system] = server.seeds();
        OwnerFile { operator: Some(operator), system: Some(system), ..OwnerFile::of(fleet) }
    }

    /// The owner of a new fleet in the account of another party, whose signing key has this seed.
    pub(super) fn of_account(fleet: &FleetKeys, account: AccountKey, signing: String) -> OwnerFile {
        OwnerFile { given: Some(GivenAccount { account, signing }), ..OwnerFile::of(fleet) }
    }

    fn of(fleet: &FleetKeys) -> OwnerFile {
        let (expelled, expelling) = (BTreeMap::new(), BTreeMap::new());
        OwnerFile { v: 1, fleet: fleet.seed(), operator: None, system: None, given: None, expelled, expelling }
    }

    /// The account that another party has given, if the fleet is in one.
    pub(super) fn account(&self) -> Option<&AccountKey> {
        self.given.as_ref().map(|given| &given.account)
    }

    /// The same with another signing key of the same account.
    ///
    /// # Errors
    /// The fleet's own key is the key of its account, so no other key signs logins.
    pub(super) fn signing_by(self, seed: String) -> Result<OwnerFile, CliError> {
        let given = self.given.map(|given| GivenAccount { signing: seed, ..given });
        let own = || {
            CliError::refused("own_account", "The fleet's key is the key of its account, and signs logins itself.")
                .hint("Leave out --signing-key. It is for servers of another party: tasuki help fleet")
        };
        Ok(OwnerFile { given: Some(given.ok_or_else(own)?), ..self })
    }

    /// Reads the file; none if the fleet's seeds are in another home.
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

    /// The fleet's key.
    ///
    /// # Errors
    /// Its seed can't be used.
    pub(super) fn keys(&self) -> Result<FleetKeys, CliError> {
        FleetKeys::from_seed(&self.fleet)
            .map_err(|error| CliError::config("bad_key", format!("The fleet's key: {error}.")))
    }

    /// The key that signs logins at the server.
    ///
    /// # Errors
    /// Its seed can't be used.
    pub(super) fn login(&self) -> Result<LoginKey, CliError> {
        let bad = |error| CliError::refused("bad_key", format!("The signing key can't be used: {error}."));
        match &self.given {
            None => Ok(LoginKey::of_fleet(&self.keys()?)),
            Some(given) => LoginKey::from_seed(&given.signing, given.account.clone()).map_err(bad),
        }
    }

    /// The keys of the server's operator and system account; none if another party runs the server, or if a seed can't
    /// be used.
    pub(super) fn server_keys(&self) -> Option<ServerKeys> {
        ServerKeys::from_seeds(self.operator.as_deref()?, self.system.as_deref()?).ok()
    }
}
