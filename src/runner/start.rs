//! Starts an agent's program: prepares its files, makes its window, and finds out what is running there.

use super::{Tools, fault, identify};
use crate::agents::launch::LaunchContext;
use crate::core::effect::{StartAgent, Started};
use crate::core::pane::{PaneRef, Process};
use crate::process;
use crate::spool::documents;
use crate::tmux::{CreationState, SpawnOutcome, SpawnPlan};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long tasuki tries to find out which process was started.
const IDENTIFY_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two such tries.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Starts an agent in a window of its own, unless it already runs. That is checked first, because a start needs things
/// that may be missing for a moment (the CLI's program, a folder, disk space), and an agent that runs needs none of
/// them.
pub(super) async fn start(tools: &Tools, plan: &StartAgent) -> Started {
    match tools.tmux.look_for(&plan.agent_id.to_string()).await {
        Ok(CreationState::Alive(pane)) => running(tools, pane).await,
        Ok(CreationState::Died) => Started::Died,
        Ok(CreationState::Never) => start_new(tools, plan).await,
        Err(end) => as_started(tools, end).await,
    }
}

/// Starts an agent that was never started in this life of the tmux server. If anything fails before the window is made,
/// it is certain that the agent does not run. Only the last call, `spawn`, can leave that unknown.
async fn start_new(tools: &Tools, plan: &StartAgent) -> Started {
    let Some(profile) = tools.profiles.get(&plan.profile) else {
        return Started::Failed { why: format!("there is no profile {}", plan.profile) };
    };
    if let Some(end) = in_another_life(tools, plan) {
        return end;
    }
    let cwd = plan.cwd.as_ref().map_or_else(home_dir, PathBuf::from);
    let (home, persona) = (tools.home.clone(), plan.persona.clone());
    let folder = match fault::blocking(move || documents::prepare_folder(home.root(), &persona)).await {
        Ok(Ok(folder)) => folder,
        Ok(Err(error)) => return Started::Failed { why: error.to_string() },
        Err(error) => return Started::Failed { why: error.to_string() },
    };
    // The mark that tmux notes with the window, so that a repetition finds the window.
    let creation = plan.agent_id.to_string();
    let context = LaunchContext {
        home: tools.home.root(),
        agent_id: plan.agent_id,
        creation: &creation,
        persona_slug: &plan.persona,
        handoffs_dir: folder.path(),
        program: &tools.program,
        cwd: &cwd,
        previous: plan.previous,
        model: plan.model.as_deref(),
    };
    let (launch, missing) = match &plan.reopens {
        None => (profile.launch(&context), "launch line"),
        Some(session_id) => (profile.reopening(&context, session_id), "command that opens this session again"),
    };
    let Some(launch) = launch else {
        return Started::Failed { why: format!("the profile {} has no {missing}", plan.profile) };
    };
    let session = session(tools, plan).await;
    if let Some(why) = missing_program(tools, &session, &launch.program).await {
        return Started::Failed { why };
    }
    if let Err(why) = write_launch_files(tools, &plan.profile, launch.files).await {
        return Started::Failed { why };
    }
    let spawn = SpawnPlan {
        creation: creation.clone(),
        session,
        own_session: true,
        window_name: window_name(plan),
        cwd: cwd.clone(),
        env: launch.env,
        argv: launch.argv,
        size: plan.size,
    };
    as_started(tools, tools.tmux.spawn(&spawn).await).await
}

/// How a start ends that was begun in another tmux server, or in another life of it; `None` if it was begun here.
fn in_another_life(tools: &Tools, plan: &StartAgent) -> Option<Started> {
    let (connected, server) = (tools.tmux.server()?.id, plan.server?);
    if server == connected {
        return None;
    }
    if connected.pid != server.pid && process::exists(server.pid) {
        let why = format!(
            "tasuki is connected to another tmux server than the one in which it was to start the agent, and that \
             server (process {}) may still run; restart the sidecar with --tmux and that server's name",
            server.pid
        );
        return Some(Started::Unknown { why });
    }
    let why = "the tmux server was restarted before it was known whether the agent had started, so tasuki does not \
               start the agent in the new server";
    Some(Started::Failed { why: why.to_owned() })
}

