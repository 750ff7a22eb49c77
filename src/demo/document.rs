//! Reads a predecessor's document.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Largest document that is read, in bytes.
const MAX_DOCUMENT: u64 = 1 << 20;

pub(super) fn read_document(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_DOCUMENT).read_to_string(&mut text)?;
    Ok(text)
}
