// The picture of agents and their predecessors. A box or a line is drawn again only if it has changed.

import { at, cut, short, svg, tell } from "./dom.js";
import { agents, lives, nameOf } from "./store.js";

const MOST_GENERATIONS = 6;
const [WIDE, HIGH, GAP_X, GAP_Y] = [150, 44, 46, 14];

const boxes = new Map();
const lines = new Map();
let picture = null;

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

/** Where each agent has its box, and where each line to a successor runs. */
function layout() {
  const { roots, children } = families();
  const [places, links] = [new Map(), new Map()];
  let [row, columns] = [0, 0];
  const place = (agent, column) => {
    const [x, y] = [column * (WIDE + GAP_X) + 2, row * (HIGH + GAP_Y) + 2];
    columns = Math.max(columns, column + 1);
    places.set(agent.agent_id, { agent, x, y, isFirst: column === 0 });
    children.get(agent.agent_id).forEach((child, number) => {
      if (number > 0) row += 1;
      links.set(child.agent_id, [x + WIDE, y + HIGH / 2, x + WIDE + GAP_X, row * (HIGH + GAP_Y) + 2 + HIGH / 2].join(" "));
      place(child, column + 1);
    });
  };
  for (const root of roots) {
    place(root, 0);
    row += 1;
  }
  return { places, links, width: Math.max(0, columns * (WIDE + GAP_X) - GAP_X + 4), height: Math.max(0, row * (HIGH + GAP_Y) - GAP_Y + 4) };
}

const set = (node, name, value) => node.getAttribute(name) !== String(value) && node.setAttribute(name, value);

function makeBox() {
  const name = svg("text", { x: 10, y: 19 });
  const about = svg("text", { x: 10, y: 35, class: "small" });
  return svg("g", {}, svg("rect", { width: WIDE, height: HIGH, rx: 6 }), name, about);
}

function fillBox(box, { agent, x, y, isFirst }) {
  const older = isFirst && agent.previous_agent_id ? "… " : "";
  set(box, "class", lives(agent) ? "living" : "");
  set(box, "transform", `translate(${x} ${y})`);
  const [, name, about] = box.children;
  tell(name, `${older}${cut(nameOf(agent), 18)}`);
  tell(about, `${short(agent.agent_id)} ${lives(agent) ? agent.state : "ended"}`);
}

function fillLine(drawn, ends) {
  const [fromX, fromY, toX, toY] = ends.split(" ").map(Number);
  const bend = GAP_X / 2;
  set(drawn.firstChild, "d", `M${fromX} ${fromY} C${fromX + bend} ${fromY} ${toX - bend} ${toY} ${toX - 6} ${toY}`);
  set(drawn.lastChild, "d", `M${toX} ${toY} l-8 -4 v8 z`);
}

/** Makes these elements be there, one for each key. */
function renew(known, wanted, make, fill) {
  for (const [id, node] of known) {
    if (wanted.has(id)) continue;
    node.remove();
    known.delete(id);
  }
  for (const [id, what] of wanted) {
    let node = known.get(id);
    if (!node) {
      node = make();
      known.set(id, node);
      picture.append(node);
    }
    fill(node, what);
  }
}

export function drawLineage() {
  const { places, links, width, height } = layout();
  at("no-lineage").hidden = places.size > 0;
  at("lineage").hidden = places.size === 0;
  if (!picture) {
    picture = svg("svg", { role: "img" }, svg("title"));
    at("lineage").append(picture);
  }
  tell(picture.firstChild, places.size === 1 ? "One agent" : `${places.size} agents, each beside its predecessor`);
  for (const [name, value] of [["width", width], ["height", height], ["viewBox", `0 0 ${width} ${height}`]]) set(picture, name, value);
  renew(lines, links, () => svg("g", {}, svg("path"), svg("path", { class: "tip" })), fillLine);
  renew(boxes, places, makeBox, fillBox);
}
