// What is asked, above the results: the company itself, or all that was put together, each to be taken off.

import { company } from "../api.js";
import { anchorLink, description, facts, nameOf, tags } from "../results/company.js";
import { byId, isolated, make } from "../shared/dom.js";
import { shortlistButton } from "../results/shortlist.js";
import { current, go, onlyAnchor } from "../state.js";

const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g; // a tab's title has no <bdi>

/** Title and panel for a state; needs the anchors' names, so it may take a moment. False where some are not known. */
export async function showAsked(state, signal) {
  const box = byId("asked");
  if (!state.text && !state.like.length) {
    heading("Which companies are like this one?");
    box.replaceChildren();
    return true;
  }
  const missing = new Set();
  const known = await named([...state.like, ...state.unlike], missing);
  if (signal.aborted) return true;
  const anchor = onlyAnchor(state);
  if (anchor !== null) {
    heading("Companies like ", nameOf(known.get(anchor)));
    box.replaceChildren(...(missing.size ? [] : [panel(known.get(anchor))]));
  } else {
    heading(state.text && !state.like.length ? "Companies for " : "Companies like ", title(state, known));
    box.replaceChildren(...chips(state, known));
  }
  return !missing.size;
}

/** id -> company; one that is not to be had is `missing`, and has its id for a name. */
async function named(ids, missing) {
  const found = ids.map(async (id) => {
    const unknown = () => missing.add(id) && { id, name: "" };
    return [id, await company(id).catch(unknown)];
  });
  return new Map(await Promise.all(found));
}

function title(state, known) {
  if (state.text && !state.like.length) return `“${state.text}”`;
  const names = state.like.map((id) => nameOf(known.get(id)));
  const rest = names.length + (state.text ? 1 : 0) - 1;
  return rest ? `${names[0]} and ${rest} more` : names[0];
}

function heading(words, name = "") {
  byId("title").replaceChildren(words, ...(name ? [isolated(name)] : []));
  document.title = `${words}${name.replace(BIDI, "")} · PAUSE`;
}

function panel(found) {
  return make(
    "section",
    { class: "anchor", "aria-label": "The company asked for" },
    make("header", {}, facts(found) ?? make("span"), shortlistButton(found)),
    description(found),
    tags(found),
  );
}

/** Nothing where a text alone is asked: the search box shows it already. */
function chips(state, known) {
  if (!state.like.length && !state.unlike.length) return [];
  const text = state.text ? [chip("About", isolated(state.text), state.text, () => go({ text: "" }))] : [];
  const of = (field, words) =>
    state[field].map((id) => {
      const drop = () => go({ [field]: current()[field].filter((other) => other !== id) });
      return chip(words, anchorLink(known.get(id)), nameOf(known.get(id)), drop);
    });
  const list = [...text, ...of("like", "Like"), ...of("unlike", "Not like")];
  return [make("ul", { class: "chips", "aria-label": "What is asked" }, ...list)];
}

function chip(words, shown, name, drop) {
  const traits = { type: "button", "aria-label": `Take off ${name}`, title: "Take off", onclick: drop };
  return make("li", {}, make("span", { class: "quiet" }, words), shown, make("button", traits, "×"));
}
