//! tmux's control-mode protocol, without any input or output: bytes go in, blocks and notifications come out.
//!
//! The grammar is small; the danger is to trust the wrong line. Inside a block *every* line but the exact end line is
//! payload, even a line that reads `%end 1 2 1` or `%exit`. A line outside all blocks is a late complaint of an earlier
//! command. An unknown notification is skipped.

use std::mem;

/// Longest line that is accepted, in bytes. tmux has no such limit; memory has.
pub const MAX_LINE: usize = 4 * 1024 * 1024;
/// The largest payload that one block may hold, in bytes.
pub const MAX_BLOCK: usize = 16 * 1024 * 1024;
/// The flag of a block that one of our own lines caused; blocks without it come from hooks and from the attach.
const OURS: u64 = 1;

/// The answer to one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// tmux's counter over the commands of all clients; it only rises.
    pub number: u64,
    /// Whether a line that we sent caused it.
    pub ours: bool,
    /// `%end` (true) or `%error` (false).
    pub ok: bool,
    /// Payload, line by line, without line ends.
    pub lines: Vec<Vec<u8>>,
}

impl Block {
    /// The payload as text; what is not UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        lines.join("\n")
    }
}

/// Something that the server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProtocolEvent {
    Block(Block),
    /// `%name args`.
    Notice {
        /// Without the percent sign.
        name: String,
        args: String,
    },
    /// A line outside every block: the late error of a command that waited.
    Stray(String),
    Exit {
        /// tmux's reason; may be empty.
        reason: String,
    },
}

/// Why the stream can't be followed any more. The connection has to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Desync {
    /// A line is over [`MAX_LINE`].
    #[error("tmux sent a line of more than {MAX_LINE} bytes")]
    LongLine,
    /// A block is over [`MAX_BLOCK`].
    #[error("tmux sent an answer of more than {MAX_BLOCK} bytes")]
    LongBlock,
    /// The counter did not rise: answers would be given to the wrong questions.
    #[error("tmux's answers are out of order (answer {got} came after {last})")]
    Order {
        last: u64,
        /// The number that should have been higher.
        got: u64,
    },
}

#[derive(Debug)]
struct Open {
    header: Vec<u8>,
    number: u64,
    ours: bool,
    lines: Vec<Vec<u8>>,
    size: usize,
}

/// Turns the stream's bytes, cut anywhere, into events.
#[derive(Debug, Default)]
pub struct ProtocolParser {
    line: Vec<u8>,
    open: Option<Open>,
    last: Option<u64>,
}

impl ProtocolParser {
    /// Takes what was read and appends the events that it completes.
    ///
    /// # Errors
    /// [`Desync`] when the stream breaks a bound or its order; the parser is of no use afterwards.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<ProtocolEvent>) -> Result<(), Desync> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (head, rest) = bytes.split_at(end);
            self.extend(head)?;
            let mut line = mem::take(&mut self.line);
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            self.take_line(line, events)?;
            bytes = &rest[1..];
        }
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), Desync> {
        if self.line.len() + bytes.len() > MAX_LINE {
            return Err(Desync::LongLine);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, line: Vec<u8>, events: &mut Vec<ProtocolEvent>) -> Result<(), Desync> {
        if let Some(mut open) = self.open.take() {
            match closes(&line, &open.header) {
                Some(ok) => {
                    events.push(ProtocolEvent::Block(Block {
                        number: open.number,
                        ours: open.ours,
                        ok,
                        lines: open.lines,
                    }));
                }
                None => {
                    open.size += line.len() + 1;
                    if open.size > MAX_BLOCK {
                        return Err(Desync::LongBlock);
                    }
                    open.lines.push(line);
                    self.open = Some(open);
                }
            }
            return Ok(());
        }
        if let Some(open) = begins(&line) {
            if let Some(last) = self.last.filter(|last| open.number <= *last) {
                return Err(Desync::Order { last, got: open.number });
            }
            self.last = Some(open.number);
            self.open = Some(open);
            return Ok(());
        }
        events.push(outside(&line));
        Ok(())
    }
}

fn closes(line: &[u8], header: &[u8]) -> Option<bool> {
    if line.strip_prefix(b"%end ") == Some(header) {
        Some(true)
    } else if line.strip_prefix(b"%error ") == Some(header) {
        Some(false)
    } else {
        None
    }
}

fn begins(line: &[u8]) -> Option<Open> {
    let header = line.strip_prefix(b"%begin ")?;
    let text = std::str::from_utf8(header).ok()?;
    let mut fields = text.split(' ').map(str::parse::<u64>);
    let (Some(Ok(_)), Some(Ok(number)), Some(Ok(flags)), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return None;
    };
    Some(Open { header: header.to_vec(), number, ours: flags & OURS != 0, lines: Vec::new(), size: 0 })
}

