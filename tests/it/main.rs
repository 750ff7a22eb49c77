//! The one integration binary: real tmux servers, real files, the real program.

mod config;
mod personas;
mod spool_documents;
mod spool_intake;
mod spool_journal;
mod spool_output;
mod spool_watch;
mod support;
