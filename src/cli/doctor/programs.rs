//! Checks other people's programs: the agents' CLIs, `gh`, and the operator's own commands.

use super::check::{Check, CheckState};
use super::ground::{DoctorFacts, wait_for};
use super::{delivery, hooks, tmux};
use crate::agents::Profiles;
use crate::agents::format::VersionSection;
use crate::child;
use crate::config::OperatorCommand;
use crate::core::settings::Target;
use crate::core::text::sanitise;
use crate::notify::{self, desktop::DesktopProgram};
use crate::process;
use crate::publish::Gh;
use crate::runner::version;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one question to `gh` may take.
const GH_LIMIT: Duration = Duration::from_millis(3_500);
/// How long a CLI may take to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, PartialEq, Eq)]
struct Cli {
    profile: String,
    program: String,
    found: Option<PathBuf>,
}

/// Looks for the CLIs of the profiles that agents and personas have.
pub(super) fn agents(ground: &DoctorFacts) -> Vec<Check> {
    let Ok(profiles) = Profiles::load(Some(&ground.home.profiles())) else {
        return vec![Check::skipped("programs.path", "the profiles can't be read")];
    };
    let used = hooks::used(&ground.home.personas(), &ground.agents());
    let wanted: Vec<(String, String)> = profiles
        .iter()
        .filter(|profile| used.contains(&profile.name))
        .filter_map(|profile| Some((profile.name.clone(), profile.file.launch.as_ref()?.argv.first()?.clone())))
        .filter(|(_, program)| program != "{program}")
        .collect();
    if wanted.is_empty() {
        return vec![Check::skipped("programs.path", "no persona or agent uses an external agent CLI")];
    }
    let (path, whose) = tmux::path_of_windows(ground);
    let clis = wanted.into_iter().map(|(profile, program)| Cli {
        found: child::find_program(&program, &path).ok(),
        profile,
        program,
    });
    let clis: Vec<Cli> = clis.collect();
    let versions = versions(&profiles, &clis, &path);
    clis.iter().map(|cli| judge_cli(cli, versions.get(&cli.profile), &path, whose)).collect()
}

/// For each profile, the versions that it was tested with, and what its CLI prints as its version. All CLIs are asked
/// at once.
fn versions(profiles: &Profiles, clis: &[Cli], path: &OsStr) -> BTreeMap<String, (VersionSection, String)> {
    let found = clis.iter().filter(|cli| cli.found.is_some());
    let sections: Vec<_> = found
        .filter_map(|cli| Some((cli.profile.clone(), profiles.get(&cli.profile)?.file.version.clone()?)))
        .collect();
    let all = async {
        let mut asked = tokio::task::JoinSet::new();
        for (profile, section) in sections {
            let path = path.to_owned();
            asked.spawn(async move {
                let said = tokio::time::timeout(VERSION_LIMIT, version::ask(&section, Some(&path))).await;
                Some((profile, (section, said.ok().flatten()?)))
            });
        }
        asked.join_all().await.into_iter().flatten().collect()
    };
    wait_for(all).unwrap_or_default()
}

/// The numbers of a version: `2.1.328 (Claude Code)` is 2, 1 and 328.
fn numbers(text: &str) -> Vec<u64> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|word| word.contains('.'));
    words.map(|word| word.split('.').filter_map(|part| part.parse().ok()).collect()).next().unwrap_or_default()
}

fn judge_version(id: String, found: &Path, section: &VersionSection, said: &str) -> Check {
    let (shown, tried) = (version::shown(said), section.tried.join(", "));
    if version::is_tried(section, said) {
        return Check::ok(id, format!("{} is {shown}, a version that its profile was tested with", found.display()));
    }
    let newest = section.tried.iter().map(|tried| numbers(tried)).max().unwrap_or_default();
    let than = match numbers(said) {
        its if its.is_empty() => "different from",
        its if its > newest => "newer than",
        _ => "older than",
    };
    let said =
        format!("{} is {shown}, {than} the versions that its profile was tested with ({tried})", found.display());
    let fix = "try it in a separate window; if texts do not arrive, install a tested version or fix the profile";
    Check::warn(id, said, fix)
}

fn judge_cli(cli: &Cli, version: Option<&(VersionSection, String)>, path: &OsStr, whose: &str) -> Check {
    let id = format!("programs.{}", cli.profile);
    match (&cli.found, version) {
        (Some(found), Some((section, said))) => judge_version(id, found, section, said),
        (Some(found), None) => Check::ok(id, format!("{} is in the PATH of {whose}", found.display())),
        (None, _) => {
            let said = format!(
                "{} is not in the PATH of {whose} ({})",
                sanitise(&cli.program),
                sanitise(&path.to_string_lossy())
            );
            let fix = "install the program, or give tmux your PATH: tmux set-environment -g PATH \"$PATH\"";
            Check::fail(id, said, fix)
        }
    }
}

