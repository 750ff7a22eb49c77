// The page of `tasuki serve`. Texts from agents and documents are inserted as text, never as HTML. The page exchanges the
// code in the address's fragment for the token. A fragment is never sent to a server, and the code is good once. The token
// stays in this tab, and the page sends it only to a server that has proved that it knows the token.
"use strict";

const STEPS = ["waiting", "instructing", "writing", "checking", "recording", "ending", "starting", "priming", "briefing", "reading", "acknowledging"];
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
/** How many changed files, written files and commands are listed. */
const MOST_LISTED = 20;
/** How much of a document is shown: characters, and elements of its text. */
const MOST_TEXT = 256 * 1024;
const MOST_ELEMENTS = 20000;
/** A longer row of a document is shown as it is, and so is a deeper list or quotation. */
const MOST_ROW = 8000;
const MOST_LINK = 1000;
const DEEPEST = 6;

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

async function fetched(path, body) {
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
  if (response.ok) return response;
  const answer = await response.json();
  const error = answer.error || {};
  const [message, hint] = typeof error === "string" ? [error, answer.hint] : [error.message, error.hint];
  throw new Refused([message, hint].filter(Boolean).map((said) => said.replace(/\.$/, "")).join(". "));
}

const api = async (path, body) => (await fetched(path, body)).json();

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
    { class: "card", id: `handoff-${id}`, tabindex: -1 },
    el("div", { class: "head" }, el("h3", { "data-part": "name" }), el("span", { "data-part": "state" })),
    el("p", { class: "faint mono", "data-part": "about" }),
    makeHeld(id),
    el("ol", { class: "steps", "data-part": "steps", "aria-label": "Steps" }),
    el("p", { class: "mono", "data-part": "document" }),
    el("p", { class: "faint", "data-part": "verdicts" }),
    el("p", { class: "says", "data-part": "error" }),
    el("p", { "data-part": "hint" }),
    el("ul", { class: "faults", "data-part": "faults", "aria-label": "Faults of the document" }),
    makeReading(id),
    el("details", { "data-part": "facts" }, el("summary", {}, "What tasuki has seen"), el("dl", { "data-part": "facts-list" })),
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
  const mayAccept = (name) => name === "writing" || name === "checking";
  const shown = {
    accept: !isHeld(handoff) && (mayAccept(step) || (failed && mayAccept(error?.step))),
    cancel: !isHeld(handoff) && !ended && STEPS.indexOf(step) < STEPS.indexOf("ending"),
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
  updateHeld(card, handoff);
  updateFaults(part(card, "faults"), handoff);
  updateReading(part(card, "reading"), handoff);
  updateFacts(card, handoff);
  updateChoices(card, handoff, ended);
  updateReplies(card, handoff);
}

// ---- a handoff's document, and what tasuki has seen

const isHeld = (handoff) => handoff.step === "checking" && Boolean(handoff.held_since);
const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Builds an element's children again, only if what they show has changed. */
function rebuild(node, shown, make) {
  const key = JSON.stringify(shown ?? null);
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(...make());
}

/** The banner of a handoff that waits for a person to accept its document. */
function makeHeld(id) {
  const says = el("p", { class: "says", role: "alert" });
  const note = el("input", { name: "note", required: true, maxlength: 4000, autocomplete: "off" });
  const go = el("button", { type: "submit" }, "Rework");
  const button = (text, className, kind) => {
    const node = el("button", { type: "button", class: className, "data-part": kind }, text);
    node.addEventListener("click", () => press(node, says, () => ask(kind, { handoff_id: id })));
    return node;
  };
  const onsubmit = (event) => {
    event.preventDefault();
    press(go, says, async () => {
      await ask("handoff_rework", { handoff_id: id, note: note.value.trim() });
      note.value = "";
    });
  };
  return el(
    "div",
    { class: "held", hidden: true, "data-part": "held", role: "group", "aria-label": "Your decision" },
    el("p", { role: "status", "data-part": "held-says" }),
    el("div", { class: "row" }, button("Accept the document", "main", "handoff_accept"), button("Cancel the handoff", "", "handoff_cancel")),
    el("form", { onsubmit, "data-part": "held-rework" }, el("label", {}, "What the agent should change", note), el("div", { class: "row" }, go)),
    says,
  );
}

