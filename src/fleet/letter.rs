//! A letter from one host to another: a request or a result, with what belongs to it. It is sealed from the sender's
//! key to the receiver's, so that nobody else can read or alter it. The seal is symmetric: the receiver could have made
//! the same letter. So the header names both ends, and the receiver compares them with the member list.

use super::keys::{BoxKey, HostKeys};
use super::signed::unpacked;
use crate::core::host::{FleetId, FleetName, HomeId, HostName};
use crate::core::id::is_file_name;
use crate::core::text::sha256;
use serde::{Deserialize, Serialize};

/// The most parts of a letter, with the request or result itself.
pub const MOST_PARTS: usize = 16;
/// The most that a header may hold, in bytes.
const MAX_HEADER: usize = 64 << 10;
/// The most that a letter may hold when it is open, in bytes. The sealed letter has a limit of its own, the server's.
pub const MAX_OPEN: usize = 4 << 20;
/// The version of the letter's form.
const FORM: u8 = 1;

/// What a letter brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A request.
    Req,
    /// The result of one.
    Res,
}

impl What {
    /// The last part of the subjects of such letters.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            What::Req => "req",
            What::Res => "res",
        }
    }
}

/// Who writes to whom, about which request, and how old it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    v: u8,
    /// The fleet.
    pub fleet: FleetName,
    /// Request or result.
    pub what: What,
    /// The request's id at the host that asks.
    pub id: FleetId,
    /// The sender.
    pub from: HostName,
    /// The receiver.
    pub to: HostName,
    /// The sender's home.
    pub from_home: HomeId,
    /// The home that is meant.
    pub to_home: HomeId,
    /// When the sender took the request: UTC, by its own wall clock. Only a difference of days counts.
    pub sent_at: String,
    /// How long ago that was when the letter was made, in milliseconds, by the sender's own clock since its boot.
    pub age_ms: u64,
    /// How old the request may become, in milliseconds.
    pub ttl_ms: u64,
    /// When the letter was made, by the server's clock as far as the sender knows it, in milliseconds since 1970. With
    /// it the receiver also counts the time before the server had the letter: a broken connection may have held it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_ms: Option<i64>,
    parts: Vec<PartHead>,
}

/// What belongs to a letter: the request's or result's own bytes first, then attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterPart {
    /// Its name: a plain file name.
    pub name: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PartHead {
    name: String,
    bytes: u64,
    sha256: String,
}

/// A letter that was opened: it is from the host whose key opened it, and whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Its header. Its names are not yet compared with the member list.
    pub header: Header,
    /// Its parts; there is at least one.
    pub parts: Vec<LetterPart>,
}

/// Why a letter can't be made or opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LetterError {
    /// It would hold too much.
    #[error("it holds {bytes} bytes; at most {most} are allowed")]
    TooLarge {
        /// What it would hold, in bytes.
        bytes: usize,
        /// What it may hold, in bytes.
        most: usize,
    },
    /// It would have no parts, or too many, or a part whose name can't be a file name.
    #[error("its parts can't be sent: {0}")]
    BadParts(&'static str),
    /// It was sealed by others, or for others, or altered.
    #[error("it is not sealed from that host to this one")]
    NotAuthentic,
    /// It is sealed correctly, but can't be read as a letter.
    #[error("it is sealed rightly, but can't be read as a letter: {0}")]
    NoLetter(&'static str),
}

impl Header {
    /// The header of a letter. Its parts are noted when it is sealed.
    #[must_use]
    pub fn new(fleet: FleetName, what: What, id: FleetId, ends: Ends, age: Age) -> Header {
        let Ends { from, to, from_home, to_home } = ends;
        let Age { sent_at, age_ms, ttl_ms } = age;
        Header {
            v: FORM,
            fleet,
            what,
            id,
            from,
            to,
            from_home,
            to_home,
            sent_at,
            age_ms,
            ttl_ms,
            server_ms: None,
            parts: Vec::new(),
        }
    }
}

/// Both ends of a letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    /// The sender.
    pub from: HostName,
    /// The receiver.
    pub to: HostName,
    /// The sender's home.
    pub from_home: HomeId,
    /// The receiver's home.
    pub to_home: HomeId,
}

