//! As a stranger has it: the files of the package below a prefix, the program in the `PATH` and nowhere named, no
//! variable of ours, a home with blanks, inside `tmux -L work`. What the README and the guide say to type is typed.

use crate::support::package::{assets, root};
use crate::support::readme;
use crate::support::said::{err, out};
use crate::support::stage::{PATIENCE, Stage};
use crate::support::stage_files::make_folder;
use crate::support::tmux::Server;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A person with a home, a tmux server named work, and the package.
struct Stranger {
    dir: tempfile::TempDir,
    outer: Server,
    terminal: String,
}

impl Stranger {
    fn new() -> Stranger {
        let dir = tempfile::tempdir().expect("a folder");
        install(&dir.path().join("a prefix"));
        let home = dir.path().join("höme mit leer");
        fs::create_dir_all(home.join("src/app")).expect("a home");
        fs::create_dir(dir.path().join("run")).expect("a folder for tmux");
        fs::write(home.join(".tmux.conf"), configuration(dir.path())).expect("a configuration");
        let mut stranger = Stranger { dir, outer: Server::start(), terminal: String::new() };
        let shell = "exec bash --norc --noprofile";
        let app = home.join("src/app").display().to_string();
        let conf = home.join(".tmux.conf").display().to_string();
        stranger.tmux(&[
            "-f",
            &conf,
            "new-session",
            "-d",
            "-s",
            "main",
            "-x",
            "120",
            "-y",
            "40",
            "-n",
            "one",
            "-c",
            &app,
            shell,
        ]);
        stranger.tmux(&["new-window", "-d", "-t", "main:", "-n", "two", "-c", &app, shell]);
        // A real client, as everybody has one.
        let variables = stranger.variables().map(|(name, value)| format!("'{name}={value}'")).join(" ");
        let attach = format!("exec env -i {variables} TERM=screen tmux -u -L work attach -t main");
        let args = ["new-window", "-P", "-F", "#{pane_id}", "-t", "main:", "-e", "TERM=screen", &attach];
        stranger.terminal = stranger.outer.tmux(&args);
        stranger.until("a terminal is attached", || stranger.tmux(&["list-clients"]).contains(": main"));
        stranger
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("höme mit leer")
    }

    /// Where tasuki keeps what it has, unless it is told otherwise.
    fn tasuki(&self) -> PathBuf {
        self.home().join(".local/share/tasuki")
    }

    /// All that the stranger's shell knows.
    fn variables(&self) -> [(&'static str, String); 5] {
        let path = std::env::var("PATH").expect("a PATH");
        [
            ("PATH", format!("{}:{path}", self.dir.path().join("a prefix/usr/bin").display())),
            ("HOME", self.home().display().to_string()),
            ("TMUX_TMPDIR", self.dir.path().join("run").display().to_string()),
            ("LANG", "C.UTF-8".to_owned()),
            ("SHELL", "/bin/sh".to_owned()),
        ]
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.env_clear().envs(self.variables()).args(["-u", "-L", "work"]).args(args);
        let output = command.stdin(Stdio::null()).output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self, window: &str) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-300", "-t", &format!("main:{window}")])
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so() {
            assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}\n{}", self.story());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn story(&self) -> String {
        format!("{}\n---\n{}\n---\n{}", self.screen("one"), self.screen("two"), self.seen())
    }

    /// What the terminal shows.
    fn seen(&self) -> String {
        self.outer.tmux(&["capture-pane", "-p", "-t", &self.terminal])
    }

    /// Pastes a recipe into a window, as a person does.
    fn pastes(&self, window: &str, text: &str) {
        let file = self.dir.path().join("paste");
        fs::write(&file, text).expect("written");
        self.tmux(&["load-buffer", &file.display().to_string()]);
        self.tmux(&["paste-buffer", "-d", "-t", &format!("main:{window}")]);
    }

