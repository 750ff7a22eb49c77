// Agents: what each does, and what can be asked of it.

import { api, ask } from "./api.js";
import { CardList, headline } from "./cards.js";
import { at, described, el, linkTo, part, say, short, tell, worded } from "./dom.js";
import { matches } from "./filter.js";
import { action, asking, notice, refusals } from "./forms.js";
import { agents, lives, nameOf, touch } from "./store.js";

const AUTHORS = [["", "the agent, with its own tools"], ["agent_reply", "the agent, as its answer"], ["salvage", "tasuki, from the transcript"]];
const URGENCIES = [["", "not asked for"], ["immediate", "within 5 minutes"], ["prepare", "within 15 minutes"], ["when_available", "within 30 minutes"]];
const CHECKS = [["", "as configured"], ["off", "no checks"], ["warn", "warn"], ["fix", "let the agent fix them"], ["hold", "wait for me"]];

/** Agents of a persona that could take over from another one, for a list to choose from. */
export function successors(own, persona) {
  const others = [...agents.values()].filter((agent) => lives(agent) && agent.persona_slug === persona && agent.agent_id !== own);
  const named = others.map((agent) => [agent.agent_id, `${nameOf(agent)} ${short(agent.agent_id)}, which runs already`]);
  return [["", "a new agent"], ["same_pane", "a new session in the same pane"], ...named];
}

/** The field `successor` of a request. */
export const successorOf = (chosen) => (["new", "same_pane"].includes(chosen) ? chosen : { agent_id: chosen });

/** Where to publish, in a request. */
export const publishOf = (words) => (words === "gist" ? { gist: true } : { issue: words });

function handOff(id) {
  return asking({
    opens: "Hand off…",
    name: "open",
    key: "h",
    roving: true,
    go: "Hand off",
    fields: [
      { name: "reason", label: "Reason", required: true, spell: true },
      { name: "focus", label: "Focus (what the document should concentrate on)", spell: true },
    ],
    more: [
      { name: "tasks", label: "Tasks of the successor, one a line", kind: "area" },
      { name: "author", label: "Who writes the document", kind: "select", options: AUTHORS },
      { name: "document", label: "The document, if you write it", kind: "area", most: 1000000 },
      { name: "successor", label: "Who takes over", kind: "select", options: () => successors(id, agents.get(id)?.persona_slug) },
      { name: "profile", label: "Profile of a new agent (codex, pi …), if another one" },
      { name: "model", label: "Model of a new agent, if another one" },
      { name: "urgency", label: "Acknowledgement by the successor", kind: "select", options: URGENCIES },
      { name: "check", label: "Faults of the document", kind: "select", options: CHECKS },
      { name: "publish", label: "Publish the document (owner/repo#42, or gist)" },
      { name: "review", label: "Show me the document before the agent ends", kind: "check" },
      { name: "now", label: "Do not wait for the end of the running turn", kind: "check" },
    ],
    send: async ({ tasks, document: text, successor, publish, ...rest }) => {
      const body = { ...rest };
      if (text) Object.assign(body, { author: "provided", document: { text } });
      if (tasks) body.tasks = tasks.split("\n").map((task) => task.trim()).filter(Boolean);
      if (successor) body.successor = successorOf(successor);
      if (publish) body.publish = publishOf(publish);
      const begun = await api(`/api/agents/${encodeURIComponent(id)}/handoff`, body);
      notice(`Handoff ${short(begun.handoff_id)} has begun.`);
      touch("handoffs", begun.handoff_id);
      touch("agents", id);
    },
  });
}

function send(id) {
  return asking({
    opens: "Send…",
    name: "send",
    key: "s",
    roving: true,
    go: "Send",
    fields: [{ name: "text", label: "Text that tasuki types to the agent (Ctrl+Enter sends it)", kind: "area", required: true, most: 100000 }],
    send: async ({ text }) => {
      const sent = await ask("agent_send", { agent_id: id, text });
      notice(`The text for ${titleOf(agents.get(id))}: ${worded(sent.verdict)}${sent.reason ? ` (${sent.reason})` : ""}.`);
      touch("agents", id);
    },
  });
}

const titleOf = (agent) => (agent ? `${nameOf(agent)} ${short(agent.agent_id)}` : "the agent");

function row(id) {
  const forms = [handOff(id), send(id)];
  const context = el("p", { class: "faint", "data-part": "context" });
  return [el("div", { class: "row" }, context, ...forms.map(({ opener }) => opener)), ...forms.map(({ form }) => form)];
}

