//! What is asked of macOS by calls of its own, because it has no `/proc`: the facts and the words of a process, the list
//! of processes, this boot, and the sync of a whole volume. The calls are built for macOS only. What takes their bytes
//! apart is built and tested on every system.

#[cfg(target_os = "macos")]
mod calls;
mod words;

#[cfg(target_os = "macos")]
pub use calls::{
    BsdFacts, BsdState, MAX_WORD_BYTES, boot_session, bsd_facts, parent, processes, start_bytes, sync_volume,
};
pub use words::{StartWords, start_words};
