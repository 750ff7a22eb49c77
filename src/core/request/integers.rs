//! Finds values in a JSON text that could not be stored as they are: integers that parsing would change, and values
//! that are nested too deep.

/// Finds an integer of more than 64 bits in a JSON text: the parser would turn it into a rounded fraction without an
/// error.
pub(super) fn too_long(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at += text_length(&bytes[at..]),
            b'-' | b'0'..=b'9' => {
                let is_part = |byte: &&u8| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
                let number = &json[at..at + bytes[at..].iter().take_while(is_part).count()];
                let is_integer = !number.contains(['.', 'e', 'E']);
                if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                    return Some(number);
                }
                at += number.len();
            }
            _ => at += 1,
        }
    }
    None
}

/// How deep a JSON text is nested: 0 for a number or a text, 1 for a list of these.
pub(super) fn depth(json: &str) -> usize {
    let bytes = json.as_bytes();
    let (mut at, mut depth, mut deepest) = (0, 0usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at += text_length(&bytes[at..]) - 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        at += 1;
    }
    deepest
}

/// The length in bytes of the JSON string with which `bytes` begins, with its quotes.
fn text_length(bytes: &[u8]) -> usize {
    let mut length = 1;
    while let Some(byte) = bytes.get(length) {
        match byte {
            b'"' => return length + 1,
            b'\\' => length += 2,
            _ => length += 1,
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integers_that_would_be_changed_are_found() {
        let kept = r#"{"a":[18446744073709551615,-9223372036854775808,0,-0,1.5e300,123123123123123123123123123123.0],
            "123123123123123123123123123123":"é \" -99999999999999999999"}"#;
        assert_eq!(too_long(kept), None);
        for number in ["18446744073709551616", "-9223372036854775809", "123123123123123123123123123123"] {
            assert_eq!(too_long(&format!("{{\"a\":[1,{{\"b\":{number}}}]}}")), Some(number));
        }
    }

    #[test]
    fn the_depth_of_a_text_does_not_count_brackets_in_strings() {
        let texts =
            [("1", 0), (r#""[[\"[[""#, 0), ("[]", 1), (r#"{"a":["[{",{"b":1}],"c":[]}"#, 3), ("[[],[[]],[]]", 3)];
        for (json, expected) in texts {
            assert_eq!(depth(json), expected, "{json}");
        }
    }

    /// A row holds the fields of a request a few levels deeper than the request did, and serde_json reads at most 128
    /// levels.
    #[test]
    fn a_value_that_is_nested_too_deep_is_refused_by_its_field() {
        let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let asked = |levels: usize| {
            let json = format!(
                r#"{{"v":1,"kind":"work_create","type":"task","title":"t","metadata":{{"n":{}}}}}"#,
                nested(levels - 1)
            );
            super::super::read(json.as_bytes()).request
        };
        asked(64).expect("64 levels are taken");
        let refused = asked(65).expect_err("one more is not");
        assert_eq!((refused.status, refused.field.as_deref()), (400, Some("metadata")), "{refused:?}");
        assert_eq!(refused.message, "metadata: it is nested 65 levels deep; at most 64 are taken");
    }

    #[test]
    fn a_request_with_such_an_integer_is_refused_by_its_field() {
        let asked = br#"{"v":1,"kind":"work_create","type":"task","title":"t","metadata":{"n":123123123123123123123123123123}}"#;
        let refused = super::super::read(asked).request.expect_err("it would be changed");
        assert_eq!((refused.status, refused.field.as_deref()), (400, Some("metadata")), "{refused:?}");
        assert!(refused.message.contains("123123123123123123123123123123"), "{refused:?}");
    }
}
