// The steps of a handoff, in their order, and its ends.

export const STEPS = ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading", "acknowledging"];
export const ENDS = ["done", "failed", "cancelled"];

/**
 * The steps that a handoff has passed or is at, each with when it was entered and left. After a retry or a change, the steps
 * that follow the one that was entered again are from the earlier try, and don't count.
 */
export function passedSteps(handoff) {
  const passed = new Map();
  for (const one of handoff.steps || []) {
    const place = STEPS.indexOf(one.step);
    if (place < 0) continue;
    for (const step of STEPS.slice(place + 1)) passed.delete(step);
    passed.set(one.step, one);
  }
  return passed;
}

/** Whether it waits for a person to accept its document. */
export const isHeld = (handoff) => handoff.step === "checking" && Boolean(handoff.held_since);

/** When it was asked for. */
export const begun = (handoff) => handoff.created_at || (handoff.steps[0] || {}).entered_at || "";
