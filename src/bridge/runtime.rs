//! Runs asynchronous work to its end, for commands that are not asynchronous themselves.

use crate::cli::error::CliError;
use std::future::Future;

/// Runs the work to its end.
///
/// # Errors
/// The error of the work; or no runtime can be started.
pub(crate) fn wait_for<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CliError::refused("no_thread", format!("No runtime can be started: {error}.")))?;
    runtime.block_on(work)
}
