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
    /// Log as JSON lines.
    pub json: bool,
}

impl RunOptions {
    /// From the command line.
    #[must_use]
    pub fn new(home: &Home, args: &RunArgs, json: bool) -> Self {
        RunOptions { home: home.root().to_path_buf(), tmux: args.tmux.clone(), json }
    }
}

/// Runs the sidecar until it is told to end; returns its exit code. The one place where the command line meets it.
#[must_use]
pub fn start(options: &RunOptions) -> u8 {
    let home = match crate::config::Home::at(&options.home) {
        Ok(home) => home,
        Err(error) => {
            super::output::eprint_quietly(&CliError::config("no_home", error.to_string()).text());
            return exit::CONFIG;
        }
    };
    crate::sidecar::run(&crate::sidecar::Options { home, tmux: options.tmux.clone(), json: options.json })
}

/// Runs the built-in demo agent in this terminal; returns its exit code. The one place where the command line meets it.
#[must_use]
pub fn demo_agent(args: &[std::ffi::OsString]) -> u8 {
    crate::demo::agent::main(args.iter().cloned())
}
