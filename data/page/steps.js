// The steps of a handoff, in their order, and its ends.

export const STEPS = ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading", "acknowledging"];
export const ENDS = ["done", "failed", "cancelled"];

/** Whether it waits for a person to accept its document. */
export const isHeld = (handoff) => handoff.step === "checking" && Boolean(handoff.held_since);

/** When it was asked for. */
export const begun = (handoff) => handoff.created_at || (handoff.steps[0] || {}).entered_at || "";
