//! The spool: what lies in HOME's folders, read and written so that neither a crash nor a stranger can spoil it
//! (SPEC sections 2, 3, 10 and 12). It knows files, not what they mean.
//!
//! Where to read: `rooms` opens and checks the folders, `home` is the spool of one home, [`scan`] takes files in from its
//! `lane`s, [`dispose`] puts them away, [`mod@write`], [`wishes`] and [`journal`] give answers, [`watch`] says when to look,
//! [`age`] and `sweep` remove what has had its time, [`documents`] looks into personas' folders and
//! [`client`] is the other half, for those who drop requests; [`survey`] judges the folders and touches nothing. The
//! directory scan is the truth; every notice of a watcher is only a hint to look sooner.

pub mod age;
pub mod client;
pub mod dispose;
pub mod documents;
mod error;
mod home;
pub mod journal;
mod json;
mod lane;
mod lying;
mod order;
mod rejected;
mod reserve;
mod rooms;
pub mod scan;
pub mod survey;
mod sweep;
pub mod watch;
pub mod wishes;
pub mod write;

pub use crate::files::Stamp;
pub use age::Old;
pub use dispose::{Disposed, Reaper, RejectOutcome, Why};
pub use error::{Error, ErrorKind};
pub use home::Spool;
pub use journal::Journal;
pub use lane::{Content, Found, Lane, MAX_INPUT_BYTES, RESERVED};
pub use order::event_name;
pub use scan::Scan;
pub use watch::Watch;
pub use write::{Place, Shelf, Syncer};
