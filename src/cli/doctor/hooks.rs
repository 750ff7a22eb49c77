//! Checks hooks: are they installed, are they up to date, and do they fire? Each command is run as the CLI would
//! run it, with a test event on its standard input, and the event must arrive in the spool. The sidecar never reads a
//! test event, and doctor removes it at once.

use super::check::{Check, Repair};
use super::fire::{self, Fired};
use super::ground::DoctorFacts;
use crate::agents::install::{Context, HookCommand, InstallError, Installed, Presence};
use crate::agents::{Profile, Profiles};
use crate::cli::view::{ViewFile, said, shown};
use crate::config::Home;
use crate::contract::{AgentState, AgentView, Hooks};
use crate::core::id::Slug;
use crate::core::text::{sanitise, shell_word};
use crate::files;
use crate::personas::{self, PersonaFile};
use crate::process;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Debug)]
struct Facts {
    profile: String,
    /// An agent or a persona has this profile.
    is_used: bool,
    /// tasuki passes the hooks to an agent when it starts it.
    by_launch: bool,
    /// The hooks in the CLI's own file; none for a profile that has nothing to install.
    found: Option<Result<Found, String>>,
}

#[derive(Debug)]
struct Found {
    file: PathBuf,
    presence: Presence,
    /// `hooks install` has put them in for this home, and `hooks uninstall` has not removed them.
    is_recorded: bool,
    /// Each event whose command was tried, and what came of it.
    fired: Vec<(String, Fired)>,
}

impl Found {
    fn is_elsewhere(&self) -> bool {
        self.fired.iter().any(|(_, fired)| matches!(fired, Fired::Elsewhere(_)))
    }
}

pub(super) fn look(ground: &DoctorFacts) -> Vec<Check> {
    let Some(program) = ground.program.clone() else {
        return vec![Check::skipped("hooks.own", "tasuki can't find the path of its own program")];
    };
    if !ground.home.spool().join("events").is_dir() {
        return vec![Check::skipped("hooks.own", "there is no spool yet: the sidecar creates it")];
    }
    let Ok(profiles) = Profiles::load(Some(&ground.home.profiles())) else {
        return vec![Check::skipped("hooks.own", "the profiles can't be read")];
    };
    let agents = ground.agents();
    let used = used(&ground.home.personas(), &agents);
    let mut facts: Vec<(Facts, Vec<HookCommand>, Profile)> = Vec::new();
    for profile in profiles.iter() {
        let (found, commands) = installed(profile, &program, ground);
        let facts_of = Facts {
            profile: profile.name.clone(),
            is_used: used.contains(&profile.name),
            by_launch: launches_with_hooks(profile),
            found,
        };
        facts.push((facts_of, commands, profile.clone()));
    }
    let own = fire_all(ground, &program, &mut facts);
    let mut checks = vec![judge_own(&own)];
    checks.extend(facts.iter().filter_map(|(facts, _, _)| judge(facts)));
    checks.push(judge_agents(&agents, &astray(&agents, ground.home.root()), ground.home.root()));
    checks
}

/// The profiles of living agents and of personas, with the personas' fallbacks.
pub(super) fn used(personas_dir: &Path, agents: &[ViewFile<AgentView>]) -> BTreeSet<String> {
    let slugs: Vec<Slug> = personas::list(personas_dir).unwrap_or_default();
    let files = slugs.iter().filter_map(|slug| Some(personas::facts(personas_dir, slug).ok()?.file));
    let of_personas = files.flat_map(|file| profiles_of(&file));
    agents.iter().filter_map(|agent| said(agent.profile.as_str()).map(str::to_owned)).chain(of_personas).collect()
}

/// The profiles that a persona names: its own, and its fallbacks, on which its work continues.
pub(super) fn profiles_of(file: &PersonaFile) -> Vec<String> {
    let fallbacks = file.fallbacks.iter().map(|choice| choice.profile.clone());
    file.profile.iter().cloned().chain(fallbacks).collect()
}

fn installed(
    profile: &Profile,
    program: &Path,
    ground: &DoctorFacts,
) -> (Option<Result<Found, String>>, Vec<HookCommand>) {
    let context = Context { program, home: ground.home.root(), env: &|name| std::env::var_os(name) };
    match installed_as(profile, &context) {
        Err(InstallError::NoInstall { .. } | InstallError::NoPlace { .. }) => (None, Vec::new()),
        Err(error) => (Some(Err(error.to_string())), Vec::new()),
        Ok(installed) => {
            let found = Found {
                file: installed.file,
                presence: installed.presence,
                is_recorded: installed.is_recorded,
                fired: Vec::new(),
            };
            (Some(Ok(found)), installed.commands)
        }
    }
}

