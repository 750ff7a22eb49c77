//! What a document says of its repository, as far as git can be asked about it, and what git has answered.

use std::collections::{BTreeMap, BTreeSet};

/// What a document names that can be looked up. Each list is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claims {
    /// What looks like the hash of a commit, as it was written.
    pub commits: BTreeSet<String>,
    /// What is called a branch, without the name of a remote before it.
    pub branches: BTreeSet<String>,
    /// Paths of files, relative to the working directory or to the top of its repository, and the folders in which they
    /// begin. In a document that speaks of several repositories, a path whose folder is not there is meant in another one.
    pub paths: BTreeSet<String>,
}

/// What was found out about the claims. A claim without an answer is not known, and not a fault.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lookups {
    /// By the hash as it was written.
    pub commits: BTreeMap<String, CommitLookup>,
    /// Whether there is a local or remote branch of that name.
    pub branches: BTreeMap<String, bool>,
    /// By the relative path.
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

/// Where a path is. Documents shorten paths: the end of a file's path counts as that file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathLookup {
    /// In the working directory, or below the top of the work tree.
    Exists,
    /// In HEAD or in an earlier commit; or it is the end of the path of a file there, or in the work tree.
    InGit,
    /// Nowhere. A path that leads into a submodule has no answer instead.
    Missing,
}

/// A credential in the document, by nothing but what may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSecret {
    pub kind: String,
    pub line: usize,
    /// Its last four characters; empty if it is short.
    pub last: String,
}
