//! tasuki: hands a coding agent's work to its successor, in tmux, and proves that every step happened.

pub mod agents;
pub mod cli;
pub mod clock;
pub mod config;
pub mod core;
pub mod demo;
pub mod exit;
pub mod files;
pub mod notify;
pub mod personas;
pub mod process;
pub mod runner;
pub mod sidecar;
pub mod spool;
pub mod store;
pub mod tmux;
