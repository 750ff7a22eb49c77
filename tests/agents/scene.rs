//! One scene: a real CLI in a private home, the scripted model, a private tmux server, and the sidecar.

use crate::cli::{Cli, own_hooks};
use crate::model::{Heard, Model};
use crate::stage::Stage;
use crate::stage_files::{delivery_ids, make_folder};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Output;
use std::time::{Duration, Instant};

/// The persona of all scenes.
pub(crate) const PERSONA: &str = "dev";

/// A skill that a paste would be taken for: long, of many lines, with marks that CLIs act on.
pub(crate) fn skill() -> String {
    let mut text =
        "# Skill of a developer\n\nKeep notes; say \"why\", don't guess. Ünïcode stays: 助け合い.\n\n".to_owned();
    for number in 1..=24 {
        text.push_str(&format!(
            "- Rule {number}: read `src/part_{number}.rs` before you change it; cost < $5 & 100% tested.\n"
        ));
    }
    text + "\n    indented code { stays }\n\n/not-a-command and @nobody and !nothing and # no heading\n"
}

/// How long a key is given to work, before it is pressed again.
const KEY_WORKS: Duration = Duration::from_secs(2);

/// The scene.
pub(crate) struct Scene {
    pub(crate) cli: Cli,
    pub(crate) model: Model,
    pub(crate) stage: Stage,
}

impl Scene {
    /// Everything is there and the sidecar runs.
    pub(crate) fn new(cli: Cli) -> Scene {
        Scene::with(cli, "", |_| {})
    }

    /// The same with a configuration, and with changes to what the user has in the home.
    pub(crate) fn with(cli: Cli, config: &str, change: impl FnOnce(&Scene)) -> Scene {
        Scene::of_several(&[cli], config, change)
    }

    /// The same with several CLIs in one home; agents begin with the first.
    pub(crate) fn of_several(clis: &[Cli], config: &str, change: impl FnOnce(&Scene)) -> Scene {
        let cli = clis[0];
        let scene = Scene { cli, model: Model::start(), stage: Stage::without_sidecar(config) };
        let (home, work) = (scene.home(), scene.stage.work_dir());
        let path = std::env::var("PATH").unwrap_or_default();
        let programs: String = clis.iter().map(|cli| format!("{}:", cli.programs().display())).collect();
        scene.set("PATH", &format!("{programs}{path}"));
        for (name, value) in clis.iter().flat_map(|cli| cli.furnish(&home, &work, scene.model.port)) {
            scene.set(name, &value);
        }
        let persona = scene.stage.home().join("data/personas").join(PERSONA);
        make_folder(&persona);
        fs::write(persona.join("skill.md"), skill()).expect("a skill");
        let toml = format!("profile = \"{}\"\ncwd = \"{}\"\n", cli.name(), work.display());
        fs::write(persona.join("persona.toml"), toml).expect("a persona");
        // Gemini CLI takes hooks from its settings alone.
        clis.iter().filter(|cli| **cli == Cli::Gemini).for_each(|cli| scene.install_hooks(*cli));
        change(&scene);
        scene.stage.start_sidecar();
        scene
    }

    /// The private home of the user.
    pub(crate) fn home(&self) -> PathBuf {
        PathBuf::from(std::env::var_os("HOME").expect("whoever plays a scene gives it a home"))
    }

    /// Puts tasuki's hooks into the CLI's own configuration, as its user does it.
    pub(crate) fn install_hooks(&self, cli: Cli) {
        let home = self.home().display().to_string();
        let out =
            self.stage.command(&["hooks", "install", cli.name()]).env("HOME", home).output().expect("tasuki runs");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    /// Sets a variable for all panes that are opened from now on.
    pub(crate) fn set(&self, name: &str, value: &str) {
        self.stage.tmux(&["set-environment", "-g", name, value]);
    }

    /// Runs a command of tasuki's and gives its end.
    pub(crate) fn tasuki(&self, args: &[&str]) -> Output {
        self.stage.command(args).output().expect("tasuki runs")
    }

    /// The same for a command that must succeed; gives what it printed.
    pub(crate) fn succeeds(&self, args: &[&str]) -> String {
        let out = self.tasuki(args);
        let (said, told) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.success(), "tasuki {args:?} ended with {}:\n{said}{told}\n{}", out.status, self.story());
        said.into_owned()
    }

    /// An agent that is primed and idle; gives its id.
    pub(crate) fn agent(&self) -> String {
        let request = json!({"kind": "agent_create", "persona_slug": PERSONA});
        let answer = self.stage.ask(&request);
        let agent = answer["result"]["agent_id"].as_str().map(str::to_owned);
        let agent = agent.unwrap_or_else(|| panic!("no agent: {answer}\n{}", self.story()));
        self.until_idle(&agent);
        agent
    }

    pub(crate) fn until_idle(&self, agent: &str) {
        self.until("the agent is primed and idle", || {
            let view = self.stage.agent_view(agent);
            view["primed"] == true && view["state"] == "idle"
        });
    }

    pub(crate) fn until(&self, what: &str, is_so: impl FnMut() -> bool) {
        self.stage.until(what, is_so);
    }

    pub(crate) fn pane(&self, agent: &str) -> String {
        self.stage.agent_view(agent)["pane"].as_str().expect("it has a pane").to_owned()
    }

    /// What stands on an agent's screen.
    pub(crate) fn screen(&self, agent: &str) -> String {
        self.stage.screen(&self.pane(agent))
    }

