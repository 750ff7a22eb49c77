// Requests to the server. The token stays in this tab, and the page sends it only to a server that has proved that it
// knows the token.

/**
 * `proven`: the server has proved that it knows the token, and the connection has not failed since. `repeated` is called if an
 * answer may be that to an earlier press.
 */
export const session = { token: "", proven: false, locked: () => {}, repeated: () => {} };

export const WRONG = "This token does not match. If the server was restarted, open the address that it printed.";

/** A refusal by the server, in its own words. */
export class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** No answer came: nobody here knows whether the request was carried out. */
class Unanswered extends Error {}

const DOUBT = "so it may have been carried out. Pressing again is safe as long as you change nothing here: the same request is carried out only once.";
const NO_ANSWER = `No answer came, ${DOUBT}`;

/** The keys of the requests that no answer came to, by their address and content. */
const unanswered = new Map();

/** What the server says if it passes nothing on. That says nothing about an earlier request with the same key. */
const NOT_SENT = ["no_sidecar", "no_bridge", "stopping", "too_many", "too_slow", "taken", "not_allowed", "layout", "disk_full", "file"];

const toHex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Whether the server knows the secret too. Another program on that port never receives it. */
export async function isOurs(secret, of) {
  const nonce = toHex(crypto.getRandomValues(new Uint8Array(16)));
  const response = await fetch(`/api/proof?of=${of}&nonce=${nonce}`, { cache: "no-store" });
  if (response.status === 401) return false;
  if (!response.ok) throw new Error("no proof");
  const { proof } = await response.json();
  const bytes = (text) => new TextEncoder().encode(text);
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return proof === toHex(await crypto.subtle.sign("HMAC", key, bytes(`tasuki serve\n${location.host}\n${nonce}`)));
}

/** The page's token, once the server has proved that it knows the token too. */
async function authorization() {
  if (!session.proven && !(await isOurs(session.token, "token"))) throw locked();
  return { Authorization: `Bearer ${session.token}` };
}

function locked() {
  session.locked(WRONG);
  return new Refused("no token", 401);
}

export async function fetched(path) {
  const response = await fetch(path, { headers: await authorization(), cache: "no-store" });
  if (response.status === 401) throw locked();
  if (response.ok) return response;
  throw new Refused(saidIn(await response.json()), response.status);
}

/**
 * Sends a request, and gives its answer. While no answer has come, the same content has the same key when it is sent again:
 * then the server carries it out only once, no matter whether the browser or the person sends it twice.
 */
async function post(path, body) {
  const text = JSON.stringify(body);
  const content = `${path} ${text}`;
  const key = unanswered.get(content) ?? `page-${crypto.randomUUID()}`;
  let [response, told] = [];
  const isAgain = unanswered.has(content);
  let isSent = isAgain;
  try {
    const headers = { ...(await authorization()), "Content-Type": "application/json", "Idempotency-Key": key };
    isSent = true;
    response = await fetch(path, { method: "POST", body: text, headers, cache: "no-store" });
    told = await response.json();
  } catch (failure) {
    if (!isSent || failure instanceof Refused) throw failure;
    unanswered.set(content, key);
    throw new Unanswered(NO_ANSWER);
  }
  if (response.status === 401) throw locked();
  // A refusal by the server itself has its message in `error`; the answer to a request has an object there.
  const code = typeof told.error === "string" ? told.code : "";
  if (code === "no_answer") unanswered.set(content, key);
  else if (response.ok || !NOT_SENT.includes(code)) unanswered.delete(content);
  if (response.ok) {
    // It may be an answer of long ago: a person who wants it done once more must know that it was not.
    if (isAgain) session.repeated();
    return told;
  }
  const refusal = saidIn(told);
  if (code === "no_answer") throw new Unanswered(NO_ANSWER);
  if (unanswered.has(content)) throw new Unanswered(`${refusal}. An earlier press got no answer, ${DOUBT}`);
  throw new Refused(isAgain ? `${refusal}. This is the answer to the earlier press; to try again, press once more` : refusal, response.status);
}

/** A refusal in words: the message, each thing that is wrong, and the hint. */
function saidIn(answer) {
  const refusal = answer.error || {};
  const [message, hint, wrong] = typeof refusal === "string" ? [refusal, answer.hint, []] : [refusal.message, refusal.hint, refusal.errors];
  const each = (wrong || []).map(({ pointer, message: said }) => [pointer, said].filter(Boolean).join(": "));
  return [message, ...each, hint].filter(Boolean).map((said) => said.replace(/\.$/, "")).join(". ");
}

export const api = async (path, body) => (body === undefined ? (await fetched(path)).json() : post(path, body));

/** Sends a request of any kind, and gives its result. */
export const ask = async (kind, fields) => (await api("/api/requests", { v: 1, kind, ...fields })).result ?? {};

/** Why something did not succeed, in words. */
export const whyNot = (failure) => (failure instanceof Refused || failure instanceof Unanswered ? failure.message : "The server can't be reached.");
