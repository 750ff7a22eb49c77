//! Quotes words for tmux's command parser, so that a text becomes exactly one argument of a line in control mode.
//!
//! The rules are those of tmux's own lexer from 3.2 on. The command line of a *spawned* tmux has other rules, which
//! this file does not serve.

use std::fmt::Write as _;

/// The text holds a NUL, which no argument of tmux can carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text holds a NUL character, which can't be passed to tmux")]
pub struct HasNul;

/// Makes a text one double-quoted argument. Nothing in it is then special to tmux's parser: no `;`, brace, variable or
/// `~`. The command that gets the argument may still expand formats in it.
///
/// # Errors
/// [`HasNul`]: tmux would silently cut the text there.
pub fn quote(text: &str) -> Result<String, HasNul> {
    let mut quoted = String::with_capacity(text.len() + text.len() / 8 + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\0' => return Err(HasNul),
            '"' | '\\' | '$' | '~' => {
                quoted.push('\\');
                quoted.push(c);
            }
            '\n' => quoted.push_str("\\n"),
            '\u{1}'..='\u{1f}' | '\u{7f}' => {
                // Writing to a string can't fail.
                let _ = write!(quoted, "\\{:03o}", u32::from(c));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    Ok(quoted)
}

/// Makes a word a literal inside a comparison of a format, such as `#{==:#{pane_current_command},WORD}`.
#[must_use]
pub fn in_comparison(word: &str) -> String {
    let mut literal = String::with_capacity(word.len());
    for c in word.chars() {
        if matches!(c, '#' | ',' | '}') {
            literal.push('#');
        }
        literal.push(c);
    }
    literal
}

/// Makes a text pass unchanged through `display-message`, which expands formats and `strftime` in it. A run of `#`
/// before `[` is left alone, as tmux itself leaves it.
#[must_use]
pub fn in_message(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '%' => literal.push_str("%%"),
            '#' => {
                let mut run = 1;
                while rest.next_if_eq(&'#').is_some() {
                    run += 1;
                }
                let times = if rest.peek() == Some(&'[') { run } else { 2 * run };
                literal.extend(std::iter::repeat_n('#', times));
            }
            _ => literal.push(c),
        }
    }
    literal
}

/// Whether a word is made of hexadecimal digits and hyphens only, so that it may be part of an option's name.
#[must_use]
pub fn is_plain_id(word: &str) -> bool {
    !word.is_empty() && word.len() <= 64 && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What tmux's lexer makes of a double-quoted argument.
    fn unquote(quoted: &str) -> String {
        let inner = quoted.strip_prefix('"').and_then(|q| q.strip_suffix('"')).expect("in double quotes");
        let (mut text, mut chars) = (String::new(), inner.chars());
        while let Some(c) = chars.next() {
            assert!(!matches!(c, '"' | '$' | '~'), "{c:?} stands bare in {quoted:?}");
            if c != '\\' {
                text.push(c);
                continue;
            }
            match chars.next().expect("something follows the backslash") {
                'n' => text.push('\n'),
                digit @ '0'..='7' => {
                    let digits: String = std::iter::once(digit).chain(chars.by_ref().take(2)).collect();
                    let code = u8::from_str_radix(&digits, 8).expect("three octal digits");
                    text.push(char::from(code));
                }
                other => text.push(other),
            }
        }
        text
    }

    proptest! {
        #[test]
        fn quoting_and_tmux_cancel_out(text in "[^\0]{0,60}") {
            let quoted = quote(&text).expect("no NUL");
            prop_assert!(quoted.chars().all(|c| !c.is_ascii_control()));
            prop_assert_eq!(unquote(&quoted), text);
        }
    }

    #[test]
    fn nul_is_refused_and_not_cut() {
        assert_eq!(quote("a\0b"), Err(HasNul));
    }

    #[test]
    fn words_in_formats_are_literal() {
        assert_eq!(in_comparison("a,b}c#{pid}"), "a#,b#}c##{pid#}");
        assert_eq!(in_message("50% of #{pid} ##[x] #"), "50%% of ##{pid} ##[x] ##");
    }

    #[test]
    fn ids_for_option_names_are_plain() {
        assert!(is_plain_id("6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa"));
        for bad in ["", "a b", "x,", "}", &"a".repeat(65)] {
            assert!(!is_plain_id(bad), "{bad:?}");
        }
    }
}
