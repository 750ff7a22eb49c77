//! Turns what a terminal sends into keys. Pure: bytes in, keys out. A read may end in the middle of a key or a paste.

/// One key, or one bracketed paste.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    /// Line feed (C-j), or a carriage return in a paste without brackets: a new line in the draft.
    Newline,
    Backspace,
    Interrupt,
    EndOfInput,
    KillLine,
    Left,
    Right,
    Up,
    Down,
    PageUp,
    PageDown,
    BackTab,
    Home,
    End,
    Escape,
    /// A bracketed paste, whole, with line feeds.
    Paste(String),
}

/// A read with at least this many characters counts as a paste without brackets: carriage returns in it are new lines,
/// as in real CLIs.
const BURST: usize = 16;
/// The largest number of bytes of one paste that are kept.
const MAX_PASTE: usize = 1 << 20;
/// Longest escape sequence that is waited for, in bytes.
const MAX_SEQUENCE: usize = 32;
const PASTE_END: &[u8] = b"\x1b[201~";

/// Turns bytes into keys; keeps what a read cut off.
#[derive(Debug, Default)]
pub struct KeyParser {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

impl KeyParser {
    /// Takes the bytes of one read, and gives the keys that they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while let Some(used) = self.step(&mut keys) {
            self.pending.drain(..used);
        }
        let characters = keys.iter().filter(|key| matches!(key, Key::Char(_) | Key::Newline)).count();
        if characters >= BURST {
            keys.iter_mut().filter(|key| **key == Key::Enter).for_each(|key| *key = Key::Newline);
        }
        keys
    }

    /// Whether an escape character waits for what follows it.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.paste.is_none() && self.pending.first() == Some(&0x1b)
    }

    /// Nothing followed in time: an escape character was the Escape key.
    pub fn give_up(&mut self) -> Vec<Key> {
        if !self.is_waiting() {
            return Vec::new();
        }
        self.pending.remove(0);
        let mut keys = vec![Key::Escape];
        keys.extend(self.feed(&[]));
        keys
    }

    /// Reads one key off the front; returns how many bytes it took, or `None` if more are needed.
    fn step(&mut self, keys: &mut Vec<Key>) -> Option<usize> {
        if self.paste.is_some() {
            return self.in_paste(keys);
        }
        match *self.pending.first()? {
            0x1b => self.sequence(keys),
            byte if byte < 0x20 || byte == 0x7f => {
                keys.extend(control(byte));
                Some(1)
            }
            _ => self.character(keys),
        }
    }

    fn in_paste(&mut self, keys: &mut Vec<Key>) -> Option<usize> {
        let paste = self.paste.as_mut()?;
        let found = self.pending.windows(PASTE_END.len()).position(|window| window == PASTE_END);
        // Until the end mark comes, all bytes are text, except the last few: they could be the beginning of the mark.
        let text = found.unwrap_or_else(|| (self.pending.len() + 1).saturating_sub(PASTE_END.len()));
        let room = MAX_PASTE.saturating_sub(paste.len()).min(text);
        paste.extend_from_slice(&self.pending[..room]);
        if found.is_some() {
            let whole = self.paste.take().unwrap_or_default();
            let whole = String::from_utf8_lossy(&whole).replace("\r\n", "\n").replace('\r', "\n");
            keys.push(Key::Paste(whole.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()));
            return Some(text + PASTE_END.len());
        }
        (text > 0).then_some(text)
    }

    fn sequence(&mut self, keys: &mut Vec<Key>) -> Option<usize> {
        match self.pending.get(1)? {
            b'[' | b'O' => {}
            // Another escape character follows, so this one was the Escape key.
            0x1b => {
                keys.push(Key::Escape);
                return Some(1);
            }
            // Alt and a key: nothing is bound to it.
            _ => return Some(2),
        }
        let rest = &self.pending[2..];
        let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
            return (rest.len() > MAX_SEQUENCE).then_some(2);
        };
        match (&rest[..end], rest[end]) {
            (b"200", b'~') => self.paste = Some(Vec::new()),
            (b"", b'A') => keys.push(Key::Up),
            (b"", b'B') => keys.push(Key::Down),
            (b"", b'C') => keys.push(Key::Right),
            (b"", b'D') => keys.push(Key::Left),
            (b"", b'Z') => keys.push(Key::BackTab),
            (b"5", b'~') => keys.push(Key::PageUp),
            (b"6", b'~') => keys.push(Key::PageDown),
            (b"", b'H') | (b"1" | b"7", b'~') => keys.push(Key::Home),
            (b"", b'F') | (b"4" | b"8", b'~') => keys.push(Key::End),
            _ => {}
        }
        Some(2 + end + 1)
    }

    fn character(&self, keys: &mut Vec<Key>) -> Option<usize> {
        let length = match self.pending[0] {
            0x00..=0x7f => 1,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => return Some(1),
        };
        let known = &self.pending[..length.min(self.pending.len())];
        match std::str::from_utf8(known) {
            Ok(text) => {
                keys.extend(text.chars().filter(|c| !c.is_control()).map(Key::Char));
                Some(length)
            }
            // The character is cut off: wait for the rest of it. If it is invalid, skip its first byte.
            Err(why) if why.error_len().is_none() => None,
            Err(_) => Some(1),
        }
    }
}

