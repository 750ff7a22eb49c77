// The keyboard. A key of a card activates the button, field or summary of this card that has it in `data-key`.

import { cardAt, listOf } from "./cards.js";
import { at, el } from "./dom.js";
import { notice } from "./forms.js";
import { goTo } from "./route.js";

const SECTION_OF = { 0: "needs", 1: "agents", 2: "handoffs", 3: "work", 4: "errors", 5: "lineage", 6: "hosts" };
const LISTS = ["agents", "handoffs", "work", "errors", "hosts"];
const STEP_OF = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };

/** The keys, as the help shows them. */
const HELP = [
  ["0 … 6", "what needs you, agents, handoffs, work, errors, lineage, other hosts"],
  ["↑ ↓, j k", "previous or next card of the list; Home and End go to its ends"],
  ["Enter", "open or close the card"],
  ["Tab", "buttons and fields of the card, then the next list"],
  ["Esc", "close the form or the card"],
  ["/", "search"],
  ["n", "in a list: new agent, new work item"],
  ["h, s, e", "agent: hand off, send a text, end"],
  ["v, f", "handoff: its document, what tasuki has seen"],
  ["a, w, c", "handoff: accept the document, ask for a change, cancel"],
  ["r, x", "failed handoff: retry, abandon"],
  ["y, t", "handoff in doubt: the text arrived, or type it again"],
  ["q", "handoff: answer the successor's questions"],
  ["p", "handoff: publish the document"],
  ["l, o, u", "work item: claim, complete, release"],
  ["e, b, m, r", "work item: escalate, undo the completion, comment, make children again that could not be made"],
  ["d", "error: dismiss"],
  ["y, n", "in a question: yes or no"],
  ["Ctrl+Enter", "in a form: send it"],
  ["?", "this help"],
];

/** Where it is remembered that keys that are single characters are off. */
const OFF = "tasuki-keys-off";

const isTyping = (node) => node.isContentEditable || node.matches?.("textarea, select, input:not([type=checkbox])");
const isShown = (node) => node.checkVisibility() && !node.disabled;

function showHelp() {
  at("keys").showModal();
}

/** Activates what has this key: a field gets the focus, everything else is clicked. */
function activate(node) {
  if (node.matches("input")) node.focus();
  else {
    node.focus();
    node.click();
  }
}

/** What has this key within an element and can be used now. */
const holder = (within, key) => [...within.querySelectorAll(`[data-key="${CSS.escape(key)}"]`)].find(isShown);

/** A key for the card that has the focus. A closed card is opened first, if the key is not in its row. */
function inCard({ card, list }, key) {
  const found = holder(card, key);
  if (found) return activate(found);
  if (!card.dataset.open) {
    list.toggle(card.dataset.id, true);
    const inside = holder(card, key);
    if (inside) return activate(inside);
  }
  return card.querySelector(`[data-key="${CSS.escape(key)}"]`) ? notice(`“${key}” is not possible here now.`) : undefined;
}

/** Goes from card to card; from elsewhere to the list of the section, or to the first list that has a card. */
function walk(target, step) {
  const where = cardAt(target);
  if (where) return where.list.move(where.card, step);
  const section = target.closest?.("section");
  const own = LISTS.map(listOf).filter((list) => list.current && section?.contains(list.current));
  const list = own[0] ?? LISTS.map(listOf).find((known) => known.current);
  return list?.current.querySelector(".name").focus();
}

function pressed(event) {
  const { key, target } = event;
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (at("main").hidden || isTyping(target)) return;
  const where = cardAt(target);
  if (key === "Escape") {
    if (where?.card.dataset.open) where.list.toggle(where.card.dataset.id, false);
    return;
  }
  const isCharacter = key.length === 1;
  if (isCharacter && localStorage.getItem(OFF)) return;
  if (STEP_OF[key] !== undefined) {
    // In a document the arrow keys scroll, and only from a card they go to its ends.
    if (!isCharacter && (!where || !target.matches("[data-rove], .card"))) return;
    walk(target, STEP_OF[key]);
  } else if (!isCharacter) return;
  else if (key === "?") showHelp();
  else if (key === "/") at("filter").elements.search.focus();
  else if (SECTION_OF[key]) goTo(SECTION_OF[key]);
  else if (where && /[a-z]/.test(key) && key !== "n") inCard(where, key);
  else {
    const found = target.closest?.("section") && holder(target.closest("section"), key);
    if (!found) return;
    // What no person has chosen must not be acted on: without a card, only the list itself has a key.
    if (key === "n") activate(found);
    else notice(`“${key}” is for a card of this list. Go to a card first, for instance with j.`);
  }
  event.preventDefault();
}

/** Connects the keyboard, and fills the help. */
export function prepareKeys() {
  at("keys-list").append(...HELP.flatMap(([keys, does]) => [el("dt", {}, el("kbd", {}, keys)), el("dd", {}, does)]));
  at("keys-open").addEventListener("click", showHelp);
  at("keys-close").addEventListener("click", () => at("keys").close());
  const isOn = at("keys-on");
  isOn.checked = !localStorage.getItem(OFF);
  isOn.addEventListener("change", () => (isOn.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "yes")));
  document.addEventListener("keydown", pressed);
}
