//! Names of a fleet: several homes on several hosts that send each other requests. A host's name is its address. The id
//! of its home is its identity: a home that is set up again under an old host name is a different home.

use super::id::{InvalidId, is_slug, text_id, uuid_id};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

uuid_id!(
    /// One home in a fleet, for as long as it keeps its keys.
    HomeId,
    "home id"
);
text_id!(
    /// The name of a host, which is a part of NATS subjects and of file names.
    HostName,
    "host name",
    "1 to 32 of a-z, 0-9 and -, beginning with a letter or digit",
    |text| is_slug(text, 32)
);
text_id!(
    /// The name of a fleet, which is a part of the names of JetStream's streams.
    FleetName,
    "fleet name",
    "1 to 16 of a-z and 0-9",
    |text| {
        let bytes = text.as_bytes();
        (1..=16).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    }
);
text_id!(
    /// The id of a request to another host: the name of its file without `.json`. On the other host, the request's id
    /// is `fleet.<host>.<id>`, with the name of the host that asks.
    FleetId,
    "id of a request to another host",
    "1 to 64 of A-Z a-z 0-9 _ -",
    |text| {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
        (1..=64).contains(&text.len()) && text.bytes().all(is_word)
    }
);

#[cfg(test)]
mod tests {
    use super::super::id::RequestId;
    use super::*;

    #[test]
    fn names_refuse_everything_that_could_be_a_path_or_another_subject() {
        for bad in ["", "-a", "A", "a/b", "..", "a.b", "*", ">", "_fleet", "a\0", "é", &"a".repeat(33)] {
            assert!(bad.parse::<HostName>().is_err(), "{bad:?}");
        }
        assert!("box-1".parse::<HostName>().is_ok());
        for bad in ["", "a-b", "A", "a.b", &"a".repeat(17)] {
            assert!(bad.parse::<FleetName>().is_err(), "{bad:?}");
        }
        for bad in ["", "a.b", "a/b", &"a".repeat(65)] {
            assert!(bad.parse::<FleetId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_longest_names_make_a_request_id_that_the_spool_takes() {
        let (host, id) = ("h".repeat(32), "i".repeat(64));
        assert!(format!("fleet.{host}.{id}").parse::<RequestId>().is_ok());
    }
}
