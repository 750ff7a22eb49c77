//! Anything may be signed, sealed or written into settings. Whatever it is, it is read without a panic, and without
//! more memory than its limit.

use super::super::keys::{FleetKeys, HostKeys};
use super::super::letter::Letter;
use super::super::members::MemberList;
use super::super::rights::{Accepts, RIGHTS};
use super::super::roster::{Roster, RosterNumbers};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn fleet() -> FleetName {
    "home".parse().expect("a name")
}

fn name() -> HostName {
    "a".parse().expect("a name")
}

/// JSON that looks like what is expected, with anything in any place.
fn nearly(fields: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(|value| json!(value)),
        any::<u64>().prop_map(|value| json!(value)),
        any::<f64>().prop_map(|value| json!(value)),
        "[a-z*.-]{0,8}|\\PC{0,8}|00000000-0000-4000-8000-000000000000".prop_map(|value| json!(value)),
        Just(json!(1)),
        Just(json!("home")),
    ];
    let any = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::btree_map("[a-z_]{0,9}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    });
    proptest::collection::vec(any, fields.len())
        .prop_map(move |values| Value::Object(fields.iter().map(|field| (*field).to_owned()).zip(values).collect()))
}

const ROSTER: &[&str] = &[
    "v",
    "host",
    "home_id",
    "instance",
    "n",
    "serves",
    "machine",
    "boot",
    "version",
    "journal_seq",
    "started_at",
    "sidecar",
    "agents",
    "handoffs",
    "errors",
    "personas",
    "more",
];
const LIST: &[&str] = &["v", "fleet", "version", "members"];
const HEADER: &[&str] =
    &["v", "fleet", "what", "id", "from", "to", "from_home", "to_home", "sent_at", "age_ms", "ttl_ms", "parts"];

/// Bytes that claim to be as long as can be written, or that decompress to much more than they are.
fn bombs() -> [Vec<u8>; 3] {
    let zeros = lz4_flex::block::compress_prepend_size(&vec![b' '; MAX_JSON + 1]);
    let nested = lz4_flex::block::compress_prepend_size("[".repeat(1 << 20).as_bytes());
    [[&u32::MAX.to_le_bytes()[..], &[0xf0; 64]].concat(), zeros, nested]
}

#[test]
fn what_is_signed_and_much_too_long_is_refused() {
    let (host, owner) = (HostKeys::generate(), FleetKeys::generate());
    for bytes in bombs() {
        let of_host = joined(host.sign(&Topic::Host(&name()).covered(&fleet(), &bytes)), &bytes);
        assert!(matches!(Roster::open(&of_host, &host.user_key(), &fleet(), &name()), Err(SignedError::Unreadable(_))));
        let of_fleet = joined(owner.sign(&Topic::Fleet.covered(&fleet(), &bytes)), &bytes);
        let list = MemberList::open(&of_fleet, &owner.account_key(), &fleet());
        assert!(matches!(list, Err(SignedError::Unreadable(_))));
    }
}

proptest! {
    #[test]
    fn no_bytes_are_taken_for_signed(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (host, owner) = (HostKeys::generate(), FleetKeys::generate());
        prop_assert!(Roster::open(&bytes, &host.user_key(), &fleet(), &name()).is_err());
        prop_assert!(MemberList::open(&bytes, &owner.account_key(), &fleet()).is_err());
        let _ = unpacked(&bytes, MAX_JSON);
    }

    #[test]
    fn what_is_signed_and_odd_makes_no_panic(roster in nearly(ROSTER), list in nearly(LIST)) {
        let (host, owner) = (HostKeys::generate(), FleetKeys::generate());
        let whole = by_host(&host, &fleet(), &name(), &roster);
        let _ = Roster::open(&whole, &host.user_key(), &fleet(), &name());
        let empty = MemberList::new(fleet(), 1, Vec::new());
        let _ = RosterNumbers::default().read(&whole, &name(), &empty);
        let _ = MemberList::open(&by_fleet(&owner, &fleet(), &list), &owner.account_key(), &fleet());
    }

    #[test]
    fn what_is_sealed_with_an_odd_header_makes_no_panic(header in nearly(HEADER), rest in any::<[u8; 9]>()) {
        let (a, b) = (HostKeys::generate(), HostKeys::generate());
        let header = serde_json::to_vec(&header).expect("JSON");
        let length = u32::try_from(header.len()).expect("short").to_le_bytes();
        let open = [&length[..], &header, &rest].concat();
        let sealed = a.seal(&lz4_flex::block::compress_prepend_size(&open), &b.box_key());
        prop_assert!(Letter::open(&sealed, &b, &a.box_key()).is_err());
    }

    #[test]
    fn odd_settings_of_rights_give_nobody_a_right(settings in nearly(&["a", "*", "Box", ""])) {
        if let Ok(accepts) = serde_json::from_value::<Accepts>(settings.clone()) {
            let named = |right: &str| settings.to_string().contains(right);
            for right in RIGHTS.iter().filter(|right| accepts.of(&name()).contains(right)) {
                prop_assert!(named(right.as_str()), "{right:?} by {settings}");
            }
            let _ = accepts.odd_names().count();
        }
    }
}
