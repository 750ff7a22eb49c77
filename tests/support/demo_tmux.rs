//! A private tmux server with one demo agent, and access to the agent's home, recorder and screen.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tasuki::agents::Profiles;
use tasuki::core::pane::{Activity, ComposerContent, ScreenReading};

/// How long a test waits for anything: a loaded machine may be slow.
const PATIENCE: Duration = Duration::from_secs(30);
/// The agent's id in every test.
pub(crate) const AGENT: &str = "6f1c3a52-8f0e-4d5b-9a57-2f64c1f6f0aa";

/// One agent in one pane. Dropping this ends the server.
pub(crate) struct DemoTmux {
    dir: tempfile::TempDir,
    profiles: Profiles,
}

impl DemoTmux {
    /// An agent with these faults in a pane of 80 × 24; turns are short unless the faults say otherwise.
    pub(crate) fn start(faults: &str) -> Self {
        Self::sized(faults, 80, 24)
    }

    /// The same in a pane of another size.
    pub(crate) fn sized(faults: &str, width: u16, height: u16) -> Self {
        let dir = tempfile::tempdir().expect("a folder for the test");
        for folder in ["home/spool/tmp", "home/spool/events", "home/handoffs"] {
            std::fs::create_dir_all(dir.path().join(folder)).expect("folders");
        }
        let demo = DemoTmux { dir, profiles: Profiles::load(None).expect("built in") };
        let faults = if faults.contains("slow_turn") { faults.to_owned() } else { format!("slow_turn=200,{faults}") };
        let mut args = vec!["new-session".into(), "-d".into()];
        args.extend(["-x".into(), width.to_string(), "-y".into(), height.to_string()]);
        for (name, value) in [
            ("TASUKI_HOME", demo.home().display().to_string()),
            ("TASUKI_AGENT_ID", AGENT.to_owned()),
            ("TASUKI_PERSONA", "dev".to_owned()),
            ("TASUKI_DEMO_FAULTS", faults),
            ("TASUKI_DEMO_FAULTS_FILE", demo.faults_file().display().to_string()),
            ("TASUKI_DEMO_DIR", demo.dir.path().join("transcripts").display().to_string()),
            ("TASUKI_DEMO_LOG", demo.dir.path().join("log").display().to_string()),
        ] {
            args.extend(["-e".into(), format!("{name}={value}")]);
        }
        args.extend(["--".into(), env!("CARGO_BIN_EXE_tasuki").into(), "demo-agent".into()]);
        demo.tmux(&args);
        demo
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// The file from which the agent reads faults while it runs.
    pub(crate) fn faults_file(&self) -> PathBuf {
        self.dir.path().join("faults")
    }

    /// The path to which the agent is asked to write its document.
    pub(crate) fn document(&self) -> PathBuf {
        self.home().join("handoffs/20261121T200000-6f1c3a52.md")
    }

    /// Runs one tmux command and returns its output, whether it succeeds or not.
    pub(crate) fn tmux<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let out = self.command().args(args).stdin(Stdio::null()).output().expect("tmux runs");
        String::from_utf8_lossy(&out.stdout).into_owned()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.dir.path().join("socket")).args(["-f", "/dev/null"]);
        command.env_remove("TMUX").env_remove("TMUX_PANE");
        command
    }

    /// Pastes a text. With `bracketed`, as a bracketed paste, as from a user's terminal; otherwise as if it were typed.
    pub(crate) fn paste(&self, text: &str, bracketed: bool) {
        let mut child =
            self.command().args(["load-buffer", "-b", "t", "-"]).stdin(Stdio::piped()).spawn().expect("tmux runs");
        child.stdin.take().expect("piped").write_all(text.as_bytes()).expect("tmux reads");
        assert!(child.wait().expect("tmux ends").success());
        let mut args = vec!["paste-buffer", "-d", "-r", "-b", "t"];
        args.extend(bracketed.then_some("-p"));
        self.tmux(&args);
    }

    pub(crate) fn enter(&self) {
        self.paste("\r", false);
    }

    /// Types a text when the agent is ready, and submits it once it is in the composer.
    pub(crate) fn send(&self, text: &str) {
        self.ready();
        self.paste(text, true);
        self.until("the text is in the composer", || {
            !matches!(self.view().composer, ComposerContent::Empty | ComposerContent::Unreadable)
        });
        self.enter();
    }

    /// Types one of the agent's own commands, such as its exit, and submits it.
    pub(crate) fn command_line(&self, text: &str) {
        self.until("there is a composer", || self.view().composer == ComposerContent::Empty);
        self.paste(text, false);
        self.until("the command is seen", || self.view().composer == ComposerContent::Text(text.to_owned()));
        self.enter();
    }

    /// Asks for a handoff document.
    pub(crate) fn instruct(&self) {
        self.send(&format!("Please write a handoff document to `{}` now.", self.document().display()));
    }

    /// The screen with its escape sequences.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// The profile's reading of the screen.
    pub(crate) fn view(&self) -> ScreenReading {
        let format = "#{pane_height} #{cursor_x} #{cursor_y}";
        let numbers = self.tmux(&["display-message", "-p", format]);
        let numbers: Vec<u16> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [height, x, y] = numbers[..] else {
            return ScreenReading { activity: Activity::Unknown, composer: ComposerContent::Unreadable };
        };
        self.profiles.get("demo").expect("built in").read_screen(&self.screen(), height, (x, y))
    }

    /// Waits until the agent is ready with an empty composer.
    pub(crate) fn ready(&self) {
        self.until("the agent is ready", || {
            self.view() == ScreenReading { activity: Activity::Ready, composer: ComposerContent::Empty }
        });
    }

    /// All events so far, in order.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.event_files().iter().map(|path| read_json(path)).collect()
    }

    /// The files of all events so far, in order.
    pub(crate) fn event_files(&self) -> Vec<PathBuf> {
        let folder = std::fs::read_dir(self.home().join("spool/events")).expect("the events' folder");
        let mut files: Vec<PathBuf> = folder.map(|entry| entry.expect("an entry").path()).collect();
        files.sort();
        files
    }

    /// The names of all events so far, in order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["event"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits until exactly these events have come, in this order.
    pub(crate) fn expect(&self, kinds: &[&str]) -> Vec<Value> {
        self.until(&format!("events are {kinds:?}"), || self.kinds() == kinds);
        self.events()
    }

    /// The lines of the recorder.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect()
    }

    /// The prompts that the agent was given.
    pub(crate) fn prompts(&self) -> Vec<String> {
        self.log().iter().filter_map(|line| line["text"].as_str().map(str::to_owned)).collect()
    }

    /// Whether the recorder holds an event of that name.
    pub(crate) fn logged(&self, name: &str) -> bool {
        self.log().iter().any(|line| line["event"] == name)
    }

    /// The agent's process id, as it told the recorder.
    pub(crate) fn pid(&self) -> i32 {
        let pid = self.log().iter().find_map(|line| line["pid"].as_i64()).expect("the agent has started");
        i32::try_from(pid).expect("a process id")
    }

    /// Whether the agent's process is there.
    pub(crate) fn is_alive(&self) -> bool {
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.pid()), None).is_ok()
    }

    /// Polls until a condition is true. If it does not become true in time, the panic shows screen, events and
    /// recorder.
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            if Instant::now() > deadline {
                panic!(
                    "not within {PATIENCE:?}: {what}\nscreen:\n{}\nevents: {:?}\nlog: {:?}",
                    self.screen(),
                    self.kinds(),
                    self.log()
                );
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for DemoTmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("an event file")).expect("JSON")
}
