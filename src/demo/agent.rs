//! The loop of the demo agent: one thread that waits for the terminal, for signals and for deadlines.

use super::app::App;
use super::faults::FaultSource;
use super::keys::KeyParser;
use super::terminal::{self, SignalNotice, Terminal};
use crate::exit;
use crate::files;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

/// The option of an agent that a shell has started, for the fault `in_shell`.
const IN_SHELL: &str = "--in-shell";
/// The option before the id of a session that is opened again.
const SESSION: &str = "--session";
/// If nothing follows an escape character for this long, it was the Escape key.
const ESCAPE_TIME: Duration = Duration::from_millis(50);
/// The longest sleep. It is only a safeguard: input, signals and deadlines wake the loop by themselves.
const LONGEST: Duration = Duration::from_secs(10);

/// `tasuki demo-agent`. `args` are those after the command's name; the result is the exit code.
pub fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let args: Vec<OsString> = args.collect();
    if args.iter().any(|arg| arg == "--nested") {
        super::hooks::nested();
        return exit::DONE;
    }
    if FaultSource::from_env().read().has("in_shell") && !args.iter().any(|arg| arg == IN_SHELL) {
        let why = become_a_shell();
        complain(&format!("no shell can be started: {why}"));
        return exit::REFUSED;
    }
    let mut app = App::new(Instant::now());
    if let Some(session) = args.iter().skip_while(|arg| *arg != SESSION).nth(1).and_then(|id| id.to_str()) {
        app.open_session(session);
    }
    let opened = terminal::signals().and_then(|signals| Ok((signals, Terminal::open(app.is_bracketed())?)));
    match opened {
        Ok((signals, screen)) => {
            run(&mut app, signals, &screen);
            exit::DONE
        }
        Err(why) => {
            complain(&format!("needs a terminal on its standard input ({why}); run it in a tmux pane"));
            exit::USAGE
        }
    }
}

/// Prints a message to standard error.
fn complain(why: &str) {
    let _ = writeln!(io::stderr(), "tasuki demo-agent: {why}");
}

/// Replaces this process by a shell with job control. The shell starts the agent, as a person would have done, and
/// takes commands after it. Returns only if that fails.
fn become_a_shell() -> io::Error {
    let program = files::own_program().unwrap_or_else(|_| "tasuki".into());
    let script = format!("set -m; \"$0\" demo-agent {IN_SHELL}; exec /bin/sh -i");
    std::process::Command::new("/bin/sh").arg("-c").arg(script).arg(program).exec()
}

fn run(app: &mut App, mut signals: UnixStream, screen: &Terminal) {
    let (mut parser, mut resized) = (KeyParser::default(), false);
    terminal::write(&app.paint(terminal::size(), false, Instant::now()));
    app.start();
    let reason = loop {
        let now = Instant::now();
        if app.end_starting(now) {
            screen.discard_input();
        }
        app.advance(now);
        terminal::write(&app.paint(terminal::size(), std::mem::take(&mut resized), now));
        if let Some(reason) = app.leaving() {
            break reason;
        }
        let ready = wait(&signals, sleep(app, &parser, now));
        if ready.signal {
            match next_notice(&mut signals) {
                Some(SignalNotice::Resized) => resized = true,
                Some(SignalNotice::End) | None => break "other",
            }
        }
        let keys = match ready.input {
            true => match read_input() {
                Some(bytes) => parser.feed(&bytes),
                None => break "other",
            },
            false if parser.is_waiting() => parser.give_up(),
            false => Vec::new(),
        };
        let now = Instant::now();
        keys.into_iter().for_each(|key| app.key(key, now));
    };
    terminal::write(&app.last_output());
    screen.restore();
    app.end(reason);
}

/// How long nothing will happen by itself.
fn sleep(app: &App, parser: &KeyParser, now: Instant) -> Duration {
    let due = app.next_due(now).map_or(LONGEST, |due| due.saturating_duration_since(now));
    let escape = if parser.is_waiting() { ESCAPE_TIME } else { LONGEST };
    due.min(escape).min(LONGEST)
}

struct Readiness {
    input: bool,
    signal: bool,
}

fn wait(signals: &UnixStream, time: Duration) -> Readiness {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    // Rounded up: rounded down to 0, the last fraction of a millisecond would be a busy loop.
    let millis = u16::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u16::MAX);
    if poll(&mut fds, PollTimeout::from(millis)).is_err() {
        return Readiness { input: false, signal: false };
    }
    // A hang-up counts as input: the read that follows says that the terminal is gone.
    let is_ready = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
    Readiness { input: is_ready(&fds[0]), signal: is_ready(&fds[1]) }
}

fn next_notice(signals: &mut UnixStream) -> Option<SignalNotice> {
    let mut byte = [0];
    signals.read_exact(&mut byte).ok()?;
    SignalNotice::from_byte(byte[0])
}

/// The bytes that were typed; `None` if the terminal is gone. They are not read through Rust's own buffer, because
/// `poll` does not see what waits in it.
fn read_input() -> Option<Vec<u8>> {
    let mut bytes = vec![0; 64 * 1024];
    match nix::unistd::read(io::stdin().as_fd(), &mut bytes) {
        Ok(0) => None,
        Ok(count) => {
            bytes.truncate(count);
            Some(bytes)
        }
        Err(nix::errno::Errno::EINTR | nix::errno::Errno::EAGAIN) => Some(Vec::new()),
        Err(_) => None,
    }
}
