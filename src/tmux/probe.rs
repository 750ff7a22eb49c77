//! The one place that runs a `tmux` process for a question, before there is a connection.
//!
//! It finds out whether a server runs, which life of the server it is, its version, and which control clients are in
//! our private session.

use super::Socket;
use super::owner::{self, Foreign, Unasked};
use super::version::Version;
use crate::core::pane::ServerId;
use crate::files;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(5);
/// The question for redefined commands. Users redefine a command by its full name, so this question uses `show-option`,
/// a short form of `show-options`.
const ALIASES: [&str; 4] = ["show-option", "-s", "-v", "command-alias"];
/// The question for the global value of the option `window-size`.
pub(super) const WINDOW_SIZE: &str = "show-options -g -w -v window-size";
/// Why no window may be made: while `window-size` is `manual` for all windows, making one crashes tmux (3.3 to 3.6 at
/// least).
pub(super) const MANUAL_SIZE: &str = "the tmux option window-size is manual for all windows, and tmux crashes if a \
     window is made then; set another value: tmux set-option -g window-size latest";
/// How the line about the server begins.
const HEAD: &str = "tasuki-server ";
/// The reason of [`ProbeResult::Unclear`] if the server does not answer.
pub(super) const SILENT: &str = "the tmux server does not answer";
/// The most bytes that are read of an answer.
const MAX_ANSWER: u64 = 256 * 1024;
/// The variables that a service manager gives to its service. No child of the service may inherit them.
const SERVICE_VARIABLES: [&str; 13] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
    "MAINPID",
    "MANAGERPID",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "CREDENTIALS_DIRECTORY",
    "TASUKI_SERVICE",
];

/// A control client, as the server describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ControlClient {
    /// Its process id, as the client itself sees it. If the client is in another container, the id means another
    /// process here.
    pub(super) pid: u32,
    /// Whether it has the flags with which a sidecar attaches.
    pub(super) is_sidecars: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeResult {
    Server {
        id: ServerId,
        version: Version,
        /// The control clients in our private session.
        clients: Vec<ControlClient>,
    },
    /// A server answers, but its user has redefined a command that our lines use.
    Redefined {
        command: String,
    },
    /// A server answers, but must not make a window: see [`MANUAL_SIZE`].
    ManualSize,
    NoServer {
        reason: String,
    },
    /// The process that listens there may be another user's, so it was not asked.
    Foreign(Foreign),
    /// tmux was not run: its program is not there or may not be run, or no temporary file could be made for its output.
    NotRun {
        reason: String,
    },
    Unclear {
        reason: String,
    },
}

/// A socket file as it was when no server answered on it. While the file stays the same, tasuki need not run tmux.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SocketState {
    inode: u64,
    changed: (i64, i64),
}

/// Looks at the socket file; `None` when there is none.
pub(super) fn socket_state(path: &Path) -> Option<SocketState> {
    // This follows links: a link itself stays the same when a server makes a new socket behind it.
    let meta = std::fs::metadata(path).ok()?;
    let state = SocketState { inode: meta.ino(), changed: (meta.ctime(), meta.ctime_nsec()) };
    meta.file_type().is_socket().then_some(state)
}

/// The absolute path of the socket, by tmux's own rule for names.
pub(super) fn socket_path(socket: &Socket) -> PathBuf {
    socket_path_in(socket, std::env::var_os("TMUX_TMPDIR"))
}

/// The same, for a process whose `TMUX_TMPDIR` is `tmpdir`.
pub(super) fn socket_path_in(socket: &Socket, tmpdir: Option<OsString>) -> PathBuf {
    let name = match socket {
        // If that fails, the path stays relative, and the check of its owner refuses it.
        Socket::Path(path) => return std::path::absolute(path).unwrap_or_else(|_| path.clone()),
        Socket::Name(name) => name.as_str(),
        Socket::Default => "default",
    };
    // tmux takes the first of the two that it can resolve.
    let mut bases = tmpdir.into_iter().chain(["/tmp".into()]).filter_map(|dir| std::fs::canonicalize(dir).ok());
    bases.next().unwrap_or_else(|| "/tmp".into()).join(format!("tmux-{}", nix::unistd::getuid())).join(name)
}

/// A command that runs tmux on that socket, in UTF-8, never starting a server, and outside any pane that we may run in.
pub(super) fn tmux(program: &Path, socket: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("-u").arg("-N").arg("-S").arg(socket);
    strip_environment(&mut command);
    command
}

/// Takes away the variables that would tie the child to our own pane or to our own service.
pub(super) fn strip_environment(command: &mut Command) {
    for name in SERVICE_VARIABLES.iter().chain(&["TMUX", "TMUX_PANE"]) {
        command.env_remove(name);
    }
}

pub(super) fn probe(program: &Path, socket: &Path, session: &str) -> ProbeResult {
    probe_within(program, socket, session, PATIENCE)
}

