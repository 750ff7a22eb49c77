//! The steps of a handoff.

/// Those of a handoff without an acknowledgement, in their order.
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
