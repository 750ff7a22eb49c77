//! `fleet/hosts`: what is known of the other hosts, and who looks at it.

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
    /// When its roster was stored, by the server's clock, in milliseconds since 1970; none if it never told.
    pub(super) told_ms: Option<i64>,
    /// What its view was read from; none if it never told.
    pub(super) read: Option<ReadRoster>,
    /// When its file was last written, by this machine's clock since its boot, in milliseconds; none if this view never was.
    pub(super) written_ms: Option<u64>,
}

/// The bytes of a roster, and the list of members by whose keys they were judged. The same bytes by the same list say
/// the same again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReadRoster {
    pub(super) digest: Digest,
    pub(super) list_version: u64,
}

/// The hosts, and who looks at them.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) folder: FleetFolder,
    pub(super) hosts: BTreeMap<HostName, KnownHost>,
    /// When `fleet/looked` was last touched, by the wall clock.
    pub(super) looked_ms: Option<i64>,
    /// Hosts whose rosters are still to be asked for, and how many were asked for and have not come.
    pub(super) to_ask: Vec<HostName>,
    pub(super) asked: usize,
    pub(super) asked_ms: u64,
    pub(super) all_due_ms: u64,
    /// The look that the reading under way answers, and when the last reading was complete.
    pub(super) reading_for: Option<String>,
    pub(super) read_at: Option<String>,
    /// Whether the changes of all rosters are wanted.
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

    /// When all rosters were last read: nothing that a look before then has asked for is missing.
    pub(super) fn read_at(&self) -> Option<String> {
        self.read_at.clone()
    }

    /// Writes what is known of a host.
    pub(super) fn write(&self, host: &HostName) {
        let Some(known) = self.hosts.get(host) else { return };
        let text = contract::text(&known.view);
        if let Err(error) = self.folder.write("hosts", &format!("{host}.json"), text.as_bytes(), Grade::Fast) {
            tracing::warn!("{error}");
        }
    }
}
