//! The acknowledgement (ACK) of an urgent handoff. `take` takes ACKs and the override. `timeline` runs the waits: T
//! until the first reminder, T/2 until the final one, T/2 until the escalation. `clarify` answers questions, `messages`
//! sends each message and proves its delivery, `notes` writes their texts, `view` and `checklist` fill the handoff's
//! view. The stored row is [`crate::core::rows::ack`].

pub mod checklist;
pub(crate) mod clarify;
pub(crate) mod messages;
pub(crate) mod notes;
pub(crate) mod take;
pub(crate) mod timeline;
pub mod view;
