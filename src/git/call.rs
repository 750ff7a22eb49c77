//! One call of git. Git can ask nobody, gets only the environment that tasuki makes, and has a limit on its time and on
//! its output.

use super::words::plain_line;
use crate::child::{self, Grouped};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};

/// How much is read of what one call prints, in bytes.
pub(super) const MAX_PRINTED: usize = 64 * 1024;
/// How much is kept of its standard error, in bytes; the rest is read and dropped, so that git does not wait for a
/// reader.
const MAX_STDERR: u64 = 4 * 1024;
/// All calls for one question together may take this many times as long as one call.
const LIMITS_OF_ALL_CALLS: u32 = 3;
/// Longest limit of one call. A longer setting counts as this.
const MAX_LIMIT: Duration = Duration::from_secs(60 * 60);
/// Longest text of an error that is passed on, in characters.
const MAX_REASON: usize = 200;

/// How many calls may run at once: each is a process, and a repository that hangs must not fill the machine with them.
const AT_ONCE: usize = 8;
static PERMITS: Semaphore = Semaphore::const_new(AT_ONCE);
/// How many threads may look at files at once. A thread that hangs keeps its place until its file system answers.
static THREAD_PERMITS: Semaphore = Semaphore::const_new(AT_ONCE);

/// The environment of every call, beside `PATH`. A repository can't override a variable. `HOME`, and `/dev/null` in the
/// place of configuration files, hide the user's own settings, which may name programs too.
const ENVIRONMENT: [(&str, &str); 21] = [
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    // Otherwise git would show a replacement under the hash of the replaced commit.
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    // This allows one transport, `none`, which does not exist. A repository can set `protocol.ext.allow`, which
    // overrides `protocol.allow`, but not this variable.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_SEQUENCE_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_ADVICE", "0"),
    // At an object that claims to be larger than this, git ends with an error. It would use up the machine's memory.
    ("GIT_ALLOC_LIMIT", "512m"),
];

/// The first arguments of every call. They win over the settings of a repository.
const GLOBAL_OPTIONS: [&str; 22] = [
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "core.sshCommand=false",
    "-c",
    "protocol.allow=never",
    "-c",
    "credential.helper=",
    "-c",
    "log.showSignature=false",
    "-c",
    "diff.autoRefreshIndex=false",
    "-c",
    "submodule.recurse=false",
];

/// The git of this machine: where it is, and how long one call of it may take.
#[derive(Debug, Clone)]
pub struct Git {
    /// Its name, looked up in `PATH`, or its path.
    pub program: String,
    /// How long one call may take, at most an hour. All calls for one question together take at most three times as
    /// long.
    pub limit: Duration,
}

/// Where a call runs.
#[derive(Debug, Clone)]
pub(super) struct GitPlace {
    /// Given to git as an option (`-C`): if the folder's file system hangs, git hangs, and not the start of the
    /// process.
    pub cwd: PathBuf,
    /// More variables, such as `GIT_DIR`. One without a value is removed from the environment.
    pub variables: Vec<(&'static str, Option<OsString>)>,
}

/// What one call has printed, as far as it was read, and how it ended.
#[derive(Debug)]
pub(super) struct GitAnswer {
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub end: GitEnd,
}

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum GitEnd {
    /// By itself, with this exit code.
    Exit(i32),
    /// It printed more than [`MAX_PRINTED`] and was killed.
    Cut,
    /// It took longer than its limit and was killed.
    Late,
    /// The time for all calls together was over before it began, or before it ended; then it was killed.
    OutOfTime,
    /// It did not begin, or a signal ended it; the sentence says what happened.
    Broken(String),
}

impl GitAnswer {
    /// Why there is no answer: git was late, printed too much, or ended with an error.
    pub(super) fn reason(&self, limit: Duration) -> String {
        match &self.end {
            GitEnd::Late => format!("git took longer than {} s", limit.as_secs_f32()),
            GitEnd::OutOfTime => {
                let all = limit * LIMITS_OF_ALL_CALLS;
                format!("no time was left for git: all calls together may take {} s", all.as_secs_f32())
            }
            GitEnd::Cut => format!("git printed more than {} KiB", MAX_PRINTED / 1024),
            GitEnd::Broken(reason) => reason.clone(),
            GitEnd::Exit(code) => {
                let fatal = self.stderr.lines().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
                let said = fatal.and_then(|line| line.split_once(": ")).map_or("", |(_, said)| said);
                format!("git ended with code {code}: {}", plain_line(said.as_bytes(), MAX_REASON))
            }
        }
    }
}

/// All calls for one question, which share a time at which they must be over.
#[derive(Debug, Clone)]
pub(super) struct GitCaller {
    git: Git,
    until: Instant,
}

/// How long all calls for one question may take together, if one call may take `limit`.
pub(super) fn longest(limit: Duration) -> Duration {
    limit.min(MAX_LIMIT) * LIMITS_OF_ALL_CALLS
}

impl GitCaller {
    pub(super) fn new(git: &Git) -> GitCaller {
        let git = Git { limit: git.limit.min(MAX_LIMIT), ..git.clone() };
        GitCaller { until: Instant::now() + longest(git.limit), git }
    }

