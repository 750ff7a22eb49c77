//! `run` hands over to the sidecar, `demo-agent` to the demo agent.

use super::args::RunArgs;
use crate::config::Home;
use crate::{demo, sidecar};
use std::ffi::OsString;

/// Runs the sidecar until it is told to end; returns its exit code. The one place where the command line meets it.
#[must_use]
pub fn start(home: Home, args: &RunArgs, json: bool) -> u8 {
    sidecar::run(&sidecar::Options { home, tmux: args.tmux.clone(), json })
}

/// Runs the built-in demo agent in this terminal; returns its exit code. The one place where the command line meets it.
#[must_use]
pub fn demo_agent(args: &[OsString]) -> u8 {
    demo::agent::main(args.iter().cloned())
}
