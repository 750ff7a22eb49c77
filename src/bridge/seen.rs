//! `fleet/seen.json`: what the bridge must still know after a restart.

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
    /// The highest of these numbers whose roster the server is known to have stored.
    pub(super) stored_n: u64,
    /// For each home of the fleet, the highest number of its rosters that was seen.
    pub(super) numbers: RosterNumbers,
    /// When the stream of letters was made, as the server says: another time means another stream.
    pub(super) box_created: Option<String>,
}

impl SeenFile {
    /// Reads the file. A file that can't be read counts as missing: then the bridge may wait longer before it serves.
    pub(super) fn load(folder: &FleetFolder) -> SeenFile {
        let bytes = folder.read("", SEEN).ok().flatten().unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}
