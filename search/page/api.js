// The API's paths and errors; nothing else on the page fetches.

import { askForKey, currentKey, keyIsSafe } from "./shared/key.js";
import { FIELDS, onlyAnchor } from "./state.js";

const TIMEOUT_MS = 30_000;
export const PAGE = 10;
const MAP_POINTS = 150;
const PLAIN_HTTP = { code: "plain_http", message: "A key is not safe on a page that came over plain http." };

export class ApiError extends Error {
  constructor(status, { code = "", message = "", fix = "" } = {}, retrySeconds = 0) {
    super(message);
    Object.assign(this, { status, code, fix, retrySeconds });
  }

  /** True for what may be over in a moment without anybody changing the question. */
  get passes() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

const companies = new Map(); // id -> promise: anchors are named again on every view

export function company(id) {
  if (!companies.has(id)) {
    const asked = call(`v1/companies/${encodeURIComponent(id)}`);
    companies.set(id, asked);
    asked.catch(() => companies.delete(id));
  }
  return companies.get(id);
}

/** Hits for a state from `offset` on, with the id of the list shown. */
export async function hits(state, offset, signal) {
  const answer = await ask(state, { k: PAGE, offset, why: true }, signal);
  const seen = [...answer.hits.map((hit) => hit.company), ...(answer.anchor ? [answer.anchor] : [])];
  seen.forEach((one) => companies.set(one.id, Promise.resolve(one)));
  return answer;
}

function ask(state, page, signal) {
  const anchor = onlyAnchor(state);
  if (anchor === null) return call("v1/search", { body: { ...body(state), ...page }, signal });
  const values = filterValues(state.filters);
  Object.entries(page).forEach(([name, value]) => values.append(name, value));
  return call(`v1/companies/${encodeURIComponent(anchor)}/similar?${values}`, { signal });
}

export function market(state, signal) {
  const anchor = onlyAnchor(state);
  if (anchor === null) return call("v1/map", { body: { ...body(state), k: MAP_POINTS }, signal });
  const values = filterValues(state.filters);
  values.append("id", anchor);
  values.append("k", MAP_POINTS);
  return call(`v1/map?${values}`, { signal });
}

export async function suggestions(prefix, signal) {
  const values = new URLSearchParams({ prefix, k: 8 });
  return (await call(`v1/suggest?${values}`, { signal })).suggestions;
}

export async function facets(filters, signal) {
  return (await call(`v1/facets?${filterValues(filters)}`, { signal })).facets;
}

export const feedback = (answer) => call("v1/feedback", { body: answer });

export const status = () => call("v1/status");

/** Not an error where something is missing: that is the answer. */
export async function readiness() {
  try {
    return await (await fetch("readyz", { signal: AbortSignal.timeout(TIMEOUT_MS) })).json();
  } catch {
    return null;
  }
}

function body(state) {
  const { text, like, unlike, filters } = state;
  return { text: text || null, like, unlike, filters, mode: text ? state.mode : "vector" };
}

function filterValues(filters) {
  const values = new URLSearchParams();
  for (const field of FIELDS) filters[field].forEach((value) => values.append(field, value));
  return values;
}

async function call(path, { body, signal } = {}) {
  const key = currentKey();
  const response = await send(path, body, signal, key);
  if (response.ok) return response.status === 204 ? null : response.json();
  const error = await failure(response);
  if (response.status === 401 && !keyIsSafe()) throw new ApiError(401, PLAIN_HTTP);
  // Several requests may meet the same closed door; a key given for one of them serves all.
  if (response.status === 401 && (await askForKey(key, error.message))) return call(path, { body, signal });
  throw error;
}

/** Where the service is traced, this is what its part of the trace is found by. */
function traceparent() {
  const hex = (bytes) =>
    Array.from(crypto.getRandomValues(new Uint8Array(bytes)), (one) => one.toString(16).padStart(2, "0")).join("");
  return `00-${hex(16)}-${hex(8)}-01`;
}

async function send(path, body, signal, key) {
  const headers = { Accept: "application/json", traceparent: traceparent() };
  if (body) headers["Content-Type"] = "application/json";
  if (key) headers.Authorization = `Bearer ${key}`;
  const signals = [AbortSignal.timeout(TIMEOUT_MS), ...(signal ? [signal] : [])];
  try {
    return await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal: AbortSignal.any(signals),
      mode: "same-origin", // a key goes to the server of this page, and is not sent on from there
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, { code: "unreachable", message: "The server does not answer." });
  }
}

async function failure(response) {
  const retrySeconds = Number(response.headers.get("Retry-After")) || 0;
  let said = {};
  try {
    said = (await response.json()).error ?? {};
  } catch {
    // a proxy's page, say: the status alone has to do
  }
  return new ApiError(response.status, said, retrySeconds);
}