function updateHeld(card, handoff) {
  const held = part(card, "held");
  const faults = handoff.faults || [];
  const found = faults.length ? `the checks found ${counted(faults.length, "fault")}` : "the checks found no fault";
  say(held, "held-says", isHeld(handoff) ? `Waits for you since ${clock(handoff.held_since)}: ${found}.` : "");
  if (!isHeld(handoff) && held.contains(document.activeElement)) card.focus();
  if (isHeld(handoff) && held.hidden) part(card, "reading").open = true;
  // A document that no agent has written can't be sent back.
  part(held, "held-rework").hidden = ["salvage", "provided"].includes(handoff.author);
  held.hidden = !isHeld(handoff);
}

function updateFaults(list, handoff) {
  const faults = handoff.faults || [];
  list.hidden = !faults.length;
  rebuild(list, faults, () =>
    faults.map((fault) => {
      const where = fault.line == null ? "" : `line ${fault.line}: `;
      const text = [fault.said, fault.is].filter(Boolean).join("; ");
      return el("li", { class: fault.grade === "fix" ? "fix" : "" }, el("strong", {}, fault.grade), ` ${where}${text}`);
    }),
  );
}

/** The document, which is fetched when it is opened. */
function makeReading(id) {
  const shown = { class: "markdown", "data-part": "markdown", tabindex: 0, role: "group", "aria-label": `Document of handoff ${short(id)}` };
  const says = el("p", { class: "says", role: "alert", "data-part": "reading-says" });
  const reading = el("details", { hidden: true, "data-part": "reading" }, el("summary", {}, "Document"), el("div", shown), says);
  reading.addEventListener("toggle", () => reading.open && readDocument(reading, id));
  return reading;
}

function updateReading(reading, handoff) {
  reading.hidden = handoff.bytes == null && !handoff.document && !handoff.facts;
  const state = [handoff.sha256, handoff.document?.at, handoff.reworks, handoff.held_since].join(" ");
  if (reading.dataset.state === state) return;
  reading.dataset.state = state;
  reading.dataset.read = "";
  if (reading.open && !reading.hidden) readDocument(reading, handoff.handoff_id);
}

async function readDocument(reading, id) {
  const state = reading.dataset.state;
  if (reading.dataset.read === state) return;
  reading.dataset.read = state;
  let [text, why] = ["", ""];
  try {
    text = await (await fetched(`/api/handoffs/${encodeURIComponent(id)}/document`)).text();
  } catch (error) {
    why = error instanceof Refused ? error.message : "The server can't be reached.";
    reading.dataset.read = "";
  }
  // Another text may have been asked for meanwhile.
  if (reading.dataset.state !== state) return;
  part(reading, "markdown").replaceChildren(...rendered(text));
  say(reading, "reading-says", why);
}

/** A command, with its end as far as the transcript says it. */
function commandOf(ran) {
  let end = "";
  if (ran.exit != null) end = `: exit ${ran.exit}`;
  else if (ran.failed != null) end = ran.failed ? ": failed" : ": did not fail";
  return `${ran.command}${end}${ran.at ? ` at ${clock(ran.at)}` : ""}`;
}

