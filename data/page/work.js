// The board of work items: a list for each status, and what can be done about an item.

import { Refused, ask } from "./api.js";
import { CardList, headline } from "./cards.js";
import { at, clock, cut, described, el, linkTo, part, rebuild, say, short, tell, worded } from "./dom.js";
import { matches } from "./filter.js";
import { asking, notice } from "./forms.js";
import { agents, isFinished, items, lives, nameOf, showFinished, touch, whoIs } from "./store.js";

const STATUSES = ["ready", "claimed", "escalated", "done", "withdrawn"];
const PRIORITIES = ["urgent", "high", "normal", "low"];
/** The types that are built in; the rules may have others. */
const TYPES = ["project_spec", "feature", "prd", "story", "bug", "task"];
/** How much of an item is shown: characters of its output, and entries of its history. */
const MOST_OUTPUT = 20000;
const MOST_ENTRIES = 100;
const HUMAN = "human";

/** Sends a request about an item, and renews its card. */
async function about(id, kind, more) {
  const result = await ask(kind, { item_id: id, ...more });
  touch("work", id);
  return result;
}

const claimants = () => {
  const named = [...agents.values()].filter((agent) => lives(agent) && agent.persona_slug);
  return [[HUMAN, "yourself"], ...named.map((agent) => [agent.agent_id, `${nameOf(agent)} ${short(agent.agent_id)}`])];
};

/** A text of a form as JSON; a refusal in words if it is not. */
function jsonOf(text, what) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refused(`${what} is not JSON`);
  }
}

const why = (required) => [{ name: "reason", label: required ? "Why" : "Why (may be left out)", required, spell: true }];

/** The forms of an item, each with the key that opens it. */
const forms = (id) => ({
  claim: { opens: "Claim…", key: "l", go: "Claim", fields: [{ name: "agent_id", label: "For", kind: "select", options: claimants }], send: (said) => about(id, "work_claim", said) },
  complete: {
    opens: "Complete…",
    key: "o",
    go: "Complete",
    fields: [{ name: "output", label: "What came of it, a JSON object", kind: "area", required: true, value: '{"completed": true}' }],
    more: [
      { name: "children", label: "Children, a JSON list of objects with type and title", kind: "area" },
      { name: "partial", label: "Make the valid children even if others are not", kind: "check" },
      { name: "next_status", label: "Status that follows", kind: "select", options: [["", "as the rule says"], ["done", "done"], ["ready", "ready"], ["escalated", "escalated"]] },
    ],
    send: ({ output, children, ...rest }) => {
      const body = { ...rest, agent_id: items.get(id).claimed_by, output: jsonOf(output, "The output") };
      return about(id, "work_complete", children ? { ...body, children: jsonOf(children, "The list of children") } : body);
    },
  },
  release: { opens: "Release…", key: "u", go: "Release", fields: why(false), send: (said) => about(id, "work_release", { agent_id: HUMAN, ...said }) },
  escalate: { opens: "Escalate…", key: "e", go: "Escalate", fields: why(true), send: (said) => about(id, "work_escalate", { agent_id: items.get(id).claimed_by, ...said }) },
  rollback: { opens: "Undo the completion…", key: "b", go: "Undo it", fields: why(true), send: (said) => about(id, "work_rollback", said) },
  "retry-children": {
    opens: "Make the children again…",
    key: "r",
    go: "Make them",
    fields: [{ name: "children", label: "In place of all that failed, a JSON list of objects with type and title; the same ones again, if it is empty", kind: "area" }],
    more: [{ name: "partial", label: "Make the valid children even if others are not", kind: "check" }],
    send: ({ children, ...rest }) => {
      const body = { ...rest, agent_id: HUMAN };
      return about(id, "work_retry_children", children ? { ...body, children: jsonOf(children, "The list of children") } : body);
    },
  },
  comment: { opens: "Comment…", key: "m", go: "Comment", fields: [{ name: "text", label: "Comment", kind: "area", required: true, spell: true }], send: (said) => about(id, "work_comment", { author: HUMAN, ...said }) },
});

const isIn = (...statuses) => (item) => statuses.includes(item.status);

/** For which items each form is possible. */
const POSSIBLE = {
  claim: isIn("ready", "escalated"),
  complete: isIn("claimed"),
  release: isIn("claimed", "escalated"),
  escalate: isIn("claimed"),
  rollback: isIn("done"),
  "retry-children": (item) => item.status === "done" && item.failed_children?.length > 0,
  comment: () => true,
};

function body(id) {
  const made = Object.entries(forms(id)).map(([name, form]) => asking({ name, ...form }));
  return [
    el("p", { class: "text", "data-part": "description" }),
    el("div", { class: "row" }, ...made.map(({ opener }) => opener)),
    ...made.map(({ form }) => form),
    el("dl", { "data-part": "fields" }),
    el("ul", { class: "comments", "data-part": "comments", "aria-label": "Comments" }),
    el("details", {}, el("summary", {}, "History"), el("ol", { class: "history", "data-part": "history" })),
  ];
}

function summary(card, item) {
  tell(part(card, "name"), item.title);
  say(card, "state", item.status);
  part(card, "state").className = `state ${item.status}`;
  const owner = item.claimed_by ? `  ${whoIs(item.claimed_by)}` : "";
  say(card, "about", `${short(item.item_id)}  ${item.type}  ${item.priority}${owner}`);
}

