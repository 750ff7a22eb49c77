//! The one integration binary: real tmux servers, real files, the real program.

mod agents_hook;
mod agents_screens;
mod demo;
mod demo_faults;
mod support;
