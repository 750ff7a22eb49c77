//! What the person at the screen has chosen, and what follows from what they want. Pure.

use super::choice::{Asked, Mode, Order, Row, Tab};
use super::keys::{Deed, Intent};
use super::model::Model;
use super::plain::plain;
use super::target::Target;
use crate::cli::error::CliError;
use crate::cli::handoff::{Assume, REASON};

/// Longest text that is taken in an input line, in characters.
const MOST_INPUT: usize = 300;

/// What an order came to.
#[derive(Debug)]
pub struct Outcome {
    /// What was asked, where the sidecar was.
    pub asked: Option<Asked>,
    pub said: Result<String, CliError>,
    /// The screen is to be left, for it would hide what is to be seen.
    pub leaves: bool,
}

/// A message, and whether it is a bad one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub bad: bool,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub struct Ui {
    /// The list that is shown.
    pub tab: Tab,
    /// What the keys are for.
    pub mode: Mode,
    pub message: Option<Message>,
    /// An order is on its way.
    pub pending: bool,
    /// All of the selected row, or of the one that is open.
    pub details: Vec<String>,
    chosen: [Option<Row>; 5],
    last_place: [usize; 5],
}

impl Ui {
    /// The rows of a list.
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

    /// The place of the selected row. A row that has gone leaves its place to the next one.
    #[must_use]
    pub fn selected(&self, model: &Model) -> usize {
        let at = self.tab.place();
        let rows = Ui::rows(self.tab, model);
        let found = self.chosen[at].as_ref().and_then(|chosen| rows.iter().position(|row| row == chosen));
        found.unwrap_or(self.last_place[at]).min(rows.len().saturating_sub(1))
    }

    /// The selected row.
    #[must_use]
    pub fn row(&self, model: &Model) -> Option<Row> {
        Ui::rows(self.tab, model).into_iter().nth(self.selected(model))
    }

    /// The row whose details are to be read: the open one, else the selected one where there is room for both.
    #[must_use]
    pub fn detailed(&self, model: &Model, has_room: bool) -> Option<Row> {
        match &self.mode {
            Mode::Details { row, .. } => Some(row.clone()),
            _ => self.row(model).filter(|_| has_room),
        }
    }

    /// Remembers where the selected row stands, so that its place is kept when it goes.
    pub fn settle(&mut self, model: &Model) {
        let (at, place) = (self.tab.place(), self.selected(model));
        self.last_place[at] = place;
        self.chosen[at] = Ui::rows(self.tab, model).into_iter().nth(place);
    }

    /// Does what a person wants, as far as it can be done here; the rest is an order.
    pub fn act(&mut self, intent: &Intent, model: &Model) -> Option<Order> {
        if !matches!(intent, Intent::Insert(_) | Intent::Erase | Intent::Clear) {
            self.message = None;
        }
        match intent {
            Intent::Quit => return Some(Order::Quit),
            Intent::Show(tab) => self.tab = *tab,
            Intent::Turn(right) => {
                let step = if *right { 1 } else { Tab::ALL.len() - 1 };
                self.tab = Tab::ALL[(self.tab.place() + step) % Tab::ALL.len()];
            }
            Intent::Move(by) => self.go(*by, model),
            Intent::Open => match self.row(model) {
                Some(row) => self.mode = Mode::Details { row, from: 0 },
                None => self.say("There is no row here."),
            },
            Intent::Help => self.mode = Mode::Help { from: 0 },
            Intent::Back => self.back(),
            Intent::Do(deed) => return self.begin(*deed, model),
            Intent::Answer(yes) => {
                if let Mode::Confirm { then, .. } = std::mem::take(&mut self.mode)
                    && *yes
                {
                    return self.order(then);
                }
            }
            Intent::Assume(arrived) => {
                if let Mode::Doubt { handoff } = std::mem::take(&mut self.mode) {
                    let assume = Some(if *arrived { Assume::Delivered } else { Assume::NotDelivered });
                    return self.order(Asked::Retry { handoff, assume });
                }
            }
            Intent::Insert(_) | Intent::Erase | Intent::Clear => self.write(intent),
            Intent::Submit => return self.submit(),
        }
        None
    }

    fn say(&mut self, text: &str) {
        self.message = Some(Message { text: text.to_owned(), bad: false });
    }

    fn back(&mut self) {
        if matches!(self.mode, Mode::Input { .. } | Mode::Doubt { .. }) {
            self.say("Nothing was asked for.");
        }
        self.mode = Mode::Browse;
    }