/// Looks at the hooks. Hooks that name this same program by another path, such as a link, count as up to date.
fn installed_as(profile: &Profile, context: &Context<'_>) -> Result<Installed, InstallError> {
    let installed = profile.installed(context)?;
    if installed.presence != Presence::Stale {
        return Ok(installed);
    }
    let named = installed.commands.iter().filter_map(HookCommand::program).chain(std::env::current_exe().ok());
    let names: BTreeSet<PathBuf> = named.filter(|name| files::is_same_file(name, context.program)).collect();
    for program in &names {
        let again = profile.installed(&Context { program, ..*context })?;
        if again.presence == Presence::Whole {
            return Ok(again);
        }
    }
    Ok(installed)
}

/// Whether an agent gets its hooks when tasuki starts it, by arguments, variables or files. The demo agent, which is
/// tasuki's own program, needs none.
fn launches_with_hooks(profile: &Profile) -> bool {
    let Some(launch) = &profile.file.launch else { return false };
    let texts = launch.argv.iter().chain(launch.env.values()).chain(launch.texts.values()).chain(launch.files.values());
    let marks = [format!("hook {}", profile.name), format!("\"hook\", \"{}\"", profile.name)];
    let is_own = launch.argv.first().is_some_and(|program| program == "{program}");
    is_own || texts.into_iter().any(|text| marks.iter().any(|mark| text.contains(mark)))
}

/// Tries tasuki's own hook and the installed hooks of all profiles, in parallel. Returns the result of tasuki's own
/// hook.
fn fire_all(ground: &DoctorFacts, program: &Path, facts: &mut [(Facts, Vec<HookCommand>, Profile)]) -> Fired {
    let home = ground.home.root();
    let own = fire::argv(program, home);
    let (own, all) = std::thread::scope(|scope| {
        let own = scope.spawn(|| fire::fire(home, &own, "hook_event_name", "Stop"));
        let each =
            |(_, commands, profile): &'_ (Facts, Vec<HookCommand>, Profile)| fire::fire_each(home, profile, commands);
        let others: Vec<_> = facts.iter().map(|one| scope.spawn(move || each(one))).collect();
        let all: Vec<_> = others.into_iter().map(|other| other.join().unwrap_or_default()).collect();
        (own.join().unwrap_or(Fired::Nothing("the test was interrupted".to_owned())), all)
    });
    for ((facts, _, _), fired) in facts.iter_mut().zip(all) {
        if let Some(Ok(found)) = facts.found.as_mut() {
            found.fired = fired;
        }
    }
    own
}

fn judge_own(own: &Fired) -> Check {
    let id = "hooks.own";
    match own {
        Fired::Arrived | Fired::Complained(_) => Check::ok(id, "a test event of this program arrives in the spool"),
        Fired::Nothing(why) | Fired::Elsewhere(why) => {
            let fix = "check the modes of spool/tmp and spool/events, the free disk space, and data/profiles";
            Check::fail(id, format!("a test event of this program does not arrive: {why}"), fix)
        }
    }
}

/// Judges the hooks of a profile. None if there is nothing to say, as for a profile that is neither used nor installed.
fn judge(facts: &Facts) -> Option<Check> {
    let (name, id) = (&facts.profile, format!("hooks.{}", facts.profile));
    let install = format!("tasuki hooks install {name}");
    let found = match &facts.found {
        None if facts.is_used && facts.by_launch => {
            return Some(Check::ok(id, "agents that tasuki starts report their events without installed hooks"));
        }
        None => return None,
        Some(Err(error)) if facts.is_used => {
            return Some(Check::warn(id, error, format!("fix that file; then: {install}")));
        }
        Some(Err(_)) => return None,
        Some(Ok(found)) => found,
    };
    let file = found.file.display();
    Some(match found.presence {
        Presence::Absent if found.is_recorded => {
            let fix = format!("{install}; or, if you no longer want the hooks: tasuki hooks uninstall {name}");
            Check::fail(id, format!("the hooks were installed but are no longer in {file}"), fix)
        }
        Presence::Absent if facts.is_used && !facts.by_launch => Check::fail(
            id,
            format!("{file} has no hooks of tasuki, and without them the agents report nothing"),
            install,
        ),
        Presence::Absent if facts.is_used => Check::ok(
            id,
            format!("tasuki passes the hooks to agents that it starts; for agents that you start yourself: {install}"),
        ),
        Presence::Absent => return None,
        // Another home's hooks do not matter if no agent here needs them.
        Presence::Stale if !facts.is_used && !found.is_recorded && found.is_elsewhere() => return None,
        Presence::Whole | Presence::Stale => judge_fired(id, found, name, &install),
    })
}

