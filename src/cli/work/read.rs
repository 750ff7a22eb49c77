//! Reads the views of all items, or only those of open items. A separate folder names the open items, so finding them
//! takes no longer with a hundred thousand finished items.

use crate::cli::error::CliError;
use crate::cli::unread::Unread;
use crate::cli::view;
use crate::config::Home;
use crate::contract::WorkBrief;
use serde::de::DeserializeOwned;
use std::fs;
use std::path::Path;

/// The ids of the items that are marked as not done, sorted: all open items, and for a moment some that are done.
///
/// # Errors
/// The folder can't be read. A missing folder holds no ids.
pub fn open_ids(home: &Home) -> Result<Vec<String>, CliError> {
    ids_in(&home.open_work())
}

/// The ids among the names in a folder, sorted.
///
/// # Errors
/// The folder can't be read. A missing folder holds no ids.
pub fn ids_in(folder: &Path) -> Result<Vec<String>, CliError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(CliError::file("Can't read", folder, &error)),
    };
    let mut ids = Vec::new();
    for entry in entries {
        let name = entry.map_err(|error| CliError::file("Can't read", folder, &error))?.file_name().into_string();
        ids.extend(name.ok().filter(|name| name.parse::<crate::core::id::ItemId>().is_ok()));
    }
    ids.sort_unstable();
    Ok(ids)
}

/// The ids of all items, sorted.
///
/// # Errors
/// The folder can't be read.
pub fn all_ids(home: &Home) -> Result<Vec<String>, CliError> {
    view::stems(&home.work_views())
}

/// Reads the views of these items, each as text and as `T`. A view that no longer exists is left out; a view that can't
/// be read is noted.
#[must_use]
pub fn views<T: DeserializeOwned>(home: &Home, ids: &[String], unread: &mut Unread) -> Vec<(String, T)> {
    let folder = home.work_views();
    ids.iter().filter_map(|id| unread.note(one(&folder.join(format!("{id}.json"))))).collect()
}

fn one<T: DeserializeOwned>(path: &Path) -> Result<Option<(String, T)>, CliError> {
    let Some(bytes) = view::read_bytes(path, view::LARGEST)? else { return Ok(None) };
    let wanted = serde_json::from_slice(&bytes).map_err(|error| view::not_json(path, &error))?;
    Ok(String::from_utf8(bytes).ok().map(|text| (text, wanted)))
}

/// One item as a list shows it. None if it no longer exists, or if its view can't be read, which is noted.
#[must_use]
pub fn brief(home: &Home, id: &str, unread: &mut Unread) -> Option<WorkBrief> {
    views(home, &[id.to_owned()], unread).pop().map(|(_, brief)| brief)
}
