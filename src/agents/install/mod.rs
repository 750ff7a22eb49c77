//! Putting a profile's hooks into the CLI's own configuration, and taking them out again, for agents that people start
//! themselves. A person's file is changed at single places only (`merge`); what was put in is recorded
//! (`record`), so that taking it out leaves the very bytes of before.
//!
//! First everything is looked at and a [`Change`] is planned; nothing is written until [`Change::apply`].

mod error;
mod installed;
mod merge;
mod place;
mod plan;
mod record;
mod section;
mod style;
mod text;

pub use error::InstallError;
pub use installed::{HookCommand, Installed, Presence};
pub use place::Environment;
pub use plan::{Change, Context, Shown};
pub(super) use section::check;

#[cfg(test)]
mod any_tests;
