//! The identifiers of the contract. Each is a type that only a checked constructor makes, so no unchecked text becomes
//! part of a path, a pane target or a log line.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use uuid::Uuid;

/// Why a text is not an identifier. The text itself is not repeated: it came from outside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a valid {what}: it must be {rule}")]
pub struct InvalidId {
    /// What the text was meant to be, in the operator's words.
    pub what: &'static str,
    pub rule: &'static str,
}

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text)
                    .map($name)
                    .map_err(|_| InvalidId { what: $what, rule: "a UUID such as 6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa" })
            }
        }

        impl $name {
            /// The first 8 hexadecimal digits, as in file names.
            #[must_use]
            pub fn short(&self) -> String {
                self.to_string().chars().take(8).collect()
            }
        }
    };
}

uuid_id!(
    /// One agent, for its whole life. A person may change its CLI's own session id meanwhile, as with `/clear`.
    AgentId,
    "agent id"
);
uuid_id!(
    /// One handoff.
    HandoffId,
    "handoff id"
);
uuid_id!(
    /// One work item; also the name of its file in `view/work/`.
    ItemId,
    "work item id"
);
uuid_id!(
    /// One failure that was told to the operator; also the name of its file in `errors/`.
    ErrorId,
    "error id"
);

/// One text typed into one pane: 48 random bits, shown as 12 hexadecimal digits. Never used for a second text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeliveryId(String);

impl DeliveryId {
    /// How many hexadecimal digits an id has.
    pub const DIGITS: usize = 12;

    /// Makes an id from random bits; the lower 48 are used.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        DeliveryId(format!("{:012x}", bits & 0xffff_ffff_ffff))
    }

    /// The id as its 12 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DeliveryId {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        let ok = text.len() == Self::DIGITS && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if ok {
            Ok(DeliveryId(text))
        } else {
            Err(InvalidId { what: "delivery id", rule: "12 lower-case hexadecimal digits" })
        }
    }
}

impl From<DeliveryId> for String {
    fn from(id: DeliveryId) -> String {
        id.0
    }
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $ok:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text, which has passed the rule.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                let ok: fn(&str) -> bool = $ok;
                if ok(&text) { Ok($name(text)) } else { Err(InvalidId { what: $what, rule: $rule }) }
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// A persona's folder name.
    Slug,
    "persona slug",
    "1 to 64 of a-z, 0-9 and -, beginning with a letter or digit",
    |text| is_slug(text, 64)
);
text_id!(
    /// The name of a request file without `.json`.
    RequestId,
    "request id",
    "1 to 128 of A-Z a-z 0-9 . _ -, not beginning with a dot",
    is_file_name
);

/// Whether a text is 1 to `most` of a-z, 0-9 and -, beginning with a letter or digit.
pub(super) fn is_slug(text: &str, most: usize) -> bool {
    let bytes = text.as_bytes();
    let word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !bytes.is_empty() && bytes.len() <= most && word(&bytes[0]) && bytes.iter().all(|b| word(b) || *b == b'-')
}

/// Whether a text from outside is safe as a file name: 1 to 128 of A-Z a-z 0-9 . _ -, not beginning with a dot.
pub(crate) fn is_file_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= 128
        && bytes[0] != b'.'
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

pub(crate) use text_id;
pub(super) use uuid_id;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_refuse_everything_that_could_be_a_path() {
        for bad in ["", "-a", "A", "a/b", "..", "a.b", "a\0", "é", &"a".repeat(65)] {
            assert!(bad.parse::<Slug>().is_err(), "{bad:?}");
        }
        for good in ["a", "developer-con-1", "0", &"a".repeat(64)] {
            assert_eq!(good.parse::<Slug>().expect("legal slug").as_str(), good);
        }
    }

    #[test]
    fn request_ids_follow_the_contract() {
        for bad in ["", ".a", "a/b", "a b", "é", &"a".repeat(129)] {
            assert!(bad.parse::<RequestId>().is_err(), "{bad:?}");
        }
        for good in ["a", "A.b_c-9", &"x".repeat(128)] {
            assert!(good.parse::<RequestId>().is_ok(), "{good:?}");
        }
    }

    #[test]
    fn delivery_ids_are_twelve_hex_digits() {
        assert_eq!(DeliveryId::from_bits(0xffff_0000_0000_0001).as_str(), "000000000001");
        assert!(DeliveryId::try_from("5F2a9c81d0e3".to_owned()).is_err());
        assert!(DeliveryId::try_from("5f2a9c81d0e3".to_owned()).is_ok());
    }
}
