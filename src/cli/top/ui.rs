//! What the person at the screen has chosen, and what follows from each key. Pure.

use super::choice::{KeyMode, LoopAction, Row, Tab, TopRequest};
use super::keys::{KeyAction, RowAction};
use super::model::Model;
use super::plain::plain;
use super::target::ActionTarget;
use crate::cli::error::CliError;
use crate::cli::handoff::REASON;
use crate::cli::handoff_words::AssumeArg;

/// The longest text that an input line holds, in characters.
const MOST_INPUT: usize = 300;

/// The result of an action: of a request to the sidecar, or of a jump to a pane.
#[derive(Debug)]
pub struct ActionResult {
    /// The request; none for a jump.
    pub asked: Option<TopRequest>,
    pub said: Result<String, CliError>,
    /// top must end, because its popup would hide the pane.
    pub leaves: bool,
}

/// A message, and whether it reports a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiMessage {
    pub text: String,
    pub bad: bool,
}

/// The state of the screen: which list, which row, which mode.
#[derive(Debug, Default)]
pub struct Ui {
    pub tab: Tab,
    pub mode: KeyMode,
    pub message: Option<UiMessage>,
    pub pending: bool,
    /// The details of the selected row, or of the open one.
    pub details: Vec<String>,
    /// How many rows of the screen the details take.
    detail_rows: usize,
    chosen: [Option<Row>; 5],
    last_place: [usize; 5],
}

impl Ui {
    /// The rows of a list, in the order in which they are shown.
    #[must_use]
    pub fn rows(tab: Tab, model: &Model) -> Vec<Row> {
        match tab {
            Tab::Agents => model.living().map(|agent| Row::Agent(agent.id.clone())).collect(),
            Tab::Handoffs => model.handoffs.iter().map(|handoff| Row::Handoff(handoff.id.clone())).collect(),
            Tab::Work => model.work.iter().map(|item| Row::Work(item.id.clone())).collect(),
            Tab::Errors => model.failures.iter().map(|failure| Row::Failure(failure.id.clone())).collect(),
            Tab::Lineage => model.kin.iter().map(|(_, place)| Row::Agent(model.agents[*place].id.clone())).collect(),
        }
    }

    /// The position of the selected row. If that row is gone, the next row takes its position.
    #[must_use]
    pub fn selected(&self, model: &Model) -> usize {
        let at = self.tab.place();
        let rows = Ui::rows(self.tab, model);
        let found = self.chosen[at].as_ref().and_then(|chosen| rows.iter().position(|row| row == chosen));
        found.unwrap_or(self.last_place[at]).min(rows.len().saturating_sub(1))
    }

    /// The selected row, if the list has any.
    #[must_use]
    pub fn row(&self, model: &Model) -> Option<Row> {
        Ui::rows(self.tab, model).into_iter().nth(self.selected(model))
    }

    /// The row whose details are shown: the open one, else the selected one if there is room for both.
    #[must_use]
    pub fn detailed(&self, model: &Model, has_room: bool) -> Option<Row> {
        match &self.mode {
            KeyMode::Details { row, .. } => Some(row.clone()),
            _ => self.row(model).filter(|_| has_room),
        }
    }

    /// Learns how many rows of the screen the details take, at their present width.
    pub fn measure(&mut self, rows: usize) {
        self.detail_rows = rows;
        if let KeyMode::Details { from, .. } = &mut self.mode {
            *from = (*from).min(rows.saturating_sub(1));
        }
    }

    /// Remembers the position of the selected row, so that the selection stays there when the row disappears.
    pub fn settle(&mut self, model: &Model) {
        let (at, place) = (self.tab.place(), self.selected(model));
        self.last_place[at] = place;
        self.chosen[at] = Ui::rows(self.tab, model).into_iter().nth(place);
    }

