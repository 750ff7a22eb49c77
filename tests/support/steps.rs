//! The steps of a handoff.

/// The steps of a handoff without an acknowledgement, in their order.
pub(crate) const STEPS: [&str; 11] = [
    "waiting",
    "instructing",
    "writing",
    "checking",
    "recording",
    "ending",
    "starting",
    "priming",
    "briefing",
    "reading",
    "done",
];
