//! The steps of a handoff, one file each; the three ends share `ends`. A step knows how it begins, what it waits for,
//! and which step follows. It never calls another step. [`StepHandler`] is what each step implements. `verdict` and
//! `author_turn` are what several steps share: what follows from the verdict on a text, and from the end of a turn in
//! which the author writes.

mod acknowledging;
mod author_turn;
mod briefing;
pub(crate) mod checking;
mod ending;
mod ends;
mod instructing;
mod priming;
mod reading;
mod recording;
mod starting;
mod verdict;
mod waiting;
pub(crate) mod writing;

pub(super) use verdict::HINT_DOUBT;

use super::handler::StepHandler;
use crate::core::rows::handoff::Step;

pub(super) fn of(step: Step) -> &'static dyn StepHandler {
    match step {
        Step::Waiting => &waiting::Waiting,
        Step::Instructing => &instructing::Instructing,
        Step::Writing => &writing::Writing,
        Step::Checking => &checking::Checking,
        Step::Recording => &recording::Recording,
        Step::Ending => &ending::Ending,
        Step::Starting => &starting::Starting,
        Step::Priming => &priming::Priming,
        Step::Briefing => &briefing::Briefing,
        Step::Reading => &reading::Reading,
        Step::Acknowledging => &acknowledging::Acknowledging,
        Step::Failed => &ends::Failed,
        Step::Done | Step::Cancelled => &ends::Ended,
    }
}
