// Handoffs: each with its steps as they pass, its document, and what a person can do about it.

import { CardList, headline } from "./cards.js";
import { at, clock, cut, described, el, keyed, linkTo, part, rebuild, say, seconds, short, tell } from "./dom.js";
import { matches } from "./filter.js";
import { makeFacts, makeFaults, makeReading, updateFacts, updateFaults, updateReading } from "./reading.js";
import { makeAnswers, makeChoices, makeHeld, makeOverride, makePublishing, updateChoices, updateHeld, updateReplies } from "./replies.js";
import { ENDS, STEPS, begun, isHeld, passedSteps } from "./steps.js";
import { handoffs } from "./store.js";

const TEXTS = ["instruction", "priming", "briefing"];
/** The most characters of a reason in a heading. */
const MOST_REASON = 160;

function body(id) {
  return [
    makeHeld(id),
    el("ol", { class: "steps", "data-part": "steps", "aria-label": "Steps" }),
    el("p", { class: "says", "data-part": "error" }),
    el("p", { "data-part": "hint" }),
    makeAnswers(id),
    makeOverride(id),
    ...makeChoices(id),
    el("p", { class: "mono", "data-part": "document" }),
    el("p", { class: "faint", "data-part": "verdicts" }),
    makeFaults(),
    makeReading(id),
    makeFacts(),
    ...makePublishing(id),
    el("details", { "data-part": "more" }, el("summary", {}, "All details"), el("dl", { class: "faint", "data-part": "fields" })),
  ];
}

function summary(card, handoff) {
  const { step } = handoff;
  tell(part(card, "name"), cut(`${handoff.persona_slug}: ${handoff.reason}`, MOST_REASON));
  say(card, "state", step);
  part(card, "state").className = `state ${ENDS.includes(step) ? step : "running"}`;
  card.classList.toggle("waits", isHeld(handoff));
  const successor = handoff.successor_id ? ` → ${short(handoff.successor_id)}` : "";
  const held = isHeld(handoff) ? "  waits for you" : "";
  say(card, "about", `${short(handoff.handoff_id)}  ${clock(begun(handoff))}  ${short(handoff.agent_id)}${successor}${held}`);
}

function update(card, handoff) {
  updateSteps(part(card, "steps"), handoff);
  const bytes = handoff.bytes ?? handoff.document?.bytes;
  say(card, "document", bytes == null ? "" : `${handoff.file_path} (${bytes} bytes${handoff.bytes == null ? " so far" : ""})`);
  const verdicts = TEXTS.map((name) => [name, handoff.verdicts?.[name]]).filter(([, one]) => one);
  say(card, "verdicts", verdicts.map(([name, one]) => `${name} ${one.verdict}${one.reason ? ` (${one.reason})` : ""}`).join(", "));
  say(card, "error", handoff.error?.message);
  say(card, "hint", handoff.error?.hint);
  updateHeld(card, handoff);
  updateFaults(part(card, "faults"), handoff);
  updateReading(part(card, "reading"), handoff);
  updateFacts(card, handoff);
  updateChoices(card, handoff);
  updateReplies(card, handoff);
  updateFields(part(card, "fields"), handoff);
}

function updateFields(list, handoff) {
  const { focus, tasks, author, warnings, deadline, ack } = handoff;
  const shown = [handoff.agent_id, handoff.successor_id, focus, tasks, author, warnings, deadline, ack];
  rebuild(list, shown, () =>
    described([
      ["handoff", [handoff.handoff_id]],
      ["agent", [linkTo("agents", handoff.agent_id, handoff.agent_id)]],
      ["successor", [handoff.successor_id && linkTo("agents", handoff.successor_id, handoff.successor_id)]],
      ["reason", [handoff.reason]],
      ["focus", [focus]],
      ["tasks", tasks || []],
      ["author", [author]],
      ["the step's limit", [deadline && clock(deadline)]],
      ["warnings", warnings || []],
      ["acknowledgement", [ack?.status, ack?.understanding, ack?.starting_from && `starting from ${ack.starting_from}`]],
    ]),
  );
}

function updateSteps(list, handoff) {
  const entered = passedSteps(handoff);
  const wanted = STEPS.filter((step) => entered.has(step) || step !== "acknowledging" || handoff.ack);
  const stoppedAt = handoff.error?.step;
  const show = (node, step) => {
    const seen = entered.get(step);
    let state = "";
    if (stoppedAt === step) state = "stopped";
    else if (handoff.step === step) state = "here";
    else if (seen?.left_at) state = "passed";
    const took = state === "passed" ? ` ${seconds(seen.entered_at, seen.left_at)}` : "";
    tell(node, `${step}${took}`);
    node.className = state;
    node.dataset.step = step;
    if (state === "here") node.setAttribute("aria-current", "step");
    else node.removeAttribute("aria-current");
  };
  keyed(list, wanted, (step) => step, () => el("li"), show);
}

/** What runs or has failed stands first, and opens by itself. */
const opens = (handoff) => handoff.step !== "done" && handoff.step !== "cancelled";

const list = new CardList("handoffs", { idOf: (handoff) => handoff.handoff_id, body, summary, update, opens });

/** Draws the handoffs, those that run or have failed first, then the newest. */
export function drawHandoffs() {
  const all = [...handoffs.values()];
  const shown = all.filter((handoff) => matches("handoffs", handoff));
  shown.sort((left, right) => opens(right) - opens(left) || (begun(left) < begun(right) ? 1 : -1));
  list.draw([{ list: at("handoffs"), things: shown }]);
  headline("handoffs-title", "Handoffs", shown.length, all.length);
  at("no-handoffs").hidden = all.length > 0;
  at("no-handoffs-shown").hidden = shown.length > 0 || all.length === 0;
}
