//! What a composer says about a text of ours: whether it is there, whether it is alone there, how far it has come.

use crate::core::pane::Composer;
use crate::core::text::seen;

/// A text as far as it is seen, without its white space: how a composer's content is compared, for programs wrap, indent
/// and compose letters.
fn bare(text: &str) -> String {
    seen(text).chars().filter(|c| !c.is_whitespace() && is_drawn(*c)).collect()
}

/// Whether what a screen shows of a character is the same everywhere. tmux cuts joined pictures short and leaves out what is
/// no character; for what is private or unknown a program shows what it likes.
fn is_drawn(c: char) -> bool {
    let is_none = matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff) || ('\u{fdd0}'..='\u{fdef}').contains(&c);
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let is_picture = ('\u{1f000}'..='\u{1faff}').contains(&c);
    !is_none && !is_private && !is_picture && c != '\u{fffd}'
}

/// What a composer says about a text of ours that should stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// It is there to its end, and nothing else is seen.
    Shown,
    /// Its end is there, and something that is not of it: a person's words, or a part of it came in changed.
    Mixed,
    /// The composer can be read, and it is not there.
    Absent,
    Hidden,
}

/// Looks for the end of `text` (`tail`) in a composer, or for the one placeholder that stands for the whole of it. What it
/// shows must be the whole text; only where its beginning is out of sight may it be the end of the text.
pub(super) fn sight(composer: &Composer, text: &str, tail: &str) -> Sight {
    match composer {
        Composer::Text(shown) | Composer::Tail(shown) => {
            let (whole, tail) = (bare(text), bare(tail));
            let is_cut = matches!(composer, Composer::Tail(_));
            let shown = bare(shown);
            if !shown.contains(&tail) {
                Sight::Absent
            } else if shown.ends_with(&tail) && fits(&whole, &shown, is_cut) {
                Sight::Shown
            } else {
                Sight::Mixed
            }
        }
        Composer::Collapsed { size } if size.is_none_or(|size| is_size_of(size, text)) => Sight::Shown,
        Composer::Collapsed { .. } | Composer::Empty => Sight::Absent,
        Composer::Unreadable => Sight::Hidden,
    }
}

/// Whether what is shown is the whole, or its end where the composer is cut.
fn fits(whole: &str, shown: &str, is_cut: bool) -> bool {
    if is_cut { whole.ends_with(shown) } else { whole == shown }
}

/// Placeholders count lines or characters, with or without the first line or a last line end.
fn is_size_of(size: u64, text: &str) -> bool {
    let close = |count: usize| size.abs_diff(u64::try_from(count).unwrap_or(u64::MAX)) <= 1;
    close(text.lines().count()) || close(text.chars().count()) || close(text.len())
}

/// Whether a composer holds what has gone in `so_far` and nothing else, so that the next piece fits on.
pub(super) fn ends_with(composer: &Composer, so_far: &str) -> bool {
    const ENOUGH: usize = 16;
    let (shown, is_cut) = match composer {
        Composer::Text(shown) => (bare(shown), false),
        Composer::Tail(shown) => (bare(shown), true),
        Composer::Collapsed { .. } | Composer::Empty | Composer::Unreadable => return false,
    };
    let so_far = bare(so_far);
    fits(&so_far, &shown, is_cut) && shown.chars().count() >= so_far.chars().count().min(ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Composer {
        Composer::Text(text.to_owned())
    }

    fn end(text: &str) -> Composer {
        Composer::Tail(text.to_owned())
    }

    #[test]
    fn a_text_is_seen_by_its_tail_however_it_is_wrapped() {
        let (whole, tail) = ("Hello world\n(tasuki delivery 1.)", "(tasuki delivery 1.)");
        assert_eq!(sight(&text("Hello wor\n  ld (tasuki\n  delivery 1.)"), whole, tail), Sight::Shown);
        assert_eq!(sight(&end("world (tasuki delivery 1.)"), whole, tail), Sight::Shown, "scrolled");
        assert_eq!(sight(&end("mine world (tasuki delivery 1.)"), whole, tail), Sight::Mixed, "scrolled");
        assert_eq!(sight(&text("world (tasuki deliv"), whole, tail), Sight::Absent);
        assert_eq!(sight(&Composer::Empty, "x", "x"), Sight::Absent);
        assert_eq!(sight(&Composer::Unreadable, "x", "x"), Sight::Hidden);
    }

    #[test]
    fn a_text_is_seen_though_the_composer_writes_its_letters_otherwise() {
        let (whole, tail) = ("u\u{308}ber a\u{200b}b so\u{ad}ft\n(tasuki delivery 1.)", "(tasuki delivery 1.)");
        assert_eq!(sight(&text("\u{fc}ber ab soft (tasuki delivery 1.)"), whole, tail), Sight::Shown);
        assert!(ends_with(&text("\u{fc}ber ab so"), "u\u{308}ber a\u{200b}b so\u{ad}"));
    }

    /// As tmux 3.3 shows it: the last of the joined pictures is cut off, and what is no character is left out.
    #[test]
    fn a_text_is_seen_though_the_screen_does_not_show_all_of_it() {
        let family = "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}";
        let whole = format!("x \u{fffe} \u{e000} {family}\u{1f466} y\n(tasuki delivery 1.)");
        assert_eq!(sight(&text(&format!("x \u{e000} {family} y (tasuki delivery 1.)")), &whole, "1.)"), Sight::Shown);
    }

    #[test]
    fn what_else_stands_in_the_composer_is_seen() {
        let (whole, tail) = ("Hello world\n(tasuki delivery 1.)", "(tasuki delivery 1.)");
        for mixed in [
            "mine Hello world (tasuki delivery 1.)",
            "Hello mine world (tasuki delivery 1.)",
            "Hello world (tasuki delivery 1.) mine",
            "Hell world (tasuki delivery 1.)",
            "ello world (tasuki delivery 1.)",
            "world (tasuki delivery 1.)",
        ] {
            assert_eq!(sight(&text(mixed), whole, tail), Sight::Mixed, "{mixed}");
        }
    }

    #[test]
    fn a_placeholder_counts_only_with_the_right_size() {
        let five_lines = "a\nb\nc\nd\ne";
        for (size, sight_of_it) in
            [(None, Sight::Shown), (Some(4), Sight::Shown), (Some(5), Sight::Shown), (Some(40), Sight::Absent)]
        {
            assert_eq!(sight(&Composer::Collapsed { size }, five_lines, "e"), sight_of_it, "{size:?}");
        }
    }

    #[test]
    fn a_piece_fits_only_on_its_own_predecessor() {
        let so_far = "the first piece of a long text";
        assert!(ends_with(&end("piece of a\nlong text"), so_far));
        assert!(ends_with(&text(so_far), so_far));
        assert!(!ends_with(&text("he first piece of a long text"), so_far), "its beginning is in sight and not there");
        assert!(!ends_with(&end("text"), so_far), "too short to be sure");
        assert!(!ends_with(&text("piece of a long text!"), so_far));
        assert!(!ends_with(&text(""), so_far));
        assert!(!ends_with(&Composer::Empty, so_far));
        assert!(!ends_with(&Composer::Unreadable, so_far));
    }
}