/** Rows of a name and texts about the repository. */
function aboutRepository(repository) {
  const pushed = { true: ", on a remote branch", false: ", not pushed" }[repository.head_on_remote] ?? "";
  const ahead = repository.upstream ? `, ${repository.ahead ?? "?"} ahead of ${repository.upstream}, ${repository.behind ?? "?"} behind` : "";
  const files = (repository.status || []).slice(0, MOST_LISTED).map((changed) => `${changed.state} ${changed.path}`);
  const count = repository.changed == null ? [] : [`${counted(repository.changed, "file")} ${repository.diff_stat ? `(${repository.diff_stat.trim()})` : ""}`];
  return [
    ["repository", [repository.root]],
    ["branch", [`${repository.branch ?? "HEAD is detached"}${ahead}`]],
    ["HEAD", repository.head ? [`${repository.head.slice(0, 12)}${pushed} ${repository.subject ?? ""}`] : ["there are no commits"]],
    ["in progress", [repository.in_progress]],
    ["changed", [...count, ...files]],
  ];
}

/** Links to the handoffs before this one whose cards are shown. */
const earlierOnes = (handoff) =>
  (handoff.earlier || []).map((earlier) => {
    const id = earlier.handoff_id;
    const name = `handoff ${short(id)}`;
    const shown = handoffs.has(id) ? el("a", { href: `#handoff-${id}` }, name) : name;
    return el("span", {}, shown, ` ${earlier.file_path}${earlier.checkpoint ? `, checkpoint: ${earlier.checkpoint}` : ""}`);
  });

function updateFacts(card, handoff) {
  const facts = handoff.facts;
  const known = (handoff.earlier || []).map((earlier) => handoffs.has(earlier.handoff_id));
  part(card, "facts").hidden = !facts && !handoff.drift?.length && !known.length;
  rebuild(part(card, "facts-list"), [facts, handoff.drift, handoff.generation, handoff.earlier, known], () => {
    const actions = facts?.actions;
    const rows = [
      ["taken", [facts && clock(facts.taken_at)]],
      ["changed since then", handoff.drift || []],
      ...(facts?.repository ? aboutRepository(facts.repository) : []),
      ["last test", actions?.last_test ? [commandOf(actions.last_test), actions.last_test.printed] : []],
      ["sent", (actions?.sent || []).map(commandOf)],
      ["files written", (actions?.files || []).slice(0, MOST_LISTED).map((file) => `${file.path}: ${file.state}`)],
      ["still running", (facts?.running || []).map((process) => `${process.pid} ${process.command}`)],
      ["rules", facts?.chain?.rules || []],
      ["session", [facts?.conversation?.resume_command]],
      ["not known", facts?.not_known || []],
      ["generation", [handoff.generation]],
      ["earlier", earlierOnes(handoff)],
    ];
    return rows.flatMap(([name, texts]) => {
      const shown = texts.filter(Boolean).map((text) => el("dd", { class: "mono" }, text instanceof Node ? text : String(text)));
      return shown.length ? [el("dt", {}, name), ...shown] : [];
    });
  });
}

// ---- Markdown: text → blocks and spans, which are plain objects → elements. No HTML of a document is ever parsed.

/** Without characters that control a program or turn the direction of writing. */
const calm = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, "");

/** The blocks of a document. */
const markdown = (text) => blocksOf(calm(text).split("\n"), 0);

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: |$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const DIVIDER = /^ *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$/;
const startsBlock = (row) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((kind) => kind.test(row));

function blocksOf(rows, depth) {
  const found = [];
  if (depth > DEEPEST) return [{ kind: "paragraph", spans: [rows.join("\n")] }];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    const take = row.length > MOST_ROW || row.trim() === "" ? null : takerOf(rows, at, depth);
    if (take) {
      const [block, next] = take(rows, at, depth);
      found.push(block);
      at = next;
    } else if (row.trim() === "") at += 1;
    else {
      found.push({ kind: "paragraph", spans: [row] });
      at += 1;
    }
  }
  return found;
}

