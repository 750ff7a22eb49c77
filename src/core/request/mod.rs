//! What can be asked: every request kind with its fields (SPEC 3.5). All of them stand in one table, `kinds`; each has its
//! checks, and what must be known before it is decided, beside its fields. How a request file is read stands in `read`.

pub mod ack;
pub mod agent;
mod asked;
mod body;
pub mod handoff;
mod integers;
mod kinds;
pub mod publish;
mod read;
pub mod work;

pub use crate::contract::ack::{AckStatus, Clarification, Urgency};
pub use crate::contract::handoff::{Author, Successor};
pub use ack::{AckAsked, ClarifyAsked, MalformedAck, OverrideAsked, form};
pub use agent::{CreateAsked, ForgetAsked, RegisterAsked, SendAsked, ShutdownAsked, pane_number};
pub(crate) use agent::{PRIVATE_SESSIONS, is_session_name};
pub use asked::{Asked, DocumentAsked, Needs, PersonaOf};
pub use handoff::{Assume, HandoffAsked, HandoffNamed, RetryAsked};
pub use kinds::{DismissAsked, KINDS, Request, schemas};
pub(crate) use publish::is_host;
pub use publish::{AssumePublished, Fallback, Issue, PublishAsked, PublishNow, PublishTarget, publish_target};
pub use read::{Read, id_of_file, read};
