// The failures that nobody has dismissed.

import { ask } from "./api.js";
import { CardList, headline } from "./cards.js";
import { at, clock, cut, described, el, linkTo, part, say, short, tell, worded } from "./dom.js";
import { matches } from "./filter.js";
import { action, refusals } from "./forms.js";
import { touchNeeds } from "./needs.js";
import { changed, errors, hasOlderErrors } from "./store.js";

/** The most characters of a message in a question. */
const MOST_SAID = 200;

function row(id) {
  const says = refusals();
  const work = async () => {
    await ask("error_dismiss", { error_id: id });
    errors.delete(id);
    changed("errors");
    touchNeeds();
  };
  const question = () => {
    const error = errors.get(id);
    return `Dismiss the error ${[error?.code, `(${short(id)})`].filter(Boolean).join(" ")}? ${cut(error?.message ?? "", MOST_SAID)}`;
  };
  const dismiss = action("Dismiss", { name: "dismiss", key: "d", question, says, work });
  dismiss.dataset.rove = "true";
  return [el("p", { "data-part": "hint" }), el("div", { class: "row" }, dismiss), says];
}

function summary(card, error) {
  card.classList.add("error");
  tell(part(card, "name"), error.message);
  say(card, "state", "");
  say(card, "hint", error.hint);
  const about = [clock(error.at), error.code, error.step, error.handoff_id && `handoff ${short(error.handoff_id)}`];
  say(card, "about", about.filter(Boolean).join("  "));
  part(card, "dismiss").setAttribute("aria-label", `Dismiss: ${error.message}`);
}

function update(card, error) {
  const plain = Object.entries(error).filter(([, value]) => ["string", "number"].includes(typeof value));
  const linked = { handoff_id: "handoffs", agent_id: "agents" };
  const shown = ([name, value]) => [worded(name), [linked[name] ? linkTo(linked[name], value, value) : String(value)]];
  part(card, "fields").replaceChildren(...described(plain.map(shown)));
}

const body = () => [el("dl", { class: "faint", "data-part": "fields" })];
const list = new CardList("errors", { idOf: (error) => error.error_id, row, body, summary, update });

/** Draws the errors, the newest first. */
export function drawErrors() {
  const all = [...errors.values()];
  const shown = all.filter((error) => matches("errors", error)).sort((a, b) => (a.at < b.at ? 1 : -1));
  list.draw([{ list: at("error-list"), things: shown }]);
  // An element in a hidden section can't keep the focus.
  if (!all.length && at("errors").contains(document.activeElement)) at("needs").focus();
  for (const id of ["errors", "to-errors"]) at(id).hidden = all.length === 0;
  if (!hasOlderErrors()) return headline("errors-title", "Errors", shown.length, all.length);
  const those = `newest ${all.length}`;
  return tell(at("errors-title"), `Errors (${shown.length === all.length ? those : `${shown.length} of the ${those}`})`);
}
