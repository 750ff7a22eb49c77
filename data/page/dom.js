// Elements. Texts from agents and documents become text nodes, never HTML.

export const at = (id) => document.getElementById(id);

/** An element with properties, classes and children; texts become text nodes. */
export function el(name, props = {}, ...children) {
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
export function svg(name, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, String(value));
  node.append(...children);
  return node;
}

/**
 * Makes a list show these items in this order. Existing elements are kept, with their focus and typed text. An element whose
 * item is gone stays if `stays` says so.
 */
export function keyed(list, things, idOf, make, update, stays = () => false) {
  const old = new Map([...list.children].map((node) => [node.dataset.id, node]));
  const wanted = new Set(things.map(idOf));
  const placed = new Set();
  let place = list.firstElementChild;
  for (const thing of things) {
    const id = idOf(thing);
    // An element that was moved would lose the focus.
    while (place && !wanted.has(place.dataset.id)) place = place.nextElementSibling;
    let node = old.get(id);
    if (node) old.delete(id);
    else {
      node = make(thing);
      node.dataset.id = id;
    }
    update(node, thing);
    placed.add(node);
    if (node === place) place = place.nextElementSibling;
    else list.insertBefore(node, place);
  }
  for (const node of [...list.children]) {
    if (placed.has(node) || stays(node)) continue;
    // If the removed element had the focus, the list gets it: otherwise it would go to the page's top.
    if (node.contains(document.activeElement)) list.focus();
    node.remove();
  }
}

export const part = (node, name) => node.querySelector(`[data-part="${name}"]`);

/** Sets the text of an element, if it has another one. */
export function tell(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Sets the text of a part, which is hidden while there is nothing to say. */
export function say(node, name, text) {
  const found = part(node, name);
  tell(found, text ?? "");
  if (found.hidden !== !text) found.hidden = !text;
}

/** Builds an element's children again, only if what they show has changed. */
export function rebuild(node, shown, make) {
  const key = `${today()} ${JSON.stringify(shown ?? null)}`;
  if (node.dataset.key === key) return;
  node.dataset.key = key;
  node.replaceChildren(...make());
}

/** Rows of a description list: each is a name and the texts or elements that belong to it. */
export const described = (rows) =>
  rows.flatMap(([name, texts]) => {
    const shown = texts.filter((text) => text != null && text !== "" && text !== false);
    const cells = shown.map((text) => el("dd", { class: "mono" }, text instanceof Node ? text : String(text)));
    return cells.length ? [el("dt", {}, name), ...cells] : [];
  });

export const short = (id) => (id || "").slice(0, 8);
const TIME = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const DATE_AND_TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
export const today = () => new Date(Date.now()).toDateString();

/** A time in words; with its date, unless that is today. On the next day page.js draws it once more. */
export function clock(time) {
  const date = new Date(time ?? "");
  if (Number.isNaN(date.getTime())) return "";
  return (date.toDateString() === today() ? TIME : DATE_AND_TIME).format(date);
}

export const seconds = (from, to) => `${((new Date(to) - new Date(from)) / 1000).toFixed(1)} s`;
export const counted = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;
export const cut = (content, most) => (content.length > most ? `${content.slice(0, most - 1)}…` : content);
export const worded = (name) => String(name ?? "").replaceAll("_", " ");

/** A link to the card of a handoff, an agent or a work item. */
export const linkTo = (kind, id, words) => el("a", { href: `#/${kind}/${encodeURIComponent(id)}` }, words);

/** The address, if it is an address of the web; null for anything that a browser would run or open otherwise. */
export function webAddress(address) {
  const found = URL.canParse(address) ? new URL(address) : null;
  return found && ["http:", "https:"].includes(found.protocol) ? found.href : null;
}

/** A link to another site. It is opened only by a click, and tells nothing of this page. */
export const webLink = (href, words) => el("a", { href, title: href, rel: "noreferrer noopener", target: "_blank" }, words);
