//! The sidecar's loop: the only caller of `decide` and of `Store::commit`. Everything in one cycle uses the same
//! reading of the clock, which the loop takes when it wakes.
//!
//! `parts` holds everything that the loop owns. The parts do not know the loop, and only `checkpoint` knows another
//! part, `projection`:
//!
//! - `intake`: the two lanes of the spool.
//! - `history`: loads rows of ended agents, finished handoffs and finished work items.
//! - `watches`: follows processes, panes and documents.
//! - `learned`: watches the rules file, and knows the roles of personas.
//! - `projection`: writes the files for others (those that can't be written are kept in `waiting`); `checkpoint` syncs
//!   them to the disk.
//! - `answers`: checks that requests are answered.
//! - `health`: whether the store works.
//! - `liveness`: the heartbeat; `status_line`: the line in tmux.
//! - `timers`: the loop's own deadlines.
//! - `tidy`: removes old files and rows, and what a killed sidecar has left.
//!
//! Above the parts, in the order in which they use each other: `reproject` (writes what the last run left unwritten,
//! with `unknown`), `gather` (turns files into events, with `intake_item`, which `intake` uses too, `request_words`,
//! `preload`, `clis`, and `corrupt` for corrupt rows), `tick` and `cycle` (what one cycle does), `settings` (the
//! configuration), `wait` (what wakes and ends the loop), `start` (first checks with `ground`, and reports failures
//! with `failed`). `signals` end the loop; `log` is its log.

mod answers;
mod checkpoint;
mod clis;
mod concerns;
mod corrupt;
#[cfg(test)]
mod corrupt_tests;
mod cycle;
mod failed;
#[cfg(test)]
mod flood_tests;
mod gather;
mod ground;
#[cfg(test)]
mod growth_tests;
mod health;
mod history;
#[cfg(test)]
mod history_tests;
mod intake;
mod intake_item;
mod kept;
mod learned;
mod liveness;
mod log;
mod parts;
mod preload;
mod projection;
#[cfg(test)]
mod replaced_tests;
mod reproject;
#[cfg(test)]
mod reproject_tests;
mod request_words;
mod settings;
#[cfg(test)]
mod short_tests;
mod signals;
mod start;
mod status_line;
#[cfg(test)]
mod stuck_tests;
#[cfg(test)]
mod tests;
mod tick;
mod tidy;
#[cfg(test)]
mod time_tests;
mod timers;
#[cfg(test)]
mod twins_tests;
mod unknown;
mod wait;
mod waiting;
mod watches;
#[cfg(all(test, target_os = "linux"))]
mod year_tests;

pub use ground::fault_of_prompts;
pub use signals::ignores_hang_ups;
pub use start::{SidecarOptions, run};
