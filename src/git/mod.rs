//! Asks the user's own git about the repository in an agent's working directory: its state, and whether the claims of a
//! document about it are true.
//!
//! A repository is hostile input. Its configuration, its attributes and the names in it may come from anywhere, and git
//! runs many programs that a configuration names. So:
//!
//! - Calls that look at files and objects read a configuration that tasuki writes (`stand_in`). Only calls that print
//!   names and settings read the repository's own configuration (`repository`). tasuki copies a few of its settings
//!   (`settings`).
//! - Of the settings of the user and of the machine, only the list of files to ignore in every repository counts
//!   (`ignored`).
//! - Each call has a limit on its time and its output, no terminal, an environment that tasuki makes, and a process
//!   group, which tasuki kills as a whole (`call`).
//! - Nothing is written into the repository and nothing is fetched.
//! - Git's own check of who owns the repository stays: git does not read a repository of another user. The exceptions
//!   that the user has set (`safe.directory`) do not count.
//! - In facts, each text is one line without control characters (`words`), and an address has no credentials
//!   (`address`).
//!
//! Everything is best effort: a fact that git does not tell in time is not known, and nothing fails because of that.

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
pub use stand_in::remove_left_stand_ins;

use crate::contract::facts::RepositoryFacts;
use crate::core::check::{Claims, Lookups};
use call::GitCaller;
use std::path::Path;
use std::time::Duration;

impl Git {
    /// The longest time that [`Git::facts`] may take, and the same for [`Git::lookups`]: three times [`Git::limit`].
    #[must_use]
    pub fn longest(&self) -> Duration {
        call::longest(self.limit)
    }

    /// The facts of the repository that contains the folder; `None` if the folder is in no repository, or if git can't
    /// tell. `since`: when the agent registered, as in RFC 3339; without it no commits are listed. What could not be
    /// found out is added to `not_known`, a sentence each, such as "git took longer than 2 s". It takes at most three
    /// times [`Git::limit`].
    pub async fn facts(&self, cwd: &Path, since: Option<&str>, not_known: &mut Vec<String>) -> Option<RepositoryFacts> {
        facts::take(&GitCaller::new(self), cwd, since, not_known).await
    }

    /// Looks the claims up in the folder and its repository. A claim that can't be answered for certain within three
    /// times [`Git::limit`] is left out. If the folder is in no repository, every claim is left out.
    pub async fn lookups(&self, cwd: &Path, claims: &Claims) -> Lookups {
        lookups::look_up(&GitCaller::new(self), cwd, claims).await
    }
}
