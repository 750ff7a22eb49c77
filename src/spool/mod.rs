//! The spool: reads and writes the files in the folders of a home so that neither a crash nor another user can damage
//! them. It checks that a file is complete, and does not interpret its fields.
//!
//! Where to read: `home` is the spool of one home, and `dirs` opens and checks its folders. [`scan`] reads the files of
//! a `lane` in the `order` in which they are to be decided, if they are complete (`json`). [`finish`] moves decided
//! files to the trash or to `rejected/`; `rejected` knows how full `rejected/` is. [`mod@write`] and [`journal`] write
//! results, views and journal lines, and `reserve` keeps room for one view on a full disk. [`wanted`] finds the views
//! that a client waits for. [`watch`] says when to scan, [`age`] and `sweep` remove old files. [`documents`] reads and
//! writes documents, and writes the other files that effects need. [`client`] is for the programs that submit requests
//! and events; [`overflow`] removes the oldest events if too many wait and no sidecar runs; `twins` is about request
//! ids that differ by case alone. [`survey`] checks the folders and changes nothing; `unread` lists the requests that
//! are still in their lane. A notice of the watcher is only a hint to scan sooner: what counts is the listing.

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
mod order;
pub mod overflow;
mod rejected;
mod reserve;
pub mod scan;
pub mod survey;
mod sweep;
mod twins;
mod unread;
pub mod wanted;
pub mod watch;
pub mod write;

pub use crate::files::FileStamp;
pub use age::AgingCandidate;
pub use error::{Error, ErrorKind};
pub use finish::{Finished, RejectOutcome, TrashEmptier, Why};
pub use home::Spool;
pub use journal::Journal;
pub use lane::{Content, IncomingFile, Lane, MAX_INPUT_BYTES, RESERVED_SUFFIX, is_reserved};
pub use order::event_name;
pub use rejected::HoldReason;
pub use scan::Scan;
pub use watch::SpoolWatch;
pub use write::{OutputFile, ProjectionFolder, Syncer};