/// Checks `gh`, which only publishing needs.
pub(super) fn gh(ground: &DoctorFacts) -> Vec<Check> {
    let program = ground.config().gh;
    let is_wanted =
        program.contains('/') || child::find_program(&program, &std::env::var_os("PATH").unwrap_or_default()).is_ok();
    let gh = Gh { program, limit: GH_LIMIT, host: None, folder: PathBuf::from("/") };
    let Ok(checks) = wait_for(delivery::ask_gh(&gh, None, ground.process)) else {
        return vec![Check::skipped("gh.program", "gh could not be started")];
    };
    checks.into_iter().map(|check| judge_gh(check, is_wanted)).collect()
}

/// A missing `gh` is not a fault, because only people who publish need it. A `gh` that exists, or was named by its
/// path, should work.
fn judge_gh(check: Check, is_wanted: bool) -> Check {
    let (id, is_program) = match check.id.as_str() {
        "gh" => ("gh.program", true),
        "gh of sidecar" => ("gh.of_sidecar", false),
        "gh login" => ("gh.login", false),
        _ => ("gh.environment", false),
    };
    let state = match check.state {
        CheckState::Fail if is_program && !is_wanted => CheckState::Skipped,
        CheckState::Fail => CheckState::Warn,
        state => state,
    };
    let said =
        if state == CheckState::Skipped { format!("{}; only publishing needs it", check.said) } else { check.said };
    Check { id: id.to_owned(), state, said, ..check }
}

/// What a test notice says.
const TEST_NOTICE: &str = "This is a test by tasuki doctor";

/// Checks the commands that notify the operator.
pub(super) fn operator(ground: &DoctorFacts) -> Vec<Check> {
    let config = ground.config();
    let path = ground.path();
    let command = |target: Target| match target {
        Target::Command(command) => command,
        Target::Operator | Target::Agent(_) => Vec::new(),
    };
    let mut checks = match &config.notify_command {
        OperatorCommand::None => vec![judge_command("notify.command", &[], &path)],
        OperatorCommand::Command(command) => vec![judge_command("notify.command", command, &path)],
        OperatorCommand::Desktop => vec![judge_desktop(&desktop(ground, &path), ground.whose())],
    };
    for (id, target) in [("notify.escalation", config.escalation_target), ("notify.orchestrator", config.orchestrator)]
    {
        let command = command(target);
        if !command.is_empty() {
            checks.push(judge_command(id, &command, &path));
        }
    }
    match &config.notify_command {
        OperatorCommand::Command(command) if ground.asked.notify_test => checks.push(tried(ground.process, command)),
        OperatorCommand::Desktop if ground.asked.notify_test => {
            checks.extend(
                desktop(ground, &path).ok().map(|program| tried(ground.process, &program.command(TEST_NOTICE))),
            );
        }
        OperatorCommand::None | OperatorCommand::Command(_) | OperatorCommand::Desktop => {}
    }
    checks
}

/// The program that shows notices on the desktop, as the sidecar would find it.
fn desktop(ground: &DoctorFacts, path: &OsStr) -> Result<DesktopProgram, &'static str> {
    let find = |name: &str| child::find_program(name, path).ok();
    DesktopProgram::find(cfg!(target_os = "macos"), find, |name| ground.variable(name))
}

/// Judges whether notices can be shown on the desktop. Without a program for that, only terminals that know the escape
/// sequences show them, and tasuki can't find out which terminals do.
fn judge_desktop(found: &Result<DesktopProgram, &'static str>, whose: &str) -> Check {
    let id = "notify.desktop";
    match found {
        Ok(program) => {
            let shown = program.path().display();
            Check::ok(id, format!("{shown} shows notices on the desktop; --notify-test shows one"))
        }
        Err(why) => Check::warn(
            id,
            format!("{why} ({whose}): only the terminals attached to tmux get notices, if they know OSC 9 or OSC 777"),
            "on Linux, install notify-send (libnotify) and start the sidecar in your desktop session; or set a command of \
             your own: see tasuki help notices",
        ),
    }
}

fn judge_command(id: &str, command: &[String], path: &OsStr) -> Check {
    let Some(program) = command.first() else {
        return Check::skipped(
            id,
            "no command is set: failures appear for five seconds in tmux, and then in spool/errors, tasuki errors and the views",
        );
    };
    let shown = sanitise(program);
    let fix = "fix the command in config.toml, or make that file executable";
    match child::find_program(program, path).ok() {
        Some(found) => Check::ok(id, format!("{} can be run; --notify-test runs it", found.display())),
        None if Path::new(program).is_absolute() && Path::new(program).exists() => {
            Check::fail(id, format!("{shown} exists but is not executable"), fix)
        }
        None if program.contains('/') => Check::fail(id, format!("{shown} does not exist"), fix),
        None => Check::fail(id, format!("{shown} is not in the PATH of the sidecar"), fix),
    }
}

