//! Runs a configured command with a notice on its standard input: the operator's (`[notify] command`), the
//! orchestrator's or the escalation target's. `desktop` makes the command that shows a notice on a desktop.

pub mod desktop;

use crate::child::Grouped;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// How long a command may take.
pub const LIMIT: Duration = Duration::from_secs(10);

/// How many commands run at once. A thousand agents have hundreds of notices in one moment, and each command costs a
/// process and descriptors that the agents' own work needs.
const AT_ONCE: usize = 8;
static ROOM: Semaphore = Semaphore::const_new(AT_ONCE);

/// Why a notice could not be given to a command. The error never contains the text of the notice.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the command is empty; check config.toml")]
    Empty,
    #[error("the command {program:?} can't be started: {source}; check config.toml")]
    Start { program: String, source: std::io::Error },
    /// The command did not end in time and was killed.
    #[error("the command {program:?} took more than {seconds} s and was stopped")]
    TooSlow { program: String, seconds: u64 },
    /// The command was not started, because the sidecar is ending.
    #[error("the command was not started, because the sidecar is stopping")]
    Stopped,
    #[error("the command {program:?} failed ({status})")]
    Failed { program: String, status: std::process::ExitStatus },
    #[error("the end of the command {program:?} could not be awaited: {source}")]
    Lost { program: String, source: std::io::Error },
}

/// Runs the command (a list of arguments, no shell) with `json` on its standard input, for at most [`LIMIT`]. A slower
/// command is killed with all that it has started; so is a command whose future is dropped. Only a few commands run at
/// once; the others wait for their turn. If the system has no room for another process, the command is started later.
/// After `stop` no command is started. A command that already runs is not interrupted: it still gets its input and its
/// full time limit.
///
/// # Errors
/// The command could not be started, was too slow, or ended with another code than 0.
pub async fn run(command: &[String], json: &[u8], stop: &CancellationToken) -> Result<(), Error> {
    run_until((command, None), json, LIMIT, stop).await
}

/// As [`run`], with another limit, and the sidecar's stop can't cancel it.
///
/// # Errors
/// As for [`run`].
pub async fn run_within(command: &[String], json: &[u8], limit: Duration) -> Result<(), Error> {
    run_until((command, None), json, limit, &CancellationToken::new()).await
}

/// As [`run_within`], with these variables alone in place of this process's own.
///
/// # Errors
/// As for [`run`].
pub async fn run_with(command: &[String], variables: &Variables, json: &[u8], limit: Duration) -> Result<(), Error> {
    run_until((command, Some(variables)), json, limit, &CancellationToken::new()).await
}

/// Names and values.
type Variables = [(String, String)];

async fn run_until(
    (command, environment): (&[String], Option<&Variables>),
    json: &[u8],
    limit: Duration,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let [program, arguments @ ..] = command else { return Err(Error::Empty) };
    let program = program.clone();
    let begin = async {
        // The semaphore is never closed. If it were, the command would run without a permit.
        let turn = ROOM.acquire().await.ok();
        (turn, start(&program, arguments, environment).await)
    };
    let (_turn, started) = tokio::select! {
        biased;
        () = stop.cancelled() => return Err(Error::Stopped),
        begun = begin => begun,
    };
    let mut child = match started {
        Ok(child) => child,
        Err(source) => return Err(Error::Start { program, source }),
    };
    match tokio::time::timeout(limit, feed(child.child(), json)).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(Error::Failed { program, status }),
        Ok(Err(source)) => Err(Error::Lost { program, source }),
        Err(_) => {
            // Ends the command with all that it has started.
            child.end();
            let _ = tokio::time::timeout(Duration::from_secs(1), child.child().wait()).await;
            Err(Error::TooSlow { program, seconds: limit.as_secs() })
        }
    }
}

async fn start(program: &str, arguments: &[String], environment: Option<&Variables>) -> std::io::Result<Grouped> {
    let mut command = Command::new(program);
    if let Some(environment) = environment {
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
    }
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Grouped::start(&mut command).await
}

/// Gives the child its input and waits for its end. A child that does not read is not at fault.
async fn feed(child: &mut Child, json: &[u8]) -> std::io::Result<std::process::ExitStatus> {
    let input = child.stdin.take();
    let write = async {
        if let Some(mut input) = input {
            let _ = input.write_all(json).await;
            let _ = input.shutdown().await;
        }
    };
    tokio::select! {
        status = child.wait() => return status,
        () = write => {}
    }
    child.wait().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[tokio::test]
    async fn the_json_comes_on_standard_input() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("told");
        let command = argv(&["sh", "-c", "cat > \"$1\"", "sh", &file.to_string_lossy()]);
        run_within(&command, br#"{"code":"did_not_exit"}"#, LIMIT).await.expect("told");
        assert_eq!(std::fs::read(&file).expect("written"), br#"{"code":"did_not_exit"}"#);
    }

    #[tokio::test]
    async fn arguments_reach_no_shell() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("$(touch pwned); x");
        run_within(&argv(&["touch", &file.to_string_lossy()]), b"{}", LIMIT).await.expect("told");
        assert!(file.exists());
    }

    #[tokio::test]
    async fn a_command_that_does_not_read_is_not_at_fault() {
        let large = vec![b' '; 1024 * 1024];
        run_within(&argv(&["true"]), &large, LIMIT).await.expect("told");
    }

    #[tokio::test]
    async fn failures_say_which_command_and_why_and_never_what() {
        let secret = b"very secret";
        let failed = run_within(&argv(&["false"]), secret, LIMIT).await.expect_err("it fails").to_string();
        assert!(failed.contains("\"false\"") && failed.contains('1') && !failed.contains("secret"), "{failed}");
        let missing = run_within(&argv(&["/no/such/program"]), secret, LIMIT).await.expect_err("none such");
        assert!(matches!(missing, Error::Start { .. }));
        assert!(matches!(run_within(&[], secret, LIMIT).await, Err(Error::Empty)));
    }

    #[tokio::test]
    async fn no_command_is_started_after_the_end_has_begun() {
        let dir = tempfile::tempdir().expect("a folder");
        let (file, stop) = (dir.path().join("told"), CancellationToken::new());
        stop.cancel();
        let stopped = run(&argv(&["touch", &file.to_string_lossy()]), b"{}", &stop).await;
        assert!(matches!(stopped, Err(Error::Stopped)) && !file.exists());
    }

    #[tokio::test]
    async fn a_slow_command_is_stopped() {
        let slow = run_within(&argv(&["sleep", "600"]), b"{}", Duration::from_millis(50)).await;
        assert!(matches!(slow, Err(Error::TooSlow { .. })));
    }
}
