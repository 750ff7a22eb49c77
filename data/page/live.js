// The connection to the server: the events of the journal, and the sidecar's heartbeat.

import { WRONG, isOurs, session } from "./api.js";
import { at, clock, short, tell } from "./dom.js";
import { loadNeeds, touchNeeds } from "./needs.js";
import { ALL, agents, loadAll, nameOf, touch } from "./store.js";

const SILENCE_MS = 45000;
/** How often the page checks whether a sidecar lives. */
const PULSE_MS = 5000;
/** A heartbeat that is older says that no request is answered; commands have the same limit. */
const PULSE_LIMIT_MS = 15000;

let lastSeen = null;
/** Why requests would not be carried out; null while a sidecar lives. */
let dead = null;
/** Called when the page has loaded everything for the first time. */
let loaded = () => {};

function heard(event) {
  if (event.name === "reset") return Promise.all([loadAll(), loadNeeds()]);
  if (event.name === "host") return touch("hosts", ALL);
  if (event.name === "changed") return seeChange(JSON.parse(event.data));
  if (event.id === null) return undefined;
  lastSeen = event.id;
  const line = JSON.parse(event.data);
  touch("handoffs", line.handoff_id);
  touch("agents", line.agent_id === "human" ? null : line.agent_id);
  touch("agents", line.successor_id);
  touch("work", line.item_id);
  if (line.item_id) touch("work", line.parent_id);
  if (line.error_id) touch("errors", ALL);
  touchNeeds();
  if (line.type === "handoff.step" && line.document_bytes == null) {
    const agent = agents.get(line.agent_id);
    tell(at("passing"), `${agent ? nameOf(agent) : short(line.agent_id)}: ${line.step}`);
  }
  return undefined;
}

/** A view or an error has changed without a line of the journal; without an id, any of its list may have. */
function seeChange({ kind, id }) {
  touch(kind, kind === "errors" ? ALL : id ?? ALL);
  touchNeeds();
}

/** Reads the complete events of a text that comes in pieces; returns the incomplete rest. */
function takeEvents(buffer) {
  const blocks = buffer.split("\n\n");
  const rest = blocks.pop();
  for (const block of blocks) {
    const event = { id: null, name: "message", data: "" };
    for (const line of block.split("\n")) {
      if (line.startsWith("id: ")) event.id = line.slice(4);
      else if (line.startsWith("event: ")) event.name = line.slice(7);
      else if (line.startsWith("data: ")) event.data += line.slice(6);
    }
    if (event.data) heard(event);
  }
  return rest;
}

async function listen() {
  const abort = new AbortController();
  let silence = setTimeout(() => abort.abort(), SILENCE_MS);
  try {
    if (!(await isOurs(session.token, "token"))) return session.locked(WRONG);
    const headers = { Authorization: `Bearer ${session.token}` };
    if (lastSeen !== null) headers["Last-Event-ID"] = lastSeen;
    const response = await fetch("/api/events", { headers, cache: "no-store", signal: abort.signal });
    if (response.status === 401) return session.locked(WRONG);
    if (!response.ok) return undefined;
    const first = lastSeen === null;
    connected(true);
    loadNeeds();
    // After a while without a connection too: not every change has a line that comes now.
    await loadAll();
    if (first) loaded();
    loaded = () => {};
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return undefined;
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE_MS);
      rest = takeEvents(rest + value);
    }
  } finally {
    clearTimeout(silence);
  }
}

function connected(is) {
  session.proven = is;
  if (is) feelPulse();
  else tellLink();
}

/** Shows "live" only with a server and a sidecar: without a server no events come, without a sidecar no requests are done. */
function tellLink() {
  let said = "live";
  if (!session.proven) said = "not connected; trying again";
  else if (dead) said = dead;
  at("link").className = said === "live" ? "live" : "";
  tell(at("link-text"), said);
}

/**
 * Finds out whether a sidecar lives, as every command does. The age of its heartbeat is counted by the server's clock, which is
 * in each of its answers: the browser may be on a machine whose clock is another one.
 */
async function feelPulse() {
  if (!session.proven || !session.token) return;
  const old = "this page shows the last known state";
  const before = dead;
  try {
    const response = await fetch("/api/sidecar", { headers: { Authorization: `Bearer ${session.token}` }, cache: "no-store" });
    const { heartbeat, problem } = response.ok ? await response.json() : {};
    const age = Math.abs(Date.parse(response.headers.get("Date")) - new Date(heartbeat));
    if (response.status === 404) dead = `no sidecar runs; ${old}. Start one: tasuki run`;
    else if (response.ok && age > PULSE_LIMIT_MS) dead = `the sidecar is silent since ${clock(Date.now() - age)}; ${old}`;
    else if (response.ok) dead = problem || null;
  } catch {
    // The server itself does not answer; the connection for events shows that.
  }
  // A sidecar that can't do all of its work is in the list of what needs a person, and no event tells of it.
  if (dead !== before) touchNeeds();
  tellLink();
}

async function run() {
  for (let wait = 500; session.token; wait = Math.min(wait * 2, 8000)) {
    const began = Date.now();
    try {
      await listen();
    } catch {
      // The page says that it is not connected, and tries again.
    }
    if (!session.token) return;
    connected(false);
    if (Date.now() - began > 10000) wait = 500;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** Connects, and stays connected as long as there is a token. */
export function start(once) {
  lastSeen = null;
  loaded = once;
  run();
}

/** Checks the heartbeat from now on. */
export function preparePulse() {
  setInterval(feelPulse, PULSE_MS);
}