    /// Keeps what stands on an agent's screen, as the tests of screens want it, where somebody asks for that.
    pub(crate) fn keep(&self, agent: &str, name: &str) {
        let Some(folder) = std::env::var_os("TASUKI_AGENTS_SCREENS") else { return };
        // An event may come before what it tells of is drawn.
        std::thread::sleep(Duration::from_secs(1));
        let folder = PathBuf::from(folder).join(self.cli.name());
        fs::create_dir_all(&folder).expect("a folder");
        let pane = self.pane(agent);
        let row = self.stage.tmux(&["display-message", "-p", "-t", &pane, "#{cursor_y}"]);
        let row: usize = row.trim().parse().expect("a row");
        let screen = self.stage.tmux(&["capture-pane", "-e", "-p", "-t", &pane]);
        let lines = screen.lines().enumerate();
        let screen: String =
            lines.map(|(at, line)| format!("{line}{}\n", if at == row { "<cursor>" } else { "" })).collect();
        fs::write(folder.join(format!("{name}.txt")), screen.replace('\u{1b}', "\\e")).expect("written");
    }

    /// Types into an agent as its user does, and presses keys by their names.
    pub(crate) fn types(&self, agent: &str, text: &str, keys: &[&str]) {
        let pane = self.pane(agent);
        if !text.is_empty() {
            self.stage.tmux(&["send-keys", "-t", &pane, "-l", "--", text]);
            let end: String = text.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
            self.until("what was typed is on the screen", || self.stage.screen(&pane).contains(&end));
            std::thread::sleep(Duration::from_millis(300));
        }
        for key in keys {
            self.stage.tmux(&["send-keys", "-t", &pane, key]);
        }
    }

    /// The user breaks off an agent's turn. opencode wants that twice.
    pub(crate) fn breaks_off(&self, agent: &str) {
        self.types(agent, "", &["Escape"]);
        if self.cli == Cli::Opencode {
            self.until("it asks again", || self.screen(agent).contains("again to interrupt"));
            self.types(agent, "", &["Escape"]);
        }
    }

    /// Presses keys in an agent's dialog; again only if they have had time to work. `pressed` is when they were.
    pub(crate) fn presses(&self, agent: &str, keys: &[&str], pressed: &mut Option<Instant>) {
        if pressed.is_none_or(|at| at.elapsed() > KEY_WORKS) {
            self.types(agent, "", keys);
            *pressed = Some(Instant::now());
        }
    }

    /// The user says something to an agent, and it has begun to answer.
    pub(crate) fn says(&self, agent: &str, text: &str) {
        self.types(agent, text, &["Enter"]);
        self.until("the model hears the user", || self.heard(text));
    }

    /// Whether the model was told that.
    pub(crate) fn heard(&self, text: &str) -> bool {
        self.model.heard().iter().any(|heard| heard.prompts.iter().any(|prompt| prompt.contains(text)))
    }

    /// All prompts of the conversation in which a text was said.
    pub(crate) fn conversation(&self, text: &str) -> Vec<String> {
        let heard = self.model.heard();
        let fits = |heard: &&Heard| heard.prompts.iter().any(|prompt| prompt.contains(text));
        heard.iter().filter(fits).map(|heard| heard.prompts.clone()).max_by_key(Vec::len).unwrap_or_default()
    }

    /// No text of tasuki's reached the model twice: not twice in a conversation, and not in two conversations.
    pub(crate) fn nothing_came_twice(&self) {
        let mut conversations: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for heard in self.model.heard() {
            let all: Vec<String> = heard.prompts.iter().flat_map(|prompt| delivery_ids(prompt)).collect();
            let different: BTreeSet<&String> = all.iter().collect();
            assert_eq!(different.len(), all.len(), "a text came twice: {all:?}\n{}", self.story());
            for id in &all {
                conversations.entry(id.clone()).or_default().insert(heard.prompts[0].clone());
            }
        }
        let twice: Vec<_> = conversations.iter().filter(|(_, where_)| where_.len() > 1).collect();
        assert!(twice.is_empty(), "texts came into two conversations: {twice:?}\n{}", self.story());
    }

    /// What the user's own hooks have noted.
    pub(crate) fn own_hooks(&self) -> Vec<String> {
        let text = fs::read_to_string(own_hooks(&self.home())).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The user's settings, to be compared.
    pub(crate) fn settings(&self) -> Vec<(PathBuf, String)> {
        let files = self.cli.settings(&self.home());
        files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap_or_default())).collect()
    }

    /// The one error file that there must be.
    pub(crate) fn only_error(&self) -> Value {
        self.until("the operator is told", || !self.stage.errors().is_empty());
        let errors = self.stage.errors();
        assert_eq!(errors.len(), 1, "{errors:#?}\n{}", self.story());
        errors[0].clone()
    }

    /// All that is known, for whoever looks why a scene failed.
    pub(crate) fn story(&self) -> String {
        let mut story = String::new();
        for heard in self.model.heard() {
            let last = heard.prompts.last().map_or("", String::as_str).chars().take(100).collect::<String>();
            let tool = heard.tool_result.map(|text| text.chars().take(200).collect::<String>()).unwrap_or_default();
            story.push_str(&format!(
                "{:6.1} {} prompts, last {last:?} {tool:?} → {}\n",
                heard.at,
                heard.prompts.len(),
                heard.answered
            ));
        }
        for agent in self.stage.views("agents") {
            story.push_str(&format!("{agent}\n"));
            if let Some(pane) = agent["pane"].as_str() {
                story.push_str(&self.stage.screen(pane));
            }
        }
        story + &self.stage.story()
    }
}
