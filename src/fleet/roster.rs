//! A host's roster: what it tells all members of itself, signed and replaced whole. It has ids, states and times, and
//! no text that anybody has typed. It is also the host's lease (see `lease`).

use super::keys::{HostKeys, UserKey};
use super::members::MemberList;
use super::signed::{self, SignedError};
use crate::contract::fleet::{HostAgent, HostError, HostEvent, HostHandoff, HostPersona, HostSidecar};
use crate::core::host::{FleetName, HomeId, HostName};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use uuid::Uuid;

/// The most that a roster may hold as it is published, in bytes.
pub const MAX_ROSTER: usize = 256 << 10;
/// The most entries of a kind.
pub const MOST_ENTRIES: usize = 1_000;
/// The version of the roster's form.
const FORM: u8 = 1;

/// What a host tells of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roster {
    v: u8,
    /// Its name.
    pub host: HostName,
    /// Its identity.
    pub home_id: HomeId,
    /// Random for each start of its bridge.
    pub instance: Uuid,
    /// Rises with each roster of this home, over restarts too.
    pub n: u64,
    /// Whether its bridge serves, or only claims the host's name so far (see `lease`).
    pub serves: bool,
    /// A hash of what distinguishes this machine and this copy of the home from others.
    pub machine: String,
    /// A hash of this boot's id.
    pub boot: String,
    /// The version of tasuki.
    pub version: String,
    /// The number of the last line in its journal.
    pub journal_seq: u64,
    /// When its bridge started: UTC, by its own clock.
    pub started_at: String,
    /// Its sidecar.
    pub sidecar: HostSidecar,
    /// Its live agents.
    #[serde(deserialize_with = "at_most")]
    pub agents: Vec<HostAgent>,
    /// Its open handoffs, and the last ended handoffs.
    #[serde(deserialize_with = "at_most")]
    pub handoffs: Vec<HostHandoff>,
    /// Its errors that nobody has dismissed.
    #[serde(deserialize_with = "at_most")]
    pub errors: Vec<HostError>,
    /// Its personas.
    #[serde(deserialize_with = "at_most")]
    pub personas: Vec<HostPersona>,
    /// The last lines of its journal, if its settings say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "at_most")]
    pub journal: Vec<HostEvent>,
    /// How many entries were left out.
    pub more: u64,
}

/// Reads a list of at most [`MOST_ENTRIES`]. Otherwise another host could name millions of empty entries in a few
/// bytes.
fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct Entries<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a list of at most {MOST_ENTRIES} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(entry) = seq.next_element()? {
                if list.len() == MOST_ENTRIES {
                    return Err(A::Error::invalid_length(list.len() + 1, &self));
                }
                list.push(entry);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(Entries(PhantomData))
}

/// The host that a roster is about, and its bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Teller {
    /// The host's name.
    pub host: HostName,
    /// Its identity.
    pub home_id: HomeId,
    /// Random for each start of its bridge.
    pub instance: Uuid,
    /// A hash of machine and home.
    pub machine: String,
    /// A hash of the boot.
    pub boot: String,
    /// When its bridge started.
    pub started_at: String,
}

impl Roster {
    /// A roster without entries.
    #[must_use]
    pub fn new(teller: Teller, n: u64, journal_seq: u64, sidecar: HostSidecar) -> Roster {
        let Teller { host, home_id, instance, machine, boot, started_at } = teller;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Roster {
            v: FORM,
            host,
            home_id,
            instance,
            n,
            serves: true,
            machine,
            boot,
            version,
            journal_seq,
            started_at,
            sidecar,
            agents: Vec::new(),
            handoffs: Vec::new(),
            errors: Vec::new(),
            personas: Vec::new(),
            journal: Vec::new(),
            more: 0,
        }
    }

    /// The roster as it is published, with at most [`MOST_ENTRIES`] of a kind. If it would be too large, more entries
    /// are left out and counted: handoffs first, from the end of the list, where the ended handoffs are; then errors,
    /// personas and agents.
    #[must_use]
    pub fn sign(mut self, keys: &HostKeys, fleet: &FleetName) -> Vec<u8> {
        self.keep_most();
        loop {
            let whole = signed::by_host(keys, fleet, &self.host, &self);
            if whole.len() <= MAX_ROSTER || !self.leave_out() {
                return whole;
            }
        }
    }

    /// Leaves out the entries that are more than a reader accepts.
    fn keep_most(&mut self) {
        fn cut<T>(list: &mut Vec<T>) -> usize {
            let more = list.len().saturating_sub(MOST_ENTRIES);
            list.truncate(MOST_ENTRIES);
            more
        }
        let gone = [cut(&mut self.agents), cut(&mut self.handoffs), cut(&mut self.errors), cut(&mut self.personas)];
        self.more += gone.iter().sum::<usize>() as u64;
    }

    /// Leaves out a tenth of the first list that has entries; false if all are empty.
    fn leave_out(&mut self) -> bool {
        fn cut<T>(list: &mut Vec<T>) -> usize {
            let gone = list.len().div_ceil(10);
            list.truncate(list.len() - gone);
            gone
        }
        let mut gone = cut(&mut self.handoffs);
        if gone == 0 {
            gone = cut(&mut self.errors);
        }
        if gone == 0 {
            gone = cut(&mut self.personas);
        }
        if gone == 0 {
            gone = cut(&mut self.agents);
        }
        self.more += gone as u64;
        gone > 0
    }

    /// Reads what a host has published of itself.
    ///
    /// # Errors
    /// That host has not signed it, or it can't be read.
    pub fn open(whole: &[u8], key: &UserKey, fleet: &FleetName, name: &HostName) -> Result<Roster, SignedError> {
        let roster: Roster = signed::of_host(whole, key, fleet, name)?;
        let fits = roster.v == FORM && roster.host == *name;
        if fits {
            Ok(roster)
        } else {
            Err(SignedError::Unreadable("it is of another form, or of another host".to_owned()))
        }
    }
}

/// What a published roster means to a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It tells of the host as it is, as far as that is known.
    Roster(Box<Roster>),
    /// It changes nothing: it is not signed by this host, it is older than a roster that was seen, or the host is not a
    /// member.
    NotAuthentic,
}

/// What a reader remembers: for each home the highest number that was seen, so that no old roster counts again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RosterNumbers(BTreeMap<HomeId, u64>);

impl RosterNumbers {
    /// Reads what stands at a host's name. The same roster may be read again.
    pub fn read(&mut self, whole: &[u8], name: &HostName, members: &MemberList) -> Seen {
        let Some(member) = members.find(name) else { return Seen::NotAuthentic };
        let Ok(roster) = Roster::open(whole, &member.user_key, &members.fleet, name) else { return Seen::NotAuthentic };
        let highest = self.0.entry(member.home_id).or_default();
        if roster.home_id != member.home_id || roster.n < *highest {
            return Seen::NotAuthentic;
        }
        *highest = roster.n;
        Seen::Roster(Box::new(roster))
    }

    /// Forgets homes that are no longer members.
    pub fn keep_only(&mut self, members: &MemberList) {
        self.0.retain(|home, _| members.members.iter().any(|member| member.home_id == *home));
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
