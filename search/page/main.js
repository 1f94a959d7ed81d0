// Puts the parts together: whenever the address changes, all of them show what it says.

import { showAsked } from "./question/asked.js";
import { byId, make } from "./shared/dom.js";
import { foldFilters, showFacets } from "./question/facets.js";
import { showFacts } from "./footer.js";
import { watchHealth } from "./health.js";
import { mayAskAgain } from "./shared/key.js";
import { announce, follow, waiting, welcome } from "./shared/messages.js";
import { retryNow } from "./shared/retry.js";
import { showList, showMap } from "./results/results.js";
import { SearchBox } from "./question/search-box.js";
import { startShortlist } from "./results/shortlist.js";
import { FIELDS, asksSomething, changed, current, go, hasFilters, onChange } from "./state.js";

const VIEWS = { list: "List", map: "Map" };

let asked = new AbortController();
let before = null; // the question shown last, without its filters

const box = new SearchBox(
  (text) => go({ text, like: [], unlike: [] }),
  (id) => go({ text: "", like: [id], unlike: [] }),
);

async function show(state, onwards) {
  asked.abort();
  const { signal } = (asked = new AbortController());
  mayAskAgain();
  box.set(state.text);
  showToolbar(state);
  showFacets(state);
  const titled = showAsked(state, signal);
  const question = JSON.stringify([state.text, state.like, state.unlike, state.view]);
  const started = before !== null;
  const other = question !== before;
  before = question;
  if (other && onwards) window.scrollTo(0, 0);
  try {
    const focus = await showContent(state, other, signal);
    if (!(await titled)) await showAsked(state, signal); // what was away then has answered now
    if (started && !signal.aborted) rescueFocus(focus);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function showContent(state, other, signal) {
  const place = byId("content");
  if (!asksSomething(state)) {
    place.removeAttribute("aria-busy");
    place.replaceChildren(welcome(hasFilters(state)));
    return null;
  }
  // Other filters on the same question leave its results in sight until the new ones are there.
  if (other) place.replaceChildren(waiting());
  place.setAttribute("aria-busy", "true");
  announce("Looking for companies");
  const focus = await (state.view === "map" ? showMap : showList)(state, place, signal);
  place.removeAttribute("aria-busy");
  return focus;
}

/** What had the focus may be gone with the old results; a keyboard user must not start over at the top. */
function rescueFocus(focus) {
  if (document.activeElement !== document.body) return;
  if (focus) focus();
  else byId("title").focus({ preventScroll: true });
}

function showToolbar(state) {
  byId("columns").classList.toggle("home", !asksSomething(state) && !hasFilters(state));
  byId("results").dataset.view = state.view;
  byId("toolbar").hidden = !asksSomething(state);
  byId("mode-label").hidden = !state.text;
  byId("mode").value = state.mode;
  const links = Object.entries(VIEWS).map(([view, words]) => {
    const traits = { href: changed({ view }), "aria-current": view === state.view ? "true" : null };
    return make("a", { ...traits, onclick: (event) => follow(event, { view }) }, words);
  });
  byId("views").replaceChildren(...links);
}

const NO_FILTERS = Object.fromEntries(FIELDS.map((field) => [field, []]));
const NOTHING = { text: "", like: [], unlike: [], view: "list", filters: NO_FILTERS };

byId("mode").addEventListener("change", (event) => go({ mode: event.target.value }));
byId("home").addEventListener("click", (event) => follow(event, NOTHING));
foldFilters();
startShortlist();
onChange(show);
show(current(), true);
showFacts();
watchHealth(() => {
  showFacts();
  showFacets(current());
  retryNow();
});
