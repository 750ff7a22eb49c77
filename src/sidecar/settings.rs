//! Makes the core's settings from the configuration, at the start and at a reload.

use super::ground;
use super::parts::Sidecar;
use crate::agents::Profiles;
use crate::config::{Config, Home};
use crate::core::prompts::Prompts;
use crate::core::rules::Rules;
use crate::core::settings::Settings;
use crate::core::text::shell_word;
use crate::core::time::Now;
use crate::runner::{Late, Tools};
use crate::tmux::Tmux;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) fn settings(
    home: &Home,
    config: &Config,
    profiles: &Profiles,
    (prompts, rules): (Prompts, Rules),
    program: &Path,
) -> Settings {
    let word = |path: &Path| shell_word(&path.display().to_string());
    Settings {
        limits: config.limits.clone(),
        on_usage_limit: config.on_usage_limit,
        starting: config.starting,
        resume_text: config.resume_text.clone(),
        notify: config.notify,
        context: config.context,
        ack: config.ack,
        escalation: config.escalation_target.clone(),
        orchestrator: config.orchestrator.clone(),
        command: format!("{} --home {}", word(program), word(home.root())),
        requests_dir: home.requests().display().to_string(),
        publish: config.publish.clone(),
        document: config.document.clone(),
        profiles: profiles.facts(),
        rules,
        prompts,
        personas_dir: home.personas().display().to_string(),
    }
}

pub(super) fn tools(
    home: &Home,
    config: Config,
    profiles: Profiles,
    (tmux, program, late): (Tmux, PathBuf, Arc<Late>),
) -> Arc<Tools> {
    let Config { notify_command, gh, facts, publish, .. } = config;
    let allow = publish.allow;
    Arc::new(Tools { tmux, profiles, home: home.clone(), notify_command, gh, facts, allow, program, late })
}

impl Sidecar {
    /// Reads configuration, profiles and prompts again. If one of them is invalid, all three stay as they were. Also
    /// looks at the rules and at the roles of personas, whatever became of the three.
    pub(super) fn reload(&mut self, now: &Now) {
        self.watchdog.reloading();
        self.read_again(now);
        self.watchdog.ready();
    }

    fn read_again(&mut self, now: &Now) {
        let read = || -> anyhow::Result<(Config, Profiles, Prompts)> {
            let config = Config::load(&self.home.config())?;
            let profiles = Profiles::load(Some(&self.home.profiles()))?;
            let prompts = ground::load_prompts(&self.home).map_err(|failed| failed.error)?;
            Ok((config, profiles, prompts))
        };
        match read() {
            Ok((config, profiles, prompts)) => {
                let rules = std::mem::take(&mut self.state.settings.rules);
                let program = &self.tools.program;
                self.state.settings = settings(&self.home, &config, &profiles, (prompts, rules), program);
                self.status_line.enabled = config.tmux_status;
                self.concerns.compare_with_start(&config);
                let Tools { tmux, program, late, .. } = &*self.tools;
                let kept = (tmux.clone(), program.clone(), Arc::clone(late));
                self.tools = tools(&self.home, config, profiles, kept);
                self.runner.set_tools(Arc::clone(&self.tools));
                self.tools.late.forget_commands();
                self.concerns.note_reload(None);
                tracing::info!("reloaded the configuration");
            }
            Err(error) => {
                let why = format!("could not reload the configuration; the previous one stays in force: {error:#}");
                tracing::error!("{why}");
                self.concerns.note_reload(Some(&why));
            }
        }
        self.look_at_rules(now);
        self.learn_roles();
        self.heartbeat(now);
    }
}
