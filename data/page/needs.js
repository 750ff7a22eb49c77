// What needs a person, from all agents, handoffs and work items in one list; and its length in the page's title.

import { api } from "./api.js";
import { at, clock, el, keyed, linkTo, part, say, tell, worded } from "./dom.js";

/** After an event, the list is fetched once things are quiet, and at the latest after the second time. */
const QUIET_MS = 300;
const LATEST_MS = 2000;
const MOST_SHOWN = 50;

/** Whether this server has the list. */
let isKnown = true;
let waiting = null;
let since = 0;

const TARGETS = [["handoff_id", "handoffs"], ["item_id", "work"], ["agent_id", "agents"], ["error_id", "errors"]];

/** Where an entry leads: a handoff, a work item, an agent or an error. */
const targetOf = (need) => TARGETS.map(([field, kind]) => [kind, need[field]]).find(([, id]) => id);

/** Fetches the list soon; events that come close together are answered by one fetch. */
export function touchNeeds() {
  if (!isKnown) return;
  const now = performance.now();
  if (waiting === null) since = now;
  clearTimeout(waiting);
  waiting = setTimeout(fetchNeeds, Math.max(0, Math.min(QUIET_MS, since + LATEST_MS - now)));
}

/** Fetches the list now, after the page has connected. */
export function loadNeeds() {
  isKnown = true;
  return fetchNeeds();
}

async function fetchNeeds() {
  clearTimeout(waiting);
  waiting = null;
  try {
    const said = await api("/api/needs");
    draw(Array.isArray(said) ? said : said.needs);
  } catch (failure) {
    if (failure.status !== 404) return;
    isKnown = false;
    draw([]);
  }
}

function make(need) {
  const [kind, id] = targetOf(need) ?? [];
  const words = el("span", { class: "what", "data-part": "what" });
  const link = kind ? linkTo(kind, id, words) : words;
  return el("li", {}, link, el("span", { "data-part": "said" }), el("span", { "data-part": "hint" }), el("span", { class: "faint", "data-part": "since" }), el("code", { "data-part": "command" }));
}

function fill(node, need) {
  tell(part(node, "what"), [worded(need.what), need.persona_slug].filter(Boolean).join(": "));
  say(node, "said", need.said);
  say(node, "hint", need.hint);
  say(node, "since", need.since && `since ${clock(need.since)}`);
  say(node, "command", need.command);
}

function draw(needs) {
  for (const id of ["needs", "to-needs"]) at(id).hidden = !isKnown;
  // Several errors may be about the same handoff or agent.
  const idOf = (need) => [need.what, ...(targetOf(need) ?? [need.said]), need.error_id].join(" ");
  keyed(at("needs-list"), needs.slice(0, MOST_SHOWN), idOf, make, fill);
  tell(at("needs-title"), `Needs you (${needs.length})`);
  at("no-needs").hidden = needs.length > 0;
  const title = needs.length ? `(${needs.length}) tasuki` : "tasuki";
  if (document.title !== title) document.title = title;
}
