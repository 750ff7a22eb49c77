//! `doctor`: checks the installation and says what is wrong, one line for each finding, with what to do. Without
//! `--fix` it changes nothing, except that it sends a test event through each hook and then removes it. The sidecar
//! never reads test events.
//!
//! `ground` gathers what several checks need. `paths`, `data`, `tmux`, `sidecar`, `machine`, `hooks` (with `fire`),
//! `programs`, `privacy` and `service` each gather facts and judge them with a pure function. `fleet` runs
//! `tasuki-fleet` and reads its findings. `check` is one finding, and says which findings follow from another. `repair`
//! is `--fix`, `report` prints, and `delivery` checks what one handoff's delivery needs.
//!
//! All checks run in parallel. A check that has not answered after nine seconds is reported instead of awaited: a
//! stopped tmux server, a disconnected network drive or a `gh` that hangs must not stop the doctor. The checks of a
//! fleet may take longer, because they ask a server that may be far away.

mod check;
mod data;
mod delivery;
mod fire;
mod fleet;
mod ground;
mod hooks;
mod machine;
mod paths;
mod privacy;
mod programs;
mod repair;
mod report;
mod service;
mod sidecar;
mod tmux;

use super::CliSession;
use super::error::CliError;
use super::run::whole_socket;
use super::service::ManagerArgs;
use super::view;
use check::{Check, CheckState, leave_causes};
use clap::{Args, Subcommand};
use delivery::DeliveryArgs;
use ground::{DoctorFacts, DoctorOptions};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

pub use fleet::FleetChecks;
pub use report::{DeliveryReport, Line, Report};

/// `doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DoctorArgs {
    /// Fix what is safe to fix: modes and missing folders of tasuki, left-over files, outdated hooks.
    #[arg(long)]
    pub fix: bool,
    /// Run the command that notifies you of failures, with a test notice.
    #[arg(long)]
    pub notify_test: bool,
    /// The service manager.
    #[command(flatten)]
    pub manager: ManagerArgs,
    /// Check one thing more closely instead.
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
}

/// `doctor …`.
#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Check all that delivering and publishing one document needs: the sidecar, the successor, `gh`, the login of
    /// `gh`, and the issue.
    #[command(
        after_help = "Example:\n  tasuki doctor delivery --issue octo/app#42\n  tasuki doctor delivery --handoff 5f2a"
    )]
    Delivery(DeliveryArgs),
}

/// How long all checks together may take, except those of a fleet.
const LIMIT: Duration = Duration::from_secs(9);
/// How long the checks of a fleet may take, after the facts are gathered: a little longer than `tasuki-fleet` may run.
const FLEET_LIMIT: Duration = fleet::WITHIN.saturating_add(Duration::from_millis(500));
/// How long all checks together may take when they run again after a repair.
const AGAIN_LIMIT: Duration = Duration::from_secs(6);

/// How long to wait for a sidecar's next tick. Ticks come at least every 5 s.
const NEXT_TICK: Duration = Duration::from_millis(5_500);

type Look = fn(&DoctorFacts) -> Vec<Check>;

/// The group of the checks that a fleet needs.
const FLEET: &str = "fleet";

/// Every check, in the order in which the findings are printed.
const LOOKS: [(&str, Look); 14] = [
    ("paths", paths::look),
    ("privacy", privacy::look),
    ("data", data::look),
    ("tmux", tmux::look),
    ("sidecar", sidecar::look),
    ("hooks", hooks::look),
    ("programs", programs::agents),
    ("service", service::look),
    ("notify", programs::operator),
    ("gh", programs::gh),
    ("disk", machine::disk),
    ("limits", machine::limits),
    ("clock", machine::clock),
    (FLEET, fleet::look),
];

/// Runs the checks and prints the findings. `tmux`: the tmux server to check, if one was named.
///
/// # Errors
/// A check fails (exit code 1). For `doctor delivery` also: the named handoff does not exist, or the name or
/// the configuration is invalid.
pub fn command(session: &CliSession, args: &DoctorArgs, tmux: Option<&str>) -> Result<(), CliError> {
    let checks = match &args.command {
        Some(DoctorCommand::Delivery(args)) => {
            let checks = delivery::look(session, args)?;
            report::delivery(session, &checks)?;
            checks
        }
        None => {
            let checks = everything(session, args, tmux);
            report::everything(session, &checks, args.fix)?;
            checks
        }
    };
    let failed = checks.iter().filter(|check| check.state == CheckState::Fail).count();
    if failed == 0 {
        return Ok(());
    }
    Err(CliError::refused("not_well", format!("{failed} of {} checks failed.", checks.len())))
}

