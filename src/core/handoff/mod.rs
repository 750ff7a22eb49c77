//! Handoffs: the only module that knows what follows each step.
//!
//! Only `driver` moves a handoff from step to step. It calls the present one of the `steps`, which implements
//! `handler::StepHandler` and returns a `next::Next`. Requests begin above the driver: `trigger` begins a handoff,
//! `ask` serves retry, cancel, accept, rework and abandon, `reopen` opens the outgoing agent's session again,
//! `publish_now` serves publish, `ack::receive` and `ack::answers` handle acknowledgements and answers to questions.
//! The steps use `authors` (who writes the document), `successors` (who takes over), `early` (a successor that starts
//! while its predecessor still runs), `reader` (reads the document), `examination` (checks it against the facts that
//! tasuki collected), `record` (records it), `in_place` (a successor in the pane of its predecessor), `agents` (binds
//! and releases agents), `document` (names and contents) and `row` (a handoff's row). `dialogs` reports dialogs that
//! wait for a person, `publish_targets` knows where a document is published, and `publish` publishes it beside the
//! flow. The texts come from [`crate::core::prompts`]; the stored rows are in [`crate::core::rows`].

pub mod ack;
mod agents;
pub(crate) mod ask;
pub(crate) mod authors;
pub(crate) mod dialogs;
pub mod document;
pub(crate) mod driver;
mod early;
mod examination;
mod handler;
mod in_place;
mod next;
pub(crate) mod publish;
pub(crate) mod publish_now;
mod publish_targets;
mod reader;
mod record;
pub(crate) mod reopen;
mod row;
pub(crate) mod steps;
mod successors;
pub(crate) mod trigger;
