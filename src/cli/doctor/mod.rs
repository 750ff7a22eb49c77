//! `doctor`: looks round and says what is wrong, one line for each thing, with what to do. Without `--fix` it changes
//! nothing: all that it leaves for a moment is a test event for each hook, which the sidecar never reads.
//!
//! `ground` gathers what several looks need; `paths`, `data`, `tmux`, `sidecar`, `machine`, `hooks` (by `fire`),
//! `programs` and `service` each gather facts and judge them by a pure function; `check` is one judgement, and what
//! follows from what; `mend` is `--fix`; `report` prints. `delivery` looks at what one handoff's delivery needs.
//!
//! All looks go on side by side, and what has not answered after nine seconds is told instead of waited for: a tmux
//! server that stands still, a network file system that is gone, a `gh` that hangs.

mod check;
mod data;
mod delivery;
mod fire;
mod ground;
mod hooks;
mod machine;
mod mend;
mod paths;
mod programs;
mod report;
mod service;
mod sidecar;
mod tmux;

use super::Session;
use super::error::CliError;
use super::view;
use check::{Check, State, leave_causes};
use clap::{Args, Subcommand};
use delivery::DeliveryArgs;
use ground::Ground;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

pub use report::Report;

/// `doctor`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DoctorArgs {
    /// Mend what is safe: modes and missing folders of tasuki's own, files left over, hooks that have become stale.
    #[arg(long)]
    pub fix: bool,
    /// Run the command by which you are told of failures, with a test notice.
    #[arg(long)]
    pub notify_test: bool,
    /// Look at one thing more closely instead.
    #[command(subcommand)]
    pub command: Option<DoctorCommand>,
}

/// `doctor …`.
#[derive(Debug, Subcommand)]
pub enum DoctorCommand {
    /// Look at all that the delivery of a handoff needs: sidecar, recipient, gh, its login, the issue.
    #[command(
        after_help = "Example:\n  tasuki doctor delivery --issue octo/app#42\n  tasuki doctor delivery --handoff 5f2a"
    )]
    Delivery(DeliveryArgs),
}

/// How long all looks together may take.
const LIMIT: Duration = Duration::from_secs(9);
/// How long a second round may take, after something was mended.
const AGAIN_LIMIT: Duration = Duration::from_secs(6);

/// How long a sidecar's next turn may take.
const NEXT_TURN: Duration = Duration::from_millis(5_500);

type Look = fn(&Ground) -> Vec<Check>;

/// Every look, in the order in which its findings are told.
const LOOKS: [(&str, Look); 12] = [
    ("paths", paths::look),
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
];

/// Looks and tells.
///
/// # Errors
/// Something does not work (exit code 1, nothing more is printed), or what was asked about does not exist.
pub fn command(session: &Session, args: &DoctorArgs) -> Result<(), CliError> {
    let checks = match &args.command {
        Some(DoctorCommand::Delivery(args)) => {
            let checks = delivery::look(session, args)?;
            report::delivery(session, &checks)?;
            checks
        }
        None => {
            let checks = everything(session, args);
            report::everything(session, &checks, args.fix)?;
            checks
        }
    };
    let failed = checks.iter().filter(|check| check.state == State::Fail).count();
    if failed == 0 {
        return Ok(());
    }
    Err(CliError::refused("not_well", format!("{failed} of {} checks failed.", checks.len())))
}

fn everything(session: &Session, args: &DoctorArgs) -> Vec<Check> {
    let (ground, mut checks) = round(session, args.notify_test, LIMIT);
    let Some(ground) = ground.filter(|_| args.fix && checks.iter().any(|check| check.mend.is_some())) else {
        return checks;
    };
    let mended = mend::all(&ground, &checks);
    until_seen(&ground);
    (_, checks) = round(session, false, AGAIN_LIMIT);
    for (id, done) in mended {
        let Some(check) = checks.iter_mut().find(|check| check.id == id) else { continue };
        match done {
            Ok(done) => check.fixed = Some(done),
            Err(why) => check.said = format!("{} (it could not be mended: {why})", check.said),
        }
    }
    checks
}

/// A sidecar that has told of a problem is given until its next turn to see that it was mended.
fn until_seen(ground: &Ground) {
    let before = &ground.view.heartbeat;
    let waits = !before.is_empty() && view::said(ground.view.problem.as_deref()).is_some();
    let end = Instant::now() + NEXT_TURN;
    while waits && Instant::now() < end {
        if view::sidecar(&ground.home).ok().flatten().is_none_or(|view| view.heartbeat != *before) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Looks at everything once, side by side.
fn round(session: &Session, notify_test: bool, limit: Duration) -> (Option<Arc<Ground>>, Vec<Check>) {
    let end = Instant::now() + limit;
    let Some(ground) = ground_within(session, notify_test, limit / 2) else {
        let said = format!("{} did not answer within {} s", session.home.root().display(), limit.as_secs() / 2);
        let fix = "look at its file system: a network drive that is gone lets every program wait";
        return (None, vec![Check::fail("paths.home", said, fix)]);
    };
    let (sender, found) = mpsc::channel();
    for (at, (_, look)) in LOOKS.into_iter().enumerate() {
        let (sender, ground) = (sender.clone(), Arc::clone(&ground));
        // Whoever does not come back in time is left to the end of the process.
        std::thread::spawn(move || sender.send((at, look(&ground))));
    }
    drop(sender);
    let mut all: [Option<Vec<Check>>; LOOKS.len()] = Default::default();
    while let Ok((at, checks)) = found.recv_timeout(end.saturating_duration_since(Instant::now())) {
        all[at] = Some(checks);
    }
    let unheard = |group: &str| {
        let said = format!("this look did not come back within {} s", limit.as_secs());
        vec![Check::fail(
            format!("{group}.answer"),
            said,
            "look at it yourself: something there lets every program wait",
        )]
    };
    let named = all.into_iter().zip(LOOKS);
    let mut checks: Vec<Check> =
        named.flat_map(|(checks, (group, _))| checks.unwrap_or_else(|| unheard(group))).collect();
    leave_causes(&mut checks);
    (Some(ground), checks)
}

fn ground_within(session: &Session, notify_test: bool, limit: Duration) -> Option<Arc<Ground>> {
    let (sender, found) = mpsc::channel();
    let home = session.home.clone();
    std::thread::spawn(move || sender.send(Arc::new(Ground::look(home, notify_test))));
    found.recv_timeout(limit).ok()
}
