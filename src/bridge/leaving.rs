//! What becomes of the requests that are on their way when this home leaves its fleet, or becomes another home.

use super::folder::FleetFolder;
use super::out::{answer, load, reject, save};
use super::refused::FleetRefused;
use crate::cli::error::CliError;
use crate::core::host::{FleetId, HostName};

/// Notes of all requests that are on their way that they may have been published: the home is about to become another
/// one, which can't know.
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

/// Answers all requests that are on their way, and puts those aside that were not taken: this home leaves its fleet.
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
        answer(folder, &id, out.to.as_str(), result)?;
    }
    folder.all_names("requests")?.iter().try_for_each(|name| reject(folder, name, "left", &now))
}