/// Asks tmux, and waits for `patience`. If tmux has not answered by then, asks its process to end, and kills it one
/// second later.
pub(super) fn probe_within(program: &Path, socket: &Path, session: &str, patience: Duration) -> ProbeResult {
    match owner::check(socket) {
        Ok(()) => {}
        Err(Unasked::Foreign(foreign)) => return ProbeResult::Foreign(foreign),
        Err(Unasked::Busy) => return ProbeResult::Unclear { reason: SILENT.to_owned() },
        Err(unasked @ Unasked::Lacking { .. }) => return ProbeResult::Unclear { reason: unasked.to_string() },
    }
    let mut command = tmux(program, socket);
    command.args(ALIASES).arg(";");
    command.args(WINDOW_SIZE.split(' ')).arg(";");
    command.args(["display-message", "-p", &format!("{HEAD}#{{pid}} #{{start_time}} #{{version}}"), ";"]);
    command.args(["list-clients", "-F", "#{client_control_mode} #{client_pid} #{client_flags} #{client_session}"]);
    match run(&mut command, patience) {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => ProbeResult::Unclear { reason: SILENT.to_owned() },
        Err(error) => {
            let has_place = error.get_ref().is_none_or(|error| !error.is::<files::NoTemporary>());
            let reason = format!("{} can't be run: {error}", program.display());
            match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if has_place => {
                    let fix = "its folder must be in the PATH with which the sidecar was started";
                    ProbeResult::NotRun { reason: format!("{reason}; {fix}") }
                }
                _ if has_place => ProbeResult::Unclear { reason },
                _ => ProbeResult::NotRun { reason },
            }
        }
        Ok(ChildOutput { ok, out, err }) => match redefined(&out) {
            Some(command) => ProbeResult::Redefined { command },
            None if is_manual(&out) => ProbeResult::ManualSize,
            None if ok => read_answer(&out, session),
            None => match read_error(&out, &err) {
                // A redefined command may fail on our arguments before tmux has answered anything.
                ProbeResult::Unclear { reason } => {
                    let answer = run(tmux(program, socket).args(ALIASES), patience);
                    let command = answer.ok().and_then(|answer| redefined(&answer.out));
                    command.map_or(ProbeResult::Unclear { reason }, |command| ProbeResult::Redefined { command })
                }
                found => found,
            },
        },
    }
}

fn read_error(out: &str, err: &str) -> ProbeResult {
    let text = if err.trim().is_empty() { out } else { err };
    let reason = text.lines().next().unwrap_or_default().chars().take(300).collect();
    // Only tmux's own words: the dynamic loader, too, says that there is no such file, while tmux is being upgraded.
    let is_none = |line: &str| {
        let unreachable = line.starts_with("error connecting to ");
        let is_gone = line.contains("(No such file") || line.contains("refused)");
        line.starts_with("no server running on ") || (unreachable && is_gone)
    };
    if text.lines().any(is_none) { ProbeResult::NoServer { reason } } else { ProbeResult::Unclear { reason } }
}

/// The commands that our lines use. Commands that make windows are not listed: users often redefine them to add
/// options, and tasuki checks their results.
const OURS: [&str; 23] = [
    "capture-pane",
    "copy-mode",
    "delete-buffer",
    "detach-client",
    "display-message",
    "if-shell",
    "kill-pane",
    "kill-session",
    "list-buffers",
    "list-clients",
    "list-panes",
    "list-sessions",
    "move-window",
    "paste-buffer",
    "refresh-client",
    "rename-session",
    "set-buffer",
    "set-environment",
    "set-option",
    "show-environment",
    "show-options",
    "switch-client",
    "unlink-window",
];

/// Whether `window-size` is `manual`, by the lines before the line about the server.
fn is_manual(out: &str) -> bool {
    out.lines().take_while(|line| !line.starts_with(HEAD)).any(|line| line == "manual")
}

/// The first of our commands that an alias redefines. Aliases are the lines `name=command` before the line about the
/// server.
fn redefined(out: &str) -> Option<String> {
    let aliases = out.lines().take_while(|line| !line.starts_with(HEAD)).filter_map(|line| line.split_once('='));
    let mut names = aliases.map(|(name, _)| name.trim().to_owned());
    names.find(|name| OURS.contains(&name.as_str()))
}

fn read_answer(out: &str, session: &str) -> ProbeResult {
    let mut lines = out.lines().skip_while(|line| !line.starts_with(HEAD));
    let head = lines.next().unwrap_or_default().trim_start_matches(HEAD);
    let head: Vec<&str> = head.splitn(3, ' ').collect();
    let [pid, start_time, version] = head[..] else { return unreadable() };
    let (Ok(pid), Ok(start_time)) = (pid.parse(), start_time.parse()) else { return unreadable() };
    let clients = lines.filter_map(|line| {
        let mut fields = line.splitn(4, ' ');
        let (control, pid, flags, name) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_sidecars = ["ignore-size", "no-output"].iter().all(|flag| flags.split(',').any(|has| has == *flag));
        let is_in_ours = control == "1" && name == session;
        if is_in_ours { Some(ControlClient { pid: pid.parse().ok()?, is_sidecars }) } else { None }
    });
    let id = ServerId { pid, start_time };
    ProbeResult::Server { id, version: Version::parse(version), clients: clients.collect() }
}

