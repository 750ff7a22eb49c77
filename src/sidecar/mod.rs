//! The loop: the only caller of `decide` and of `commit`. Each cycle is given one reading of the clock, made when the
//! loop wakes.
//!
//! `parts` holds everything that the loop owns. The parts do not know the loop, and only `checkpoint` knows another
//! part, `projection`. `intake` knows the
//! lanes, `history` loads rows of ended agents and handoffs, `watches` follows processes, panes and documents,
//! `learned` watches the rules file and holds roles, `projection` writes for others,
//! `checkpoint` syncs that to the disk, `answers`
//! checks that requests are answered, `health` knows the state of the store, `liveness` and `status_line` show all this in the
//! view and in tmux, `timers` are the loop's own times, and `tidy` removes old files and rows.
//!
//! Above them, in the order in which they use each other: `reproject` (what the last run left unwritten), `gather` (files
//! become events, with `intake_item`, `preload`, `clis`, and `corrupt` for corrupt rows), `tick` and `cycle` (what one cycle
//! does), `settings` (the configuration), `wait` (what wakes and ends the loop), `start` (on `ground`). `signals` end
//! the loop; `log` is its log.

mod answers;
mod checkpoint;
mod clis;
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
mod intake;
mod intake_item;
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
mod watches;
#[cfg(all(test, target_os = "linux"))]
mod year_tests;

pub use ground::fault_of_prompts;
pub use start::{SidecarOptions, run};
