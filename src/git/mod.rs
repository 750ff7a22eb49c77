//! Asks the user's own git about the repository in an agent's working directory: its state, and what a document claims
//! of it.
//!
//! A repository is hostile input. Its configuration, its attributes and the names in it may come from anywhere, and git
//! runs many programs that a configuration names. So:
//!
//! - The git that looks at files and objects reads a configuration of tasuki's (`stand_in`). The repository's own one is
//!   read by calls that only print names and settings (`repository`), and few of its settings are taken over
//!   (`settings`).
//! - Of the settings of the user and of the machine only the list of files that are ignored everywhere counts
//!   (`ignored`).
//! - Each call has a limit on its time and its output, no terminal, an environment that tasuki makes, and a process
//!   group,
//!   which is killed as a whole (`call`).
//! - Nothing is written into the repository and nothing is fetched.
//! - Git's own check of who owns the repository stays: git does not read a repository of another user. The exceptions
//!   that
//!   the user has set (`safe.directory`) do not count.
//! - What goes into facts is one line without control characters (`words`), and an address without what gives access
//!   (`address`).
//!
//! Everything is best effort: what is not found out in time is not known, which fails nothing.

mod address;
mod call;
mod facts;
mod ignored;
mod in_progress;
mod index;
mod lookups;
mod paths;
mod repository;
mod settings;
mod stand_in;
mod status;
mod words;

#[cfg(test)]
mod tests;

pub use call::Git;

use crate::contract::facts::RepositoryFacts;
use crate::core::check::{Claims, Lookups};
use call::GitCaller;
use std::path::Path;

impl Git {
    /// The facts of the repository in which the folder is; none if it is in none, or if that can't be told. `since`:
    /// when the agent registered, as in RFC 3339; without it no commits are listed. What could not be found out is
    /// added to `not_known`, a sentence each, such as "git took longer than 2 s". It takes at most three times
    /// [`Git::limit`].
    pub async fn facts(&self, cwd: &Path, since: Option<&str>, not_known: &mut Vec<String>) -> Option<RepositoryFacts> {
        facts::take(&GitCaller::new(self), cwd, since, not_known).await
    }

    /// What the folder and its repository say of the claims. A claim that could not be looked up for certain within
    /// three times [`Git::limit`] is left out; so is every claim if the folder is in no repository.
    pub async fn lookups(&self, cwd: &Path, claims: &Claims) -> Lookups {
        lookups::look_up(&GitCaller::new(self), cwd, claims).await
    }
}