    /// The same in the second window; gives what stands there when all of it is done. No command may fail.
    fn does(&self, text: &str) -> String {
        let end = self.dir.path().join("end");
        self.tmux(&["send-keys", "-R", "-t", "main:two"]);
        self.tmux(&["clear-history", "-t", "main:two"]);
        self.pastes("two", &format!("{}\ntouch '{}'\n", text.trim_end(), end.display()));
        self.until(&format!("this is done: {text}"), || end.exists());
        fs::remove_file(&end).expect("it was there");
        let screen = self.screen("two");
        for complaint in ["tasuki: ", "error: ", "command not found", "No such file", "Traceback", "nonexistent"] {
            assert!(!screen.contains(complaint), "{complaint} after\n{text}\n{screen}");
        }
        screen
    }

    fn views(&self, of: &str) -> Vec<Value> {
        crate::support::stage_files::json_files(&self.tasuki().join("view").join(of))
    }

    fn living(&self) -> Value {
        let mut all = self.views("agents");
        all.retain(|agent| agent["ended_at"].is_null());
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    fn until_idle(&self) {
        self.until("the agent is idle", || self.living()["state"] == "idle");
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let view = crate::support::stage_files::read_json(&self.tasuki().join("view/sidecar.json"));
        if let Some(pid) = view.and_then(|view| i32::try_from(view["pid"].as_i64()?).ok()) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        self.tmux(&["kill-server"]);
    }
}

/// The package's own files and the program below a prefix.
fn install(prefix: &Path) {
    for [from, to, _] in assets() {
        let (folder, name) = from.rsplit_once('/').unwrap_or((".", &from));
        if name == "tasuki" {
            let place = prefix.join(&to);
            fs::create_dir_all(&place).expect("a folder");
            let built = Path::new(env!("CARGO_BIN_EXE_tasuki"));
            fs::hard_link(built, place.join(name))
                .or_else(|_| fs::copy(built, place.join(name)).map(|_| ()))
                .expect("installed");
        } else if folder == "packaging/tmux" {
            let place = prefix.join(&to);
            fs::create_dir_all(&place).expect("a folder");
            fs::copy(root().join(&from), place.join(name)).expect("installed");
        }
    }
}

/// Versions beside each other, and `bin/tasuki` that leads to one of them, as package managers do it.
struct Versions<'a>(&'a Stage);

impl Versions<'_> {
    fn at(&self, below: &str) -> PathBuf {
        self.0.work_dir().join("opt").join(below)
    }

    /// Installs a version and removes the one before.
    fn upgrade(&self, from: &str, to: &str) {
        make_folder(&self.at(to));
        make_folder(&self.at("bin"));
        let (built, place) = (Path::new(env!("CARGO_BIN_EXE_tasuki")), self.at(to).join("tasuki"));
        fs::hard_link(built, &place).or_else(|_| fs::copy(built, &place).map(|_| ())).expect("installed");
        let link = self.at("bin/tasuki");
        symlink(format!("../{to}/tasuki"), self.at("bin/next")).expect("a link");
        fs::rename(self.at("bin/next"), &link).expect("the link leads to the new version");
        if !from.is_empty() {
            fs::remove_dir_all(self.at(from)).expect("it was installed");
        }
    }

    /// The program as a person starts it, by its name; without a home, for `--home` may stand behind.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).arg("--home").arg(self.0.home()).stdin(Stdio::null());
        Stage::make_own(&mut command);
        let path = format!("{}:{}", self.at("bin").display(), std::env::var("PATH").expect("a PATH"));
        command.env("PATH", path).env("HOME", self.0.work_dir()).env("TASUKI_TMUX", self.0.socket());
        command.env_remove("CLAUDE_CONFIG_DIR").env_remove("XDG_CONFIG_HOME");
        command
    }

    fn prints(&self, program: &str, args: &[&str]) -> String {
        let output = self.command(program, args).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", err(&output));
        out(&output)
    }

    fn start_sidecar(&self) {
        let mut command = self.command("tasuki", &["run"]);
        self.0.adopt(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
        self.0.until_beating();
    }

    fn hooks_check(&self, program: &str) -> Value {
        let output = self.command(program, &["doctor", "--json"]).output().expect("it runs");
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let checks = found["checks"].as_array().expect("checks");
        checks.iter().find(|check| check["id"] == "hooks.claude").expect("a check").clone()
    }
}