/// Runs the operator's command with a test notice, in the environment in which the sidecar runs it, if the system says
/// which that is. A service has hardly any of this shell's variables. `sidecar`: its process id.
fn tried(sidecar: Option<u32>, command: &[String]) -> Check {
    let its = sidecar.and_then(|pid| process::environment_all(pid).ok().flatten());
    let whose = if its.is_some() { "in the sidecar's environment" } else { "in this shell's environment" };
    let id = "notify.test";
    let told = json!({
        "v": 1, "code": "test", "message": TEST_NOTICE, "hint": "There is nothing to do",
        "at": crate::core::time::rfc3339(crate::clock::Clock::new().now().wall_ms),
    });
    let told = told.to_string();
    let trial = async {
        match &its {
            Some(variables) => notify::run_with(command, variables, told.as_bytes(), notify::LIMIT).await,
            None => notify::run_within(command, told.as_bytes(), notify::LIMIT).await,
        }
    };
    match wait_for(trial) {
        Err(_) => Check::skipped(id, "the command could not be started"),
        Ok(Ok(())) => Check::ok(id, format!("the command received a test notice and succeeded {whose}")),
        Ok(Err(error)) => {
            let more = "; if it works there, it needs a variable that the sidecar does not have";
            let more = its.as_ref().map_or("", |_| more);
            let fix = format!("run the command yourself with some JSON on its standard input{more}");
            Check::fail(id, format!("{error}, {whose}"), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cli_that_is_not_found_is_reported_with_the_path_that_was_searched() {
        let cli = |found| Cli { profile: "codex".to_owned(), program: "codex".to_owned(), found };
        assert_eq!(
            judge_cli(&cli(Some("/x/codex".into())), None, OsStr::new("/x"), "tmux's windows").state,
            CheckState::Ok
        );
        let missing = judge_cli(&cli(None), None, OsStr::new("/x:/y"), "tmux's windows");
        assert_eq!((missing.state, missing.id.as_str()), (CheckState::Fail, "programs.codex"));
        assert!(missing.said.contains("/x:/y"));
    }

    #[test]
    fn an_untested_version_is_reported_as_newer_older_or_different() {
        let section = VersionSection { argv: vec!["x".to_owned()], tried: vec!["2.1.328".to_owned()] };
        let look = |said: &str| judge_version("programs.claude".to_owned(), Path::new("/x/claude"), &section, said);
        assert_eq!(look("2.1.328 (Claude Code)\n").state, CheckState::Ok);
        for (said, side) in
            [("2.1.330 (Claude Code)", "newer"), ("v2.0.999", "older"), ("10.0", "newer"), ("?", "different")]
        {
            let check = look(said);
            assert_eq!(check.state, CheckState::Warn, "{said}");
            assert!(check.said.contains(&format!(" {side} ")), "{}", check.said);
        }
    }

    #[test]
    fn a_missing_gh_is_a_warning_only_where_it_is_wanted() {
        let missing = || Check::fail("gh", "gh is not installed", "install it");
        assert_eq!(judge_gh(missing(), false).state, CheckState::Skipped);
        assert_eq!(judge_gh(missing(), true).state, CheckState::Warn);
        assert_eq!(judge_gh(Check::fail("gh login", "no", "log in"), false).state, CheckState::Warn);
        assert_eq!(judge_gh(Check::ok("gh", "gh 2"), false).id, "gh.program");
    }

    #[test]
    fn a_command_can_be_run_is_missing_or_is_not_executable() {
        let dir = tempfile::tempdir().expect("a folder");
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "").expect("written");
        let state =
            |program: &str| judge_command("notify.command", &[program.to_owned()], OsStr::new("/bin:/usr/bin")).state;
        assert_eq!(state("sh"), CheckState::Ok);
        assert_eq!(state("/bin/sh"), CheckState::Ok);
        assert_eq!(state("no-such-program"), CheckState::Fail);
        assert_eq!(state("/no/such/program"), CheckState::Fail);
        assert_eq!(state(&plain.display().to_string()), CheckState::Fail);
        assert_eq!(judge_command("notify.command", &[], OsStr::new("")).state, CheckState::Skipped);
    }

    #[test]
    fn a_desktop_can_show_notices_or_not() {
        let ok = judge_desktop(&Ok(DesktopProgram::NotifySend("/x/notify-send".into())), "the sidecar");
        assert_eq!((ok.state, ok.id.as_str()), (CheckState::Ok, "notify.desktop"));
        assert!(ok.said.contains("/x/notify-send"), "{}", ok.said);
        let missing = judge_desktop(&Err("there is no session bus"), "the sidecar");
        assert_eq!(missing.state, CheckState::Warn);
        assert!(missing.said.contains("there is no session bus (the sidecar)"), "{}", missing.said);
    }

    #[test]
    fn the_operators_command_is_tried_as_it_is() {
        let run = |words: &[&str]| tried(None, &words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()).state;
        assert_eq!(run(&["sh", "-c", "grep -q '\"code\":\"test\"'"]), CheckState::Ok);
        assert_eq!(run(&["false"]), CheckState::Fail);
    }
}
