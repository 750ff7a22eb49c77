//! The handoff: the one place that knows its steps.
//!
//! `driver` alone changes where a handoff stands; it asks the `steps` what follows, each of which says so by a
//! `next::Next` and knows no other. Above the driver: `trigger` checks and begins, `ask` serves retry, cancel, accept and
//! abandon, `ack::take` and `ack::clarify` what is said of an urgent one. Below the steps: `authors` and `successors` are two
//! of the dials, `reader` reads the document, `record` commits it, `in_place` lets an agent live on in its predecessor's pane,
//! `hold` takes agents up and lets go of them, `dialogs` tells of those that wait for a person, `document` knows names and
//! contents, and `publish` is a side step. The texts are those of [`crate::core::prompts`]; what is stored of all this lies
//! in [`crate::core::rows`].

pub mod ack;
pub(crate) mod ask;
pub(crate) mod authors;
pub(crate) mod dialogs;
pub mod document;
pub(crate) mod driver;
mod duties;
mod hold;
mod in_place;
mod next;
pub(crate) mod publish;
mod reader;
mod record;
mod row;
pub(crate) mod steps;
mod successors;
pub(crate) mod trigger;
