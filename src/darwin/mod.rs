//! System calls that only macOS has. In place of `/proc`, which macOS lacks: facts about a process, its arguments and
//! environment, the list of processes, and the id of this boot. Also the sync of a whole volume. The calls are built
//! for macOS only. The code that takes their bytes apart is built and tested on every system.

#[cfg(target_os = "macos")]
mod calls;
mod words;

#[cfg(target_os = "macos")]
pub use calls::{
    BsdFacts, BsdState, MAX_WORD_BYTES, boot_session, bsd_facts, parent, processes, start_bytes, sync_volume,
};
pub use words::{StartWords, start_words};
