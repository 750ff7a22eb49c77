//! A private tmux server for one test, a composer program that runs in its panes, and the reader of that program's
//! screen.

use super::processes::ends_soon;
pub(crate) use super::processes::is_running;
use super::viewer::Viewer;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tasuki::core::id::DeliveryId;
use tasuki::core::pane::{Activity, ComposerContent, PaneRef, ScreenReading};
use tasuki::tmux::{Capture, Input, ScreenReader, Socket, SocketOptions, Tmux, TmuxNotice, TypePlan};
use tokio::sync::mpsc;

/// The tag of the tests' home, as it stands in names of tmux options.
pub(crate) const TAG: &str = "00c0ffee";
const DEADLINE: Duration = Duration::from_secs(20);

/// A server on a socket of its own. Dropping this ends the server and removes its folder.
pub(crate) struct Server {
    pub(crate) dir: tempfile::TempDir,
}

fn options(socket: &Path, home_tag: &str) -> SocketOptions {
    let socket = Socket::Path(socket.to_owned());
    SocketOptions { socket, home_tag: home_tag.into(), program: "tmux".into(), start_server: false }
}

/// A home's adapter, connected to a server. If that fails, the panic says what the connection reported instead.
pub(crate) async fn connect_home(socket: &Path, home_tag: &str, within: Duration) -> Tmux {
    let (notices, mut inbox) = mpsc::channel(64);
    let tmux = Tmux::start(options(socket, home_tag), notices).expect("a thread");
    let mut reported = Vec::new();
    let connected = async {
        while let Some(notice) = inbox.recv().await {
            let is_connected = matches!(notice, TmuxNotice::Connected(_));
            reported.push(notice);
            if is_connected {
                return;
            }
        }
        panic!("the connection's thread has ended: {reported:?}");
    };
    let in_time = tokio::time::timeout(within, connected).await;
    assert!(in_time.is_ok(), "not connected in time: {reported:?}");
    tmux
}

impl Server {
    /// A server with one session `main` of 100 columns and 30 rows.
    pub(crate) fn start() -> Server {
        let dir = tempfile::tempdir().expect("a folder");
        let server = Server { dir };
        server.begin();
        server
    }

    /// Starts the server, also after it has ended.
    pub(crate) fn begin(&self) {
        let out =
            self.command(&["-f", "/dev/null", "new-session", "-d", "-s", "main", "-x", "100", "-y", "30", "exec cat"]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    fn command(&self, args: &[&str]) -> std::process::Output {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.socket()).args(args).env_remove("TMUX").env_remove("TMUX_PANE");
        command.output().expect("tmux runs")
    }

    /// A client that shows a pane's window, as a person's terminal does, until it is dropped.
    pub(crate) fn shown(&self, target: &str) -> Viewer {
        self.tmux(&["select-window", "-t", target]);
        let viewer = Viewer::attach(&self.socket(), "main");
        let deadline = Instant::now() + DEADLINE;
        while self.tmux(&["display-message", "-p", "-t", target, "#{window_active_clients}"]) != "1" {
            assert!(Instant::now() < deadline, "no client shows {target}");
            std::thread::sleep(Duration::from_millis(10));
        }
        viewer
    }

    /// Runs a command and returns what it prints.
    pub(crate) fn tmux(&self, args: &[&str]) -> String {
        let out = self.command(args);
        assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8_lossy(&out.stdout).trim_end().to_owned()
    }

    /// Runs a command that may fail.
    pub(crate) fn try_tmux(&self, args: &[&str]) -> Option<String> {
        let out = self.command(args);
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim_end().to_owned())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.tmux(&["display-message", "-p", "#{pid}"]).parse().expect("a number")
    }

    pub(crate) fn options(&self) -> SocketOptions {
        options(&self.socket(), TAG)
    }

    /// A connected adapter.
    pub(crate) async fn connect(&self) -> Tmux {
        connect_home(&self.socket(), TAG, DEADLINE).await
    }

    /// Runs the composer program in a new window.
    pub(crate) fn composer(&self, extra: &[(&str, &str)]) -> ComposerPane {
        self.composer_behind(&[], extra)
    }

