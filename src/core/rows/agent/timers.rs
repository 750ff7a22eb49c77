//! The list of an agent's deadlines. All other code about an agent's time uses this list: when the loop wakes up next,
//! which deadlines are converted after a reboot, and what happens when a deadline has passed.

use super::{Agent, WatchState};
use crate::core::time::{Deadline, Now};

/// One of an agent's deadlines. If several have passed, they are handled in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AgentTimer {
    /// A text has no verdict yet.
    Typing,
    /// It was seen to be gone.
    PendingExit,
    /// It is being started.
    Start,
    /// It is being primed outside a handoff.
    Priming,
    /// Its screen could not be watched.
    Watch,
    /// It is silent: it has sent no event for long.
    Silence,
    /// A dialog is open in its pane while it starts.
    Dialog,
    /// A dialog has been open for so long that the operator is to be told.
    OpenDialog,
    /// It gets no notice of a work item for a while.
    Notices,
    /// It is being shut down.
    Shutdown,
    /// The limit of its CLI has ended.
    Resume,
    /// A text waits for it.
    Queued,
    /// The text that is being typed to it may wait again until then. Nothing happens when this deadline passes.
    MayWaitAgain,
}

/// The list, to be read (`as_ref, iter`) or to be changed (`as_mut, iter_mut, mut`).
macro_rules! timers {
    ($agent:expr, $as:ident, $iter:ident $(, $mut:tt)?) => {{
        let agent = $agent;
        let of_start = agent.start.$as().map(|start| {
            let dialog = start.look_again.$as().map(|due| (AgentTimer::Dialog, due));
            [Some((AgentTimer::Start, & $($mut)? start.deadline)), dialog]
        });
        let of_typing = agent.typing.$as().map(|typing| {
            let queued = typing.queued.$as().map(|queued| (AgentTimer::MayWaitAgain, & $($mut)? queued.deadline));
            [Some((AgentTimer::Typing, & $($mut)? typing.deadline)), queued]
        });
        let looks =
            [(AgentTimer::Watch, & $($mut)? agent.idle_watch.turn), (AgentTimer::Silence, & $($mut)? agent.idle_watch.silence)];
        let looks = looks.into_iter().filter_map(|(timer, look)| match look {
            WatchState::Due(due) => Some((timer, due)),
            WatchState::Off | WatchState::Running(_) => None,
        });
        let others = [
            agent.pending_exit.$as().map(|pending_exit| (AgentTimer::PendingExit, & $($mut)? pending_exit.due)),
            agent.priming_deadline.$as().map(|due| (AgentTimer::Priming, due)),
            agent.alerts.dialog.$as().and_then(|dialog| dialog.due.$as()).map(|due| (AgentTimer::OpenDialog, due)),
            agent.notices.not_before.$as().map(|due| (AgentTimer::Notices, due)),
            agent.shutdown.$as().map(|shutdown| (AgentTimer::Shutdown, & $($mut)? shutdown.deadline)),
            agent.limits.resume_at.$as().map(|due| (AgentTimer::Resume, due)),
        ];
        let queued = agent.queue.$iter().map(|queued| (AgentTimer::Queued, & $($mut)? queued.deadline));
        let of_texts = of_start.into_iter().chain(of_typing).flatten();
        of_texts.chain(others).flatten().chain(looks).chain(queued)
    }};
}

impl Agent {
    fn timers(&self) -> impl Iterator<Item = (AgentTimer, &Deadline)> {
        timers!(self, as_ref, iter).filter(|(timer, _)| self.keeps_time() && *timer != AgentTimer::MayWaitAgain)
    }

    /// The first timer after `after`, in their order, whose deadline has passed; with `None`, the first of all.
    pub(crate) fn next_due(&self, after: Option<AgentTimer>, now: &Now) -> Option<AgentTimer> {
        let due = self.timers().filter(|(timer, deadline)| Some(*timer) > after && deadline.is_due(now));
        due.map(|(timer, _)| timer).min()
    }

    /// All its running deadlines.
    pub(crate) fn deadlines(&self) -> impl Iterator<Item = &Deadline> {
        self.timers().map(|(_, deadline)| deadline)
    }

    /// The same deadlines, to be converted after a reboot, together with those of an agent that has ended, which nobody
    /// handles.
    pub(crate) fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Deadline> {
        timers!(self, as_mut, iter_mut, mut).map(|(_, deadline)| deadline)
    }
}
