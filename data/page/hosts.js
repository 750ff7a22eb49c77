// The other hosts of the fleet: how each is, how old that is, and, in an opened card, what it tells of itself (roster.js).

import { CardList, headline } from "./cards.js";
import { at, clock, counted, el, part, say, tell } from "./dom.js";
import { makeRoster, updateRoster } from "./roster.js";
import { hosts, showsHosts } from "./store.js";

/** How often the ages are told again. */
const AGE_MS = 15000;

/** How long ago something was, in words. */
function ago(time) {
  const minutes = Math.floor((Date.now() - new Date(time)) / 60000);
  if (Number.isNaN(minutes)) return "";
  if (minutes < 1) return "just now";
  if (minutes < 120) return `${minutes} min ago`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h ago` : `${Math.floor(minutes / 1440)} days ago`;
}

/** Of when everything is that is shown of a host; nothing while it is live. */
function ageOf(host) {
  if (host.state === "live") return "";
  const since = host.away_since;
  if (host.state === "away" && since) return `Away since ${clock(since)}, ${ago(since)}. What is shown here was so then.`;
  const why = host.state === "unknown" ? "The bridge on this machine does not run or reaches no server." : "What stands at its name is not signed by it.";
  return `${why} What is shown here was last seen ${host.seen_at ? `at ${clock(host.seen_at)}, ${ago(host.seen_at)}` : "never"}.`;
}

function summary(card, host) {
  tell(part(card, "name"), host.own ? `${host.host} (this host)` : host.host);
  say(card, "state", host.state);
  part(card, "state").className = `state ${host.state.replaceAll(" ", "-")}`;
  card.classList.toggle("stale", host.state !== "live");
  const { agents, handoffs, errors } = host.counts;
  const counts = [counted(agents, "agent"), counted(handoffs, "open handoff"), counted(errors, "error")];
  const more = host.more > 0 ? [`${host.more} more entries are not shown`] : [];
  say(card, "about", [`sidecar ${host.sidecar.state || "unknown"}`, ...counts, ...more].join("  "));
  tellAge(card, host);
}

const tellAge = (card, host) => say(card, "age", ageOf(host));

const makeAge = () => [el("p", { "data-part": "age" })];

const list = new CardList("hosts", { idOf: (host) => host.host, row: makeAge, body: makeRoster, summary, update: updateRoster });

/** Draws all hosts, by their names. */
export function drawHosts() {
  const all = [...hosts.values()].sort((one, other) => (one.host < other.host ? -1 : 1));
  list.draw([{ list: at("hosts"), things: all }]);
  headline("hosts-title", "Hosts", all.length, all.length);
  at("no-hosts").hidden = all.length > 0;
}

/** Shows the section, if the server was started for all hosts. */
export function prepareHosts() {
  for (const id of ["hosts-section", "to-hosts"]) at(id).hidden = !showsHosts;
  if (!showsHosts) return;
  setInterval(() => list.cards.forEach((card, id) => tellAge(card, list.things.get(id))), AGE_MS);
}
