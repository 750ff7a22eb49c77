//! The spool: what lies in HOME's folders, read and written so that neither a crash nor a stranger can spoil it
//! (SPEC sections 2, 3, 10 and 12). It knows files, not what they mean.
//!
//! Where to read: [`rooms`] opens and checks the folders, [`scan`] takes files in, [`dispose`] puts them away,
//! [`mod@write`] and [`journal`] give answers, [`watch`] says when to look, [`age`] and [`sweep`] remove what has had its time, [`documents`] looks into personas' folders and
//! [`client`] is the other half, for those who drop requests; [`survey`] judges the folders and touches nothing. The
//! directory scan is the truth; every notice of a watcher is only a hint to look sooner.

pub mod age;
pub mod client;
pub mod dispose;
pub mod documents;
mod error;
pub mod journal;
mod json;
mod lying;
mod order;
pub mod rooms;
pub mod scan;
pub mod survey;
pub mod sweep;
pub mod watch;
pub mod write;

pub use crate::files::Stamp;
pub use age::Old;
pub use dispose::{Disposed, Reaper, RejectOutcome, Why};
pub use error::{Error, ErrorKind};
pub use journal::Journal;
pub use order::event_name;
pub use rooms::Spool;
pub use scan::{Content, Found, Lane, RESERVED, Scan};
pub use watch::Watch;
pub use write::{Place, Shelf, Syncer};

/// The most that a request or event may hold, in bytes (SPEC 3.1).
pub const MAX_INPUT_BYTES: u64 = 1024 * 1024;