/** What reads the block that begins at this row: it returns the block, and where the next one begins. */
function takerOf(rows, at, depth) {
  const row = rows[at];
  if (at === 0 && depth === 0 && row === "---" && rows.indexOf("---", 1) > 0) return takeFrontMatter;
  if (FENCE.test(row)) return takeFence;
  if (HEADING.test(row)) return takeHeading;
  if (RULE.test(row)) return (_, from) => [{ kind: "rule" }, from + 1];
  if (QUOTE.test(row)) return takeQuote;
  if (ITEM.test(row)) return takeList;
  const below = rows[at + 1] ?? "";
  if (row.includes("|") && below.includes("-") && below.length <= MOST_ROW && DIVIDER.test(below)) return takeTable;
  return takeParagraph;
}

function takeFrontMatter(rows) {
  const end = rows.indexOf("---", 1);
  return [{ kind: "code", text: rows.slice(1, end).join("\n") }, end + 1];
}

function takeFence(rows, at) {
  const [, fence] = FENCE.exec(rows[at]);
  const ends = (row) => {
    const mark = row.trim();
    return mark.length >= fence.length && row.length <= MOST_ROW && [...mark].every((letter) => letter === fence[0]);
  };
  let end = at + 1;
  while (end < rows.length && !ends(rows[end])) end += 1;
  return [{ kind: "code", text: rows.slice(at + 1, end).join("\n") }, end + 1];
}

function takeHeading(rows, at) {
  const [start, marks] = HEADING.exec(rows[at]);
  const words = rows[at].slice(start.length).trim().split(" ");
  if (words.length > 1 && [...words.at(-1)].every((letter) => letter === "#")) words.pop();
  return [{ kind: "heading", level: marks.length, spans: spansOf(words.join(" ")) }, at + 1];
}

function takeQuote(rows, at, depth) {
  let end = at;
  while (end < rows.length && QUOTE.test(rows[end])) end += 1;
  return [{ kind: "quote", blocks: blocksOf(rows.slice(at, end).map((row) => row.replace(QUOTE, "")), depth + 1) }, end];
}

function takeList(rows, at, depth) {
  const [, outer, first] = ITEM.exec(rows[at]);
  const isOrdered = first.length > 1;
  const items = [];
  let next = at;
  while (next < rows.length) {
    const mark = ITEM.exec(rows[next]);
    if (!mark || mark[1].length > outer.length + 1 || (mark[2].length > 1) !== isOrdered || RULE.test(rows[next])) break;
    const inner = mark[1].length + mark[2].length + 1;
    const own = [rows[next].slice(inner)];
    next += 1;
    for (let blank = false; next < rows.length; next += 1) {
      const row = rows[next];
      const isInside = row.trim() === "" || row.startsWith(" ".repeat(Math.min(inner, mark[1].length + 2)));
      if (!isInside && (blank || startsBlock(row))) break;
      blank = row.trim() === "";
      own.push(row.startsWith(" ".repeat(inner)) ? row.slice(inner) : row.trimStart());
    }
    items.push(blocksOf(own, depth + 1));
  }
  return [{ kind: "list", isOrdered, start: parseInt(first, 10) || 1, items }, next];
}

/** The cells of a row of a table. */
function cellsOf(row) {
  const cells = [""];
  const bare = row.trim().replace(/^\|/, "");
  for (let at = 0; at < bare.length; at += 1) {
    if (bare[at] === "\\" && bare[at + 1] === "|") {
      cells[cells.length - 1] += "|";
      at += 1;
    } else if (bare[at] === "|") cells.push("");
    else cells[cells.length - 1] += bare[at];
  }
  if (cells.length > 1 && cells.at(-1).trim() === "") cells.pop();
  return cells.map((cell) => spansOf(cell.trim()));
}

function takeTable(rows, at) {
  const head = cellsOf(rows[at]);
  const body = [];
  let next = at + 2;
  for (; next < rows.length && rows[next].includes("|") && rows[next].length <= MOST_ROW; next += 1) {
    body.push(cellsOf(rows[next]).slice(0, head.length));
  }
  return [{ kind: "table", head, body }, next];
}

