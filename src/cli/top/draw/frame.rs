//! The first two lines and the last ones: the sidecar, the tabs, the message, the keys.

use super::Scene;
use super::columns::{put, put_right};
use crate::cli::top::choice::{KeyMode, Tab};
use crate::cli::top::model::SidecarStatus;
use crate::cli::top::plain::{between, clock, cut, width, wrap_or_cut};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A message may take a third of the window. It stands nowhere else.
const SHARE: u16 = 3;
/// The keys that are named at the bottom, the most important first.
const NAMED: [&str; 10] = [
    "? help",
    "q quit",
    "h hand off",
    "g go to pane",
    "Enter details",
    "v document",
    "r retry",
    "c cancel",
    "d dismiss",
    "a accept",
];

/// Header and tabs: two lines.
pub(super) fn head(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) {
    let look = scene.look;
    let line = Rect { height: 1, ..area };
    let counts = counts(scene);
    let (text, style) = sidecar(scene);
    let room = usize::from(area.width).saturating_sub(width(&counts) + 1);
    let about = cut(&text, room.saturating_sub(7), look.more());
    put(buffer, line, "tasuki", look.strong());
    put(buffer, Rect { x: area.x + 7, width: area.width.saturating_sub(7), ..line }, &about, style);
    let home = format!("  {}", scene.model.path(&scene.model.home));
    let left = room.saturating_sub(7 + width(&about));
    if left > 12 {
        let x = area.x + 7 + u16::try_from(width(&about)).unwrap_or(0);
        let home = cut(&home, left, look.more());
        put(buffer, Rect { x, width: u16::try_from(left).unwrap_or(0), ..line }, &home, look.faint());
    }
    put_right(buffer, line, &counts, look.strong());
    tabs(scene, Rect { y: area.y + 1, ..line }, buffer);
}

fn counts(scene: Scene<'_>) -> String {
    let model = scene.model;
    let count = |number: usize, one: &str| format!("{number} {one}{}", if number == 1 { "" } else { "s" });
    let (agents, running, needs) = (model.living().count(), model.running().count(), model.needs.len());
    if buffer_is_narrow(scene) {
        return format!("{agents}a {running}h {needs}!");
    }
    let running = if running == 0 { "no handoff".to_owned() } else { count(running, "handoff") };
    let needs = if needs == 0 { String::new() } else { format!(", needs you: {needs}") };
    format!("{}, {running}{needs}", count(agents, "agent"))
}

/// Whether texts must be short, because the counts in words would fill the line.
fn buffer_is_narrow(scene: Scene<'_>) -> bool {
    scene.columns < 70
}

fn sidecar(scene: Scene<'_>) -> (String, Style) {
    let look = scene.look;
    let SidecarStatus { pid, is_alive, heartbeat_ms, tmux, problem } = &scene.model.sidecar;
    let server = tmux.map(|pid| format!("  tmux {pid}")).unwrap_or_default();
    match (pid, heartbeat_ms) {
        (Some(pid), _) if *is_alive && problem.is_some() => (format!("sidecar {pid} degraded{server}"), look.busy()),
        (Some(pid), _) if *is_alive => (format!("sidecar {pid} alive{server}"), look.good()),
        (Some(pid), Some(heartbeat_ms)) => {
            (format!("sidecar {pid} silent for {}", clock(between(*heartbeat_ms, scene.now_ms))), look.bad())
        }
        _ => ("no sidecar".to_owned(), look.bad()),
    }
}

fn tabs(scene: Scene<'_>, line: Rect, buffer: &mut Buffer) {
    let (model, look) = (scene.model, scene.look);
    let counts = [model.living().count(), model.handoffs.len(), model.work.len(), model.open_failures().count(), 0];
    let mut x = line.x;
    for tab in Tab::ALL {
        let (place, chosen) = (tab.place(), tab == scene.ui.tab);
        let count = if tab == Tab::Lineage { String::new() } else { format!(" {}", counts[place]) };
        let name = match (buffer_is_narrow(scene), chosen) {
            (true, false) => (place + 1).to_string(),
            _ => format!("{} {}{count}", place + 1, tab.title()),
        };
        let text = if chosen { format!("[{name}]") } else { format!(" {name} ") };
        let wide = u16::try_from(width(&text)).unwrap_or(0);
        let style = match (chosen, tab) {
            (true, _) => look.selected(),
            (_, Tab::Errors) if counts[place] > 0 => look.bad(),
            _ => Style::new(),
        };
        put(buffer, Rect { x, width: line.width.saturating_sub(x - line.x), ..line }, &text, style);
        x = x.saturating_add(wide + 1);
    }
}

