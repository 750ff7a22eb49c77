//! `fleet/hosts`: what is known of the hosts of the fleet, and whether somebody looks at it.

use super::folder::FleetFolder;
use crate::contract;
use crate::contract::fleet::HostView;
use crate::core::host::HostName;
use crate::files::Grade;
use crate::fleet::lease::Digest;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// What is known of one host.
#[derive(Debug, Clone)]
pub(super) struct KnownHost {
    pub(super) view: HostView,
    /// When its roster was stored, by the server's clock, in milliseconds since 1970; none if no roster of it was read.
    pub(super) told_ms: Option<i64>,
    /// What its view was read from; none if no roster of it was read.
    pub(super) read: Option<ReadRoster>,
    /// When this view was last written into its file, in milliseconds since the machine's boot; none if it was not yet.
    pub(super) written_ms: Option<u64>,
}

/// Which roster was read: the digest of its bytes, and the version of the list of members whose keys judged it. If both
/// are the same again, the roster need not be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadRoster {
    pub(super) digest: Digest,
    pub(super) list_version: u64,
}

/// The hosts, and the state of reading their rosters.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) folder: FleetFolder,
    pub(super) hosts: BTreeMap<HostName, KnownHost>,
    /// When `fleet/looked` was last touched, by the wall clock: milliseconds since 1970.
    pub(super) looked_ms: Option<i64>,
    /// The hosts whose rosters are still to be asked for.
    pub(super) to_ask: Vec<HostName>,
    /// How many rosters were asked for and have not come.
    pub(super) asked: usize,
    /// When the last reading of all rosters began, in milliseconds since the machine's boot.
    pub(super) asked_ms: u64,
    /// When all rosters are to be read again, in milliseconds since the machine's boot.
    pub(super) all_due_ms: u64,
    /// When the reading that is under way began, by the wall clock; none while there is none.
    pub(super) reading_for: Option<String>,
    /// When the last complete reading began, by the wall clock.
    pub(super) read_at: Option<String>,
    /// Whether the server is to report changes of all rosters.
    pub(super) wants_changes: watch::Sender<bool>,
}

impl Directory {
    pub(super) fn new(folder: &FleetFolder) -> Directory {
        Directory {
            folder: folder.clone(),
            hosts: BTreeMap::new(),
            looked_ms: None,
            to_ask: Vec::new(),
            asked: 0,
            asked_ms: 0,
            all_due_ms: 0,
            reading_for: None,
            read_at: None,
            wants_changes: watch::Sender::new(false),
        }
    }

    /// When the last complete reading of all rosters began. A command that touched `fleet/looked` before then need not
    /// wait any longer.
    pub(super) fn read_at(&self) -> Option<String> {
        self.read_at.clone()
    }

    /// Writes what is known of a host into its file.
    pub(super) fn write(&self, host: &HostName) {
        let Some(known) = self.hosts.get(host) else { return };
        let text = contract::text(&known.view);
        if let Err(error) = self.folder.write("hosts", &format!("{host}.json"), text.as_bytes(), Grade::Fast) {
            tracing::warn!("{error}");
        }
    }
}
