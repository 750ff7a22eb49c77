//! Texts that are typed into panes: which characters are stripped, the line before and the line after the body, and how
//! a receipt is compared with the text.

use super::id::DeliveryId;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::fmt::Write as _;
use unicode_normalization::UnicodeNormalization as _;

/// Longest text, in bytes, that is typed into a pane; a longer one goes into a file, and a short text names that file.
pub const MAX_TYPED_BYTES: usize = 64 * 1024;

/// The wire name of a refusal or verdict.
pub fn wire_name<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(wire_name)) => wire_name,
        _ => String::new(),
    }
}

/// Removes the characters that must never reach a pane: control characters (C1 and DEL too) except newline and tab,
/// byte order marks, and the marks that change the direction of writing. So `\r\n` becomes `\n`.
#[must_use]
pub fn sanitise(text: &str) -> String {
    // Nearly all texts are plain, and a list of a whole fleet has a hundred thousand of them.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().filter(|c| !is_forbidden(*c)).collect()
}

fn is_forbidden(c: char) -> bool {
    let control = (c.is_control() && c != '\n' && c != '\t') || c == '\u{feff}';
    let bidi = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    control || bidi
}

/// Bytes in hexadecimal, as the contract writes a hash.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The SHA-256 of some bytes, as the contract writes it.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The line of the text, from 1, in which the span begins.
#[must_use]
pub fn line_of(text: &str, span: Option<std::ops::Range<usize>>) -> usize {
    let start = span.map_or(0, |span| span.start).min(text.len());
    text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// A word for a shell's command line, quoted if necessary.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '+' | ':' | '@' | '%' | ',');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// A text from outside, as a message may quote it: without characters that drive a terminal, and cut after `max`
/// characters.
#[must_use]
pub fn quotable(text: &str, max: usize) -> String {
    let mut quoted = sanitise(text);
    if let Some((end, _)) = quoted.char_indices().nth(max) {
        quoted.truncate(end);
        quoted.push('…');
    }
    quoted
}

/// A key of a file from outside, as a message names it. A key of white space alone is shown as `""`.
#[must_use]
pub fn quotable_key(key: &str, max: usize) -> String {
    let shown = quotable(key, max);
    if shown.trim().is_empty() { "\"\"".to_owned() } else { shown }
}

/// JSON that drives no terminal when it is printed: characters of [`sanitise`]'s list that JSON itself allows are
/// written as escapes. The meaning stays the same, because in JSON such characters occur only inside strings.
#[must_use]
pub fn plain_json(json: &str) -> Cow<'_, str> {
    if !json.chars().any(is_forbidden) {
        return Cow::Borrowed(json);
    }
    let mut plain = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_forbidden(c) {
            // Writing to a String can't fail.
            let _ = write!(plain, "\\u{:04x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// The last line of every typed text. It identifies the text in a receipt. As the last line, it also shows that the
/// text arrived to its end.
#[must_use]
pub fn signature(id: &DeliveryId) -> String {
    format!("(tasuki delivery {id}.)")
}

/// Whether the text in a composer, read without its white space, ends with a signature.
#[must_use]
pub fn bears_signature(composer: &str) -> bool {
    composer.ends_with(".)") && composer.contains("(tasukidelivery")
}

/// Frames a body: tasuki's first line, the sanitised body, the signature. The first line must begin with a letter, so
/// that no CLI takes the text for a command.
#[must_use]
pub fn frame(first_line: &str, body: &str, id: &DeliveryId) -> String {
    let body = typed(body);
    format!("{}\n{}\n{}", typed(first_line), body.trim_matches('\n'), signature(id))
}

/// A text as it is typed: sanitised, and without soft hyphens. A soft hyphen only says where a line may be broken, but
/// terminals and programs disagree on its width, so a composer that holds one is drawn over other things.
fn typed(text: &str) -> String {
    sanitise(text).replace('\u{ad}', "")
}

/// A text with every run of white space made one blank: how two texts are compared, since CLIs wrap and re-indent.
#[must_use]
pub fn normalise(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !normal.is_empty() {
            normal.push(' ');
        }
        normal.push_str(word);
    }
    normal
}

/// A text as it is seen: letters composed (NFC), and without the characters that Unicode allows every program to leave
/// out. CLIs compose letters and drop such characters; a file name from macOS has decomposed letters.
#[must_use]
pub fn seen(text: &str) -> String {
    text.nfc().filter(|c| !is_ignorable(*c)).collect()
}

/// Whether a text holds only white space and invisible characters.
#[must_use]
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_ignorable(c))
}

/// Unicode's `Default_Ignorable_Code_Point`.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// How much of a typed text a submitted prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// The whole text and nothing else.
    Whole,
    /// The whole text inside a longer prompt: somebody's draft was submitted with it.
    Merged,
    /// Our last line, but not the whole text.
    Partial,
    Foreign,
}

/// Compares a prompt that a CLI reports with a text that was typed, both as [`seen`] and [`normalise`] return them. The
/// CLI's own wrapper was already removed from `prompt`.
#[must_use]
pub fn compare(expected: &str, id: &DeliveryId, prompt: &str) -> Match {
    let (prompt, expected) = (normalise(&seen(prompt)), normalise(&seen(expected)));
    if prompt == expected {
        Match::Whole
    } else if prompt.contains(&expected) {
        Match::Merged
    } else if prompt.contains(&signature(id)) {
        Match::Partial
    } else {
        Match::Foreign
    }
}

/// Whether a CLI would act on this text as its own command (`/`, `!`, `#`, `@`) instead of sending it to the model.
#[must_use]
pub fn begins_like_a_command(text: &str) -> bool {
    text.trim_start().starts_with(['/', '!', '#', '@'])
}

