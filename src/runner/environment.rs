//! The environments of agents. They are kept in memory while the sidecar runs: an agent that has ended takes its
//! environment with it, and its document is still to be searched for the values.

use crate::core::pane::Process;
use crate::process::{self, ProcessState};
use crate::secrets;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The most agents whose environments are kept; of more, the oldest is forgotten.
const MOST: usize = 512;

/// The variables whose values count as credentials: names and values.
type Environment = Vec<(String, String)>;

static KEPT: Mutex<VecDeque<(Process, Environment)>> = Mutex::new(VecDeque::new());

/// Keeps the environment of an agent that runs. It is read each time, because a process that was just started still has
/// the environment of the program that started it.
pub(crate) fn keep_environment(process: &Process) {
    environment_of(process);
}

/// The credentials in the environment of an agent: read if the agent still runs, and else as they were kept. None if
/// neither can be had.
pub(super) fn environment_of(process: &Process) -> Option<Environment> {
    let Some(environment) = read(process) else { return kept(process) };
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(other, _)| other != process);
    all.push_back((*process, environment.clone()));
    let from = all.len().saturating_sub(MOST);
    all.drain(..from);
    Some(environment)
}

/// The credentials in the environments of all agents that are known. An agent may have written down what its predecessor
/// was told, and a person may name the credential of any agent. Among them are values that are ordinary words
/// or numbers: see [`secrets::without_words`].
pub(crate) fn known_values(process: Option<&Process>) -> Vec<(String, String)> {
    let own = process.and_then(environment_of).unwrap_or_default();
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let values: BTreeSet<&(String, String)> = all.iter().flat_map(|(_, environment)| environment).collect();
    own.iter().chain(values.into_iter().filter(|value| !own.contains(value))).cloned().collect()
}

/// None if the agent has ended, because another process may have its id by now.
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
        // Between fork and exec it still has our environment, and what is kept then is replaced.
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
