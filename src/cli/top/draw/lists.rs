//! The five lists.

use super::Scene;
use super::columns::{Column, ColumnText, lines, list as columns};
use crate::cli::follow::{self, FlowEnd};
use crate::cli::home_option;
use crate::cli::live::about;
use crate::cli::output::bar;
use crate::cli::top::choice::Tab;
use crate::cli::top::model::{AgentRow, FailureRow, HandoffRow, HostMark, Model, WorkRow};
use crate::cli::top::plain::{between, clock, wrap};
use crate::contract::HostState;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(super) fn list(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) {
    let model = scene.model;
    let selected = scene.ui.selected(model);
    let target = (scene.look, &mut *buffer);
    let wide = area.width;
    let (len, empty) = match scene.ui.tab {
        Tab::Agents => {
            let agents: Vec<&AgentRow> = model.living().collect();
            columns(target, area, agent_columns(model, wide), (selected, agents.len()), |at| {
                agent(scene, agents[at], wide)
            });
            (agents.len(), "No agents. Start one with: tasuki agent create PERSONA")
        }
        Tab::Handoffs => {
            let row = |at: usize| handoff(scene, &model.handoffs[at], wide);
            columns(target, area, handoff_columns(model, wide), (selected, model.handoffs.len()), row);
            (model.handoffs.len(), "No handoffs. Select an agent and press h.")
        }
        Tab::Work => {
            let row = |at: usize| work(scene, &model.work[at], wide);
            columns(target, area, work_columns(wide), (selected, model.work.len()), row);
            (model.work.len(), "No open work items. Create one with: tasuki work create TYPE TITLE")
        }
        Tab::Errors => {
            let row = |at: usize| failure(scene, &model.failures[at], wide);
            columns(target, area, failure_columns(wide), (selected, model.failures.len()), row);
            (model.failures.len(), "No errors.")
        }
        Tab::Lineage => {
            let row = |at: usize| kin(scene, model.kin[at], wide);
            columns(target, area, kin_columns(wide), (selected, model.kin.len()), row);
            (model.kin.len(), "No agents.")
        }
    };
    if len == 0 {
        let place =
            Rect { x: area.x + 1, y: area.y + 1, width: wide.saturating_sub(1), height: area.height.max(1) - 1 };
        lines(buffer, place, &wrap(&home_option::fit(empty), place.width.into(), place.height.into()));
    }
}

fn agent_columns(model: &Model, wide: u16) -> &'static [Column] {
    match wide {
        55..68 if model.own_host.is_some() => {
            &[("AGENT", 8), ("HOST", 8), ("PERSONA", 10), ("STATE", 8), ("USED", 5), ("NOW", 0)]
        }
        68.. if model.own_host.is_some() => {
            &[("AGENT", 8), ("HOST", 10), ("PERSONA", 12), ("STATE", 8), ("CONTEXT", 11), ("NOW", 0)]
        }
        0..55 => &[("AGENT", 8), ("PERSONA", 0), ("STATE", 8), ("USED", 5)],
        55..68 => &[("AGENT", 8), ("PERSONA", 10), ("STATE", 8), ("USED", 5), ("PANE", 5), ("NOW", 0)],
        68..100 => &[("AGENT", 8), ("PERSONA", 12), ("STATE", 8), ("CONTEXT", 11), ("PANE", 5), ("NOW", 0)],
        _ => &[("AGENT", 8), ("PERSONA", 18), ("STATE", 8), ("CONTEXT", 11), ("PANE", 6), ("NOW", 0)],
    }
}

fn agent(scene: Scene<'_>, agent: &AgentRow, wide: u16) -> Vec<ColumnText> {
    let look = scene.look;
    let mut row = vec![
        ColumnText::from(scene.model.short(&agent.id)),
        agent.persona.as_deref().unwrap_or("-").into(),
        ColumnText::new(agent.state.as_str(), look.state(&agent.state)),
        context_cell(scene, agent, wide >= 68),
    ];
    if wide >= 55 && scene.model.own_host.is_none() {
        row.push(agent.pane.as_deref().unwrap_or("-").into());
    }
    if wide >= 55 {
        row.push(doing(scene, agent));
    }
    with_host(scene, row, agent.host.as_ref(), wide)
}

