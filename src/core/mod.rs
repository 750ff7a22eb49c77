//! The pure core: knows no file, no clock, no process and no randomness.

pub mod hook;
pub mod id;
pub mod pane;
pub mod settings;
pub mod text;
pub mod time;
