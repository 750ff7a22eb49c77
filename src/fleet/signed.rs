//! What a host, or the fleet's owner, says to all members: the signature (64 bytes), then the compressed JSON. The
//! signature covers the fleet and the topic too, so that nothing that was said in one place counts in another.

use super::keys::{AccountKey, FleetKeys, HostKeys, UserKey, is_signed_by};
use crate::core::host::{FleetName, HostName};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The length of a signature, in bytes.
const SIGNATURE: usize = 64;
/// The most that is decompressed, in bytes.
const MAX_JSON: usize = 4 << 20;

/// What a signed message is about: a host, or the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic<'a> {
    /// The list of members.
    Fleet,
    /// A host's roster.
    Host(&'a HostName),
}

/// Why a signed message is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignedError {
    /// It is shorter than a signature.
    #[error("it is too short to be signed")]
    Short,
    /// Somebody else has signed it, or it was altered, or it belongs to another fleet or host.
    #[error("its signature is not that of the one who should have signed it")]
    NotAuthentic,
    /// It is signed, but can't be read.
    #[error("it is signed, but can't be read: {0}")]
    Unreadable(String),
}

impl Topic<'_> {
    /// The last part of its subject.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Topic::Fleet => "_fleet",
            Topic::Host(name) => name.as_str(),
        }
    }

    /// What is signed: the version of this form, fleet, topic, bytes.
    fn covered(&self, fleet: &FleetName, bytes: &[u8]) -> Vec<u8> {
        let mut covered = format!("tk1\n{fleet}\n{}\n", self.as_str()).into_bytes();
        covered.extend_from_slice(bytes);
        covered
    }
}

fn packed(value: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(value).expect("a plain value");
    lz4_flex::block::compress_prepend_size(&json)
}

fn joined(signature: Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let mut whole = signature;
    whole.extend_from_slice(bytes);
    whole
}

/// Packs what a host says of itself, and signs it with the host's key.
pub(super) fn by_host(keys: &HostKeys, fleet: &FleetName, name: &HostName, value: &impl Serialize) -> Vec<u8> {
    let bytes = packed(value);
    joined(keys.sign(&Topic::Host(name).covered(fleet, &bytes)), &bytes)
}

/// Packs a value, and signs it with the fleet's key.
pub(super) fn by_fleet(keys: &FleetKeys, fleet: &FleetName, value: &impl Serialize) -> Vec<u8> {
    let bytes = packed(value);
    joined(keys.sign(&Topic::Fleet.covered(fleet, &bytes)), &bytes)
}

/// Reads what a host has said of itself, if the host's key has signed it.
pub(super) fn of_host<T: DeserializeOwned>(
    whole: &[u8],
    key: &UserKey,
    fleet: &FleetName,
    name: &HostName,
) -> Result<T, SignedError> {
    open(whole, key.as_str(), fleet, &Topic::Host(name))
}

/// Reads a value, if the fleet's key has signed it.
pub(super) fn of_fleet<T: DeserializeOwned>(
    whole: &[u8],
    key: &AccountKey,
    fleet: &FleetName,
) -> Result<T, SignedError> {
    open(whole, key.as_str(), fleet, &Topic::Fleet)
}

fn open<T: DeserializeOwned>(whole: &[u8], key: &str, fleet: &FleetName, topic: &Topic<'_>) -> Result<T, SignedError> {
    let (signature, bytes) = whole.split_at_checked(SIGNATURE).ok_or(SignedError::Short)?;
    if !is_signed_by(key, &topic.covered(fleet, bytes), signature) {
        return Err(SignedError::NotAuthentic);
    }
    let json = unpacked(bytes, MAX_JSON)
        .ok_or_else(|| SignedError::Unreadable("it is not compressed as it should be".to_owned()))?;
    serde_json::from_slice(&json).map_err(|error| SignedError::Unreadable(error.to_string()))
}

/// Decompresses what `compress_prepend_size` made; none if it is not that, or if it says that it is longer than `most`.
pub(super) fn unpacked(bytes: &[u8], most: usize) -> Option<Vec<u8>> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= most)?;
    lz4_flex::block::decompress_size_prepended(bytes).ok().filter(|json| json.len() == length)
}

#[cfg(test)]
#[path = "signed_tests.rs"]
mod tests;
