//! `fleet/owner.json`: the seeds by which members are admitted and expelled. They lie on one machine. The server needs
//! none of them, and no other host has them.
//!
//! Where another party owns the fleet's account at the server, a key that it has given signs logins. The fleet's key, which
//! signs the list of members, is then a key that this party never sees: so it can make nobody a member.

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
    /// The seeds of the server's operator and of its system account; none where another party runs the server.
    operator: Option<String>,
    system: Option<String>,
    /// The account at a server of another party, and its signing key; none where the fleet's key is the account's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    given: Option<GivenAccount>,
    /// The keys that were expelled, with the second since when.
    #[serde(default)]
    pub(super) expelled: BTreeMap<UserKey, i64>,
    /// Hosts whose expulsion has begun, or whose name is given to another home, with the keys that are to log in no more:
    /// the command can be repeated until all of it is done.
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

    /// The account of another party that the fleet is in, if it is in one.
    pub(super) fn account(&self) -> Option<&AccountKey> {
        self.given.as_ref().map(|given| &given.account)
    }

    /// The same with another signing key of the same account.
    ///
    /// # Errors
    /// The fleet's own key is that of its account: no other key signs logins.
    pub(super) fn signing_by(self, seed: String) -> Result<OwnerFile, CliError> {
        let given = self.given.map(|given| GivenAccount { signing: seed, ..given });
        let own = || {
            CliError::refused("own_account", "The fleet's key is the key of its account, and signs logins itself.")
                .hint("Leave out --signing-key. It is for servers of another party: tasuki help fleet")
        };
        Ok(OwnerFile { given: Some(given.ok_or_else(own)?), ..self })
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

    /// The seeds of the server's operator; none where another party runs the server.
    pub(super) fn server_keys(&self) -> Option<ServerKeys> {
        ServerKeys::from_seeds(self.operator.as_deref()?, self.system.as_deref()?).ok()
    }
}
