// What another host tells of itself: its agents, handoffs and errors, and what can be asked of it. Its own operator says which
// requests it accepts; a refusal is shown beside the button.

import { api, whyNot } from "./api.js";
import { makeGone, markGone } from "./cards.js";
import { clock, el, keyed, part, say, short, tell, worded } from "./dom.js";
import { action, asking, isInUse, notice, refusals } from "./forms.js";
import { hosts } from "./store.js";
import { ENDS } from "./steps.js";

/** What is fetched for an opened card, and the words for it. */
const KINDS = { agents: "Agents", handoffs: "Handoffs", errors: "Errors" };
const IDS = { agents: "agent_id", handoffs: "handoff_id", errors: "error_id" };

const addressOf = (host, kind) => `/api/hosts/${encodeURIComponent(host)}/${kind}`;
const nameOf = (thing) => `${thing.persona || "anonymous"} ${short(thing.agent_id)}`;

/** Sends a request to a host, and gives its result. */
const askHost = async (host, kind, fields) => (await api(addressOf(host, "requests"), { v: 1, kind, ...fields })).result ?? {};

/** Whether a host can be asked for something: it is another one, and it answers at this moment. */
function canBeAsked(host) {
  const known = hosts.get(host);
  return Boolean(known) && !known.own && known.state === "live";
}

function handOff(host, id) {
  return asking({
    opens: "Hand off…",
    name: "open",
    go: "Hand off",
    fields: [
      { name: "reason", label: "Reason", required: true, spell: true },
      { name: "focus", label: "Focus (what the document should concentrate on)", spell: true },
    ],
    send: async (fields) => {
      const begun = await askHost(host, "handoff", { agent_id: id, ...fields });
      notice(`Handoff ${short(begun.handoff_id)} has begun on ${host}.`);
    },
  });
}

function send(host, id) {
  return asking({
    opens: "Send…",
    name: "send",
    go: "Send",
    fields: [{ name: "text", label: `Text that tasuki types to the agent on ${host} (Ctrl+Enter sends it)`, kind: "area", required: true, most: 100000 }],
    send: async ({ text }) => {
      const sent = await askHost(host, "agent_send", { agent_id: id, text });
      notice(`The text for ${short(id)} on ${host}: ${worded(sent.verdict)}${sent.reason ? ` (${sent.reason})` : ""}.`);
    },
  });
}

const line = () => [el("span", { class: "what", "data-part": "what" }), el("span", { class: "state", "data-part": "state" }), el("span", { class: "faint", "data-part": "about" })];

/** An entry of a list. */
function entry(...parts) {
  const node = el("li", {}, ...parts);
  node.append(makeGone(node, () => stays(node) || remove(node)));
  return node;
}

/** Whether an entry that the host no longer tells of stays, for something that is typed in it. */
function stays(node) {
  const is = isInUse(node);
  if (is) markGone(node, true);
  return is;
}

function remove(node) {
  const list = node.parentElement;
  if (node.contains(document.activeElement)) list.focus();
  node.remove();
  tellNone(list);
}

function makeAgent(host, agent) {
  const forms = [handOff(host, agent.agent_id), send(host, agent.agent_id)];
  return entry(el("div", { class: "row" }, ...line(), ...forms.map(({ opener }) => opener)), ...forms.map(({ form }) => form));
}

function fillAgent(host, node, agent) {
  tell(part(node, "what"), nameOf(agent));
  say(node, "state", agent.state);
  part(node, "state").className = `state ${agent.state}`;
  const context = agent.context == null ? "" : `context ${agent.context} %`;
  say(node, "about", [agent.profile, context, agent.handoff_id && `in handoff ${short(agent.handoff_id)}`].filter(Boolean).join("  "));
  const isShut = !canBeAsked(host) || !agent.persona;
  for (const [name, words] of [["open", "Hand off"], ["send", "Send a text to"]]) {
    part(node, name).disabled = isShut || (name === "open" && Boolean(agent.handoff_id));
    part(node, name).setAttribute("aria-label", `${words} ${nameOf(agent)} on ${host}`);
  }
}

function makeHandoff(host, handoff) {
  const says = refusals();
  const id = handoff.handoff_id;
  const work = async () => {
    await askHost(host, "handoff_cancel", { handoff_id: id });
    notice(`Handoff ${short(id)} on ${host} is cancelled.`);
  };
  const cancel = action("Cancel", { name: "cancel", says, work, question: () => `Cancel handoff ${short(id)} on ${host}?` });
  return entry(el("div", { class: "row" }, ...line(), cancel), says);
}

function fillHandoff(host, node, handoff) {
  tell(part(node, "what"), `${handoff.persona || "anonymous"} ${short(handoff.handoff_id)}`);
  say(node, "state", handoff.step);
  part(node, "state").className = `state ${ENDS.includes(handoff.step) ? handoff.step : "running"}`;
  const ways = [handoff.from && `from ${handoff.from}`, handoff.to && `to ${handoff.to}`, handoff.error && worded(handoff.error)];
  say(node, "about", [handoff.since && `since ${clock(handoff.since)}`, ...ways].filter(Boolean).join("  "));
  const cancel = part(node, "cancel");
  cancel.hidden = ENDS.includes(handoff.step);
  cancel.disabled = !canBeAsked(host);
  cancel.setAttribute("aria-label", `Cancel handoff ${short(handoff.handoff_id)} on ${host}`);
}

const makeError = () => entry(el("div", { class: "row" }, ...line()));

function fillError(host, node, error) {
  tell(part(node, "what"), worded(error.code));
  say(node, "state", "");
  say(node, "about", [clock(error.at), short(error.error_id)].filter(Boolean).join("  "));
}

const MAKE = { agents: makeAgent, handoffs: makeHandoff, errors: makeError };
const FILL = { agents: fillAgent, handoffs: fillHandoff, errors: fillError };

/** The body of a host's card. */
export function makeRoster(host) {
  const listed = ([kind, words]) => [
    el("h4", {}, words),
    el("ul", { class: "entries", "data-part": kind, "aria-label": `${words} on ${host}`, tabindex: -1 }),
    el("p", { class: "faint", "data-part": `no-${kind}` }, "None."),
  ];
  return [...Object.entries(KINDS).flatMap(listed), el("p", { class: "says", role: "alert", "data-part": "unread", hidden: true })];
}

/** Fetches what the host has last told of itself, and shows it. */
export async function updateRoster(card, { host }) {
  try {
    const all = await Promise.all(Object.keys(KINDS).map((kind) => api(addressOf(host, kind))));
    Object.keys(KINDS).forEach((kind, place) => show(card, host, kind, all[place][kind]));
    say(card, "unread", "");
  } catch (failure) {
    say(card, "unread", whyNot(failure));
  }
}

function show(card, host, kind, things) {
  const make = (thing) => MAKE[kind](host, thing);
  const fill = (node, thing) => {
    markGone(node, false);
    FILL[kind](host, node, thing);
  };
  keyed(part(card, kind), things, (thing) => thing[IDS[kind]], make, fill, stays);
  tellNone(part(card, kind));
}

/** Hides a list without entries; then the line after it says that there are none. */
function tellNone(list) {
  const isEmpty = !list.firstElementChild;
  // A hidden element can't keep the focus.
  if (isEmpty && list === document.activeElement) list.closest(".card")?.focus();
  list.hidden = isEmpty;
  list.nextElementSibling.hidden = !list.hidden;
}
