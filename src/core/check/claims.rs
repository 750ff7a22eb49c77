//! What a document says of its repository, as far as that can be looked up, and the answers.

use std::collections::{BTreeMap, BTreeSet};

/// The names in a document that can be looked up. Each list is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// Hashes of commits, as the document writes them.
    pub commits: BTreeSet<String>,
    /// Names of branches, without `origin/` before them.
    pub branches: BTreeSet<String>,
    /// Paths of files, relative to the working directory or to the top of its repository, and the first folder of each
    /// path. The folders help with a document that speaks of several repositories: a path whose first folder does not
    /// exist here belongs to another repository.
    pub paths: BTreeSet<String>,
}

/// The answers to the claims. A claim without an answer is not known, which is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lookups {
    /// The key is the hash as the document writes it.
    pub commits: BTreeMap<String, CommitLookup>,
    /// Whether there is a local or remote branch of that name.
    pub branches: BTreeMap<String, bool>,
    /// The key is the path as in [`Claims::paths`].
    pub paths: BTreeMap<String, PathLookup>,
}

/// What git knows of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitLookup {
    /// No commit has that hash.
    Missing,
    Known {
        /// Its full hash.
        hash: String,
        /// Whether a remote branch holds it.
        on_remote: bool,
        /// Whether files differ between it and HEAD.
        differs_from_head: bool,
    },
}

/// Where a path exists. Documents shorten paths, so the end of a file's path counts as that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathLookup {
    /// In the working directory, or below the top of the work tree.
    Exists,
    /// In HEAD or in another commit; or the path is the end of a file's path there or in the work tree.
    InGit,
    /// Nowhere. If a path may lead into a submodule, or if git ignores it, it has no answer instead.
    Missing,
}

/// A credential in the document, with only those facts about it that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    pub kind: String,
    pub line: usize,
    /// Its last four characters; empty if it is short.
    pub last: String,
}
