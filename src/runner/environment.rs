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

/// What is kept of one agent.
struct Kept {
    process: Process,
    environment: Environment,
    /// Whether these are the values of the whole environment, as far as is known. `false` once the running agent has
    /// refused a later look: the values may be those of the program that started it.
    is_whole: bool,
}

/// What a look at an agent's environment has shown.
#[derive(Debug, PartialEq, Eq)]
enum Reading {
    Whole(Environment),
    /// The agent runs, but its environment may not be read, or this system does not tell it.
    Denied,
    /// The agent has ended, or we could not look, for a reason that may be temporary.
    Unavailable,
}

static KEPT: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());

/// Keeps the credentials in the environment of a running agent. Each call reads the environment again, because a
/// process that was just started may still have the environment of the program that started it.
pub(crate) fn keep_environment(process: &Process) {
    environment_of(process);
}

/// The credentials in the environment of an agent: read again if the agent still runs, else those that were kept.
/// `None` if there are neither, or if the running agent lets nobody read its environment (as Codex does). The values
/// that were kept of such an agent before stay in [`known_values`], but they may not be all of them.
pub(super) fn environment_of(process: &Process) -> Option<Environment> {
    let reading = read(process);
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    match reading {
        Reading::Whole(environment) => {
            all.retain(|kept| kept.process != *process);
            all.push_back(Kept { process: *process, environment: environment.clone(), is_whole: true });
            let from = all.len().saturating_sub(MOST);
            all.drain(..from);
            Some(environment)
        }
        Reading::Denied => {
            all.iter_mut().filter(|kept| kept.process == *process).for_each(|kept| kept.is_whole = false);
            None
        }
        Reading::Unavailable => {
            let kept = all.iter().find(|kept| kept.process == *process && kept.is_whole);
            kept.map(|kept| kept.environment.clone())
        }
    }
}

/// The credentials in the environments of all known agents, those of `process` first. All agents count, because an
/// agent may write down what its predecessor was told, and a person may mention the credential of any agent. Some of
/// the values may be ordinary words or numbers: see [`secrets::without_words`].
pub(crate) fn known_values(process: Option<&Process>) -> Vec<(String, String)> {
    let own = process.and_then(environment_of).unwrap_or_default();
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let values: BTreeSet<&(String, String)> = all.iter().flat_map(|kept| &kept.environment).collect();
    own.iter().chain(values.into_iter().filter(|value| !own.contains(value))).cloned().collect()
}

/// Reads the credentials in an agent's environment. What is read counts only if the agent still runs afterwards,
/// because another process may have its id by now.
fn read(process: &Process) -> Reading {
    let Ok(environment) = process::environment_all(process.pid) else { return Reading::Unavailable };
    match (process::life(process), environment) {
        (ProcessState::Alive, Some(environment)) => Reading::Whole(secrets::values(&environment)),
        (ProcessState::Alive, None) => Reading::Denied,
        (ProcessState::Gone | ProcessState::Unknown, _) => Reading::Unavailable,
    }
}

#[cfg(all(test, not(tasuki_portable), any(target_os = "linux", target_os = "macos")))]
mod tests {
    use super::*;
    #[cfg(target_os = "linux")]
    use std::io::Write;
    use std::process::{Command, Stdio};
    #[cfg(target_os = "linux")]
    use std::time::{Duration, Instant};

    #[test]
    fn the_environment_of_an_agent_outlives_it() {
        let mut command = Command::new("sleep");
        let mut child =
            command.arg("600").env("A_TOKEN", "kept-for-later").stdin(Stdio::null()).spawn().expect("sleep");
        let process = process::find(child.id()).expect("a look").expect("it runs");
        let value = ("A_TOKEN".to_owned(), "kept-for-later".to_owned());
        // Between fork and exec the child still has our environment. The values that are kept then are replaced later.
        keep_environment(&process);
        while !matches!(read(&process), Reading::Whole(all) if all.contains(&value)) {
            std::thread::yield_now();
        }
        keep_environment(&process);
        child.kill().expect("killed");
        child.wait().expect("collected");
        assert_eq!(read(&process), Reading::Unavailable);
        assert!(environment_of(&process).is_some_and(|all| all.contains(&value)));
        let other = Process { start_ticks: process.start_ticks + 1, ..process };
        assert_eq!(environment_of(&other), None, "another process had its id");
    }

    /// Gives up this thread's capabilities: with them, a test that runs as root may read every environment.
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    fn drop_capabilities() {
        let (header, none) = ([0x2008_0522_u32, 0], [0_u32; 6]);
        // SAFETY: the kernel reads both arrays, which have the sizes that this version of the call asks for.
        let result = unsafe { nix::libc::syscall(nix::libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
        assert_eq!(result, 0, "giving up is always allowed");
    }

    /// Codex forbids others to read its memory, and so its environment.
    #[cfg(target_os = "linux")]
    #[test]
    fn an_environment_that_may_not_be_read_is_not_an_empty_one() {
        let wait_for_input = || std::io::stdin().read_line(&mut String::new()).expect("our own input");
        if std::env::var_os("FORBIDS_READING").is_some() {
            // This is the agent: the test starts itself again as its own child.
            wait_for_input();
            nix::sys::prctl::set_dumpable(false).expect("always allowed");
            wait_for_input();
            return;
        }
        let name = std::thread::current().name().expect("the test's name").to_owned();
        let mut command = Command::new(std::env::current_exe().expect("we run"));
        command.args([&name, "--exact", "--nocapture"]).env("FORBIDS_READING", "1").env("A_TOKEN", "kept-until-denied");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("we run already");
        let process = process::find(child.id()).expect("a look").expect("it runs");
        let value = ("A_TOKEN".to_owned(), "kept-until-denied".to_owned());
        let deadline = Instant::now() + Duration::from_secs(20);
        while !environment_of(&process).is_some_and(|all| all.contains(&value)) {
            assert!(Instant::now() < deadline, "it can be read at first");
            std::thread::yield_now();
        }
        drop_capabilities();
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(b"now\n").expect("it reads");
        while read(&process) != Reading::Denied {
            assert!(Instant::now() < deadline, "it forbids reading");
            std::thread::yield_now();
        }
        assert_eq!(environment_of(&process), None, "its environment is not known");
        assert!(known_values(Some(&process)).contains(&value), "what was kept stays");
        drop(input);
        child.wait().expect("our own child");
        assert_eq!(environment_of(&process), None, "what was kept may not be all");
    }
}
