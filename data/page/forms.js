// Buttons and forms that send requests. What comes of a request is told at the place that asked, or as a notice.

import { whyNot } from "./api.js";
import { at, el, tell } from "./dom.js";

/** How many notices are kept on the page, and for how long. */
const MOST_NOTICES = 3;
const NOTICE_MS = 30000;

/** Tells something that needs no answer: on the page, and to a screen reader. */
export function notice(text) {
  const list = at("notices");
  const close = el("button", { type: "button", "aria-label": `Close: ${text}` }, "Close");
  const row = el("p", {}, el("span", {}, text), close);
  close.addEventListener("click", () => row.remove());
  setTimeout(() => row.remove(), NOTICE_MS);
  list.append(row);
  while (list.children.length > MOST_NOTICES) list.firstElementChild.remove();
}

/** What waits for the answer to the question that is asked. */
let answered = null;

/** Asks whether something is to be done: a dialog with the keys y and n. */
function sure(question, yes) {
  answered?.(false);
  tell(at("sure-question"), question);
  tell(at("sure-yes"), yes);
  at("sure").showModal();
  return new Promise((resolve) => {
    answered = resolve;
  });
}

/** Connects the buttons of that dialog; once. */
export function prepareSure() {
  const dialog = at("sure");
  // The event `close` comes later than the dialog closes: by then, the next question may be asked.
  const answer = (isYes) => {
    const resolve = answered;
    answered = null;
    dialog.close();
    resolve?.(isYes);
  };
  at("sure-yes").addEventListener("click", () => answer(true));
  at("sure-no").addEventListener("click", () => answer(false));
  dialog.addEventListener("close", () => {
    if (!dialog.open) answer(false);
  });
  dialog.addEventListener("keydown", (event) => {
    if (!["y", "n", "Escape"].includes(event.key)) return;
    // A key that is held down, or still held from the action that asks, answers nothing.
    if (!event.repeat) answer(event.key === "y");
    event.preventDefault();
  });
}

/** The sign of an element whose question or request is open. */
const OPEN = "data-asked";

/** Whether an element holds what a person would miss: an open question or request, or a shown form in which something is typed. */
export const isInUse = (node) => node.querySelector(`[${OPEN}]`) !== null || [...node.querySelectorAll("form:not([hidden])")].some(isFilled);

/** Whether a form has other values than when it was made. A choice from a list is quickly made again. */
const isFilled = (form) =>
  [...form.elements].some((field) => (field.type === "checkbox" ? field.checked !== field.defaultChecked : "defaultValue" in field && field.value !== field.defaultValue));

/** The event on an element in which something was in use, and may be no longer. */
export const SETTLED = "settled";
const settle = (node) => node.dispatchEvent(new Event(SETTLED, { bubbles: true }));

/** Runs a button's action: meanwhile it can't be pressed again, and a refusal is shown beside it. */
export async function press(button, says, work) {
  const isFocused = document.activeElement === button;
  const list = button.closest("ul");
  button.disabled = true;
  button.setAttribute(OPEN, "");
  tell(says, "");
  try {
    await work();
  } catch (failure) {
    tell(says, whyNot(failure));
    // Its card may be gone, or go now: then nobody would see it there.
    if (!says.isConnected || says.closest("[data-gone]")) notice(`${button.textContent}: ${whyNot(failure)}`);
  } finally {
    button.disabled = false;
    button.removeAttribute(OPEN);
    settle(button);
    // A button that is disabled loses the focus.
    if (isFocused && document.activeElement === document.body) keepFocus(button, list);
  }
}

/** Gives the focus to this element; if it can't take the focus, to its card, or else to the list that the card was in. */
function keepFocus(node, list) {
  const can = (place) => place?.isConnected && !place.disabled && place.checkVisibility();
  // The list may be hidden together with its last card.
  [node, node.closest(".card, section"), list, document.querySelector("section:not([hidden])")].find(can)?.focus();
}

