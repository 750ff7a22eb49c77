//! The acknowledgement (ACK) of an urgent handoff. `receive` handles ACKs and their override. `timeline` keeps the
//! deadlines: the first reminder after the time T of the handoff's urgency, the final reminder after T/2 more, the
//! escalation after another T/2. `answers` serves the request that answers the successor, and `clarify` types the
//! answers. `checkpoint` compares where the successor begins with what the document says. `messages` sends messages and
//! records what became of them, `content` writes what they say, and `view` and `checklist` fill the handoff's view. The
//! stored row is [`crate::core::rows::ack`].

pub(crate) mod answers;
pub mod checklist;
mod checkpoint;
pub(crate) mod clarify;
pub(crate) mod content;
pub(crate) mod messages;
pub(crate) mod receive;
pub(crate) mod timeline;
pub mod view;