    /// Runs the composer program from a shell with job control, as a person does. When it has ended, the next program
    /// takes over the pane and notes its input: [`ComposerPane::strays`].
    pub(crate) fn composer_in_shell(&self, extra: &[(&str, &str)]) -> ComposerPane {
        let script = "set -m; \"$@\"; stty raw -echo; exec cat >\"$TASUKI_TEST_COMPOSER/strays\"";
        self.composer_behind(&["sh", "-c", script, "sh"], extra)
    }

    fn composer_behind(&self, before: &[&str], extra: &[(&str, &str)]) -> ComposerPane {
        let dir = tempfile::tempdir_in(self.dir.path()).expect("a folder");
        let exe = std::env::current_exe().expect("our own path");
        let mut args: Vec<String> =
            ["new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "main:"].map(str::to_owned).into();
        let at = ("TASUKI_TEST_COMPOSER", dir.path().to_str().expect("plain"));
        for (name, value) in extra.iter().chain([&at]) {
            args.extend(["-e".to_owned(), format!("{name}={value}")]);
        }
        let program = [exe.to_str().expect("plain"), "support::tmux::composer_program", "--exact", "--nocapture"];
        args.extend(["--"].iter().chain(before).chain(&program).map(|word| (*word).to_owned()));
        let id = self.tmux(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let id = id.trim_start_matches('%').parse().expect("a number");
        wait_until("the composer runs", || dir.path().join("up").exists());
        ComposerPane { dir, id }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(said) = self.try_tmux(&["display-message", "-p", "#{pid}"]) else { return };
        let _ = self.command(&["kill-server"]);
        // Hooks that the test has set may have printed more lines.
        let Some(Ok(pid)) = said.lines().next().map(str::parse) else { return };
        ends_soon(pid);
    }
}

/// Polls until a condition is true, for at most 20 s.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A pane with the composer program.
pub(crate) struct ComposerPane {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) id: u32,
}

impl ComposerPane {
    /// Server, number and process of the pane.
    pub(crate) async fn pane(&self, tmux: &Tmux) -> PaneRef {
        tmux.facts(self.id).await.expect("tmux answers").expect("the pane is there").pane
    }

    /// All prompts that were submitted, in order.
    pub(crate) fn submits(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("submits")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a string")).collect()
    }

    /// All bytes that the program has read.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.dir.path().join("bytes")).unwrap_or_default()
    }

    /// The number of bytes of each read.
    pub(crate) fn reads(&self) -> Vec<usize> {
        let text = fs::read_to_string(self.dir.path().join("reads")).unwrap_or_default();
        text.lines().map(|line| line.parse().expect("a number")).collect()
    }

    /// The program's own process.
    pub(crate) fn pid(&self) -> u32 {
        fs::read_to_string(self.dir.path().join("pid")).expect("it runs").parse().expect("a number")
    }

