//! The scenes of the demo: one agent, some work, one handoff, and the document and lineage at the end.

use super::stage::StageFolder;
use crate::cli::error::CliError;
use crate::cli::follow::Follower;
use crate::cli::output::Tone;
use crate::cli::view::ViewFile;
use crate::cli::{CliSession, lineage, view, wait};
use crate::contract::reply::{AgentReply, HandoffReply};
use crate::contract::{AgentState, DeliveryView, HandoffView, Verdict};
use crate::core::id::Slug;
use crate::core::text::sanitise;
use crate::personas::{self, PersonaFile};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};

const SLUG: &str = "kai";
const WORK: [(&str, &str); 2] = [
    (
        "You give the agent some work.",
        "Find out why the checkout test fails once in ten runs, and write down what you learn.",
    ),
    (
        "You give it more work.",
        "It is the clock: the test compares local time with UTC. Fix it in src/checkout.rs and keep the old API.",
    ),
];
const REASON: &str = "the context window is nearly full";

/// How long to wait for an answer, and for the agent to become idle.
const IDLE_LIMIT: Duration = Duration::from_secs(20);

const HANDOFF_LIMIT: Duration = Duration::from_secs(60);

/// One run of the demo, and how to notice that it must stop.
pub(super) struct Play<'a> {
    pub(super) session: &'a CliSession,
    pub(super) place: &'a StageFolder,
    pub(super) stop: &'a dyn Fn() -> bool,
}