function update(card, item) {
  say(card, "description", item.description);
  for (const [name, isPossible] of Object.entries(POSSIBLE)) {
    const isHidden = !isPossible(item);
    part(card, name).hidden = isHidden;
    if (isHidden) part(card, `${name}-form`).hidden = true;
  }
  const shown = [item.status, item.claimed_by, item.claimed_at, item.parent_id, item.children, item.output, item.metadata, item.failed_children, item.escalation_reason, item.completed_at, item.held_by];
  rebuild(part(card, "fields"), shown, () => fieldsOf(item));
  rebuild(part(card, "comments"), item.comments, () =>
    (item.comments || []).map((comment) => el("li", {}, el("span", { class: "faint" }, `${clock(comment.at)} ${whoIs(comment.author) || comment.author}: `), comment.text)),
  );
  rebuild(part(card, "history"), item.history, () => (item.history || []).slice(-MOST_ENTRIES).map((entry) => el("li", {}, told(entry))));
}

/** A line of an item's history. */
function told(entry) {
  const who = entry.by === "tasuki" ? "tasuki" : whoIs(entry.by);
  const reason = entry.reason ? `: ${entry.reason}` : "";
  return `${clock(entry.at)} ${worded(entry.action)} by ${who}, ${entry.to}${reason}`;
}

const json = (value) => (value == null || !Object.keys(value).length ? null : el("pre", {}, cut(JSON.stringify(value, null, 2), MOST_OUTPUT)));

function fieldsOf(item) {
  const since = item.claimed_at ? `, since ${clock(item.claimed_at)}` : "";
  const owner = item.claimed_by === HUMAN ? "you" : item.claimed_by && linkTo("agents", item.claimed_by, whoIs(item.claimed_by));
  return described([
    ["item", [item.item_id]],
    ["claimed by", [owner && el("span", {}, owner, since)]],
    ["reserved by", [item.held_by && linkTo("handoffs", item.held_by, `handoff ${short(item.held_by)}`)]],
    ["belongs to", [item.parent_id && linkTo("work", item.parent_id, short(item.parent_id))]],
    ["children", (item.children || []).map((child) => linkTo("work", child, short(child)))],
    ["created", [`${clock(item.created_at)} by ${whoIs(item.created_by)}`]],
    ["escalated because", [item.escalation_reason]],
    ["completed", [item.completed_at && `${clock(item.completed_at)} by ${whoIs(item.completed_by)}`]],
    ["output", [json(item.output)]],
    ["output of its parent", [json(item.parent_output)]],
    ["metadata", [json(item.metadata)]],
    ["not created", (item.failed_children || []).map((child) => `${child.title ?? child.type ?? child.index}: ${child.errors.map((wrong) => wrong.message).join(", ")}`)],
  ]);
}

const list = new CardList("work", { idOf: (item) => item.item_id, body, summary, update, level: 4 });
const rank = (item) => PRIORITIES.indexOf(item.priority);

/** Draws the board: a list for each status, the most important item first. */
export function drawWork() {
  const all = [...items.values()];
  const shown = all.filter((item) => matches("work", item));
  shown.sort((left, right) => rank(left) - rank(right) || (left.created_at < right.created_at ? -1 : 1));
  const groups = STATUSES.map((status) => ({ list: at(`work-${status}`), things: shown.filter((item) => item.status === status) }));
  const fits = ({ list: node }) => (node.parentElement.hidden = !node.childElementCount);
  // An element in a hidden section can't keep the focus.
  for (const { list: node, things } of groups) if (things.length) node.parentElement.hidden = false;
  list.draw(groups);
  groups.forEach(fits);
  const known = at("with-finished").checked ? all.length : all.filter((item) => !isFinished(item)).length;
  headline("work-title", "Work", shown.length, known);
  at("no-work").hidden = known > 0;
  const types = [...new Set([...TYPES, ...all.map((item) => item.type)])].sort();
  rebuild(at("types"), types, () => types.map((type) => el("option", { value: type })));
}

/** The form that creates an item, and the choice to show finished items too. */
export function prepareWork() {
  const { form, opener } = asking({
    opens: "New item…",
    name: "new-item",
    key: "n",
    go: "Create the item",
    fields: [
      { name: "title", label: "Title", required: true, most: 500, spell: true },
      { name: "type", label: "Type (tasuki rules check shows those that there are)", required: true, most: 64, list: "types" },
      { name: "description", label: "Description", kind: "area", spell: true },
    ],
    more: [
      { name: "priority", label: "Priority", kind: "select", options: [["", "its parent's, or normal"], ...PRIORITIES.map((one) => [one, one])] },
      { name: "parent_id", label: "Id of the item that it belongs to", most: 128 },
    ],
    send: async (fields) => {
      const made = await ask("work_create", fields);
      notice(`Item ${short(made.item_id)} is created.`);
      touch("work", made.item_id);
    },
  });
  at("work-tools").prepend(opener);
  at("work-tools").after(form);
  at("with-finished").addEventListener("change", (event) => showFinished(event.target.checked));
}
