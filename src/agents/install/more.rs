//! The further files of an installation, such as the command `/handoff`: each is wholly ours. Where a person has a file
//! of their own in such a place, theirs stays, and the hooks are installed all the same.

use super::InstallError;
use super::plan::{Change, Context};
use super::section::whole;
use crate::agents::profile::Profile;
use std::path::PathBuf;

/// Whether something is installed or uninstalled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    In,
    Out,
}

/// What is to become of one further file.
#[derive(Debug)]
pub struct PlannedFile {
    /// The file, as people name it.
    pub path: PathBuf,
    /// `None` if the file is a person's own, which stays as it is.
    pub change: Option<Change>,
}

impl Profile {
    /// Plans what becomes of each of the profile's further files.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing is changed.
    pub fn plan_files(&self, context: &Context<'_>, way: Way) -> Result<Vec<PlannedFile>, InstallError> {
        let planned = self.section()?.files.iter().map(whole).map(|file| {
            let planned = match way {
                Way::In => self.plan_in(&file, context),
                Way::Out => self.plan_out(&file, context),
            };
            match planned {
                Ok(change) => Ok(PlannedFile { path: change.file().to_owned(), change: Some(change) }),
                Err(InstallError::Foreign { path }) => Ok(PlannedFile { path, change: None }),
                Err(why) => Err(why),
            }
        });
        planned.collect()
    }
}
