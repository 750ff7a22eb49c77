//! Reads the views of all items, or only those of open items. A separate folder names the open items, so finding them
//! takes no longer with a hundred thousand finished items.

use crate::cli::error::CliError;
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
    let names = entries.filter_map(Result::ok).filter_map(|entry| entry.file_name().into_string().ok());
    let mut ids: Vec<String> = names.filter(|name| name.parse::<crate::core::id::ItemId>().is_ok()).collect();
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

/// Reads the views of these items, each as text and as `T`. A view that can't be read, or no longer exists, is left
/// out.
#[must_use]
pub fn views<T: DeserializeOwned>(home: &Home, ids: &[String]) -> Vec<(String, T)> {
    let folder = home.work_views();
    let read = |id: &String| {
        let bytes = view::read_bytes(&folder.join(format!("{id}.json")), view::LARGEST).ok().flatten()?;
        let text = String::from_utf8(bytes).ok()?;
        let wanted = serde_json::from_str(&text).ok()?;
        Some((text, wanted))
    };
    ids.iter().filter_map(read).collect()
}

/// One item as a list shows it. None if its view can't be read.
#[must_use]
pub fn brief(home: &Home, id: &str) -> Option<WorkBrief> {
    views(home, &[id.to_owned()]).pop().map(|(_, brief)| brief)
}