    /// Changes the screen as the key says; returns an action for the loop if one is needed.
    pub fn act(&mut self, action: &KeyAction, model: &Model) -> Option<LoopAction> {
        if !matches!(action, KeyAction::Insert(_) | KeyAction::Erase | KeyAction::Clear) {
            self.message = None;
        }
        match action {
            KeyAction::Quit => return Some(LoopAction::Quit),
            KeyAction::Show(tab) => self.show(*tab, model),
            KeyAction::Turn(right) => {
                let step = if *right { 1 } else { Tab::ALL.len() - 1 };
                self.show(Tab::ALL[(self.tab.place() + step) % Tab::ALL.len()], model);
            }
            KeyAction::Move(by) => self.go(*by, model),
            KeyAction::Open => match self.row(model) {
                Some(row) => self.mode = KeyMode::Details { row, from: 0 },
                None => self.say("There is no row to open."),
            },
            KeyAction::Read => self.read(model),
            KeyAction::Help => self.mode = KeyMode::Help { from: 0 },
            KeyAction::Back => self.back(),
            KeyAction::Do(action) => return self.begin(*action, model),
            KeyAction::Answer(yes) => {
                if let KeyMode::Confirm { then, .. } = std::mem::take(&mut self.mode)
                    && *yes
                {
                    return self.request(then);
                }
            }
            KeyAction::Assume(arrived) => {
                if let KeyMode::Doubt { handoff } = std::mem::take(&mut self.mode) {
                    let assume = Some(if *arrived { AssumeArg::Delivered } else { AssumeArg::NotDelivered });
                    return self.request(TopRequest::Retry { handoff, assume });
                }
            }
            KeyAction::Insert(_) | KeyAction::Erase | KeyAction::Clear => self.write(action),
            KeyAction::Submit => return self.submit(),
        }
        None
    }

    /// Shows a list. The row that is drawn as selected counts as chosen, so that a row that comes later does not take
    /// its place under the person's keys.
    fn show(&mut self, tab: Tab, model: &Model) {
        self.tab = tab;
        self.settle(model);
    }

    fn say(&mut self, text: &str) {
        self.message = Some(UiMessage { text: text.to_owned(), bad: false });
    }

    /// Opens the document of the row's handoff.
    fn read(&mut self, model: &Model) {
        let row = self.detailed(model, true);
        let target = row.map(|row| ActionTarget::of(&row, model));
        if let Some(host) = target.as_ref().and_then(|target| target.host) {
            self.say(&format!("The document of this handoff is on the host {host}."));
            return;
        }
        match target.and_then(|target| target.handoff) {
            Some(handoff) => self.mode = KeyMode::Details { row: Row::Document(handoff), from: 0 },
            None => self.say("There is no handoff in this row."),
        }
    }

    fn back(&mut self) {
        if matches!(self.mode, KeyMode::Input { .. } | KeyMode::Doubt { .. }) {
            self.say("Aborted; nothing was sent.");
        }
        self.mode = KeyMode::Browse;
    }

    fn go(&mut self, by: isize, model: &Model) {
        let moved = |from: usize, most: usize| from.saturating_add_signed(by).min(most);
        match &mut self.mode {
            KeyMode::Details { from, .. } => *from = moved(*from, self.detail_rows.saturating_sub(1)),
            KeyMode::Help { from } => *from = moved(*from, super::keys::KEYS.len()),
            _ => {
                let rows = Ui::rows(self.tab, model);
                let place = moved(self.selected(model), rows.len().saturating_sub(1));
                let at = self.tab.place();
                self.last_place[at] = place;
                self.chosen[at] = rows.into_iter().nth(place);
            }
        }
    }

    fn write(&mut self, action: &KeyAction) {
        let KeyMode::Input { text, .. } = &mut self.mode else { return };
        match action {
            KeyAction::Insert(more) => {
                let more = if more == " " { more.clone() } else { plain(more) };
                let room = MOST_INPUT.saturating_sub(text.chars().count());
                text.extend(more.chars().take(room));
            }
            KeyAction::Erase => drop(text.pop()),
            _ => text.clear(),
        }
    }

    fn submit(&mut self) -> Option<LoopAction> {
        let KeyMode::Input { agent, reason, text } = std::mem::take(&mut self.mode) else { return None };
        let text = text.trim().to_owned();
        match reason {
            None => {
                let reason = Some(if text.is_empty() { REASON.to_owned() } else { text });
                self.mode = KeyMode::Input { agent, reason, text: String::new() };
                None
            }
            Some(reason) => {
                let focus = Some(text).filter(|focus| !focus.is_empty());
                self.request(TopRequest::HandOff { agent, reason, focus })
            }
        }
    }

