//! One call of the user's `gh`: no shell, no prompts, a limit on its time and on its output.

use super::failure::GhError;
use crate::child::Grouped;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Semaphore;

/// How much is read of `gh`'s standard output, and of its standard error, in bytes.
const MAX_SAID: u64 = 256 * 1024;

/// How many calls may run at once: each is a process, and GitHub wants only a few at a time from one account.
const AT_ONCE: usize = 4;
static ROOM: Semaphore = Semaphore::const_new(AT_ONCE);

/// Variables that would make `gh` use another repository, ask questions, colour its output, or print what it sends.
const NOT_FOR_GH: [&str; 6] = ["GH_REPO", "GH_DEBUG", "DEBUG", "GH_FORCE_TTY", "CLICOLOR_FORCE", "GH_PAGER"];

/// The user's `gh`: where it is, and how it is run.
#[derive(Debug, Clone)]
pub struct Gh {
    /// The program's path, or its name, which is looked up in `PATH`.
    pub program: String,
    /// How long a call may take.
    pub limit: Duration,
    /// The host, if it is not `gh`'s own default.
    pub host: Option<String>,
    /// The folder that it runs in.
    pub folder: PathBuf,
}

/// The output of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GhOutput {
    /// The exit code; none if a signal has ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Gh {
    /// Runs `gh` with these arguments. It first waits until fewer than 4 calls run, and until the system has room for
    /// another process.
    ///
    /// # Errors
    /// [`GhError`] `gh_missing` if there is no such program, `gh_timeout` if it took too long, `gh_failed` if it could
    /// not be started for another reason, if its output or its end could not be read, or if its output was too long.
    pub async fn call<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Result<GhOutput, GhError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(&self.folder);
        self.prepare(&mut command);
        // The semaphore is never closed. If it were, the call would be made without a permit.
        let _turn = ROOM.acquire().await.ok();
        let mut group = Grouped::start_bound(&mut command).await.map_err(|error| self.not_started(&error))?;
        let child = group.child();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let talk = async {
            let (stdout, stderr) = tokio::join!(listen(stdout), listen(stderr));
            let status = child.wait().await;
            (stdout, stderr, status)
        };
        // When `group` is dropped, its remaining processes are killed.
        let Ok((stdout, stderr, status)) = tokio::time::timeout(self.limit, talk).await else {
            let message = format!("gh did not end within {} s and was stopped", self.limit.as_secs_f32());
            return Err(GhError { again: true, ..GhError::new("gh_timeout", message).maybe_stored() });
        };
        let status = status.map_err(|error| maybe_stored(format!("could not wait for gh: {error}")))?;
        Ok(GhOutput { code: status.code(), stdout: stdout?, stderr: stderr? })
    }

    fn prepare(&self, command: &mut Command) {
        for name in NOT_FOR_GH {
            command.env_remove(name);
        }
        command.env("GH_PROMPT_DISABLED", "1").env("GH_NO_UPDATE_NOTIFIER", "1").env("NO_COLOR", "1");
        if let Some(host) = &self.host {
            command.env("GH_HOST", host);
        }
    }

    fn not_started(&self, error: &std::io::Error) -> GhError {
        let program = crate::core::text::quotable(&self.program, 200);
        if error.kind() == std::io::ErrorKind::NotFound && self.folder.is_dir() {
            return GhError::new("gh_missing", format!("{program} is not installed, or not in tasuki's PATH"));
        }
        GhError::new("gh_failed", format!("could not start {program}: {error}"))
    }
}

