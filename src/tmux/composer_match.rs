//! Compares a composer with a text of ours: whether the text is in it, whether anything else is in it, and how much of
//! the text has arrived.

use super::plan::Input;
use crate::core::pane::ComposerContent;
use crate::core::text::seen;
use std::collections::HashSet;
use unicode_normalization::char::is_combining_mark;

/// The visible characters of a text without white space. Texts are compared in this form, because agents wrap and
/// indent lines, and write accented letters as one character or as two.
fn bare(text: &str) -> String {
    let bare = seen(text).chars().filter(|c| !c.is_whitespace() && is_drawn(*c)).collect();
    without_piles(bare)
}

/// Takes off the marks of each letter that has many of them: tmux draws only as many as a cell holds.
fn without_piles(text: String) -> String {
    const MOST: usize = 3;
    if text.is_ascii() {
        return text;
    }
    let chars: Vec<char> = text.chars().collect();
    let parts = chars.chunk_by(|_, next| is_combining_mark(*next));
    // The first character is the letter, unless the text begins with a mark.
    parts.flat_map(|part| if part.len() > 1 + MOST { &part[..1] } else { part }).collect()
}

/// Whether every terminal shows a character the same way. tmux shortens joined emoji and leaves out invalid characters;
/// programs differ in how they show private or unknown characters.
fn is_drawn(c: char) -> bool {
    let is_none = matches!(u32::from(c) & 0xffff, 0xfffe | 0xffff) || ('\u{fdd0}'..='\u{fdef}').contains(&c);
    let is_private = matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..);
    let is_picture = ('\u{1f000}'..='\u{1faff}').contains(&c);
    !is_none && !is_private && !is_picture && c != '\u{fffd}'
}

/// What a composer shows of the text that tasuki typed into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ComposerMatch {
    /// The whole text is there to its end, and nothing else.
    Shown,
    /// The end of the text is there, but the rest differs: a person has typed too, or part of the text was lost or
    /// changed.
    Mixed,
    /// The composer can be read, and the text is not in it.
    Absent,
    /// The composer can't be read.
    Hidden,
}

/// Searches a composer for the end of `text` (`tail`), or for the label of a collapsed paste that represents the whole
/// of it. Such a label is somebody else's if the text was not pasted but typed. The composer must show the whole text.
/// If the beginning has scrolled out of sight, the visible rest must be an end of the text.
pub(super) fn match_composer(composer: &ComposerContent, text: &str, tail: &str, input: Input) -> ComposerMatch {
    match composer {
        ComposerContent::Text(shown) | ComposerContent::Tail(shown) => {
            let (whole, tail) = (bare(text), bare(tail));
            let is_cut = matches!(composer, ComposerContent::Tail(_));
            let shown = bare(shown);
            if !shown.contains(&tail) {
                ComposerMatch::Absent
            } else if shown.ends_with(&tail) && fits(&whole, &shown, is_cut) {
                ComposerMatch::Shown
            } else {
                ComposerMatch::Mixed
            }
        }
        ComposerContent::Collapsed { size }
            if input == Input::Bracketed && size.is_none_or(|size| is_size_of(size, text)) =>
        {
            ComposerMatch::Shown
        }
        ComposerContent::Collapsed { .. } | ComposerContent::Empty => ComposerMatch::Absent,
        ComposerContent::Unreadable => ComposerMatch::Hidden,
    }
}

/// Whether `shown` is the whole text or, if the composer's beginning is out of sight, an end of it.
fn fits(whole: &str, shown: &str, is_cut: bool) -> bool {
    let is_plain = if is_cut { whole.ends_with(shown) } else { whole == shown };
    is_plain || fits_without_unknown(whole, shown, is_cut)
}

/// The same, if tmux leaves out the characters that its C library does not know, such as rare ideographs in names. Each
/// of these is nowhere in sight, and they are few: one for seven others at most.
fn fits_without_unknown(whole: &str, shown: &str, is_cut: bool) -> bool {
    const OTHERS: usize = 7;
    let in_sight: HashSet<char> = shown.chars().collect();
    let may_miss = |c: char| !c.is_ascii() && !in_sight.contains(&c);
    let (mut rest, mut missing) = (whole.chars().rev(), 0);
    for seen in shown.chars().rev() {
        loop {
            match rest.next() {
                Some(c) if c == seen => break,
                Some(c) if may_miss(c) => missing += 1,
                _ => return false,
            }
        }
    }
    for hidden in rest.filter(|_| !is_cut) {
        if !may_miss(hidden) {
            return false;
        }
        missing += 1;
    }
    missing * OTHERS <= shown.chars().count()
}

