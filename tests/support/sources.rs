//! The repository's own files, for tests that read them.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder whose name has one of these endings, in the order of the paths. Without endings: every
/// file.
pub(crate) fn files_below(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_below(&path, endings));
        } else if endings.is_empty()
            || path.extension().and_then(|end| end.to_str()).is_some_and(|end| endings.contains(&end))
        {
            found.push(path);
        }
    }
    found.sort();
    found
}