/// Adds a cell with the host's name after the id, if other hosts are shown. In a window that is too narrow for this
/// cell, the name of another host stands before the text of the second cell. A row of a host that is not live is faint.
fn with_host(scene: Scene<'_>, mut row: Vec<ColumnText>, host: Option<&HostMark>, wide: u16) -> Vec<ColumnText> {
    let Some(own) = &scene.model.own_host else { return row };
    let name = host.map_or(own.as_str(), |host| host.name.as_str());
    match wide {
        0..55 => row.iter_mut().skip(1).take(1).filter(|_| host.is_some()).for_each(|cell| {
            cell.text = format!("{name}: {}", cell.text);
        }),
        _ => row.insert(1, name.into()),
    }
    if host.is_some_and(|host| host.state != HostState::Live) {
        row.iter_mut().for_each(|cell| cell.style = scene.look.faint());
    }
    row
}

/// What is known of another host that is not live, and how old that is.
fn age(scene: Scene<'_>, host: &HostMark) -> String {
    let known = match host.state {
        HostState::Away => "host away".to_owned(),
        HostState::Unknown => "host not reached".to_owned(),
        state => format!("host {}", state.as_str()),
    };
    format!("{known} {}", ago(scene, host.since_ms)).trim_end().to_owned()
}

/// How full the context is: a warning colour from two thirds on, the colour of failures from nine tenths on.
fn context_cell(scene: Scene<'_>, agent: &AgentRow, with_bar: bool) -> ColumnText {
    let look = scene.look;
    let style = |percent: u64| match percent {
        0..67 => look.good(),
        67..90 => look.busy(),
        _ => look.bad(),
    };
    match agent.context {
        None => "-".into(),
        Some((used, None)) => format!("{} k", used / 1_000).into(),
        Some((_, Some(percent))) if with_bar => {
            ColumnText::new(format!("{} {percent:>3} %", bar(percent, look.unicode)), style(percent))
        }
        Some((_, Some(percent))) => ColumnText::new(format!("{percent:>3} %"), style(percent)),
    }
}

/// What an agent does, in a few words.
fn doing(scene: Scene<'_>, agent: &AgentRow) -> ColumnText {
    let look = scene.look;
    let current = agent.handoff.as_deref().and_then(|id| scene.model.handoff(id));
    if let Some(host) = agent.host.as_ref().filter(|host| host.state != HostState::Live) {
        return age(scene, host).into();
    }
    if agent.state == "blocked" {
        return ColumnText::new("needs you: a dialog", look.bad());
    }
    if current.is_some_and(|handoff| handoff.held) {
        return ColumnText::new("waits for you: press v", look.bad());
    }
    if let Some(question) = current.and_then(|handoff| handoff.questions.first()) {
        return ColumnText::new(format!("asks you: {question}"), look.bad());
    }
    if let Some(handoff) = current {
        let verb = if handoff.agent == agent.id { "hands off" } else { "takes over" };
        return ColumnText::new(format!("{verb}: {} {}", handoff.step, since(scene, handoff)), look.fresh());
    }
    if let Some(error) = scene.model.handoff_of(agent).and_then(|handoff| handoff.error.as_ref()) {
        return ColumnText::new(format!("handoff failed: {}", error.code), look.bad());
    }
    if agent.suggested {
        return ColumnText::new("nearly full: press h", look.busy());
    }
    if agent.waiting > 0 {
        return ColumnText::new(format!("{} queued to be typed", agent.waiting), look.busy());
    }
    ColumnText::new(scene.model.path(&agent.cwd), look.faint())
}

fn since(scene: Scene<'_>, handoff: &HandoffRow) -> String {
    handoff.entered_ms.map(|entered| clock(between(entered, scene.now_ms))).unwrap_or_default()
}