/// The name of the session for the new window. If the plan names a pane (`beside`) or a session's number, and it still
/// exists, that session; else the session whose name the plan holds.
async fn session(tools: &Tools, plan: &StartAgent) -> String {
    let noted = match (plan.beside, plan.session_number) {
        (Some(pane), _) => {
            let row = tools.tmux.facts(pane.pane).await.ok().flatten().filter(|row| row.pane == pane);
            row.map(|row| row.session_name)
        }
        // `start_new` has compared the plan's server with the present one. In another life of the server, the number
        // would mean another session.
        (None, Some(number)) if plan.server.is_some() => tools.tmux.session_name(number).await.ok().flatten(),
        (None, _) => None,
    };
    noted.unwrap_or_else(|| plan.session.clone())
}

/// The persona's name; with an addition if the window only reopens the session of an ended agent.
fn window_name(plan: &StartAgent) -> String {
    match plan.reopens {
        None => plan.persona.to_string(),
        Some(_) => format!("{}-reopened", plan.persona),
    }
}

async fn as_started(tools: &Tools, outcome: SpawnOutcome) -> Started {
    match outcome {
        SpawnOutcome::Started(pane) => running(tools, pane).await,
        SpawnOutcome::Died => Started::Died,
        SpawnOutcome::Failed(why) => Started::Failed { why },
        SpawnOutcome::NoTmux => Started::NoTmux,
        SpawnOutcome::Unknown(why) => Started::Unknown { why },
    }
}

/// For an agent that runs in this pane: identifies its process and claims the pane.
async fn running(tools: &Tools, pane: PaneRef) -> Started {
    let process = identify_new(pane.pid).await;
    identify::claim_own(tools, &pane, process).await;
    Started::Running { pane, process }
}

/// Identifies the process of a new pane. It tries again for a while, because the machine may have no descriptors left
/// for a moment.
async fn identify_new(pid: u32) -> Option<Process> {
    let until = Instant::now() + IDENTIFY_WITHIN;
    loop {
        let process = process::identify(pid);
        if process.is_some() || !process::exists(pid) || Instant::now() >= until {
            return process;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Why an agent of this profile can certainly not be started in this directory; `None` if it can, or if that is not
/// known. `session`: the name of the tmux session whose PATH counts.
pub(super) async fn obstacle(tools: &Tools, session: &str, (profile, cwd): (&str, Option<&str>)) -> Option<String> {
    let program = tools.profiles.get(profile)?.file.launch.as_ref()?.argv.first()?.clone();
    if let Some(cwd) = cwd {
        let path = PathBuf::from(cwd);
        let look = fault::blocking(move || std::fs::metadata(path).map(|meta| meta.is_dir()));
        let found = tokio::time::timeout(IDENTIFY_WITHIN, look).await.ok()?.ok()?;
        let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
        if found.as_ref().map_or_else(is_gone, |is_folder| !is_folder) {
            return Some(format!("{cwd} is not a directory"));
        }
    }
    // A program that the profile names by a placeholder is tasuki itself.
    if session.is_empty() || program.contains('{') { None } else { missing_program(tools, session, &program).await }
}

/// Why tmux would not find a program; `None` if it would, or if that is not known.
async fn missing_program(tools: &Tools, session: &str, program: &str) -> Option<String> {
    let (candidates, why): (Vec<PathBuf>, String) = if program.contains('/') {
        let why = format!("there is no program {program}; install it, or change the profile's launch.argv");
        (vec![PathBuf::from(program)], why)
    } else {
        let path = tools.tmux.variable(session, "PATH").await.ok().flatten()?;
        let why = format!("{program} is not installed, or not in tmux's PATH ({path})");
        (std::env::split_paths(&path).map(|folder| folder.join(program)).collect(), why)
    };
    let is_there = fault::blocking(move || candidates.iter().any(|path| process::is_program(path))).await;
    (!is_there.ok()?).then_some(why)
}

/// Writes the files that a launch line names, at the paths in that line.
async fn write_launch_files(tools: &Tools, profile: &str, files: Vec<(String, String)>) -> Result<(), String> {
    let profile = profile.parse().map_err(|_| format!("{profile} is not the name of a profile"))?;
    let home = tools.home.clone();
    let write = move || {
        files.iter().try_for_each(|(name, text)| documents::write_launch_file(home.root(), &profile, name, text))
    };
    match fault::blocking(write).await {
        Ok(written) => written.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn home_dir() -> PathBuf {
    directories::BaseDirs::new().map_or_else(|| PathBuf::from("/"), |dirs| dirs.home_dir().to_path_buf())
}