/// Whether the number in the label of a collapsed paste fits the text. CLIs count lines or characters, with or without
/// the first line or a last line end. To programs in JavaScript an emoji is two characters.
fn is_size_of(size: u64, text: &str) -> bool {
    let close = |count: usize| size.abs_diff(u64::try_from(count).unwrap_or(u64::MAX)) <= 1;
    let counts = [text.lines().count(), text.chars().count(), text.encode_utf16().count(), text.len()];
    counts.into_iter().any(close)
}

/// Whether a composer holds exactly the pieces that were typed until now (`so_far`), so that the next piece may follow.
pub(super) fn holds_so_far(composer: &ComposerContent, so_far: &str) -> bool {
    // A shorter end could be the end of another text.
    const ENOUGH: usize = 16;
    let (shown, is_cut) = match composer {
        ComposerContent::Text(shown) => (bare(shown), false),
        ComposerContent::Tail(shown) => (bare(shown), true),
        ComposerContent::Collapsed { .. } | ComposerContent::Empty | ComposerContent::Unreadable => return false,
    };
    let so_far = bare(so_far);
    fits(&so_far, &shown, is_cut) && shown.chars().count() >= so_far.chars().count().min(ENOUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For a text that was pasted.
    fn match_composer(composer: &ComposerContent, text: &str, tail: &str) -> ComposerMatch {
        super::match_composer(composer, text, tail, Input::Bracketed)
    }

    fn text(text: &str) -> ComposerContent {
        ComposerContent::Text(text.to_owned())
    }

    fn end(text: &str) -> ComposerContent {
        ComposerContent::Tail(text.to_owned())
    }

    #[test]
    fn a_text_is_seen_by_its_tail_however_it_is_wrapped() {
        let (whole, tail) = ("Hello world\n(tasuki delivery 1.)", "(tasuki delivery 1.)");
        assert_eq!(match_composer(&text("Hello wor\n  ld (tasuki\n  delivery 1.)"), whole, tail), ComposerMatch::Shown);
        assert_eq!(match_composer(&end("world (tasuki delivery 1.)"), whole, tail), ComposerMatch::Shown, "scrolled");
        assert_eq!(
            match_composer(&end("mine world (tasuki delivery 1.)"), whole, tail),
            ComposerMatch::Mixed,
            "scrolled"
        );
        assert_eq!(match_composer(&text("world (tasuki deliv"), whole, tail), ComposerMatch::Absent);
        assert_eq!(match_composer(&ComposerContent::Empty, "x", "x"), ComposerMatch::Absent);
        assert_eq!(match_composer(&ComposerContent::Unreadable, "x", "x"), ComposerMatch::Hidden);
    }

    #[test]
    fn a_text_is_seen_although_the_composer_writes_its_letters_differently() {
        let (whole, tail) = ("u\u{308}ber a\u{200b}b so\u{ad}ft\n(tasuki delivery 1.)", "(tasuki delivery 1.)");
        assert_eq!(match_composer(&text("\u{fc}ber ab soft (tasuki delivery 1.)"), whole, tail), ComposerMatch::Shown);
        assert!(holds_so_far(&text("\u{fc}ber ab so"), "u\u{308}ber a\u{200b}b so\u{ad}"));
    }

    /// As tmux 3.3 shows it: the last of the joined pictures is cut off, and invalid characters are left out.
    #[test]
    fn a_text_is_seen_although_the_screen_does_not_show_all_of_it() {
        let family = "\u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}";
        let whole = format!("x \u{fffe} \u{e000} {family}\u{1f466} y\n(tasuki delivery 1.)");
        assert_eq!(
            match_composer(&text(&format!("x \u{e000} {family} y (tasuki delivery 1.)")), &whole, "1.)"),
            ComposerMatch::Shown
        );
    }

    /// As tmux 3.3 shows it, with the C library of Debian 12: it leaves out the characters that the library does not
    /// know, and marks for which a cell has no room.
    #[test]
    fn a_text_is_seen_although_tmux_leaves_out_characters_that_it_does_not_know() {
        let end = "(tasuki delivery 5f2a9c81d0e3.)";
        let whole = format!("new \u{1cc00} \u{1c8a} \u{2ebf0} x\n{end}");
        let sight_of = |shown: String| match_composer(&text(&shown), &whole, end);
        assert_eq!(sight_of(format!("new x {end}")), ComposerMatch::Shown);
        assert_eq!(
            sight_of(format!("new \u{2ebf0} x {end}")),
            ComposerMatch::Shown,
            "a library that knows one of them"
        );
        assert_eq!(sight_of(format!("my new x {end}")), ComposerMatch::Mixed);
        assert_eq!(sight_of(format!("\u{fc}new x {end}")), ComposerMatch::Mixed);
        assert_eq!(sight_of(format!("new {end}")), ComposerMatch::Mixed, "a letter that every library knows");
        let cut = format!("{}\u{2ebf0}{whole}", "\u{652f}\u{6255}".repeat(99));
        assert_eq!(match_composer(&super::tests::end(&format!("new x {end}")), &cut, end), ComposerMatch::Shown);
        assert!(holds_so_far(&text("the name is , and it is rare"), "the name is \u{2ebf0}, and it is rare"));

        let japanese = format!("\u{652f}\u{6255}\u{3044}\u{306e}\u{518d}\u{8a66}\u{884c} {end}");
        assert_eq!(match_composer(&text(end), &japanese, end), ComposerMatch::Mixed, "too much is missing");

        let piled = |marks: usize| format!("Z{}algo {end}", "\u{300}".repeat(marks));
        assert_eq!(match_composer(&text(&piled(9)), &piled(16), end), ComposerMatch::Shown);
        assert_eq!(
            match_composer(&text(&piled(0)), &piled(2), end),
            ComposerMatch::Shown,
            "two marks of a known letter"
        );
    }

    #[test]
    fn other_text_in_the_composer_is_seen() {
        let (whole, tail) = ("Hello world\n(tasuki delivery 1.)", "(tasuki delivery 1.)");
        for mixed in [
            "mine Hello world (tasuki delivery 1.)",
            "Hello mine world (tasuki delivery 1.)",
            "Hello world (tasuki delivery 1.) mine",
            "Hell world (tasuki delivery 1.)",
            "ello world (tasuki delivery 1.)",
            "world (tasuki delivery 1.)",
        ] {
            assert_eq!(match_composer(&text(mixed), whole, tail), ComposerMatch::Mixed, "{mixed}");
        }
    }

    #[test]
    fn a_collapsed_paste_counts_only_with_the_right_size() {
        let five_lines = "a\nb\nc\nd\ne";
        for (size, sight_of_it) in [
            (None, ComposerMatch::Shown),
            (Some(4), ComposerMatch::Shown),
            (Some(5), ComposerMatch::Shown),
            (Some(40), ComposerMatch::Absent),
        ] {
            let label = ComposerContent::Collapsed { size };
            assert_eq!(match_composer(&label, five_lines, "e"), sight_of_it, "{size:?}");
            let typed = super::match_composer(&label, "/exit", "/exit", Input::Command);
            assert_eq!(typed, ComposerMatch::Absent, "a typed text becomes no label");
        }
        let (crabs, units) = ("\u{1f980}".repeat(100), Some(200));
        let label = ComposerContent::Collapsed { size: units };
        assert_eq!(match_composer(&label, &crabs, &crabs), ComposerMatch::Shown, "counted by a program in JavaScript");
    }

    #[test]
    fn the_next_piece_follows_only_the_pieces_before_it() {
        let so_far = "the first piece of a long text";
        assert!(holds_so_far(&end("piece of a\nlong text"), so_far));
        assert!(holds_so_far(&text(so_far), so_far));
        assert!(
            !holds_so_far(&text("he first piece of a long text"), so_far),
            "its beginning is in sight and not there"
        );
        assert!(!holds_so_far(&end("text"), so_far), "too short to be sure");
        assert!(!holds_so_far(&text("piece of a long text!"), so_far));
        assert!(!holds_so_far(&text(""), so_far));
        assert!(!holds_so_far(&ComposerContent::Empty, so_far));
        assert!(!holds_so_far(&ComposerContent::Unreadable, so_far));
    }
}