/// A whole output, with invalid UTF-8 replaced; an error if it has more than [`MAX_SAID`] bytes or can't be read.
async fn listen(output: Option<impl AsyncRead + Unpin>) -> Result<String, GhError> {
    let Some(output) = output else { return Ok(String::new()) };
    let mut said = Vec::new();
    let read = output.take(MAX_SAID + 1).read_to_end(&mut said).await;
    read.map_err(|error| maybe_stored(format!("could not read what gh printed: {error}")))?;
    if said.len() as u64 > MAX_SAID {
        return Err(maybe_stored(format!("gh printed more than {MAX_SAID} bytes")));
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// A failure after `gh` was started, so what it sent may have been stored.
fn maybe_stored(message: String) -> GhError {
    GhError::new("gh_failed", message).maybe_stored()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gh(program: &str, limit_ms: u64) -> Gh {
        let limit = Duration::from_millis(limit_ms);
        Gh { program: program.to_owned(), limit, host: Some("gh.example".to_owned()), folder: PathBuf::from("/") }
    }

    #[tokio::test]
    async fn a_missing_a_slow_and_a_loud_gh_are_told_apart() {
        let missing = gh("/no/such/gh", 5_000).call(&["x"]).await.expect_err("there is none");
        assert_eq!((missing.code, missing.maybe_stored), ("gh_missing", false));
        let slow = gh("sleep", 50).call(&["600"]).await.expect_err("too slow");
        assert_eq!((slow.code, slow.maybe_stored, slow.again), ("gh_timeout", true, true));
        let loud = gh("sh", 20_000).call(&["-c", "yes | head -c 300000"]).await.expect_err("too loud");
        assert_eq!((loud.code, loud.maybe_stored), ("gh_failed", true));
        assert!(loud.message.contains("more than 262144 bytes"), "{loud:?}");
    }

    #[tokio::test]
    async fn a_gh_that_cannot_be_started_is_not_called_missing() {
        let forbidden = gh("/etc/passwd", 5_000).call(&["x"]).await.expect_err("it is not a program");
        assert_eq!((forbidden.code, forbidden.maybe_stored), ("gh_failed", false));
        assert!(forbidden.message.contains("ermission denied"), "{forbidden:?}");
        let nowhere = Gh { folder: PathBuf::from("/no/such/folder"), ..gh("sh", 5_000) };
        assert_eq!(nowhere.call(&["-c", "true"]).await.expect_err("its folder is missing").code, "gh_failed");
    }

    /// An output whose reading fails.
    struct Torn;

    impl AsyncRead for Torn {
        fn poll_read(
            self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            _: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<std::io::Result<()>> {
            std::task::Poll::Ready(Err(std::io::Error::other("torn")))
        }
    }

    #[tokio::test]
    async fn an_output_that_cannot_be_read_is_not_called_too_long() {
        let failed = listen(Some(Torn)).await.expect_err("it can't be read");
        assert_eq!((failed.code, failed.maybe_stored), ("gh_failed", true));
        assert_eq!(failed.message, "could not read what gh printed: torn");
    }

    /// If only a wrapper around `gh` were killed, the upload that it had started would continue while tasuki tries
    /// again.
    #[tokio::test]
    async fn processes_that_a_wrapper_has_started_end_with_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let (note, mark) = (dir.path().join("pid"), dir.path().join("mark"));
        let script = format!("sh -c 'echo $$ >{}; sleep 600; touch {}'; true", note.display(), mark.display());
        let slow = gh("sh", 1_000).call(&["-c", &script]).await.expect_err("too slow");
        assert_eq!(slow.code, "gh_timeout");
        let pid: u32 = std::fs::read_to_string(&note).expect("it ran").trim().parse().expect("a pid");
        crate::child::tests::ends(pid).await;
    }

    #[tokio::test]
    async fn gh_asks_no_questions_and_is_told_the_host() {
        let script =
            "read x; echo \"$GH_PROMPT_DISABLED $GH_NO_UPDATE_NOTIFIER $NO_COLOR $GH_HOST $? $x\"; echo no >&2; exit 3";
        let said = gh("sh", 20_000).call(&["-c", script]).await.expect("it runs");
        let expected =
            GhOutput { code: Some(3), stdout: "1 1 1 gh.example 1 \n".to_owned(), stderr: "no\n".to_owned() };
        assert_eq!(said, expected);
    }
}
