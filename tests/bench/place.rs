//! Where everything lies, and the programs that run there. All of it goes when the values are dropped.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tasuki::spool::Spool;

/// The program that is measured.
pub(crate) const TASUKI: &str = env!("CARGO_BIN_EXE_tasuki");
/// Nothing here is waited for longer than this.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// One temporary folder and one tmux server.
pub(crate) struct Place {
    dir: PathBuf,
    // Removed with it, unless the script that runs this has made the folder and removes it.
    _owned: Option<tempfile::TempDir>,
}

impl Place {
    /// Makes the folder and starts the server.
    pub(crate) fn new() -> Place {
        let given = std::env::var_os("TASUKI_BENCH_DIR").map(PathBuf::from);
        let owned = given.is_none().then(|| tempfile::tempdir().expect("a temporary folder"));
        let dir = given.or_else(|| owned.as_ref().map(|dir| dir.path().to_owned())).expect("one of the two");
        let place = Place { dir, _owned: owned };
        let started = place.tmux(&["new-session", "-d", "-s", "user", "-x", "120", "-y", "40", "exec cat"]).status();
        assert!(started.is_ok_and(|status| status.success()), "tmux starts");
        place
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The server's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path("tmux")
    }

    /// A tmux command for the server, silent.
    pub(crate) fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.socket()).args(["-f", "/dev/null"]).args(args);
        command.env_remove("TMUX").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// What a tmux command prints; it must succeed.
    pub(crate) fn tmux_says(&self, args: &[&str]) -> String {
        let output = self.tmux(args).stdout(Stdio::piped()).output().expect("tmux runs");
        assert!(output.status.success(), "tmux {args:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A new home with the spool's folders in it.
    pub(crate) fn home(&self, name: &str) -> PathBuf {
        let home = self.path(name);
        drop(Spool::open(&home).expect("a new home"));
        home
    }

    /// Removes a home that is not needed any more, for files cost time at the end too.
    pub(crate) fn remove(&self, home: &Path) {
        assert!(home.starts_with(&self.dir));
        fs::remove_dir_all(home).expect("removed");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.tmux(&["kill-server"]).status();
    }
}

/// A program that works on a home until it is dropped.
pub(crate) struct Worker {
    child: Child,
}

impl Worker {
    /// `tasuki run`. Returns at once.
    pub(crate) fn tasuki(place: &Place, home: &Path) -> Worker {
        Worker::of(TASUKI, place, home)
    }

    /// The same of another build of the program.
    pub(crate) fn of(program: &str, place: &Place, home: &Path) -> Worker {
        let mut command = Worker::command(program, "run", home);
        command.arg("--tmux").arg(place.socket());
        Worker::spawn(command.stdout(Stdio::null()), &home.with_extension("log"))
    }

    /// `tasuki serve` on any free port. Returns once it listens, with its address.
    pub(crate) fn serve(home: &Path) -> (Worker, String) {
        let mut command = Worker::command(TASUKI, "serve", home);
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut worker = Worker::spawn(&mut command, &home.with_extension("serve.log"));
        let mut url = String::new();
        let output = worker.child.stdout.take().expect("an output");
        BufReader::new(output).read_line(&mut url).expect("an address");
        (worker, url.trim_end().trim_start_matches("http://").trim_end_matches('/').to_owned())
    }

    fn command(program: &str, word: &str, home: &Path) -> Command {
        let mut command = Command::new(program);
        command.arg(word).arg("--home").arg(home);
        for name in ["TMUX", "TMUX_PANE", "TASUKI_HOME", "TASUKI_TMUX", "TASUKI_AGENT_ID", "TASUKI_PERSONA"] {
            command.env_remove(name);
        }
        command.env("TASUKI_LOG", "warn");
        command
    }

    /// The bare program, which is this very one under another word. Returns at once.
    pub(crate) fn bare(home: &Path) -> Worker {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(crate::bare::WORD).arg(home);
        Worker::spawn(command.stdout(Stdio::null()), &home.with_extension("log"))
    }

    /// Starts a program, whose errors go to a log. Returns at once.
    pub(crate) fn spawn(command: &mut Command, log: &Path) -> Worker {
        let log = File::create(log).expect("a log");
        let child = command.stdin(Stdio::null()).stderr(log).spawn();
        Worker { child: child.expect("the program starts") }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("process ids are positive"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = kill(self.pid(), Signal::SIGTERM);
        let until = Instant::now() + Duration::from_secs(15);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What a command of tasuki prints.
pub(crate) fn said(home: &Path, words: &[&str]) -> Value {
    said_by(TASUKI, home, words)
}

/// The same of another build of the program.
pub(crate) fn said_by(program: &str, home: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(program);
    command.arg("--home").arg(home).args(["--json", "--timeout", "1m"]).args(words).stdin(Stdio::null());
    let output = command.output().expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{words:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(printed.lines().last().unwrap_or_default())
        .or_else(|_| serde_json::from_str(&printed))
        .expect("JSON")
}

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, pause: Duration, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(pause);
    }
}