    fn go(&mut self, by: isize, model: &Model) {
        let moved = |from: usize, most: usize| from.saturating_add_signed(by).min(most);
        match &mut self.mode {
            Mode::Details { from, .. } => *from = moved(*from, self.details.len().saturating_sub(1)),
            Mode::Help { from } => *from = moved(*from, super::keys::KEYS.len()),
            _ => {
                let rows = Ui::rows(self.tab, model);
                let place = moved(self.selected(model), rows.len().saturating_sub(1));
                let at = self.tab.place();
                self.last_place[at] = place;
                self.chosen[at] = rows.into_iter().nth(place);
            }
        }
    }

    fn write(&mut self, intent: &Intent) {
        let Mode::Input { text, .. } = &mut self.mode else { return };
        match intent {
            Intent::Insert(more) => {
                let more = if more == " " { more.clone() } else { plain(more) };
                let room = MOST_INPUT.saturating_sub(text.chars().count());
                text.extend(more.chars().take(room));
            }
            Intent::Erase => drop(text.pop()),
            _ => text.clear(),
        }
    }

    fn submit(&mut self) -> Option<Order> {
        let Mode::Input { agent, reason, text } = std::mem::take(&mut self.mode) else { return None };
        let text = text.trim().to_owned();
        match reason {
            None => {
                let reason = Some(if text.is_empty() { REASON.to_owned() } else { text });
                self.mode = Mode::Input { agent, reason, text: String::new() };
                None
            }
            Some(reason) => {
                let focus = Some(text).filter(|focus| !focus.is_empty());
                self.order(Asked::HandOff { agent, reason, focus })
            }
        }
    }

    fn order(&mut self, asked: Asked) -> Option<Order> {
        self.pending = true;
        Some(Order::Ask(asked))
    }

    /// An order was carried out.
    pub fn hear(&mut self, outcome: Outcome) {
        self.pending &= outcome.asked.is_none();
        self.message = Some(match outcome.said {
            Ok(text) => Message { text: plain(&text), bad: false },
            Err(error) => {
                // What the handoff's view did not tell yet.
                if let (true, Some(Asked::Retry { handoff, assume: None })) = (error.code == "in_doubt", outcome.asked)
                {
                    self.mode = Mode::Doubt { handoff };
                }
                let hint = error.hint.map(|hint| format!(". {hint}")).unwrap_or_default();
                let message = error.message.trim_end_matches('.');
                Message { text: plain(&format!("{message} ({}){hint}", error.code)), bad: true }
            }
        });
    }

    fn begin(&mut self, deed: Deed, model: &Model) -> Option<Order> {
        if self.pending && deed != Deed::Jump {
            self.say("The sidecar has still to answer what was asked before.");
            return None;
        }
        let target = Target::of(&self.row(model)?, model);
        let refusal = match (deed, &target.agent, &target.handoff) {
            (Deed::HandOff | Deed::Jump, None, _) => "There is no agent in this row.",
            (Deed::Cancel | Deed::Retry | Deed::Accept, _, None) => "There is no handoff in this row.",
            (Deed::Dismiss, _, _) if target.failure.is_none() => "There is no error in this row.",
            _ => "",
        };
        if !refusal.is_empty() {
            self.say(refusal);
            return None;
        }
        let running = target.agent.as_ref().and_then(|agent| agent.handoff.as_ref()).filter(|_| deed == Deed::HandOff);
        if let Some(running) = running {
            self.say(&format!("This agent is in handoff {} already.", model.short(running)));
            return None;
        }
        let agent = target.agent.as_ref().map(|agent| agent.id.clone()).unwrap_or_default();
        let handoff = target.handoff.unwrap_or_default();
        let of = |what: &str| format!("{what} {}?", model.short(&handoff));
        match deed {
            Deed::HandOff => self.mode = Mode::Input { agent, reason: None, text: String::new() },
            Deed::Jump => match target.agent.and_then(|agent| agent.pane.clone()) {
                Some(pane) => return Some(Order::Jump(pane)),
                None => self.say("This agent has no pane."),
            },
            Deed::Cancel => self.confirm(of("Cancel handoff"), Asked::Cancel(handoff)),
            Deed::Accept => self.confirm(of("Accept the document, as it is, of handoff"), Asked::Accept(handoff)),
            Deed::Dismiss => {
                let failure = target.failure.unwrap_or_default();
                self.confirm(format!("Dismiss the error {}?", target.code), Asked::Dismiss(failure));
            }
            Deed::Retry if model.handoff(&handoff).is_some_and(super::model::Handoff::is_in_doubt) => {
                self.mode = Mode::Doubt { handoff };
            }
            Deed::Retry => return self.order(Asked::Retry { handoff, assume: None }),
        }
        None
    }

    fn confirm(&mut self, question: String, then: Asked) {
        self.mode = Mode::Confirm { question, then };
    }
}

#[cfg(test)]
#[path = "ui_tests.rs"]
mod tests;
