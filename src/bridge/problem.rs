//! Why a bridge must not serve as its host, and who is told.

use super::folder::FleetFolder;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::config::{Config, Home, OperatorCommand};
use crate::contract::{self, BridgeView, ErrorFile};
use crate::files::Grade;
use crate::fleet::LeaseProblem;
use crate::notify;

/// Writes it into `bridge.json`, runs `notify.command`, and returns the error with which the bridge ends.
pub(super) async fn tell(home: &Home, folder: &FleetFolder, problem: &LeaseProblem) -> CliError {
    let error = in_words(problem);
    let kept = folder.read("", "bridge.json").ok().flatten();
    let view: BridgeView = kept.and_then(|bytes| contract::read(&bytes).ok().flatten()).unwrap_or_default();
    let view =
        BridgeView { problem: Some(error.message.clone()), lease: contract::fleet::LeaseWord::None.into(), ..view };
    if let Err(unwritten) = folder.write("", "bridge.json", contract::text(&view).as_bytes(), Grade::Durable) {
        tracing::warn!("{unwritten}");
    }
    notify_operator(home, &error).await;
    error
}

async fn notify_operator(home: &Home, error: &CliError) {
    let command = match Config::load(&home.config()) {
        Ok(config) => config.notify_command,
        Err(error) => return tracing::warn!("{error}"),
    };
    let OperatorCommand::Command(command) = command else { return };
    let failure = ErrorFile {
        v: 1,
        error_id: uuid::Uuid::new_v4().to_string(),
        at: Clock::new().now().rfc3339(),
        code: error.code.clone(),
        message: error.message.clone(),
        hint: error.hint.clone().unwrap_or_default(),
        ..ErrorFile::default()
    };
    if let Err(error) = notify::run_within(&command, contract::text(&failure).as_bytes(), notify::LIMIT).await {
        tracing::warn!("{error}");
    }
}

fn in_words(problem: &LeaseProblem) -> CliError {
    match problem {
        LeaseProblem::HostTaken(since) => CliError::config(
            "host_taken",
            format!("Another bridge serves as this host since {since}. This one has ended and carries nothing out."),
        )
        .hint("If both are meant to run, give one another name: tasuki fleet leave, then key, admit, join."),
        LeaseProblem::HomeCopied(since) => CliError::config(
            "home_copied",
            format!("This host's name belongs to another copy of this home, whose bridge has run since {since}. This one has ended and carries nothing out."),
        )
        .hint("If the other copy is gone for good: tasuki fleet moved. Else join under another name: tasuki fleet leave, then key, admit, join."),
        LeaseProblem::HomeRolledBack(since) => CliError::config(
            "home_rolled_back",
            format!("This home was put back to an older state: its bridge of {since} was further. This one has ended and carries nothing out."),
        )
        .hint("Join again as a new home, so that nothing that was sent to the old one is carried out twice: tasuki fleet rejoin"),
    }
}