/// The time in this step against its limit.
pub(super) fn clocks(scene: Scene<'_>, handoff: &HandoffRow) -> String {
    let limit =
        handoff.entered_ms.zip(handoff.deadline_ms).map(|(from, to)| format!(" of {}", clock(between(from, to))));
    format!("{}{}", since(scene, handoff), limit.unwrap_or_default())
}

pub(super) fn handoff_columns(model: &Model, wide: u16) -> &'static [Column] {
    match wide {
        55.. if model.own_host.is_some() => {
            &[("HANDOFF", 8), ("HOST", 10), ("PERSONA", 12), ("STEP", 13), ("TIME", 14), ("NEWS", 0)]
        }
        0..55 => &[("HANDOFF", 8), ("STEP", 13), ("TIME", 0)],
        55..100 => &[("HANDOFF", 8), ("PERSONA", 12), ("STEP", 13), ("TIME", 14), ("NEWS", 0)],
        _ => &[("HANDOFF", 8), ("PERSONA", 18), ("STEP", 13), ("TIME", 16), ("NEWS", 0)],
    }
}

pub(super) fn handoff(scene: Scene<'_>, handoff: &HandoffRow, wide: u16) -> Vec<ColumnText> {
    let look = scene.look;
    let time = if handoff.is_running() { clocks(scene, handoff) } else { ago(scene, handoff.entered_ms) };
    let (id, step) =
        (scene.model.short(&handoff.id), ColumnText::new(handoff.step.as_str(), look.state(&handoff.step)));
    let row = match wide {
        0..55 if handoff.held => vec![id.into(), ColumnText::new("waits for you", look.bad()), time.into()],
        0..55 => vec![id.into(), step, time.into()],
        _ => vec![id.into(), handoff.persona.as_str().into(), step, time.into(), news(scene, handoff)],
    };
    with_host(scene, row, handoff.host.as_ref(), wide)
}

fn ago(scene: Scene<'_>, at_ms: Option<i64>) -> String {
    // Not in seconds: only a running clock makes top draw every second.
    let minutes = |at: i64| between(at, scene.now_ms).as_secs() / 60;
    at_ms.map_or_else(String::new, |at| match minutes(at) {
        0 => "just now".to_owned(),
        minutes @ 1..120 => format!("{minutes} min ago"),
        minutes @ 120..2_880 => format!("{} h ago", minutes / 60),
        minutes => format!("{} days ago", minutes / 1_440),
    })
}

fn news(scene: Scene<'_>, handoff: &HandoffRow) -> ColumnText {
    let look = scene.look;
    if let Some(host) = handoff.host.as_ref().filter(|host| host.state != HostState::Live) {
        return age(scene, host).into();
    }
    if let Some(error) = &handoff.error {
        let failed = format!("{} at {}", error.code, error.step);
        // If a cancelled handoff has an error, it had failed, and a person then abandoned it.
        let is_abandoned = handoff.outcome == Some(FlowEnd::Cancelled);
        return match is_abandoned {
            true => ColumnText::new(format!("abandoned after {failed}"), look.faint()),
            false => ColumnText::new(failed, look.bad()),
        };
    }
    let lives = |id: &String| scene.model.agent(id).is_some_and(|agent| agent.living);
    if handoff.blocked && (handoff.is_running() || handoff.successor.as_ref().is_some_and(lives)) {
        return ColumnText::new("needs you: a dialog", look.bad());
    }
    if handoff.held {
        return ColumnText::new("waits for you: press v", look.bad());
    }
    if let Some(question) = handoff.questions.first() {
        return ColumnText::new(format!("asks you: {question}"), look.bad());
    }
    if !handoff.is_running() {
        let (from, to) = (scene.model.short(&handoff.agent), handoff.successor.as_deref());
        return match to {
            Some(to) => format!("{from} {} {}", look.arrow(), scene.model.short(to)).into(),
            None => handoff.reason.as_str().into(),
        };
    }
    let size = handoff.bytes.filter(|_| handoff.step == "writing").map(follow::size);
    let waits = Some(about(&handoff.step)).filter(|about| !about.is_empty()).map(|about| format!("waiting {about}"));
    let verdict = handoff.verdicts.last().cloned();
    let waits = waits.filter(|_| size.is_none());
    let parts: Vec<String> = [size, verdict, waits].into_iter().flatten().collect();
    parts.join("; ").into()
}

