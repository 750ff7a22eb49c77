//! Finds integers that parsing would change.

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

/// The bytes of a text, with its quotes.
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
    fn a_request_with_such_an_integer_is_refused_by_its_field() {
        let asked = br#"{"v":1,"kind":"work_create","type":"task","title":"t","metadata":{"n":123123123123123123123123123123}}"#;
        let refused = super::super::read(asked).request.expect_err("it would be changed");
        assert_eq!((refused.status, refused.field.as_deref()), (400, Some("metadata")), "{refused:?}");
        assert!(refused.message.contains("123123123123123123123123123123"), "{refused:?}");
    }
}