function body(id) {
  const says = refusals();
  const end = (force) => async () => {
    await ask("agent_shutdown", { agent_id: id, ...(force ? { force } : {}) });
    notice(`${titleOf(agents.get(id))} is asked to end.`);
    touch("agents", id);
  };
  const forget = async () => {
    await ask("agent_forget", { agent_id: id });
    touch("agents", id);
  };
  const about = () => titleOf(agents.get(id));
  const one = (words, name, key, question, work) => action(words, { name, key, says, work, question: () => `${question} ${about()}?` });
  return [
    el("p", { "data-part": "links" }),
    el("dl", { class: "faint", "data-part": "fields" }),
    el(
      "div",
      { class: "row", "data-part": "ending" },
      one("End", "end", "e", "End", end(false)),
      one("Kill its pane", "kill", "", "Kill the pane of", end(true)),
      one("Forget", "forget", "", "No longer list", forget),
    ),
    says,
  ];
}

function summary(card, agent) {
  tell(part(card, "name"), nameOf(agent));
  say(card, "state", agent.state);
  part(card, "state").className = `state ${agent.state}`;
  say(card, "about", [short(agent.agent_id), agent.profile, agent.pane, agent.cwd].filter(Boolean).join("  "));
  const line = part(card, "context");
  const { context } = agent;
  line.hidden = !context;
  if (context) {
    const used = context.percent == null ? `${context.used} tokens` : `${context.percent} %`;
    const meter = context.percent == null ? "" : el("meter", { min: 0, max: 100, high: 80, value: context.percent, "aria-hidden": "true" });
    const word = agent.handoff_suggested ? el("strong", {}, " Nearly full: hand it off") : "";
    line.replaceChildren("Context ", meter, ` ${used}`, word);
  }
  const [open, type] = [part(card, "open"), part(card, "send")];
  const isShut = !agent.persona_slug || Boolean(agent.handoff_id) || !lives(agent);
  if (isShut && document.activeElement === open) card.focus();
  open.disabled = isShut;
  open.title = agent.persona_slug ? "" : "An agent without a persona can't be handed off";
  open.setAttribute("aria-label", `Hand off ${titleOf(agent)}`);
  type.disabled = !agent.persona_slug || !lives(agent);
  type.setAttribute("aria-label", `Send a text to ${titleOf(agent)}`);
}

function update(card, agent) {
  const links = [
    agent.handoff_id && ["in ", linkTo("handoffs", agent.handoff_id, `handoff ${short(agent.handoff_id)}`), " "],
    agent.previous_agent_id && ["after ", linkTo("agents", agent.previous_agent_id, short(agent.previous_agent_id)), " "],
    agent.successor_id && ["followed by ", linkTo("agents", agent.successor_id, short(agent.successor_id))],
  ];
  part(card, "links").replaceChildren(...links.filter(Boolean).flat());
  // Whatever else the view says, so that a new field of it is shown without a line here.
  const plain = Object.entries(agent).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value));
  part(card, "fields").replaceChildren(...described(plain.map(([name, value]) => [worded(name), [String(value)]])));
  part(card, "ending").hidden = !lives(agent);
}

const list = new CardList("agents", { idOf: (agent) => agent.agent_id, row, body, summary, update });

/** Draws the agents that live, or those that the filter asks for. */
export function drawAgents() {
  const all = [...agents.values()];
  const living = all.filter(lives).length;
  const shown = all.filter((agent) => matches("agents", agent));
  shown.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : nameOf(a) > nameOf(b) ? 1 : a.agent_id < b.agent_id ? -1 : 1));
  list.draw([{ list: at("agents"), things: shown }]);
  headline("agents-title", "Agents", shown.length, living);
  at("no-agents").hidden = shown.length > 0 || living > 0;
  at("no-agents-shown").hidden = shown.length > 0 || living === 0;
}

/** Offers the personas that there are, each with its role and profile. */
async function offerPersonas() {
  // Without the list, a name can still be typed.
  const all = await api("/api/personas").catch(() => []);
  const words = (persona) => [persona.name, persona.role, persona.profile].filter(Boolean).join(", ");
  at("personas").replaceChildren(...all.map((persona) => el("option", { value: persona.persona_slug }, words(persona))));
}

/** The form that starts an agent, and its button. */
export function prepareAgents() {
  const { form, opener } = asking({
    opens: "New agent…",
    name: "new-agent",
    key: "n",
    go: "Start the agent",
    fields: [
      { name: "persona_slug", label: "Persona", required: true, list: "personas", most: 64 },
      { name: "cwd", label: "Folder that it works in, an absolute path", example: "/", pattern: "/.*" },
    ],
    more: [
      { name: "profile", label: "Profile, in place of the persona's own", most: 64 },
      { name: "session", label: "tmux session for its window", most: 128 },
    ],
    send: async (fields) => {
      const made = await ask("agent_create", fields);
      notice(`Agent ${fields.persona_slug} ${short(made.agent_id)} starts.`);
      touch("agents", made.agent_id);
    },
  });
  opener.addEventListener("click", offerPersonas);
  at("agents-tools").append(opener);
  at("agents-tools").after(form);
}