/// Makes a hint a whole sentence. Adds a capital letter, unless the hint begins with a path or a program's name. Adds a
/// full stop, unless the hint ends with a command or an example, because there the stop could be taken for a part of
/// it.
#[must_use]
pub fn sentence(hint: &str) -> String {
    const PROGRAMS: [&str; 3] = ["tasuki", "tmux", "gh"];
    let hint = hint.trim();
    let first = hint.split(char::is_whitespace).next().unwrap_or_default().trim_end_matches([',', ';', ':']);
    let is_word = first.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'\'') && !PROGRAMS.contains(&first);
    let mut letters = hint.chars();
    let mut said = match letters.next() {
        Some(letter) if is_word => letter.to_ascii_uppercase().to_string() + letters.as_str(),
        _ => hint.to_owned(),
    };
    let last = said.rsplit(". ").next().unwrap_or_default();
    let is_open = last.contains(": ") || last.contains('\n') || PROGRAMS.iter().any(|name| last.starts_with(name));
    if said.ends_with(char::is_alphanumeric) && !is_open {
        said.push('.');
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> DeliveryId {
        DeliveryId::from_bits(0x5f2a_9c81_d0e3)
    }

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        let nasty = "a\u{1b}[201~b\u{9b}c\u{7f}d\0e\r\nf\tg\u{202e}h\u{8}";
        assert_eq!(sanitise(nasty), "a[201~bcde\nf\tgh");
    }

    #[test]
    fn quoted_text_is_plain_and_short() {
        assert_eq!(quotable("a\u{1b}[31m\u{9b}b", 100), "a[31mb");
        assert_eq!(quotable("äöü", 2), "äö…");
        assert_eq!(quotable("äö", 2), "äö");
    }

    #[test]
    fn json_for_a_pane_keeps_its_meaning_without_control_characters() {
        let value = serde_json::json!({"a\u{9b}": "\u{1b}[2J\u{7f}\u{202e}\u{feff} ä\n"});
        let json = value.to_string();
        let plain = plain_json(&json);
        assert!(json.chars().any(is_forbidden) && !plain.chars().any(is_forbidden), "{plain:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&plain).expect("JSON"), value);
        assert_eq!(plain_json("{\"ä\":\t1}\n"), "{\"ä\":\t1}\n");
    }

    #[test]
    fn a_frame_begins_with_our_line_and_ends_with_our_sentence() {
        let text = frame("Your skill follows.", "# Skill\n- one\n", &id());
        assert_eq!(text, "Your skill follows.\n# Skill\n- one\n(tasuki delivery 5f2a9c81d0e3.)");
    }

    #[test]
    fn invisible_text_counts_as_blank() {
        assert!(is_blank("") && is_blank(" \n") && is_blank("\u{200b}") && is_blank("\u{feff}\u{2060} \u{ad}"));
        assert!(!is_blank("\u{200b}a"));
    }

    #[test]
    fn no_soft_hyphen_is_typed() {
        let text = frame("First\u{ad} line.", "so\u{ad}ft u\u{308} a\u{200b}b", &id());
        assert_eq!(text, "First line.\nsoft u\u{308} a\u{200b}b\n(tasuki delivery 5f2a9c81d0e3.)");
    }

    #[test]
    fn a_text_of_ours_is_known_in_a_composer() {
        assert!(bears_signature("#Skill(tasukidelivery5f2a9c81d0e3.)"));
        assert!(!bears_signature("#Skill(tasukidelivery5f2a9c81d0e3.)andmore"));
        assert!(!bears_signature("please(dot.)"));
    }

    #[test]
    fn receipts_are_told_apart() {
        let text = normalise(&frame("Hello there.", "one  two\nthree", &id()));
        assert_eq!(
            compare(&text, &id(), "Hello there.\n one two three\n\n(tasuki delivery 5f2a9c81d0e3.)"),
            Match::Whole
        );
        assert_eq!(compare(&text, &id(), &format!("my draft {text}")), Match::Merged);
        assert_eq!(compare(&text, &id(), "three (tasuki delivery 5f2a9c81d0e3.)"), Match::Partial);
        assert_eq!(compare(&text, &id(), "one two three"), Match::Foreign);
    }

    #[test]
    fn equal_letters_and_invisible_characters_compare_as_equal() {
        let text = normalise(&frame("Hello.", "u\u{308}ber so\u{ad}ft a\u{200b}b \u{2126} \u{2764}\u{fe0f}", &id()));
        let prompt = "Hello. \u{fc}ber soft ab \u{3a9} \u{2764} (tasuki delivery 5f2a9c81d0e3.)";
        assert_eq!(compare(&text, &id(), prompt), Match::Whole);
        assert_eq!(compare(&text, &id(), &prompt.replace("soft", "salt")), Match::Partial);
    }

    #[test]
    fn a_hint_is_a_whole_sentence_and_its_command_can_be_copied() {
        for (hint, said) in [
            ("look at the pane", "Look at the pane."),
            ("Ask again in a moment.", "Ask again in a moment."),
            ("claim it first: tasuki work claim ITEM", "Claim it first: tasuki work claim ITEM"),
            (
                "do it yourself; correct the file for the next time",
                "Do it yourself; correct the file for the next time.",
            ),
            ("tasuki persona new SLUG", "tasuki persona new SLUG"),
            ("data/rules.toml says which", "data/rules.toml says which."),
            ("`tasuki agents` lists them.", "`tasuki agents` lists them."),
            ("it is there. Look on: tasuki handoffs follow h1", "It is there. Look on: tasuki handoffs follow h1"),
            ("", ""),
        ] {
            assert_eq!(sentence(hint), said);
            assert_eq!(sentence(said), said, "it is one already");
        }
    }
}
