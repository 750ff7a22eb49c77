//! The one integration binary: real tmux servers, real files, the real program.

mod cli;
mod cli_client;
mod cli_demo;
mod cli_wait;
mod house;
mod support;