fn control(byte: u8) -> Option<Key> {
    Some(match byte {
        b'\r' => Key::Enter,
        b'\n' => Key::Newline,
        b'\t' => Key::Char('\t'),
        0x7f | 0x08 => Key::Backspace,
        0x01 => Key::Home,
        0x03 => Key::Interrupt,
        0x04 => Key::EndOfInput,
        0x05 => Key::End,
        0x15 => Key::KillLine,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn feed(chunks: &[&[u8]]) -> Vec<Key> {
        let mut parser = KeyParser::default();
        chunks.iter().flat_map(|chunk| parser.feed(chunk)).collect()
    }

    fn chars(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn carriage_return_submits_and_line_feed_does_not() {
        assert_eq!(feed(&[b"ab\ncd\r"]), [chars("ab"), vec![Key::Newline], chars("cd"), vec![Key::Enter]].concat());
    }

    #[test]
    fn inside_a_bracketed_paste_nothing_is_a_key() {
        let keys = feed(&[b"\x1b[200~one\rtwo\n\tthree\x03\x1b[A\x1b[201~\r"]);
        assert_eq!(keys, [Key::Paste("one\ntwo\n\tthree[A".into()), Key::Enter]);
    }

    #[test]
    fn a_burst_without_brackets_is_not_submitted_by_its_own_line_ends() {
        let keys = feed(&[b"a long line of text\rand one more\r"]);
        assert!(!keys.contains(&Key::Enter));
        assert_eq!(keys.iter().filter(|key| **key == Key::Newline).count(), 2);
        assert_eq!(feed(&[b"a long line of text and more", b"\r"]).last(), Some(&Key::Enter));
        assert_eq!(feed(&[b"/exit\r"]).last(), Some(&Key::Enter));
    }

    #[test]
    fn escape_alone_is_known_only_when_nothing_follows() {
        let mut parser = KeyParser::default();
        assert!(parser.feed(b"\x1b").is_empty() && parser.is_waiting());
        assert_eq!(parser.give_up(), [Key::Escape]);
        assert!(!parser.is_waiting() && parser.give_up().is_empty());
        assert_eq!(feed(&[b"\x1b", b"[", b"D"]), [Key::Left]);
        assert_eq!(feed(&[b"\x1b[A\x1bOB\x1b[5~\x1b[6~"]), [Key::Up, Key::Down, Key::PageUp, Key::PageDown]);
    }

    #[test]
    fn sequences_that_mean_nothing_here_leave_no_trace() {
        assert_eq!(feed(&[b"\x1b[I\x1b[O\x1b[1;5C\x1bOP\x1bx\x1b[<0;1;1Mz"]), chars("z"));
    }

    #[test]
    fn a_paste_that_never_ends_is_bounded() {
        let mut parser = KeyParser::default();
        parser.feed(b"\x1b[200~");
        for _ in 0..40 {
            assert!(parser.feed(&[b'x'; 64 * 1024]).is_empty());
        }
        assert!(parser.paste.as_ref().is_some_and(|paste| paste.len() == MAX_PASTE));
        assert!(parser.pending.len() < PASTE_END.len());
    }

    proptest! {
        #[test]
        fn the_keys_are_the_same_wherever_the_reads_were_cut(
            parts in proptest::collection::vec(prop_oneof![
                "[a-zäöü€😀 ]{0,6}",
                Just("\u{1b}[200~ä\nb\rc\u{1b}[201~".to_owned()),
                Just("\u{1b}[D\u{1b}[200~\u{1b}[20\u{1b}[201~".to_owned()),
                Just("\n\u{7f}".to_owned()),
            ], 0..6),
            cuts in proptest::collection::vec(0..200_usize, 0..8),
        ) {
            let bytes = parts.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([0, bytes.len()]).collect();
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(feed(&chunks), feed(&[&bytes]));
        }

        #[test]
        fn no_input_makes_the_key_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut parser = KeyParser::default();
            parser.feed(&bytes);
            parser.give_up();
        }
    }
}
