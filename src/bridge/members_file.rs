//! `fleet/members.json`: the newest list of members whose signature this host has verified, with that signature. It is
//! verified again whenever the file is read.

use super::folder::FleetFolder;
use crate::cli::error::CliError;
use crate::core::host::FleetName;
use crate::files::Grade;
use crate::fleet::{AccountKey, MemberList};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};

const FILE: &str = "members.json";

#[derive(Serialize, Deserialize)]
struct MembersFile {
    v: u8,
    /// The list as it was published: signature and compressed JSON, in base64.
    signed: String,
}

/// Keeps a list that was verified.
///
/// # Errors
/// The system's.
pub(super) fn save(folder: &FleetFolder, signed: &[u8]) -> Result<(), CliError> {
    let file = MembersFile { v: 1, signed: BASE64.encode(signed) };
    folder.write("", FILE, &serde_json::to_vec(&file).expect("a plain value"), Grade::Durable)
}

/// The list that was kept. If none was kept, or its signature is wrong, it is empty and has version 0, so that any list
/// from the server is newer.
///
/// # Errors
/// The file can't be read.
pub(super) fn load(folder: &FleetFolder, key: &AccountKey, fleet: &FleetName) -> Result<MemberList, CliError> {
    let kept = folder.read("", FILE)?.and_then(|bytes| {
        let file: MembersFile = serde_json::from_slice(&bytes).ok()?;
        MemberList::open(&BASE64.decode(file.signed.as_bytes()).ok()?, key, fleet).ok()
    });
    Ok(kept.unwrap_or_else(|| MemberList::new(fleet.clone(), 0, Vec::new())))
}
