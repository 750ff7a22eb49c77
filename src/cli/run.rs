//! `run` starts the sidecar, `demo-agent` the demo agent.

use crate::config::Home;
use crate::{demo, sidecar};
use clap::Args;
use std::ffi::OsString;

/// `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The tmux server: a name as for `tmux -L`, or a path with a slash [default: TASUKI_TMUX, else your default
    /// server].
    #[arg(long, value_name = "SOCKET")]
    pub tmux: Option<String>,
}

/// The name of a tmux server as an argument gives it, with a relative path made absolute: the service runs in another
/// folder.
pub(super) fn whole_socket(named: &str) -> String {
    let whole = std::path::absolute(named).ok().filter(|_| named.contains('/'));
    whole.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| named.to_owned())
}

/// Runs the sidecar until it is told to end; returns its exit code.
#[must_use]
pub fn start(home: Home, args: &RunArgs, json: bool) -> u8 {
    sidecar::run(&sidecar::SidecarOptions { home, tmux: args.tmux.as_deref().map(whole_socket), json })
}

/// Runs the built-in demo agent in this terminal; returns its exit code.
#[must_use]
pub fn demo_agent(args: &[OsString]) -> u8 {
    demo::agent::main(args.iter().cloned())
}