fn outside(line: &[u8]) -> ProtocolEvent {
    let text = String::from_utf8_lossy(line);
    let Some(rest) = text.strip_prefix('%') else { return ProtocolEvent::Stray(text.into_owned()) };
    let (name, args) = rest.split_once(' ').unwrap_or((rest, ""));
    match name {
        "exit" => ProtocolEvent::Exit { reason: args.to_owned() },
        _ => ProtocolEvent::Notice { name: name.to_owned(), args: args.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NASTY: &[u8] = b"%begin 1 5 0\n%end 1 5 0\n%session-changed $1 x\r\n%begin 1 7 1\n%end 1 2 1\n%begin 9 9 9\n\
        %exit\n\n%error 1 7 1 \n\xff\xfe\n%end 1 7 1\nlate error: no such file\n%never-heard-of a b\n%begin 1 9 1\n\
        bad\n%error 1 9 1\n%begin x y z\n%exit server exited\n";

    fn parse(pieces: &[&[u8]]) -> Vec<ProtocolEvent> {
        let (mut parser, mut events) = (ProtocolParser::default(), Vec::new());
        for piece in pieces {
            parser.push(piece, &mut events).expect("the stream is in order");
        }
        events
    }

    fn notice(name: &str, args: &str) -> ProtocolEvent {
        ProtocolEvent::Notice { name: name.into(), args: args.into() }
    }

    #[test]
    fn only_the_exact_end_line_closes_a_block() {
        let lines = [&b"%end 1 2 1"[..], b"%begin 9 9 9", b"%exit", b"", b"%error 1 7 1 ", b"\xff\xfe"];
        let expected = [
            ProtocolEvent::Block(Block { number: 5, ours: false, ok: true, lines: vec![] }),
            notice("session-changed", "$1 x"),
            ProtocolEvent::Block(Block { number: 7, ours: true, ok: true, lines: lines.map(<[u8]>::to_vec).to_vec() }),
            ProtocolEvent::Stray("late error: no such file".into()),
            notice("never-heard-of", "a b"),
            ProtocolEvent::Block(Block { number: 9, ours: true, ok: false, lines: vec![b"bad".to_vec()] }),
            notice("begin", "x y z"),
            ProtocolEvent::Exit { reason: "server exited".into() },
        ];
        assert_eq!(parse(&[NASTY]), expected);
    }

    #[test]
    fn a_stream_is_parsed_the_same_wherever_reads_are_cut() {
        let whole = parse(&[NASTY]);
        for cut in 0..NASTY.len() {
            let (head, tail) = NASTY.split_at(cut);
            assert_eq!(parse(&[head, tail]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = NASTY.chunks(1).collect();
        assert_eq!(parse(&bytes), whole);
    }

    #[test]
    fn an_open_block_gives_nothing_at_the_end_of_the_stream() {
        assert_eq!(parse(&[b"%begin 1 5 1\nhalf\n%end 1 5"]), []);
    }

    #[test]
    fn a_counter_that_does_not_rise_is_a_desync() {
        let mut parser = ProtocolParser::default();
        let stream = b"%begin 1 5 1\n%end 1 5 1\n%begin 1 5 1\n";
        assert_eq!(parser.push(stream, &mut Vec::new()), Err(Desync::Order { last: 5, got: 5 }));
    }

    #[test]
    fn lines_and_blocks_have_bounds() {
        let mut parser = ProtocolParser::default();
        assert_eq!(parser.push(&vec![b'x'; MAX_LINE + 1], &mut Vec::new()), Err(Desync::LongLine));
        let (mut parser, mut line) = (ProtocolParser::default(), vec![b'x'; MAX_LINE - 1]);
        line.push(b'\n');
        parser.push(b"%begin 1 5 1\n", &mut Vec::new()).expect("begin");
        let result = (0..5).try_for_each(|_| parser.push(&line, &mut Vec::new()));
        assert_eq!(result, Err(Desync::LongBlock));
    }

    proptest! {
        #[test]
        fn any_payload_comes_out_as_it_went_in(
            payload in proptest::collection::vec(proptest::collection::vec(any::<u8>().prop_filter("line end", |b| *b != b'\n' && *b != b'\r'), 0..40), 0..20),
            cuts in proptest::collection::vec(1usize..17, 1..40),
        ) {
            prop_assume!(payload.iter().all(|line| line != b"%end 7 8 1" && line != b"%error 7 8 1"));
            let mut stream = b"%begin 7 8 1\n".to_vec();
            for line in &payload {
                stream.extend_from_slice(line);
                stream.push(b'\n');
            }
            stream.extend_from_slice(b"%end 7 8 1\n");
            let (mut parser, mut events, mut rest) = (ProtocolParser::default(), Vec::new(), &stream[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() { break }
                let (head, tail) = rest.split_at((*cut).min(rest.len()));
                parser.push(head, &mut events).expect("in order");
                rest = tail;
            }
            prop_assert_eq!(events, vec![ProtocolEvent::Block(Block { number: 8, ours: true, ok: true, lines: payload })]);
        }

        #[test]
        fn no_bytes_make_the_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = ProtocolParser::default().push(&bytes, &mut Vec::new());
        }
    }
}
