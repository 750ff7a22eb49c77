// A handoff's document, the faults in it, and what tasuki has seen of the agent's work.

import { fetched, whyNot } from "./api.js";
import { clock, counted, described, el, linkTo, part, rebuild, say, short } from "./dom.js";
import { shortcut } from "./forms.js";
import { rendered } from "./markdown.js";

/** How many changed files, written files and commands are listed. */
const MOST_LISTED = 20;

export const makeFaults = () => el("ul", { class: "faults", "data-part": "faults", "aria-label": "Faults of the document" });

export function updateFaults(list, handoff) {
  const faults = handoff.faults || [];
  list.hidden = !faults.length;
  rebuild(list, faults, () =>
    faults.map((fault) => {
      const where = fault.line == null ? "" : `line ${fault.line}: `;
      const text = [fault.said, fault.is].filter(Boolean).join("; ");
      return el("li", { class: fault.grade === "fix" ? "fix" : "" }, el("strong", {}, fault.grade), ` ${where}${text}`);
    }),
  );
}

/** The document, which is fetched when it is opened. */
export function makeReading(id) {
  const shown = { class: "markdown", "data-part": "markdown", tabindex: 0, role: "group", "aria-label": `Document of handoff ${short(id)}` };
  const says = el("p", { class: "says", role: "alert", "data-part": "reading-says" });
  const reading = el("details", { hidden: true, "data-part": "reading" }, el("summary", shortcut("v"), "Document"), el("div", shown), says);
  reading.addEventListener("toggle", () => reading.open && readDocument(reading, id));
  return reading;
}

export function updateReading(reading, handoff) {
  reading.hidden = handoff.bytes == null && !handoff.document && !handoff.facts;
  const state = [handoff.sha256, handoff.document?.at, handoff.reworks, handoff.held_since].join(" ");
  if (reading.dataset.state === state) return;
  reading.dataset.state = state;
  reading.dataset.read = "";
  if (reading.open && !reading.hidden) readDocument(reading, handoff.handoff_id);
}

async function readDocument(reading, id) {
  const { state } = reading.dataset;
  if (reading.dataset.read === state) return;
  reading.dataset.read = state;
  let [text, why] = ["", ""];
  try {
    text = await (await fetched(`/api/handoffs/${encodeURIComponent(id)}/document`)).text();
  } catch (failure) {
    why = whyNot(failure);
    reading.dataset.read = "";
  }
  // Another text may have been asked for meanwhile.
  if (reading.dataset.state !== state) return;
  part(reading, "markdown").replaceChildren(...rendered(text));
  part(reading, "markdown").hidden = !text;
  say(reading, "reading-says", why);
}

/** A command, with its end as far as the transcript says it. */
function commandOf(ran) {
  let end = "";
  if (ran.exit != null) end = `: exit ${ran.exit}`;
  else if (ran.failed != null) end = ran.failed ? ": failed" : ": did not fail";
  return `${ran.command}${end}${ran.at ? ` at ${clock(ran.at)}` : ""}`;
}

/** Rows of a name and texts about the repository. */
function aboutRepository(repository) {
  const pushed = { true: ", on a remote branch", false: ", not pushed" }[repository.head_on_remote] ?? "";
  const ahead = repository.upstream ? `, ${repository.ahead ?? "?"} ahead of ${repository.upstream}, ${repository.behind ?? "?"} behind` : "";
  const files = (repository.status || []).slice(0, MOST_LISTED).map((changed) => `${changed.state} ${changed.path}`);
  const count = repository.changed == null ? [] : [`${counted(repository.changed, "file")} ${repository.diff_stat ? `(${repository.diff_stat.trim()})` : ""}`];
  return [
    ["repository", [repository.root]],
    ["branch", [`${repository.branch ?? "HEAD is detached"}${ahead}`]],
    ["HEAD", repository.head ? [`${repository.head.slice(0, 12)}${pushed} ${repository.subject ?? ""}`] : ["there are no commits"]],
    ["in progress", [repository.in_progress]],
    ["changed", [...count, ...files]],
  ];
}

/** Links to the handoffs before this one. */
const earlierOnes = (handoff) =>
  (handoff.earlier || []).map((earlier) => {
    const id = earlier.handoff_id;
    const checkpoint = earlier.checkpoint ? `, checkpoint: ${earlier.checkpoint}` : "";
    return el("span", {}, linkTo("handoffs", id, `handoff ${short(id)}`), ` ${earlier.file_path}${checkpoint}`);
  });

export const makeFacts = () =>
  el("details", { "data-part": "facts" }, el("summary", shortcut("f"), "What tasuki has seen"), el("dl", { "data-part": "facts-list" }));

export function updateFacts(card, handoff) {
  const { facts } = handoff;
  part(card, "facts").hidden = !facts && !handoff.drift?.length && !handoff.earlier?.length;
  rebuild(part(card, "facts-list"), [facts, handoff.drift, handoff.generation, handoff.earlier], () => {
    const actions = facts?.actions;
    return described([
      ["taken", [facts && clock(facts.taken_at)]],
      ["changed since then", handoff.drift || []],
      ...(facts?.repository ? aboutRepository(facts.repository) : []),
      ["last test", actions?.last_test ? [commandOf(actions.last_test), actions.last_test.printed] : []],
      ["sent", (actions?.sent || []).filter((ran) => !ran.failed).map(commandOf)],
      ["files written", (actions?.files || []).slice(0, MOST_LISTED).map((file) => `${file.path}: ${file.state}`)],
      ["still running", (facts?.running || []).map((process) => `${process.pid} ${process.command}`)],
      ["rules", facts?.chain?.rules || []],
      ["session", [facts?.conversation?.resume_command]],
      ["not known", facts?.not_known || []],
      ["generation", [handoff.generation]],
      ["earlier", earlierOnes(handoff)],
    ]);
  });
}
