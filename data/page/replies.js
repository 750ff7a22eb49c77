// The parts of a handoff's card in which a person decides: about its document, about a successor's questions, about a
// failure, and about its publishing.

import { ask } from "./api.js";
import { publishOf, successorOf, successors } from "./agents.js";
import { clock, counted, el, keyed, part, say, short, webAddress, webLink, worded } from "./dom.js";
import { action, asking, press, refusals, shortcut } from "./forms.js";
import { ENDS, STEPS, isHeld } from "./steps.js";
import { handoffs, touch } from "./store.js";

/** Whether its successor waits for answers, or some of its questions have got none. */
const asks = (handoff) => (handoff.step === "acknowledging" && handoff.ack?.status === "needs_clarification") || areSomeLeft(handoff) || waitsAfterFailure(handoff);

/** Whether the last answers have left questions open. */
const areSomeLeft = ({ step, ack }) => step === "acknowledging" && ack?.status !== "needs_clarification" && ack?.unanswered?.length > 0;

/** Whether a step has failed although the successor waits for an answer: an answer continues the handoff. */
const waitsAfterFailure = ({ step, error, ack }) =>
  step === "failed" && ((error?.code === "ack_timeout" && ack?.questions?.length > 0) || (error?.code === "ack_rejected" && ack?.status === "environment_issue"));

/** Whether a person must say if the last text arrived: only the pane shows it. */
const inDoubt = (error) => error?.code === "unconfirmed" || (error?.code === "priming_failed" && error.step === "priming");

const faultsOf = (handoff) => {
  const count = handoff?.faults?.length ?? 0;
  return count ? `the checks found ${counted(count, "fault")}` : "the checks found no fault";
};

/** A handoff in a question. */
const named = (id) => ["handoff", short(id), handoffs.has(id) && `(${handoffs.get(id).persona_slug})`].filter(Boolean).join(" ");

/** Sends a request about a handoff, and renews its card. */
async function about(id, kind, more = {}) {
  await ask(kind, { handoff_id: id, ...more });
  touch("handoffs", id);
}

/** A small form with one field, which is always shown. */
function oneField(name, words, go, send) {
  const says = refusals();
  const button = el("button", { type: "submit" }, go);
  const input = el("input", { name, required: true, maxlength: 4000, autocomplete: "off", spellcheck: "true" });
  const onsubmit = (event) => {
    event.preventDefault();
    press(button, says, async () => {
      await send(input.value.trim());
      input.value = "";
    });
  };
  return el("form", { onsubmit }, el("label", {}, words, input), el("div", { class: "row" }, button), says);
}

/** The banner of a handoff that waits for a person to accept its document. */
export function makeHeld(id) {
  const says = refusals();
  const question = () => {
    const handoff = handoffs.get(id);
    return `Accept the document of ${named(id)}, ${handoff?.faults?.length ? "although" : "in which"} ${faultsOf(handoff)}?`;
  };
  const accept = action("Accept the document", { name: "handoff_accept", key: "a", main: true, question, says, work: () => about(id, "handoff_accept") });
  const cancel = action("Cancel the handoff", { name: "handoff_cancel", key: "c", question: () => `Cancel ${named(id)}? Its agent keeps running.`, says, work: () => about(id, "handoff_cancel") });
  const rework = oneField("note", "What the agent should change", "Rework", (note) => about(id, "handoff_rework", { note }));
  rework.dataset.part = "held-rework";
  rework.querySelector("input").dataset.key = "w";
  return el(
    "div",
    { class: "held", hidden: true, "data-part": "held", role: "group", "aria-label": "Your decision" },
    el("p", { role: "status", "data-part": "held-says" }),
    el("div", { class: "row" }, accept, cancel),
    rework,
    says,
  );
}

