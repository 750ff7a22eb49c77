//! The one integration binary: real tmux servers, real files, the real program.

mod agents_hook;
mod agents_screens;
mod cli;
mod cli_client;
mod cli_demo;
mod cli_wait;
mod config;
mod contract;
mod contract_agents;
mod demo;
mod demo_faults;
mod flow;
mod house;
mod personas;
mod readme;
mod sim;
mod spool_documents;
mod spool_intake;
mod spool_journal;
mod spool_output;
mod spool_watch;
mod support;
mod tmux_crash;
mod tmux_create;
mod tmux_server;
mod tmux_type;
