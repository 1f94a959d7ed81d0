// Why two companies are alike: the pairs of sentences that are closest.

import { make, unseen } from "./dom.js";

/** Null where the server gave no reasons. */
export function why(pairs, open) {
  if (!pairs?.length) return null;
  return make(
    "details",
    { class: "why", open },
    make("summary", {}, "Why similar"),
    make("ul", {}, ...pairs.map(row)),
  );
}

function row({ mine, theirs, score }) {
  return make(
    "li",
    {},
    quote(mine.id === null ? "Your words" : "Asked for", mine.text, false),
    make("span", { class: "closeness" }, unseen("Closeness "), score.toFixed(2)),
    quote("Here", theirs.text, true),
  );
}

function quote(label, text, highlighted) {
  const words = highlighted ? make("mark", {}, text) : text;
  return make("div", { class: "quote" }, make("span", { class: "quiet" }, label), make("q", { dir: "auto" }, words));
}
