//! Who is in the fleet. The list is signed by the fleet's key, and its version only rises: if a server shows an old
//! list again, no expelled host comes back by that.

use super::keys::{AccountKey, BoxKey, FleetKeys, UserKey};
use super::signed::{self, SignedError};
use crate::core::host::{FleetName, HomeId, HostName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The most hosts in a fleet.
pub const MOST_MEMBERS: usize = 1_000;
/// The version of the list's form.
const FORM: u8 = 1;

/// A host that the fleet's key has admitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its address.
    pub name: HostName,
    /// Its identity.
    pub home_id: HomeId,
    /// The key that it signs with.
    pub user_key: UserKey,
    /// The key that letters to it are sealed to.
    pub box_key: BoxKey,
    /// When it was admitted: UTC, by the clock of the machine that has the fleet's key. Nothing is decided by it.
    pub admitted_at: String,
}

/// All members, by one version of the fleet's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberList {
    v: u8,
    /// Which fleet.
    pub fleet: FleetName,
    /// Rises with each change.
    pub version: u64,
    /// The hosts, in no order.
    pub members: Vec<Member>,
}

impl MemberList {
    /// A list. It is checked when it is opened.
    #[must_use]
    pub fn new(fleet: FleetName, version: u64, members: Vec<Member>) -> MemberList {
        MemberList { v: FORM, fleet, version, members }
    }

    /// The list as it is published.
    #[must_use]
    pub fn sign(&self, keys: &FleetKeys) -> Vec<u8> {
        signed::by_fleet(keys, &self.fleet, self)
    }

    /// Reads a published list.
    ///
    /// # Errors
    /// The fleet's key has not signed it, or it can't be right: of another form or fleet, too long, or with one name,
    /// home or key twice.
    pub fn open(whole: &[u8], key: &AccountKey, fleet: &FleetName) -> Result<MemberList, SignedError> {
        let list: MemberList = signed::of_fleet(whole, key, fleet)?;
        match list.fault(fleet) {
            None => Ok(list),
            Some(fault) => Err(SignedError::Unreadable(fault.to_owned())),
        }
    }

    fn fault(&self, fleet: &FleetName) -> Option<&'static str> {
        let members = || self.members.iter();
        let is_twice = |count: usize| count < self.members.len();
        if self.v != FORM {
            return Some("it is of another form than 1");
        }
        if self.fleet != *fleet {
            return Some("it is the list of another fleet");
        }
        if self.members.len() > MOST_MEMBERS {
            return Some("it has more than 1,000 members");
        }
        let names = members().map(|member| &member.name).collect::<BTreeSet<_>>().len();
        let homes = members().map(|member| member.home_id).collect::<BTreeSet<_>>().len();
        let keys = members().map(|member| &member.user_key).collect::<BTreeSet<_>>().len();
        let boxes = members().map(|member| &member.box_key).collect::<BTreeSet<_>>().len();
        [names, homes, keys, boxes].into_iter().any(is_twice).then_some("a name, a home or a key is in it twice")
    }

    /// The member of this name.
    #[must_use]
    pub fn find(&self, name: &HostName) -> Option<&Member> {
        self.members.iter().find(|member| member.name == *name)
    }
}

/// What a list brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learnt {
    /// It is newer, and counts from now on.
    Newer,
    /// It is the one that is known.
    Same,
    /// It is older than the known one, or another one of the same version: nothing changes.
    Stale,
}

/// The newest list that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    list: MemberList,
}

impl Members {
    /// Begins with the list that the home has kept.
    #[must_use]
    pub fn new(list: MemberList) -> Members {
        Members { list }
    }

    /// Takes a list that was opened.
    pub fn learn(&mut self, list: MemberList) -> Learnt {
        if list == self.list {
            return Learnt::Same;
        }
        if list.version <= self.list.version {
            return Learnt::Stale;
        }
        self.list = list;
        Learnt::Newer
    }

    /// The newest list.
    #[must_use]
    pub fn list(&self) -> &MemberList {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::HostKeys;
    use super::*;
    use uuid::Uuid;

    fn fleet() -> FleetName {
        "home".parse().expect("a name")
    }

    fn member(name: &str, keys: &HostKeys) -> Member {
        Member {
            name: name.parse().expect("a name"),
            home_id: HomeId(Uuid::new_v4()),
            user_key: keys.user_key(),
            box_key: keys.box_key(),
            admitted_at: "2026-11-25T12:00:00.000Z".to_owned(),
        }
    }

    fn list(version: u64, members: Vec<Member>) -> MemberList {
        MemberList::new(fleet(), version, members)
    }

    #[test]
    fn only_the_fleets_own_key_says_who_is_a_member() {
        let (owner, other) = (FleetKeys::generate(), FleetKeys::generate());
        let host = HostKeys::generate();
        let whole = list(3, vec![member("a", &host)]).sign(&owner);
        let read = MemberList::open(&whole, &owner.account_key(), &fleet()).expect("its own");
        assert_eq!((read.version, read.members.len()), (3, 1));
        assert!(read.find(&"a".parse().expect("a name")).is_some());
        let refused = MemberList::open(&whole, &other.account_key(), &fleet());
        assert_eq!(refused, Err(SignedError::NotAuthentic));
        let elsewhere = MemberList::open(&whole, &owner.account_key(), &"other".parse().expect("a name"));
        assert_eq!(elsewhere, Err(SignedError::NotAuthentic));
    }

    #[test]
    fn no_byte_of_it_can_be_changed_and_no_end_cut_off() {
        let owner = FleetKeys::generate();
        let whole = list(1, vec![member("a", &HostKeys::generate())]).sign(&owner);
        for at in 0..whole.len() {
            let mut altered = whole.clone();
            altered[at] ^= 1;
            assert!(MemberList::open(&altered, &owner.account_key(), &fleet()).is_err(), "byte {at}");
            assert!(MemberList::open(&whole[..at], &owner.account_key(), &fleet()).is_err(), "the first {at}");
        }
    }

    #[test]
    fn a_signed_list_that_cannot_be_right_is_refused() {
        let owner = FleetKeys::generate();
        let (host, other) = (HostKeys::generate(), HostKeys::generate());
        let one = member("a", &host);
        let same_name = vec![one.clone(), member("a", &other)];
        let same_key = vec![one.clone(), member("b", &host)];
        let same_home = vec![one.clone(), Member { home_id: one.home_id, ..member("b", &other) }];
        for members in [same_name, same_key, same_home] {
            let whole = list(1, members).sign(&owner);
            let refused = MemberList::open(&whole, &owner.account_key(), &fleet());
            assert!(matches!(refused, Err(SignedError::Unreadable(_))), "{refused:?}");
        }
        let whole = MemberList { v: 2, ..list(1, vec![one]) }.sign(&owner);
        assert!(MemberList::open(&whole, &owner.account_key(), &fleet()).is_err());
    }

    #[test]
    fn an_old_list_brings_nobody_back() {
        let host = HostKeys::generate();
        let mut known = Members::new(list(4, vec![member("a", &host)]));
        assert_eq!(known.learn(known.list().clone()), Learnt::Same);
        assert_eq!(known.learn(list(5, Vec::new())), Learnt::Newer);
        assert_eq!(known.learn(list(4, vec![member("a", &host)])), Learnt::Stale);
        assert_eq!(known.learn(list(5, vec![member("a", &host)])), Learnt::Stale);
        assert!(known.list().members.is_empty());
    }
}
