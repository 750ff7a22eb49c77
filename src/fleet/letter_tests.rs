//! Letters, and what is done to them on their way.

use super::super::keys::HostKeys;
use super::*;
use proptest::prelude::*;
use sha2::{Digest, Sha256};
use uuid::Uuid;

const MOST: usize = 2 << 20;

fn header(from: &str, to: &str) -> Header {
    let home = || HomeId(Uuid::new_v4());
    let name = |text: &str| text.parse().expect("a name");
    let ends = Ends { from: name(from), to: name(to), from_home: home(), to_home: home() };
    let age = Age { sent_at: "2026-11-25T12:00:00.000Z".to_owned(), age_ms: 1_200, ttl_ms: 600_000 };
    Header::new("home".parse().expect("a name"), What::Req, "r-1".parse().expect("an id"), ends, age)
}

fn part(name: &str, bytes: &[u8]) -> LetterPart {
    LetterPart { name: name.to_owned(), bytes: bytes.to_owned() }
}

fn letter(parts: Vec<LetterPart>) -> Letter {
    Letter { header: header("a", "b"), parts }
}

#[test]
fn a_letter_arrives_as_it_was_sent() {
    let (a, b) = (HostKeys::generate(), HostKeys::generate());
    let sent = letter(vec![part("request", br#"{"v":1,"kind":"agent_send"}"#), part("notes.md", b"# Notes\n")]);
    let sealed = sent.clone().seal(&a, &b.box_key(), MOST).expect("sealed");
    let got = Letter::open(&sealed, &b, &a.box_key()).expect("opened");
    assert_eq!(got.parts, sent.parts);
    assert_eq!((&got.header.from, &got.header.to, got.header.age_ms), (&sent.header.from, &sent.header.to, 1_200));
    assert_eq!((got.header.from_home, got.header.to_home), (sent.header.from_home, sent.header.to_home));
}

#[test]
fn nobody_else_opens_it_and_no_byte_of_it_can_be_changed() {
    let (a, b, m) = (HostKeys::generate(), HostKeys::generate(), HostKeys::generate());
    let secret = b"canary-7f3a9c";
    let sealed = letter(vec![part("request", secret)]).seal(&a, &b.box_key(), MOST).expect("sealed");
    assert!(!sealed.windows(secret.len()).any(|window| window == secret), "the text is in clear");
    let other = Err(LetterError::NotAuthentic);
    assert_eq!(Letter::open(&sealed, &m, &a.box_key()), other, "another receiver");
    assert_eq!(Letter::open(&sealed, &b, &m.box_key()), other, "another sender");
    for at in 0..sealed.len() {
        let mut altered = sealed.clone();
        altered[at] ^= 0x40;
        assert_eq!(Letter::open(&altered, &b, &a.box_key()), other, "byte {at}");
        assert_eq!(Letter::open(&sealed[..at], &b, &a.box_key()), other, "the first {at} bytes");
    }
}

/// The seal does not tell who of the two has made the letter: the header does.
#[test]
fn a_reflected_letter_opens_and_names_its_own_sender() {
    let (a, b) = (HostKeys::generate(), HostKeys::generate());
    let sealed = letter(vec![part("request", b"{}")]).seal(&a, &b.box_key(), MOST).expect("sealed");
    let back = Letter::open(&sealed, &a, &b.box_key()).expect("the seal is symmetric");
    assert_eq!((back.header.from.as_str(), back.header.to.as_str()), ("a", "b"));
}

#[test]
fn what_is_too_large_is_refused_with_both_figures() {
    let (a, b) = (HostKeys::generate(), HostKeys::generate());
    // What can't be compressed: its own digests, one after the other.
    let mut noise = vec![0_u8; 64];
    while noise.len() < 300_000 {
        let next = Sha256::digest(&noise[noise.len() - 64..]);
        noise.extend_from_slice(&next);
    }
    let sealed = letter(vec![part("request", &noise)]).seal(&a, &b.box_key(), 200_000);
    let Err(LetterError::TooLarge { bytes, most }) = sealed else { panic!("{sealed:?}") };
    assert!(bytes > 300_000 && most == 200_000);
    let huge = letter(vec![part("request", &vec![0; MAX_OPEN])]).seal(&a, &b.box_key(), usize::MAX);
    assert!(matches!(huge, Err(LetterError::TooLarge { most: MAX_OPEN, .. })), "{huge:?}");
}

#[test]
fn only_plain_names_and_a_few_parts_are_sent() {
    let (a, b) = (HostKeys::generate(), HostKeys::generate());
    let sealed = |parts: Vec<LetterPart>| letter(parts).seal(&a, &b.box_key(), MOST);
    for bad in ["", ".", "..", ".hidden", "a/b", "../x", "a\0", "é", &"n".repeat(129)] {
        let refused = sealed(vec![part("request", b"{}"), part(bad, b"x")]);
        assert!(matches!(refused, Err(LetterError::BadParts(_))), "{bad:?}: {refused:?}");
    }
    assert!(matches!(sealed(Vec::new()), Err(LetterError::BadParts(_))));
    assert!(matches!(sealed(vec![part("x", b"1"), part("x", b"2")]), Err(LetterError::BadParts(_))));
    let many = (0..=MOST_PARTS).map(|number| part(&format!("p{number}"), b"")).collect();
    assert!(matches!(sealed(many), Err(LetterError::BadParts(_))));
}

/// A member can seal whatever it likes: what is rightly sealed can still be anything.
#[test]
fn what_is_rightly_sealed_and_no_letter_is_refused_without_harm() {
    let (a, b) = (HostKeys::generate(), HostKeys::generate());
    let bomb = [&u32::MAX.to_le_bytes()[..], &[0xf0; 64]].concat();
    let long_header = lz4_flex::block::compress_prepend_size(&[&u32::MAX.to_le_bytes()[..], b"{}"].concat());
    let no_json = lz4_flex::block::compress_prepend_size(&[&2_u32.to_le_bytes()[..], b"no"].concat());
    for packed in [Vec::new(), vec![1], bomb, long_header, no_json] {
        let sealed = a.seal(&packed, &b.box_key());
        let got = Letter::open(&sealed, &b, &a.box_key());
        assert!(matches!(got, Err(LetterError::NoLetter(_))), "{got:?}");
    }
    let mut lying = header("a", "b");
    for (name, bytes, sha256) in [("x", u64::MAX, "00"), ("x", 1, "00"), ("../x", 0, ""), ("x", 0, "")] {
        lying.parts = vec![PartHead { name: name.to_owned(), bytes, sha256: sha256.to_owned() }];
        let json = serde_json::to_vec(&lying).expect("JSON");
        let open = [&u32::try_from(json.len()).expect("short").to_le_bytes()[..], &json, b"y"].concat();
        let sealed = a.seal(&lz4_flex::block::compress_prepend_size(&open), &b.box_key());
        let got = Letter::open(&sealed, &b, &a.box_key());
        assert!(matches!(got, Err(LetterError::NoLetter(_))), "{name} {bytes}: {got:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), is_sealed in any::<bool>()) {
        let (a, b) = (HostKeys::generate(), HostKeys::generate());
        let bytes = if is_sealed { a.seal(&bytes, &b.box_key()) } else { bytes };
        prop_assert!(Letter::open(&bytes, &b, &a.box_key()).is_err());
    }
}
