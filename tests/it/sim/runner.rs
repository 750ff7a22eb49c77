//! A model of the runner: each effect in the small acts in which the real one does it, so that a crash may fall between
//! any two of them.

use super::disk::Disk;
use super::publish;
use super::rng::Rng;
use super::tmux::{Faults, SimTmux};
use tasuki::contract::DocumentFault;
use tasuki::contract::document::FaultGrade;
use tasuki::core::effect::{
    AutoHandoffCheck, ComparedDocument, Composed, DocumentRead, DocumentSource, Effect, EffectKey, EnvironmentSearch,
    Examination, ExaminePlan, How, Measured, Outcome, PersonaTexts, Readiness, StartAgent, Started, SuccessorWindow,
    TypeText,
};
use tasuki::core::hook::ContextUsage;
use tasuki::core::id::AgentId;
use tasuki::core::pane::{PaneFacts, PaneRef, Refusal, Typed};
use tasuki::core::text::bears_signature;

/// An effect on its way.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) key: EffectKey,
    pub(crate) effect: Effect,
    pub(crate) resumed: bool,
    pub(crate) phase: u8,
    looks: u8,
}

impl Run {
    pub(crate) fn new(key: EffectKey, effect: Effect, resumed: bool) -> Self {
        Run { key, effect, resumed, phase: 0, looks: 0 }
    }

    /// Does the next act. Returns the outcome when it has ended.
    pub(crate) fn step(
        &mut self,
        tmux: &mut SimTmux,
        disk: &mut Disk,
        rng: &mut Rng,
        faults_on: bool,
    ) -> Option<Outcome> {
        let effect = self.effect.clone();
        match &effect {
            Effect::Type(plan) => self.tried(plan, tmux, rng, faults_on).map(Outcome::Typed),
            Effect::Start(plan) => Some(Outcome::Started(start(plan, tmux, rng, faults_on))),
            Effect::AwaitReady { pane, .. } => self.ready(pane, tmux).map(Outcome::Readiness),
            Effect::AwaitIdle { pane, brief: false, .. } => idle(pane, tmux).map(Outcome::Readiness),
            Effect::AwaitIdle { pane, brief: true, .. } | Effect::LookAtTurn { pane, .. } => {
                let busy = Readiness::AtWork { screen: "working".to_owned() };
                Some(Outcome::Readiness(idle(pane, tmux).unwrap_or(busy)))
            }
            Effect::ReadDocument { file_name, .. } => Some(Outcome::Document(disk.read_document(file_name))),
            Effect::ComposeDocument { file_name, source, replaces, .. } => {
                Some(Outcome::Composed(compose((file_name, replaces.as_ref()), source, disk, rng, faults_on)))
            }
            Effect::Examine(plan) => Some(examine(plan, disk, rng, faults_on)),
            Effect::CompareDocument { .. } => Some(compare(rng)),
            Effect::ReadPersona { .. } => {
                Some(Outcome::Persona(Some(PersonaTexts { skill: "# Skill".to_owned(), experience: None })))
            }
            Effect::HoldPlaceholder { pane, .. } => {
                let place =
                    SuccessorWindow { session: "work".to_owned(), session_number: None, size: (80, 24), cwd: None };
                Some(Outcome::Placeholder(tmux.at(pane).map(|_| place)))
            }
            Effect::ReadContextUsage { .. } => {
                let usage = ContextUsage { used: rng.below(110), window: rng.chance(90).then_some(100) };
                let measured = Measured { usage, guessed: rng.chance(10) };
                Some(Outcome::ContextUsage(rng.chance(95).then_some(measured)))
            }
            Effect::AwaitRead { .. } => rng.chance(2).then_some(Outcome::Done),
            Effect::AwaitPrompt { agent_id, delivery_id, .. } => stands_there(agent_id, delivery_id.as_str(), tmux),
            Effect::ReadLimit { .. } => Some(Outcome::Limit(rng.chance(30).then(|| super::outcomes::limit(rng)))),
            Effect::CheckAutoHandoff { persona, .. } => Some(Outcome::AutoHandoffCheck(Box::new(
                AutoHandoffCheck::new(rng.chance(90).then_some(u64::from(rng.chance(30))), disk.persona_facts(persona)),
            ))),
            Effect::Identify { pane, server_pid } => Some(Outcome::Pane(identify(*pane, *server_pid, tmux))),
            Effect::KillPane { pane, .. } => {
                if let Some(agent) = tmux.at(pane) {
                    agent.alive = false;
                }
                Some(Outcome::Done)
            }
            Effect::AwaitDeath { process } => {
                let lives = tmux.agents.iter().any(|agent| agent.alive && agent.pane.pid == process.pid);
                (!lives).then_some(Outcome::Done)
            }
            Effect::PrepareFolder { .. } | Effect::DropPlaceholder { .. } => Some(Outcome::Done),
            Effect::Notify(_) if faults_on && rng.chance(10) => {
                Some(Outcome::Failed { why: "no such program".to_owned() })
            }
            Effect::Notify(_) => Some(Outcome::Done),
            Effect::KeepCopy(plan) => Some(publish::keep_copy(plan, rng, faults_on)),
            Effect::Publish(plan) => publish::publish(self, plan, disk, rng, faults_on),
            Effect::NotifyOperator(notice) => {
                disk.note_told(notice);
                Some(Outcome::Done)
            }
        }
    }