fn unreadable() -> ProbeResult {
    ProbeResult::Unclear { reason: "tmux's answer can't be read".to_owned() }
}

pub(super) struct ChildOutput {
    pub(super) ok: bool,
    pub(super) out: String,
    pub(super) err: String,
}

/// Runs a child to its end. After `patience` asks it to end, and kills it one second later. Its output goes to files
/// without a name: a process that it leaves behind could keep a pipe open and make us wait.
pub(super) fn run(command: &mut Command, patience: Duration) -> io::Result<ChildOutput> {
    let file = || files::temporary(|folder| tempfile::tempfile_in(folder));
    let (out, err) = (file()?, file()?);
    let mut child = command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?).spawn()?;
    let until = Instant::now() + patience;
    let mut asked_to_end = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until + Duration::from_secs(1) {
            child.kill()?;
            child.wait()?;
            return Err(io::ErrorKind::TimedOut.into());
        }
        if Instant::now() >= until && !asked_to_end {
            asked_to_end = true;
            let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        }
        thread::sleep(Duration::from_millis(2));
    };
    if asked_to_end {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(ChildOutput { ok: status.success(), out: read_back(out)?, err: read_back(err)? })
}

fn read_back(mut file: std::fs::File) -> io::Result<String> {
    use std::io::Seek as _;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(MAX_ANSWER).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tmux_itself_says_that_no_server_runs() {
        for (said, is_none) in [
            ("no server running on /tmp/tmux-0/default\n", true),
            ("error connecting to /tmp/tmux-0/default (No such file or directory)\n", true),
            ("error connecting to /tmp/tmux-0/default (Connection refused)\n", true),
            ("error connecting to /tmp/tmux-0/default (Permission denied)\n", false),
            (
                "tmux: error while loading shared libraries: libevent_core-2.1.so.7: cannot open shared object file: \
                 No such file or directory\n",
                false,
            ),
            ("server exited unexpectedly\n", false),
        ] {
            let found = read_error("", said);
            assert_eq!(matches!(found, ProbeResult::NoServer { .. }), is_none, "{said}");
        }
    }

    #[test]
    fn a_socket_is_where_tmux_makes_it() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().canonicalize().expect("it is there");
        symlink(&root, root.join("link")).expect("a link");
        let sockets = format!("tmux-{}", nix::unistd::getuid());
        let tmp = Path::new("/tmp").canonicalize().expect("every system has it");
        let of = |socket: &Socket, tmpdir: PathBuf| socket_path_in(socket, Some(tmpdir.into()));
        let work = Socket::Name("work".to_owned());
        assert_eq!(of(&work, root.join("link")), root.join(&sockets).join("work"));
        assert_eq!(of(&work, root.join("none")), tmp.join(&sockets).join("work"), "tmux takes the next folder");
        assert_eq!(of(&Socket::Default, PathBuf::new()), tmp.join(&sockets).join("default"));
        let here = std::env::current_dir().expect("it is there");
        assert_eq!(of(&Socket::Path("run/s".into()), root), here.join("run/s"));
        let own = here.canonicalize().expect("it is there").join("src").join(&sockets).join("default");
        assert_eq!(of(&Socket::Default, "src".into()), own, "a relative folder too");
    }

    #[test]
    fn only_control_clients_of_our_session_are_ours() {
        let out = "split-pane=split-window\ntasuki-server 77 1700000000 3.3a\n\
                   1 5 attached,ignore-size,no-output _tasuki-00\n1 8 attached _tasuki-00\n\
                   0 6 attached _tasuki-00\n1 7 attached main\n1 x attached _tasuki-00\n";
        let id = ServerId { pid: 77, start_time: 1_700_000_000 };
        let clients = [(5, true), (8, false)].map(|(pid, is_sidecars)| ControlClient { pid, is_sidecars }).to_vec();
        let expected = ProbeResult::Server { id, version: Version { major: 3, minor: 3, letter: Some('a') }, clients };
        assert_eq!(read_answer(out, "_tasuki-00"), expected);
    }

    #[test]
    fn an_alias_with_the_name_of_a_command_of_ours_is_seen() {
        let out = |alias: &str| format!("split-pane=split-window\n{alias}\ntasuki-server 7 1 3.3a\npaste-buffer=x\n");
        assert_eq!(redefined(&out("paste-buffer=display-message a=b")).as_deref(), Some("paste-buffer"));
        assert_eq!(redefined(&out("set-environment=x")).as_deref(), Some("set-environment"));
        assert_eq!(redefined(&out("p=paste-buffer")), None);
        assert_eq!(redefined("set-option=x\nwhat the alias prints\n").as_deref(), Some("set-option"));
    }

    #[test]
    fn a_child_that_hangs_is_ended() {
        let started = Instant::now();
        let result = run(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(matches!(result, Err(error) if error.kind() == io::ErrorKind::TimedOut));
        assert!(started.elapsed() < Duration::from_secs(5));
    }
}
