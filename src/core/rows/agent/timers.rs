//! The limits of an agent: one list, from which the loop knows when it wakes up next, by which they are counted anew after a
//! start of the machine, and by which each that is due is minded.

use super::Agent;
use crate::core::time::{Deadline, Now};

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timer {
    /// A text has no verdict yet.
    Typing,
    /// It was seen to be gone.
    Dying,
    /// It is being started.
    Start,
    /// It is being primed outside a handoff.
    Priming,
    /// Its screen could not be watched.
    Watch,
    /// Nothing is heard of its turn.
    Unheard,
    /// A dialog stands in its pane while it starts.
    Dialog,
    /// It is told of no work item for a while.
    Notices,
    /// It is being shut down.
    Shutdown,
    /// A text waits for it.
    Queued,
}

impl Timer {
    /// All of them, in the order in which they are minded when several are due at once.
    pub(crate) const IN_ORDER: [Timer; 10] = [
        Timer::Typing,
        Timer::Dying,
        Timer::Start,
        Timer::Priming,
        Timer::Watch,
        Timer::Unheard,
        Timer::Dialog,
        Timer::Notices,
        Timer::Shutdown,
        Timer::Queued,
    ];
}

/// The list, to be read (`as_ref, iter`) or to be changed (`as_mut, iter_mut, mut`).
macro_rules! timers {
    ($agent:expr, $as:ident, $iter:ident $(, $mut:tt)?) => {{
        let agent = $agent;
        let of_start = agent.start.$as().map(|start| {
            let dialog = start.look_again.$as().map(|due| (Timer::Dialog, due));
            [Some((Timer::Start, & $($mut)? start.deadline)), dialog]
        });
        let others = [
            agent.typing.$as().map(|typing| (Timer::Typing, & $($mut)? typing.deadline)),
            agent.dying.$as().map(|dying| (Timer::Dying, & $($mut)? dying.due)),
            agent.priming_deadline.$as().map(|due| (Timer::Priming, due)),
            agent.look_again.$as().map(|due| (Timer::Watch, due)),
            agent.unheard.$as().map(|due| (Timer::Unheard, due)),
            agent.notices.not_before.$as().map(|due| (Timer::Notices, due)),
            agent.shutdown.$as().map(|shutdown| (Timer::Shutdown, & $($mut)? shutdown.deadline)),
        ];
        let queued = agent.queue.$iter().map(|queued| (Timer::Queued, & $($mut)? queued.deadline));
        of_start.into_iter().flatten().chain(others).flatten().chain(queued)
    }};
}

impl Agent {
    fn timers(&self) -> impl Iterator<Item = (Timer, &Deadline)> {
        timers!(self, as_ref, iter).filter(|_| self.keeps_time())
    }

    /// Whether one of this kind is due.
    pub(crate) fn is_due(&self, timer: Timer, now: &Now) -> bool {
        self.timers().any(|(kind, deadline)| kind == timer && deadline.is_due(now))
    }

    /// Every deadline of it that is running.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = &Deadline> {
        self.timers().map(|(_, deadline)| deadline)
    }

    /// The same, and those that are not minded, to be counted anew.
    pub(crate) fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Deadline> {
        timers!(self, as_mut, iter_mut, mut).map(|(_, deadline)| deadline)
    }
}
