// The page of `tasuki serve`. Texts from agents and documents are inserted as text, never as HTML. The page exchanges the
// code in the address's fragment for the token. A fragment is never sent to a server, and the code is good once. The token
// stays in this tab, and the page sends it only to a server that has proved that it knows the token.
"use strict";

const STEPS = ["waiting", "instructing", "writing", "recording", "ending", "starting", "priming", "briefing", "reading", "acknowledging"];
const TEXTS = ["instruction", "priming", "briefing"];
const ENDS = ["done", "failed", "cancelled"];
const MOST_HANDOFFS = 30;
const MOST_GENERATIONS = 6;
const SILENCE_MS = 45000;
/** How often the page checks whether a sidecar lives, and how old its heartbeat may be. */
const PULSE_MS = 5000;
const PULSE_LIMIT_MS = 15000;
/** The most characters of a reason in a heading. */
const MOST_REASON = 160;

const at = (id) => document.getElementById(id);
const agents = new Map();
const handoffs = new Map();
const errors = new Map();
const dirty = new Set();
let token = "";
/** Whether the server has proved that it knows the token, and the connection has not failed since. */
let proven = false;
let lastSeen = null;
let flushing = null;
/** Why requests would not be carried out; null while a sidecar lives. */
let dead = null;

// ---- building

/** An element with properties, classes and children; texts become text nodes. */
function el(name, props = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value != null) node.setAttribute(key, String(value));
  }
  node.append(...children.filter((child) => child != null && child !== ""));
  return node;
}

/** The same in SVG. */
function svg(name, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/** Makes a list show these items in this order. Existing elements are kept, with their focus and typed text. */
function keyed(list, things, idOf, make, update) {
  const old = new Map([...list.children].map((node) => [node.dataset.id, node]));
  let place = list.firstElementChild;
  for (const thing of things) {
    const id = idOf(thing);
    let node = old.get(id);
    if (node) old.delete(id);
    else {
      node = make(thing);
      node.dataset.id = id;
    }
    update(node, thing);
    if (node === place) place = place.nextElementSibling;
    else list.insertBefore(node, place);
  }
  for (const node of old.values()) {
    // If the removed element had the focus, the list gets it: otherwise it would go to the page's top.
    if (node.contains(document.activeElement)) list.focus();
    node.remove();
  }
}

const part = (node, name) => node.querySelector(`[data-part="${name}"]`);
const say = (node, name, text) => {
  const found = part(node, name);
  if (found.textContent !== text) found.textContent = text;
};
const short = (id) => (id || "").slice(0, 8);
const clock = (time) => (time ? new Date(time).toLocaleTimeString() : "");
const seconds = (from, to) => `${((new Date(to) - new Date(from)) / 1000).toFixed(1)} s`;
const lives = (agent) => !agent.ended_at && agent.state !== "ended" && agent.state !== "lost";
const nameOf = (agent) => agent.persona_slug || "anonymous";

// ---- asking

class Refused extends Error {}

async function api(path, body) {
  if (!proven && !(await isOurs(token, "token"))) {
    lock(WRONG);
    throw new Refused("no token");
  }
  const headers = { Authorization: `Bearer ${token}` };
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
    // The browser may send a request twice: with the same key it is carried out once.
    headers["Idempotency-Key"] = `page-${crypto.randomUUID()}`;
  }
  const response = await fetch(path, options);
  if (response.status === 401) {
    lock(WRONG);
    throw new Refused("no token");
  }
  const answer = await response.json();
  if (response.ok) return answer;
  const error = answer.error || {};
  const [message, hint] = typeof error === "string" ? [error, answer.hint] : [error.message, error.hint];
  throw new Refused([message, hint].filter(Boolean).map((said) => said.replace(/\.$/, "")).join(". "));
}

const toHex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Whether the server knows the secret too. Another program on that port never receives it. */
async function isOurs(secret, of) {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(16)));
  const response = await fetch(`/api/proof?of=${of}&nonce=${nonce}`, { cache: "no-store" });
  if (response.status === 401) return false;
  if (!response.ok) throw new Error("no proof");
  const { proof } = await response.json();
  const bytes = (text) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return proof === toHex(await crypto.subtle.sign("HMAC", key, bytes(`tasuki serve\n${location.host}\n${nonce}`)));
}

const WRONG = "This token does not match. If the server was restarted, open the address that it printed.";

const ask = (kind, fields) => api("/api/requests", { v: 1, kind, ...fields });

