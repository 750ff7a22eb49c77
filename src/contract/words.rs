//! The closed lists of the contract. Each list is one enum, which the core matches on, with one wire name for each
//! variant.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;

/// A closed list of wire names.
pub trait Words: Copy + 'static {
    /// All of them, in their order.
    const ALL: &'static [Self];

    /// The wire name: how JSON and TOML spell it.
    fn as_str(self) -> &'static str;
}

/// A value from a closed list. Another version of tasuki may write a word that is not in the list: it is kept as it was
/// read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word<T> {
    Known(T),
    /// A word of another version; empty where the field is missing.
    Other(String),
}

impl<T: Words> Word<T> {
    /// The word as it was read.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Word::Known(known) => known.as_str(),
            Word::Other(word) => word,
        }
    }

    /// The variant, if the list has this word.
    #[must_use]
    pub fn known(&self) -> Option<T> {
        match self {
            Word::Known(known) => Some(*known),
            Word::Other(_) => None,
        }
    }
}

impl<T> Default for Word<T> {
    fn default() -> Self {
        Word::Other(String::new())
    }
}

impl<T: Words> From<T> for Word<T> {
    fn from(known: T) -> Self {
        Word::Known(known)
    }
}

impl<T: Words> From<&str> for Word<T> {
    fn from(word: &str) -> Self {
        let known = T::ALL.iter().find(|known| known.as_str() == word);
        known.map_or_else(|| Word::Other(word.to_owned()), |known| Word::Known(*known))
    }
}

impl<T: Words + PartialEq> PartialEq<T> for Word<T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(*other)
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(from)?.as_str()))
    }
}

/// The schema describes what is written: a word of the list.
impl<T: JsonSchema> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Makes a closed list of words. A list that derives its schema describes each word there; a list marked `listed` only
/// names them.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$says:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$says])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All of them, in their order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The wire name: how JSON and TOML spell it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl $crate::contract::words::Words for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }
    };
    (listed $(#[$about:meta])* $name:ident { $($list:tt)+ }) => {
        $crate::contract::words::words! { $(#[$about])* $name { $($list)+ } }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let words: Vec<&str> = Self::ALL.iter().map(|known| known.as_str()).collect();
                schemars::json_schema!({"type": "string", "enum": words})
            }
        }
    };
}
pub(super) use words;

/// A text field that may be null or missing: `None` if it is missing, `Some(None)` if it is null.
pub type MaybeNull = Option<Option<String>>;

/// A field whose text is known, so that it is never written as null. For a text that may be missing: [`maybe`].
#[must_use]
pub fn known(text: &impl ToString) -> MaybeNull {
    Some(Some(text.to_string()))
}

/// A field with this text, or with null if there is none. For a text that is never missing: [`known`].
#[must_use]
pub fn maybe(text: Option<impl ToString>) -> MaybeNull {
    Some(text.map(|text| text.to_string()))
}

/// Reads a field that is present, even if its value is null.
pub(super) fn told<'de, D: Deserializer<'de>>(from: D) -> Result<MaybeNull, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Puts null first among the values of a field that may be null.
pub(super) fn null_first(schema: &mut Schema) {
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.rotate_right(1);
    }
}

/// Removes the defaults of missing fields from a schema: it describes what tasuki writes, and tasuki writes every
/// field.
pub(super) fn without_defaults(schema: &mut Schema) {
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flatten().filter_map(|(_, field)| field.as_object_mut()) {
        field.remove("default");
    }
}
