// Lists of cards. A card is a row that opens: its body is built when it is opened for the first time, and only cards whose
// view has changed are drawn again. With the keyboard one card of a list is the current one: Tab reaches only the row of this
// card, and the arrow keys go from card to card.

import { at, el, part, tell } from "./dom.js";
import { SETTLED, isInUse } from "./forms.js";
import { mapOf } from "./store.js";

/** How many cards open by themselves. */
const MOST_OPEN = 6;

const GONE = "This is no longer in the list. It stays here as long as something that is typed in it is neither sent nor closed.";

const lists = new Map();

export const listOf = (kind) => lists.get(kind);
export const redrawAll = () => lists.forEach((list) => list.redraw());

/** The list and the card that an element is in. */
export function cardAt(node) {
  const card = node?.closest?.("li.card[data-kind]");
  return card ? { card, list: lists.get(card.dataset.kind) } : null;
}

export class CardList {
  /**
   * `idOf` a view; `row` and `body` make the elements of a new card; `summary` and `update` fill them from the view;
   * `opens` says which cards open by themselves.
   */
  constructor(kind, parts) {
    Object.assign(this, { kind, parts, cards: new Map(), things: new Map(), current: null });
    lists.set(kind, this);
  }

  /** Shows these views, each group in its list. */
  draw(groups) {
    const active = document.activeElement;
    const seen = new Set();
    for (const { list, things } of groups) {
      let place = list.firstElementChild;
      for (const thing of things) {
        const id = this.parts.idOf(thing);
        seen.add(id);
        const card = this.cards.get(id) ?? this.make(id, thing);
        this.fill(card, thing);
        markGone(card, false);
        if (card === place) place = place.nextElementSibling;
        else list.insertBefore(card, place);
      }
    }
    for (const [id, card] of this.cards) if (!seen.has(id)) this.leave(id, card);
    // An element that was moved has lost the focus.
    if (active !== document.activeElement && active?.isConnected) active.focus();
    if (!this.current) this.setCurrent(groups.map(({ list }) => list.firstElementChild).find(Boolean));
  }

  make(id, thing) {
    const name = el("a", { href: `#/${this.kind}/${encodeURIComponent(id)}`, class: "name", "data-part": "name", "data-rove": true, "aria-expanded": "false" });
    const head = el("div", { class: "head" }, el(`h${this.parts.level ?? 3}`, {}, name), el("span", { "data-part": "state" }));
    const card = el("li", { class: "card", id: `${this.kind}-${id}`, tabindex: -1, "data-kind": this.kind, "data-id": id }, head);
    card.append(el("p", { class: "faint mono", "data-part": "about" }), ...(this.parts.row?.(id, card) ?? []));
    card.append(makeGone(card, () => this.leave(id, card)));
    name.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.toggle(id);
    });
    for (const node of card.querySelectorAll("[data-rove]")) node.tabIndex = -1;
    card.addEventListener("focusin", () => this.setCurrent(card));
    this.cards.set(id, card);
    if (this.parts.opens?.(thing) && this.hasRoom()) this.build(id, card, "by itself");
    return card;
  }

  /** Draws a card, if its view is another one. */
  fill(card, thing) {
    const { id } = card.dataset;
    if (this.things.get(id) === thing) return;
    this.things.set(id, thing);
    this.parts.summary(card, thing);
    if (card.dataset.open) this.parts.update(card, thing);
  }

  /** Draws all cards once more. */
  redraw() {
    const known = [...this.things];
    this.things.clear();
    for (const [id, thing] of known) this.fill(this.cards.get(id), thing);
  }

  /** Removes a card whose view is no longer shown, unless a person would lose something with it. */
  leave(id, card) {
    if (!isInUse(card)) return this.remove(id, card);
    const thing = mapOf(this.kind)?.get(id);
    if (thing) this.fill(card, thing);
    return markGone(card, true);
  }

  remove(id, card) {
    const beside = card.nextElementSibling ?? card.previousElementSibling;
    if (card.contains(document.activeElement)) card.parentElement?.focus();
    this.cards.delete(id);
    this.things.delete(id);
    card.remove();
    if (this.current !== card) return;
    // Without a current card, neither Tab nor j would find this list.
    this.current = null;
    this.setCurrent(beside ?? this.cards.values().next().value);
  }

  /** Whether one more card may open by itself; if need be, a card that had done so and is of no interest now is closed. */
  hasRoom() {
    const open = [...this.cards.values()].filter((card) => card.dataset.open);
    if (open.length < MOST_OPEN) return true;
    const isIdle = (card) => card.dataset.open === "by itself" && !this.parts.opens(this.things.get(card.dataset.id)) && !card.contains(document.activeElement);
    const idle = open.find(isIdle);
    if (idle) this.close(idle);
    return Boolean(idle);
  }

  build(id, card, how = "by hand") {
    let body = part(card, "body");
    if (!body) {
      body = el("div", { class: "body", "data-part": "body" }, ...this.parts.body(id, card));
      card.append(body);
    }
    body.hidden = false;
    card.dataset.open = how;
    part(card, "name").setAttribute("aria-expanded", "true");
  }

  /** Opens or closes a card, and notes an opened one in the page's address. */
  toggle(id, isOpen = !this.cards.get(id)?.dataset.open) {
    const card = this.cards.get(id);
    if (!card) return null;
    if (isOpen && !card.dataset.open) {
      this.build(id, card);
      this.parts.update(card, this.things.get(id));
    }
    if (!isOpen && card.dataset.open) this.close(card);
    history.replaceState(null, "", isOpen ? `#/${this.kind}/${encodeURIComponent(id)}` : location.pathname);
    return card;
  }

  close(card) {
    const body = part(card, "body");
    if (body.contains(document.activeElement)) part(card, "name").focus();
    body.hidden = true;
    delete card.dataset.open;
    part(card, "name").setAttribute("aria-expanded", "false");
  }

  setCurrent(card) {
    if (!card || this.current === card) return;
    const reach = (of, index) => of?.querySelectorAll("[data-rove]").forEach((node) => (node.tabIndex = index));
    reach(this.current, -1);
    reach(card, 0);
    this.current = card;
  }

  /** Goes to the next or the previous card, or to the first or last one. */
  move(from, step) {
    const all = [...this.cards.values()].filter((card) => card.isConnected);
    all.sort((one, other) => (one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
    const place = all.indexOf(from);
    const next = Number.isFinite(step) ? Math.min(Math.max(place + step, 0), all.length - 1) : step > 0 ? all.length - 1 : 0;
    if (all[next]) part(all[next], "name").focus();
  }
}

/** The line that says that a card is no longer in its list. `leave` is called when it may not be needed any longer. */
export function makeGone(card, leave) {
  for (const kind of [SETTLED, "input"]) card.addEventListener(kind, () => card.dataset.gone && leave());
  return el("p", { class: "says", role: "status", hidden: true, "data-part": "gone" });
}

/** Marks a card whose view is no longer in its list. */
export function markGone(card, isGone) {
  if (Boolean(card.dataset.gone) === isGone) return;
  if (isGone) card.dataset.gone = "true";
  else delete card.dataset.gone;
  tell(part(card, "gone"), isGone ? GONE : "");
  part(card, "gone").hidden = !isGone;
}

/** Tells in a section's heading how many entries it shows. */
export function headline(id, words, shown, all) {
  tell(at(id), shown === all ? `${words} (${all})` : `${words} (${shown} of ${all})`);
}