pub(super) fn work_columns(wide: u16) -> &'static [Column] {
    match wide {
        0..55 => &[("ITEM", 8), ("STATUS", 9), ("TITLE", 0)],
        _ => &[("ITEM", 8), ("TYPE", 14), ("STATUS", 9), ("PRIORITY", 8), ("OWNER", 8), ("TITLE", 0)],
    }
}

pub(super) fn work(scene: Scene<'_>, item: &WorkRow, wide: u16) -> Vec<ColumnText> {
    let look = scene.look;
    let (id, status) = (scene.model.short(&item.id), ColumnText::new(item.status.as_str(), look.state(&item.status)));
    if wide < 55 {
        return vec![id.into(), status, item.title.as_str().into()];
    }
    let owner =
        item.owner.as_deref().map_or("-", |owner| if owner == "human" { owner } else { scene.model.short(owner) });
    let priority =
        ColumnText::new(item.priority.as_str(), if item.priority == "urgent" { look.bad() } else { Style::new() });
    vec![id.into(), item.kind.as_str().into(), status, priority, owner.into(), item.title.as_str().into()]
}

fn failure_columns(wide: u16) -> &'static [Column] {
    match wide {
        0..55 => &[("CODE", 16), ("WHAT HAPPENED", 0)],
        _ => &[("WHEN", 11), ("CODE", 20), ("HANDOFF", 8), ("WHAT HAPPENED", 0)],
    }
}

fn failure(scene: Scene<'_>, failure: &FailureRow, wide: u16) -> Vec<ColumnText> {
    let tone = if scene.model.is_over(failure) { scene.look.faint() } else { scene.look.bad() };
    let code = ColumnText::new(failure.code.as_str(), tone);
    let message = ColumnText::from(failure.message.as_str());
    if wide < 55 {
        return vec![code, message];
    }
    let handoff = failure.handoff.as_deref().map_or("-", |id| scene.model.short(id));
    vec![ago(scene, failure.at_ms).into(), code, handoff.into(), message]
}

fn kin_columns(wide: u16) -> &'static [Column] {
    match wide {
        0..55 => &[("LINEAGE", 0), ("STATE", 8)],
        _ => &[("LINEAGE", 0), ("STATE", 8), ("PANE", 6), ("FROM HANDOFF", 30)],
    }
}

fn kin(scene: Scene<'_>, (depth, place): (usize, usize), wide: u16) -> Vec<ColumnText> {
    /// The deepest indentation.
    const DEEPEST: usize = 12;
    let (model, look) = (scene.model, scene.look);
    let agent = &model.agents[place];
    let branch = if depth == 0 { String::new() } else { "   ".repeat(depth.min(DEEPEST) - 1) + look.branch() };
    let name = format!("{branch}{} {}", model.short(&agent.id), agent.persona.as_deref().unwrap_or("-"));
    let name = ColumnText::new(name, if agent.living { look.strong() } else { look.faint() });
    let state = ColumnText::new(agent.state.as_str(), look.state(&agent.state));
    if wide < 55 {
        return vec![name, state];
    }
    let by = model.handoffs.iter().find(|handoff| handoff.successor.as_deref() == Some(&agent.id));
    let by = by.map(|handoff| format!("{} {}", model.short(&handoff.id), handoff.reason));
    let pane = agent.pane.as_deref().filter(|_| agent.living).unwrap_or("-");
    vec![name, state, pane.into(), ColumnText::new(by.unwrap_or_default(), look.faint())]
}