    /// What a text needs may be away at the first act: then only the first try knows that nothing was typed.
    fn tried(&mut self, plan: &TypeText, tmux: &mut SimTmux, rng: &mut Rng, faults_on: bool) -> Option<Typed> {
        if self.phase == 0 && faults_on && rng.chance(2) {
            return Some(match self.resumed {
                true => Typed::Unknown { reason: "not_looked".to_owned() },
                false => Typed::Refused { reason: Refusal::NotReady },
            });
        }
        self.type_text(plan, tmux)
    }

    /// Look, paste, Enter, look again: compare-and-swap by the pane's mark.
    fn type_text(&mut self, plan: &TypeText, tmux: &mut SimTmux) -> Option<Typed> {
        let id = plan.delivery_id.as_str();
        let text = match plan.how {
            How::Command => "/exit".to_owned(),
            How::NewSession => "/clear".to_owned(),
            How::Prompt => plan.text.clone(),
        };
        let Some(agent) = tmux.at(&plan.pane) else {
            let began = self.resumed || self.phase > 0;
            let lost = Typed::Unknown { reason: "pane_lost".to_owned() };
            return Some(if began { lost } else { Typed::Refused { reason: Refusal::PaneGone } });
        };
        if agent.mark.starts_with(id) && self.phase == 0 {
            self.phase = if agent.mark.ends_with(".P") { 1 } else { 2 };
        }
        match self.phase {
            0 => {
                let is_blocked = agent.faults.dialog;
                let is_busy = agent.turn.is_some() && !plan.allow_busy;
                if is_blocked || is_busy || !agent.composer.is_empty() {
                    let reason = if is_blocked {
                        Refusal::Dialog
                    } else if is_busy {
                        Refusal::Busy
                    } else {
                        Refusal::Draft
                    };
                    return Some(Typed::Refused { reason });
                }
                agent.mark = format!("{id}.P");
                agent.composer = text;
                *tmux.typed.entry(plan.delivery_id.clone()).or_default() += 1;
                self.phase = 1;
                None
            }
            1 => {
                agent.mark = format!("{id}.E");
                agent.enter();
                self.phase = 2;
                None
            }
            _ => {
                if agent.composer != text {
                    return Some(Typed::Submitted { proven: false });
                }
                self.looks += 1;
                if self.looks > 2 {
                    return Some(Typed::Unknown { reason: "not_submitted".to_owned() });
                }
                agent.enter();
                None
            }
        }
    }

    fn ready(&mut self, pane: &PaneRef, tmux: &mut SimTmux) -> Option<Readiness> {
        let Some(agent) = tmux.at(pane) else { return Some(Readiness::Gone { screen: String::new() }) };
        self.looks = self.looks.saturating_add(1);
        match (agent.faults.dialog, agent.faults.never_ready, agent.ready_in) {
            (true, _, _) if self.looks > 3 => Some(Readiness::Blocked { screen: "a dialog".to_owned() }),
            (false, false, 0) => Some(Readiness::Ready),
            _ if self.looks > 40 => Some(Readiness::NotReady { screen: "splash".to_owned() }),
            _ => None,
        }
    }
}

/// What an agent has taken stands in its transcript; of one that has died nothing can be read.
fn stands_there(agent_id: &AgentId, mark: &str, tmux: &SimTmux) -> Option<Outcome> {
    let Some(agent) = tmux.by_env(agent_id) else { return Some(Outcome::Failed { why: "no such file".to_owned() }) };
    agent.submitted.iter().any(|prompt| prompt.contains(mark)).then_some(Outcome::Done)
}