function takeParagraph(rows, at) {
  let next = at + 1;
  while (next < rows.length && rows[next].length <= MOST_ROW && rows[next].trim() !== "") {
    const under = UNDERLINE.exec(rows[next]);
    if (under) {
      const level = under[1][0] === "=" ? 1 : 2;
      return [{ kind: "heading", level, spans: spansOf(rows.slice(at, next).join(" ").trim()) }, next + 1];
    }
    if (startsBlock(rows[next])) break;
    next += 1;
  }
  return [{ kind: "paragraph", spans: spansOf(rows.slice(at, next).map((row) => row.trim()).join("\n")) }, next];
}

/** The spans of a text: strings, and objects with a kind. */
function spansOf(text, depth = 0) {
  if (text.length > MOST_ROW || depth > DEEPEST) return [text];
  const found = [];
  // Marks that do not come again after this place: they are not searched for twice.
  const alone = new Set();
  let plain = "";
  for (let at = 0; at < text.length; ) {
    const [span, end] = spanAt(text, at, depth, alone);
    if (typeof span === "string") plain += span;
    else {
      if (plain) found.push(plain);
      plain = "";
      found.push(span);
    }
    at = end;
  }
  return plain ? [...found, plain] : found;
}

const isWord = (letter) => letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
const isBlank = (letter) => letter === undefined || /\s/.test(letter);

