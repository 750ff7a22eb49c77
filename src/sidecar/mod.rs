//! The loop: the only place that reads the clock, once each time it wakes; the only caller of `decide` and of `commit`.
//!
//! `parts` is all that the loop owns. Its parts know nothing of each other, nor of the loop: `intake` is what is known of the
//! lanes, `history` looks up rows that are over, `watches` follows processes, panes and documents, `learned` rules and roles,
//! `projector` writes for others, `checkpoint` brings that onto the disk, `answers` tells whether requests are answered,
//! `health` how the store is, `heart` and `glance` say so in the view and in tmux, `timers` are the loop's own times, `tidy`
//! removes what has had its time.
//!
//! On them stand, in the order in which they look into each other: `again` for what the last run left unwritten, `gather` for
//! how files become events (`taken`, with `facts`, `clis`, and `damage` for rows that can't be understood), `tick` and `turn`
//! for what one turn does, `settings` for the configuration, `wait` for what wakes and ends the loop, `start` for the
//! beginning (on `ground`). `signals` end it, `log` is what is said.

mod again;
#[cfg(test)]
mod again_tests;
mod answers;
mod checkpoint;
mod clis;
mod damage;
#[cfg(test)]
mod damage_tests;
mod facts;
mod failed;
#[cfg(test)]
mod flood_tests;
mod gather;
mod glance;
mod ground;
#[cfg(test)]
mod growth_tests;
mod health;
mod heart;
mod history;
mod intake;
mod learned;
mod log;
mod parts;
mod projector;
mod settings;
#[cfg(test)]
mod short_tests;
mod signals;
mod start;
mod taken;
#[cfg(test)]
mod tests;
mod tick;
mod tidy;
#[cfg(test)]
mod time_tests;
mod timers;
mod turn;
mod wait;
mod watches;
#[cfg(test)]
mod year_tests;

pub use ground::fault_of_prompts;
pub use start::{Options, run};