export function updateHeld(card, handoff) {
  const held = part(card, "held");
  const isNow = isHeld(handoff);
  say(held, "held-says", isNow ? `Waits for you since ${clock(handoff.held_since)}: ${faultsOf(handoff)}.` : "");
  if (!isNow && held.contains(document.activeElement)) card.focus();
  if (isNow && held.hidden) part(card, "reading").open = true;
  // A document that no agent has written can't be sent back.
  part(held, "held-rework").hidden = ["salvage", "provided"].includes(handoff.author);
  held.hidden = !isNow;
}

/** The form for answers to a successor's questions before it begins. */
export function makeAnswers(id) {
  const says = refusals();
  const go = el("button", { class: "main", type: "submit" }, "Answer");
  const questions = el("div", { "data-part": "questions", tabindex: -1 });
  const revised = el("textarea", { name: "document", rows: 8 });
  const send = () => {
    const clarification = (input) => ({ question: input.dataset.question, answer: input.value.trim() });
    const clarifications = [...questions.querySelectorAll("input")].map(clarification);
    return about(id, "clarify", { clarifications, ...(revised.value.trim() ? { document: { text: revised.value } } : {}) });
  };
  const more = el("details", { class: "more" }, el("summary", {}, "More options"), el("label", {}, "The whole document, brought up to date", revised));
  const onsubmit = (event) => {
    event.preventDefault();
    press(go, says, send);
  };
  return el("form", { hidden: true, "data-part": "answers", "aria-label": "Questions of the successor", onsubmit }, questions, more, el("div", { class: "row" }, go), says);
}

/** The form to continue without a successor's acknowledgement. */
export function makeOverride(id) {
  const why = "Why the handoff may continue without an acknowledgement";
  const form = oneField("override", why, "Continue without it", (reason) => about(id, "ack_override", { reason }));
  form.dataset.part = "override";
  form.hidden = true;
  return form;
}

export function updateReplies(card, handoff) {
  const { ack } = handoff;
  const isAsking = asks(handoff);
  // A successor that asks for clarification without a question names its problem in `understanding`.
  const open = areSomeLeft(handoff) ? ack.unanswered : ack?.questions;
  const asked = isAsking ? (open.length ? open : [ack.understanding || "What is not clear?"]) : [];
  const make = ({ question }) => {
    const input = el("input", { name: "answer", required: true, maxlength: 4000, autocomplete: "off", "data-question": question, ...shortcut("q") });
    return el("label", {}, question, input);
  };
  const numbered = asked.map((question, number) => ({ question, id: `${number} ${question}` }));
  keyed(part(card, "questions"), numbered, (one) => one.id, make, () => {});
  leave(card, "answers", !isAsking);
  const waits = ["reading", "acknowledging"].includes(handoff.step);
  const timedOut = handoff.step === "failed" && handoff.error?.code === "ack_timeout";
  leave(card, "override", !(ack && (waits || timedOut)));
}

/** Hides a part or shows it. If a hidden part had the focus, the card gets it. */
function leave(card, name, isHidden) {
  const node = part(card, name);
  if (isHidden && !node.hidden && node.contains(document.activeElement)) card.focus();
  if (node.hidden !== isHidden) node.hidden = isHidden;
}

/** The buttons of a handoff, as far as they are possible. */
export function makeChoices(id) {
  const says = refusals();
  const one = (words, name, key, kind, more, question) => action(words, { name, key, question: () => question(named(id)), says, work: () => about(id, kind, more) });
  const successor = el("select", { name: "successor", "aria-label": "Who takes over at a retry" });
  successor.addEventListener("focus", () => fillSuccessors(successor, id));
  const retry = () => about(id, "handoff_retry", successor.value ? { successor: successorOf(successor.value) } : {});
  return [
    el(
      "div",
      { class: "row" },
      one("Accept the document", "accept", "a", "handoff_accept", {}, (it) => `Accept the document of ${it} as it is? The agent may still be writing.`),
      one("Cancel", "cancel", "c", "handoff_cancel", {}, (it) => `Cancel ${it}? Its agent keeps running.`),
      action("Retry", { name: "retry", key: "r", says, work: retry }),
      el("label", { class: "check", "data-part": "retry-with" }, "with", successor),
      one("It arrived: continue", "arrived", "y", "handoff_retry", { assume: "delivered" }, (it) => `Has the last text of ${it} arrived? The handoff then continues, and the text is not typed again.`),
      one("It did not arrive: type it again", "lost", "t", "handoff_retry", { assume: "not_delivered" }, (it) => `Type the last text of ${it} again? If it has arrived after all, the agent gets it twice.`),
      one("Abandon", "abandon", "x", "handoff_abandon", {}, (it) => `Close the failed ${it} for good?`),
    ),
    says,
  ];
}

