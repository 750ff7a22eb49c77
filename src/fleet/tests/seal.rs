//! Names, keys and seals of the simulated fleet. Most lives use a seal that costs nothing and opens for the same two
//! keys as the real one; some use the real one.

use super::super::keys::{BoxKey, FleetKeys, HostKeys, UserKey};
use super::super::letter::Letter;
use super::super::members::MemberList;
use crate::core::host::{FleetName, HostName};
use std::sync::OnceLock;

/// Three honest hosts and a hostile member; the last name is nobody's.
pub(super) const NAMES: [&str; 5] = ["a", "b", "c", "m", "nobody"];
/// The index of the hostile member, and of its key.
pub(super) const HOSTILE: usize = 3;
/// How many keys there are: one for each host.
const KEYS: usize = 4;
const MOST_SEALED: usize = 1 << 20;

/// What all lives have in common.
pub(super) struct Cast {
    pub(super) fleet: FleetName,
    pub(super) names: Vec<HostName>,
    pub(super) keys: Vec<HostKeys>,
    pub(super) public: Vec<(UserKey, BoxKey)>,
    pub(super) owner: FleetKeys,
    pub(super) impostor: FleetKeys,
}

pub(super) fn cast() -> &'static Cast {
    static CAST: OnceLock<Cast> = OnceLock::new();
    CAST.get_or_init(|| {
        let keys: Vec<HostKeys> = (0..KEYS).map(|_| HostKeys::generate()).collect();
        Cast {
            fleet: "home".parse().expect("a name"),
            names: NAMES.iter().map(|name| name.parse().expect("a name")).collect(),
            public: keys.iter().map(|keys| (keys.user_key(), keys.box_key())).collect(),
            keys,
            owner: FleetKeys::generate(),
            impostor: FleetKeys::generate(),
        }
    })
}

/// The index of a host's name.
pub(super) fn place(name: &HostName) -> usize {
    NAMES.iter().position(|known| *known == name.as_str()).unwrap_or(NAMES.len() - 1)
}

/// A letter on its way.
#[derive(Debug, Clone)]
pub(super) enum Sealed {
    /// Opens for these two keys, as the real seal does.
    Cheap {
        pair: [usize; 2],
        letter: Box<Letter>,
    },
    Real(Vec<u8>),
}

fn pair(one: usize, other: usize) -> [usize; 2] {
    [one.min(other), one.max(other)]
}

pub(super) fn seal(is_real: bool, letter: Letter, from: usize, to: usize) -> Sealed {
    if is_real {
        let sealed = letter.seal(&cast().keys[from], &cast().public[to].1, MOST_SEALED);
        Sealed::Real(sealed.expect("it is small"))
    } else {
        Sealed::Cheap { pair: pair(from, to), letter: Box::new(letter) }
    }
}

/// Opens it with one's own key and that of the member who is said to have sent it.
pub(super) fn open(sealed: &Sealed, own: usize, from: &BoxKey) -> Option<Letter> {
    match sealed {
        Sealed::Real(bytes) => Letter::open(bytes, &cast().keys[own], from).ok(),
        Sealed::Cheap { pair: made, letter } => {
            let from = cast().public.iter().position(|(_, key)| key == from)?;
            (*made == pair(own, from)).then(|| (**letter).clone())
        }
    }
}

/// A member list as it is published.
#[derive(Debug, Clone)]
pub(super) enum SignedList {
    Cheap { list: Box<MemberList>, is_owners: bool },
    Real(Vec<u8>),
}

impl SignedList {
    pub(super) fn sign(is_real: bool, list: MemberList, is_owners: bool) -> SignedList {
        if is_real {
            SignedList::Real(list.sign(if is_owners { &cast().owner } else { &cast().impostor }))
        } else {
            SignedList::Cheap { list: Box::new(list), is_owners }
        }
    }

    pub(super) fn open(&self) -> Option<MemberList> {
        match self {
            SignedList::Cheap { list, is_owners } => is_owners.then(|| (**list).clone()),
            SignedList::Real(bytes) => MemberList::open(bytes, &cast().owner.account_key(), &cast().fleet).ok(),
        }
    }
}
