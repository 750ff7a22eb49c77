//! Notices for the terminals in which people look at tmux: the escape sequences OSC 9 and OSC 777, which make a
//! terminal show a text on the desktop of its own machine.
//!
//! tmux passes such a sequence on only from inside a pane, and only if the user allows it there. So tasuki writes the
//! sequence to the client's terminal itself, beside tmux. That changes nothing in the server and in no pane: a terminal
//! takes the sequence without showing a character or moving its cursor. The kernel keeps the bytes of one write
//! together, so the sequence cannot mix with what tmux draws, unless tmux is in the middle of a sequence because the
//! terminal is slow. A terminal that takes no output at that moment is left out.

use super::pane::first;
use super::{Error, Tmux};
use crate::core::text::sanitise;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;

/// The largest number of characters of a text. With up to four bytes each and the sequence around them, they need less
/// than 1 KiB.
const MAX_TEXT: usize = 240;
/// The largest number of terminals that get a notice.
const MOST_TERMINALS: usize = 32;
/// What is known of a client: its flags, whether its terminal takes UTF-8, the terminal itself, and its names.
const FIELDS: &str =
    "#{client_flags} #{client_utf8} #{client_control_mode} #{client_tty} #{client_termname} #{client_termtype}";
/// The terminals, by the beginnings of their names, that know OSC 777 and not OSC 9.
const ONLY_777: [&str; 3] = ["rxvt", "foot", "VTE"];
/// Cancels a sequence that was written only in part: the terminal then ignores that part.
const CANCEL: u8 = 0x18;

impl Tmux {
    /// Lets each terminal that is attached to the server, and that belongs to this user, show a text on its desktop.
    /// Returns to how many terminals the text was written. Whether a terminal shows it is not known.
    ///
    /// # Errors
    /// When no server answers.
    pub async fn notify_terminals(&self, text: &str) -> Result<usize, Error> {
        let (_, reply) = self.read(&format!("list-clients -F \"{FIELDS}\"")).await?;
        let rows = first(&reply)?.text();
        let clients: Vec<AttachedTerminal> =
            rows.lines().filter_map(AttachedTerminal::read).take(MOST_TERMINALS).collect();
        let text = text.to_owned();
        let written = tokio::task::spawn_blocking(move || {
            let is_written = |client: &&AttachedTerminal| match client.write(&text) {
                Ok(()) => true,
                Err(error) => {
                    tracing::debug!(%error, terminal = client.tty, "could not write a notice to a terminal");
                    false
                }
            };
            clients.iter().filter(is_written).count()
        });
        // The closure does not panic. If it did, nobody would know how many were written.
        Ok(written.await.unwrap_or(0))
    }
}

/// A terminal in which a person looks at tmux.
#[derive(Debug, PartialEq, Eq)]
struct AttachedTerminal {
    tty: String,
    is_utf8: bool,
    only_777: bool,
}

impl AttachedTerminal {
    /// Reads a row of [`FIELDS`]. `None` for a control client; for a suspended client, whose terminal another program
    /// uses meanwhile; and for the Linux console, which shows such sequences as text.
    fn read(row: &str) -> Option<AttachedTerminal> {
        let mut fields = row.splitn(6, ' ');
        let mut next = || fields.next();
        let (flags, utf8, control, tty, name) = (next()?, next()?, next()?, next()?, next()?);
        let kind = next().unwrap_or_default();
        let is_suspended = flags.split(',').any(|flag| flag == "suspended");
        if control != "0" || is_suspended || name == "linux" || !tty.starts_with("/dev/") {
            return None;
        }
        let only_777 = ONLY_777.iter().any(|known| name.starts_with(known) || kind.starts_with(known));
        Some(AttachedTerminal { tty: tty.to_owned(), is_utf8: utf8 == "1", only_777 })
    }