/** Runs a button's action: meanwhile it can't be pressed again, and a refusal is shown beside it. */
async function press(button, says, work) {
  button.disabled = true;
  says.textContent = "";
  try {
    await work();
  } catch (error) {
    says.textContent = error instanceof Refused ? error.message : "The server can't be reached.";
  } finally {
    button.disabled = false;
  }
}

// ---- agents

function makeAgent(agent) {
  const id = agent.agent_id;
  const reason = el("input", { name: "reason", required: true, maxlength: 2000, autocomplete: "off" });
  const focus = el("input", { name: "focus", maxlength: 2000, autocomplete: "off" });
  const says = el("p", { class: "says", role: "alert" });
  const go = el("button", { class: "main", type: "submit" }, "Hand off");
  const open = el("button", { type: "button", "data-part": "open", "aria-expanded": "false" }, "Hand off…");
  const show = (shown) => {
    form.hidden = !shown;
    open.setAttribute("aria-expanded", String(shown));
    // A button that can't be pressed takes no focus: the card does.
    (shown ? reason : open.disabled ? card : open).focus();
  };
  const form = el(
    "form",
    {
      hidden: true,
      onsubmit: (event) => {
        event.preventDefault();
        press(go, says, async () => {
          const body = { reason: reason.value.trim() };
          if (focus.value.trim()) body.focus = focus.value.trim();
          const begun = await api(`/api/agents/${encodeURIComponent(id)}/handoff`, body);
          show(false);
          form.reset();
          touch("handoffs", begun.handoff_id);
          touch("agents", id);
        });
      },
      onkeydown: (event) => event.key === "Escape" && show(false),
    },
    el("label", {}, "Reason", reason),
    el("label", {}, "Focus (what the document should concentrate on)", focus),
    el("div", { class: "row" }, go, el("button", { type: "button", onclick: () => show(false) }, "Not now")),
    says,
  );
  open.addEventListener("click", () => show(form.hidden));
  const card = el(
    "li",
    { class: "card", tabindex: -1 },
    el("div", { class: "head" }, el("h3", { "data-part": "name" }), el("span", { "data-part": "state" })),
    el("p", { class: "faint mono", "data-part": "about" }),
    el("p", { class: "faint", "data-part": "context" }),
    el("details", {}, el("summary", {}, "All details"), el("dl", { class: "faint", "data-part": "fields" })),
    el("div", { class: "row" }, open),
    form,
  );
  return card;
}

function updateAgent(card, agent) {
  say(card, "name", nameOf(agent));
  say(card, "state", agent.state);
  part(card, "state").className = `state ${agent.state}`;
  say(card, "about", [short(agent.agent_id), agent.profile, agent.pane, agent.cwd].filter(Boolean).join("  "));
  const context = agent.context;
  const line = part(card, "context");
  line.hidden = !context;
  if (context) {
    const used = context.percent == null ? `${context.used} tokens` : `${context.percent} %`;
    const meter = context.percent == null ? "" : el("meter", { min: 0, max: 100, high: 80, value: context.percent, "aria-hidden": "true" });
    const word = agent.handoff_suggested ? el("strong", {}, " Nearly full: hand it off") : "";
    line.replaceChildren("Context ", meter, ` ${used}`, word);
  }
  // Whatever else the view says, so that a new field of it is shown without a line here.
  const plain = Object.entries(agent).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  part(card, "fields").replaceChildren(
    ...plain.flatMap(([name, value]) => [el("dt", {}, name.replaceAll("_", " ")), el("dd", { class: "mono" }, String(value))]),
  );
  const open = part(card, "open");
  const shut = !agent.persona_slug || Boolean(agent.handoff_id);
  if (shut && document.activeElement === open) card.focus();
  open.disabled = shut;
  open.title = agent.persona_slug ? "" : "An agent without a persona can't be handed off";
  open.setAttribute("aria-label", `Hand off ${nameOf(agent)} ${short(agent.agent_id)}`);
}

// ---- handoffs

