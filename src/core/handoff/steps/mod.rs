//! The steps of a handoff, one file each. A step knows what it begins with, what it waits for, and which step follows;
//! it knows other steps only by name. [`Duties`] lists everything that a step may be notified of.

mod acknowledging;
mod briefing;
mod ending;
mod instructing;
mod over;
mod priming;
mod reading;
mod recording;
mod starting;
mod texts;
mod waiting;
pub(crate) mod writing;

use super::duties::Duties;
use crate::core::rows::handoff::Step;

pub(super) fn of(step: Step) -> &'static dyn Duties {
    match step {
        Step::Waiting => &waiting::Waiting,
        Step::Instructing => &instructing::Instructing,
        Step::Writing => &writing::Writing,
        Step::Recording => &recording::Recording,
        Step::Ending => &ending::Ending,
        Step::Starting => &starting::Starting,
        Step::Priming => &priming::Priming,
        Step::Briefing => &briefing::Briefing,
        Step::Reading => &reading::Reading,
        Step::Acknowledging => &acknowledging::Acknowledging,
        Step::Failed => &over::Failed,
        Step::Done | Step::Cancelled => &over::Over,
    }
}