    /// The sequence that shows `text`. Nothing in the text can end it early, or begin another one.
    fn sequence(&self, text: &str) -> Vec<u8> {
        let text = sanitise(text);
        let text = text.chars().take(MAX_TEXT).map(|c| match c {
            '\n' | '\t' => ' ',
            // A terminal that does not take UTF-8 might read a byte of a longer character as a control character.
            _ if !self.is_utf8 && !c.is_ascii() => '?',
            // The separator of OSC 777.
            ';' if self.only_777 => ',',
            _ => c,
        });
        let text: String = text.collect();
        if self.only_777 {
            format!("\x1b]777;notify;tasuki;{text}\x1b\\").into_bytes()
        } else {
            format!("\x1b]9;{text}\x1b\\").into_bytes()
        }
    }

    /// Writes the sequence to the terminal, without waiting.
    fn write(&self, text: &str) -> io::Result<()> {
        let flags = OFlag::O_NOCTTY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        let mut file: File = OpenOptions::new().write(true).custom_flags(flags.bits()).open(&self.tty)?;
        let meta = fstat(&file)?;
        let is_device = SFlag::from_bits_truncate(meta.st_mode) & SFlag::S_IFMT == SFlag::S_IFCHR;
        if !is_device || meta.st_uid != nix::unistd::geteuid().as_raw() || !nix::unistd::isatty(&file)? {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not a terminal of this user"));
        }
        let mut ready = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
        if poll(&mut ready, PollTimeout::ZERO)? == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let sequence = self.sequence(text);
        let written = file.write(&sequence)?;
        if written < sequence.len() {
            // Without this, the terminal would take the next output for the rest of the text.
            let _ = file.write(&[CANCEL]);
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(row: &str) -> Option<AttachedTerminal> {
        AttachedTerminal::read(row)
    }

    #[test]
    fn only_terminals_of_people_are_written_to() {
        let xterm = read("attached,focused,UTF-8 1 0 /dev/pts/4 xterm-256color XTerm(370)").expect("a terminal");
        assert_eq!((xterm.tty.as_str(), xterm.is_utf8, xterm.only_777), ("/dev/pts/4", true, false));
        for row in
            ["attached 0 0 /dev/pts/4 rxvt-unicode ", "x 1 0 /dev/pts/4 foot", "x 1 0 /dev/pts/4 xterm VTE(7600)"]
        {
            assert!(read(row).is_some_and(|terminal| terminal.only_777), "{row}");
        }
        for row in [
            "attached,control-mode 1 1 /dev/pts/4 xterm ",
            "suspended,UTF-8 1 0 /dev/pts/4 xterm ",
            "attached 1 0 /dev/tty1 linux ",
            "attached 1 0  xterm ",
            "attached 1 0 /tmp/file xterm ",
            "",
        ] {
            assert_eq!(read(row), None, "{row}");
        }
    }

    #[test]
    fn nothing_in_a_text_ends_the_sequence_or_makes_it_long() {
        let terminal = |is_utf8, only_777| AttachedTerminal { tty: String::new(), is_utf8, only_777 };
        let hostile = "tasuki: é\u{1b}]52;c;eA==\u{7}\u{9c}\n;x";
        let said = |terminal: AttachedTerminal, text: &str| {
            String::from_utf8(terminal.sequence(text)).expect("a sequence is text")
        };
        assert_eq!(said(terminal(true, false), hostile), "\x1b]9;tasuki: é]52;c;eA== ;x\x1b\\");
        assert_eq!(said(terminal(false, true), hostile), "\x1b]777;notify;tasuki;tasuki: ?]52,c,eA== ,x\x1b\\");
        assert!(terminal(true, true).sequence(&"😀".repeat(5_000)).len() <= 1024);
    }

    #[test]
    fn what_is_not_a_terminal_of_ours_is_left_alone() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        std::fs::write(&file, "kept").expect("written");
        let write = |tty: String| AttachedTerminal { tty, is_utf8: true, only_777: false }.write("text");
        assert!(write(file.display().to_string()).is_err() && write("/dev/null".to_owned()).is_err());
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "kept");
    }
}
