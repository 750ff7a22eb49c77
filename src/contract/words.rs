//! Words of the contract: a closed list in what is written, and one more in what is read, for a word of another version.

use schemars::Schema;
use serde_json::Value;

/// An enum of which each variant has one word in JSON; the schema lists them. A word that is not among them is read as
/// `Other`, as it stands there; nothing said is the empty one.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$says:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $($(#[$says])* $variant,)+
            /// A word of another version; empty where none stands there.
            Other(String),
        }

        impl $name {
            /// The words, in their order.
            pub const WORDS: &[&str] = &[$($word),+];

            /// The contract's word.
            #[must_use]
            pub fn word(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)+
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                Ok(Self::from(String::deserialize(from)?.as_str()))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string", "enum": Self::WORDS})
            }
        }
    };
}
pub(super) use words;

/// Takes what a reader supposes of a field that is missing out of a schema: it describes what is written, and that has all.
pub(super) fn without_defaults(schema: &mut Schema) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flatten().filter_map(|(_, field)| field.as_object_mut()) {
        field.remove("default");
    }
}
