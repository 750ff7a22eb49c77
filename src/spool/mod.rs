//! The spool: reads and writes the files in HOME's folders so that neither a crash nor another user can damage them. It
//! knows files, not what they mean.
//!
//! Where to read: `dirs` opens and checks the folders, and `home` is the spool of one home. [`scan`] takes files in
//! from its `lane`s, and [`finish`] moves or removes them afterwards. [`mod@write`], [`wishes`] and [`journal`] write
//! results, views and journal lines. [`watch`] says when to scan, [`age`] and `sweep` remove old files, and
//! [`documents`] reads personas' folders. [`client`] is the other half: it drops requests and events. [`survey`] checks
//! the folders and changes nothing. Only a directory scan finds files; a watcher's notice is just a hint to scan
//! sooner.

pub mod age;
pub mod client;
mod dirs;
pub mod documents;
mod error;
pub mod finish;
mod home;
pub mod journal;
mod json;
mod lane;
mod lying;
mod order;
mod rejected;
mod reserve;
pub mod scan;
pub mod survey;
mod sweep;
pub mod watch;
pub mod wishes;
pub mod write;

pub use crate::files::FileId;
pub use age::Old;
pub use error::{Error, ErrorKind};
pub use finish::{Finished, RejectOutcome, TrashEmptier, Why};
pub use home::Spool;
pub use journal::Journal;
pub use lane::{Content, IncomingFile, Lane, MAX_INPUT_BYTES, RESERVED};
pub use order::event_name;
pub use scan::Scan;
pub use watch::SpoolWatch;
pub use write::{OutputFile, ProjectionFolder, Syncer};
