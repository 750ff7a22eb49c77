//! Finds the agent CLIs among the processes above a hook, for events whose agent can't be known without them.

use crate::agents::profile::Profiles;
use crate::core;
use crate::core::hook::{AgentCli, HookEvent};
use crate::core::state::State;
use crate::core::time::Now;
use crate::limits;
use crate::process;
use std::io;

/// How much later than its event a process may seem to have started, in milliseconds: two clocks are compared.
const SLACK_MS: i64 = 1_000;

/// Looks up the processes above a hook. The system reuses process ids, so a process that started after the event's file
/// was written is ignored.
///
/// # Errors
/// The system is short of something, so it is not known which agent the event belongs to. A later attempt may succeed.
pub(super) fn look_up(
    event: &mut HookEvent,
    written_ns: i64,
    (state, profiles): (&State, &Profiles),
    now: &Now,
) -> io::Result<()> {
    if !core::wants_clis(state, event) {
        return Ok(());
    }
    let booted_ms = now.wall_ms.saturating_sub(i64::try_from(now.boot_ms).unwrap_or(i64::MAX));
    let latest_ms = (written_ns / 1_000_000).saturating_sub(booted_ms).saturating_add(SLACK_MS);
    event.clis = clis(&event.ancestors, profiles, (booted_ms, latest_ms))?;
    Ok(())
}

/// The CLIs among these processes that had started by `latest_ms`. A CLI that first starts itself again, such as a
/// script that runs its binary, counts once.
fn clis(ancestors: &[u32], profiles: &Profiles, (booted_ms, latest_ms): (i64, i64)) -> io::Result<Vec<AgentCli>> {
    let mut found: Vec<AgentCli> = Vec::new();
    let mut below: Option<String> = None;
    for pid in ancestors {
        let profile = profile_of(*pid, profiles)?;
        if let Some(profile) = profile.clone().filter(|profile| below.as_ref() != Some(profile))
            && let Some(process) = process::find(*pid)?.filter(process::is_alive)
            && process::started_ms(&process, booted_ms).is_none_or(|started| started <= latest_ms)
        {
            found.push(AgentCli { process, profile });
        }
        below = profile;
    }
    Ok(found)
}

fn profile_of(pid: u32, profiles: &Profiles) -> io::Result<Option<String>> {
    let argv = limits::of_proc(process::arguments(pid))?.flatten();
    Ok(argv.and_then(|argv| Some(profiles.detect(&argv)?.name.clone())))
}

#[cfg(all(test, not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_cli_is_known_by_its_arguments_unless_it_started_later() {
        let mut command = Command::new("sleep");
        let mut child =
            command.arg0("/bin/claude").arg("600").stdin(Stdio::null()).spawn().expect("sleep is everywhere");
        let profiles = Profiles::load(None).expect("the built-in ones");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while process::argv(child.id()).is_none() {
            assert!(std::time::Instant::now() < deadline, "it was started");
            std::thread::yield_now();
        }
        let process = process::identify(child.id()).expect("it runs");
        let started = process::started_ms(&process, 0).expect("the system reports it");
        let above = [child.id(), std::process::id()];
        let clis = |above: &[u32], latest_ms| clis(above, &profiles, (0, latest_ms)).expect("nothing is short");
        let wanted = vec![AgentCli { process, profile: "claude".to_owned() }];
        assert_eq!(clis(&above, started), wanted);
        assert_eq!(clis(&[child.id(), child.id()], started), wanted, "a CLI that starts itself again");
        assert_eq!(clis(&above, started - 1), [], "the id was used again");
        child.kill().expect("our own child");
        child.wait().expect("our own child");
        assert_eq!(clis(&above, started), [], "it has ended");
    }
}
