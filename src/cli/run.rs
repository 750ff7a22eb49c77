//! `run` starts the sidecar, `demo-agent` the demo agent.

use crate::config::Home;
use crate::{demo, sidecar};
use clap::Args;
use std::ffi::OsString;

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The tmux server: a name as for `tmux -L`, or a path with a slash [default: TASUKI_TMUX, else your default server].
    #[arg(long, value_name = "SOCKET")]
    pub tmux: Option<String>,
}

/// Runs the sidecar until it is told to end; returns its exit code. The CLI calls it only here.
#[must_use]
pub fn start(home: Home, args: &RunArgs, json: bool) -> u8 {
    sidecar::run(&sidecar::SidecarOptions { home, tmux: args.tmux.clone(), json })
}

/// Runs the built-in demo agent in this terminal; returns its exit code. The CLI calls it only here.
#[must_use]
pub fn demo_agent(args: &[OsString]) -> u8 {
    demo::agent::main(args.iter().cloned())
}