impl Play<'_> {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let agent = self.cast()?;
        for (scene, text) in WORK {
            self.send(&agent, scene, text)?;
        }
        let handoff = self.hand_off(&agent)?;
        self.document(&handoff)?;
        self.successor(&handoff)?;
        self.lineage(&handoff)
    }

    /// Prints a heading that says what happens, and the command that does it.
    pub(super) fn say(&self, text: &str, command: &str) -> Result<(), CliError> {
        let out = &self.session.out;
        if out.is_json() {
            return out.record(&json!({"v": 1, "type": "scene", "text": text, "command": command}));
        }
        out.line("")?;
        out.line(&out.paint(Tone::Strong, text))?;
        if command.is_empty() { Ok(()) } else { out.line(&out.paint(Tone::Faint, &format!("$ {command}"))) }
    }

    fn cast(&self) -> Result<String, CliError> {
        self.say("A persona is a folder with a skill in it.", &format!("tasuki persona new {SLUG} --profile demo"))?;
        let slug = Slug::try_from(SLUG.to_owned()).map_err(|error| CliError::refused("bad_slug", error.to_string()))?;
        let own = |text: &str| Some(text.to_owned());
        let file = PersonaFile { name: own("Kai"), profile: own("demo"), ..PersonaFile::default() };
        let folder = personas::create(&self.session.home.personas(), &slug, &file)?;
        let answer = json!({"v": 1, "type": "persona", "persona_slug": SLUG, "path": folder});
        self.report(&answer, &format!("  {}", folder.display()))?;
        self.say(
            "tasuki starts an agent with that persona in a tmux pane and types the skill into it.",
            "tasuki agent create kai",
        )?;
        let cwd = self.place.folder().display().to_string();
        let fields = Map::from_iter([("persona_slug".to_owned(), SLUG.into()), ("cwd".to_owned(), cwd.into())]);
        let answer: ViewFile<AgentReply> = self.session.ask("agent_create", fields, IDLE_LIMIT)?;
        let id = view::shown(answer.agent_id.as_deref());
        let pane = view::shown(answer.pane.as_ref().and_then(Option::as_deref));
        self.report(&answer.json(), &format!("  agent {} in pane {}", sanitise(&id), sanitise(&pane)))?;
        self.until_idle(&id)?;
        Ok(id)
    }

    /// Prints an answer: the whole of it under `--json`, else one line.
    fn report(&self, answer: &Value, line: &str) -> Result<(), CliError> {
        if self.session.out.is_json() { self.session.out.record(answer) } else { self.session.out.line(line) }
    }

    /// Waits until the agent has been idle for a moment: between the priming's receipt and its turn it also looks idle.
    fn until_idle(&self, agent_id: &str) -> Result<(), CliError> {
        const CALM: Duration = Duration::from_millis(700);
        let end = Instant::now() + IDLE_LIMIT;
        let mut idle_since = None;
        while Instant::now() < end && !(self.stop)() {
            let agent = view::agent(&self.session.home, agent_id)?;
            if !agent.is_some_and(|agent| agent.state == AgentState::Idle) {
                idle_since = None;
            } else if idle_since.get_or_insert_with(Instant::now).elapsed() >= CALM {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(CliError::refused("agent_busy", format!("The agent {agent_id} did not become idle.")))
    }

    /// Gives the agent some work. The code `refused` means that nothing was typed, for example because a turn was
    /// running, so the text is sent again. After any other error it is not.
    fn send(&self, agent_id: &str, scene: &str, text: &str) -> Result<(), CliError> {
        self.say(scene, &format!("tasuki send {SLUG} \"{text}\""))?;
        let end = Instant::now() + IDLE_LIMIT;
        let answer: ViewFile<DeliveryView> = loop {
            let fields = Map::from_iter([("agent_id".to_owned(), agent_id.into()), ("text".to_owned(), text.into())]);
            match self.session.ask("agent_send", fields, IDLE_LIMIT) {
                Err(error) if error.code == "refused" && Instant::now() < end && !(self.stop)() => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                other => break other?,
            }
        };
        let verdict = sanitise(&view::shown(answer.verdict.as_str()));
        self.report(&answer.json(), &format!("  {verdict}"))?;
        if answer.verdict != Verdict::Delivered {
            return Err(CliError::refused(verdict, "The text with the work could not be confirmed to have arrived."));
        }
        self.until_idle(agent_id)
    }

    fn hand_off(&self, agent_id: &str) -> Result<ViewFile<HandoffView>, CliError> {
        self.say(
            "Now the handoff: the agent writes a document and ends, and its successor takes over.",
            &format!("tasuki handoff {SLUG} --reason \"{REASON}\" --wait"),
        )?;
        let fields = Map::from_iter([("agent_id".to_owned(), agent_id.into()), ("reason".to_owned(), REASON.into())]);
        let answer: ViewFile<HandoffReply> = self.session.ask("handoff", fields, IDLE_LIMIT)?;
        let id = view::shown(answer.handoff_id.as_str());
        wait::follow_until(self.session, &id, Follower::new(), HANDOFF_LIMIT, self.stop)
    }

    fn document(&self, handoff: &HandoffView) -> Result<(), CliError> {
        let path = view::shown(handoff.file_path.as_str());
        let text = crate::cli::input::text_file(std::path::Path::new(&path))?;
        if self.session.out.is_json() {
            return self.session.out.record(&json!({"v": 1, "type": "document", "path": path, "text": text}));
        }
        self.say("The document that the successor was given:", &format!("cat {path}"))?;
        text.lines().try_for_each(|line| self.session.out.line(format!("  | {}", sanitise(line)).trim_end()))
    }

    /// Shows the screen of the successor, which has read the document.
    fn successor(&self, handoff: &HandoffView) -> Result<(), CliError> {
        let id = view::shown(handoff.successor_id.as_deref());
        self.until_idle(&id)?;
        let agent = view::agent(&self.session.home, &id)?;
        let pane = view::shown(agent.as_ref().and_then(|agent| agent.pane.as_deref()));
        let lines = self.place.screen(&pane)?;
        if self.session.out.is_json() {
            return self.session.out.record(&json!({"v": 1, "type": "screen", "pane": pane, "lines": lines}));
        }
        self.say(
            "The successor has read the document and continues the work; this is its pane:",
            &format!("tmux capture-pane -p -t {pane}"),
        )?;
        lines.iter().try_for_each(|line| self.session.out.line(format!("  | {line}").trim_end()))
    }

    fn lineage(&self, handoff: &HandoffView) -> Result<(), CliError> {
        let successor = view::shown(handoff.successor_id.as_deref());
        let members = lineage::members(&successor, &view::readable(&self.session.home.agent_views())?);
        if members.len() < 2 {
            return Err(CliError::refused("no_lineage", "The successor's view does not name its predecessor."));
        }
        if self.session.out.is_json() {
            let agents: Vec<Option<Value>> =
                members.iter().map(|member| member.view.as_ref().map(ViewFile::json)).collect();
            return self.session.out.record(&json!({"v": 1, "type": "lineage", "lineage": agents}));
        }
        self.say("The agents and their predecessors:", &format!("tasuki lineage {SLUG}"))?;
        lineage::print(self.session, &successor, &members)
    }
}