    fn request(&mut self, asked: TopRequest) -> Option<LoopAction> {
        self.pending = true;
        Some(LoopAction::Ask(asked))
    }

    /// Takes the result of a request and shows it as a message.
    pub fn hear(&mut self, outcome: ActionResult) {
        self.pending &= outcome.asked.is_none();
        self.message = Some(match outcome.said {
            Ok(text) => UiMessage { text: plain(&text), bad: false },
            Err(error) => {
                // When the key was pressed, the handoff's view did not show yet that its text is in doubt.
                if let (true, Some(TopRequest::Retry { handoff, assume: None })) =
                    (error.code == "in_doubt", outcome.asked)
                {
                    self.mode = KeyMode::Doubt { handoff };
                }
                let hint = error.hint.map(|hint| format!(". {hint}")).unwrap_or_default();
                let message = error.message.trim_end_matches('.');
                UiMessage { text: plain(&format!("{message} ({}){hint}", error.code)), bad: true }
            }
        });
    }

    fn begin(&mut self, action: RowAction, model: &Model) -> Option<LoopAction> {
        if self.pending && action != RowAction::Jump {
            self.say("Please wait: the sidecar has not answered the previous request yet.");
            return None;
        }
        let target = ActionTarget::of(&self.row(model)?, model);
        if let Some(refusal) = target.elsewhere(action, model) {
            self.say(&refusal);
            return None;
        }
        let refusal = match (action, &target.agent, &target.handoff) {
            (RowAction::HandOff | RowAction::Jump, None, _) => "There is no agent in this row.",
            (RowAction::Cancel | RowAction::Retry | RowAction::Accept, _, None) => "There is no handoff in this row.",
            (RowAction::Dismiss, _, _) if target.failure.is_none() => "There is no error in this row.",
            _ => "",
        };
        if !refusal.is_empty() {
            self.say(refusal);
            return None;
        }
        let running =
            target.agent.as_ref().and_then(|agent| agent.handoff.as_ref()).filter(|_| action == RowAction::HandOff);
        if let Some(running) = running {
            self.say(&format!("This agent is already in handoff {}.", model.short(running)));
            return None;
        }
        let agent = target.agent.as_ref().map(|agent| agent.id.clone()).unwrap_or_default();
        let handoff = target.handoff.unwrap_or_default();
        let of = |what: &str| format!("{what} {}?", model.short(&handoff));
        match action {
            RowAction::HandOff => self.mode = KeyMode::Input { agent, reason: None, text: String::new() },
            // Its pane may be another program's by now: a tmux server that was started again gives the same ids.
            RowAction::Jump if target.agent.is_some_and(|agent| !agent.living) => self.say("This agent has ended."),
            RowAction::Jump => match target.agent.and_then(|agent| agent.pane.clone()) {
                Some(pane) => return Some(LoopAction::Jump(pane)),
                None => self.say("This agent has no pane."),
            },
            RowAction::Cancel => self.confirm(of("Cancel handoff"), TopRequest::Cancel(handoff)),
            RowAction::Accept => {
                self.confirm(of("Accept the document as it is, for handoff"), TopRequest::Accept(handoff))
            }
            RowAction::Dismiss => {
                let failure = target.failure.unwrap_or_default();
                let question = format!("Dismiss the error {} ({})?", target.code, model.short(&failure));
                self.confirm(question, TopRequest::Dismiss(failure));
            }
            RowAction::Retry if model.has_failed_again(&handoff, target.failure.as_deref()) => {
                self.say("The handoff has failed again since then: see its newer error.");
            }
            RowAction::Retry if model.handoff(&handoff).is_some_and(super::model::HandoffRow::is_in_doubt) => {
                self.mode = KeyMode::Doubt { handoff };
            }
            RowAction::Retry => return self.request(TopRequest::Retry { handoff, assume: None }),
        }
        None
    }

    fn confirm(&mut self, question: String, then: TopRequest) {
        self.mode = KeyMode::Confirm { question, then };
    }
}

#[cfg(test)]
#[path = "ui_tests.rs"]
mod tests;
