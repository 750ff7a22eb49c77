//! Reads the other hosts for `top`, and tells the bridge that somebody looks.

use super::choice::Row;
use super::fleet_rows;
use super::folder::{FolderKind, WatchedFolder};
use super::model::Model;
use crate::cli::error::CliError;
use crate::cli::hosts;
use crate::cli::view::{self, ViewFile};
use crate::clock::Clock;
use crate::config::Home;
use crate::contract::HostView;
use crate::contract::fleet::HOST_STALE_MS;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often the bridge is told that somebody looks. Each time, it keeps reading the rosters for 60 s.
const LOOK_EVERY: Duration = Duration::from_secs(30);
const MOST_HOSTS: usize = 1_000;

pub(super) struct FleetReader<'a> {
    home: &'a Home,
    own: String,
    hosts: WatchedFolder<ViewFile<HostView>>,
    /// The bridge is connected and has read the rosters within 45 s.
    is_fresh: bool,
    looked: Option<Instant>,
}

impl<'a> FleetReader<'a> {
    /// # Errors
    /// `no_fleet` if this home has joined no fleet; an error if the file that says so can't be read.
    pub(super) fn new(home: &'a Home) -> Result<Self, CliError> {
        let own = hosts::own_name(home)?.ok_or_else(hosts::no_fleet)?.to_string();
        let read = |path: &Path| view::read::<HostView>(path);
        let kind = FolderKind { read, lives: |_| true, names: view::stems, most: MOST_HOSTS };
        let hosts = WatchedFolder::new(Self::folder(home), &[], kind);
        Ok(FleetReader { home, own, hosts, is_fresh: false, looked: None })
    }

    /// The folder to watch for changes.
    pub(super) fn folder(home: &Home) -> PathBuf {
        home.fleet().join("hosts")
    }

    /// Reads changed files; returns whether anything has changed.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub(super) fn refresh(&mut self) -> Result<bool, CliError> {
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            hosts::ask_for_rosters(self.home);
            self.looked = Some(Instant::now());
        }
        let is_fresh = self.bridge_has_read();
        let was_fresh = std::mem::replace(&mut self.is_fresh, is_fresh);
        Ok(self.hosts.refresh()? || was_fresh != self.is_fresh)
    }

    /// Whether the bridge lives, and has read the rosters lately. Rosters that it read long ago say nothing of the
    /// present, even if it lives.
    fn bridge_has_read(&self) -> bool {
        let now_ms = Clock::new().now().wall_ms;
        let Ok(Some(bridge)) = hosts::bridge(self.home) else { return false };
        let is_recent = hosts::rosters_read_ms(&bridge)
            .is_some_and(|at| now_ms.saturating_sub(at).saturating_abs() <= HOST_STALE_MS);
        is_recent && hosts::is_fresh(&bridge, now_ms)
    }

    /// The hosts besides this one.
    fn others(&self) -> impl Iterator<Item = &HostView> {
        self.hosts.rows().map(|host| &**host).filter(|host| host.host != self.own)
    }

    /// Adds the rows of all other hosts. An id that the model has already is not added again.
    pub(super) fn add_to(&self, model: &mut Model) {
        model.own_host = Some(self.own.clone());
        for host in self.others() {
            let agents = fleet_rows::agents(host, self.is_fresh);
            let new: Vec<_> = agents.into_iter().filter(|agent| model.agent(&agent.id).is_none()).collect();
            model.agents.extend(new);
            let handoffs = fleet_rows::handoffs(host, self.is_fresh);
            let new: Vec<_> = handoffs.into_iter().filter(|handoff| model.handoff(&handoff.id).is_none()).collect();
            model.handoffs.extend(new);
        }
    }

    /// The details of a row of another host.
    pub(super) fn lines(&self, row: &Row) -> Option<Vec<String>> {
        self.others().find_map(|host| match row {
            Row::Agent(id) => {
                let agent = host.agents.iter().find(|agent| agent.agent_id == *id)?;
                Some(fleet_rows::agent_lines(host, self.is_fresh, agent))
            }
            Row::Handoff(id) => {
                let handoff = host.handoffs.iter().find(|handoff| handoff.handoff_id == *id)?;
                Some(fleet_rows::handoff_lines(host, self.is_fresh, handoff))
            }
            Row::Failure(_) | Row::Work(_) | Row::Document(_) => None,
        })
    }
}
