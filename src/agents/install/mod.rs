//! Installs a profile's hooks into the CLI's own configuration, and uninstalls them, for agents that people start
//! themselves. A person's file is changed at single places only (`merge`). The inserted text is recorded (`record`), so
//! that uninstalling restores the original bytes.
//!
//! First everything is read and a [`Change`] is planned; nothing is written until [`Change::apply`].

mod error;
mod found_file;
mod installed;
mod merge;
mod more;
mod plan;
mod record;
mod section;
mod shape;
mod style;
mod text;

pub use error::InstallError;
pub use found_file::Environment;
pub use installed::{HookCommand, Installed, Presence};
pub use more::{PlannedFile, Way};
pub use plan::{Change, Context, Shown};
pub(super) use section::check;

#[cfg(test)]
mod any_tests;
