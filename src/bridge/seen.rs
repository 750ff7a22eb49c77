//! `fleet/seen.json`: what must be known after a restart.

use super::folder::FleetFolder;
use crate::fleet::roster::RosterNumbers;
use serde::{Deserialize, Serialize};

/// The file's name.
pub(super) const SEEN: &str = "seen.json";

/// What the file holds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct SeenFile {
    /// The highest number of a roster that this home has put or seen at its name.
    pub(super) last_n: u64,
    /// The highest of them that the server is known to have stored.
    pub(super) stored_n: u64,
    /// The highest number of each home's roster.
    pub(super) numbers: RosterNumbers,
    /// When the stream of letters was made.
    pub(super) box_created: Option<String>,
}

impl SeenFile {
    /// What was known before the restart. A file that can't be read is as none: then the bridge waits longer before it
    /// serves.
    pub(super) fn load(folder: &FleetFolder) -> SeenFile {
        let bytes = folder.read("", SEEN).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