fn everything(session: &CliSession, args: &DoctorArgs, tmux: Option<&str>) -> Vec<Check> {
    let (manager, tmux) = (args.manager.manager, tmux.map(whole_socket));
    let asked = DoctorOptions { notify_test: args.notify_test, manager, tmux };
    let (ground, mut checks) = round(session, asked.clone(), LIMIT);
    let Some(ground) = ground.filter(|_| args.fix && checks.iter().any(|check| check.repair.is_some())) else {
        return checks;
    };
    let repaired = repair::all(&ground, &checks);
    until_seen(&ground);
    (_, checks) = round(session, DoctorOptions { notify_test: false, ..asked }, AGAIN_LIMIT);
    for (id, done) in repaired {
        let Some(check) = checks.iter_mut().find(|check| check.id == id) else { continue };
        match done {
            Ok(done) => check.fixed = Some(done),
            Err(why) => check.said = format!("{} (it could not be fixed: {why})", check.said),
        }
    }
    checks
}

/// If the sidecar has reported a problem, waits for its next tick, in which it can notice the repair.
fn until_seen(ground: &DoctorFacts) {
    let before = &ground.view.heartbeat;
    let waits = !before.is_empty() && view::said(ground.view.problem.as_deref()).is_some();
    let end = Instant::now() + NEXT_TICK;
    while waits && Instant::now() < end {
        if view::sidecar(&ground.home).ok().flatten().is_none_or(|view| view.heartbeat != *before) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Runs every check once, in parallel.
fn round(session: &CliSession, asked: DoctorOptions, limit: Duration) -> (Option<Arc<DoctorFacts>>, Vec<Check>) {
    let began = Instant::now();
    let Some(ground) = ground_within(session, asked, limit / 2) else {
        let said = format!("{} did not answer within {} s", session.home.root().display(), limit.as_secs() / 2);
        let fix = "check the file system: a disconnected network drive makes every program hang";
        return (None, vec![Check::fail("paths.home", said, fix)]);
    };
    let ends = ends(began, Instant::now(), limit);
    let (sender, found) = mpsc::channel();
    for (at, (_, look)) in LOOKS.into_iter().enumerate() {
        let (sender, ground) = (sender.clone(), Arc::clone(&ground));
        // A thread that does not return in time runs until the process ends.
        std::thread::spawn(move || sender.send((at, look(&ground))));
    }
    drop(sender);
    let mut all: [Option<Vec<Check>>; LOOKS.len()] = Default::default();
    for end in ends {
        while let Ok((at, checks)) = found.recv_timeout(end.saturating_duration_since(Instant::now())) {
            all[at] = Some(checks);
        }
        if LOOKS.iter().zip(&all).any(|((group, _), checks)| *group == FLEET && checks.is_some()) {
            break;
        }
    }
    let unfinished = |group: &str| {
        let limit = if group == FLEET { FLEET_LIMIT } else { limit };
        let said = format!("this check did not finish within {} s", limit.as_secs());
        vec![Check::fail(
            format!("{group}.answer"),
            said,
            "check it yourself: something makes every program hang there",
        )]
    };
    let named = all.into_iter().zip(LOOKS);
    let mut checks: Vec<Check> =
        named.flat_map(|(checks, (group, _))| checks.unwrap_or_else(|| unfinished(group))).collect();
    leave_causes(&mut checks);
    (Some(ground), checks)
}

/// When the checks must have answered, and when those of a fleet. A round began at `began`, its checks at `asked`.
fn ends(began: Instant, asked: Instant, limit: Duration) -> [Instant; 2] {
    [began + limit, asked + FLEET_LIMIT]
}

fn ground_within(session: &CliSession, asked: DoctorOptions, limit: Duration) -> Option<Arc<DoctorFacts>> {
    let (sender, found) = mpsc::channel();
    let home = session.home.clone();
    std::thread::spawn(move || sender.send(Arc::new(DoctorFacts::look(home, asked))));
    found.recv_timeout(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_each_round_a_fleet_has_as_long_as_its_program_may_run() {
        for limit in [LIMIT, AGAIN_LIMIT] {
            let began = Instant::now();
            let asked = began + limit / 2;
            let [end, fleet_end] = ends(began, asked, limit);
            assert_eq!(end, began + limit);
            assert!(fleet_end > asked + fleet::WITHIN, "{limit:?}");
        }
    }
}
