//! Facts that several checks need, gathered once.

use super::super::client::{Pulse, SidecarPresence, is_sidecar};
use super::super::service::ManagerKind;
use super::super::view::{self, ViewFile};
use crate::child;
use crate::config::{Config, Home};
use crate::contract::{AgentView, SidecarView};
use crate::files::{self, way};
use crate::process;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How many agents are checked at most: those whose views changed last.
const MOST_AGENTS: usize = 500;

/// Runs a future to its end on this thread. Checks run in threads that have no tokio runtime.
pub(super) fn wait_for<F: Future>(work: F) -> std::io::Result<F::Output> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

/// The arguments that checks need.
#[derive(Debug, Clone)]
pub(super) struct DoctorOptions {
    /// Try the command for notices.
    pub(super) notify_test: bool,
    /// The service manager that was named; none for the one of this machine.
    pub(super) manager: Option<ManagerKind>,
    /// The tmux server that was named; none for the one of the sidecar.
    pub(super) tmux: Option<String>,
}

/// The facts, before anything is judged.
#[derive(Debug)]
pub(super) struct DoctorFacts {
    pub(super) home: Home,
    /// The configuration, or what is wrong with it.
    pub(super) config: Result<Config, String>,
    pub(super) presence: SidecarPresence,
    /// `view/sidecar.json`; an empty view if the file does not exist.
    pub(super) view: SidecarView,
    /// The sidecar's process, if it runs, even if its heartbeat is old.
    pub(super) process: Option<u32>,
    /// The path of this program.
    pub(super) program: Option<PathBuf>,
    pub(super) asked: DoctorOptions,
}

impl DoctorFacts {
    pub(super) fn look(home: Home, asked: DoctorOptions) -> DoctorFacts {
        let config = Config::load(&home.config()).map_err(|error| error.to_string());
        let presence = Pulse::new(&home).check();
        let view = view::sidecar(&home).ok().flatten().map(|seen| (*seen).clone()).unwrap_or_default();
        let pid = match presence {
            SidecarPresence::Alive { pid, .. } | SidecarPresence::Stale { pid, .. } => Some(pid),
            SidecarPresence::None => None,
        };
        let program = files::own_program().ok();
        let is_fresh = matches!(presence, SidecarPresence::Alive { .. });
        let process = pid.filter(|pid| is_sidecar(*pid, is_fresh, program.as_deref()));
        DoctorFacts { config, presence, view, process, program, asked, home }
    }

    /// The configuration, or the defaults if it can't be read: another check reports that.
    pub(super) fn config(&self) -> Config {
        self.config.as_ref().ok().cloned().unwrap_or_default()
    }

    /// A variable as the sidecar has it. If no sidecar runs, or this system does not show the environment of another
    /// process, the variable as this shell has it. None if it is empty.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        self.variable_as_it_is(name).filter(|value| !value.is_empty())
    }

    fn variable_as_it_is(&self, name: &str) -> Option<OsString> {
        match self.process.filter(|_| process::READS_ENVIRONMENTS) {
            Some(pid) => process::environ_var(pid, name).map(OsString::from),
            None => std::env::var_os(name),
        }
    }

    /// The `PATH` in which the sidecar finds programs; the default folders if it has no `PATH`.
    pub(super) fn path(&self) -> OsString {
        self.variable_as_it_is("PATH").unwrap_or_else(|| child::DEFAULT_PATH.into())
    }

    pub(super) fn whose(&self) -> &'static str {
        if self.process.is_some() { "the sidecar" } else { "this shell" }
    }

    /// A folder or link through which others could change the whole home, if there is one. `paths.above` reports it, so
    /// checks that fail only because of it do not repeat it.
    pub(super) fn open_way(&self) -> Option<PathBuf> {
        way::trust(self.home.root()).err()?.blamed().map(Path::to_owned)
    }

    /// The agents that live, as their views say.
    pub(super) fn agents(&self) -> Vec<ViewFile<AgentView>> {
        let mut agents: Vec<ViewFile<AgentView>> =
            view::latest_readable(&self.home.agent_views(), MOST_AGENTS).unwrap_or_default();
        agents.retain(|agent| agent.is_living());
        agents
    }
}