function fillSuccessors(select, id) {
  const chosen = select.value;
  const { agent_id: agent, persona_slug: persona } = handoffs.get(id) ?? {};
  const known = [["", "the successor as before"], ["new", "a new agent"], ...successors(agent, persona).slice(1)];
  select.replaceChildren(...known.map(([value, words]) => el("option", { value }, words)));
  select.value = known.some(([value]) => value === chosen) ? chosen : "";
}

export function makePublishing(id) {
  const says = refusals();
  const one = (words, name, key, more, question) => action(words, { name, key, question: () => question(`the document of ${named(id)}`), says, work: () => about(id, "publish", more) });
  const at = asking({
    opens: "Publish at…",
    name: "publish-at",
    go: "Publish",
    fields: [{ name: "to", label: "Where (owner/repo#42, or gist)", required: true }],
    send: async ({ to }) => about(id, "publish", { to: publishOf(to) }),
  });
  return [
    el("p", { "data-part": "publish" }),
    el(
      "div",
      { class: "row" },
      one("Publish now", "publish-now", "p", {}, (it) => `Publish ${it} now?`),
      one("It was published", "is-there", "", { assume: "published" }, (it) => `Was ${it} published? tasuki then does not publish it again.`),
      one("Publish without the credentials", "redacted", "p", { as: "redacted" }, (it) => `Publish ${it} without the credentials that tasuki has found in it?`),
      one("Publish as it is", "as-is", "", { as: "as_is" }, (it) => `Publish ${it} with the credentials that tasuki has found in it?`),
      one("It was not published: publish it", "is-not", "", { assume: "not_published" }, (it) => `Publish ${it} once more? Look first if it is already there.`),
      at.opener,
    ),
    says,
    at.form,
  ];
}

export function updateChoices(card, handoff) {
  const { step, error, publish } = handoff;
  const failed = step === "failed";
  const doubt = failed && inDoubt(error);
  const mayAccept = (name) => name === "writing" || name === "checking";
  const held = isHeld(handoff);
  const shown = {
    accept: !held && (mayAccept(step) || (failed && mayAccept(error?.step))),
    cancel: !held && !ENDS.includes(step) && STEPS.indexOf(step) < STEPS.indexOf("ending"),
    retry: failed && !doubt,
    "retry-with": failed && !doubt,
    arrived: doubt,
    lost: doubt,
    abandon: failed,
    "publish-now": publish?.state === "failed" || publish?.state === "retrying",
    "publish-at": Boolean(handoff.recorded_at) && [undefined, "published", "failed"].includes(publish?.state),
    redacted: publish?.state === "held",
    "as-is": publish?.state === "held",
    "is-there": publish?.state === "in_doubt",
    "is-not": publish?.state === "in_doubt",
  };
  for (const [name, is] of Object.entries(shown)) leave(card, name, !is);
  const select = part(card, "retry-with").querySelector("select");
  if (failed && !select.options.length) fillSuccessors(select, handoff.handoff_id);
  updatePublish(part(card, "publish"), publish);
}

function updatePublish(line, publish) {
  line.hidden = !publish;
  if (!publish) return;
  const href = publish.url ? webAddress(publish.url) : null;
  const why = publish.error ? `: ${publish.error.message}` : "";
  line.replaceChildren(`Publishing: ${worded(publish.state)}`, publish.url ? " at " : why, href ? webLink(href, publish.url) : publish.url ?? "");
}