    /// Kills the program that was started by [`Server::composer_in_shell`], and waits until the next program has the
    /// pane.
    pub(crate) fn quit(&self, server: &Server) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.pid()).expect("small"));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("our own program");
        self.wait_for_successor(server);
    }

    /// Waits until the composer program has ended and the next program has the pane.
    pub(crate) fn wait_for_successor(&self, server: &Server) {
        let pane = format!("%{}", self.id);
        let front = || server.tmux(&["display-message", "-p", "-t", &pane, "#{pane_current_command}"]);
        wait_until("the next program is in front", || front() == "cat" && !is_running(self.pid()));
    }

    /// All bytes that the next program has read. It must be there already.
    pub(crate) fn strays(&self) -> Vec<u8> {
        fs::read(self.dir.path().join("strays")).expect("the next program is there")
    }

    /// Sets the mode that the program shows: `ready`, `busy`, `dialog` or another word.
    pub(crate) fn set_mode(&self, mode: &str) {
        fs::write(self.dir.path().join("mode.tmp"), mode).expect("written");
        fs::rename(self.dir.path().join("mode.tmp"), self.dir.path().join("mode")).expect("renamed");
    }

    /// Waits until the screen shows this activity.
    pub(crate) async fn shows(&self, tmux: &Tmux, wanted: Activity) {
        let pane = self.pane(tmux).await;
        let until = Instant::now() + DEADLINE;
        loop {
            let capture = tmux.capture(&pane).await.expect("a screen");
            if TestScreenReader.look(&capture).activity == wanted {
                return;
            }
            assert!(Instant::now() < until, "the screen never showed {wanted:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A plan to type a text, with times that suit a test.
pub(crate) fn plan(pane: PaneRef, id: u64, text: &str) -> TypePlan {
    TypePlan {
        pane,
        delivery: DeliveryId::from_bits(id),
        text: text.to_owned(),
        input: Input::Bracketed,
        raw_bytes: None,
        foreground: None,
        enter_delay: Duration::from_millis(20),
        enter_retry_after: Duration::from_secs(2),
        enter_retries: 1,
        hold: Duration::from_millis(800),
        seen_within: Duration::from_secs(10),
        resumed: false,
        allow_busy: false,
        screen_proof: false,
        seen_tail: text.lines().last().unwrap_or_default().to_owned(),
    }
}

/// Reads the composer program's screen.
pub(crate) struct TestScreenReader;

impl ScreenReader for TestScreenReader {
    fn look(&self, capture: &Capture) -> ScreenReading {
        let screen = capture.lines.join("\n");
        let activity = match screen.lines().find_map(|line| line.strip_prefix("MODE ")).map(str::trim) {
            Some("ready") => Activity::Ready,
            Some("busy") => Activity::Busy,
            Some("dialog") => Activity::Blocked,
            _ => Activity::Unknown,
        };
        let inner = screen.split_once('⟦').and_then(|(_, rest)| rest.rsplit_once('⟧')).map(|(inner, _)| inner.trim());
        let composer = match inner {
            None => ComposerContent::Unreadable,
            Some("") => ComposerContent::Empty,
            Some(text) => match text.strip_prefix("(pasted ").and_then(|rest| rest.strip_suffix(" lines)")) {
                Some(size) => ComposerContent::Collapsed { size: size.parse().ok() },
                None => match text.strip_prefix('⋮') {
                    Some(end) => ComposerContent::Tail(end.to_owned()),
                    None => ComposerContent::Text(text.to_owned()),
                },
            },
        };
        ScreenReading { activity, composer }
    }
}

/// Not a test, but the composer program that runs in panes: tmux starts this test binary again, with a folder in the
/// variable `TASUKI_TEST_COMPOSER`. The program uses the raw mode and bracketed paste. Enter submits, `/exit` ends it.
#[test]
fn composer_program() {
    let Some(dir) = std::env::var_os("TASUKI_TEST_COMPOSER").map(PathBuf::from) else { return };
    let flag = |name: &str| std::env::var(name).ok();
    let number = |name: &str| flag(name).and_then(|value| value.parse().ok()).unwrap_or(0);
    let mut composer = Program {
        draft: Vec::new(),
        rest: Vec::new(),
        pasting: false,
        commands: flag("TASUKI_TEST_VIM").is_some(),
        collapsed: None,
        swallow: number("TASUKI_TEST_SWALLOW"),
        slow_enter: Duration::from_millis(number("TASUKI_TEST_SLOW_ENTER")),
        taken: None,
        collapses: flag("TASUKI_TEST_COLLAPSE").is_some(),
        delay: Duration::from_millis(number("TASUKI_TEST_DELAY")),
        dir,
    };
    if flag("TASUKI_TEST_COOKED").is_none() {
        let stdin = std::io::stdin();
        let mut modes = nix::sys::termios::tcgetattr(&stdin).expect("a terminal");
        nix::sys::termios::cfmakeraw(&mut modes);
        modes.control_chars[nix::sys::termios::SpecialCharacterIndices::VMIN as usize] = 0;
        modes.control_chars[nix::sys::termios::SpecialCharacterIndices::VTIME as usize] = 1;
        nix::sys::termios::tcsetattr(&stdin, nix::sys::termios::SetArg::TCSANOW, &modes).expect("raw");
    }
    fs::write(composer.dir.join("pid"), std::process::id().to_string()).expect("written");
    composer.run();
}

struct Program {
    dir: PathBuf,
    draft: Vec<u8>,
    rest: Vec<u8>,
    pasting: bool,
    /// Whether keys are commands until an `i` comes, as in vim's NORMAL mode.
    commands: bool,
    collapsed: Option<usize>,
    swallow: u64,
    /// How long the text stays in the composer after Enter. Until then, further Enters do nothing.
    slow_enter: Duration,
    taken: Option<Instant>,
    collapses: bool,
    delay: Duration,
}

const PASTE: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

impl Program {
    fn run(&mut self) {
        print!("\x1b[?2004h");
        let mut shown = String::new();
        let mut buffer = [0; 4096];
        let mut stdin = std::io::stdin().lock();
        loop {
            if self.taken.is_some_and(|taken| taken.elapsed() >= self.slow_enter) {
                self.submit();
            }
            let screen = self.screen();
            if screen != shown {
                let mut out = std::io::stdout().lock();
                out.write_all(screen.as_bytes()).and_then(|()| out.flush()).expect("a terminal");
                shown = screen;
                fs::write(self.dir.join("up"), b"").expect("written");
            }
            let Ok(count) = stdin.read(&mut buffer) else { std::process::exit(0) };
            if count > 0 {
                std::thread::sleep(self.delay);
                append(&self.dir.join("bytes"), &buffer[..count]);
                append(&self.dir.join("reads"), format!("{count}\n").as_bytes());
                self.rest.extend_from_slice(&buffer[..count]);
                self.digest();
            }
        }
    }

    fn screen(&self) -> String {
        let mode = fs::read_to_string(self.dir.join("mode")).unwrap_or_else(|_| "ready".into());
        let draft = String::from_utf8_lossy(&self.draft).into_owned();
        let lines: Vec<&str> = draft.split('\n').collect();
        let last = lines[lines.len().saturating_sub(12)..].join("\n");
        let tail: String = last.chars().skip(last.chars().count().saturating_sub(900)).collect();
        let cut = if tail.len() < draft.len() { "⋮" } else { "" };
        let shown = self.collapsed.map_or(cut.to_owned() + &tail, |lines| format!("(pasted {lines} lines)"));
        format!("\x1b[H\x1b[2JMODE {mode}\r\n⟦{}⟧", shown.replace('\n', "\r\n"))
    }

    fn digest(&mut self) {
        loop {
            if self.rest.starts_with(if self.pasting { PASTE_END } else { PASTE }) {
                self.rest.drain(..PASTE.len());
                self.pasting = !self.pasting;
                let lines = self.draft.split(|byte| *byte == b'\n').count();
                self.collapsed = (!self.pasting && self.collapses && lines > 3).then_some(lines);
                continue;
            }
            let Some(first) = self.rest.first().copied() else { return };
            if first == 0x1b && self.rest.len() < PASTE.len() {
                return;
            }
            self.rest.remove(0);
            if first == b'\r' && !self.pasting {
                self.enter();
            } else if self.commands && !self.pasting {
                self.commands = first != b'i';
            } else {
                self.draft.push(first);
            }
        }
    }

    fn enter(&mut self) {
        if self.swallow > 0 {
            self.swallow -= 1;
        } else if !self.draft.is_empty() || self.slow_enter.is_zero() {
            self.taken.get_or_insert_with(Instant::now);
            if self.slow_enter.is_zero() {
                self.submit();
            }
        }
    }

    fn submit(&mut self) {
        self.taken = None;
        let text = String::from_utf8_lossy(&std::mem::take(&mut self.draft)).into_owned();
        self.collapsed = None;
        let line = serde_json::to_string(&text).expect("a string") + "\n";
        append(&self.dir.join("submits"), line.as_bytes());
        if text == "/exit" {
            std::process::exit(0);
        }
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let file = fs::OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| file.write_all(bytes)).expect("written");
}