function makeHandoff(handoff) {
  const id = handoff.handoff_id;
  const says = el("p", { class: "says", role: "alert" });
  const button = (name, text, kind, more = {}) => {
    const node = el("button", { type: "button", "data-part": name }, text);
    node.addEventListener("click", () => press(node, says, () => ask(kind, { handoff_id: id, ...more })));
    return node;
  };
  return el(
    "li",
    { class: "card" },
    el("div", { class: "head" }, el("h3", { "data-part": "name" }), el("span", { "data-part": "state" })),
    el("p", { class: "faint mono", "data-part": "about" }),
    el("ol", { class: "steps", "data-part": "steps", "aria-label": "Steps" }),
    el("p", { class: "mono", "data-part": "document" }),
    el("p", { class: "faint", "data-part": "verdicts" }),
    el("p", { class: "says", "data-part": "error" }),
    el("p", { "data-part": "hint" }),
    el(
      "div",
      { class: "row" },
      button("accept", "Accept the document", "handoff_accept"),
      button("cancel", "Cancel", "handoff_cancel"),
      button("retry", "Retry", "handoff_retry"),
      button("arrived", "It arrived: continue", "handoff_retry", { assume: "delivered" }),
      button("lost", "It did not arrive: type it again", "handoff_retry", { assume: "not_delivered" }),
      button("abandon", "Abandon", "handoff_abandon"),
    ),
    makeAnswers(id),
    makeOverride(id),
    el("p", { "data-part": "publish" }),
    el(
      "div",
      { class: "row" },
      button("publish-now", "Publish now", "publish"),
      button("is-there", "It was published", "publish", { assume: "published" }),
      button("redacted", "Publish without the credentials", "publish", { as: "redacted" }),
      button("as-is", "Publish as it is", "publish", { as: "as_is" }),
      button("is-not", "It was not published: publish it", "publish", { assume: "not_published" }),
    ),
    says,
  );
}

/** The form for answers to a successor's questions before it begins. */
function makeAnswers(id) {
  const says = el("p", { class: "says", role: "alert" });
  const go = el("button", { class: "main", type: "submit" }, "Answer");
  const questions = el("div", { "data-part": "questions", tabindex: -1 });
  const send = async () => {
    const one = (input) => ({ question: input.dataset.question, answer: input.value.trim() });
    await ask("clarify", { handoff_id: id, clarifications: [...questions.querySelectorAll("input")].map(one) });
  };
  const onsubmit = (event) => {
    event.preventDefault();
    press(go, says, send);
  };
  return el("form", { hidden: true, "data-part": "answers", onsubmit }, questions, el("div", { class: "row" }, go), says);
}

/** The form to continue without a successor's acknowledgement. */
function makeOverride(id) {
  const says = el("p", { class: "says", role: "alert" });
  const go = el("button", { type: "submit" }, "Continue without it");
  const reason = el("input", { name: "override", required: true, maxlength: 2000, autocomplete: "off" });
  const onsubmit = (event) => {
    event.preventDefault();
    press(go, says, () => ask("ack_override", { handoff_id: id, reason: reason.value.trim() }));
  };
  const label = el("label", {}, "Why the handoff may continue without an acknowledgement", reason);
  return el("form", { hidden: true, "data-part": "override", onsubmit }, label, el("div", { class: "row" }, go), says);
}

function updateReplies(card, handoff) {
  const ack = handoff.ack;
  const asks = handoff.step === "acknowledging" && ack?.status === "needs_clarification";
  // A successor that asks for clarification without a question names its problem in `understanding`.
  const asked = asks ? (ack.questions.length ? ack.questions : [ack.understanding || "What is not clear?"]) : [];
  keyed(
    part(card, "questions"),
    asked.map((question, number) => ({ question, id: `${number} ${question}` })),
    (one) => one.id,
    ({ question }) => {
      const input = el("input", { name: "answer", required: true, maxlength: 4000, autocomplete: "off", "data-question": question });
      return el("label", {}, question, input);
    },
    () => {},
  );
  part(card, "answers").hidden = !asks;
  const waits = ["reading", "acknowledging"].includes(handoff.step);
  const timedOut = handoff.step === "failed" && handoff.error?.code === "ack_timeout";
  part(card, "override").hidden = !(ack && (waits || timedOut));
}

/** Whether a person must say if the last text arrived: only the pane shows it. */
const inDoubt = (error) => error?.code === "unconfirmed" || (error?.code === "priming_failed" && error.step === "priming");

