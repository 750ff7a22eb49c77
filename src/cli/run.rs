//! `run` hands over to the sidecar, `demo-agent` to the demo agent.

use super::args::RunArgs;
use super::error::CliError;
use super::home::Home;
use crate::exit;
use std::path::PathBuf;

/// What the sidecar is started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// The one folder, absolute.
    pub home: PathBuf,
    /// The tmux server: a name as for `tmux -L`, or a path if it has a slash. Without it, what the configuration or
    /// `TASUKI_TMUX` says, else the user's default server.
    pub tmux: Option<String>,
}

impl RunOptions {
    /// From the command line.
    #[must_use]
    pub fn new(home: &Home, args: &RunArgs) -> Self {
        RunOptions { home: home.root().to_path_buf(), tmux: args.tmux.clone() }
    }
}

/// Runs the sidecar until it is told to end; returns its exit code. The one place where the command line meets it.
#[must_use]
pub fn start(options: &RunOptions) -> u8 {
    let error = CliError::config("no_sidecar", "This build of tasuki has no sidecar.");
    let home = options.home.display();
    super::output::eprint_quietly(&error.hint(format!("Nothing in {home} was touched.")).text());
    exit::CONFIG
}

/// Runs the built-in demo agent in this terminal; returns its exit code. The one place where the command line meets it.
#[must_use]
pub fn demo_agent(args: &[std::ffi::OsString]) -> u8 {
    let _ = args;
    let error = CliError::config("no_demo_agent", "This build of tasuki has no demo agent.");
    super::output::eprint_quietly(&error.text());
    exit::CONFIG
}
