//! The steps of the flow, a file each (SPEC 4.3). A step knows what it begins with, what it waits for, and what follows from
//! that; of the other steps it knows the names alone. What every step may be told is in [`Duties`].

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

/// What a step does.
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
