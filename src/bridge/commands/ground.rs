//! What most commands begin with: the folder and its settings, this host's keys, and a line of input.

use crate::bridge::folder::FleetFolder;
use crate::bridge::identity::{self, HostFile, save_keys};
use crate::bridge::settings::FleetSettings;
use crate::cli::CliSession;
use crate::cli::error::CliError;
use crate::core::host::HostName;
use crate::fleet::HostKeys;
use std::io::Read;

/// How much of standard input is read, in bytes.
const MOST_INPUT: u64 = 64 << 10;

/// `HOME/fleet`, opened, and the settings in it.
pub(super) struct Ground {
    pub(super) folder: FleetFolder,
    pub(super) settings: FleetSettings,
}

impl Ground {
    /// Opens the folder and reads the settings. Makes the home and the folder if they are missing.
    pub(super) fn open(session: &CliSession) -> Result<Ground, CliError> {
        let root = session.home.root();
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(root).map_err(|error| CliError::file("Can't make the home", root, &error))?;
        let folder = FleetFolder::open(&session.home)?;
        let settings = FleetSettings::load(&folder)?;
        Ok(Ground { folder, settings })
    }

    /// This host's name and keys, saved. If it has no keys, they are made.
    ///
    /// # Errors
    /// `is_member` if this home is a member under another name; a file can't be read or written.
    pub(super) fn own_key(&self, name: &HostName) -> Result<(HostFile, HostKeys), CliError> {
        let known = HostFile::load(&self.folder)?;
        if let Some(host) = known.as_ref().filter(|host| host.fleet.is_some() && host.name != *name) {
            let message = format!("This home is the host {} of a fleet already. Nothing was changed.", host.name);
            return Err(CliError::refused("is_member", message).hint("To take another name: tasuki fleet leave first."));
        }
        let host = known.map_or_else(|| HostFile::new(name.clone()), |host| HostFile { name: name.clone(), ..host });
        let keys = match identity::load_keys(&self.folder, &self.settings, identity::KEY_WITHIN)? {
            Some(keys) => keys,
            None => {
                let keys = HostKeys::generate();
                save_keys(&self.folder, &keys)?;
                keys
            }
        };
        host.save(&self.folder)?;
        Ok((host, keys))
    }
}

/// The argument; for `-`, the first line of standard input that is not empty.
pub(super) fn line_of_input(argument: &str) -> Result<String, CliError> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    let read = std::io::stdin().lock().take(MOST_INPUT).read_to_string(&mut text);
    read.map_err(|error| CliError::refused("input", format!("Standard input can't be read: {error}.")))?;
    Ok(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned())
}
