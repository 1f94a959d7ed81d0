// What is asked, as the address bar tells it: every view can be shared, and the back button goes where it should.

export const FIELDS = ["sector", "industry", "country", "tags"];
const MODES = ["hybrid", "vector", "words"];

const listeners = [];
let told = location.search;

export function parse(query) {
  const values = new URLSearchParams(query);
  const all = (name) => [...new Set(values.getAll(name).filter(Boolean))];
  const mode = values.get("mode");
  return {
    text: (values.get("q") ?? "").trim(),
    like: all("like"),
    unlike: all("unlike"),
    filters: Object.fromEntries(FIELDS.map((field) => [field, all(field)])),
    mode: MODES.includes(mode) ? mode : MODES[0],
    view: values.get("view") === "map" ? "map" : "list",
  };
}

/** The address of a state, without what is as usual. */
export function address(state) {
  const values = new URLSearchParams();
  if (state.text) values.append("q", state.text);
  state.like.forEach((id) => values.append("like", id));
  state.unlike.forEach((id) => values.append("unlike", id));
  for (const field of FIELDS) state.filters[field].forEach((value) => values.append(field, value));
  if (state.mode !== MODES[0]) values.set("mode", state.mode);
  if (state.view !== "list") values.set("view", state.view);
  const query = values.toString();
  return query ? `?${query}` : "./";
}

export const current = () => parse(location.search);

/** The address of what is asked now with some of it changed. */
export const changed = (change) => address({ ...current(), ...change });

export function go(change) {
  const next = changed(change);
  // Asked twice, it is still one step to go back.
  if (next === changed({})) history.replaceState(null, "", next);
  else history.pushState(null, "", next);
  tell(true);
}

/** The listener gets the state, and whether it is a step on rather than one back. */
export function onChange(listener) {
  listeners.push(listener);
}

/** Anything to look for at all, or the empty page. */
export const asksSomething = (state) => Boolean(state.text || state.like.length);

export const hasFilters = (state) => FIELDS.some((field) => state.filters[field].length);

/** The one company and nothing else, which has an answer of its own in the API; null otherwise. */
export function onlyAnchor(state) {
  return state.like.length === 1 && !state.text && !state.unlike.length ? state.like[0] : null;
}

/** What a "similar" would be about; null where several things were asked at once and the answer would teach nothing. */
export function question(state) {
  if (state.text && !state.like.length) return { anchor: null, text: state.text };
  if (!state.text && state.like.length === 1) return { anchor: state.like[0], text: null };
  return null;
}

function tell(onwards) {
  const state = current();
  told = location.search;
  listeners.forEach((listener) => listener(state, onwards));
}

// A jump to a fragment, such as the skip link's, is a popstate too and asks nothing new.
window.addEventListener("popstate", () => location.search === told || tell(false));
