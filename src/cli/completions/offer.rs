//! What is offered to a shell: one name with a few words about it.

use crate::config::Home;
use crate::core::text::sanitise;
use clap_complete::CompletionCandidate;

/// How many candidates of one kind are offered, the newest first.
pub(super) const MOST_OFFERED: usize = 100;

/// The home, as the environment names it.
pub(super) fn home() -> Option<Home> {
    Home::resolve(None).ok()
}

/// A candidate with a description.
pub(super) fn one(name: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(sanitise(name)).help(Some(sanitise(about).into()))
}

/// The beginning of an id.
pub(super) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}
