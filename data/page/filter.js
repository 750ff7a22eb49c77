// The search box and the filters: which agents, handoffs, work items and errors are shown.

import { at, el, rebuild, worded } from "./dom.js";
import { ENDS, STEPS, isHeld } from "./steps.js";
import { agents, changed, errors, handoffs, isFinished, items, lives, nameOf } from "./store.js";

const STATES = ["starting", "idle", "busy", "blocked", "ended", "lost"];
/** Choices that stand for several steps. */
const GROUPS = { running: (handoff) => !ENDS.includes(handoff.step), "waits for you": isHeld };
const SETTLED_MS = 80;

const chosen = { words: [], persona: "", state: "", step: "" };
/** What a link leads to is shown even if the filter does not match it. */
const pinned = new Set();
/** The text in which a view is searched; a view that has changed is another object. */
const texts = new WeakMap();

const TEXTS = {
  agents: (agent) => [nameOf(agent), agent.agent_id, agent.profile, agent.pane, agent.cwd, agent.tmux_session, agent.state],
  handoffs: (handoff) => [handoff.persona_slug, handoff.reason, handoff.focus, handoff.handoff_id, handoff.agent_id, handoff.successor_id, handoff.step, handoff.file_path, handoff.error?.message, handoff.publish?.url],
  work: (item) => [item.title, item.type, item.description, item.item_id, item.claimed_by, item.parent_id, item.priority, item.status],
  errors: (error) => [error.message, error.code, error.hint, error.handoff_id, error.agent_id, error.step],
};

const FILTERS = {
  agents: (agent) => (chosen.state ? agent.state === chosen.state : lives(agent)) && (!chosen.persona || agent.persona_slug === chosen.persona),
  handoffs: (handoff) => (!chosen.step || (GROUPS[chosen.step]?.(handoff) ?? handoff.step === chosen.step)) && (!chosen.persona || handoff.persona_slug === chosen.persona),
  work: (item) => at("with-finished").checked || !isFinished(item),
  errors: () => true,
};

const IDS = { agents: "agent_id", handoffs: "handoff_id", work: "item_id", errors: "error_id" };

/** Whether a view is shown. */
export function matches(kind, thing) {
  if (pinned.has(`${kind} ${thing[IDS[kind]]}`)) return true;
  if (!FILTERS[kind](thing)) return false;
  if (!chosen.words.length) return true;
  if (!texts.has(thing)) texts.set(thing, TEXTS[kind](thing).filter(Boolean).join("\n").toLowerCase());
  const text = texts.get(thing);
  return chosen.words.every((word) => text.includes(word));
}

/** Shows this view from now on, whatever the filter says. */
export function pin(kind, id) {
  pinned.add(`${kind} ${id}`);
}

/** Offers the personas that there are. */
export function drawFilter() {
  const slugs = new Set();
  for (const agent of agents.values()) if (agent.persona_slug) slugs.add(agent.persona_slug);
  for (const handoff of handoffs.values()) slugs.add(handoff.persona_slug);
  const known = [...slugs].sort();
  const options = () => known.map((slug) => el("option", { value: slug }, slug));
  const select = at("filter").elements.persona;
  const before = select.value;
  rebuild(select, known, () => [el("option", { value: "" }, "all personas"), ...options()]);
  if (select.value !== before) select.value = known.includes(before) ? before : "";
}

function apply() {
  const { search, persona, state, step } = at("filter").elements;
  chosen.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  chosen.persona = persona.value;
  chosen.state = state.value;
  chosen.step = step.value;
  pinned.clear();
  changed("agents", "handoffs", "work", "errors");
  const count = ["agents", "handoffs", "work", "errors"].map((kind) => [...{ agents, handoffs, work: items, errors }[kind].values()].filter((thing) => matches(kind, thing)).length);
  const isAll = !chosen.words.length && !chosen.persona && !chosen.state && !chosen.step;
  at("filter-says").textContent = isAll ? "" : `${count[0]} agents, ${count[1]} handoffs, ${count[2]} work items and ${count[3]} errors match.`;
}

/** Connects the form. */
export function prepareFilter() {
  const form = at("filter");
  const { state, step } = form.elements;
  const offer = (select, names) => select.append(...names.map((name) => el("option", { value: name }, worded(name))));
  offer(state, STATES);
  offer(step, [...Object.keys(GROUPS), ...STEPS, ...ENDS]);
  let settled = 0;
  form.addEventListener("input", () => {
    clearTimeout(settled);
    settled = setTimeout(apply, SETTLED_MS);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  form.elements.search.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.target.value = "";
    apply();
  });
}
