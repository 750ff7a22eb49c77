//! Every request kind with its fields. The table in `kinds` lists them all. The checks of a kind, and what must be
//! loaded before it is decided, are beside its fields; `read` parses a request file.

pub mod ack;
pub mod agent;
pub(crate) mod body;
pub mod handoff;
mod integers;
mod kinds;
pub mod publish;
mod read;
mod request_body;
pub mod work;

pub use crate::contract::ack::{AckStatus, Clarification, Urgency};
pub use crate::contract::handoff::{Author, Successor};
pub use ack::{AckRequest, ClarifyRequest, MalformedAck, OverrideRequest, form};
pub use agent::{CreateRequest, ForgetRequest, RegisterRequest, SendRequest, ShutdownRequest, pane_number};
pub(crate) use agent::{PRIVATE_SESSIONS, is_session_name};
pub use handoff::{Assume, HandoffNamed, HandoffRequest, RetryRequest, ReworkRequest};
pub use kinds::{DismissRequest, KINDS, Request, schemas};
pub(crate) use publish::is_host;
pub use publish::{
    AssumePublished, Fallback, Issue, PublishAs, PublishChoice, PublishNow, PublishRequest, PublishTarget,
    publish_target,
};
pub use read::{ParsedRequest, id_of_file, read};
pub use request_body::{DocumentRequest, Needs, PersonaOf, RequestBody};
