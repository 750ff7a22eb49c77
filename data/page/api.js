// Requests to the server. The token stays in this tab, and the page sends it only to a server that has proved that it
// knows the token.

/** `proven`: the server has proved that it knows the token, and the connection has not failed since. */
export const session = { token: "", proven: false, locked: () => {} };

export const WRONG = "This token does not match. If the server was restarted, open the address that it printed.";

/** A refusal by the server, in its own words. */
export class Refused extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

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

export async function fetched(path, body) {
  if (!session.proven && !(await isOurs(session.token, "token"))) {
    session.locked(WRONG);
    throw new Refused("no token", 401);
  }
  const headers = { Authorization: `Bearer ${session.token}` };
  const options = { headers, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
    // The browser may send a request twice: with the same key it is carried out once.
    headers["Idempotency-Key"] = `page-${crypto.randomUUID()}`;
  }
  const response = await fetch(path, options);
  if (response.status === 401) {
    session.locked(WRONG);
    throw new Refused("no token", 401);
  }
  if (response.ok) return response;
  throw new Refused(saidIn(await response.json()), response.status);
}

/** A refusal in words: the message, each thing that is wrong, and the hint. */
function saidIn(answer) {
  const refusal = answer.error || {};
  const [message, hint, wrong] = typeof refusal === "string" ? [refusal, answer.hint, []] : [refusal.message, refusal.hint, refusal.errors];
  const each = (wrong || []).map(({ pointer, message: said }) => [pointer, said].filter(Boolean).join(": "));
  return [message, ...each, hint].filter(Boolean).map((said) => said.replace(/\.$/, "")).join(". ");
}

export const api = async (path, body) => (await fetched(path, body)).json();

/** Sends a request of any kind, and gives its result. */
export const ask = async (kind, fields) => (await api("/api/requests", { v: 1, kind, ...fields })).result ?? {};

/** Why something did not succeed, in words. */
export const whyNot = (failure) => (failure instanceof Refused ? failure.message : "The server can't be reached.");
