//! The end of a bridge that must not serve as its host: `bridge.json` says why, and the operator is told.

use super::folder::FleetFolder;
use crate::cli::error::CliError;
use crate::clock::Clock;
use crate::config::{Config, Home, OperatorCommand};
use crate::contract::bridge::{BridgeConcern, BridgeProblem, LeaseWord};
use crate::contract::{self, BridgeView, ErrorFile};
use crate::files::Grade;
use crate::fleet::LeaseProblem;
use crate::notify;
use crate::notify::desktop::DesktopProgram;

/// Why the last bridge of this home has ended, if that was because it must not serve.
pub(super) fn last_told(folder: &FleetFolder) -> Option<String> {
    let problems = kept_view(folder).problems;
    problems.into_iter().find(|problem| problem.about == BridgeConcern::Lease).map(|problem| problem.message)
}

fn kept_view(folder: &FleetFolder) -> BridgeView {
    let kept = folder.read("", "bridge.json").ok().flatten();
    kept.and_then(|bytes| contract::read(&bytes).ok().flatten()).unwrap_or_default()
}

/// Writes the problem into `bridge.json`, runs `notify.command`, and returns the error with which the bridge ends.
///
/// `told`: the answer of [`last_told`]. launchd starts a bridge again and again, so the operator is not told of the
/// same cause twice in a row.
pub(super) async fn tell(home: &Home, folder: &FleetFolder, problem: &LeaseProblem, told: Option<&str>) -> CliError {
    let error = in_words(problem);
    let mut view = BridgeView { lease: LeaseWord::None.into(), ..kept_view(folder) };
    view.have(vec![BridgeProblem::new(BridgeConcern::Lease, &error.message)]);
    if let Err(unwritten) = folder.write("", "bridge.json", contract::text(&view).as_bytes(), Grade::Durable) {
        tracing::warn!("{unwritten}");
    }
    if told != Some(error.message.as_str()) {
        notify_operator(home, &error, DesktopProgram::here).await;
    }
    error
}

/// `desktop`: finds the program that shows notices on the desktop.
async fn notify_operator(
    home: &Home,
    error: &CliError,
    desktop: impl FnOnce() -> Result<DesktopProgram, &'static str>,
) {
    let command = match Config::load(&home.config()) {
        Ok(config) => config.notify_command,
        Err(error) => return tracing::warn!("{error}"),
    };
    let (command, input) = match command {
        OperatorCommand::None => return,
        OperatorCommand::Command(command) => (command, json(error)),
        OperatorCommand::Desktop => match desktop() {
            Ok(program) => (program.command(&in_one_text(error)), Vec::new()),
            Err(why) => return tracing::warn!("The desktop can't show why the bridge ends: {why}."),
        },
    };
    if let Err(error) = notify::run_within(&command, &input, notify::LIMIT).await {
        tracing::warn!("{error}");
    }
}

/// Message and hint, as a desktop shows them.
fn in_one_text(error: &CliError) -> String {
    error.hint.as_ref().map_or_else(|| error.message.clone(), |hint| format!("{} {hint}", error.message))
}

/// The error as the operator's own command gets it.
fn json(error: &CliError) -> Vec<u8> {
    let failure = ErrorFile {
        v: 1,
        error_id: uuid::Uuid::new_v4().to_string(),
        at: Clock::new().now().rfc3339(),
        code: error.code.clone(),
        message: error.message.clone(),
        hint: error.hint.clone().unwrap_or_default(),
        ..ErrorFile::default()
    };
    contract::text(&failure).into_bytes()
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

#[cfg(test)]
mod tests {
    use super::super::folder::of_test;
    use super::super::runtime::wait_for;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn each_cause_is_told_once_however_often_a_bridge_is_started() {
        let (dir, home, folder) = of_test();
        let notices = dir.path().join("notices");
        let script = format!("cat >> '{}'; echo >> '{}'", notices.display(), notices.display());
        let config = format!("[notify]\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n");
        std::fs::write(home.config(), config).expect("written");
        let tell_of = |since: &str| {
            let told = last_told(&folder);
            let problem = LeaseProblem::HostTaken(since.to_owned());
            let ended = wait_for(async { Ok(tell(&home, &folder, &problem, told.as_deref()).await) });
            assert_eq!(ended.expect("it is told").code, "host_taken");
            std::fs::read_to_string(&notices).unwrap_or_default().lines().count()
        };
        assert_eq!([tell_of("noon"), tell_of("noon"), tell_of("one"), tell_of("one")], [1, 1, 2, 2]);
        let view = kept_view(&folder);
        assert!(view.problem.is_some_and(|problem| problem.contains("since one")) && view.problems.len() == 1);
    }

    #[test]
    fn the_desktop_is_told_too() {
        let (dir, home, _) = of_test();
        std::fs::write(home.config(), "[notify]\ncommand = \"desktop\"\n").expect("written");
        let (program, notices) = (dir.path().join("notify-send"), dir.path().join("notices"));
        std::fs::write(&program, format!("#!/bin/sh\necho \"$@\" >>'{}'\n", notices.display())).expect("written");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
        let error = in_words(&LeaseProblem::HostTaken("noon".to_owned()));
        let found = || Ok(DesktopProgram::NotifySend(program));
        let told = wait_for(async {
            notify_operator(&home, &error, found).await;
            Ok(())
        });
        told.expect("it is told");
        let told = std::fs::read_to_string(&notices).expect("a notice");
        assert!(told.lines().count() == 1 && told.contains("since noon") && told.contains("fleet leave"), "{told}");
    }
}
