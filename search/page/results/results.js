// The results of a question, as a list that grows or as a map.

import { PAGE, hits, market } from "../api.js";
import { card } from "./cards.js";
import { make } from "../shared/dom.js";
import { clearFilters } from "../question/facets.js";
import { lookSoon } from "../health.js";
import { MarketMap } from "../map/map.js";
import { announce, nothing } from "../shared/messages.js";
import { retrying } from "../shared/retry.js";
import { go } from "../state.js";

const FURTHEST = 1000; // the API goes no deeper

/** Resolves once the list is there; with nothing, for the title takes the focus. */
export async function showList(state, place, signal) {
  const found = await retrying(() => hits(state, 0, signal), place, signal);
  if (!found.hits.length) return showNothing(state, place);
  const list = make("ol", { class: "cards", "aria-label": "Companies found" });
  const best = found.hits[0].score;
  let next = 0;
  const foot = make("div", { class: "foot" });
  add(found);
  place.replaceChildren(list, foot);
  announce(`${found.hits.length} companies found`);
  return null;

  function add(page) {
    const about = { state, best, shown: page.shown, scoredBy: page.scored_by };
    list.append(...page.hits.map((hit) => card(hit, about)));
    if (page.hits.some((hit) => hit.why === null)) lookSoon(); // no reasons: the encoder may be away
    next += PAGE;
    const ended = page.total_known !== null || next > FURTHEST;
    foot.replaceChildren(...(ended ? [] : [make("button", { type: "button", onclick: more }, "Show more")]));
  }

  async function more() {
    const from = list.children.length;
    foot.firstChild.disabled = true;
    const page = await retrying(() => hits(state, next, signal), foot, signal).catch(() => null);
    if (!page || signal.aborted) return;
    add(page);
    announce(page.hits.length ? `${page.hits.length} more companies` : "These were all companies");
    (list.children[from] ?? list.lastElementChild).querySelector("h2 a").focus();
  }
}

export async function showMap(state, place, signal) {
  const found = await retrying(() => market(state, signal), place, signal);
  if (!found.points.length) return showNothing(state, place);
  const map = new MarketMap(found, (id) => go({ text: "", like: [id], unlike: [] }));
  place.replaceChildren(map.element);
  announce(map.summary());
  return () => map.focus();
}

function showNothing(state, place) {
  place.replaceChildren(nothing(state, clearFilters));
  announce("No company found");
  return null;
}
