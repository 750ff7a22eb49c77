//! `doctor delivery`: checks the sidecar, the recipient, `gh` and the issue, which a handoff needs to be delivered and
//! published.

use super::super::client::{self, Pulse, SidecarPresence};
use super::super::error::CliError;
use super::super::{CliSession, names, view};
use super::check::Check;
use super::ground::wait_for;
use crate::child;
use crate::config::Config;
use crate::contract::{AgentState, HandoffView, PublishState, PublishView, Step};
use crate::core::request::{Issue, PublishTarget};
use crate::process;
use crate::publish::{self, Gh, GhCall, GhError};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// `doctor delivery`.
#[derive(Debug, Args)]
pub struct DeliveryArgs {
    /// Check the successor and the issue of this handoff: its id, the beginning of it, or a persona.
    #[arg(long, value_name = "ID")]
    pub handoff: Option<String>,
    /// Check this issue: `owner/repo#42` or its URL.
    #[arg(long, value_name = "ISSUE")]
    pub issue: Option<String>,
}

/// How long one question to `gh` may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The variables that `gh` reads. If one is empty, `gh` takes it as unset.
const VARIABLES: [&str; 4] = ["GH_TOKEN", "GITHUB_TOKEN", "GH_HOST", "GH_CONFIG_DIR"];

/// Runs the checks in the order in which a delivery needs them.
pub(super) fn look(session: &CliSession, args: &DeliveryArgs) -> Result<Vec<Check>, CliError> {
    let handoff = match &args.handoff {
        Some(name) => {
            let id = names::handoff(&session.home, name)?;
            Some(view::handoff(&session.home, &id)?.ok_or_else(|| names::not_found("handoff", name))?)
        }
        None => None,
    };
    let asked = handoff.as_ref().and_then(|handoff| handoff.publish.as_ref()?.target.issue.as_deref());
    let issue =
        match args.issue.as_deref().or(asked) {
            Some(text) => Some(Issue::read(text).ok_or_else(|| {
                CliError::usage("--issue must be owner/repo#42, or https://host/owner/repo/issues/42.")
            })?),
            None => None,
        };
    let config = Config::load(&session.home.config())?;
    let (sidecar, pid) = sidecar(session);
    let mut checks = vec![sidecar];
    if let Some(handoff) = &handoff {
        checks.push(recipient(session, handoff)?);
        checks.extend(handoff.publish.as_ref().and_then(published));
    }
    let gh = Gh {
        program: config.gh,
        limit: LIMIT,
        host: issue.as_ref().and_then(|issue| issue.host.clone()),
        folder: PathBuf::from("/"),
    };
    let asked = wait_for(ask_gh(&gh, issue.as_ref(), pid));
    checks.extend(asked.map_err(|error| CliError::refused("no_runtime", format!("Can't start gh: {error}.")))?);
    Ok(checks)
}

/// Checks the sidecar. Returns its process id too, if its heartbeat is fresh.
fn sidecar(session: &CliSession) -> (Check, Option<u32>) {
    let name = "sidecar";
    let seen = Pulse::new(&session.home).check();
    let SidecarPresence::Alive { pid, .. } = seen else {
        let error = client::no_sidecar(&session.home, &seen);
        let fix = error.hint.unwrap_or_else(|| "start a sidecar with: tasuki run".to_owned());
        return (Check::fail(name, error.message, fix), None);
    };
    let view = view::sidecar(&session.home).ok().flatten();
    let check = match view.as_ref().and_then(|view| view::said(view.problem.as_deref())) {
        Some(problem) => Check::fail(name, problem, "fix that; the sidecar continues by itself"),
        None => Check::ok(name, format!("the sidecar runs as process {pid}")),
    };
    (check, Some(pid))
}

fn recipient(session: &CliSession, handoff: &HandoffView) -> Result<Check, CliError> {
    let name = "recipient";
    let step = view::shown(handoff.step.as_str());
    let Some(id) = view::said(handoff.successor_id.as_deref()) else {
        let fix = format!("to see the handoff: tasuki handoffs show {}", view::shown(handoff.handoff_id.as_str()));
        return Ok(Check::warn(name, format!("there is no successor yet: the handoff is at {step}"), fix));
    };
    let short: String = id.chars().take(8).collect();
    let Some(agent) = view::agent(&session.home, id)? else {
        return Ok(gone(handoff, format!("agent {short} is unknown")));
    };
    let (state, pane) = (view::shown(agent.state.as_str()), view::shown(agent.pane.as_deref()));
    let said = format!("agent {short} in pane {pane} is {state}");
    Ok(match agent.state.known() {
        Some(AgentState::Idle | AgentState::Busy) => Check::ok(name, said),
        Some(AgentState::Starting) => Check::warn(name, said, "wait until it has registered"),
        Some(AgentState::Blocked) => Check::warn(name, said, "answer the dialog in its pane"),
        Some(AgentState::Ended | AgentState::Lost) | None => gone(handoff, said),
    })
}

/// The check of a successor that can't take the document. `said`: what is known of the agent.
fn gone(handoff: &HandoffView, said: String) -> Check {
    let (name, id) = ("recipient", view::shown(handoff.handoff_id.as_str()));
    let fix = match handoff.step.known() {
        Some(Step::Done) => return Check::ok(name, format!("{said}; the handoff is done, so it needs it no longer")),
        Some(Step::Failed) => format!("choose another successor: tasuki retry {id} --successor new"),
        Some(Step::Cancelled) => "start another agent, or hand an agent off again".to_owned(),
        _ => format!("wait until the handoff has failed, then: tasuki retry {id} --successor new"),
    };
    Check::fail(name, said, fix)
}