/// Draws message, question and keys; returns the number of lines.
pub(super) fn foot(scene: Scene<'_>, area: Rect, buffer: &mut Buffer) -> u16 {
    let (text, style) = said(scene);
    let most = usize::from(area.height / SHARE).max(1);
    let columns = usize::from(area.width);
    let is_input = matches!(scene.ui.mode, KeyMode::Input { .. });
    // Of an input line that is too long, the end is shown.
    let lines =
        if is_input { vec![tail(&text, columns)] } else { wrap_or_cut(&text, columns, most, scene.look.more()) };
    let height = u16::try_from(lines.len()).unwrap_or(1).max(1);
    let top = area.y + area.height - height - 1;
    for (line, y) in lines.iter().zip(top..) {
        put(buffer, Rect { y, height: 1, ..area }, line, style);
    }
    let keys = match &scene.ui.mode {
        KeyMode::Browse => named(columns),
        KeyMode::Details { .. } | KeyMode::Help { .. } => "Esc back   j k scroll".to_owned(),
        KeyMode::Input { .. } => "Enter continues   Esc aborts".to_owned(),
        KeyMode::Confirm { .. } => "y yes   n no".to_owned(),
        KeyMode::Doubt { .. } => "d delivered   n not delivered   Esc aborts".to_owned(),
    };
    put(buffer, Rect { y: area.y + area.height - 1, height: 1, ..area }, &keys, scene.look.faint());
    height + 1
}

fn tail(text: &str, columns: usize) -> String {
    let mut kept = text;
    while width(kept) > columns {
        kept = &kept[kept.chars().next().map_or(1, char::len_utf8)..];
    }
    kept.to_owned()
}

fn said(scene: Scene<'_>) -> (String, Style) {
    let (model, ui, look) = (scene.model, scene.ui, scene.look);
    match &ui.mode {
        KeyMode::Input { agent, reason: None, text } => {
            (format!("Hand off {}. Reason: {text}_", named_agent(scene, agent)), look.strong())
        }
        KeyMode::Input { text, .. } => (format!("Focus of the document (may be empty): {text}_"), look.strong()),
        KeyMode::Confirm { question, .. } => (format!("{question} y/n"), look.strong()),
        KeyMode::Doubt { handoff } => {
            let id = model.short(handoff);
            (format!("Handoff {id}: look at the pane. Did the text arrive?"), look.strong())
        }
        KeyMode::Browse | KeyMode::Details { .. } | KeyMode::Help { .. } => match (&ui.message, ui.pending) {
            (Some(message), _) => (message.text.clone(), if message.bad { look.bad() } else { look.good() }),
            (None, true) => ("Sent; waiting for the sidecar's answer.".to_owned(), look.busy()),
            (None, false) => match (&model.sidecar.problem, model.left_out.first()) {
                (Some(problem), _) => (problem.clone(), look.busy()),
                (None, Some(left_out)) => (left_out.clone(), look.faint()),
                (None, None) => (String::new(), Style::new()),
            },
        },
    }
}

fn named_agent(scene: Scene<'_>, id: &str) -> String {
    let persona = scene.model.agent(id).and_then(|agent| agent.persona.clone());
    format!("{} {}", persona.unwrap_or_default(), scene.model.short(id)).trim_start().to_owned()
}

fn named(columns: usize) -> String {
    let mut text = String::new();
    for key in NAMED {
        if width(&text) + 2 + width(key) <= columns {
            text.push_str(if text.is_empty() { "" } else { "  " });
            text.push_str(key);
        }
    }
    text
}
