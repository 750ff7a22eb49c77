//! The service's file: written whole or not at all, and never over a file that tasuki did not write.

use super::manager::MAX_FILE;
use crate::cli::error::CliError;
use crate::service::ServiceProgram;
use std::io::{Read, Write};
use std::path::Path;

/// Whether a file that tasuki wrote is there.
///
/// # Errors
/// Another file is there, or it can't be read.
pub(super) fn is_ours(path: &Path, service: &ServiceProgram) -> Result<bool, CliError> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(CliError::file("Can't read", path, &error)),
        Ok(meta) if !meta.is_file() => return Err(foreign(path)),
        Ok(_) => {}
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| CliError::file("Can't read", path, &error))?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| CliError::file("Can't read", path, &error))?;
    if text.contains(&service.ours()) { Ok(true) } else { Err(foreign(path)) }
}

fn foreign(path: &Path) -> CliError {
    let message = format!("{} was not written by tasuki; it was left as it is.", path.display());
    CliError::refused("not_ours", message).hint("Move the file away, or keep managing the service yourself with it.")
}

/// Writes the file. Returns whether that changed anything.
///
/// # Errors
/// A file that tasuki did not write is there, or it can't be written.
pub(super) fn write(path: &Path, service: &ServiceProgram, text: &str) -> Result<bool, CliError> {
    if is_ours(path, service)? && std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(false);
    }
    let failed = |error: std::io::Error| CliError::file("Can't write", path, &error);
    let folder = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut scratch = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    scratch.write_all(text.as_bytes()).and_then(|()| scratch.as_file().sync_all()).map_err(failed)?;
    scratch.persist(path).map_err(|error| failed(error.error))?;
    Ok(true)
}

/// Removes the file.
///
/// # Errors
/// It can't be removed.
pub(super) fn remove(path: &Path) -> Result<(), CliError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(CliError::file("Can't remove", path, &error)),
        _ => Ok(()),
    }
}
