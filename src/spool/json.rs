//! Checks whether a file is completely written. A JSON object shows this by itself: no proper prefix of it is an
//! object.

use serde::de::IgnoredAny;

/// Why bytes are not one whole JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flaw {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) line: Option<u64>,
    pub(super) column: Option<u64>,
}

impl Flaw {
    fn at(code: &'static str, message: impl Into<String>, bytes: &[u8], offset: usize) -> Flaw {
        let before = &bytes[..offset.min(bytes.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() as u64 + 1;
        Flaw { code, message: message.into(), line: Some(line), column: Some(column) }
    }
}

/// Checks that the bytes are one JSON object and nothing else but white space.
pub(super) fn check_object(bytes: &[u8]) -> Result<(), Flaw> {
    let Some(first) = bytes.iter().position(|byte| !byte.is_ascii_whitespace()) else {
        return Err(Flaw::at("incomplete", "the file is empty", bytes, bytes.len()));
    };
    if let Err(error) = std::str::from_utf8(bytes) {
        let code = if error.error_len().is_none() { "incomplete" } else { "not_json" };
        return Err(Flaw::at(code, "the file is not UTF-8", bytes, error.valid_up_to()));
    }
    // serde reads `IgnoredAny` without recursion and stores nothing, so neither depth nor size does harm.
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(bytes) {
        let code = if error.is_eof() { "incomplete" } else { "not_json" };
        let place = (error.line() as u64, error.column() as u64);
        let message = if error.is_eof() { "the JSON is not complete" } else { "the file is not JSON" };
        return Err(Flaw { code, message: message.to_owned(), line: Some(place.0), column: Some(place.1) });
    }
    if bytes[first] != b'{' {
        return Err(Flaw::at("not_object", "the file must hold one JSON object", bytes, first));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(bytes: &[u8]) -> &'static str {
        check_object(bytes).map_or_else(|flaw| flaw.code, |()| "whole")
    }

    #[test]
    fn only_one_whole_object_counts() {
        assert_eq!(code(b"{}"), "whole");
        assert_eq!(code(b" \n{\"a\":[1,{}]}\r\n"), "whole");
        assert_eq!(code(b""), "incomplete");
        assert_eq!(code(b" \n"), "incomplete");
        assert_eq!(code(b"{\"a\":"), "incomplete");
        assert_eq!(code(b"{\"a\":\"\xc3"), "incomplete");
        assert_eq!(code(b"{\"a\":\"\xff\"}"), "not_json");
        assert_eq!(code(b"{} {}"), "not_json");
        assert_eq!(code(b"{}\0"), "not_json");
        assert_eq!(code(b"\0\0\0\0"), "not_json");
        assert_eq!(code(b"[]"), "not_object");
        assert_eq!(code(b"12"), "not_object");
        assert_eq!(code(b"null"), "not_object");
    }

    #[test]
    fn a_flaw_says_where_it_is() {
        let flaw = check_object(b"{\n  \"a\": nope\n}").expect_err("not JSON");
        assert_eq!((flaw.line, flaw.code), (Some(2), "not_json"));
        assert!(flaw.column.is_some_and(|column| column > 6));
        let flaw = check_object(b"{\n\"\xff").expect_err("not UTF-8");
        assert_eq!((flaw.line, flaw.column), (Some(2), Some(2)));
    }

    #[test]
    fn a_deeply_nested_file_is_checked_without_a_crash() {
        let deep = "[".repeat(1_000_000);
        assert_eq!(code(deep.as_bytes()), "incomplete");
    }

    proptest! {
        #[test]
        fn no_part_of_an_object_is_taken_for_the_whole(cut in 0usize..64) {
            let whole = br#"{"v":1,"kind":"handoff","reason":"caf\u00e9 {}","n":[1,2,{"x":null}]}"#;
            let cut = cut.min(whole.len() - 1);
            prop_assert_ne!(code(&whole[..cut]), "whole");
        }

        #[test]
        fn any_bytes_are_judged_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = check_object(&bytes);
        }
    }
}
