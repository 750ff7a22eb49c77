//! `run` starts the sidecar, `demo-agent` the demo agent.

use crate::config::Home;
use crate::{demo, sidecar};
use std::ffi::OsString;

/// The name of a tmux server as an argument gives it, with a relative path made absolute: the service runs in another
/// folder.
pub(super) fn whole_socket(named: &str) -> String {
    let whole = std::path::absolute(named).ok().filter(|_| named.contains('/'));
    whole.and_then(|path| path.into_os_string().into_string().ok()).unwrap_or_else(|| named.to_owned())
}

/// Runs the sidecar until it is told to end; returns its exit code. `tmux`: the tmux server, if one was named.
#[must_use]
pub fn start(home: Home, tmux: Option<&str>, json: bool) -> u8 {
    sidecar::run(&sidecar::SidecarOptions { home, tmux: tmux.map(whole_socket), json })
}

/// Runs the built-in demo agent in this terminal; returns its exit code.
#[must_use]
pub fn demo_agent(args: &[OsString]) -> u8 {
    demo::agent::main(args.iter().cloned())
}