/// How old a request is, and may become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Age {
    /// When it was taken, by the sender's wall clock.
    pub sent_at: String,
    /// How long ago, in milliseconds.
    pub age_ms: u64,
    /// How old it may become, in milliseconds.
    pub ttl_ms: u64,
}

impl Letter {
    /// Seals it to the receiver. `most`: what the server takes, in bytes.
    ///
    /// # Errors
    /// It would be larger, or its parts can't be sent.
    pub fn seal(mut self, keys: &HostKeys, to: &BoxKey, most: usize) -> Result<Vec<u8>, LetterError> {
        if let Some(fault) = fault_of(self.parts.iter().map(|part| part.name.as_str())) {
            return Err(LetterError::BadParts(fault));
        }
        self.header.parts = self.parts.iter().map(head).collect();
        let header = serde_json::to_vec(&self.header).expect("a plain value");
        let bytes = 4 + header.len() + self.parts.iter().map(|part| part.bytes.len()).sum::<usize>();
        if bytes > MAX_OPEN || header.len() > MAX_HEADER {
            return Err(LetterError::TooLarge { bytes, most: MAX_OPEN });
        }
        let mut open = Vec::with_capacity(bytes);
        open.extend_from_slice(&u32::try_from(header.len()).expect("it was measured").to_le_bytes());
        open.extend_from_slice(&header);
        self.parts.iter().for_each(|part| open.extend_from_slice(&part.bytes));
        let sealed = keys.seal(&lz4_flex::block::compress_prepend_size(&open), to);
        if sealed.len() > most {
            return Err(LetterError::TooLarge { bytes: sealed.len(), most });
        }
        Ok(sealed)
    }

    /// Opens a letter from the host with this key.
    ///
    /// # Errors
    /// That host has not sealed it to this one, or it can't be read as a letter.
    pub fn open(sealed: &[u8], keys: &HostKeys, from: &BoxKey) -> Result<Letter, LetterError> {
        let packed = keys.open(sealed, from).ok_or(LetterError::NotAuthentic)?;
        let open = unpacked(&packed, MAX_OPEN).ok_or(LetterError::NoLetter("it can't be decompressed"))?;
        let cut = LetterError::NoLetter("it is cut");
        let (length, rest) = open.split_first_chunk::<4>().ok_or_else(|| cut.clone())?;
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_HEADER {
            return Err(LetterError::NoLetter("its header is too long"));
        }
        let (header, rest) = rest.split_at_checked(length).ok_or(cut)?;
        let header: Header =
            serde_json::from_slice(header).map_err(|_| LetterError::NoLetter("its header can't be read"))?;
        if header.v != FORM {
            return Err(LetterError::NoLetter("it is of another form than 1"));
        }
        if let Some(fault) = fault_of(header.parts.iter().map(|part| part.name.as_str())) {
            return Err(LetterError::NoLetter(fault));
        }
        let parts = parts(&header.parts, rest)?;
        Ok(Letter { header, parts })
    }
}

fn head(part: &LetterPart) -> PartHead {
    PartHead { name: part.name.clone(), bytes: part.bytes.len() as u64, sha256: sha256(&part.bytes) }
}

/// What is wrong with the names of the parts. Each must be a plain file name, also that of the first part.
fn fault_of<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'static str> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() || names.len() > MOST_PARTS {
        return Some("it must have 1 to 16 parts");
    }
    if !names.iter().all(|name| is_file_name(name)) {
        return Some("the name of a part can't be a file name");
    }
    let different: std::collections::BTreeSet<_> = names.iter().collect();
    (different.len() < names.len()).then_some("two parts have the same name")
}

fn parts(heads: &[PartHead], mut rest: &[u8]) -> Result<Vec<LetterPart>, LetterError> {
    let mut parts = Vec::with_capacity(heads.len());
    for head in heads {
        let length = usize::try_from(head.bytes).unwrap_or(usize::MAX);
        let (bytes, after) = rest.split_at_checked(length).ok_or(LetterError::NoLetter("it is cut"))?;
        if sha256(bytes) != head.sha256 {
            return Err(LetterError::NoLetter("a part is another one than its header says"));
        }
        parts.push(LetterPart { name: head.name.clone(), bytes: bytes.to_owned() });
        rest = after;
    }
    if rest.is_empty() { Ok(parts) } else { Err(LetterError::NoLetter("there is more than its header says")) }
}

#[cfg(test)]
#[path = "letter_tests.rs"]
mod tests;
