// What the page knows: the views of agents, handoffs and work items, the errors, and the other hosts of the fleet. Changes that come at the same time are
// fetched together, each view by itself; only what has changed is drawn.

import { Refused, api } from "./api.js";

const MOST = { agents: 500, handoffs: 300, work: 500, errors: 100 };
/** The longest list that the server gives. */
const MOST_GIVEN = 10000;
/** How many changed views are fetched one by one; above this, the lists are fetched. */
const MOST_DIRTY = 100;
/** How many are fetched at the same time. */
const AT_ONCE = 6;
const TOGETHER_MS = 40;

export const agents = new Map();
export const handoffs = new Map();
export const items = new Map();
export const errors = new Map();
export const hosts = new Map();

/** Whether the server was started for all hosts of the fleet; it marks the page then. */
export const showsHosts = document.documentElement.dataset.allHosts !== undefined;

const KINDS = {
  agents: { map: agents, id: "agent_id", list: () => `/api/agents?all=true&limit=${MOST.agents}` },
  handoffs: { map: handoffs, id: "handoff_id", list: () => `/api/handoffs?limit=${MOST.handoffs}` },
  work: { map: items, id: "item_id", list: () => `/api/work?limit=${MOST.work}${withFinished ? "&all=true" : ""}` },
  errors: { map: errors, id: "error_id", list: () => `/api/errors?limit=${MOST.errors + 1}` },
  ...(showsHosts ? { hosts: { map: hosts, id: "host", list: () => "/api/hosts" } } : {}),
};
/** In place of an id: the whole list of its kind. */
export const ALL = "all";
/** The kinds whose lists are fetched whole. */
const LISTED = ["errors", "hosts"];
/** What links have led to, by kind: it need not be in a list. */
const linked = new Map();
const MOST_LINKED = 20;
const watchers = [];
const dirty = new Set();
let flushing = null;
let withFinished = false;
/** Whether there are older errors than those that are shown. */
let hasOlder = false;

export const mapOf = (kind) => KINDS[kind]?.map;
export const lives = (agent) => !agent.ended_at && agent.state !== "ended" && agent.state !== "lost";
export const nameOf = (agent) => agent.persona_slug || "anonymous";
export const hasOlderErrors = () => hasOlder;
export const isFinished = (item) => item.status === "done" || item.status === "withdrawn";

/** The name of an agent in a few words; of a person too. */
export function whoIs(id) {
  if (!id || id === "human") return id ? "you" : "";
  const agent = agents.get(id);
  return agent ? `${nameOf(agent)} ${id.slice(0, 8)}` : id.slice(0, 8);
}

/** Calls this function with the kinds that have changed. */
export const onChange = (draw) => watchers.push(draw);
export const changed = (...kinds) => watchers.forEach((draw) => draw(new Set(kinds)));

async function load(kind) {
  const { map, id, list } = KINDS[kind];
  const all = await api(list()).catch((failure) => noFleet(kind, failure));
  // One more than is shown was asked for.
  if (kind === "errors") hasOlder = all.splice(MOST.errors).length > 0;
  const before = new Map(map);
  map.clear();
  for (const one of all) {
    const known = before.get(one[id]);
    // The same object again: its card need not be drawn again.
    map.set(one[id], known && JSON.stringify(known) === JSON.stringify(one) ? known : one);
  }
  const others = [...(linked.get(kind) ?? [])].filter((one) => !map.has(one));
  await Promise.all(others.map((one) => renew(kind, one).catch(() => linked.get(kind).delete(one))));
}

/** A home that has joined no fleet has no hosts; every other failure is one. */
function noFleet(kind, failure) {
  if (kind === "hosts" && failure.status === 404) return [];
  throw failure;
}

export async function loadAll() {
  await Promise.all(Object.keys(KINDS).map(load));
  changed(...Object.keys(KINDS));
}

/** Whether finished work items are loaded too. */
export async function showFinished(are) {
  withFinished = are;
  await load("work");
  changed("work");
}

/** Fetches one view that is not in the list, for instance for a link to it. */
export async function fetchOne(kind, id) {
  const one = await api(`/api/${kind}/${encodeURIComponent(id)}`);
  put(kind, one);
  const links = linked.get(kind) ?? new Set();
  linked.set(kind, links.add(id));
  if (links.size > MOST_LINKED) links.delete(links.values().next().value);
}

/**
 * Gives the id of an error that is not shown yet, from its beginning. From then on the page shows twice as many errors as it
 * takes to reach this one: errors that come must not push it out at once.
 */
export async function fetchError(start) {
  const all = await api(`/api/errors?limit=${MOST_GIVEN}`);
  const found = all.filter((error) => error.error_id.startsWith(start));
  if (found.length > 1) throw new Refused(`The ids of ${found.length} errors begin with ${start}.`);
  if (!found.length) throw new Refused(all.length < MOST_GIVEN ? "This error was dismissed." : `This error was dismissed, or ${MOST_GIVEN} others are newer.`);
  MOST.errors = Math.max(MOST.errors, Math.min(2 * (all.indexOf(found[0]) + 1), MOST_GIVEN - 1));
  await load("errors");
  return found[0].error_id;
}

function put(kind, one) {
  const { map, id } = KINDS[kind];
  map.set(one[id], one);
  if (map.size <= 2 * MOST[kind]) return;
  // The page may be open for days: what has ended longest ago is forgotten.
  const over = { agents: (agent) => !lives(agent), handoffs: (handoff) => handoff.step === "done" || handoff.step === "cancelled", work: isFinished };
  for (const [known, thing] of map) {
    if (map.size <= MOST[kind]) break;
    if (over[kind]?.(thing)) map.delete(known);
  }
}

/** Notes that something has changed; changes at the same time are fetched together. */
export function touch(kind, id) {
  if (!id) return;
  dirty.add(`${kind} ${id}`);
  flushing ??= setTimeout(flush, TOGETHER_MS);
}

async function flush() {
  flushing = null;
  const wanted = [...dirty].map((entry) => entry.split(" "));
  dirty.clear();
  const fetches = fetchesOf(wanted);
  const worker = async () => {
    // A view that can't be fetched is fetched at the next change.
    for (let next = fetches.shift(); next; next = fetches.shift()) await next().catch(() => {});
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  changed(...wanted.map(([kind]) => kind));
}

function fetchesOf(wanted) {
  const kinds = [...new Set(wanted.map(([kind]) => kind))];
  const isWhole = (kind) => wanted.length > MOST_DIRTY || LISTED.includes(kind) || wanted.some((one) => one[0] === kind && one[1] === ALL);
  const views = wanted.filter(([kind]) => !isWhole(kind)).map(([kind, id]) => () => renew(kind, id));
  return [...kinds.filter(isWhole).map((kind) => () => load(kind)), ...views];
}

/** The change may be that the view was removed for its age: then it must not be written again. */
async function renew(kind, id) {
  try {
    put(kind, await api(`/api/${kind}/${encodeURIComponent(id)}?old=false`));
  } catch (failure) {
    if (failure.status === 404) KINDS[kind].map.delete(id);
    throw failure;
  }
}