fn published(publish: &PublishView) -> Option<Check> {
    let name = "publishing";
    let said = crate::cli::publishing::summary(publish)?;
    let hint = publish.error.as_ref().and_then(|error| view::said(error.hint.as_str()));
    let hint = hint.unwrap_or("see: tasuki handoffs");
    Some(match publish.state.known() {
        Some(PublishState::Published) => Check::ok(name, said),
        Some(PublishState::Failed | PublishState::Held | PublishState::InDoubt) => Check::fail(name, said, hint),
        _ => Check::warn(name, said, "publishing continues by itself"),
    })
}

/// Checks whether this command and the sidecar find `gh`, whether `gh` is logged in, and the issue if one was named.
pub(super) async fn ask_gh(gh: &Gh, issue: Option<&Issue>, pid: Option<u32>) -> Vec<Check> {
    let there = match is_there(gh, pid).await {
        Ok(checks) => checks,
        Err(check) => return vec![check],
    };
    let mut checks = there;
    let login = login(gh).await;
    checks.push(login);
    if let Some(issue) = issue {
        checks.push(issue_is_there(gh, issue).await);
    }
    checks
}

/// Looks for `gh` in this shell and in the sidecar's `PATH`, and compares the variables that `gh` reads. The error is
/// the only finding: without `gh` in this shell the other checks can't run.
async fn is_there(gh: &Gh, pid: Option<u32>) -> Result<Vec<Check>, Check> {
    let install = "install gh (https://cli.github.com), or name its path in config.toml: [publish] gh";
    let said = gh.call(&["--version"]).await.map_err(|fault| Check::fail("gh", fault.message, install))?;
    let version = said.stdout.lines().next().unwrap_or_default().trim().to_owned();
    if said.code != Some(0) || version.is_empty() {
        return Err(Check::fail("gh", format!("{} does not print its version", gh.program), install));
    }
    let mut checks = vec![Check::ok("gh", version)];
    let path = pid.and_then(|pid| process::environ_var(pid, "PATH"));
    if path.is_some_and(|path| child::find_program(&gh.program, path.as_ref()).is_err()) {
        let fix = "name the path of gh in config.toml: [publish] gh, or start the sidecar with another PATH";
        checks.push(Check::fail("gh of sidecar", format!("{} is not in the PATH of the sidecar", gh.program), fix));
    }
    let differing = pid.map(differing).unwrap_or_default();
    if !differing.is_empty() && process::READS_ENVIRONMENTS {
        let said = format!("the sidecar has another value of {} than this shell", differing.join(", "));
        checks.push(Check::warn(
            "environment",
            said,
            "the checks below use this shell's values; start the sidecar with the same values",
        ));
    }
    Ok(checks)
}

/// The variables of `gh` that have another value in that process than in this one.
fn differing(pid: u32) -> Vec<&'static str> {
    let set = |value: Option<String>| value.filter(|value| !value.is_empty());
    let differs = |name: &&str| set(std::env::var(name).ok()) != set(process::environ_var(pid, name));
    VARIABLES.into_iter().filter(differs).collect()
}

async fn login(gh: &Gh) -> Check {
    let name = "gh login";
    match ask(gh, GhCall::Other, &["api", "user", "--jq", ".login"]).await {
        Ok(who) => Check::ok(name, format!("logged in as {}", who.trim())),
        Err(fault) if fault.code == "gh_auth" => Check::fail(name, fault.message, "log in with: gh auth login"),
        // The token of a GitHub app belongs to no user, so `gh api user` is refused.
        Err(fault) if fault.code == "gh_forbidden" => Check::warn(
            name,
            fault.message,
            "the owner of this token is not known; check that the token may write comments or gists",
        ),
        Err(fault) => Check::fail(name, fault.message, "check the network and gh's own settings"),
    }
}

async fn issue_is_there(gh: &Gh, issue: &Issue) -> Check {
    let name = "issue";
    let (number, repository) = (issue.number.to_string(), issue.repository());
    let arguments =
        ["issue", "view", &number, "-R", &repository, "--json", "state,url", "--jq", ".state + \" \" + .url"];
    let shown = PublishTarget::Issue(issue.clone());
    match ask(gh, GhCall::Issue, &arguments).await {
        Ok(said) => Check::ok(name, format!("{shown} exists: {}", said.trim())),
        Err(fault) if fault.code == "gh_no_issue" => {
            let fix = "check that the issue exists and that the account may see it";
            Check::fail(name, format!("{shown} was not found: {}", fault.message), fix)
        }
        Err(fault) => Check::fail(name, format!("{shown} can't be read: {}", fault.message), "see the checks above"),
    }
}

async fn ask(gh: &Gh, asked: GhCall, arguments: &[&str]) -> Result<String, GhError> {
    let said = gh.call(arguments).await?;
    if said.code == Some(0) { Ok(said.stdout) } else { Err(publish::explain_failure(asked, said.code, &said.stderr)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let differing_with = |name: &str, value: &str| {
            let mut command = Command::new("cat");
            command.env(name, value).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut other = command.spawn().expect("it runs");
            // Its environment can be read as soon as it answers.
            other.stdin.as_mut().expect("a pipe").write_all(b"x").expect("written");
            other.stdout.as_mut().expect("a pipe").read_exact(&mut [0]).expect("it answers");
            let found = differing(other.id());
            drop(other.stdin.take());
            other.wait().expect("it ends");
            found
        };
        for name in VARIABLES.into_iter().filter(|name| std::env::var_os(name).is_none()) {
            assert_eq!(differing_with(name, ""), Vec::<&str>::new());
            if process::READS_ENVIRONMENTS {
                assert_eq!(differing_with(name, "x"), [name]);
            }
        }
    }
}
