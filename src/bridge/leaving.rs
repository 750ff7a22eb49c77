//! What happens to open requests to other hosts when this home leaves its fleet, or gets a new identity.

use super::folder::FleetFolder;
use super::out::{answer_here, load, save};
use super::refused::FleetRefused;
use super::rejected::reject;
use crate::cli::error::CliError;
use crate::core::host::{FleetId, HostName};

/// Notes in all open requests that they may have been published. The home is about to get a new identity, and can't
/// find out afterwards.
///
/// # Errors
/// A file can't be read or written.
pub(super) fn note_all_begun(folder: &FleetFolder) -> Result<(), CliError> {
    for name in folder.names("out")? {
        let Some(id) = name.strip_suffix(".json").and_then(|stem| stem.parse::<FleetId>().ok()) else { continue };
        if let Some(mut out) = load(folder, &id)? {
            out.was_begun = true;
            save(folder, &id, &out)?;
        }
    }
    Ok(())
}

/// Answers all open requests, and puts files that were not taken yet into `rejected/`, because this home leaves its
/// fleet.
///
/// # Errors
/// A file can't be read or written.
pub(super) fn answer_all_open(folder: &FleetFolder, own: &HostName) -> Result<(), CliError> {
    let now = crate::clock::Clock::new().now();
    for name in folder.all_names("out")? {
        let Some(id) = name.strip_suffix(".json").and_then(|stem| stem.parse::<FleetId>().ok()) else { continue };
        let Some(out) = load(folder, &id)? else { continue };
        let refused = match out.was_begun {
            true => {
                FleetRefused::new(504, "no_answer", format!("{own} has left the fleet before {} has answered.", out.to))
                    .hint(format!("The request may have been carried out: look at {}.", out.to))
            }
            false => FleetRefused::new(503, "not_sent", format!("{own} has left the fleet. Nothing was sent.")),
        };
        let result = refused.result(id.as_str(), Some(&out.kind), out.request.as_bytes(), &now.rfc3339());
        answer_here(folder, &id, out.to.as_str(), result)?;
    }
    let left = FleetRefused::new(503, "left", format!("{own} has left the fleet before it took this file."));
    folder.all_names("requests")?.iter().try_for_each(|name| reject(folder, name, &left, &now))
}
