// The page of `tasuki serve` begins here. The page exchanges the code in the address's fragment for the token. A fragment is
// never sent to a server, and the code is good once.

import { isOurs, session } from "./api.js";
import { drawAgents, prepareAgents } from "./agents.js";
import { redrawAll } from "./cards.js";
import { at, tell, today } from "./dom.js";
import { drawErrors } from "./errors.js";
import { drawFilter, prepareFilter } from "./filter.js";
import { notice, prepareSure } from "./forms.js";
import { drawHandoffs } from "./handoffs.js";
import { drawHosts, prepareHosts } from "./hosts.js";
import { prepareKeys } from "./keys.js";
import { drawLineage } from "./lineage.js";
import { preparePulse, start } from "./live.js";
import { touchNeeds } from "./needs.js";
import { follow, prepareRoutes } from "./route.js";
import { onChange } from "./store.js";
import { drawWork, prepareWork } from "./work.js";

const KEPT = "tasuki-token";
/** How often the page looks if a new day has begun. */
const DAY_MS = 5000;

/** Shows either the page or the login. */
function showMain(isShown) {
  for (const id of ["main", "nav", "keys-open"]) at(id).hidden = !isShown;
  at("login").hidden = isShown;
}

function lock(why) {
  session.token = "";
  session.proven = false;
  sessionStorage.removeItem(KEPT);
  showMain(false);
  tell(at("login-says"), why);
  tell(at("link-text"), "not connected");
  at("link").className = "";
}

function unlock(found) {
  session.token = found;
  sessionStorage.setItem(KEPT, found);
  showMain(true);
  start(follow);
}

/** Exchanges the address's code for the token: a browser keeps addresses, and this one is now useless. */
async function enter(code) {
  const used = "This address was already used or has expired. Restart tasuki serve, or enter the token.";
  try {
    if (!(await isOurs(code, "code"))) return lock(used);
    const options = { method: "POST", headers: { Authorization: `Code ${code}` }, cache: "no-store" };
    const response = await fetch("/api/session", options);
    if (!response.ok) return lock(used);
    return unlock((await response.json()).token);
  } catch {
    return lock("The server can't be reached.");
  }
}

/** Draws everything once more when a new day begins: a time of today is shown without its date. */
function prepareDays() {
  let drawn = today();
  setInterval(() => {
    if (drawn === today()) return;
    drawn = today();
    redrawAll();
    if (session.token) touchNeeds();
  }, DAY_MS);
}

function begin() {
  session.locked = lock;
  session.repeated = () => notice("This answers an earlier press, and was carried out only once. To do it once more, press again.");
  at("login").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = at("token").value.trim();
    at("token").value = "";
    unlock(typed);
  });
  onChange((kinds) => {
    if (kinds.has("agents") || kinds.has("handoffs")) drawFilter();
    if (kinds.has("errors")) drawErrors();
    if (kinds.has("agents")) drawAgents();
    if (kinds.has("handoffs")) drawHandoffs();
    if (kinds.has("work")) drawWork();
    if (kinds.has("agents")) drawLineage();
    if (kinds.has("hosts")) drawHosts();
  });
  for (const prepare of [prepareSure, prepareAgents, prepareWork, prepareFilter, prepareKeys, prepareRoutes, prepareHosts, preparePulse, prepareDays]) prepare();
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname);
  const kept = sessionStorage.getItem(KEPT);
  if (code) enter(code);
  else if (kept) unlock(kept);
  else lock("");
}

begin();