    pub(super) fn limit(&self) -> Duration {
        self.git.limit
    }

    /// Runs git with these arguments as soon as one more process may run. At the end of its time tasuki kills it, with
    /// the processes that it has started.
    pub(super) async fn call<S: AsRef<OsStr>>(&self, place: &GitPlace, arguments: &[S]) -> GitAnswer {
        let mut answer = GitAnswer { stdout: Vec::new(), stderr: String::new(), end: GitEnd::OutOfTime };
        // tasuki never closes the semaphore; if it did, git would run without a permit.
        let Ok(_permit) = timeout_at(self.until, PERMITS.acquire()).await else { return answer };
        // If a permit is free at once, `timeout_at` does not look at the time.
        if Instant::now() >= self.until {
            return answer;
        }
        let its_limit = Instant::now() + self.git.limit;
        let until = self.until.min(its_limit);
        let mut command = self.command(place);
        command.args(arguments);
        let ended = timeout_at(until, self.run(command, &mut answer.stdout, &mut answer.stderr)).await;
        let too_late = if until == its_limit { GitEnd::Late } else { GitEnd::OutOfTime };
        answer.end = ended.unwrap_or(too_late);
        answer.stdout.truncate(MAX_PRINTED);
        answer
    }

    async fn run(&self, mut command: Command, stdout: &mut Vec<u8>, stderr: &mut String) -> GitEnd {
        let mut group = match Grouped::start(&mut command).await {
            Ok(group) => group,
            Err(error) => return GitEnd::Broken(self.not_started(&error)),
        };
        let child = group.child();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let read_stdout = async { if read_stdout(out, stdout).await { Ok(()) } else { Err(GitEnd::Cut) } };
        let read_stderr = async {
            *stderr = read_stderr(err).await;
            Ok(())
        };
        // Too much standard output ends the wait for standard error.
        if let Err(end) = tokio::try_join!(read_stdout, read_stderr) {
            return end;
        }
        match child.wait().await {
            Ok(status) => status.code().map_or_else(|| GitEnd::Broken("a signal ended git".to_owned()), GitEnd::Exit),
            Err(error) => GitEnd::Broken(format!("could not wait for git: {error}")),
        }
    }

    fn command(&self, place: &GitPlace) -> Command {
        let mut command = Command::new(&self.git.program);
        command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        child::die_with_us(&mut command);
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.envs(ENVIRONMENT);
        for (name, value) in &place.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.args(GLOBAL_OPTIONS).arg("-C").arg(&place.cwd);
        command
    }

    fn not_started(&self, error: &io::Error) -> String {
        if error.kind() == io::ErrorKind::NotFound {
            return "git is not installed".to_owned();
        }
        format!("could not start {}: {error}", plain_line(self.git.program.as_bytes(), MAX_REASON))
    }

    /// Runs work that looks at files in a thread of its own, because their file system may hang. The caller waits no
    /// longer than the limit, and the end of the program does not wait for the thread. None if the work takes too long,
    /// or if no thread can be started.
    pub(super) async fn in_own_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let until = self.until.min(Instant::now() + self.git.limit);
        let permit = timeout_at(until, THREAD_PERMITS.acquire()).await.ok()?;
        let work = move || {
            // This fails if the caller waits no longer.
            drop(sender.send(work()));
            drop(permit);
        };
        std::thread::Builder::new().name("git".to_owned()).spawn(work).ok()?;
        timeout_at(until, receiver).await.ok()?.ok()
    }
}

/// Reads all that is printed; false if that is more than [`MAX_PRINTED`].
async fn read_stdout(output: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> bool {
    let Some(mut output) = output else { return true };
    while into.len() <= MAX_PRINTED {
        // An error ends the output like a closed pipe.
        if matches!(output.read_buf(into).await, Ok(0) | Err(_)) {
            return true;
        }
    }
    false
}

/// The beginning of standard error. All of it is read.
async fn read_stderr(output: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut output) = output else { return String::new() };
    let mut said = Vec::new();
    // If an error ends the reading, the text before it is enough.
    let _ = (&mut output).take(MAX_STDERR).read_to_end(&mut said).await;
    let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&said).into_owned()
}
