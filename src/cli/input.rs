//! Reads a text for a command, from a file or from standard input: bounded, and UTF-8.

use super::error::CliError;
use super::view;
use std::io::Read;
use std::path::Path;

/// The largest text, in bytes: what a request can carry.
const LARGEST: u64 = 1 << 20;

/// All of standard input.
///
/// # Errors
/// When it can't be read, is over 1 MiB, or is not UTF-8.
pub fn standard_input() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::refused("input", format!("Standard input can't be read: {error}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(CliError::refused("too_large", "Standard input is larger than 1 MiB. Nothing was sent."));
    }
    utf8(bytes, "Standard input")
}

/// All of a regular file.
///
/// # Errors
/// When it does not exist, can't be read, is over 1 MiB, or is not UTF-8.
pub fn text_file(path: &Path) -> Result<String, CliError> {
    let bytes = view::read_bytes(path, LARGEST)?;
    let missing = || CliError::refused("file", format!("There is no file {}.", path.display()));
    utf8(bytes.ok_or_else(missing)?, &path.display().to_string())
}

fn utf8(bytes: Vec<u8>, what: &str) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        CliError::refused("not_utf8", format!("{what} is not UTF-8 (byte {at}). Nothing was sent."))
    })
}
