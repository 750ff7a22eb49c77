// Links to one thing: `#/handoffs/<id>`, `#/agents/<id>`, `#/work/<id>`, `#/errors/<id>` and `#/hosts/<name>`; `#/handoffs` leads
// to the list.

import { whyNot } from "./api.js";
import { listOf } from "./cards.js";
import { at, part } from "./dom.js";
import { pin } from "./filter.js";
import { notice } from "./forms.js";
import { changed, fetchError, fetchOne, mapOf } from "./store.js";

const SECTIONS = { needs: "needs", agents: "agents-section", handoffs: "handoffs-section", work: "work-section", errors: "errors", lineage: "lineage-section", hosts: "hosts-section" };
const WORDS = { agents: "agent", handoffs: "handoff", work: "work item", errors: "error", hosts: "host" };

/** Gives the focus to a section. */
export function goTo(kind) {
  const section = at(SECTIONS[kind]);
  if (!section || section.hidden) return;
  section.focus({ preventScroll: true });
  section.scrollIntoView({ block: "start" });
}

/** The whole id, if this is the beginning of exactly one known id. */
function wholeId(kind, start) {
  if (mapOf(kind).has(start)) return start;
  const known = [...mapOf(kind).keys()].filter((id) => id.startsWith(start));
  return known.length === 1 ? known[0] : start;
}

/** Opens a card and gives it the focus. A thing that is not in the lists is fetched. */
async function open(kind, start) {
  let id = wholeId(kind, start);
  if (!mapOf(kind).has(id)) {
    if (kind === "hosts") return notice(`The fleet has no host ${id}.`);
    try {
      if (kind === "errors") id = await fetchError(id);
      else await fetchOne(kind, id);
    } catch (failure) {
      return notice(failure.status === 404 ? `There is no ${WORDS[kind]} ${id}.` : whyNot(failure));
    }
  }
  pin(kind, id);
  changed(kind);
  const card = listOf(kind).toggle(id, true);
  if (!card) return undefined;
  part(card, "name").focus({ preventScroll: true });
  return card.scrollIntoView({ block: "nearest" });
}

/** An id as an address has it; as it stands there, if that is not encoded properly. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Goes where the page's address says. */
export function follow() {
  const [, kind, id] = /^#\/([a-z]+)(?:\/([^/?]+))?$/.exec(location.hash) ?? [];
  if (!SECTIONS[kind]) return undefined;
  return id && mapOf(kind) ? open(kind, decoded(id)) : goTo(kind);
}

/** Follows links within the page, and Back. */
export function prepareRoutes() {
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.('a[href^="#/"]');
    // A second click on the same link changes no address, but is meant all the same.
    if (link && !event.defaultPrevented && link.getAttribute("href") === location.hash) follow();
  });
}
