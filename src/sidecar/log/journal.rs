//! A message for systemd's journal: each field of a line becomes a field of its own.

use super::writer::{Lines, LogOutput};
use std::fmt::{Debug, Write};
use std::io;
use std::os::unix::net::UnixDatagram;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Where the journal listens.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Longest value of a field, in bytes: a message that is larger than the socket's buffer is refused as a whole.
const LONGEST: usize = 16 * 1024;

/// Sends messages to the journal; the sender waits while the journal is slow.
pub(super) fn sender() -> io::Result<impl Fn(&[u8]) -> io::Result<()> + Send> {
    let socket = UnixDatagram::unbound()?;
    // An empty message shows whether the journal listens, and adds no line.
    socket.send_to(&[], SOCKET)?;
    Ok(move |message: &[u8]| socket.send_to(message, SOCKET).map(|_| ()))
}

/// Turns events into messages.
pub(super) struct ToJournal(pub(super) &'static Lines);

impl<S: Subscriber> Layer<S> for ToJournal {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let about = event.metadata();
        let mut message = Message(Vec::with_capacity(512));
        // Syslog's numbers; an ordinary line is a notice (5) there.
        let priority = match *about.level() {
            Level::ERROR => "3",
            Level::WARN => "4",
            Level::INFO => "5",
            Level::DEBUG => "6",
            Level::TRACE => "7",
        };
        message.field("PRIORITY", priority);
        message.field("SYSLOG_IDENTIFIER", "tasuki");
        message.field("TARGET", about.target());
        message.field("CODE_FILE", about.file().unwrap_or_default());
        message.field("CODE_LINE", &about.line().unwrap_or_default().to_string());
        event.record(&mut message);
        self.0.put(LogOutput::Journal, &message.0);
    }
}

/// A message in the journal's own protocol.
struct Message(Vec<u8>);

impl Message {
    /// Writes the name, the length of the value in eight bytes, and the value, which may hold any bytes.
    fn field(&mut self, name: &str, value: &str) {
        let end = (0..=LONGEST.min(value.len())).rev().find(|at| value.is_char_boundary(*at)).unwrap_or(0);
        let value = &value[..end];
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'\n');
        self.0.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.0.extend_from_slice(value.as_bytes());
        self.0.push(b'\n');
    }
}

impl Visit for Message {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            return self.field("MESSAGE", value);
        }
        let sign = |char: char| if char.is_ascii_alphanumeric() { char.to_ascii_uppercase() } else { '_' };
        let name: String = field.name().chars().map(sign).collect();
        self.field(&format!("TASUKI_{name}"), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}