function updateChoices(card, handoff, ended) {
  const [step, error] = [handoff.step, handoff.error];
  const failed = step === "failed";
  const doubt = failed && inDoubt(error);
  const publish = handoff.publish;
  const why = publish?.error ? `: ${publish.error.message}` : "";
  say(card, "publish", publish ? `Publishing: ${(publish.state || "").replace("_", " ")}${publish.url ? ` at ${publish.url}` : why}` : "");
  const shown = {
    accept: step === "writing" || (failed && error?.step === "writing"),
    cancel: !ended && STEPS.indexOf(step) < STEPS.indexOf("ending"),
    retry: failed && !doubt,
    arrived: doubt,
    lost: doubt,
    abandon: failed,
    "publish-now": publish?.state === "failed",
    redacted: publish?.state === "held",
    "as-is": publish?.state === "held",
    "is-there": publish?.state === "in_doubt",
    "is-not": publish?.state === "in_doubt",
  };
  for (const [name, is] of Object.entries(shown)) part(card, name).hidden = !is;
}

function updateHandoff(card, handoff) {
  const step = handoff.step;
  const ended = ENDS.includes(step);
  say(card, "name", cut(`${handoff.persona_slug}: ${handoff.reason}`, MOST_REASON));
  say(card, "state", step);
  part(card, "state").className = `state ${ended ? step : "running"}`;
  const successor = handoff.successor_id ? ` → ${short(handoff.successor_id)}` : "";
  say(card, "about", `${short(handoff.handoff_id)}  ${clock(handoff.created_at || (handoff.steps[0] || {}).entered_at)}  ${short(handoff.agent_id)}${successor}`);
  updateSteps(part(card, "steps"), handoff);
  const bytes = handoff.bytes ?? handoff.document?.bytes;
  say(card, "document", bytes == null ? "" : `${handoff.file_path} (${bytes} bytes${handoff.bytes == null ? " so far" : ""})`);
  const verdicts = TEXTS.map((name) => [name, handoff.verdicts?.[name]]).filter(([, one]) => one);
  say(card, "verdicts", verdicts.map(([name, one]) => `${name} ${one.verdict}${one.reason ? ` (${one.reason})` : ""}`).join(", "));
  const error = handoff.error;
  say(card, "error", error ? error.message : "");
  say(card, "hint", error ? error.hint : "");
  updateChoices(card, handoff, ended);
  updateReplies(card, handoff);
}

function updateSteps(list, handoff) {
  const entered = new Map((handoff.steps || []).map((one) => [one.step, one]));
  const wanted = STEPS.filter((step) => entered.has(step) || (step !== "acknowledging" || handoff.ack));
  const stoppedAt = handoff.error?.step;
  keyed(
    list,
    wanted,
    (step) => step,
    () => el("li"),
    (node, step) => {
      const seen = entered.get(step);
      let state = "";
      if (stoppedAt === step) state = "stopped";
      else if (handoff.step === step) state = "here";
      else if (seen?.left_at) state = "passed";
      const took = state === "passed" ? ` ${seconds(seen.entered_at, seen.left_at)}` : "";
      const text = `${step}${took}`;
      if (node.textContent !== text) node.textContent = text;
      node.className = state;
      node.dataset.step = step;
      if (state === "here") node.setAttribute("aria-current", "step");
      else node.removeAttribute("aria-current");
    },
  );
}

// ---- errors

function makeError(error) {
  const says = el("p", { class: "says" });
  const button = el("button", { type: "button" }, "Dismiss");
  button.addEventListener("click", () =>
    press(button, says, async () => {
      await ask("error_dismiss", { error_id: error.error_id });
      errors.delete(error.error_id);
      draw();
    }),
  );
  return el(
    "li",
    { class: "card error" },
    el("div", { class: "head" }, el("h3", { "data-part": "message" }), button),
    el("p", { "data-part": "hint" }),
    el("p", { class: "faint mono", "data-part": "about" }),
    says,
  );
}

function updateError(card, error) {
  say(card, "message", error.message);
  say(card, "hint", error.hint || "");
  const about = [clock(error.at), error.code, error.step, error.handoff_id && `handoff ${short(error.handoff_id)}`];
  say(card, "about", about.filter(Boolean).join("  "));
}

// ---- lineage

/** Living agents and their predecessors, as rows of predecessors and successors. */
function families() {
  const kept = new Set();
  for (const agent of agents.values()) {
    let one = lives(agent) && agent.persona_slug ? agent : null;
    for (let age = 0; one && age < MOST_GENERATIONS && !kept.has(one.agent_id); age += 1) {
      kept.add(one.agent_id);
      one = agents.get(one.previous_agent_id);
    }
  }
  const all = [...kept].map((id) => agents.get(id));
  all.sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  const children = new Map(all.map((agent) => [agent.agent_id, []]));
  const roots = [];
  for (const agent of all) {
    const siblings = children.get(agent.previous_agent_id);
    (siblings || roots).push(agent);
  }
  return { roots, children };
}

