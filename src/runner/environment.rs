//! The credentials in the environments of agents. An agent's document has to be searched for them, and by then the
//! agent may have ended and its environment may be gone. So they are kept in memory while the sidecar runs.

use crate::core::pane::Process;
use crate::process::{self, ProcessState};
use crate::secrets;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The most agents whose credentials are kept; if there are more, the oldest are forgotten.
const MOST: usize = 512;

/// The variables whose values count as credentials: names and values.
type Environment = Vec<(String, String)>;

static KEPT: Mutex<VecDeque<(Process, Environment)>> = Mutex::new(VecDeque::new());

/// Keeps the credentials in the environment of a running agent. Each call reads the environment again, because a
/// process that was just started may still have the environment of the program that started it.
pub(crate) fn keep_environment(process: &Process) {
    environment_of(process);
}

/// The credentials in the environment of an agent: read again if the agent still runs, else those that were kept.
/// `None` if there are neither.
pub(super) fn environment_of(process: &Process) -> Option<Environment> {
    let Some(environment) = read(process) else { return kept(process) };
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(other, _)| other != process);
    all.push_back((*process, environment.clone()));
    let from = all.len().saturating_sub(MOST);
    all.drain(..from);
    Some(environment)
}

/// The credentials in the environments of all known agents, those of `process` first. All agents count, because an
/// agent may write down what its predecessor was told, and a person may mention the credential of any agent. Some of
/// the values may be ordinary words or numbers: see [`secrets::without_words`].
pub(crate) fn known_values(process: Option<&Process>) -> Vec<(String, String)> {
    let own = process.and_then(environment_of).unwrap_or_default();
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let values: BTreeSet<&(String, String)> = all.iter().flat_map(|(_, environment)| environment).collect();
    own.iter().chain(values.into_iter().filter(|value| !own.contains(value))).cloned().collect()
}

/// Reads the credentials in an agent's environment. `None` if the agent has ended, because another process may have its
/// id by now.
fn read(process: &Process) -> Option<Environment> {
    let environment = process::environment_all(process.pid).ok()?;
    (process::life(process) == ProcessState::Alive).then(|| secrets::values(&environment))
}

fn kept(process: &Process) -> Option<Environment> {
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|(other, _)| other == process).map(|(_, environment)| environment.clone())
}

#[cfg(all(test, not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_environment_of_an_agent_outlives_it() {
        let mut command = Command::new("sleep");
        let mut child =
            command.arg("600").env("A_TOKEN", "kept-for-later").stdin(Stdio::null()).spawn().expect("sleep");
        let process = process::find(child.id()).expect("a look").expect("it runs");
        let has_it = |environment: Option<Environment>| {
            environment.is_some_and(|all| all.contains(&("A_TOKEN".to_owned(), "kept-for-later".to_owned())))
        };
        // Between fork and exec the child still has our environment. The values that are kept then are replaced later.
        keep_environment(&process);
        while !has_it(read(&process)) {
            std::thread::yield_now();
        }
        keep_environment(&process);
        child.kill().expect("killed");
        child.wait().expect("collected");
        assert_eq!(read(&process), None);
        assert!(has_it(environment_of(&process)));
        let other = Process { start_ticks: process.start_ticks + 1, ..process };
        assert_eq!(environment_of(&other), None, "another process had its id");
    }
}