/** How often a letter stands there in a row. */
function runOf(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

/** The span that begins there, and where it ends. */
function spanAt(text, at, depth, alone) {
  const letter = text[at];
  const run = "`*_~".includes(letter) ? runOf(text, at) : 1;
  if (letter === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return [text[at + 1], at + 2];
  if (letter === "`") return codeAt(text, at, run, alone);
  if (letter === "*" || letter === "_" || (letter === "~" && run === 2)) return emphasisAt(text, at, run, depth, alone);
  if (letter === "!" && text[at + 1] === "[") return linkAt(text, at + 1, alone, true) ?? [letter, at + 1];
  if (letter === "[") return linkAt(text, at, alone, false) ?? [letter, at + 1];
  if (letter === "h" && !isWord(text[at - 1])) return addressAt(text, at) ?? [letter, at + 1];
  return [letter, at + 1];
}

function codeAt(text, at, run, alone) {
  const ticks = "`".repeat(run);
  let end = alone.has(ticks) ? -1 : text.indexOf(ticks, at + run);
  while (end >= 0 && runOf(text, end) !== run) end = text.indexOf(ticks, end + runOf(text, end));
  if (end < 0) alone.add(ticks);
  if (end < 0) return [ticks, at + run];
  return [{ kind: "code", text: text.slice(at + run, end).replace(/^ (?=.)|(?<=.) $/gs, "") }, end + run];
}

function emphasisAt(text, at, run, depth, alone) {
  const letter = text[at];
  const marks = letter.repeat(run);
  const opens = run <= 3 && !alone.has(marks) && !isBlank(text[at + run]) && !(letter === "_" && isWord(text[at - 1]));
  const closes = (end) => runOf(text, end) === run && text[end - 1] !== letter && !isBlank(text[end - 1]) && !(letter === "_" && isWord(text[end + run]));
  let end = opens ? text.indexOf(marks, at + run) : -1;
  while (end >= 0 && !closes(end)) end = text.indexOf(marks, end + runOf(text, end));
  if (opens && end < 0) alone.add(marks);
  if (end < 0) return [marks, at + run];
  const spans = spansOf(text.slice(at + run, end), depth + 1);
  const kind = { "~": "del" }[letter] ?? (run === 1 ? "em" : "strong");
  return [{ kind, spans: run === 3 ? [{ kind: "em", spans }] : spans }, end + run];
}

const DESTINATION = /\([ \t]*(?:<([^<>\n]*)>|([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*))(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'))?[ \t]*\)/y;

/** A link, or what stands for an image or for an address that is not of the web: its words and the address as text. */
function linkAt(text, at, alone, isImage) {
  if (alone.has("[[")) return null;
  let open = 0;
  let end = at;
  for (; end < Math.min(text.length, at + MOST_LINK); end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text[end] === "[") open += 1;
    else if (text[end] === "]") open -= 1;
    if (open === 0) break;
  }
  // After two brackets that do not close, no link is searched for: each search would read all of these letters again.
  if (open > 0) alone.add(alone.has("[") ? "[[" : "[");
  DESTINATION.lastIndex = end + 1;
  const found = open === 0 && text[end + 1] === "(" ? DESTINATION.exec(text) : null;
  if (!found) return null;
  const address = found[1] ?? found[2];
  const words = text.slice(at + 1, end);
  const href = isImage ? null : webAddress(address);
  const next = end + 1 + found[0].length;
  if (!href) return [`${words}${address ? ` (${address})` : ""}`, next];
  return [{ kind: "link", href, spans: [words || address] }, next];
}

function addressAt(text, at) {
  const found = /^https?:\/\/[^\s<>"'`\\()[\]]+/.exec(text.slice(at, at + 2000));
  if (!found) return null;
  const words = found[0].replace(/[.,;:!?*_~]{1,9}$/, "");
  const href = webAddress(words);
  return href ? [{ kind: "link", href, spans: [words] }, at + words.length] : null;
}

/** The address, if it is one of the web; null for anything that a browser would run or open otherwise. */
function webAddress(address) {
  const found = URL.canParse(address) ? new URL(address) : null;
  return found && ["http:", "https:"].includes(found.protocol) ? found.href : null;
}

/** The elements of a document. */
function rendered(text) {
  const left = { elements: MOST_ELEMENTS };
  const shown = elementsOf(markdown(text.slice(0, MOST_TEXT)), [], left);
  const isCut = text.length > MOST_TEXT || left.elements <= 0;
  return isCut ? [...shown, el("p", { class: "faint" }, "… more in the file")] : shown;
}

/** Elements of blocks. The headings of a document begin below the card's own, and leave no level out. */
function elementsOf(blocks, levels, left) {
  const fits = () => (left.elements -= 1) > 0;
  return blocks.filter(fits).flatMap((block) => {
    const inside = (inner) => elementsOf(inner, levels, left);
    switch (block.kind) {
      case "heading": {
        if (!block.spans.length) return [];
        while (levels.length && levels.at(-1) >= block.level) levels.pop();
        levels.push(block.level);
        return [el(`h${Math.min(6, 3 + levels.length)}`, {}, ...inline(block.spans, left))];
      }
      case "code":
        return [el("pre", {}, el("code", {}, block.text))];
      case "rule":
        return [el("hr")];
      case "quote":
        return [el("blockquote", {}, ...inside(block.blocks))];
      case "list": {
        const items = block.items.filter(fits).map((item) => el("li", {}, ...inside(item)));
        return [block.isOrdered ? el("ol", { start: block.start }, ...items) : el("ul", {}, ...items)];
      }
      case "table": {
        const cells = (row, name) => el("tr", {}, ...row.filter(fits).map((cell) => el(cell.length ? name : "td", {}, ...inline(cell, left))));
        const body = block.body.filter(fits).map((row) => cells(row, "td"));
        return [el("table", {}, el("thead", {}, cells(block.head, "th")), el("tbody", {}, ...body))];
      }
      default:
        return [el("p", {}, ...inline(block.spans, left))];
    }
  });
}

/** Text nodes and elements of spans. A link is opened only by a click, and tells nothing of this page. */
function inline(spans, left) {
  return spans.map((span) => {
    left.elements -= 1;
    if (typeof span === "string" || left.elements <= 0) return typeof span === "string" ? span : "";
    if (span.kind === "code") return el("code", {}, span.text);
    if (span.kind !== "link") return el(span.kind, {}, ...inline(span.spans, left));
    return el("a", { href: span.href, title: span.href, rel: "noreferrer noopener", target: "_blank" }, ...span.spans);
  });
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