function drawLineage() {
  const [wide, high, gapX, gapY] = [150, 44, 46, 14];
  const { roots, children } = families();
  const [lines, boxes] = [[], []];
  let [row, columns] = [0, 0];
  const place = (agent, column) => {
    const [x, y] = [column * (wide + gapX) + 2, row * (high + gapY) + 2];
    columns = Math.max(columns, column + 1);
    const older = column === 0 && agent.previous_agent_id ? "… " : "";
    boxes.push(
      svg(
        "g",
        { class: lives(agent) ? "living" : "", transform: `translate(${x} ${y})` },
        svg("rect", { width: wide, height: high, rx: 6 }),
        text(10, 19, "", `${older}${cut(nameOf(agent), 18)}`),
        text(10, 35, "small", `${short(agent.agent_id)} ${lives(agent) ? agent.state : "ended"}`),
      ),
    );
    children.get(agent.agent_id).forEach((child, number) => {
      if (number > 0) row += 1;
      const [fromX, fromY, toX, toY] = [x + wide, y + high / 2, x + wide + gapX, row * (high + gapY) + 2 + high / 2];
      const bend = gapX / 2;
      lines.push(svg("path", { d: `M${fromX} ${fromY} C${fromX + bend} ${fromY} ${toX - bend} ${toY} ${toX - 6} ${toY}` }));
      lines.push(svg("path", { class: "tip", d: `M${toX} ${toY} l-8 -4 v8 z` }));
      place(child, column + 1);
    });
  };
  for (const root of roots) {
    place(root, 0);
    row += 1;
  }
  const [width, height] = [columns * (wide + gapX) - gapX + 4, row * (high + gapY) - gapY + 4];
  if (!roots.length) return at("lineage").replaceChildren(el("p", { class: "faint" }, "No agents yet."));
  const told = boxes.length === 1 ? "One agent" : `${boxes.length} agents, each beside its predecessor`;
  const title = svg("title");
  title.textContent = told;
  return at("lineage").replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img" }, title, ...lines, ...boxes));
}

function text(x, y, className, content) {
  const node = svg("text", { x, y, class: className });
  node.textContent = content;
  return node;
}

const cut = (content, most) => (content.length > most ? `${content.slice(0, most - 1)}…` : content);

// ---- everything

function draw() {
  const living = [...agents.values()].filter(lives);
  living.sort((a, b) => nameOf(a).localeCompare(nameOf(b)) || (a.agent_id < b.agent_id ? -1 : 1));
  keyed(at("agents"), living, (agent) => agent.agent_id, makeAgent, updateAgent);
  at("no-agents").hidden = living.length > 0;
  const begun = (handoff) => (handoff.steps[0] || {}).entered_at || "";
  const shown = [...handoffs.values()].sort((a, b) => (begun(a) < begun(b) ? 1 : -1)).slice(0, MOST_HANDOFFS);
  keyed(at("handoffs"), shown, (handoff) => handoff.handoff_id, makeHandoff, updateHandoff);
  at("no-handoffs").hidden = shown.length > 0;
  const failures = [...errors.values()].sort((a, b) => (a.at < b.at ? 1 : -1));
  keyed(at("error-list"), failures, (error) => error.error_id, makeError, updateError);
  at("errors").hidden = failures.length === 0;
  at("errors-title").textContent = `Errors (${failures.length})`;
  drawLineage();
}

function fill(map, list, id) {
  map.clear();
  for (const one of list) map.set(one[id], one);
}

async function loadAll() {
  const [everyone, latest, failures] = await Promise.all([
    api("/api/agents?all=true"),
    api(`/api/handoffs?limit=${MOST_HANDOFFS}`),
    api("/api/errors?limit=100"),
  ]);
  fill(agents, everyone, "agent_id");
  fill(handoffs, latest, "handoff_id");
  fill(errors, failures, "error_id");
  draw();
}

/** Notes that something has changed; changes at the same time are fetched together. */
function touch(kind, id) {
  if (!id) return;
  dirty.add(`${kind} ${id}`);
  flushing ??= setTimeout(flush, 40);
}