export const refusals = () => el("p", { class: "says", role: "alert" });

/** The attributes of an element that a key of the keyboard activates (keys.js). */
export const shortcut = (key) => (key ? { "data-key": key, "aria-keyshortcuts": key } : {});

/** A button with its action. `question` may give a text: then it asks first. */
export function action(text, { name, key, main, question, work, says }) {
  const node = el("button", { type: "button", class: main ? "main" : "", "data-part": name, ...shortcut(key) }, text);
  node.addEventListener("click", async () => {
    const asked = question?.();
    if (!asked) return press(node, says, work);
    node.setAttribute(OPEN, "");
    const isSure = await sure(asked, text);
    node.removeAttribute(OPEN);
    return isSure ? press(node, says, work) : settle(node);
  });
  return node;
}

function inputOf(field) {
  const { name, required, options, kind = "input", most = 16000, list } = field;
  if (kind === "check") return el("input", { name, type: "checkbox" });
  if (kind === "select") return el("select", { name }, ...(typeof options === "function" ? [] : optionsOf(options)));
  if (kind === "area") return el("textarea", { name, required, maxlength: most, rows: field.rows ?? 4 }, field.value ?? "");
  return el("input", { name, required, maxlength: most, autocomplete: "off", spellcheck: field.spell ? "true" : "false", list, placeholder: field.example, pattern: field.pattern });
}

const optionsOf = (options) => options.map(([value, words]) => el("option", { value }, words));

/** The filled fields of a form, by name: texts without blanks around them, and true for what is checked. */
function valuesOf(form, fields) {
  const said = fields.map(({ name, kind }) => [name, kind === "check" ? form.elements[name].checked : form.elements[name].value.trim()]);
  return Object.fromEntries(said.filter(([, value]) => value));
}

const labelled = (field, input) =>
  field.kind === "check" ? el("label", { class: "check" }, input, field.label) : el("label", {}, field.label, input);

/** Fills a form with its fields and buttons. */
function build(form, { fields, more, submit, shut, says }) {
  const rows = (list) => list.map((field) => labelled(field, inputOf(field)));
  const rest = more.length ? el("details", { class: "more" }, el("summary", {}, "More options"), ...rows(more)) : "";
  form.append(...rows(fields), rest, el("div", { class: "row" }, submit, shut), says);
}

/**
 * A form that is shown by a button, and built when it is shown for the first time. `fields` are asked for, `more` only after
 * "More options"; `send` gets the filled ones. It gives the form and its button.
 */
export function asking({ opens, name, key, fields, more = [], go, send, roving }) {
  const says = refusals();
  const submit = el("button", { class: "main", type: "submit" }, go);
  const shut = el("button", { type: "button", onclick: () => show(false) }, "Not now");
  const opener = el("button", { type: "button", "data-part": name, ...shortcut(key), "aria-expanded": "false", "data-rove": roving }, opens);
  const all = [...fields, ...more];
  const show = (shown) => {
    form.hidden = !shown;
    opener.setAttribute("aria-expanded", String(shown));
    if (!shown) {
      keepFocus(opener);
      return settle(form);
    }
    if (!form.firstChild) build(form, { fields, more, submit, shut, says });
    for (const field of all) {
      if (typeof field.options === "function") form.elements[field.name].replaceChildren(...optionsOf(field.options()));
    }
    return form.elements[fields[0].name].focus();
  };
  const onsubmit = (event) => {
    event.preventDefault();
    press(submit, says, async () => {
      await send(valuesOf(form, all));
      form.reset();
      show(false);
    });
  };
  const onkeydown = (event) => {
    if (event.key === "Escape") show(false);
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const form = el("form", { hidden: true, "data-part": `${name}-form`, "aria-label": opens, onsubmit, onkeydown });
  opener.addEventListener("click", () => show(form.hidden));
  return { form, opener };
}
