//! The handoff: the one place that knows its steps.
//!
//! `trigger` checks and begins; `flow` enters and leaves steps, `ending` and `end` among them; `authors` and `successors`
//! are two of its dials; `outcome` takes what effects, receipts and agents bring; `ask` serves retry, cancel, accept and
//! abandon; `reading` is the successor's first turn; `ack` is the acknowledgement of an urgent one; `dialogs` tells of
//! those that wait for a person; `document` knows names and contents; `publish` is a side step. The texts are
//! those of [`crate::core::prompts`]; what is stored of all this lies in [`crate::core::rows`].

pub mod ack;
pub mod ask;
pub mod authors;
pub mod dialogs;
pub mod document;
pub mod end;
pub mod ending;
pub mod flow;
pub mod outcome;
pub mod publish;
pub mod reading;
pub mod successors;
pub mod trigger;
