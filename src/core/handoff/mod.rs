//! The handoff: the one place that knows its steps.
//!
//! Only `driver` moves a handoff. It asks the `steps` what follows; each answers with a `next::Next` and knows no other
//! step. Above the driver: `trigger` checks and begins, `ask` serves retry, cancel, accept and abandon, `ack::take` and
//! `ack::clarify` take acknowledgements and answers. Below the steps: `authors` and `successors` are two of the
//! options, `reader` reads the document, `record` commits it, `in_place` lets an agent live on in its predecessor's
//! pane, `agents` binds and releases agents, `dialogs` reports dialogs that wait for a person, `document` knows names and
//! contents, and `publish` is a side step. The texts come from [`crate::core::prompts`]; the stored rows are in
//! [`crate::core::rows`].

pub mod ack;
mod agents;
pub(crate) mod ask;
pub(crate) mod authors;
pub(crate) mod dialogs;
pub mod document;
pub(crate) mod driver;
mod duties;
mod in_place;
mod next;
pub(crate) mod publish;
mod reader;
mod record;
mod row;
pub(crate) mod steps;
mod successors;
pub(crate) mod trigger;
