//! JSON as other programs write it. JavaScript may cut a text between the two halves of an emoji and write the
//! remaining half as an escape, which is not a valid character. The rest of such a document is still read.

use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// Replaces half a character, as an escape of the same length.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// Parses JSON, with U+FFFD for each escape that is half a character.
///
/// # Errors
/// It is not JSON, or not of that shape.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).or_else(|error| match with_valid_surrogates(bytes) {
        Cow::Owned(with_valid_surrogates) => serde_json::from_slice(&with_valid_surrogates),
        Cow::Borrowed(_) => Err(error),
    })
}

/// The same bytes, with every lone surrogate replaced.
fn with_valid_surrogates(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut valid = Cow::Borrowed(bytes);
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        match (unit(bytes, at), unit(bytes, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => at += 12,
            (Some(0xd800..0xe000), _) => {
                valid.to_mut()[at..at + 6].copy_from_slice(REPLACEMENT);
                at += 6;
            }
            // A backslash and what it escapes, which may be another one.
            _ => at = (at + 2).min(bytes.len()),
        }
    }
    valid
}

/// The number of the `\uXXXX` at that place.
fn unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn half_a_character_is_replaced_and_nothing_else_is_touched() {
        let table = [
            (r#""x \ud83d""#, "x \u{fffd}"),
            (r#""\uDE00 x""#, "\u{fffd} x"),
            (r#""\ud83d\ud83d\ude00""#, "\u{fffd}\u{1f600}"),
            (r#""\ud83dx\ude00""#, "\u{fffd}x\u{fffd}"),
            (r#""\\ud83d \ud83d""#, "\\ud83d \u{fffd}"),
            (r#""\ud83d\n""#, "\u{fffd}\n"),
            (r#""\ud83d\\""#, "\u{fffd}\\"),
        ];
        for (json, text) in table {
            assert_eq!(read::<Value>(json.as_bytes()).expect(json), text, "{json}");
        }
        for wrong in [r#""\ud83d"#, r#""\ud8"#, r#"{"\ud83d":}"#, "\\", r#""\u+123""#] {
            assert!(read::<Value>(wrong.as_bytes()).is_err(), "{wrong}");
        }
        assert!(matches!(with_valid_surrogates(br#""\ud83d\ude00 \\ud83d""#), Cow::Borrowed(_)));
    }
}