fn idle(pane: &PaneRef, tmux: &mut SimTmux) -> Option<Readiness> {
    let Some(agent) = tmux.at(pane) else { return Some(Readiness::Gone { screen: String::new() }) };
    // A text of ours that was never submitted is nobody's draft.
    let is_at_rest = agent.composer.is_empty() || bears_signature(&agent.composer.replace(char::is_whitespace, ""));
    (agent.turn.is_none() && is_at_rest).then_some(Readiness::Ready)
}

/// Made once for each id, whatever happens: the mark is set by the very line that makes the window. What runs is looked
/// for before anything that may stand in the way of a new one.
fn start(plan: &StartAgent, tmux: &mut SimTmux, rng: &mut Rng, faults_on: bool) -> Started {
    if tmux.server.is_none() {
        return Started::NoTmux;
    }
    if let Some(agent) = tmux.by_env(&plan.agent_id) {
        return Started::Running { pane: agent.pane, process: Some(SimTmux::process(&agent.pane)) };
    }
    if tmux.made.contains(&plan.agent_id) {
        return Started::Died;
    }
    if plan.server.is_some() && plan.server != tmux.server {
        return Started::Failed { why: "the tmux server was restarted".to_owned() };
    }
    if faults_on && rng.chance(3) {
        return Started::Failed { why: "no such folder".to_owned() };
    }
    let faults = if faults_on { Faults::random(rng) } else { Faults::default() };
    match tmux.spawn(Some(plan.agent_id), &plan.profile, faults, rng) {
        Some(pane) => Started::Running { pane, process: Some(SimTmux::process(&pane)) },
        None => Started::NoTmux,
    }
}

fn compare(rng: &mut Rng) -> Outcome {
    let drift = if rng.chance(5) { vec!["HEAD moved".to_owned()] } else { Vec::new() };
    let document = if rng.chance(95) { ComparedDocument::Same } else { ComparedDocument::Changed };
    Outcome::Compared { document, drift }
}

/// Holds the document against the world, in which now and then something is wrong with it.
fn examine(plan: &ExaminePlan, disk: &Disk, rng: &mut Rng, faults_on: bool) -> Outcome {
    let fault = DocumentFault { grade: FaultGrade::Fix.into(), said: "a fault".to_owned(), ..DocumentFault::default() };
    let faults = if rng.chance(30) { vec![fault] } else { Vec::new() };
    let document = disk.read_document(&plan.file_name);
    let examination =
        Examination { document, facts: Box::default(), faults, redacted: None, environment: EnvironmentSearch::Clean };
    if faults_on && rng.chance(3) {
        Outcome::Failed { why: "no thread".to_owned() }
    } else {
        Outcome::Examined(Box::new(examination))
    }
}

/// Writes the document, unless it is there.
fn compose(
    (file_name, replaces): (&str, Option<&String>),
    source: &DocumentSource,
    disk: &mut Disk,
    rng: &mut Rng,
    faults_on: bool,
) -> Composed {
    if faults_on && rng.chance(3) {
        return Composed::Failed { why: "no space left".to_owned() };
    }
    let text = match source {
        DocumentSource::Text(text) | DocumentSource::Before(text) => text.clone(),
        DocumentSource::Reply { last_text, .. } => last_text.clone().unwrap_or_default(),
        DocumentSource::Transcript { head, .. } => head.clone(),
    };
    let is_it = |found: &String| replaces.is_some_and(|replaced| found == replaced);
    match disk.read_document(file_name) {
        DocumentRead::Missing => {}
        DocumentRead::Whole { sha256, .. } if is_it(&sha256) => {
            disk.documents.retain(|path, _| !path.ends_with(file_name));
        }
        DocumentRead::Whole { .. } | DocumentRead::Empty | DocumentRead::Unsafe { .. } => return Composed::Written,
    }
    if text.is_empty() {
        return Composed::Nothing;
    }
    disk.documents.insert(format!("/h/dev/handoffs/{file_name}"), text);
    Composed::Written
}

fn identify(pane: u32, server_pid: Option<u32>, tmux: &SimTmux) -> Option<PaneFacts> {
    let agent = tmux.agents.iter().find(|agent| agent.alive && agent.pane.pane == pane)?;
    if server_pid.is_some_and(|pid| pid != agent.pane.server.pid) {
        return None;
    }
    Some(PaneFacts {
        pane: agent.pane,
        session_name: "work".to_owned(),
        cwd: "/".to_owned(),
        agent: Some(SimTmux::process(&agent.pane)),
        bare_shell: false,
        profile: Some(agent.profile.clone()),
        agent_id: agent.env,
        claimed_by: None,
    })
}
