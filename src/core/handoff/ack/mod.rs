//! The acknowledgement of an urgent handoff (SPEC section 8). `take` takes ACKs and the override, `timeline` runs T, T/2
//! and T/2, `clarify` answers questions, `messages` sends what must be said and proves it, `notes` writes the messages in
//! the form that teams know, `view` and `checklist` show it all. What is stored of it is [`crate::core::rows::ack`].

pub mod checklist;
pub(crate) mod clarify;
pub(crate) mod messages;
pub(crate) mod notes;
pub(crate) mod take;
pub(crate) mod timeline;
pub mod view;