/// The guide's lines for `tmux.conf`, with the one for the package in place of that for tpm.
fn configuration(dir: &Path) -> String {
    let block = readme::blocks("tmux", "").remove(0);
    let (tpm, own): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| line.contains("@plugin"));
    assert_eq!(tpm.len(), 1, "{block}");
    let plugin = dir.join("a prefix/usr/share/tasuki/tmux/tasuki.tmux");
    format!("{}\nset -g status-interval 1\nrun-shell \"'{}'\"\n", own.join("\n"), plugin.display())
}

/// A recipe of the README or the guide, by its section or chapter and its first words.
fn recipe(section: &str, begins: &str) -> String {
    let found = readme::blocks(section, "sh").into_iter().find(|block| block.starts_with(begins));
    found.unwrap_or_else(|| panic!("no recipe in {section} begins with {begins}"))
}

#[test]
fn what_the_readme_says_is_typed_in_a_home_with_blanks_and_no_variable() {
    let stranger = Stranger::new();
    // The folder for profiles of one's own, before tasuki has ever run.
    stranger.does(&recipe("profiles", "(umask 077"));
    stranger.pastes("one", "tasuki run\n");
    stranger.until("it is warned of the other server", || stranger.screen("one").contains("a different tmux server"));
    stranger.until("the sidecar beats", || stranger.tasuki().join("view/sidecar.json").exists());
    stranger.tmux(&["send-keys", "-t", "main:one", "C-c"]);
    stranger.pastes("one", "tasuki run --tmux work\n");
    stranger.until("it works in this server", || stranger.screen("one").contains("connected to tmux"));
    let screen = stranger.does(&recipe("Use it", "tasuki persona new kai"));
    for part in ["delivered", "kai", "writing", "done", "No errors."] {
        assert!(screen.contains(part), "{part} in\n{screen}");
    }
    stranger.until_idle();
    // A dashboard's author has no variable of ours either.
    let screen = stranger.does(&recipe("spool", "# ask ID JSON"));
    assert!(screen.contains("\"verdict\":\"delivered\""), "{screen}");
    stranger.until_idle();
    if readme::has_python() {
        let program = readme::blocks("spool", "python").remove(0);
        fs::write(stranger.home().join("src/app/watch.py"), program).expect("written");
        let screen = stranger.does("python3 watch.py");
        assert!(screen.contains("done /") && screen.contains(" briefing"), "{screen}");
        stranger.until_idle();
    }
    work(&stranger);
    packaging(&stranger);
    stranger.does("tasuki service install --dry-run >/dev/null\ntasuki hooks show claude >/dev/null");
    let screen = stranger
        .does("tasuki hooks install claude --dry-run\ntasuki hooks install claude\ntasuki hooks uninstall claude");
    assert!(screen.contains(".claude/settings.json"), "{screen}");
}

/// The recipe for work items; the id that it names stands for one that was printed.
fn work(stranger: &Stranger) {
    let recipe = recipe("work-items", "tasuki work create");
    let (first, rest) = recipe.split_once('\n').expect("lines");
    stranger.does(first);
    let item = stranger.views("work").remove(0);
    let id = item["item_id"].as_str().expect("an id");
    let screen = stranger.does(&rest.replace("5f2a", &id[..8]));
    assert!(screen.contains("done"), "{screen}");
    assert_eq!(stranger.views("work")[0]["status"], "done");
}

/// What a package runs when it is built, as the guide to packaging says.
fn packaging(stranger: &Stranger) {
    let guide = fs::read_to_string(root().join("packaging/README.md")).expect("a guide");
    let lines: Vec<&str> = guide.lines().filter_map(|line| line.strip_prefix("    tasuki ")).collect();
    assert!(lines.len() >= 4, "{guide}");
    stranger.does(&lines.iter().map(|line| format!("tasuki {line}\n")).collect::<String>());
    for made in ["tasuki.bash", "_tasuki", "tasuki.fish", "man/man1/tasuki.1", "man/man1/tasuki-config.5"] {
        let size = fs::metadata(stranger.home().join("src/app").join(made)).map(|meta| meta.len()).unwrap_or_default();
        assert!(size > 40, "{made} was not made");
    }
}