async function flush() {
  flushing = null;
  const wanted = [...dirty].map((entry) => entry.split(" "));
  dirty.clear();
  const fetchOne = async ([kind, id]) => {
    if (kind === "errors") return fill(errors, await api("/api/errors?limit=100"), "error_id");
    const one = await api(`/api/${kind}/${encodeURIComponent(id)}`);
    return (kind === "agents" ? agents : handoffs).set(id, one);
  };
  // A view that can't be fetched no longer exists, or is fetched at the next change.
  await Promise.allSettled(wanted.map(fetchOne));
  draw();
}

// ---- listening

function heard(event) {
  if (event.name === "reset") return loadAll();
  if (event.id === null) return undefined;
  lastSeen = event.id;
  const line = JSON.parse(event.data);
  touch("handoffs", line.handoff_id);
  touch("agents", line.agent_id);
  touch("agents", line.successor_id);
  if (line.error_id) touch("errors", "all");
  if (line.type === "handoff.step" && line.document_bytes == null) {
    const agent = agents.get(line.agent_id);
    at("passing").textContent = `${agent ? nameOf(agent) : short(line.agent_id)}: ${line.step}`;
  }
  return undefined;
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
    if (!(await isOurs(token, "token"))) return lock(WRONG);
    const headers = { Authorization: `Bearer ${token}` };
    if (lastSeen !== null) headers["Last-Event-ID"] = lastSeen;
    const response = await fetch("/api/events", { headers, cache: "no-store", signal: abort.signal });
    if (response.status === 401) return lock(WRONG);
    if (!response.ok) return undefined;
    const first = lastSeen === null;
    connected(true);
    if (first) await loadAll();
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
  proven = is;
  if (is) feelPulse();
  else tellLink();
}

/** Shows "live" only with a server and a sidecar: without a server no events come, without a sidecar no requests are done. */
function tellLink() {
  let said = "live";
  if (!proven) said = "not connected; trying again";
  else if (dead) said = dead;
  at("link").className = said === "live" ? "live" : "";
  if (at("link-text").textContent !== said) at("link-text").textContent = said;
}

/** Checks by its heartbeat whether a sidecar lives, as every command does. */
async function feelPulse() {
  if (!proven || !token) return;
  const old = "this page shows the last known state";
  try {
    const response = await fetch("/api/sidecar", { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" });
    const { heartbeat } = response.ok ? await response.json() : {};
    const age = Date.now() - new Date(heartbeat);
    if (response.status === 404) dead = `no sidecar runs; ${old}. Start one: tasuki run`;
    else if (response.ok) dead = age <= PULSE_LIMIT_MS ? null : `the sidecar is silent since ${clock(heartbeat)}; ${old}`;
  } catch {
    // The server itself does not answer; the connection for events shows that.
  }
  tellLink();
}

setInterval(feelPulse, PULSE_MS);

async function run() {
  for (let wait = 500; token; wait = Math.min(wait * 2, 8000)) {
    const began = Date.now();
    try {
      await listen();
    } catch {
      // The page says that it is not connected, and tries again.
    }
    if (!token) return;
    connected(false);
    if (Date.now() - began > 10000) wait = 500;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

// ---- login

function lock(why) {
  token = "";
  proven = false;
  sessionStorage.removeItem("tasuki-token");
  at("main").hidden = true;
  at("login").hidden = false;
  at("login-says").textContent = why;
  at("link-text").textContent = "not connected";
  at("link").className = "";
}

function unlock(found) {
  token = found;
  lastSeen = null;
  sessionStorage.setItem("tasuki-token", token);
  at("login").hidden = true;
  at("main").hidden = false;
  run();
}

at("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const typed = at("token").value.trim();
  at("token").value = "";
  unlock(typed);
});

/** Exchanges the address's code for the token: a browser keeps addresses, and this one is now useless. */
async function enter(code) {
  const used = "This address was already used or has expired. Restart tasuki serve, or enter the token.";
  try {
    if (!(await isOurs(code, "code"))) return lock(used);
    const options = { method: "POST", headers: { Authorization: `Code ${code}` }, cache: "no-store" };
    const response = await fetch("/api/session", options);
    if (!response.ok) return lock(used);
    unlock((await response.json()).token);
  } catch {
    lock("The server can't be reached.");
  }
}

const code = new URLSearchParams(location.hash.slice(1)).get("code");
if (code) history.replaceState(null, "", location.pathname);
const known = sessionStorage.getItem("tasuki-token");
if (code) enter(code);
else if (known) unlock(known);
else lock("");