/// Judges installed hooks: do they fire, and are they up to date?
fn judge_fired(id: String, found: &Found, name: &str, install: &str) -> Check {
    let file = found.file.display();
    let stale = found.presence == Presence::Stale;
    // Only this home's own hooks are repaired. If another home's hooks were replaced, its agents would stop reporting
    // to it.
    let is_ours = stale && found.is_recorded && !found.is_elsewhere();
    let repair = |check: Check| if is_ours { check.repair(Repair::Hooks(name.to_owned())) } else { check };
    let bad = found.fired.iter().find(|(_, fired)| matches!(fired, Fired::Nothing(_) | Fired::Elsewhere(_)));
    if let Some((event, Fired::Nothing(why) | Fired::Elsewhere(why))) = bad {
        let fix = if found.is_elsewhere() {
            format!("{install}, if the hooks should report to this home: the other home then gets no more events")
        } else if stale {
            install.to_owned()
        } else {
            format!("check the command in {file}; then: {install}")
        };
        return repair(Check::fail(id, format!("the hook of {event} in {file} does not work: {why}"), fix));
    }
    if stale {
        let said =
            format!("the hooks in {file} work but are out of date: some are missing, or name another program or home");
        return repair(Check::warn(id, said, install));
    }
    let complaint = found.fired.iter().find_map(|(event, fired)| match fired {
        Fired::Complained(said) => Some((event, said)),
        Fired::Arrived | Fired::Nothing(_) | Fired::Elsewhere(_) => None,
    });
    match complaint {
        Some((event, said)) => Check::warn(
            id,
            format!("the event of the hook {event} arrives, but the hook reports: {said}"),
            "check [hooks] in the profile",
        ),
        None if found.fired.is_empty() => Check::ok(id, format!("the hooks in {file} are up to date")),
        None => Check::ok(id, format!("{} hooks in {file} work: their test events arrive", found.fired.len())),
    }
}

/// The panes of agents whose hooks report to another home, by that home. This happens when a home is moved while agents
/// run: their environment still names the old path. Only agents that tasuki has started are checked, and only if the
/// system shows their environment.
fn astray(agents: &[ViewFile<AgentView>], home: &Path) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for agent in agents.iter().filter(|agent| agent.started_by_tasuki) {
        let Some(pid) = agent.pid else { continue };
        // Another process may have this id by now.
        if process::environ_var(pid, "TASUKI_AGENT_ID").as_ref() != Some(&agent.agent_id) {
            continue;
        }
        let its = process::environ_var(pid, Home::VARIABLE).filter(|its| !files::is_same_file(Path::new(its), home));
        if let Some(its) = its {
            found.entry(its).or_default().push(shown(agent.pane.as_deref()));
        }
    }
    found
}

fn judge_astray(id: &str, astray: &BTreeMap<String, Vec<String>>, home: &Path) -> Option<Check> {
    let (old, _) = astray.first_key_value()?;
    let said = |(its, panes): (&String, &Vec<String>)| match panes.as_slice() {
        [pane] => format!("the agent in {pane} reports to {}, which is not this home", sanitise(its)),
        panes => format!(
            "the agents in {} report to {}, which is not this home",
            panes.iter().take(10).cloned().collect::<Vec<_>>().join(", "),
            sanitise(its)
        ),
    };
    let said = astray.iter().take(3).map(said).collect::<Vec<_>>().join("; ");
    let again = "end these agents and start new ones";
    let fix = if Path::new(old).exists() {
        again.to_owned()
    } else {
        let [new, old] = [&home.display().to_string(), old].map(|path| shell_word(&sanitise(path)));
        format!("if the home was moved, let its old path lead to it: ln -s {new} {old}; or {again}")
    };
    Some(Check::fail(id, format!("{said}: no text to them can be confirmed"), fix))
}

/// Living agents whose hooks have never reported, or report to another home. A reopened session has nothing to report
/// until somebody speaks to it, and tasuki types nothing to it that a hook would have to confirm.
fn judge_agents(agents: &[ViewFile<AgentView>], astray: &BTreeMap<String, Vec<String>>, home: &Path) -> Check {
    let id = "hooks.agents";
    if let Some(check) = judge_astray(id, astray, home) {
        return check;
    }
    let is_silent = |agent: &&ViewFile<AgentView>| {
        let may_be_silent = agent.state == AgentState::Starting || (agent.reopened && agent.persona_slug.is_none());
        agent.hooks == Hooks::Unseen && !may_be_silent
    };
    let silent: Vec<String> = agents.iter().filter(is_silent).map(|agent| shown(agent.pane.as_deref())).collect();
    match silent.len() {
        0 if agents.is_empty() => Check::skipped(id, "no agent is running"),
        0 => Check::ok(id, format!("none of the {} running agents fails to report", agents.len())),
        _ => {
            let said = format!(
                "agents that have not reported any event yet, in panes: {}",
                silent.iter().take(10).cloned().collect::<Vec<_>>().join(", ")
            );
            Check::warn(
                id,
                said,
                "for an agent that you started yourself: tasuki hooks install PROFILE, then restart the agent",
            )
        }
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