impl Stranger {
    fn presses(&self, keys: &[&str]) {
        self.outer.tmux(&[&["send-keys", "-t", &self.terminal], keys].concat());
    }

    /// The terminal's last line, which is tmux's own.
    fn status_line(&self) -> String {
        self.seen().lines().last().unwrap_or_default().to_owned()
    }
}

#[test]
fn every_key_and_the_segment_of_the_plugin_work_as_the_readme_says() {
    let stranger = Stranger::new();
    stranger.pastes("one", "tasuki run --tmux work\n");
    stranger.until("it works in this server", || stranger.screen("one").contains("connected to tmux"));
    stranger.does("tasuki persona new kai --profile demo\ntasuki agent create kai");
    stranger.until_idle();
    stranger.presses(&["C-b", "T"]);
    stranger
        .until("the live screen is there", || stranger.seen().contains("Agents") && stranger.seen().contains("kai"));
    stranger.presses(&["q"]);
    // With its frame: what is pressed before goes to the popup, whose program may have ended already.
    stranger.until("it is gone", || !stranger.seen().contains(['┌', '└']));
    let clients = stranger.tmux(&["list-clients", "-F", "#{client_name} #{session_name}"]);
    let client = clients.lines().find_map(|line| line.strip_suffix(" main")).expect("our terminal").to_owned();
    stranger.tmux(&["switch-client", "-c", &client, "-t", "tasuki-kai"]);
    stranger.presses(&["C-b", "H"]);
    stranger.until("it is asked for a reason", || stranger.seen().contains("leave empty to abort"));
    stranger.outer.tmux(&["send-keys", "-t", &stranger.terminal, "-l", "the key's own; $(reason) #{x}"]);
    stranger.presses(&["Enter"]);
    stranger.until("the segment tells of the agent", || stranger.status_line().contains(" agent"));
    stranger.until("its result is shown", || stranger.seen().contains("Press Enter to close."));
    stranger.presses(&["Enter"]);
    stranger.until("it is done", || stranger.views("handoffs").iter().any(|handoff| handoff["step"] == "done"));
    assert_eq!(stranger.views("handoffs")[0]["reason"], "the key's own; $(reason) #{x}");
}

#[test]
fn an_upgrade_behind_a_link_leaves_agents_hooks_and_the_service_file_as_good_as_they_were() {
    let stage = Stage::without_sidecar("");
    let versions = Versions(&stage);
    versions.upgrade("", "v1");
    versions.start_sidecar();
    let agent = stage.agent("kai");
    versions.prints("tasuki", &["hooks", "install", "claude"]);
    let settings = fs::read_to_string(stage.work_dir().join(".claude/settings.json")).expect("installed");
    let unit = versions.prints("tasuki", &["service", "install", "--dry-run", "--manager", "systemd"]);
    let (link, v1) = (versions.at("bin/tasuki").display().to_string(), versions.at("v1").display().to_string());
    for text in [&settings, &unit] {
        assert!(text.contains(&link) && !text.contains(&v1), "{text}");
    }
    // By whichever path it is asked, the doctor takes the hooks for what they are.
    for program in ["tasuki", &versions.at("v1/tasuki").display().to_string()] {
        assert_eq!(versions.hooks_check(program)["status"], "ok", "{:#}", versions.hooks_check(program));
    }
    versions.upgrade("v1", "v2");
    stage.end_sidecar(Signal::SIGTERM);
    versions.start_sidecar();
    assert_eq!(versions.hooks_check("tasuki")["status"], "ok", "{:#}", versions.hooks_check("tasuki"));
    // The agent runs its hooks by the path that it was started with.
    stage.until_idle(&agent);
    stage.check_done(&stage.until_step(&stage.hand_off(&agent), "done"));
}
